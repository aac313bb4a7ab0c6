"""Apply an EXIF orientation to pixels and boxes.

The orientation (CIPA DC-008, tag 0x0112) is how a viewer transforms the stored image: 1 unchanged,
2 mirrored, 3 rotated by 180 degrees, 4 flipped vertically, 5 transposed, 6 rotated by 90 degrees
clockwise, 7 transposed and rotated by 180 degrees, 8 rotated by 90 degrees counterclockwise.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)
Box: TypeAlias = tuple[float, float, float, float]
"""(ymin, xmin, ymax, xmax), each from 0 to 1."""

# orientation -> (swap rows and columns; then reverse rows; reverse columns)
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


def apply_orientation(pixels: npt.NDArray[Number], orientation: int) -> npt.NDArray[Number]:
    """Transform pixels as a viewer does that applies an EXIF orientation from 1 to 8.

    Args:
        pixels: (height, width) or (height, width, channels).

    Returns:
        (height, width, …), or (width, height, …) for 5 to 8; contiguous.
    """
    is_swapped, reverses_rows, reverses_columns = _TURNS[orientation]
    turned = pixels.swapaxes(0, 1) if is_swapped else pixels
    rows = slice(None, None, -1 if reverses_rows else 1)
    columns = slice(None, None, -1 if reverses_columns else 1)
    return np.ascontiguousarray(turned[rows, columns])


def swaps_sides(orientation: int) -> bool:
    return _TURNS[orientation][0]


def inverse_orientation(orientation: int) -> int:
    """The orientation that undoes this one."""
    return {6: 8, 8: 6}.get(orientation, orientation)


def orient_box(box: Box, orientation: int) -> Box:
    """Transform a box as `turn` transforms pixels."""
    is_swapped, reverses_rows, reverses_columns = _TURNS[orientation]
    ymin, xmin, ymax, xmax = box
    if is_swapped:
        ymin, xmin, ymax, xmax = xmin, ymin, xmax, ymax
    if reverses_rows:
        ymin, ymax = 1 - ymax, 1 - ymin
    if reverses_columns:
        xmin, xmax = 1 - xmax, 1 - xmin
    return ymin, xmin, ymax, xmax


def box_corners(boxes: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The corners of boxes, (n, 4): from the top left clockwise, x and y, (n, 4, 2)."""
    return boxes[:, [[1, 0], [3, 0], [3, 2], [1, 2]]]


def orient_points(points: npt.NDArray[Number], orientation: int) -> npt.NDArray[Number]:
    """Transform points as `apply_orientation` does pixels: (…, 2), x and y from 0 to 1."""
    is_swapped, reverses_rows, reverses_columns = _TURNS[orientation]
    turned = points[..., ::-1] if is_swapped else points
    is_reversed = np.array([reverses_columns, reverses_rows])
    return np.where(is_reversed, 1 - turned, turned)


def orient_corners(corners: npt.NDArray[Number], orientation: int) -> npt.NDArray[Number]:
    """The same for the corners of rotated boxes, (…, 4, 2), which stay clockwise in a mirror."""
    is_mirrored = orientation in (2, 4, 5, 7)
    return orient_points(corners[..., [1, 0, 3, 2], :] if is_mirrored else corners, orientation)
