"""Arrays of pixels -> PNG, lossless: 1 to 4 channels of 8 or 16 bits, which no library here has.

The format is stated in the W3C's Portable Network Graphics specification, chapters 5, 9 and 11.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import SourceError

_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels -> grey, grey and alpha, RGB, RGBA
_UP = 2  # the filter that stores each byte as its difference to the one above


def encode_png(pixels: npt.NDArray[Any]) -> bytes:
    """Encode uint8 or uint16, (height, width, channels).

    Raises:
        SourceError: PNG has nothing for this shape or type.
    """
    height, width, channels = pixels.shape
    if pixels.dtype not in (np.uint8, np.uint16):
        raise SourceError(f"PNG holds uint8 and uint16, not {pixels.dtype}")
    if channels not in _COLOUR_TYPES:
        raise SourceError(f"PNG holds 1 to 4 channels, not {channels}")
    if not 0 < height < 2**31 or not 0 < width < 2**31:
        raise SourceError(f"PNG holds no picture of {width} x {height} pixels")
    depth = 8 * pixels.dtype.itemsize
    rows = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8)
    rows = rows.reshape(height, -1)
    filtered = np.empty((height, rows.shape[1] + 1), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOUR_TYPES[channels], 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(filtered.tobytes())),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
