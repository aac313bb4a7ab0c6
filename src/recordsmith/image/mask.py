"""Which value has each pixel of a mask? Class numbers, as they are stored; never their colours.

A mask is a picture whose numbers mean classes: the indices of a palette, 1-bit, 2-bit and 4-bit
levels without scaling, 8-bit or 16-bit levels. Decoders for pictures spread them (a 1 becomes
255, an index its colour), so masks are read here and nowhere else. Nothing is guessed from
colours.
"""

from __future__ import annotations

import io
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike
from recordsmith.errors import CorruptDataError, Defect

MaskValues: TypeAlias = npt.NDArray[np.uint8 | np.uint16]

_PNG_START = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
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
    from PIL import Image, UnidentifiedImageError

    encoded = bytes(data)
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            mode = image.mode
            values: Any = np.array(image) if mode not in _COLOUR_MODES else None
    except UnidentifiedImageError:
        raise _unreadable(f"the mask is no picture; it begins with {encoded[:16]!r}") from None
    except Exception as error:  # noqa: BLE001 - Pillow's plugins raise anything on bad files
        raise _unreadable(f"the mask cannot be decoded ({error})") from None
    if values is None:
        raise _unreadable(
            f"the mask is {_COLOUR_MODES[mode]} (mode {mode}); expected one number a pixel, its "
            "class: a grey or palette picture. Turn each colour into its number first"
        )
    return _as_numbers(values, mode, encoded)


def _as_numbers(values: Any, mode: str, encoded: bytes) -> MaskValues:
    if mode in ("1", "L", "P"):
        numbers: npt.NDArray[np.uint8] = values.astype(np.uint8, copy=False)
        scale = _grey_scale(encoded)
        return numbers // np.uint8(scale) if scale > 1 else numbers
    if mode.startswith("I") and not ((values < 0) | (values > 0xFFFF)).any():
        return values.astype(np.uint16, copy=False)  # type: ignore[no-any-return]
    raise _unreadable(
        f"the mask has numbers that are no classes (mode {mode}, from {values.min()} to "
        f"{values.max()}); expected whole numbers from 0 to 65,535"
    )


def _grey_scale(encoded: bytes) -> int:
    """By how much Pillow has multiplied the grey levels of a PNG."""
    if not encoded.startswith(_PNG_START) or encoded[25] != 0:  # colour type 0: grey
        return 1
    return _SCALE_OF_BITS.get(encoded[24], 1)


def _unreadable(detail: str) -> CorruptDataError:
    return CorruptDataError(Defect.UNREADABLE_IMAGE, detail)
