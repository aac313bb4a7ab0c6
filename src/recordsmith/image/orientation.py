"""Which way up is a stored picture? Its EXIF orientation, and what that does to boxes.

Orientations are numbers from 1 to 8, as in the EXIF and TIFF specifications (tag 274): 1 is
upright, 2 to 4 keep height and width, 5 to 8 swap them. The tag is read from JPEG, PNG and WebP
without opening the picture, and with Pillow from everything else. Pixels are not turned here.
"""

from __future__ import annotations

import io
import struct

UPRIGHT = 1
_ORIENTATION_TAG = 274
_VALUE_BYTES = {3: 2, 4: 4}  # TIFF's types SHORT and LONG
# in TIFF the tag is part of the format, and decoders apply it
_WITHOUT_EXIF = (b"II*\0", b"MM\0*", b"GIF8", b"BM", b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")


def exif_orientation(data: bytes) -> int:
    """The EXIF orientation of an encoded picture, 1 to 8; 1 if it has none, or one that is wrong.

    What XMP says of it is not asked, as decoders do not ask either.
    """
    if data[:3] == b"\xff\xd8\xff":
        start = _exif_in_jpeg(data)
    elif data[:8] == b"\x89PNG\r\n\x1a\n":
        start = _exif_in_png(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        start = _exif_in_webp(data)
    elif data.startswith(_WITHOUT_EXIF):
        start = None
    else:
        return _asked_of_pillow(data)
    return UPRIGHT if start is None else _orientation_in_tiff(data, start)


def swaps_sides(orientation: int) -> bool:
    """Whether turning by this orientation makes the height the width."""
    return orientation >= 5


def undone_by(orientation: int) -> int:
    """The orientation whose turn leads from the upright picture back to the stored one."""
    return {6: 8, 8: 6}.get(orientation, orientation)


def turn_box(
    ymin: float, xmin: float, ymax: float, xmax: float, orientation: int
) -> tuple[float, float, float, float]:
    """Where a box of the stored picture lies when that is turned upright; all from 0 to 1."""
    if orientation in (2, 3, 7, 8):
        xmin, xmax = 1 - xmax, 1 - xmin
    if orientation in (3, 4, 6, 7):
        ymin, ymax = 1 - ymax, 1 - ymin
    return (xmin, ymin, xmax, ymax) if swaps_sides(orientation) else (ymin, xmin, ymax, xmax)


def _exif_in_jpeg(data: bytes) -> int | None:
    """Where the TIFF header begins in the first APP1 segment with Exif."""
    at, end = 2, len(data) - 4
    while at < end and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no length follows
            at += 2
        elif marker == 0xDA:  # the pixels
            return None
        elif marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            return at + 10
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


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
            start = at + 8  # some writers put JPEG's marker in front
            return start + 6 if data[start : start + 6] == b"Exif\0\0" else start
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
            if tag == _ORIENTATION_TAG and kind in _VALUE_BYTES:
                code = "H" if _VALUE_BYTES[kind] == 2 else "I"
                (value,) = struct.unpack_from(f"{order}{code}", data, entry + 8)
                return int(value) if 1 <= value <= 8 else UPRIGHT
    except struct.error:  # it points behind the end
        pass
    return UPRIGHT


def _asked_of_pillow(data: bytes) -> int:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            value = image.getexif().get(_ORIENTATION_TAG, UPRIGHT)
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        return UPRIGHT
    return value if value in range(1, 9) else UPRIGHT
