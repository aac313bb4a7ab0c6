"""Copy the metadata that affects pixels to an image that was encoded again.

That is the EXIF orientation, unless it was applied, and the ICC colour profile, if it matches the
channels. All other metadata, such as camera, place and thumbnail, is dropped.
"""

from __future__ import annotations

import struct
import zlib

from recordsmith.errors import CorruptDataError
from recordsmith.image.formats.jpeg import APP0, APP1, APP2, EXIF, START, segments
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import SIGNATURE, encode_chunk

_PROFILE_MARK = b"ICC_PROFILE\0"
_PROFILE_PART = 65_533 - len(_PROFILE_MARK) - 2  # a segment holds 65,533 bytes
_PROFILE_LIMIT = 1 << 24
_SPACE_OF_CHANNELS = {1: b"GRAY", 2: b"GRAY", 3: b"RGB ", 4: b"RGB "}  # ICC.1, table 19


def colour_profile(data: bytes) -> bytes | None:
    """The ICC profile of an image; None if missing or too large."""
    is_jpeg = data[:2] == START
    if is_jpeg and data.find(_PROFILE_MARK, 0, 1 << 17) < 0:
        return None
    if data[:8] == SIGNATURE and data.find(b"iCCP", 0, 1 << 12) < 0:
        return None
    try:
        with read_by_pillow(data) as image:
            profile = image.info.get("icc_profile")
    except CorruptDataError:
        return None
    return profile if isinstance(profile, bytes) and len(profile) <= _PROFILE_LIMIT else None


def profile_fits(profile: bytes, channel_count: int) -> bool:
    """Whether a profile is valid for this number of channels."""
    return profile[16:20] == _SPACE_OF_CHANNELS[channel_count]


def add_metadata(encoded: bytes, *, orientation: int, profile: bytes | None) -> bytes:
    """Add an orientation and a profile to a newly encoded JPEG or PNG."""
    if encoded[:2] == START:
        return _in_jpeg(encoded, orientation, profile)
    return _in_png(encoded, orientation, profile)


def _in_jpeg(encoded: bytes, orientation: int, profile: bytes | None) -> bytes:
    first = next(segments(encoded))
    at = first.stop if first.marker == APP0 else 2
    added = b""
    if orientation != 1:
        added += _segment(APP1, EXIF + _orientation_tiff(orientation))
    if profile:
        parts = [
            profile[start : start + _PROFILE_PART]
            for start in range(0, len(profile), _PROFILE_PART)
        ]
        for number, part in enumerate(parts, 1):
            added += _segment(APP2, _PROFILE_MARK + bytes((number, len(parts))) + part)
    return encoded[:at] + added + encoded[at:]


def _in_png(encoded: bytes, orientation: int, profile: bytes | None) -> bytes:
    added = b""
    if profile:
        added += encode_chunk(b"iCCP", b"icc\0\0" + zlib.compress(profile))
    if orientation != 1:
        added += encode_chunk(b"eXIf", _orientation_tiff(orientation))
    return encoded[:33] + added + encoded[33:]


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def _orientation_tiff(orientation: int) -> bytes:
    """A TIFF structure with one directory and one entry."""
    return b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
