"""Pillow, which reads what is not read here by hand; what it raises becomes words.

Its plugins raise anything on bad files, and name the object that they were given instead of the
file. Whoever asks Pillow about bytes that somebody else wrote does it through here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from recordsmith.errors import CorruptDataError, Defect, RecordsmithError

if TYPE_CHECKING:
    from PIL import Image

_SIGNATURES = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"RIFF", "WebP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
)

# All pictures that Pillow reads but EPS, which it hands to Ghostscript: a program that has been
# made to run what a file wanted, more than once. What it only knows by name is left out, too.
_USUAL = ("BMP", "GIF", "JPEG", "PNG", "PPM")  # those that it knows without loading more
_OTHERS = (
    "AVIF BLP CUR DCX DDS DIB FITS FLI FTEX GBR ICNS ICO IM IMT IPTC JPEG2000 MCIDAS MSP PCD PCX"
    " PIXAR PSD QOI SGI SPIDER SUN TGA TIFF WEBP XBM XPM XVTHUMB"
)


def open_by_pillow(file: BinaryIO) -> Image.Image:
    """What Pillow makes of a file, which it reads as it needs; it raises anything."""
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(file, formats=_USUAL)
    except UnidentifiedImageError:
        Image.init()
        others = [name for name in _OTHERS.split() if name in Image.OPEN]
        return Image.open(file, formats=others)


@contextmanager
def read_by_pillow(data: bytes, noun: str = "picture") -> Iterator[Image.Image]:
    """Pillow's view of an encoded picture, open while the block runs.

    Args:
        noun: what it is in messages, such as mask.

    Raises:
        CorruptDataError: unreadable-image: Pillow does not know it, or finds it damaged within the
            block.
    """
    from PIL import Image

    name = None
    try:
        with open_by_pillow(io.BytesIO(data)) as image:
            name = format_of(image)
            yield image
    except RecordsmithError:
        raise
    except Image.DecompressionBombError as error:
        raise unreadable(f"the {noun} is larger than is ever decoded: {error}") from None
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise unreadable(_reason(data, noun, name, error)) from None


def format_of(image: Image.Image) -> str:
    """The format of a picture that Pillow has opened, as TensorFlow names it: jpeg, png, …"""
    return (image.format or "unknown").lower()


def unreadable(detail: str) -> CorruptDataError:
    """The error for bytes that are no picture, or not the one that is expected."""
    return CorruptDataError(Defect.UNREADABLE_IMAGE, detail)


def _reason(data: bytes, noun: str, name: str | None, error: Exception) -> str:
    if name is not None:
        return f"the {name} {noun} is damaged or was cut off: {error}"
    for signature, known in _SIGNATURES:
        if data.startswith(signature):
            return f"it begins like a {known} file, but is damaged or was cut off"
    return f"it is no picture of a known format; it begins with {data[:16]!r}"
