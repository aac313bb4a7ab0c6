"""Decode one large JPEG with several threads.

A JPEG with tiles (each row of MCUs consists of whole restart intervals) is cut into bands of rows.
Each is decoded as a smaller JPEG with a margin, so that no pixel differs from those of the whole
image.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, as_view
from recordsmith.image.decoding.jpeg_pixels import decode_cut
from recordsmith.image.formats.jpeg import END, MARKER_IN_SCAN, jpeg_variant
from recordsmith.image.kernel.cutting import cut_jpeg

BAND_BYTES = 4
"""For each pixel, the most memory that bands take besides the pixels of the image."""

_LEAST_PIXELS = 1 << 20  # smaller images take less time than to start threads is worth
_LEAST_ROWS, _MAX_ROWS = 256, 512  # of a band: margins take time, copies take memory
_STEP = 32  # a multiple of all heights of MCUs, and of all divisors


def decode_in_bands(
    data: BytesLike,
    height: int,
    width: int,
    component_count: int,
    *,
    threads: int,
    channels: int = 3,
    divisor: int = 1,
) -> npt.NDArray[np.uint8] | None:
    """Decode a JPEG with several threads.

    Returns:
        The pixels that `decode_jpeg` returns; None for an image that is small, has no tiles, or is
        damaged.
    """
    rows = -(-height // (threads * _STEP)) * _STEP
    rows = max(_LEAST_ROWS, min(rows, _MAX_ROWS))
    if threads < 2 or height <= rows or height * width < _LEAST_PIXELS:
        return None
    if jpeg_variant(as_view(data)) != "tiled":
        return None
    last_top = (height - 1) // rows * rows
    last = cut_jpeg(data, last_top, 0, height - last_top, width, divisor)
    if last is None or not _is_end(data, len(last[0])):
        return None
    count = 1 if component_count == 1 or channels == 1 else 3
    pixels = np.empty((-(-height // divisor), -(-width // divisor), count), np.uint8)

    def decode(top: int) -> bool:
        cut = cut_jpeg(data, top, 0, min(rows, height - top), width, divisor)
        if cut is None:
            return False
        file, cut_top, _, cut_height, cut_width, _ = cut
        part = decode_cut(
            file, cut_height, cut_width, component_count, channels=channels, divisor=divisor
        )
        if part is None:
            return False
        start, offset = top // divisor, (top - cut_top) // divisor
        band = pixels[start : start + rows // divisor]
        band[...] = part[offset : offset + len(band)]
        return True

    with ThreadPoolExecutor(threads) as pool:
        is_decoded = list(pool.map(decode, range(0, height, rows)))
    return pixels if all(is_decoded) else None


def _is_end(data: BytesLike, byte_count: int) -> bool:
    """Whether the scan, of which at most so many bytes are checked, ends with the file."""
    view = as_view(data)
    marker = MARKER_IN_SCAN.search(view, max(0, len(view) - byte_count))
    return marker is not None and marker.end() == len(view) and marker[0] == END
