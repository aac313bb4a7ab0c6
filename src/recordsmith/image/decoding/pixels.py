"""Decode images for training with the requested channels and bits, like TensorFlow.

simplejpeg (libjpeg-turbo) decodes JPEG, optionally at 1/2, 1/4 or 1/8 of its size. `decode_exact`
decodes the other formats. `read_image_head` reads the header first, so that limits apply before
decoding. The EXIF orientation is not applied.

As in TensorFlow, alpha is dropped without compositing, a transparent colour is alpha, 16 bits
become 8 by dropping the lower ones, and 8 become 16 by multiplying with 257. Conversions that
TensorFlow lacks add opaque alpha, or use the usual weights for grey.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, as_view
from recordsmith.image.decoding.decoders import Decoded, ExactPixels, check_shape
from recordsmith.image.decoding.jpeg_pixels import OnDamage, decode_jpeg
from recordsmith.image.decoding.memory import check_size, convert_rows, reserve_for_decoding
from recordsmith.image.formats.jpeg import find_frame
from recordsmith.image.formats.pillow import pillow_format, read_by_pillow, unreadable
from recordsmith.image.formats.registry import find_format
from recordsmith.image.storing.image_options import HIGHEST_MAX_PIXELS, MAX_PIXELS

_GREY_WEIGHTS = np.array((9797, 19234, 3737)) / 32768  # libpng's, of red, green and blue


class ImageHead(NamedTuple):
    """The header of an image.

    Attributes:
        format: jpeg, png, gif, …
        height, width: in pixels, as stored.
        component_count: for JPEG; 0 for other formats.
    """

    format: str
    height: int
    width: int
    component_count: int = 0


def read_image_head(data: BytesLike, *, max_pixels: int | None = MAX_PIXELS) -> ImageHead:
    """Read the header of an encoded image, which may be truncated."""
    view = as_view(data)
    frame = find_frame(view)
    if frame is None:
        head = _read_other_head(view)
    elif frame.precision == 8:
        head = ImageHead("jpeg", frame.height, frame.width, frame.component_count)
    else:
        raise unreadable(
            "the JPEG image has an unsupported bit depth",
            found=f"{frame.precision} bits per sample",
            expected="8",
        )
    if not head.height or not head.width:
        raise unreadable(
            f"the {head.format} image has no pixels", found=f"{head.width} x {head.height}"
        )
    if max_pixels is not None:
        check_size(head.height, head.width, max_pixels)
    return head


def decode_pixels(
    data: BytesLike,
    head: ImageHead,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
    on_damage: OnDamage | None = None,
) -> ExactPixels:
    """Decode an image.

    Args:
        head: its header, from `read_image_head`.
        channels: 1 for grey, 3 for RGB, 4 for RGBA.
        bits: 8 or 16; None for the stored bit depth.
        divisor: 2, 4 or 8 to decode a JPEG at 1/`divisor` of its size, with sides rounded up.
        on_damage: called with a description of damage that does not stop TensorFlow from decoding.

    Returns:
        uint8 or uint16, (height, width, channels), C-contiguous.
    """
    height, width = -(-head.height // divisor), -(-head.width // divisor)
    pixels: Any
    if head.format == "jpeg":
        pixels = decode_jpeg(
            data, *head[1:], channels=channels, divisor=divisor, on_damage=on_damage
        )
    else:
        pixels = decode_exact(
            bytes(data), max_pixels=head.height * head.width, on_damage=on_damage
        ).pixels
    check_shape(pixels, head.format, height, width)
    return convert_pixels(pixels, channels, bits)


def convert_pixels(pixels: ExactPixels, channels: int, bits: int | None) -> ExactPixels:
    """Convert decoded pixels to 1, 3 or 4 channels of 8 or 16 bits; None keeps their bits."""
    if pixels.shape[2] != channels:
        pixels = convert_rows(pixels, lambda rows: with_channels(rows, channels))
    if bits is not None and bits != 8 * pixels.itemsize:
        pixels = convert_rows(pixels, lambda rows: with_bits(rows, bits))
    return pixels


def _read_other_head(data: memoryview) -> ImageHead:
    known = find_format(data)
    header = known.read_header(data)
    if header is not None:
        return ImageHead(known.name, header.height, header.width)
    if not data:
        raise unreadable("the image is empty")
    with read_by_pillow(bytes(data)) as image:
        return ImageHead(pillow_format(image), image.height, image.width)


def with_channels(pixels: ExactPixels, channels: int) -> ExactPixels:
    """Convert between grey, grey with alpha, RGB and RGBA, to 1, 3 or 4 channels.

    Alpha is dropped, or added as opaque.
    """
    has = pixels.shape[2]
    if has == channels:
        return pixels
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
    import cv2

    is_deep = colours.dtype == np.uint16
    # the last column is added; float32 would round sums of 16-bit values
    weights = np.append(_GREY_WEIGHTS, 0.5 if is_deep else 0)[np.newaxis]
    levels: Any = cv2.transform(colours.astype(np.float64 if is_deep else np.float32), weights)
    return levels.astype(colours.dtype).reshape(*colours.shape[:2], 1)  # type: ignore[no-any-return]


def with_bits(pixels: ExactPixels, bits: int) -> ExactPixels:
    """Convert to 8 or 16 bits: 16 to 8 drops the lower bits, 8 to 16 multiplies with 257."""
    if bits == 8 * pixels.itemsize:
        return pixels
    if bits == 8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)


def decode_exact(data: bytes, *, max_pixels: int, on_damage: OnDamage | None = None) -> Decoded:
    """Decode an image as stored, with all its channels and bits."""
    return find_format(data).decode(data, max_pixels, on_damage)


Pixels: TypeAlias = npt.NDArray[np.uint8]


def decode_image(data: BytesLike) -> Pixels:
    """Decode an image to RGB. Like TensorFlow, ignores the EXIF orientation.

    Returns:
        uint8, (height, width, 3), RGB, 0-255. Grey is repeated in all channels; alpha is dropped.
    """
    head = read_image_head(data, max_pixels=None)
    with reserve_for_decoding(data, *head[:3], max_pixels=HIGHEST_MAX_PIXELS):
        pixels: Any = decode_pixels(data, head)
    return pixels  # type: ignore[no-any-return]


def resize_image(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resize to (height, width, channels): by area when shrinking, bilinear when growing."""
    import cv2

    shrinks = height < pixels.shape[0] and width < pixels.shape[1]
    method = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    resized = cv2.resize(pixels, (width, height), interpolation=method)
    return resized.reshape(height, width, pixels.shape[2]).astype(np.uint8, copy=False)
