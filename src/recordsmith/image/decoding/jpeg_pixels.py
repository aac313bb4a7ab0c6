"""Decode JPEG to the same pixels as TensorFlow, accepting and rejecting the same images.

simplejpeg (libjpeg-turbo) uses the fast DCT, as TensorFlow does. It stops either at every warning
of libjpeg or at none, so it cannot separate damage that TensorFlow decodes from damage that it
rejects. Pillow can, and checks the few images for which simplejpeg reports a warning.

Where simplejpeg is not installed, because it has no wheel for this Python, Pillow decodes, and the
walk over the Huffman codes finds damage that it does not report.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.jpeg_by_pillow import check_by_pillow, decode_by_pillow
from recordsmith.image.decoding.memory import convert_rows, reserve_more
from recordsmith.jpeg import DAMAGED, LEFT_OVER, with_interval, with_plain_header
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import CorruptDataError, MissingExtraError

OnDamage: TypeAlias = Callable[[str], None]
"""Called with a description of damage that does not stop the decoder."""

_ADOBE = b"\xff\xee\x00\x0eAdobe"  # its CMYK is stored inverted
_DAMAGED_PEAK = 13  # bytes per pixel: several decoders read it
_PLAIN_OPTIONS = (True, False)  # of simplejpeg: fast DCT, no fast upsampling
_LEFT_OVER = re.compile(r"Corrupt JPEG data: \d+ extraneous bytes before marker 0xd9")
_DAMAGE = ("Corrupt JPEG data", "Premature end", "Inconsistent progression")
"""The starts of libjpeg's warnings about wrong pixels; other warnings are harmless."""
_DAMAGED_TEXT = (
    "the JPEG image is damaged: {}; it can be decoded, but pixels after the damage may be wrong"
)


@cache
def _find_simplejpeg() -> Any:
    """Return simplejpeg; None if it is not installed."""
    try:
        from recordsmith.support.libraries import simplejpeg
    except MissingExtraError:
        return None
    return simplejpeg


def jpeg_decoder() -> str:
    """Return the name of the library that decodes JPEG: simplejpeg, or Pillow without it."""
    return "Pillow" if _find_simplejpeg() is None else "simplejpeg"


def decode_jpeg(
    data: BytesLike,
    height: int,
    width: int,
    component_count: int,
    *,
    channels: int = 3,
    divisor: int = 1,
    on_damage: OnDamage | None = None,
    out: npt.NDArray[np.uint8] | None = None,
) -> npt.NDArray[np.uint8]:
    """Decode a JPEG.

    Args:
        height, width, component_count: as in the frame header.
        channels: 1 for grey pixels, except of CMYK; otherwise 1 or 3 as in the file.
        divisor: 2, 4 or 8 to decode at 1/`divisor` of the size, with sides rounded up.
        out: contiguous, used for the pixels if they have its shape.

    Returns:
        (height, width, 1 or 3). A damaged image may have another shape.
    """
    is_cmyk = component_count == 4
    is_grey = component_count == 1 or (channels == 1 and not is_cmyk)
    if divisor > 1 or (out is not None and out.shape != (height, width, 1 if is_grey else 3)):
        out = None
    if _find_simplejpeg() is None:
        pixels = decode_by_pillow(bytes(data), is_grey=is_grey, divisor=divisor)
        if on_damage is not None and _walk(data) in (DAMAGED, LEFT_OVER):
            on_damage(_DAMAGED_TEXT.format("its Huffman codes do not end with the image"))
    else:
        colours = "CMYK" if is_cmyk else "GRAY" if is_grey else "RGB"
        sides = height, width
        pixels = _decode_by_simplejpeg(data, colours, sides, divisor, on_damage, out)
    if not is_cmyk:
        return pixels
    is_inverted = _ADOBE in bytes(data)
    return convert_rows(pixels, lambda rows: _from_cmyk(rows, is_inverted=is_inverted))


def _decode_by_simplejpeg(
    data: BytesLike,
    colours: str,
    sides: tuple[int, int],
    divisor: int,
    on_damage: OnDamage | None,
    out: npt.NDArray[np.uint8] | None,
) -> Any:
    decode = _find_simplejpeg().decode_jpeg
    options = (colours, *_PLAIN_OPTIONS, *_least_sides(*sides, divisor), 1, None)
    try:
        pixels = decode(data, *options[:-1], out, True)
    except ValueError as error:
        reserve_more(_DAMAGED_PEAK * sides[0] * sides[1])
        data = with_plain_header(bytes(data))
        try:
            whole = decode(data, colours, *_PLAIN_OPTIONS, 0, 0, 1, None, False)
        except ValueError:  # also of chroma ratios that it does not support
            return decode_by_pillow(data, is_grey=colours == "GRAY", divisor=divisor)
        check_by_pillow(data, whole.shape, str(error))
        if on_damage is not None and str(error).startswith(_DAMAGE):
            on_damage(_DAMAGED_TEXT.format(error))
        return whole if divisor == 1 else decode(data, *options, False)
    return out if out is not None and pixels.shape == out.shape else pixels


def decode_cut(
    data: BytesLike,
    height: int,
    width: int,
    component_count: int,
    *,
    channels: int = 3,
    divisor: int = 1,
) -> npt.NDArray[np.uint8] | None:
    """Decode a JPEG that was cut out of another one, except CMYK; None if it is damaged.

    Bytes that are left over below its last row are not damage. libjpeg reports only its first
    warning, so that everything before them is right.
    """
    is_grey = component_count == 1 or channels == 1
    simplejpeg = _find_simplejpeg()
    if simplejpeg is None:
        return _decode_cut_by_pillow(data, is_grey, divisor)
    sides = -(-height // divisor), -(-width // divisor)
    pixels = np.empty((*sides, 1 if is_grey else 3), np.uint8)
    options = (*_PLAIN_OPTIONS, *_least_sides(height, width, divisor), 1, pixels)
    try:
        decoded = simplejpeg.decode_jpeg(data, "GRAY" if is_grey else "RGB", *options, True)
    except ValueError as error:
        return pixels if _LEFT_OVER.fullmatch(str(error)) else None
    return pixels if decoded.shape == pixels.shape else None


def _decode_cut_by_pillow(
    data: BytesLike, is_grey: bool, divisor: int
) -> npt.NDArray[np.uint8] | None:
    if _walk(data) == DAMAGED:
        return None
    try:
        return decode_by_pillow(bytes(data), is_grey=is_grey, divisor=divisor)
    except CorruptDataError:
        return None


def _walk(data: BytesLike) -> int:
    """Walk over the Huffman codes of a baseline JPEG, to find what Pillow does not report.

    Returns the code of `with_interval`: UNSUPPORTED for other JPEGs.
    """
    return with_interval(as_view(data), 0)[0]


def _least_sides(height: int, width: int, divisor: int) -> tuple[int, int]:
    """The sides that simplejpeg needs to decode at 1/`divisor` of the size."""
    return (-(-height // divisor), -(-width // divisor)) if divisor > 1 else (0, 0)


def _from_cmyk(pixels: npt.NDArray[np.uint8], *, is_inverted: bool) -> npt.NDArray[np.uint8]:
    """Convert CMYK to RGB as TensorFlow does. Adobe stores CMYK inverted."""
    light = pixels.astype(np.uint16)
    if not is_inverted:
        light = 255 - light
    return (light[:, :, :3] * light[:, :, 3:] // 255).astype(np.uint8)
