"""Picture bytes -> pixels for training: as many channels as asked, fast, and as TensorFlow does it.

JPEG, where the time goes, is decoded by simplejpeg (libjpeg-turbo), if need be at an exact half,
quarter or eighth of its size. Everything else is read with all its channels and bits by `exact`
and brought to what is wanted. The header is read first, by `look_at_picture`, so that no decoder
is asked for more than is allowed; EXIF orientation is not applied.

As TensorFlow has it: JPEG by the fast DCT; alpha is dropped, not laid on anything; a transparent
colour is alpha; of 16 bits the upper 8 become uint8, and 8 bits become 16 by 257. Where it has
nothing, such as alpha of a JPEG or one channel of a GIF: opaque alpha, and the usual weights of
red, green and blue.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import CorruptDataError
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


def look_at_picture(data: BytesLike, *, max_pixels: int | None = MAX_PIXELS) -> PictureHead:
    """Read the header of an encoded picture; whether the rest is whole shows when it is decoded.

    Raises:
        CorruptDataError: unreadable-image: it is no picture, or is larger than `max_pixels`.
    """
    view = as_view(data)
    frame = read_frame(view)
    if frame is None:
        head = _look_at_other(view)
    elif frame.precision == 8:
        head = PictureHead("jpeg", frame.height, frame.width, frame.component_count)
    else:
        raise unreadable(f"the JPEG picture has {frame.precision} bits a sample; 8 can be read")
    if not head.height or not head.width:
        raise unreadable(f"the {head.format} picture has no pixels: {head.width} x {head.height}")
    if max_pixels is not None:
        check_size(head.height, head.width, max_pixels)
    return head


def decode_pixels(
    data: BytesLike,
    head: PictureHead,
    *,
    channels: int = 3,
    bits: int | None = 8,
    divisor: int = 1,
) -> ExactPixels:
    """Decode a picture whose header was looked at.

    Args:
        channels: 1 grey, 3 RGB, 4 RGB and alpha.
        bits: 8 or 16; None for those that are stored, of these two.
        divisor: 2, 4 or 8: decode a JPEG at this part of its size, its sides rounded up.

    Returns:
        uint8 or uint16, (height, width, channels), C-contiguous.

    Raises:
        CorruptDataError: unreadable-image: it is damaged, or ends too early.
    """
    height, width = -(-head.height // divisor), -(-head.width // divisor)
    pixels: Any
    if head.format == "jpeg":
        pixels = _decode_jpeg(data, head, channels, (height, width) if divisor > 1 else (0, 0))
        if pixels is None:
            pixels = _decode_odd_jpeg(bytes(data), head, divisor)
    else:
        pixels = decode_exact(bytes(data), max_pixels=head.height * head.width).pixels
    _check_shape(pixels, head, height, width)
    if pixels.shape[2] != channels:
        pixels = with_channels(pixels, channels)
    return pixels if bits is None else with_bits(pixels, bits)


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
    data: BytesLike, head: PictureHead, channels: int, least_sides: tuple[int, int]
) -> Any:
    """Pixels, grey or RGB; None where simplejpeg does not read it, or is not there."""
    decode = _simplejpeg()
    if decode is None:
        return None
    is_cmyk = head.component_count == 4
    colours = "CMYK" if is_cmyk else "GRAY" if channels == 1 else "RGB"
    # in order: fast DCT, no fast upsampling, least height and width, least factor, own memory
    options = (colours, True, False, *least_sides, 1, None)
    try:
        try:
            pixels = decode(data, *options, True)
        except ValueError as error:  # some of what it complains of does no harm
            if "remature end" in str(error):
                raise unreadable(
                    f"the JPEG picture was cut off: it ends before its pixels do ({error})"
                ) from None
            pixels = decode(data, *options, False)
    except ValueError as error:
        if isinstance(error, CorruptDataError):
            raise
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


def _decode_odd_jpeg(data: bytes, head: PictureHead, divisor: int) -> ExactPixels:
    """By Pillow, which says what is wrong, and bears what is wrong but does no harm."""
    with read_by_pillow(data) as image:
        pixels = np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    _check_shape(pixels, head, head.height, head.width)
    if divisor > 1:
        import cv2

        whole = [(0, -side % divisor) for side in pixels.shape[:2]]  # blocks, as a JPEG has them
        pixels = np.pad(pixels, whole + [(0, 0)] * (pixels.ndim - 2), "edge")
        size = (pixels.shape[1] // divisor, pixels.shape[0] // divisor)
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
    return pixels.reshape(*pixels.shape[:2], -1)


# -- all formats -----------------------------------------------------------------------------------


def _check_shape(pixels: ExactPixels, head: PictureHead, height: int, width: int) -> None:
    if pixels.shape[:2] != (height, width):
        raise unreadable(
            f"the header of the {head.format} picture says {head.width} x {head.height} pixels, "
            f"but it has others: {pixels.shape[1]} x {pixels.shape[0]} instead of {width} x "
            f"{height} were decoded"
        )


def with_channels(pixels: ExactPixels, channels: int) -> ExactPixels:
    """1 grey, 3 RGB, 4 RGB and alpha, from any of grey, grey and alpha, RGB, RGB and alpha.

    Alpha is dropped; where there is none, it is opaque.
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
    import cv2

    grey: Any = cv2.cvtColor(np.ascontiguousarray(colours), cv2.COLOR_RGB2GRAY)
    return grey[:, :, np.newaxis]  # type: ignore[no-any-return]


def with_bits(pixels: ExactPixels, bits: int) -> ExactPixels:
    """8 or 16 bits: the upper 8 of 16, and 257 times 8."""
    if bits == 8 * pixels.itemsize:
        return pixels
    if bits == 8:
        return (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257)
