"""Open untrusted images with Pillow and translate what it raises into CorruptDataError.

Pillow's plugins raise arbitrary exceptions on bad files, so all image bytes from outside are opened
through this module.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from recordsmith.image.formats.header import ImageHeader, unreadable
from recordsmith.image.formats.registry import SIGNATURE_BYTES, find_format
from recordsmith.support.errors import RecordsmithError

if TYPE_CHECKING:
    from recordsmith.support.libraries import Image

# All formats that Pillow decodes except EPS, which it passes to Ghostscript: EPS files have
# executed code through it. Formats that Pillow only identifies are left out, too.
_USUAL = ("BMP", "GIF", "JPEG", "PNG", "PPM")  # available without loading more plugins
_OTHERS = (
    "AVIF BLP CUR DCX DDS DIB FITS FLI FTEX GBR ICNS ICO IM IMT IPTC JPEG2000 MCIDAS MSP PCD PCX"
    " PIXAR PSD QOI SGI SPIDER SUN TGA TIFF WEBP XBM XPM XVTHUMB"
)


_ANIMATED = frozenset(("gif", "webp"))


def open_by_pillow(file: BinaryIO) -> Image.Image:
    """Open a file with Pillow, which reads it lazily and may raise any exception."""
    from recordsmith.support.libraries import PIL, Image

    file.seek(0)
    known = find_format(file.read(SIGNATURE_BYTES))
    if known.name:
        return Image.open(file, formats=(known.name.upper(),))
    try:
        return Image.open(file, formats=_USUAL)
    except PIL.UnidentifiedImageError:
        Image.init()
        others = [name for name in _OTHERS.split() if name in Image.OPEN]
        return Image.open(file, formats=others)


@contextmanager
def read_by_pillow(data: bytes, noun: str = "image") -> Iterator[Image.Image]:
    """Open an encoded image with Pillow for the duration of the block.

    Args:
        noun: what messages call the image, such as `mask`.
    """
    from recordsmith.support.libraries import Image

    name = None
    try:
        with open_by_pillow(io.BytesIO(data)) as image:
            name = pillow_format(image)
            yield image
    except RecordsmithError:
        raise
    except Image.DecompressionBombError as error:
        raise unreadable(f"the {noun} exceeds the maximum size: {error}") from None
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise unreadable(_reason(data, noun, name, error)) from None


def pillow_format(image: Image.Image) -> str:
    """The format of an opened image, as TensorFlow names it: jpeg, png, …"""
    return (image.format or "unknown").lower()


def pillow_header(image: Image.Image) -> ImageHeader:
    name = pillow_format(image)
    is_animated = name in _ANIMATED and getattr(image, "is_animated", False)
    channels = 3 if image.mode == "P" else len(image.getbands())
    return ImageHeader(name, image.height, image.width, channels, "animated" if is_animated else "")


def _reason(data: bytes, noun: str, name: str | None, error: Exception) -> str:
    if name is not None:
        return f"the {name} {noun} is damaged or truncated: {error}"
    known = find_format(data).title
    if known:
        return f"the {noun} starts like a {known} file, but is damaged or truncated"
    return f"the {noun} has an unsupported format; its first bytes are {data[:16]!r}"
