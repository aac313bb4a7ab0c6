"""Which way up is a picture? Its EXIF orientation, from the header alone."""

from __future__ import annotations

import io
import struct

from recordsmith.image.jpeg import APP1, FRAMES, START, segments

_TAG = 0x0112
_SHORT, _LONG = 3, 4
_EXIF = b"Exif\0\0"


def exif_orientation(data: bytes) -> int:
    """The EXIF orientation of a picture, from 1 (as it is) to 8; 1 where it has none."""
    if data[:2] == START:
        for marker, start, stop in segments(data):
            if marker == APP1 and data[start + 4 : start + 10] == _EXIF:
                return orientation_in_tiff(data[start + 10 : stop])
            if marker in FRAMES:
                break
        return 1
    return _by_pillow(data)


def orientation_in_tiff(body: bytes) -> int:
    """The orientation in the first directory of a TIFF structure, as EXIF is one."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(body[:4])
    if order is None or len(body) < 8:
        return 1
    (at,) = struct.unpack_from(order + "I", body, 4)
    if at + 2 > len(body):
        return 1
    (count,) = struct.unpack_from(order + "H", body, at)
    for entry in range(at + 2, min(at + 2 + 12 * count, len(body) - 11), 12):
        tag, kind = struct.unpack_from(order + "HH", body, entry)
        if tag == _TAG and kind in (_SHORT, _LONG):
            (value,) = struct.unpack_from(order + ("H" if kind == _SHORT else "I"), body, entry + 8)
            return value if 1 <= value <= 8 else 1
    return 1


def _by_pillow(data: bytes) -> int:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            if image.format == "TIFF":  # there it is part of the format: decoders apply it
                return 1
            value = image.getexif().get(_TAG, 1)
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1
