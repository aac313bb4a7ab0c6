"""Boxes and masks over images: positions, colours and tags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.image import blend_mask, class_numbers, draw_boxes, draw_mask, label_colour

GREY = 90
SHARE = st.floats(-0.5, 1.5)


def flat(height: int = 100, width: int = 100) -> np.ndarray:
    return np.full((height, width, 3), GREY, np.uint8)


def changed(pixels: np.ndarray) -> np.ndarray:
    return (pixels != GREY).any(axis=2)  # type: ignore[no-any-return]


def bounds(where: np.ndarray) -> tuple[int, int, int, int]:
    """(top, left, bottom, right), inclusive."""
    rows, columns = np.nonzero(where)
    return int(rows.min()), int(columns.min()), int(rows.max()), int(columns.max())


def is_colour(pixels: np.ndarray, label: int) -> np.ndarray:
    return (pixels == label_colour(label)).all(axis=2)  # type: ignore[no-any-return]


# -- colours -------------------------------------------------------------------------------------


def test_a_class_keeps_its_colour_and_neighbours_differ() -> None:
    colours = [label_colour(label) for label in range(100)]
    assert len(set(colours)) == 100
    assert [label_colour(label) for label in range(100, 200)] == colours
    steps = np.abs(np.diff(np.array(colours[:15], int), axis=0)).max(axis=1)
    assert steps.min() > 60
    assert label_colour(-1) in colours


# linear RGB as seen without the cones for long or for medium waves: Machado and others, 2009
VISIONS = {
    "usual": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


@pytest.mark.parametrize("vision", VISIONS)
def test_the_colours_of_100_classes_are_distinct(vision: str) -> None:
    linear = (np.array([label_colour(label) for label in range(100)]) / 255) ** 2.2
    seen = np.clip(linear @ np.array(VISIONS[vision]).T, 0, 1)
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    lab = np.cbrt(seen @ np.array(cones).T) @ np.array(to_lab).T  # Oklab: 0.02 is a visible step
    distances = np.linalg.norm(lab[:, None] - lab, axis=2) + np.eye(100)
    assert distances.min() > 0.02


# -- masks ---------------------------------------------------------------------------------------


def test_areas_are_tinted_and_outlined_and_background_is_clear() -> None:
    mask = np.zeros((100, 100), np.uint8)
    mask[20:60, 30:70] = 3
    shown = blend_mask(flat(), mask)
    assert bounds(changed(shown)) == (20, 30, 59, 69)
    middle = [round((GREY + channel) / 2) for channel in label_colour(3)]
    assert np.abs(shown[40, 50].astype(int) - middle).max() <= 1
    outline = is_colour(shown, 3)
    assert outline[20, 30:70].all()
    assert outline[21, 40]
    assert not outline[22:58, 32:68].any()
    assert (flat() == GREY).all()


def test_ignore_label_is_hatched_next_to_classes() -> None:
    mask = np.zeros((100, 100), np.uint8)
    mask[:, :40], mask[:, 60:] = 1, 255
    void = changed(blend_mask(flat(), mask))[:, 60:]
    assert 0.15 < void.mean() < 0.5  # lines, no area
    assert not changed(blend_mask(flat(), mask))[:, 42:58].any()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 255], [0, 1]),
        ([255], [1]),
        ([0], [0]),
        ([0, 1], [0, 1]),
        ([0, 1, 255], [0, 1, 255]),
        ([7, 255], [7, 255]),
    ],
)
def test_255_is_a_class_if_it_is_the_only_one(values: list[int], expected: list[int]) -> None:
    mask = np.array([values] * 3, np.uint8)
    assert class_numbers(mask).tolist() == [expected] * 3
    mask = np.resize(np.repeat(np.uint8(values), 40), (100, 100))
    other = np.resize(np.repeat(np.uint8(expected), 40), (100, 100))
    assert (blend_mask(flat(), mask) == blend_mask(flat(), other)).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_a_mask_alone_has_the_colours_of_its_classes(dtype: Any) -> None:
    mask = np.array([[0, 1, 2, 255]], dtype)
    colours = [(0, 0, 0), label_colour(1), label_colour(2), (224, 224, 224)]
    assert [tuple(pixel) for pixel in draw_mask(mask)[0].tolist()] == colours
    assert tuple(draw_mask(np.array([[0, 255]], dtype))[0, 1]) == label_colour(1)
    if dtype != np.uint8:
        assert tuple(draw_mask(np.array([[1, 260]], dtype))[0, 1]) == label_colour(260)


# -- boxes ---------------------------------------------------------------------------------------


def test_box_position() -> None:
    shown = draw_boxes(flat(101, 201), [(0.2, 0.25, 0.8, 0.75)], [2], [""])
    assert bounds(is_colour(shown, 2)) == (20, 50, 80, 150)
    assert not changed(shown)[30:70, 60:140].any()  # a frame, no area
    assert is_colour(shown, 2)[20, 50:151].all()


@given(
    box=st.tuples(SHARE, SHARE, SHARE, SHARE),
    size=st.tuples(st.integers(1, 99), st.integers(1, 99)),
)
def test_any_box_can_be_drawn(
    box: tuple[float, float, float, float], size: tuple[int, int]
) -> None:
    shown = draw_boxes(flat(*size), [box] * 2, [1, 2], ["a class", "b"])
    assert shown.shape == (*size, 3)


def test_tags_stay_inside_and_do_not_overlap() -> None:
    boxes = [(0.0, 0.0, 0.9, 0.5), (0.02, 0.01, 0.5, 0.5), (0.5, 0.8, 0.99, 1.0)]
    tags = []
    for number in range(3):
        texts = ["", "", ""]
        texts[number] = "zebra crossing"
        without = draw_boxes(flat(288, 288), boxes, [1, 2, 3], ["", "", ""])
        alone = draw_boxes(flat(288, 288), boxes, [1, 2, 3], texts)
        tags.append((alone != without).any(axis=2))
        assert tags[-1].sum() > 800
    widths = [right - left for _, left, _, right in map(bounds, tags)]
    assert max(widths) - min(widths) < 6  # none is cut at the edge
    together = draw_boxes(flat(288, 288), boxes, [1, 2, 3], ["zebra crossing"] * 3)
    bare = draw_boxes(flat(288, 288), boxes, [1, 2, 3], [""] * 3)
    areas = [is_colour(together, label).sum() - is_colour(bare, label).sum() for label in (1, 2, 3)]
    assert min(areas) > 800  # each stands somewhere, whole


# -- tiles ---------------------------------------------------------------------------------------


# -- rotated boxes, keypoints --------------------------------------------------------------------

SIDE = 201
BOX = (0.0, 0.0, 1.0, 1.0)
POINTS = np.array([(0.2, 0.2, 2), (0.8, 0.2, 2), (0.8, 0.8, 1), (0.5, 0.5, 0), (-3, 4, 2)])


def test_rotated_boxes_are_drawn_instead_of_upright_ones() -> None:
    corners = np.array([[(0.5, 0.1), (0.9, 0.5), (0.5, 0.9), (0.1, 0.5)]])
    shown = draw_boxes(flat(SIDE, SIDE), [BOX], [2], [""], corners)
    for x, y in ((100, 20), (180, 100), (140, 60), (60, 140)):  # corners, and middles of sides
        assert is_colour(shown, 2)[y - 1 : y + 2, x - 1 : x + 2].any()
    assert not changed(shown)[80:120, 80:120].any()
    assert not changed(shown)[:10].any()
    draw_boxes(flat(SIDE, SIDE), [BOX], [2], [""], corners * 4)  # outside


def test_keypoints_and_skeletons() -> None:
    """Visible points are discs and hidden ones rings; lines join only labelled ones."""
    pairs = {1: [(0, 1), (1, 2), (0, 3), (0, 9)]}
    shown = draw_boxes(flat(SIDE, SIDE), [BOX], [1], [""], None, POINTS[None], pairs)
    bare = draw_boxes(flat(SIDE, SIDE), [BOX], [1], [""], None, POINTS[None])
    seen = is_colour(shown, 1)
    assert (seen[40, 40], seen[40, 160], seen[160, 160]) == (True, True, False)
    assert is_colour(bare, 1)[158:163, 156:165].any()  # the ring
    assert (seen[40, 100], is_colour(bare, 1)[40, 100]) == (True, False)
    faint = shown[100, 160].tolist()
    assert faint not in ([GREY] * 3, [*label_colour(1)])
    assert not changed(bare)[100, 160]
    assert not changed(shown)[90:110, 90:110].any()  # the point that is not labelled
    assert not changed(shown)[60:75, 60:75].any()
