"""Picture bytes -> all that is in them: every channel, every bit. For storing them otherwise.

`decode_image` gives pixels for training, always 8-bit RGB. Here nothing is lost: grey stays one
channel, alpha and a transparent colour stay alpha, 16 bits stay 16. What has no plain channels is
turned into some: palettes, CMYK and other colour spaces into RGB, 1-bit into 0 and 255.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.image.jpeg import read_frame
from recordsmith.image.pillow import read_by_pillow, unreadable
from recordsmith.image.png import GREY, GREY_ALPHA, PALETTE, RGB, read_header, transparent_colour

ExactPixels: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
"""(height, width, channels): grey, grey and alpha, RGB, or RGB and alpha."""

_BITS_PER_SAMPLE = 258  # TIFF 6.0, section 8
_PLAIN_MODES = frozenset(("L", "LA", "RGB", "RGBA"))
_ALPHA_MODES = frozenset(("PA", "La", "RGBa"))


class Decoded(NamedTuple):
    """Pixels, and what of the picture they do not show.

    is_animated: there are more frames than this first one.
    was_cmyk: the colours were made from those of printing.
    """

    pixels: ExactPixels
    is_animated: bool = False
    was_cmyk: bool = False

    @property
    def has_alpha(self) -> bool:
        return self.pixels.shape[2] in (2, 4)


def decode_exact(data: bytes, *, max_pixels: int) -> Decoded:
    """Decode a picture as it is stored, with all its channels and bits.

    Raises:
        CorruptDataError: unreadable-image: it cannot be decoded, is larger than `max_pixels`, or
            its values are no colours.
    """
    frame = read_frame(data)
    if frame is not None:
        check_size(frame.height, frame.width, max_pixels)
        if frame.component_count in (1, 3):
            import cv2

            pixels = _by_opencv(
                data, cv2.IMREAD_GRAYSCALE if frame.component_count == 1 else cv2.IMREAD_COLOR
            )
            if pixels is not None:
                return Decoded(pixels)
        return _by_pillow(data, max_pixels)
    header = read_header(data)
    if header is None or header.colour_type == PALETTE or header.bits < 8:
        return _by_pillow(data, max_pixels)
    check_size(header.height, header.width, max_pixels)
    decoded = _decode_png(data, header.colour_type)
    if decoded is None:
        _by_pillow(data, max_pixels)  # it says what is wrong, but passes over rows that are missing
        raise unreadable("the PNG picture is damaged: it has fewer pixels than its header says")
    return decoded


def check_size(height: int, width: int, max_pixels: int) -> None:
    if height * width > max_pixels:
        raise unreadable(
            f"the picture has {width:,} x {height:,} pixels, more than the {max_pixels:,} that are "
            "decoded at most; it is a picture bomb, or allow more of them with max_pixels="
        )


def _decode_png(data: bytes, colour_type: int) -> Decoded | None:
    import cv2

    pixels = _by_opencv(data, cv2.IMREAD_UNCHANGED)
    if pixels is None:
        return None
    if colour_type == GREY_ALPHA:  # given as RGB with alpha
        return Decoded(np.ascontiguousarray(pixels[:, :, 2:]))
    if colour_type not in (GREY, RGB):
        return Decoded(pixels)
    colour = transparent_colour(data)
    if colour is None:
        return Decoded(pixels)
    plain = pixels[:, :, : 1 if colour_type == GREY else 3]
    is_seen = (plain != np.array(colour, plain.dtype)).any(axis=2, keepdims=True)
    alpha = is_seen.astype(plain.dtype) * np.iinfo(plain.dtype).max
    return Decoded(np.concatenate((plain, alpha), axis=2))


def _by_opencv(data: bytes, flags: int) -> Any:
    """Pixels with red first; None where OpenCV does not read it."""
    import cv2

    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error:
        return None
    if pixels is None:
        return None
    if pixels.ndim == 2:
        return pixels[:, :, np.newaxis]
    order = cv2.COLOR_BGR2RGB if pixels.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
    return cv2.cvtColor(pixels, order)


def _by_pillow(data: bytes, max_pixels: int) -> Decoded:
    with read_by_pillow(data) as image:
        check_size(image.height, image.width, max_pixels)
        is_animated = bool(getattr(image, "is_animated", False))
        pixels = _deep_tiff(data, image)
        if pixels is None:
            image.load()
            pixels = _plain_channels(image)
        return Decoded(pixels, is_animated, image.mode == "CMYK")


def _deep_tiff(data: bytes, image: Any) -> Any:
    """TIFFs with 16 bits in several channels, which Pillow cuts to 8; None for all others."""
    import cv2

    if image.format != "TIFF" or image.mode not in ("RGB", "RGBA"):
        return None
    if max(image.tag_v2.get(_BITS_PER_SAMPLE, (8,))) <= 8:
        return None
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
            f"its pixels are numbers from {low} to {high} ({values.dtype}), no colours; expected "
            "whole numbers of 8 or 16 bits"
        )
    return values.astype(np.uint16, copy=False)
