"""Shuffles places within windows of neighbours, by arithmetic as in `permutation`."""

from __future__ import annotations

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.permutation import Permutations


def window_numbers(places: Int64Array, size: int, shift: int = 0) -> Int64Array:
    """Return the window of each place: int64, (n,). The first window ends at place `shift`."""
    return (places + (size - shift)) // size


def mixed_in_windows(
    places: Int64Array, count: int, size: int, *key: int | str, shift: int = 0
) -> Int64Array:
    """Return the place that comes at each place after shuffling within windows.

    Args:
        places: int64, (n,), from 0 to count - 1.
        size: places in a window; the last one may have fewer.
        key: the seed, and what distinguishes this order from others of the same seed.
        shift: the end of the first window, from 0 to size - 1; 0 for a full window.

    Returns:
        int64, (n,).
    """
    windows = window_numbers(places, size, shift)
    begins = windows * size - (size - shift)
    ends = np.minimum(begins + size, count)
    np.maximum(begins, 0, out=begins)
    lengths = ends - begins
    mixed = np.empty_like(places)
    for length in np.unique(lengths).tolist():  # one or two, and one for the first window
        chosen = np.flatnonzero(lengths == length)
        orders = Permutations(length, *key)
        within = places[chosen] - begins[chosen]
        mixed[chosen] = begins[chosen] + orders.numbers(windows[chosen], within)
    return mixed
