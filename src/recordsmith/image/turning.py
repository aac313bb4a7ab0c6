"""Turning pixels and places in them by an EXIF orientation, so that what was up is up.

An EXIF orientation says how a viewer turns the stored picture (CIPA DC-008, tag 0x0112): 1 as it
is, 2 mirrored, 3 by 180 degrees, 4 upside down and mirrored, 5 rows and columns swapped, 6 by 90
degrees clockwise, 7 swapped and by 180 degrees, 8 by 90 degrees counterclockwise.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)
Box: TypeAlias = tuple[float, float, float, float]
"""(ymin, xmin, ymax, xmax), each from 0 to 1 of its side."""

# orientation -> (rows and columns are swapped; then: rows are reversed, columns are reversed)
_TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}


def turn(pixels: npt.NDArray[Number], orientation: int) -> npt.NDArray[Number]:
    """Turn pixels as a viewer does that heeds an EXIF orientation from 1 to 8.

    Args:
        pixels: (height, width) or (height, width, channels).

    Returns:
        (height, width, …), or for 5 to 8 (width, height, …); contiguous.
    """
    is_swapped, reverses_rows, reverses_columns = _TURNS[orientation]
    turned = pixels.swapaxes(0, 1) if is_swapped else pixels
    rows = slice(None, None, -1 if reverses_rows else 1)
    columns = slice(None, None, -1 if reverses_columns else 1)
    return np.ascontiguousarray(turned[rows, columns])


def swaps_sides(orientation: int) -> bool:
    """Whether turning by this orientation makes the height the width."""
    return _TURNS[orientation][0]


def undone_by(orientation: int) -> int:
    """The orientation whose turn leads from the upright picture back to the stored one."""
    return {6: 8, 8: 6}.get(orientation, orientation)


def turn_box(box: Box, orientation: int) -> Box:
    """Turn a box as `turn` turns the pixels."""
    is_swapped, reverses_rows, reverses_columns = _TURNS[orientation]
    ymin, xmin, ymax, xmax = box
    if is_swapped:
        ymin, xmin, ymax, xmax = xmin, ymin, xmax, ymax
    if reverses_rows:
        ymin, ymax = 1 - ymax, 1 - ymin
    if reverses_columns:
        xmin, xmax = 1 - xmax, 1 - xmin
    return ymin, xmin, ymax, xmax
