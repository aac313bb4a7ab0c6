"""Read the header of an image, and detect truncation, usually without decoding.

JPEG, PNG and WebP headers are parsed without Pillow, because opening a file with it takes longer
than packing it; Pillow reads other formats. A missing end mark shows truncation; a JPEG without one
is decoded.
"""

from __future__ import annotations

from typing import BinaryIO

from recordsmith.image.decoding.memory import reserve_memory
from recordsmith.image.formats.header import ImageHeader, unreadable
from recordsmith.image.formats.orientation import TAG, UPRIGHT
from recordsmith.image.formats.pillow import open_by_pillow, pillow_header, read_by_pillow
from recordsmith.image.formats.registry import SIGNATURE_BYTES, find_format
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import CorruptDataError, MissingExtraError

_LOADED = 7  # bytes per pixel of a damaged JPEG or PNG that Pillow decodes


def read_image_header(data: BytesLike) -> ImageHeader:
    """Read the header of an image, which may be truncated.

    Takes a few microseconds for JPEG, PNG and WebP, and some tens for formats that Pillow opens.
    """
    view = as_view(data)
    header = find_format(view).read_header(view)
    if header is None or not header.channels:
        if not view:
            raise unreadable("the image is empty")
        with read_by_pillow(bytes(view)) as image:
            header = pillow_header(image)
    if not header.height or not header.width:
        raise unreadable(
            f"the {header.format} image has no pixels", found=f"{header.width} x {header.height}"
        )
    return header


def find_image_header(data: BytesLike) -> ImageHeader | None:
    """Read the header of an image, which may be truncated; None if it is unsupported."""
    try:
        return read_image_header(data)
    except CorruptDataError:
        return None


def probe_image(data: bytes) -> ImageHeader:
    """Read the header of an encoded image, and detect truncation."""
    known = find_format(data)
    header = known.read_header(data)
    if known.has_end is None or header is None or not all(header[1:4]):
        return _probe_with_pillow(data)
    if not known.has_end(data):
        if known.name != "jpeg":
            raise unreadable(f"the {known.title} file is truncated: its end is missing")
        _check_by_decoding(data)
    return header


def exif_orientation(data: bytes) -> int:
    """The EXIF orientation of an encoded image, 1 to 8; 1 if missing or invalid.

    XMP is ignored, as decoders ignore it.
    """
    orientation = find_format(data).orientation
    return _orientation_by_pillow(data) if orientation is None else orientation(data)


def _orientation_by_pillow(data: bytes) -> int:
    try:
        with read_by_pillow(data) as image:
            value = image.getexif().get(TAG, UPRIGHT)
    except CorruptDataError:
        return UPRIGHT
    return value if isinstance(value, int) and 1 <= value <= 8 else UPRIGHT


def is_image(file: BinaryIO) -> bool:
    """Whether a file starts like an image. Reads only its first bytes."""
    if find_format(file.read(SIGNATURE_BYTES)).has_end is not None:
        return True
    try:
        open_by_pillow(file)
    except MissingExtraError:
        raise
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on other files
        return False
    return True


def _check_by_decoding(data: bytes) -> None:
    """Raise CorruptDataError unless a JPEG without end mark still has all its pixels."""
    try:
        with read_by_pillow(data) as image, reserve_memory(_LOADED * image.width * image.height):
            image.load()
    except CorruptDataError:
        raise unreadable("the JPEG file is truncated: its last pixels are missing") from None


def _probe_with_pillow(data: bytes) -> ImageHeader:
    if not data:
        raise unreadable("the file is empty")
    known = find_format(data)
    peak = known.peak if isinstance(known.peak, int) else _LOADED
    with read_by_pillow(data) as image:
        header = pillow_header(image)
        with reserve_memory(peak * header.width * header.height):
            image.load()
    return header
