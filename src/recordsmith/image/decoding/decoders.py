"""The decoders of image formats: all channels and bits.

Each raises CorruptDataError if it cannot decode the image.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.jpeg_pixels import OnDamage, decode_jpeg
from recordsmith.image.decoding.memory import check_size, convert_rows, image_to_array, reserve_more
from recordsmith.image.formats import webp
from recordsmith.image.formats.header import ImageHeader, unreadable
from recordsmith.image.formats.pillow import read_by_pillow
from recordsmith.image.formats.png import (
    GREY,
    GREY_ALPHA,
    RGB,
    PngHeader,
    first_rows,
    plain_png,
    read_png_header,
    transparent_colour,
)

ExactPixels: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
"""(height, width, channels): grey, grey and alpha, RGB, or RGB and alpha."""

_BITS_PER_SAMPLE = 258  # TIFF 6.0, section 8
_PLAIN_MODES = frozenset(("L", "LA", "RGB", "RGBA"))
_ALPHA_MODES = frozenset(("PA", "La", "RGBa"))


class Decoded(NamedTuple):
    """A decoded image.

    pixels: the first frame.
    is_animated: whether the image has more frames.
    was_cmyk: whether the colours were converted from CMYK.
    """

    pixels: ExactPixels
    is_animated: bool = False
    was_cmyk: bool = False

    @property
    def has_alpha(self) -> bool:
        return self.pixels.shape[2] in (2, 4)


def decode_jpeg_file(data: bytes, header: ImageHeader, on_damage: OnDamage | None) -> Decoded:
    """Decode a JPEG. Garbage in its header is skipped, as libjpeg searches for the next marker."""
    pixels = decode_jpeg(data, *header[1:4], on_damage=on_damage)
    check_shape(pixels, header)
    return Decoded(pixels, was_cmyk=header.channels == 4)


def check_shape(pixels: ExactPixels, header: ImageHeader, divisor: int = 1) -> None:
    """Raise CorruptDataError if the decoded size differs from the header's, divided."""
    height, width = -(-header.height // divisor), -(-header.width // divisor)
    if pixels.shape[:2] != (height, width):
        raise unreadable(
            f"the {header.format} image is damaged: its size does not match its header",
            found=f"{pixels.shape[1]} x {pixels.shape[0]} pixels",
            expected=f"{width} x {height}",
        )


def decode_png(data: bytes, _: ImageHeader, on_damage: OnDamage | None) -> Decoded:
    plain = plain_png(data, on_damage)
    header = read_png_header(plain)
    assert header is not None
    pixels = _png_pixels(plain, plain, header)
    if pixels is None:
        raise unreadable("the PNG image is damaged: its pixels cannot be decompressed")
    return Decoded(pixels, b"acTL" in data[: data.find(b"IDAT")])


def decode_png_rows(data: bytes, row_count: int) -> ExactPixels | None:
    """Decode the first rows of a PNG that is not interlaced; None if they are damaged.

    Damage in the other rows is found only by the checksums of their chunks.
    """
    plain = plain_png(data)
    header = read_png_header(plain)
    assert header is not None
    rows = first_rows(plain, header, row_count)
    return None if rows is None else _png_pixels(rows, plain, header)


def _png_pixels(file: bytes | bytearray, plain: bytes, header: PngHeader) -> ExactPixels | None:
    """Decode a PNG, or a file with its first rows; None if they are damaged."""
    from recordsmith.support.libraries import cv2

    pixels = _by_opencv(file, cv2.IMREAD_UNCHANGED)
    if pixels is None:
        return None
    if header.colour_type == GREY_ALPHA:  # OpenCV returns RGB with alpha
        pixels = convert_rows(pixels, lambda rows: rows[:, :, 2:].copy())
    elif header.colour_type in (GREY, RGB):
        pixels = _with_transparent_colour(pixels, plain, header)
    return pixels  # type: ignore[no-any-return]


def _with_transparent_colour(pixels: ExactPixels, data: bytes, header: PngHeader) -> ExactPixels:
    """Add alpha to grey or RGB pixels if one colour is transparent."""
    colour = transparent_colour(data, header)
    if colour is None:
        return pixels
    plain = pixels[:, :, : 1 if header.colour_type == GREY else 3]
    is_seen = (plain != np.array(colour, plain.dtype)).any(axis=2, keepdims=True)
    alpha = is_seen.astype(plain.dtype) * np.iinfo(plain.dtype).max
    return np.concatenate((plain, alpha), axis=2)


def decode_webp(data: bytes, header: ImageHeader, _: OnDamage | None) -> Decoded:
    """Decode a still WebP with OpenCV, which calls the same libwebp function as TensorFlow."""
    from recordsmith.support.libraries import cv2

    if header.variant == "animated":
        return decode_by_pillow(data, header)
    pixels = _by_opencv(webp.with_alpha_flag(data), cv2.IMREAD_UNCHANGED)
    if pixels is None:
        raise unreadable("the WebP image is damaged: libwebp cannot decode it")
    check_shape(pixels, header)
    return Decoded(pixels)


def _by_opencv(data: bytes | bytearray, flags: int) -> Any:
    """RGB or RGBA pixels; None if OpenCV cannot decode the image."""
    from recordsmith.support.libraries import cv2

    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        return None
    if pixels is None:
        return None
    if pixels.ndim == 2:
        return pixels[:, :, np.newaxis]
    order = cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
    return convert_rows(pixels, lambda rows: cv2.cvtColor(rows, order))


def decode_by_pillow(data: bytes, header: ImageHeader, _: OnDamage | None = None) -> Decoded:
    with read_by_pillow(data) as image:
        check_size(image.height, image.width, header.height * header.width)
        is_animated = bool(getattr(image, "is_animated", False))
        pixels = _deep_tiff(data, image)
        if pixels is None:
            if image.format == "GIF":
                _check_frame(data, image)
            elif image.format == "WEBP":
                reserve_more(webp.ANIMATED_PEAK * image.height * image.width)
            image.load()
            pixels = image_to_array(image, _plain_channels)
        return Decoded(pixels, is_animated, image.mode == "CMYK")


DECODERS = {"jpeg": decode_jpeg_file, "png": decode_png, "webp": decode_webp}
"""By the names of formats; Pillow decodes all others."""


def _check_frame(data: bytes, image: Any) -> None:
    """Reject a GIF whose first frame does not fill the canvas: decoders disagree about it."""
    size = struct.unpack_from("<HH", data, 6)
    if image.size != size or image.tile[0][1] != (0, 0, *size):
        raise unreadable(
            "the first frame of the GIF image does not fill its canvas",
            found=f"left, top, right and bottom of {image.tile[0][1]}",
            expected=f"{(0, 0, *size)}",
        )


def _deep_tiff(data: bytes, image: Any) -> Any:
    """Decode a TIFF with several 16-bit channels, which Pillow cuts to 8 bits; None for others."""
    from recordsmith.support.libraries import cv2

    if image.format != "TIFF" or image.mode not in ("RGB", "RGBA"):
        return None
    if max(image.tag_v2.get(_BITS_PER_SAMPLE, (8,))) <= 8:
        return None
    reserve_more(16 * image.height * image.width)
    return _by_opencv(data, cv2.IMREAD_UNCHANGED)


def _plain_channels(image: Any) -> ExactPixels:
    if image.mode.startswith("I") or image.mode == "F":
        return _whole_numbers(np.array(image))[:, :, np.newaxis]
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode in _ALPHA_MODES or (
        "transparency" in image.info and image.mode in ("P", "RGB")
    ):
        image = image.convert("RGBA")
    elif "transparency" in image.info and image.mode == "L":
        image = image.convert("LA")
    elif image.mode not in _PLAIN_MODES:
        image = image.convert("RGB")
    pixels = np.array(image)
    return pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis]


def _whole_numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" or low < 0 or high > 0xFFFF:
        raise unreadable(
            "the pixel values are not colours",
            found=f"{values.dtype} from {low} to {high}",
            expected="integers of 8 or 16 bits",
        )
    return values.astype(np.uint16, copy=False)
