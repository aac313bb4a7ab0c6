"""Convert masks drawn in colours to masks of class numbers.

Every colour must be in the table; colours are never matched approximately. An unknown colour shows
that edges were blended or the file was saved as JPEG, so its class would be a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Colour: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

LARGEST_NUMBER = 65535
"""The largest value in a PNG."""


class UnknownColours(NamedTuple):
    """Pixels whose colours are not in the table.

    pixel_count: the number of these pixels.
    colour_count: the number of their different colours.
    colour, x, y: the first such pixel, row by row from the top left.
    """

    pixel_count: int
    colour_count: int
    colour: Colour
    x: int
    y: int


def voc_colours() -> dict[Colour, int]:
    """PASCAL VOC's table of 256 colours: black is 0, (128, 0, 0) is 1, …, (224, 224, 192) is 255.

    Bits of the number go to red, green and blue in turn, starting with the lowest; each channel is
    filled from its highest bit.
    """
    colours = {}
    for number in range(256):
        channels = [0, 0, 0]
        for bit in range(8):
            if number >> bit & 1:
                channels[bit % 3] |= 128 >> bit // 3
        colours[channels[0], channels[1], channels[2]] = number
    return colours


def grey_colours() -> dict[Colour, int]:
    """Grey levels as class numbers, for masks of numbers that were saved as RGB."""
    return {(level, level, level): level for level in range(256)}


def colours_to_numbers(
    pixels: npt.NDArray[np.uint8], colours: Mapping[Colour, int]
) -> npt.NDArray[Any] | UnknownColours:
    """Convert colours to class numbers.

    Args:
        pixels: uint8, (height, width, 3), RGB, 0-255.
        colours: the class number of each colour, 0 to 65,535.

    Returns:
        uint8, (height, width), or uint16 if the table has numbers above 255; or Unknown if a colour
        is not in the table.
    """
    codes = _codes(pixels)
    known = np.array([r << 16 | g << 8 | b for r, g, b in colours], np.uint32)
    dtype = np.uint8 if max(colours.values()) < 256 else np.uint16
    order = np.argsort(known)
    known = known[order]
    numbers = np.array(list(colours.values()), dtype)[order]
    places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    is_unknown = known[places] != codes
    if is_unknown.any():
        first = int(np.flatnonzero(is_unknown)[0])
        y, x = divmod(first, pixels.shape[1])
        red, green, blue = pixels[y, x].tolist()
        unknown = codes[is_unknown]
        return UnknownColours(len(unknown), len(np.unique(unknown)), (red, green, blue), x, y)
    return numbers[places].reshape(pixels.shape[:2])


def distinct_colours(pixels: npt.NDArray[np.uint8]) -> list[Colour]:
    """The different colours of an image, uint8, (height, width, 3), the most frequent first."""
    codes, counts = np.unique(_codes(pixels), return_counts=True)
    ordered = codes[np.argsort(-counts, kind="stable")].tolist()
    return [(code >> 16, code >> 8 & 255, code & 255) for code in ordered]


def _codes(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """One number for each pixel, flat: 0xRRGGBB."""
    red, green, blue = pixels.reshape(-1, 3).astype(np.uint32).T
    codes: npt.NDArray[np.uint32] = (red << 16) + (green << 8) + blue
    return codes
