"""Draws images in a terminal: each character is two pixels, one above the other."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from recordsmith.cli import console
from recordsmith.image import Pixels, resize_image

if TYPE_CHECKING:
    from recordsmith.image import Tile

_COLUMNS = 30  # characters of an image
_GAP = 2
_UPPER_HALF = "\u2580"
_PLAIN = "\x1b[0m"


def print_tiles(tiles: Sequence[Tile]) -> None:
    """Print images in rows that fit the terminal, with their captions."""
    width = shutil.get_terminal_size().columns
    columns = min(_COLUMNS, max(8, width - _GAP))
    per_row = max(1, width // (columns + _GAP))
    waiting = iter(tiles)
    while row := list(islice(waiting, per_row)):
        images = [_half_blocks(tile.pixels, columns) for tile in row]
        for line in range(max(map(len, images))):
            shown = [image[line] if line < len(image) else " " * columns for image in images]
            print((" " * _GAP).join(shown).rstrip(" "))
        captions = [
            console.shortened_in_middle(console.printable(tile.caption), columns) for tile in row
        ]
        print((" " * _GAP).join(f"{caption:{columns}}" for caption in captions).rstrip())
        print()


def _half_blocks(pixels: Pixels, columns: int) -> list[str]:
    """Return the lines of an image that is so many characters wide."""
    height, width = pixels.shape[:2]
    scale = columns / max(height, width)
    shown_height, shown_width = max(2, round(height * scale)), max(1, round(width * scale))
    shown_height += shown_height % 2
    small = resize_image(pixels, shown_height, shown_width)
    lines = []
    for upper, lower in zip(small[::2], small[1::2], strict=True):
        colours = np.concatenate([upper, lower], 1).tolist()
        cells = [
            f"\x1b[38;2;{a};{b};{c};48;2;{d};{e};{f}m{_UPPER_HALF}" for a, b, c, d, e, f in colours
        ]
        lines.append("".join(cells) + _PLAIN + " " * (columns - shown_width))
    return lines
