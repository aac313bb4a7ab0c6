"""Read the EXIF orientation of an image from its header.

Orientations are numbers from 1 to 8 (EXIF and TIFF tag 274): 1 is upright, 2 to 4 keep height and
width, 5 to 8 swap them.
"""

from __future__ import annotations

import struct

from recordsmith.image.formats.webp import chunks
from recordsmith.jpeg import EXIF, PROGRESSIVE, read_head

UPRIGHT = 1
TAG = 0x0112
_CODES = {3: "H", 4: "I"}  # TIFF's types SHORT and LONG


def upright(_: bytes) -> int:
    """The orientation of formats without EXIF, and of those that decoders rotate."""
    return UPRIGHT


def read_jpeg_info(data: bytes) -> tuple[bool, int]:
    """(is progressive, EXIF orientation) of a JPEG; (False, 1) for other bytes."""
    frame, exif = read_head(data)
    is_progressive = frame is not None and frame.marker in PROGRESSIVE
    return is_progressive, UPRIGHT if exif is None else _orientation_in_tiff(data, exif)


def in_png(data: bytes) -> int:
    if b"eXIf" not in data:
        return UPRIGHT
    at = 8
    while at + 8 <= len(data):
        if data[at + 4 : at + 8] == b"eXIf":
            return _orientation_in_tiff(data, at + 8)
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return UPRIGHT


def in_webp(data: bytes) -> int:
    for name, start in chunks(data):
        if name == b"EXIF":  # some writers prepend the prefix of JPEG
            prefix = len(EXIF) if data.startswith(EXIF, start) else 0
            return _orientation_in_tiff(data, start + prefix)
    return UPRIGHT


def _orientation_in_tiff(data: bytes, start: int) -> int:
    """The tag in the first directory of the TIFF structure that begins at `start`."""
    order = {b"II": "<", b"MM": ">"}.get(data[start : start + 2])
    if order is None:
        return UPRIGHT
    try:
        (offset,) = struct.unpack_from(f"{order}I", data, start + 4)
        (count,) = struct.unpack_from(f"{order}H", data, start + offset)
        for number in range(count):
            entry = start + offset + 2 + 12 * number
            tag, kind = struct.unpack_from(f"{order}HH", data, entry)
            if tag == TAG and kind in _CODES:
                (value,) = struct.unpack_from(order + _CODES[kind], data, entry + 8)
                return int(value) if 1 <= value <= 8 else UPRIGHT
    except struct.error:  # an offset points past the end
        pass
    return UPRIGHT
