"""The frames of a batch: their size, and the placement of each image in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from recordsmith.image import HIGHEST_MAX_PIXELS, Fit, Placement, in_frame
from recordsmith.loading.features.feature import BatchRows
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.explaining import check_option
from recordsmith.support.number_options import whole_number
from recordsmith.support.words import count as counted

LARGEST_SIDE = 65_535
LARGEST_ROW = 1 << 29  # pixels of all images of a record in a batch


def place_all(
    fit: Fit,
    sizes: Sequence[tuple[int, int] | None],
    name: str,
    rows: BatchRows,
    row_splits: Int64Array,
) -> tuple[list[Placement | None], tuple[int, int]]:
    """Return the placements of all images of a batch and the size of their frame.

    The images of a row, as `row_splits` divides them, have the same random numbers.
    """
    numbers: list[list[float]] = [[]] * len(sizes)
    if fit.number_count and rows.count:
        of_rows = rows.random_numbers.uniform(f"{name}/fit", fit.number_count)
        numbers = of_rows.repeat(np.diff(row_splits), axis=0).tolist()
    placements = [
        None if size is None else fit.place(*size, of_row)
        for size, of_row in zip(sizes, numbers, strict=True)
    ]
    if fit.size is not None:
        return placements, fit.size
    there = [placement for placement in placements if placement is not None]
    height = max((placement.to_height for placement in there), default=0)
    width = max((placement.to_width for placement in there), default=0)
    count = int(np.diff(row_splits).max(initial=0))
    if height * width > HIGHEST_MAX_PIXELS or count * height * width > LARGEST_ROW:
        raise OptionError(
            f"feature {name!r}: {option('fit', 'pad')} makes {counted(count, 'image')} of a record "
            f"{width:,} x {height:,} pixels large",
            option="longer_side",
            expected=f"at most {HIGHEST_MAX_PIXELS:,} pixels, and {LARGEST_ROW:,} of a record",
            remedy=f"Pass {option('longer_side')}.",
        )
    return [place and in_frame(place, height, width) for place in placements], (height, width)


def inner_sizes(placements: Sequence[Placement | None]) -> Int64Array:
    """Return height and width without padding: int64, (rows, 2); 0 for failed rows."""
    sizes = [(place.to_height, place.to_width) if place else (0, 0) for place in placements]
    return np.array(sizes, np.int64).reshape(len(sizes), 2)


def checked_size(
    size: object, fit: str, *, is_required: bool = True, can_pad: bool = True
) -> tuple[int, int] | None:
    """Check a size and return height and width; None for fit='pad', and where no size is passed."""
    if fit == "pad":
        remedy = f"To fit an image into the size, pass {option('fit', 'contain')}."
        check_option(size is None, "size", size, f"None with {option('fit', 'pad')}", remedy)
        return None
    if size is None and not is_required:
        return None
    sides = size if isinstance(size, (tuple, list)) else (size, size)
    try:
        height, width = (whole_number("size", side, 1, LARGEST_SIDE) for side in sides)
    except (OptionError, ValueError):  # invalid numbers, or not two of them
        by_padding = f"For batches of different sizes pass {option('fit', 'pad')}."
        raise OptionError(
            option="size",
            value=size,
            expected="height and width in pixels, such as (224, 224), or one number for both",
            remedy=by_padding if can_pad else "",
        ) from None
    expected = f"a size of at most {HIGHEST_MAX_PIXELS:,} pixels"
    check_option(height * width <= HIGHEST_MAX_PIXELS, "size", size, expected)
    return height, width


@lru_cache(maxsize=1)
def one_thread_in_opencv() -> None:
    """Set OpenCV to one thread, once; users may change it afterwards."""
    from recordsmith.support.libraries import cv2

    cv2.setNumThreads(1)
