"""What is this picture? Format, height and width from its first bytes, without decoding.

JPEG and PNG, nearly all of what is packed, are read here, as opening one with Pillow costs more
than packing it; everything else is Pillow's. A picture that ends too early is no picture: that is
asked of the last bytes, and where they leave a doubt, or there is no end mark, of the decoder.
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple

from recordsmith.errors import CorruptDataError
from recordsmith.image.jpeg import START, read_frame
from recordsmith.image.pillow import format_of, open_by_pillow, read_by_pillow, unreadable
from recordsmith.image.png import CHANNELS, PALETTE, SIGNATURE, read_header

_PICTURE_ENDINGS = (
    "apng avif bmp dib gif ico j2k jfif jp2 jpe jpeg jpg pbm pcx pgm png pnm ppm tga tif tiff webp"
    " cr2 dng exr heic heif jxl nef psd svg"  # pictures that are not understood, maybe
)
PICTURE_SUFFIXES = frozenset(f".{ending}" for ending in _PICTURE_ENDINGS.split())
"""Names that promise a picture: such a file that is none is an error, not a file to pass over."""

_JPEG_END = b"\xff\xd9"
_CHECKED_WHEN_OPENED = frozenset(("webp", "avif"))  # opening them finds that they are cut off


class ImageInfo(NamedTuple):
    """What the header of a picture says.

    format: as TensorFlow names it: jpeg, png, gif, bmp, webp, tiff, …
    height, width: in pixels, as stored; an EXIF orientation is not applied.
    """

    format: str
    height: int
    width: int


class PictureHeader(NamedTuple):
    """What the header alone says, whether the rest is there or not.

    channels: of the pixels; of a palette those of its colours, 3.
    """

    format: str
    height: int
    width: int
    channels: int


def read_picture_header(data: bytes | memoryview) -> PictureHeader | None:
    """What the first bytes of a picture say; None if they say nothing that is understood.

    Nothing is decoded, and whether the picture is whole is not asked. JPEG and PNG take a few
    microseconds, other formats some ten, for Pillow opens them.
    """
    frame = read_frame(data)
    if frame is not None:
        if not (frame.height and frame.width):
            return None
        return PictureHeader("jpeg", frame.height, frame.width, frame.component_count)
    header = read_header(data)
    if header is not None:
        if not (header.height and header.width) or header.colour_type not in CHANNELS:
            return None
        channels = 3 if header.colour_type == PALETTE else CHANNELS[header.colour_type]
        return PictureHeader("png", header.height, header.width, channels)
    try:
        with read_by_pillow(bytes(data)) as image:
            channels = 3 if image.mode == "P" else len(image.getbands())
            return PictureHeader(format_of(image), image.height, image.width, channels)
    except CorruptDataError:
        return None


def probe_image(data: bytes) -> ImageInfo:
    """Read the header of an encoded picture.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, or ends before it should.
    """
    frame = read_frame(data)
    if frame is not None and frame.height and frame.width:
        if data.rfind(_JPEG_END) < frame.start:  # one before that is of a thumbnail
            _check_by_decoding(data)
        return ImageInfo("jpeg", frame.height, frame.width)
    header = read_header(data)
    if header is not None and header.height and header.width:
        if data.rfind(b"IEND") < 0:
            raise unreadable("the PNG file has no end mark: it was cut off")
        return ImageInfo("png", header.height, header.width)
    return _probe_with_pillow(data)


def is_picture(file: BinaryIO) -> bool:
    """Whether a file begins like a picture; no more of it is read than that takes."""
    head = file.read(8)
    if head[:3] == START + b"\xff" or head == SIGNATURE:
        return True
    try:
        open_by_pillow(file)
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on other files
        return False
    return True


def channel_count(data: bytes) -> int:
    """How many channels the pixels of a picture have; of a palette those of its colours, 3.

    Raises:
        CorruptDataError: unreadable-image.
    """
    with read_by_pillow(data) as image:
        return 3 if image.mode == "P" else len(image.getbands())


def _check_by_decoding(data: bytes) -> None:
    """A JPEG without its end mark may still hold all pixels: the decoder knows."""
    try:
        with read_by_pillow(data) as image:
            image.load()
    except CorruptDataError:
        raise unreadable("the JPEG file was cut off: it ends before its picture does") from None


def _probe_with_pillow(data: bytes) -> ImageInfo:
    if not data:
        raise unreadable("the file is empty")
    with read_by_pillow(data) as image:
        name = format_of(image)
        width, height = image.size
        if name not in _CHECKED_WHEN_OPENED:
            image.load()
    return ImageInfo(name, height, width)
