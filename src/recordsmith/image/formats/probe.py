"""Read the format and size of an image, and detect truncation, usually without decoding.

JPEG and PNG headers are parsed without Pillow, because opening a file with it takes longer than
packing it; Pillow reads other formats. A missing end mark shows truncation; a JPEG without one is
decoded.
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

from recordsmith.errors import CorruptDataError
from recordsmith.image.decoding.memory import reserve_memory
from recordsmith.image.formats.pillow import (
    open_by_pillow,
    pillow_format,
    read_by_pillow,
    unreadable,
)
from recordsmith.image.formats.registry import SIGNATURE_BYTES, find_format, named_format

_LOADED = 7  # bytes per pixel of a damaged JPEG or PNG that Pillow decodes
_ANIMATED = frozenset(("gif", "webp"))


class ImageInfo(NamedTuple):
    """The format and size of an image.

    Attributes:
        format: as TensorFlow names it: jpeg, png, gif, bmp, webp, tiff, …
        height, width: in pixels, as stored, without applying the EXIF orientation.
    """

    format: str
    height: int
    width: int


class ImageHeader(NamedTuple):
    """The header of an image that may be truncated.

    Attributes:
        format: as in ImageInfo.
        height, width: in pixels, as stored.
        channels: of the decoded pixels; 3 for palettes.
        variant: animated (GIF, WebP), 16-bit (PNG), or empty.
    """

    format: str
    height: int
    width: int
    channels: int
    variant: str = ""


def read_image_header(data: bytes | memoryview) -> ImageHeader | None:
    """Read the header of an image, which may be truncated; None if it is unsupported.

    Takes a few microseconds for JPEG and PNG, and some tens for formats that Pillow opens.
    """
    known = find_format(data)
    header = known.read_header(data)
    if header is not None and header.height and header.width and header.channels:
        variant = getattr(header, "variant", "")
        return ImageHeader(known.name, header.height, header.width, header.channels, variant)
    try:
        with read_by_pillow(bytes(data)) as image:
            channels = 3 if image.mode == "P" else len(image.getbands())
            name = pillow_format(image)
            is_animated = name in _ANIMATED and getattr(image, "is_animated", False)
            variant = "animated" if is_animated else ""
            return ImageHeader(name, image.height, image.width, channels, variant)
    except CorruptDataError:
        return None


def probe_image(data: bytes) -> ImageInfo:
    """Read the format and size of an encoded image, and detect truncation."""
    known = find_format(data)
    header = known.read_header(data)
    if known.has_end is None or header is None or not header.height or not header.width:
        return _probe_with_pillow(data)
    if not known.has_end(data, header):
        if known.name == "png":
            raise unreadable("the PNG file is truncated: its end mark is missing")
        _check_by_decoding(data)
    return ImageInfo(known.name, header.height, header.width)


def exif_orientation(data: bytes) -> int:
    """The EXIF orientation of an encoded image, 1 to 8; 1 if missing or invalid.

    XMP is ignored, as decoders ignore it.
    """
    return find_format(data).orientation(data)


def is_image(file: BinaryIO) -> bool:
    """Whether a file starts like an image. Reads only its first bytes."""
    if find_format(file.read(SIGNATURE_BYTES)).has_end is not None:
        return True
    try:
        open_by_pillow(file)
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on other files
        return False
    return True


def channel_count(data: bytes) -> int:
    """How many channels the pixels of an image have; 3 for palettes."""
    with read_by_pillow(data) as image:
        return 3 if image.mode == "P" else len(image.getbands())


def _check_by_decoding(data: bytes) -> None:
    """Raise CorruptDataError unless a JPEG without end mark still has all its pixels."""
    try:
        with read_by_pillow(data) as image, reserve_memory(_LOADED * image.width * image.height):
            image.load()
    except CorruptDataError:
        raise unreadable("the JPEG file is truncated: its last pixels are missing") from None


def _probe_with_pillow(data: bytes) -> ImageInfo:
    if not data:
        raise unreadable("the file is empty")
    known = find_format(data)
    peak = known.peak if isinstance(known.peak, int) else _LOADED
    with read_by_pillow(data) as image:
        name = pillow_format(image)
        width, height = image.size
        if not named_format(name).is_checked_when_opened:
            with reserve_memory(peak * width * height):
                image.load()
    return ImageInfo(name, height, width)
