"""Find the shortest decimal numbers from which readers restore the same float32.

Records hold relative edges of boxes as float32. Annotation files hold pixels (VOC, COCO) or centre
and size (YOLO) as decimals. A reader computes `float32(number / size)` in float64 and rounds once.
These functions add digits until that gives the original value.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np

_MOST_DIGITS = 20
_FLOAT32 = struct.Struct("f")


def pixels(edge: float, size: int) -> float:
    """The shortest `p` with `float32(p / size) == edge`; an int if possible."""
    exact = edge * size
    return _shortest(exact, lambda p: is_same(p / size, edge), exact)


def pixel_extent(start: float, edge: float, size: int) -> float:
    """The shortest `w` with `float32((start + w) / size) == edge`; `start` is in pixels.

    It exists for every box that is not inverted.
    """
    exact = edge * size - start
    fallback = exact
    for candidate in _neighbours(exact):  # rounding may lose it if start >> w
        if is_same((start + candidate) / size, edge):
            fallback = candidate
            break
    return _shortest(exact, lambda w: is_same((start + w) / size, edge), fallback)


def centre_and_extent(low: float, high: float) -> tuple[float, float]:
    """Short `c`, `w` with `float32(c - w / 2) == low` and `float32(c + w / 2) == high`.

    If no such numbers exist (one edge is less than 1e-8 of the other), returns the nearest ones.
    """
    for centre, extent in _centres_and_extents(low, high):
        if is_same(centre - extent / 2, low) and is_same(centre + extent / 2, high):
            return centre, extent
    return (low + high) / 2, high - low


def decimal(number: float) -> str:
    """Format a number without an exponent; integers without a dot."""
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(float(number))), "f")


def shortest_float(value: np.float32) -> float:
    """The float64 with the fewest digits that rounds to this float32."""
    return float(str(value))


def _shortest(exact: float, fits: Callable[[float], bool], fallback: float) -> float:
    for digits in range(_MOST_DIGITS):
        candidate = round(exact, digits)
        if fits(candidate):
            return int(candidate) if candidate.is_integer() else candidate
    return fallback


def _centres_and_extents(low: float, high: float) -> Iterator[tuple[float, float]]:
    centre, extent = (low + high) / 2, high - low
    for digits in range(1, _MOST_DIGITS):
        wide = round(extent, digits)
        for exact in (centre, low + wide / 2, high - wide / 2):
            yield round(exact, digits), wide
    for wide in _neighbours(extent):
        for exact in (centre, low + wide / 2, high - wide / 2):
            for near in _neighbours(exact):
                yield near, wide


def _neighbours(number: float) -> list[float]:
    return [
        number,
        math.nextafter(number, -math.inf),
        math.nextafter(number, math.inf),
    ]


def is_same(number: float, edge: float) -> bool:
    """Whether both numbers round to the same float32."""
    try:
        return _FLOAT32.pack(number + 0.0) == _FLOAT32.pack(edge + 0.0)  # -0.0 is 0.0
    except OverflowError:
        return False
