"""Which way up is a picture? Its EXIF orientation, from the header alone."""

from __future__ import annotations

import io
import struct

from recordsmith.image.jpeg import APP1, FRAMES, PROGRESSIVE, START, is_progressive, segments

_TAG = 0x0112
_SHORT, _LONG = 3, 4
_EXIF = b"Exif\0\0"
_MARKER_AND_LENGTH = struct.Struct(">HH").unpack_from
_FRAME_MARKERS = frozenset(0xFF00 | marker for marker in FRAMES)
_PROGRESSIVE_MARKERS = frozenset(0xFF00 | marker for marker in PROGRESSIVE)
_EXIF_MARKER = 0xFF00 | APP1
_FIRST_WITH_LENGTH = 0xFFC0
_FILL = 0xFFFF


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


def look_at_jpeg(data: bytes) -> tuple[bool, int]:
    """(is progressive, EXIF orientation) of a JPEG; (False, 1) of what is none.

    In one walk over its header, as every picture that is packed is asked this.
    """
    if data[:3] != b"\xff\xd8\xff":
        return False, 1
    at, exif = 2, None
    try:
        while True:
            marker, length = _MARKER_AND_LENGTH(data, at)
            if marker in _FRAME_MARKERS:
                break
            if marker == _EXIF_MARKER and exif is None and data.startswith(_EXIF, at + 4):
                exif = data[at + 10 : at + 2 + length]
            elif not _FIRST_WITH_LENGTH <= marker < _FILL:
                return is_progressive(data), exif_orientation(data)
            at += 2 + length
    except struct.error:  # it ends before its frame
        return False, 1
    return marker in _PROGRESSIVE_MARKERS, 1 if exif is None else orientation_in_tiff(exif)


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
