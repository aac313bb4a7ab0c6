"""Read the EXIF orientation of an image from its header.

Orientations are numbers from 1 to 8 (EXIF and TIFF tag 274): 1 is upright, 2 to 4 keep height and
width, 5 to 8 swap them. Pillow reads formats other than JPEG, PNG and WebP.
"""

from __future__ import annotations

import struct

from recordsmith.errors import CorruptDataError
from recordsmith.image.formats.jpeg import EXIF, PROGRESSIVE, START, read_head
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import SIGNATURE

UPRIGHT = 1
_TAG = 0x0112
_CODES = {3: "H", 4: "I"}  # TIFF's types SHORT and LONG
# decoders of TIFF apply the tag; the other formats have no EXIF
_WITHOUT_EXIF = (b"II*\0", b"MM\0*", b"GIF8", b"BM", b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")


def exif_orientation(data: bytes) -> int:
    """The EXIF orientation of an encoded image, 1 to 8; 1 if missing or invalid.

    XMP is ignored, as decoders ignore it.
    """
    if data[:2] == START:
        start = read_head(data)[1]
    elif data[:8] == SIGNATURE:
        start = _exif_in_png(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        start = _exif_in_webp(data)
    elif data.startswith(_WITHOUT_EXIF):
        start = None
    else:
        return _orientation_by_pillow(data)
    return UPRIGHT if start is None else _orientation_in_tiff(data, start)


def read_jpeg_info(data: bytes) -> tuple[bool, int]:
    """(is progressive, EXIF orientation) of a JPEG; (False, 1) for other bytes."""
    frame, exif = read_head(data)
    is_progressive = frame is not None and frame.marker in PROGRESSIVE
    return is_progressive, UPRIGHT if exif is None else _orientation_in_tiff(data, exif)


def _exif_in_png(data: bytes) -> int | None:
    if b"eXIf" not in data:
        return None
    at = 8
    while at + 8 <= len(data):
        if data[at + 4 : at + 8] == b"eXIf":
            return at + 8
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    return None


def _exif_in_webp(data: bytes) -> int | None:
    at = 12
    while at + 8 <= len(data):
        if data[at : at + 4] == b"EXIF":
            start = at + 8  # some writers prepend the prefix of JPEG
            return start + len(EXIF) if data.startswith(EXIF, start) else start
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + size + size % 2
    return None


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
            if tag == _TAG and kind in _CODES:
                (value,) = struct.unpack_from(order + _CODES[kind], data, entry + 8)
                return int(value) if 1 <= value <= 8 else UPRIGHT
    except struct.error:  # an offset points past the end
        pass
    return UPRIGHT


def _orientation_by_pillow(data: bytes) -> int:
    try:
        with read_by_pillow(data) as image:
            value = image.getexif().get(_TAG, UPRIGHT)
    except CorruptDataError:
        return UPRIGHT
    return value if isinstance(value, int) and 1 <= value <= 8 else UPRIGHT
