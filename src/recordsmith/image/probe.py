"""What is this picture? Format, height and width from its first bytes, without decoding.

JPEG and PNG, nearly all of what is packed, are read here, as opening one with Pillow costs more
than packing it; everything else is Pillow's. A picture that ends too early is no picture: that is
asked of the last bytes, and where they leave a doubt, or there is no end mark, of the decoder.
"""

from __future__ import annotations

import io
import struct
from typing import BinaryIO, NamedTuple

from recordsmith.errors import CorruptDataError, Defect

_PICTURE_ENDINGS = (
    "apng avif bmp dib gif ico j2k jfif jp2 jpe jpeg jpg pbm pcx pgm png pnm ppm tga tif tiff webp"
    " cr2 dng exr heic heif jxl nef psd svg"  # pictures that are not understood, maybe
)
PICTURE_SUFFIXES = frozenset(f".{ending}" for ending in _PICTURE_ENDINGS.split())
"""Names that promise a picture: such a file that is none is an error, not a file to pass over."""

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = struct.Struct(">8xI4sII")  # after the signature: length, "IHDR", width, height
_CHECKED_WHEN_OPENED = frozenset(("webp", "avif"))  # opening them finds that they are cut off
_SIGNATURES = (
    (b"\xff\xd8\xff", "JPEG"),
    (_PNG_SIGNATURE, "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"RIFF", "WebP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # ITU T.81, table B.1


class ImageInfo(NamedTuple):
    """What the header of a picture says.

    format: as TensorFlow names it: jpeg, png, gif, bmp, webp, tiff, …
    height, width: in pixels, as stored; an EXIF orientation is not applied.
    """

    format: str
    height: int
    width: int


def probe_image(data: bytes) -> ImageInfo:
    """Read the header of an encoded picture.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, or ends before it should.
    """
    if data[:3] == b"\xff\xd8\xff":
        size = _jpeg_size(data)
        if size is not None:
            return ImageInfo("jpeg", *size)
    elif data[:8] == _PNG_SIGNATURE and data[12:16] == b"IHDR" and len(data) >= 33:
        if data.rfind(b"IEND") < 0:
            raise _unreadable("the PNG file has no end mark: it was cut off")
        _, _, width, height = _PNG_HEADER.unpack_from(data)
        if width and height:
            return ImageInfo("png", height, width)
    return _probe_with_pillow(data)


def is_picture(file: BinaryIO) -> bool:
    """Whether a file begins like a picture; no more of it is read than that takes."""
    from PIL import Image

    head = file.read(8)
    if head[:3] == b"\xff\xd8\xff" or head == _PNG_SIGNATURE:
        return True
    try:
        Image.open(file)
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on other files
        return False
    return True


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """(height, width) of a JPEG; None where the simple walk is not enough."""
    at, end = 2, len(data) - 9
    while at < end:
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
        elif marker in _FRAME_HEADERS:
            height, width = struct.unpack_from(">HH", data, at + 5)
            if data.rfind(b"\xff\xd9") < at:
                _check_by_decoding(data)
            return (height, width) if height and width else None
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no length follows
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _check_by_decoding(data: bytes) -> None:
    """A JPEG without its end mark may still hold all pixels: the decoder knows."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except Exception:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise _unreadable("the JPEG file was cut off: it ends before its picture does") from None


def _probe_with_pillow(data: bytes) -> ImageInfo:
    from PIL import Image

    if not data:
        raise _unreadable("the file is empty")
    name = None
    try:
        with Image.open(io.BytesIO(data)) as image:
            name = (image.format or "unknown").lower()
            width, height = image.size
            if name not in _CHECKED_WHEN_OPENED:
                image.load()
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise _unreadable(_reason(data, name, error)) from None
    return ImageInfo(name, height, width)


def _reason(data: bytes, name: str | None, error: Exception) -> str:
    if name is not None:
        return f"the {name} picture is damaged or was cut off: {error}"
    for signature, known in _SIGNATURES:
        if data.startswith(signature):
            return f"it begins like a {known} file, but is damaged or was cut off"
    return f"it is no picture of a known format; it begins with {data[:16]!r}"


def _unreadable(detail: str) -> CorruptDataError:
    return CorruptDataError(Defect.UNREADABLE_IMAGE, detail)
