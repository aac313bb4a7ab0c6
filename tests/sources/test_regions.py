"""Polygons and run lengths -> masks, compared with pycocotools and with runs counted by hand."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from recordsmith.image import encode_mask
from recordsmith.sources.boxes import regions
from recordsmith.sources.boxes.regions import (
    ClassMask,
    RegionError,
    rasterize,
)

HEIGHT, WIDTH = 9, 13


@pytest.fixture(scope="module")
def coco() -> Any:
    return pytest.importorskip("pycocotools.mask")


def _check_against(coco: Any, segmentation: Any, height: int, width: int) -> None:
    found = coco.frPyObjects(segmentation, height, width)
    runs = coco.merge(found) if isinstance(found, list) else found
    expected = coco.decode(runs)
    mask = rasterize(segmentation, height, width)
    assert mask.dtype == np.uint8
    assert np.array_equal(mask, expected)
    short = runs | {"counts": runs["counts"].decode()}
    assert np.array_equal(rasterize(short, height, width), expected)


coordinates = st.one_of(
    st.integers(-4, 40),
    st.integers(-40, 160).map(lambda tenths: tenths / 10),
    st.floats(-5, 20),
    st.sampled_from([-9_999.9, 12_345.6, -0.0, 0.5, 8.999999]),
)
points = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=9)


@st.composite
def polygons(draw: st.DrawFn) -> list[float]:
    """Closed or not, with points that come twice, inside and outside of the image."""
    corners = draw(points)
    if draw(st.booleans()):
        repeated = draw(st.lists(st.integers(1, 3), min_size=9, max_size=9))
        corners = [
            point for point, count in zip(corners, repeated, strict=False) for _ in range(count)
        ]
    if draw(st.booleans()):
        corners.append(corners[0])
    return [float(coordinate) for point in corners for coordinate in point]


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@settings(max_examples=300)
@given(st.lists(polygons(), min_size=1, max_size=3), st.integers(1, 20), st.integers(1, 20))
def test_polygons_as_pycocotools_draws_them(
    coco: Any, segmentation: list[list[float]], height: int, width: int
) -> None:
    _check_against(coco, segmentation, height, width)


@pytest.mark.parametrize(
    ("polygon", "counts"),
    [  # from pycocotools 2.0.11
        ([2.3, 1.7, 11.2, 0.4, 7.9, 8.8], "m0172O2N1O1OO1N1Ne0"),
        ([0.1, 0.1, 12.9, 8.9, 12.9, 0.1, 0.1, 8.9], "091N2N101N2N1000O2O1N1O2N2"),
        ([-3.5, 4.2, 6.5, -2.5, 15.5, 4.5, 6, 12.25], "2532NQ20PN0O2NO"),
        ([1, 1, 9, 1, 1, 1], "e3"),
        ([3.5, 0, 4.5, 0, 4.5, 9, 3.5, 9], "T19X2"),
        ([0.5, 0.5, 0.7, 6.3, 0.6, 6.4], "e3"),
        ([6, -100000.5, 7.5, 100000, 3, 4.4], "k0T1f1"),
    ],
)
def test_known_polygons(polygon: list[float], counts: str) -> None:
    expected = rasterize({"size": [HEIGHT, WIDTH], "counts": counts}, HEIGHT, WIDTH)
    assert np.array_equal(rasterize([polygon], HEIGHT, WIDTH), expected)


def test_a_polygon_costs_what_its_image_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither far coordinates nor long outlines make arrays that are larger than the image."""
    with pytest.raises(RegionError, match=r"coordinate -1e\+300"):
        rasterize([[0, 0, 9, 9, 5, -1e300]], HEIGHT, WIDTH)
    with pytest.raises(RegionError, match=r"coordinate 1e\+09"):
        rasterize([[0, 0, 1e9, 9, 5, 5]], HEIGHT, WIDTH)
    zigzag = [coordinate for n in range(400) for coordinate in (n % 2 * WIDTH, n / 50)]
    whole = rasterize([zigzag], HEIGHT, WIDTH)
    monkeypatch.setattr(regions, "MAX_CROSSINGS", 400 * WIDTH)
    assert np.array_equal(rasterize([zigzag], HEIGHT, WIDTH), whole)
    monkeypatch.setattr(regions, "MAX_CROSSINGS", 400 * WIDTH - 1)
    with pytest.raises(RegionError, match=r"more than 5,199 times"):
        rasterize([zigzag], HEIGHT, WIDTH)


def test_parts_may_lie_on_each_other() -> None:
    part = [2, 1, 7, 1, 7, 5, 2, 5]
    assert np.array_equal(rasterize([part] * 600, HEIGHT, WIDTH), rasterize([part], HEIGHT, WIDTH))
    with pytest.raises(RegionError, match="more than 4,096 polygons"):
        rasterize([part] * 5_000, HEIGHT, WIDTH)
    steps = [[x, 0, x + 1, 0, x + 1, x + 1, x, x + 1] for x in range(HEIGHT)]
    assert np.array_equal(rasterize(steps, HEIGHT, WIDTH)[:, :HEIGHT], np.triu(np.ones((9, 9))))


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


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@given(st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_run_lengths_as_pycocotools_reads_them(coco: Any, runs: list[int]) -> None:
    """Also runs of no pixels, which its own functions do not write."""
    runs = [*runs, HEIGHT * WIDTH - sum(runs)] if sum(runs) <= HEIGHT * WIDTH else [0, 117, 0]
    _check_against(coco, {"size": [HEIGHT, WIDTH], "counts": runs}, HEIGHT, WIDTH)


@pytest.mark.parametrize(
    ("segmentation", "words"),
    [
        (None, "polygons or run lengths"),
        ([], "polygons or run lengths"),
        ("1,2,3", "polygons or run lengths"),
        ([[1, 2]], "two points"),
        ([[1, 2, 3, 4, 5, 6, 7]], "two points"),
        ([[1, 2, 3, 4, 5, None]], "two points"),
        ([1, 2, 3, 4, 5, 6], "two points"),
        ([[1, 2, 3, 4, 5, float("nan")]], "two points"),
        ({"size": [WIDTH, HEIGHT], "counts": [117]}, r"\[13, 9\]; .*\[9, 13\]"),
        ({"counts": [117]}, "size None"),
        ({"size": [HEIGHT, WIDTH], "counts": [116]}, "116 pixels"),
        ({"size": [HEIGHT, WIDTH], "counts": [118, -1]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH], "counts": [1e9]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH]}, "numbers from 0"),
        ({"size": [HEIGHT, WIDTH], "counts": "e"}, "truncated"),
        ({"size": [HEIGHT, WIDTH], "counts": "\x7f"}, "invalid character"),
        ({"size": [HEIGHT, WIDTH], "counts": "o" * 99}, "invalid character"),
        ({"size": [HEIGHT, WIDTH], "counts": "oooo1"}, "0 to 117"),
        ({"size": [HEIGHT, WIDTH], "counts": "@"}, "run length -16"),
        ({"size": [2, 2], "counts": [4], "x": -1, "y": 0}, "2x2 pixels at -1, 0 is outside"),
        ({"size": [2, 2], "counts": [4], "x": WIDTH - 1, "y": 0}, "is outside"),
        ({"size": [2, 1e30], "counts": [4], "x": 0, "y": 0}, "invalid mask"),
        ({"size": [2], "counts": [4], "x": 0, "y": 0}, "invalid mask"),
        ({"size": [2, 2], "counts": [4], "x": 0}, "invalid mask"),
        ({"size": [2, 2], "counts": [5], "x": 0, "y": 0}, "add up to 5 pixels"),
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
