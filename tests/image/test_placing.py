"""Writing pixels into frames, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.image import Fit, Placement, divisor_for, place_image, place_mask, resize_nearest

KINDS = ["resize", "crop-or-pad", "center-crop", "contain", "random-crop"]
DTYPES = [np.uint8, np.uint16, np.float32]


def _noise(height: int, width: int, channels: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, channels)).astype(dtype)


def _turned(frame: np.ndarray, place: Placement) -> np.ndarray:
    frame = frame[:, ::-1] if place.is_mirrored else frame
    return frame[::-1] if place.is_upside_down else frame


def _place(kind: Any, size: tuple[int, int], frame: tuple[int, int], turn: int) -> Placement:
    place = Fit(kind, frame).place(*size, [0.3] * 22)
    return place._replace(is_mirrored=bool(turn & 1), is_upside_down=bool(turn & 2))


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("size", "frame"), [((5, 9), (8, 4)), ((1, 1), (3, 3)), ((7, 7), (7, 7))])
def test_without_scaling_pixels_are_copied(
    turn: int, channels: int, dtype: Any, size: tuple[int, int], frame: tuple[int, int]
) -> None:
    pixels = _noise(*size, channels)
    place = _place("crop-or-pad", size, frame, turn)
    expected = np.zeros((*frame, channels), dtype)
    expected[
        place.at_top : place.at_top + place.to_height,
        place.at_left : place.at_left + place.to_width,
    ] = pixels[place.top : place.top + place.height, place.left : place.left + place.width]
    batch = np.full((3, *frame, channels), 77, dtype)
    place_image(pixels.astype(dtype), place, batch[1])
    np.testing.assert_array_equal(batch[1], _turned(expected, place))
    assert (batch[[0, 2]] == 77).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("interpolation", ["auto", "linear", "area", "nearest", "cubic"])
def test_exactly_the_frame_is_written(
    kind: str, turn: int, channels: int, interpolation: Any
) -> None:
    """An image of one colour, surrounded by black."""
    for size, frame in (((5, 9), (8, 4)), ((1, 1), (3, 5)), ((40, 30), (7, 6)), ((9, 1), (1, 9))):
        place = _place(kind, size, frame, turn)
        pixels = np.full((*size, channels), 200, np.uint8)
        batch = np.full((3, *frame, channels), 77, np.uint8)
        place_image(pixels, place, batch[1], interpolation=interpolation)
        expected = np.zeros((*frame, channels), np.uint8)
        expected[
            place.at_top : place.at_top + place.to_height,
            place.at_left : place.at_left + place.to_width,
        ] = 200
        np.testing.assert_array_equal(batch[1], _turned(expected, place))
        assert (batch[[0, 2]] == 77).all()


def test_auto_interpolation() -> None:
    pixels = _noise(60, 60, 3)
    for size, is_area in (((30, 30), False), ((20, 60), False), ((29, 30), True), ((10, 10), True)):
        frames = {}
        for interpolation in ("auto", "linear", "area"):
            frames[interpolation] = np.empty((*size, 3), np.uint8)
            place = Fit("resize", size).place(60, 60)
            place_image(pixels, place, frames[interpolation], interpolation=interpolation)  # type: ignore[arg-type]
        expected = frames["area" if is_area else "linear"]
        np.testing.assert_array_equal(frames["auto"], expected)


@given(
    st.sampled_from(KINDS),
    st.tuples(st.integers(1, 600), st.integers(1, 600)),
    st.tuples(st.integers(1, 300), st.integers(1, 300)),
)
def test_reduced_image_is_large_enough(
    kind: Any, size: tuple[int, int], frame: tuple[int, int]
) -> None:
    place = Fit(kind, frame).place(*size, [0.7] * 22)
    divisor = divisor_for(place, *size)
    assert divisor in (1, 2, 4, 8)
    assert place.height >= divisor * place.to_height or divisor == 1
    assert place.width >= divisor * place.to_width or divisor == 1
    small = np.full((-(-size[0] // divisor), -(-size[1] // divisor), 3), 9, np.uint8)
    out = np.zeros((*frame, 3), np.uint8)
    place_image(small, place, out, divisor=divisor)
    assert np.count_nonzero(out[..., 0]) == place.to_height * place.to_width


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_class_numbers_use_nearest_neighbour(turn: int, kind: str, dtype: Any) -> None:
    for size, frame in (((5, 9), (8, 4)), ((1, 1), (3, 5)), ((40, 30), (7, 6)), ((6, 7), (6, 7))):
        numbers = np.arange(size[0] * size[1], dtype=np.uint16).reshape(size) % 200
        place = _place(kind, size, frame, turn)
        part = numbers[place.top : place.top + place.height, place.left : place.left + place.width]
        expected = np.full(frame, 255)
        expected[
            place.at_top : place.at_top + place.to_height,
            place.at_left : place.at_left + place.to_width,
        ] = resize_nearest(part, place.to_height, place.to_width)
        batch = np.full((3, *frame), 77, dtype)
        place_mask(numbers, place, batch[1], fill=255)
        np.testing.assert_array_equal(batch[1], _turned(expected, place))
        assert (batch[[0, 2]] == 77).all()
