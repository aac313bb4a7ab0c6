"""Decode uncompressed BMP files as TensorFlow does.

TensorFlow uses only the size, height, width and bits of the header, and requires the file to have
exactly that length. Unlike TensorFlow, which reads palette indices as grey levels, this decoder
applies the palette.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_BITS = (8, 24, 32)
_SIZES = (40, 52, 56, 64, 108, 124)  # valid sizes of a header
_UNCOMPRESSED, _BY_MASKS = 0, 3
_WITH_ALPHA_MASK = 56  # smallest header with an alpha mask
_FIELDS = struct.Struct("<10xIIiixxHI")


class BmpHeader(NamedTuple):
    """The header of a BMP file.

    Attributes:
        start: the offset of the pixels.
        own_size: the size of the header itself.
        signed_height: as stored: negative if the first row is the top one.
    """

    start: int
    own_size: int
    width: int
    signed_height: int
    bits: int
    compression: int

    @property
    def height(self) -> int:
        return abs(self.signed_height)

    @property
    def channels(self) -> int:
        return 0  # of a palette: known after decoding


def read_header(data: bytes | memoryview) -> BmpHeader | None:
    """The header of an uncompressed BMP with 8, 24 or 32 bits per pixel; None for others."""
    if data[:2] != b"BM" or len(data) < _FIELDS.size:
        return None
    header = BmpHeader(*_FIELDS.unpack_from(data))
    is_plain = header.bits in _BITS and header.compression in (_UNCOMPRESSED, _BY_MASKS)
    return header if is_plain and header.own_size in _SIZES and header.width > 0 else None


def decode(data: bytes, header: BmpHeader) -> npt.NDArray[np.uint8] | None:
    """Decode to (height, width, 1, 3 or 4); None if the file does not have the exact length."""
    height, channels = header.height, header.bits // 8
    row_size = (channels * header.width + 3) // 4 * 4
    if not height or header.start + row_size * height != len(data):
        return None
    rows = np.frombuffer(data, np.uint8, row_size * height, header.start)
    rows = rows.reshape(height, row_size)
    if header.signed_height > 0:
        rows = rows[::-1]
    pixels = rows[:, : channels * header.width].reshape(height, header.width, channels)
    if channels == 1:
        return _palette(data, header)[pixels[:, :, 0]]
    import cv2

    change = cv2.COLOR_BGR2RGB
    if channels == 4:
        change = cv2.COLOR_BGRA2RGBA if _has_alpha(data, header) else cv2.COLOR_BGRA2RGB
    return cv2.cvtColor(np.ascontiguousarray(pixels), change)  # type: ignore[return-value]


def _palette(data: bytes, header: BmpHeader) -> npt.NDArray[np.uint8]:
    """The colour of each index, with a single channel if all are grey."""
    start = 14 + header.own_size
    entries = np.zeros((256, 4), np.uint8)
    stored = data[start : header.start][: entries.size]
    count = len(stored) // 4
    entries[:count] = np.frombuffer(stored, np.uint8, 4 * count).reshape(count, 4)
    colours = entries[:, 2::-1]
    is_grey = bool((colours == colours[:, :1]).all())
    return np.ascontiguousarray(colours[:, :1] if is_grey else colours)


def _has_alpha(data: bytes, header: BmpHeader) -> bool:
    return header.own_size >= _WITH_ALPHA_MASK and any(data[66:70])
