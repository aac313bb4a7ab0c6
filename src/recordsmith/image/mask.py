"""Which value has each pixel of a mask? Class numbers, as they are stored; never their colours.

A mask is a picture whose numbers mean classes: the indices of a palette, 1-bit, 2-bit and 4-bit
levels without scaling, 8-bit or 16-bit levels. Decoders for pictures spread them (a 1 becomes
255, an index its colour), so masks are read here and nowhere else. Nothing is guessed from
colours.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike
from recordsmith.image.pillow import read_by_pillow, unreadable
from recordsmith.image.png import GREY, encode_png_values, read_header

MaskValues: TypeAlias = npt.NDArray[np.uint8 | np.uint16]
Number = TypeVar("Number", bound=np.generic)

_SCALE_OF_BITS = {2: 85, 4: 17}  # Pillow spreads grey levels of so few bits over 0-255
_COLOUR_MODES = {"RGB": "in colour", "RGBA": "in colour with alpha", "CMYK": "in colour",
                 "YCbCr": "in colour", "LAB": "in colour", "HSV": "in colour",
                 "LA": "grey with alpha", "PA": "a palette with alpha"}  # fmt: skip


def decode_mask(data: BytesLike) -> MaskValues:
    """Decode a mask to the numbers that are stored in it.

    Returns:
        uint8 or (from 16-bit masks) uint16, (height, width): indices of a palette, 0 and 1 of a
        1-bit mask, grey levels of all others, not scaled. The caller's own.

    Raises:
        CorruptDataError: unreadable-image: it cannot be decoded, or has colours where one number
            a pixel is expected.
    """
    encoded = bytes(data)
    with read_by_pillow(encoded, "mask") as image:
        mode = image.mode
        values: Any = np.array(image) if mode not in _COLOUR_MODES else None
    if values is None:
        raise unreadable(
            f"the mask is {_COLOUR_MODES[mode]} (mode {mode}); expected one number a pixel, its "
            "class: a grey or palette picture. Turn each colour into its number first"
        )
    return _as_numbers(values, mode, encoded)


def encode_mask(values: MaskValues) -> bytes:
    """A grey PNG of 8 or 16 bits with these very numbers, (height, width)."""
    return encode_png_values(values, bits=8 * values.itemsize, colour_type=GREY)


def resize_nearest(values: npt.NDArray[Number], height: int, width: int) -> npt.NDArray[Number]:
    """A mask, (height, width), in another size; no numbers but its own appear.

    Each pixel is the one whose area holds its centre. The same array where the size is the same.
    """
    if values.shape == (height, width):
        return values
    rows, columns = nearest(values.shape[0], height), nearest(values.shape[1], width)
    resized: npt.NDArray[Number] = values[rows[:, np.newaxis], columns]
    return resized


def nearest(length: int, to_length: int) -> npt.NDArray[np.int64]:
    """Which of `length` pixels each of `to_length` shows: the one that holds its centre."""
    return (2 * np.arange(to_length) + 1) * length // (2 * to_length)


def _as_numbers(values: Any, mode: str, encoded: bytes) -> MaskValues:
    if mode in ("1", "L", "P"):
        numbers: npt.NDArray[np.uint8] = values.astype(np.uint8, copy=False)
        scale = _grey_scale(encoded)
        return numbers // np.uint8(scale) if scale > 1 else numbers
    if mode.startswith("I") and not ((values < 0) | (values > 0xFFFF)).any():
        return values.astype(np.uint16, copy=False)  # type: ignore[no-any-return]
    raise unreadable(
        f"the mask has numbers that are no classes (mode {mode}, from {values.min()} to "
        f"{values.max()}); expected whole numbers from 0 to 65,535"
    )


def _grey_scale(encoded: bytes) -> int:
    """By how much Pillow has multiplied the grey levels of a PNG."""
    header = read_header(encoded)
    if header is None or header.colour_type != GREY:
        return 1
    return _SCALE_OF_BITS.get(header.bits, 1)
