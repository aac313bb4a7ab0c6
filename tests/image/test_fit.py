"""Placing images in frames, compared with TensorFlow and torchvision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.image import Fit, Placement, in_frame

SIDES = st.integers(1, 700)
SIZES = [(1, 1), (1, 2), (3, 1), (7, 5), (8, 5), (8, 8), (9, 13), (40, 3)]
KINDS = ["resize", "crop-or-pad", "center-crop", "contain", "random-crop", "pad"]
UNIT = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("frame", SIZES)
def test_crop_or_pad_matches_tensorflow(
    tf: Any, size: tuple[int, int], frame: tuple[int, int]
) -> None:
    numbers = np.arange(1, size[0] * size[1] + 1).reshape(*size, 1)
    expected = tf.image.resize_with_crop_or_pad(numbers, *frame).numpy()[..., 0]
    place = Fit("crop-or-pad", frame).place(*size)
    assert (place.to_height, place.to_width) == (place.height, place.width)
    np.testing.assert_array_equal(_laid(numbers[..., 0], place), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("frame", SIZES)
def test_contain_matches_tensorflow_resize_with_pad(
    tf: Any, size: tuple[int, int], frame: tuple[int, int]
) -> None:
    """Where its padding is shows where it puts an image of ones. Where no row or no column of a
    long image would be left, one is kept here.
    """
    place = Fit("contain", frame).place(*size)
    assert place[:4] == (0, 0, *size)
    if size[0] * frame[1] < size[1] or size[1] * frame[0] < size[0]:  # TensorFlow refuses that
        assert 1 in (place.to_height, place.to_width)
        return
    expected = tf.image.resize_with_pad(np.ones((*size, 1), np.float32), *frame).numpy()[..., 0]
    laid = np.zeros(frame)
    laid[
        place.at_top : place.at_top + place.to_height,
        place.at_left : place.at_left + place.to_width,
    ] = 1
    np.testing.assert_array_equal(laid, expected)


@pytest.mark.parametrize(
    ("size", "frame", "shorter", "expected"),
    [
        ((100, 200), (50, 50), None, (0, 50, 100, 100, 50, 50, 0, 0, 50, 50)),
        ((200, 100), (50, 50), None, (50, 0, 100, 100, 50, 50, 0, 0, 50, 50)),
        ((375, 500), (224, 224), 256, (23, 86, 328, 328, 224, 224, 0, 0, 224, 224)),
        ((10, 10), (30, 20), None, (0, 1, 10, 7, 30, 20, 0, 0, 30, 20)),
        ((100, 100), (20, 60), 40, (25, 0, 50, 100, 20, 40, 0, 10, 20, 60)),  # padded
        ((1, 1), (3, 7), None, (0, 0, 1, 1, 3, 7, 0, 0, 3, 7)),
    ],
)
def test_center_crop(
    size: tuple[int, int],
    frame: tuple[int, int],
    shorter: int | None,
    expected: tuple[int, ...],
) -> None:
    assert Fit("center-crop", frame, shorter).place(*size) == (*expected, False, False)


@given(SIDES, SIDES, st.lists(UNIT, min_size=22, max_size=22))
def test_random_crop_matches_torchvision(height: int, width: int, numbers: list[float]) -> None:
    place = Fit("random-crop", (7, 9)).place(height, width, numbers)
    assert place[:4] == _torchvision(height, width, numbers)
    assert place[4:10] == (7, 9, 0, 0, 7, 9)


@pytest.mark.parametrize("size", [(10, 1000), (1000, 10), (1, 1), (1, 5)])
def test_random_crop_falls_back_to_the_centre(size: tuple[int, int]) -> None:
    fit = Fit("random-crop", (5, 5), crop_area=(1.0, 1.0))
    place = fit.place(*size, [0.4] * fit.number_count)
    assert place[:4] == _torchvision(*size, [0.4] * 22, area=(1.0, 1.0))
    assert abs(2 * place.top + place.height - size[0]) <= 1
    assert abs(2 * place.left + place.width - size[1]) <= 1


def test_random_crops_cover_areas_and_positions() -> None:
    fit = Fit("random-crop", (5, 5), crop_area=(0.25, 0.5))
    draws = np.random.default_rng(0).random((2000, fit.number_count)).tolist()
    places = [fit.place(400, 600, numbers) for numbers in draws]
    areas = np.array([place.height * place.width for place in places]) / 240_000
    assert 0.245 < areas.min() < 0.26
    assert 0.49 < areas.max() < 0.505
    assert abs(areas.mean() - 0.375) < 0.01
    middles = np.array([(p.top + p.height / 2, p.left + p.width / 2) for p in places])
    np.testing.assert_allclose(middles.mean(0), (200, 300), atol=8)


def test_pad_scales_by_either_side() -> None:
    assert Fit("pad").place(300, 400)[4:6] == (300, 400)
    assert Fit("pad", shorter_side=150).place(300, 400)[4:6] == (150, 200)
    assert Fit("pad", longer_side=800).place(300, 400)[4:6] == (600, 800)
    assert Fit("pad", shorter_side=150, longer_side=180).place(300, 400)[4:6] == (135, 180)
    assert Fit("pad", longer_side=10).place(1, 4000)[4:6] == (1, 10)


def test_larger_frame_keeps_the_image_at_the_top_left_when_flipped() -> None:
    for mirrors in (False, True):
        for overturns in (False, True):
            place = Fit("pad").place(2, 3)._replace(is_mirrored=mirrors, is_upside_down=overturns)
            laid = _laid(np.ones((2, 3), int), in_frame(place, 4, 7))
            assert laid.shape == (4, 7)
            assert laid[:2, :3].all()
            assert laid.sum() == 6


@pytest.mark.parametrize(
    ("flip", "expected"),
    [
        (None, {(False, False)}),
        ("horizontal", {(False, False), (True, False)}),
        ("vertical", {(False, False), (False, True)}),
        ("both", {(False, False), (True, False), (False, True), (True, True)}),
    ],
)
def test_flips_are_independent_with_probability_one_half(flip: Any, expected: set[Any]) -> None:
    fit = Fit("resize", (4, 4), flip=flip)
    draws = np.random.default_rng(1).random((4000, fit.number_count)).tolist()
    found = [fit.place(5, 5, numbers)[10:] for numbers in draws]
    assert set(found) == expected
    for outcome in expected:
        assert abs(found.count(outcome) / 4000 - 1 / len(expected)) < 0.03


@given(
    st.sampled_from(KINDS),
    st.tuples(SIDES, SIDES),
    st.tuples(SIDES, SIDES),
    st.lists(UNIT, min_size=24, max_size=24),
    st.none() | SIDES,
)
def test_parts_lie_within_image_and_frame(
    kind: Any,
    size: tuple[int, int],
    frame: tuple[int, int],
    numbers: Sequence[float],
    shorter: int | None,
) -> None:
    side = shorter if kind in ("center-crop", "pad") else None
    fit = Fit(kind, None if kind == "pad" else frame, side, flip="both")
    place = fit.place(*size, numbers[: fit.number_count])
    if kind != "pad":
        assert (place.frame_height, place.frame_width) == frame
    for start, length, side_length in (
        (place.top, place.height, size[0]),
        (place.left, place.width, size[1]),
        (place.at_top, place.to_height, place.frame_height),
        (place.at_left, place.to_width, place.frame_width),
    ):
        assert length >= 1
        assert 0 <= start <= side_length - length


def _laid(numbers: np.ndarray, place: Placement) -> np.ndarray:
    """The part in its frame, made with NumPy, without resizing."""
    frame = np.zeros((place.frame_height, place.frame_width), numbers.dtype)
    part = numbers[place.top : place.top + place.height, place.left : place.left + place.width]
    frame[
        place.at_top : place.at_top + place.to_height,
        place.at_left : place.at_left + place.to_width,
    ] = part
    if place.is_mirrored:
        frame = frame[:, ::-1]
    return frame[::-1] if place.is_upside_down else frame


def _torchvision(
    height: int, width: int, numbers: Sequence[float], area: tuple[float, float] = (0.08, 1.0)
) -> tuple[int, int, int, int]:
    """RandomResizedCrop.get_params, with its random numbers given: two for each of ten tries, and
    two for the place.
    """
    log_ratio = (math.log(3 / 4), math.log(4 / 3))
    for number in range(10):
        target_area = height * width * (area[0] + (area[1] - area[0]) * numbers[2 * number])
        aspect = math.exp(log_ratio[0] + (log_ratio[1] - log_ratio[0]) * numbers[2 * number + 1])
        w = round(math.sqrt(target_area * aspect))
        h = round(math.sqrt(target_area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(numbers[20] * (height - h + 1)), int(numbers[21] * (width - w + 1)), h, w
    ratio = width / height
    w, h = width, height
    if ratio < 3 / 4:
        h = round(w / (3 / 4))
    elif ratio > 4 / 3:
        w = round(h * (4 / 3))
    h, w = max(1, min(h, height)), max(1, min(w, width))
    return (height - h) // 2, (width - w) // 2, h, w


def test_contain_rounds_like_tensorflow(tf: Any) -> None:
    """float32 gives 223.99998 rows for 7 of 100 sizes in a frame of 224."""
    heights = range(60, 120)
    placed = [Fit("contain", (224, 224)).place(height, 60) for height in heights]
    expected = []
    for height in heights:
        laid = tf.image.resize_with_pad(np.ones((height, 60, 1), np.float32), 224, 224).numpy()
        expected.append((np.count_nonzero(laid.any((1, 2))), np.count_nonzero(laid.any((0, 2)))))
    assert [(place.to_height, place.to_width) for place in placed] == expected
    assert {223, 224} <= {height for height, _ in expected}
