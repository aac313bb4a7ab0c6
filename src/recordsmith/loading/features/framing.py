"""The frames of a batch: their size as declared, and where each picture comes to lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.image.fit import Fit, Placement, in_frame
from recordsmith.image.options import MOST_PIXELS
from recordsmith.loading.features.contract import Rows

LARGEST_SIDE = 65_535


def place_all(
    fit: Fit, sizes: Sequence[tuple[int, int] | None], name: str, rows: Rows
) -> tuple[list[Placement | None], tuple[int, int]]:
    """Where all pictures of a batch come to lie, and the size of their frame.

    Raises:
        OptionError: those that are padded to each other make a frame that is too large.
    """
    numbers: list[list[float]] = [[]] * rows.count
    if fit.number_count:
        numbers = rows.draws.uniform(f"{name}/fit", fit.number_count).tolist()
    placements = [
        None if size is None else fit.place(*size, of_row)
        for size, of_row in zip(sizes, numbers, strict=True)
    ]
    if fit.size is not None:
        return placements, fit.size
    there = [placement for placement in placements if placement is not None]
    height = max((placement.to_height for placement in there), default=0)
    width = max((placement.to_width for placement in there), default=0)
    if height * width > MOST_PIXELS:
        raise OptionError(
            f"feature {name!r}: the pictures of a batch would be padded to {width:,} x {height:,} "
            f"pixels, more than {MOST_PIXELS:,}; say longer_side"
        )
    return [place and in_frame(place, height, width) for place in placements], (height, width)


def inner_sizes(placements: Sequence[Placement | None]) -> Int64Array:
    """Height and width of what is no padding: int64, (rows, 2); 0 where there is no picture."""
    sizes = [(place.to_height, place.to_width) if place else (0, 0) for place in placements]
    return np.array(sizes, np.int64).reshape(len(sizes), 2)


def checked_size(size: object, fit: str) -> tuple[int, int] | None:
    """Height and width of a frame.

    Raises:
        OptionError: there is none where one is needed, or one where none is.
    """
    if fit == "pad":
        if size is not None:
            raise OptionError(
                f"size is {size!r}, but with fit='pad' frames are as large as the largest of "
                "their batch; leave size out, or say another fit"
            )
        return None
    sides = (size, size) if isinstance(size, (int, np.integer)) else size
    is_size = (
        isinstance(sides, (tuple, list))
        and len(sides) == 2
        and all(isinstance(side, (int, np.integer)) for side in sides)
        and not any(isinstance(side, bool) for side in sides)
        and all(0 < side <= LARGEST_SIDE for side in sides)
    )
    if not is_size:
        raise OptionError(
            f"size is {size!r}; expected height and width in pixels, such as (224, 224), or one "
            "number for both; pictures of different sizes need fit='pad'"
        )
    height, width = map(int, cast("tuple[int, int]", sides))
    if height * width > MOST_PIXELS:
        raise OptionError(f"size is {size!r}; expected at most {MOST_PIXELS:,} pixels")
    return height, width


@lru_cache(maxsize=1)
def one_thread_in_opencv() -> None:
    """Once: OpenCV works in the threads that call it. Whoever wants others says so afterwards."""
    import cv2

    cv2.setNumThreads(1)
