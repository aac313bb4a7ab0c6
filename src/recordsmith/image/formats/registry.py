"""The formats of image files: how each is recognized, named, read and limited.

A new format is an entry here; `decoding.decoders` has those that Pillow does not decode.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from recordsmith.image.formats import orientation, png, webp
from recordsmith.image.formats.header import ImageHeader, read_jpeg_header
from recordsmith.jpeg import bytes_per_pixel, has_end


@dataclass(frozen=True)
class ImageFormat:
    """A format of image files. The defaults leave everything to Pillow.

    name: as TensorFlow names it: that of Pillow in lower case.
    title: in messages.
    suffixes: of file names; the first is the usual one.
    signature: the first bytes of its files, as a regular expression.
    read_header: reads the header without Pillow; None if unreadable.
    has_end: whether a file is whole. Without it, Pillow decodes the image to find out.
    orientation: the EXIF orientation that decoding leaves to the reader; None to ask Pillow.
    peak: bytes per pixel at the peak of decoding: a number, or called as `peak(data, channels,
        divisor)`.
    """

    name: str
    title: str = ""
    suffixes: tuple[str, ...] = ()
    signature: bytes = b""
    read_header: Callable[[bytes | memoryview], ImageHeader | None] = lambda _: None
    has_end: Callable[[bytes], bool] | None = None
    orientation: Callable[[bytes], int] | None = None
    peak: int | Callable[[memoryview, int, int], float] = 8


_FORMATS = (
    ImageFormat(
        name="jpeg",
        title="JPEG",
        suffixes=(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
        signature=rb"\xff\xd8\xff",
        read_header=read_jpeg_header,
        has_end=has_end,
        orientation=lambda data: orientation.read_jpeg_info(data)[1],
        peak=bytes_per_pixel,
    ),
    ImageFormat(
        name="png",
        title="PNG",
        suffixes=(".png", ".apng"),
        signature=rb"\x89PNG\r\n\x1a\n",
        read_header=png.read_header,
        has_end=lambda data: data.rfind(b"IEND") >= 0,
        orientation=orientation.in_png,
        peak=png.bytes_per_pixel,
    ),
    ImageFormat(
        name="gif",
        title="GIF",
        suffixes=(".gif",),
        signature=b"GIF8[79]a",
        orientation=orientation.upright,
        peak=5,
    ),
    ImageFormat(
        name="webp",
        title="WebP",
        suffixes=(".webp",),
        signature=b"RIFF.{4}WEBP",
        read_header=webp.read_header,
        has_end=webp.has_end,
        orientation=orientation.in_webp,
        peak=webp.bytes_per_pixel,
    ),
    ImageFormat(
        name="bmp",
        title="BMP",
        suffixes=(".bmp", ".dib"),
        signature=rb"BM.{4}\0{4}",
        orientation=orientation.upright,
    ),
    ImageFormat(
        name="tiff",
        title="TIFF",
        suffixes=(".tif", ".tiff"),
        signature=rb"II\*\0|MM\0\*",
        orientation=orientation.upright,  # decoders apply it
    ),
    ImageFormat(
        name="avif",
        title="AVIF",
        suffixes=(".avif",),
        signature=b".{4}ftypavi[fs]",
        peak=12,
    ),
    ImageFormat("jpeg2000", "JPEG 2000", (".jp2", ".j2k"), peak=20),
    ImageFormat("icns", "ICNS", (".icns",), peak=20),
    ImageFormat("ico", "ICO", (".ico",)),
    ImageFormat("pcx", "PCX", (".pcx",)),
    ImageFormat("ppm", "PPM", (".ppm", ".pgm", ".pbm", ".pnm"), orientation=orientation.upright),
    ImageFormat("tga", "TGA", (".tga",)),
)
_OTHER = ImageFormat("")
_BY_NAME = {known.name: known for known in _FORMATS}
_BY_SUFFIX = {suffix: known for known in _FORMATS for suffix in known.suffixes}
# without an entry, and mostly unsupported
_OTHER_SUFFIXES = (".cr2", ".dng", ".exr", ".heic", ".heif", ".jxl", ".nef", ".psd", ".svg")

IMAGE_SUFFIXES = frozenset((*_BY_SUFFIX, *_OTHER_SUFFIXES))
"""Suffixes of images. A file with such a name that is not an image is an error, not ignored."""

SIGNATURE_BYTES = 12
"""How many bytes `find_format` needs."""


_SIGNATURES = re.compile(  # a group for each format
    b"|".join(b"(%s)" % (known.signature or b"(?!)") for known in _FORMATS), re.DOTALL
)
_BMP_START = b"BM"  # too short to distinguish an image from other data


def find_format(data: bytes | memoryview) -> ImageFormat:
    """The format of an image, by its first bytes; one without a name if they show none."""
    match = _SIGNATURES.match(data)
    if match is None:
        return _BY_NAME["bmp"] if data[:2] == _BMP_START else _OTHER
    return _FORMATS[match.lastindex - 1]  # type: ignore[operator]


def starts_like_image(data: bytes | memoryview) -> bool:
    """Whether bytes of unknown content begin like an image."""
    return _SIGNATURES.match(data) is not None


def named_format(name: str) -> ImageFormat:
    """The format of this name; one without a name if it has no entry."""
    return _BY_NAME.get(name, _OTHER)


def usual_name(name: str) -> str:
    """The name of a format that may be named like a suffix: jpeg for `jpg`."""
    known = _BY_SUFFIX.get(f".{name}")
    return known.name if known else name
