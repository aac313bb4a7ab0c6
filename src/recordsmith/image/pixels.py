"""Picture bytes -> pixels for training: as many channels as asked, fast, and as TensorFlow does it.

JPEG, where the time goes, is decoded by simplejpeg (libjpeg-turbo), if need be at an exact half,
quarter or eighth of its size. Everything else is read with all its channels and bits by `exact`
and brought to what is wanted. The header is read first, by `look_at_picture`, so that no decoder
is asked for more than is allowed; EXIF orientation is not applied.

As TensorFlow has it: alpha is dropped, not laid on anything; a transparent colour is alpha; of
16 bits the upper 8 become uint8, and 8 bits become 16 by 257. Where it has nothing, as alpha of a
JPEG, one channel of a GIF: opaque alpha, and the usual weights of red, green and blue.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, as_view
from recordsmith.image.exact import ExactPixels, check_size, decode_exact
from recordsmith.image.jpeg import read_frame
from recordsmith.image.options import MAX_PIXELS
from recordsmith.image.pillow import format_of, read_by_pillow, unreadable
from recordsmith.image.png import read_header

_ADOBE = b"\xff\xee\x00\x0eAdobe"  # its CMYK is stored inverted


class PictureHead(NamedTuple):
    """What is known of a picture before it is decoded.

    format: jpeg, png, gif, …
    height, width: as stored.
    component_count: of a JPEG; 0 of all others.
    """

    format: str
    height: int
    width: int
    component_count: int = 0


def look_at_picture(data: BytesLike, *, max_pixels: int = MAX_PIXELS) -> PictureHead:
    """Read the header of an encoded picture; whether the rest is whole shows when it is decoded.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, or is larger than `max_pixels`.
    """
    view = as_view(data)
    frame = read_frame(view)
    if frame is not None:
        head = PictureHead("jpeg", frame.height, frame.width, frame.component_count)
    else:
        head = _look_at_other(view)
    if not head.height or not head.width:
        raise unreadable(f"the {head.format} picture has no pixels: {head.width} x {head.height}")
    check_size(head.height, head.width, max_pixels)
    return head


def decode_pixels(
    data: BytesLike,
    head: PictureHead,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
    buffer: npt.NDArray[np.uint8] | None = None,
) -> ExactPixels:
    """Decode a picture whose header was looked at.

    Args:
        channels: 1 grey, 3 RGB, 4 RGB and alpha.
        bits: 8 or 16; None for those that are stored, of these two.
        divisor: 1, 2, 4 or 8: a JPEG may be decoded at this part of its size, its sides rounded
            up; what else it is has its full size all the same.
        buffer: memory that may be used for the pixels of a JPEG, of at least as many bytes.

    Returns:
        uint8 or uint16, (height, width, channels), C-contiguous.

    Raises:
        CorruptDataError: unreadable-image: it is damaged, or ends too early.
    """
    pixels: Any
    if head.format == "jpeg":
        pixels = _decode_jpeg(data, head, channels, divisor, buffer)
        if pixels is None:
            pixels = _decode_odd_jpeg(bytes(data))
    else:
        pixels = decode_exact(bytes(data), max_pixels=head.height * head.width).pixels
    if divisor == 1 or head.format != "jpeg":
        _check_shape(pixels, head)
    return _with_bits(_with_channels(pixels, channels), bits)


def _look_at_other(data: memoryview) -> PictureHead:
    header = read_header(data)
    if header is not None:
        return PictureHead("png", header.height, header.width)
    if not data:
        raise unreadable("the picture is empty: it has 0 bytes")
    with read_by_pillow(bytes(data)) as image:
        return PictureHead(format_of(image), image.height, image.width)


# -- JPEG ------------------------------------------------------------------------------------------


def _decode_jpeg(
    data: BytesLike,
    head: PictureHead,
    channels: int,
    divisor: int,
    buffer: npt.NDArray[np.uint8] | None,
) -> Any:
    """Pixels, grey or RGB; None where simplejpeg does not read it, or is not there."""
    decode = _simplejpeg()
    if decode is None:
        return None
    is_cmyk = head.component_count == 4
    colours = "CMYK" if is_cmyk else "GRAY" if channels == 1 else "RGB"
    least = (-(-head.height // divisor), -(-head.width // divisor)) if divisor > 1 else (0, 0)
    try:  # in order: fast DCT as TensorFlow, no fast upsampling, least sides, least factor
        pixels = decode(data, colours, True, False, *least, 1, None if is_cmyk else buffer)
    except ValueError:
        return None
    return _from_cmyk(pixels, bytes(data)) if is_cmyk else pixels


@lru_cache(maxsize=1)
def _simplejpeg() -> Any:
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg.decode_jpeg


def _from_cmyk(pixels: npt.NDArray[np.uint8], data: bytes) -> npt.NDArray[np.uint8]:
    """As TensorFlow does it. Adobe stores how much light is left, others how much ink there is."""
    light = pixels.astype(np.uint16)
    if _ADOBE not in data:
        light = 255 - light
    return (light[:, :, :3] * light[:, :, 3:] // 255).astype(np.uint8)


def _decode_odd_jpeg(data: bytes) -> ExactPixels:
    """By Pillow, which says what is wrong, and bears what is wrong but does no harm."""
    with read_by_pillow(data) as image:
        pixels = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    return pixels.reshape(*pixels.shape[:2], -1)


# -- all formats -----------------------------------------------------------------------------------


def _check_shape(pixels: ExactPixels, head: PictureHead) -> None:
    if pixels.shape[:2] != (head.height, head.width):
        raise unreadable(
            f"the header of the {head.format} picture says {head.width} x {head.height} pixels, "
            f"but there are {pixels.shape[1]} x {pixels.shape[0]}"
        )


def _with_channels(pixels: ExactPixels, channels: int) -> ExactPixels:
    """1 grey, 3 RGB, 4 RGB and alpha, from any of grey, grey and alpha, RGB, RGB and alpha."""
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
    import cv2

    grey: Any = cv2.cvtColor(np.ascontiguousarray(colours), cv2.COLOR_RGB2GRAY)
    return grey[:, :, np.newaxis]  # type: ignore[no-any-return]


def _with_bits(pixels: ExactPixels, bits: int | None) -> ExactPixels:
    stored = 8 * pixels.itemsize
    if bits is None or bits == stored:
        return pixels
    if bits == 8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)
