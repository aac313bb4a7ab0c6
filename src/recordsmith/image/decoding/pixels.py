"""Decode images for training with the requested channels and bits, like TensorFlow.

simplejpeg (libjpeg-turbo) decodes JPEG, optionally at 1/2, 1/4 or 1/8 of its size. `decode_exact`
decodes the other formats. The header comes first, so that limits apply before decoding. The EXIF
orientation is not applied.

As in TensorFlow, alpha is dropped without compositing, a transparent colour is alpha, 16 bits
become 8 by dropping the lower ones, and 8 become 16 by multiplying with 257. Conversions that
TensorFlow lacks add opaque alpha, or use the usual weights for grey.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.decoding.decoders import (
    DECODERS,
    Decoded,
    ExactPixels,
    check_shape,
    decode_by_pillow,
)
from recordsmith.image.decoding.jpeg_pixels import OnDamage, decode_jpeg
from recordsmith.image.decoding.memory import convert_rows, reserve_for_decoding
from recordsmith.image.decoding.probe import read_image_header
from recordsmith.image.formats.header import ImageHeader
from recordsmith.image.formats.registry import find_format
from recordsmith.image.image_options import HIGHEST_MAX_PIXELS
from recordsmith.support.buffers import BytesLike

_GREY_WEIGHTS = np.array((9797, 19234, 3737)) / 32768  # libpng's, of red, green and blue


def decode_pixels(
    data: BytesLike,
    head: ImageHeader,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
    on_damage: OnDamage | None = None,
    out: npt.NDArray[np.uint8] | None = None,
) -> ExactPixels:
    """Decode an image.

    Args:
        head: its header, from `read_image_header`.
        channels: 1 for grey, 3 for RGB, 4 for RGBA.
        bits: 8 or 16; None for the stored bit depth.
        divisor: 2, 4 or 8 to decode a JPEG at 1/`divisor` of its size, with sides rounded up.
        on_damage: called with a description of damage that does not stop TensorFlow from decoding.
        out: contiguous, uint8, (height, width, channels); a JPEG of this size is decoded into it.

    Returns:
        uint8 or uint16, (height, width, channels), C-contiguous.
    """
    pixels: Any
    if head.format == "jpeg":
        pixels = decode_jpeg(
            data, *head[1:4], channels=channels, divisor=divisor, on_damage=on_damage, out=out
        )
    else:
        pixels = decode_exact(bytes(data), head, on_damage).pixels
    check_shape(pixels, head, divisor)
    return convert_pixels(pixels, channels, bits)


def convert_pixels(pixels: ExactPixels, channels: int, bits: int | None) -> ExactPixels:
    """Convert decoded pixels to 1, 3 or 4 channels of 8 or 16 bits; None keeps their bits."""
    if pixels.shape[2] != channels:
        pixels = convert_rows(pixels, lambda rows: _with_channels(rows, channels))
    if bits is not None and bits != 8 * pixels.itemsize:
        pixels = convert_rows(pixels, lambda rows: _with_bits(rows, bits))
    return pixels


def _with_channels(pixels: ExactPixels, channels: int) -> ExactPixels:
    """Convert between grey, grey with alpha, RGB and RGBA, to 1, 3 or 4 channels.

    Alpha is dropped, or added as opaque.
    """
    has = pixels.shape[2]
    colours = pixels[:, :, : 1 if has < 3 else 3]
    if channels == 1:
        if has < 3:
            return np.ascontiguousarray(colours)
        return _grey(colours)
    spread = np.empty((*pixels.shape[:2], channels), pixels.dtype)
    spread[:, :, :3] = colours
    if channels == 4:
        spread[:, :, 3] = pixels[:, :, 1] if has == 2 else np.iinfo(pixels.dtype).max
    return spread


def _grey(colours: ExactPixels) -> ExactPixels:
    """Convert RGB to grey with libpng's weights, as TensorFlow does: 8 bits are rounded down, 16
    bits to the nearest.

    Floats hold all sums exactly, because the weights are multiples of 1/32768.
    """
    from recordsmith.support.libraries import cv2

    is_deep = colours.dtype == np.uint16
    # the last column is added; float32 would round sums of 16-bit values
    weights = np.append(_GREY_WEIGHTS, 0.5 if is_deep else 0)[np.newaxis]
    levels: Any = cv2.transform(colours.astype(np.float64 if is_deep else np.float32), weights)
    return levels.astype(colours.dtype).reshape(*colours.shape[:2], 1)  # type: ignore[no-any-return]


def _with_bits(pixels: ExactPixels, bits: int) -> ExactPixels:
    """Convert to 8 or 16 bits: 16 to 8 drops the lower bits, 8 to 16 multiplies with 257."""
    if bits == 8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)


def decode_exact(data: bytes, header: ImageHeader, on_damage: OnDamage | None = None) -> Decoded:
    """Decode an image as stored, with all its channels and bits."""
    return DECODERS.get(find_format(data).name, decode_by_pillow)(data, header, on_damage)


Pixels: TypeAlias = npt.NDArray[np.uint8]


def decode_image(
    data: BytesLike, divisor: int = 1, *, max_pixels: int | None = HIGHEST_MAX_PIXELS
) -> Pixels:
    """Decode an image to RGB. Like TensorFlow, ignores the EXIF orientation.

    Args:
        divisor: 2, 4 or 8 to decode a JPEG at 1/`divisor` of its size, with sides rounded up.
        max_pixels: the limit, as in `reserve_for_decoding`.

    Returns:
        uint8, (height, width, 3), RGB, 0-255. Grey is repeated in all channels; alpha is dropped.
    """
    head = read_image_header(data)
    with reserve_for_decoding(data, head, max_pixels=max_pixels, divisor=divisor):
        pixels: Any = decode_pixels(data, head, divisor=divisor)
    return pixels  # type: ignore[no-any-return]


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize to (height, width, channels): by area when shrinking, bilinear when growing."""
    from recordsmith.support.libraries import cv2

    shrinks = height < pixels.shape[0] and width < pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(pixels, (width, height), interpolation=method)
    return resized.reshape(height, width, pixels.shape[2]).astype(np.uint8, copy=False)
