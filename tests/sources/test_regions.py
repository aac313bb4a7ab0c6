"""Polygons and run lengths -> masks, against a point-in-polygon test and runs counted by hand."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordsmith.image import encode_mask
from recordsmith.sources.regions import (
    ClassMask,
    RegionError,
    rasterize,
)

HEIGHT, WIDTH = 9, 13


def _is_inside(polygon: list[float], x: float, y: float) -> bool | None:
    """By the number of edges that a ray to the left crosses; None if an edge runs through it."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    crossed = 0
    for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
        if (y1 <= y) != (y2 <= y):
            crossing = x1 + (y - y1) * (x2 - x1) / (y2 - y1)
            if abs(crossing - x) < 1e-9:
                return None
            crossed += crossing < x
    return crossed % 2 == 1


coordinate = st.integers(-40, 160).map(lambda tenth: tenth / 10)
polygons = st.integers(3, 8).flatmap(
    lambda count: st.lists(coordinate, min_size=2 * count, max_size=2 * count)
)


@given(polygons)
def test_pixels_whose_centres_are_inside(polygon: list[float]) -> None:
    mask = rasterize([polygon], HEIGHT, WIDTH)
    assert mask.dtype == np.uint8
    for y, x in np.ndindex(HEIGHT, WIDTH):
        expected = _is_inside(polygon, x + 0.5, y + 0.5)
        assert expected is None or mask[y, x] == expected


def test_rectangle_has_its_area() -> None:
    mask = rasterize([[2, 1, 7, 1, 7, 5, 2, 5]], HEIGHT, WIDTH)
    assert mask.sum() == 20
    assert mask[1:5, 2:7].all()
    two = [[2, 1, 7, 1, 7, 5, 2, 5], [6, 4, 9, 4, 9, 6, 6, 6]]
    assert rasterize(two, HEIGHT, WIDTH).sum() == 20 + 6 - 1
    assert rasterize([[20, 1, 30, 1, 30, 5, 20, 5]], HEIGHT, WIDTH).sum() == 0
    assert rasterize([[-9, -9, 99, -9, 99, 99, -9, 99]], HEIGHT, WIDTH).all()


# -- run lengths ---------------------------------------------------------------------------------


def _runs(mask: Any) -> list[int]:
    """Down the columns, zeros first."""
    runs, value = [0], 0
    for pixel in mask.T.ravel().tolist():
        if pixel != value:
            runs.append(0)
            value = pixel
        runs[-1] += 1
    return runs


def _short(runs: list[int]) -> str:
    """The short form, as maskApi.c describes it: five bits a character, differences from two
    runs before."""
    text = ""
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        while True:
            bits = value & 0x1F
            value >>= 5
            more = value != (-1 if bits & 0x10 else 0)
            text += chr((bits | 0x20 if more else bits) + 48)
            if not more:
                break
    return text


masks = st.binary(min_size=HEIGHT * WIDTH, max_size=HEIGHT * WIDTH).map(
    lambda data: (np.frombuffer(data, np.uint8).reshape(HEIGHT, WIDTH) > 200).astype(np.uint8)
)


@given(masks)
def test_both_forms_of_run_lengths(mask: Any) -> None:
    runs = _runs(mask)
    for counts in (runs, _short(runs)):
        found = rasterize({"size": [HEIGHT, WIDTH], "counts": counts}, HEIGHT, WIDTH)
        assert np.array_equal(found, mask)
        assert found.flags.c_contiguous


def test_known_short_form() -> None:
    """Long runs: 272 zeros, 2 ones, ... of a picture of 20 by 20, written out by hand.

    272 = 8 * 32 + 16: low bits 16 with more to follow (0x30), then 8: chr(96) chr(56).
    2: chr(50). 126 = 3 * 32 + 30: 0x3e, 3: chr(110) chr(51).
    """
    found = rasterize({"size": [20, 20], "counts": "`82n3"}, 20, 20)
    assert np.flatnonzero(found.T.ravel()).tolist() == [272, 273]


@pytest.mark.parametrize(
    ("segmentation", "words"),
    [
        (None, "expected polygons or run lengths"),
        ([], "expected polygons or run lengths"),
        ("1,2,3", "expected polygons or run lengths"),
        ([[1, 2, 3, 4]], "at least three points"),
        ([[1, 2, 3, 4, 5, 6, 7]], "at least three points"),
        ([[1, 2, 3, 4, 5, None]], "at least three points"),
        ([1, 2, 3, 4, 5, 6], "at least three points"),
        ([[1, 2, 3, 4, 5, float("nan")]], "at least three points"),
        ({"size": [WIDTH, HEIGHT], "counts": [117]}, r"of the size \[13, 9\]; expected \[9, 13\]"),
        ({"counts": [117]}, "of the size None"),
        ({"size": [HEIGHT, WIDTH], "counts": [116]}, "add up to 116; expected 117"),
        ({"size": [HEIGHT, WIDTH], "counts": [118, -1]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH], "counts": [1e9]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH], "counts": "e"}, "end too early"),
        ({"size": [HEIGHT, WIDTH], "counts": "\x7f"}, "cannot be there"),
        ({"size": [HEIGHT, WIDTH], "counts": "o" * 99}, "cannot be there"),
        ({"size": [HEIGHT, WIDTH], "counts": "oooo1"}, "the picture has 117"),
        ({"size": [HEIGHT, WIDTH], "counts": "@"}, "run lengths hold -16"),
    ],
)
def test_what_is_no_region(segmentation: Any, words: str) -> None:
    with pytest.raises(RegionError, match=words):
        rasterize(segmentation, HEIGHT, WIDTH)


@given(st.text(st.characters(min_codepoint=40, max_codepoint=120), max_size=30))
def test_any_text_gives_a_mask_or_an_error(text: str) -> None:
    try:
        mask = rasterize({"size": [HEIGHT, WIDTH], "counts": text}, HEIGHT, WIDTH)
    except RegionError:
        return
    assert mask.shape == (HEIGHT, WIDTH)
    assert set(np.unique(mask)) <= {0, 1}


# -- masks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_deep", [False, True])
def test_smaller_objects_are_on_top(is_deep: bool) -> None:
    whole = ClassMask(HEIGHT, WIDTH, is_deep=is_deep)
    large, small = np.zeros((2, HEIGHT, WIDTH), np.uint8)
    large[1:6, 1:9] = 1
    small[2:4, 2:4] = 1
    label = 300 if is_deep else 200
    whole.add(small, label)
    whole.add(large, 3)
    whole.add(np.zeros_like(small), 7)
    expected = large.astype(np.int64) * 3
    expected[2:4, 2:4] = label
    drawn = whole.draw()
    assert drawn.dtype == (np.uint16 if is_deep else np.uint8)
    assert np.array_equal(drawn, expected)
    with Image.open(io.BytesIO(encode_mask(drawn))) as image:
        assert image.mode == ("I;16" if is_deep else "L")
        assert np.array_equal(np.array(image), expected)
