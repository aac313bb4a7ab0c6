from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recordsmith.exporting.boxes import (
    centre_and_extent,
    decimal,
    pixel_extent,
    pixels,
    shortest_float,
)

EDGE = st.floats(0, 1, width=32)
ANY_EDGE = st.floats(-4, 4, width=32)
SIZE = st.integers(1, 70_000)


def written(number: float) -> float:
    """What a reader of the file gets."""
    return float(decimal(number))


@given(ANY_EDGE, SIZE)
def test_pixels_give_the_same_float32(edge: float, size: int) -> None:
    assert np.float32(written(pixels(edge, size)) / size) == np.float32(edge)


@given(SIZE.flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size))))
def test_integer_pixels_are_restored(known: tuple[int, int]) -> None:
    size, pixel = known
    edge = float(np.float32(pixel / size))
    assert decimal(pixels(edge, size)) == str(pixel)


@given(st.integers(1, 10_000), st.integers(0, 10_000), st.integers(0, 6))
def test_decimals_are_the_shortest(size: int, place: int, digits: int) -> None:
    """A number with few decimals is found again, or one with fewer."""
    pixel = round(min(place / 7, size), digits)
    found = decimal(pixels(float(np.float32(pixel / size)), size))
    assert len(found.partition(".")[2]) <= digits


@given(EDGE, EDGE, SIZE)
def test_extents_give_the_same_float32(one: float, other: float, size: int) -> None:
    low, high = sorted((one, other))
    start = pixels(low, size)
    extent = pixel_extent(start, high, size)
    assert np.float32((written(start) + written(extent)) / size) == np.float32(high)


@given(EDGE, EDGE)
def test_centres_give_the_same_float32(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assume(low == 0 or low > 1e-7 * high)
    centre, extent = map(written, centre_and_extent(low, high))
    assert np.float32(centre - extent / 2) == np.float32(low)
    assert np.float32(centre + extent / 2) == np.float32(high)


@given(SIZE.flatmap(lambda s: st.tuples(st.just(s), st.integers(0, s), st.integers(0, s))))
def test_boxes_of_integer_pixels_have_centres(known: tuple[int, int, int]) -> None:
    size, *ends = known
    low, high = (float(np.float32(end / size)) for end in sorted(ends))
    centre, extent = map(written, centre_and_extent(low, high))
    assert (np.float32(centre - extent / 2), np.float32(centre + extent / 2)) == (low, high)
    # where an edge is 0, the difference has to be exactly that
    assert len(decimal(centre)) <= (14 if low else 24)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0"), (12.0, "12"), (0.5, "0.5"), (1e-7, "0.0000001"), (1e16, "1" + "0" * 16)],
)
def test_decimals_have_no_exponent(number: float, text: str) -> None:
    assert decimal(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimals_lose_nothing(number: float) -> None:
    assert written(number) == number
    assert re.fullmatch(r"-?\d+(\.\d+)?", decimal(number))


@given(st.floats(width=32, allow_nan=False))
def test_shortest_float(number: float) -> None:
    found = shortest_float(np.float32(number))
    assert np.float32(found) == np.float32(number)
    assert len(repr(found)) <= len(repr(float(np.float32(number))))
