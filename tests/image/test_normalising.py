"""Normalising pixels: exact values in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordsmith.image import Normaliser
from recordsmith.image.kernel.normalising import normalise

MEAN, STD = (0.485, 0.456, 0.406, 0.5), (0.229, 0.224, 0.225, 0.25)


def _all_levels(channels: int) -> np.ndarray:
    levels = np.random.default_rng(0).permutation(256 * channels) % 256
    return levels.reshape(16, 16, channels).astype(np.uint8)


def _write(pixels: np.ndarray, dtype: Any, layout: Any, largest: int, **options: Any) -> np.ndarray:
    """Write into the middle of a batch; returns (height, width, channels)."""
    channels = pixels.shape[2]
    mean, std = options.get("mean", (0,) * channels), options.get("std", (1,) * channels)
    shape = pixels.shape if layout == "HWC" else (channels, *pixels.shape[:2])
    batch = np.full((3, *shape), 77, dtype)
    Normaliser(dtype, layout, mean, std).write(pixels, batch[1], largest)
    assert (batch[[0, 2]] == 77).all()
    return batch[1] if layout == "HWC" else batch[1].transpose(1, 2, 0)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_8_bit_values_are_rounded_once(layout: str, channels: int) -> None:
    pixels = _all_levels(channels)
    mean, std = MEAN[:channels], STD[:channels]
    written = _write(pixels, np.float32, layout, 255)
    np.testing.assert_array_equal(written, (pixels / 255.0).astype(np.float32))
    written = _write(pixels, np.float32, layout, 255, mean=mean, std=std)
    np.testing.assert_array_equal(written, ((pixels / 255.0 - mean) / std).astype(np.float32))


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("largest", [255, 65535])
def test_floats_and_16_bits_are_normalised(layout: str, channels: int, largest: int) -> None:
    fractions = (_all_levels(channels) * (largest / 255) + 0.25).astype(np.float32)
    mean, std = MEAN[:channels], STD[:channels]
    written = _write(fractions.copy(), np.float32, layout, largest, mean=mean, std=std)
    np.testing.assert_allclose(written, (fractions / largest - mean) / std, atol=1e-6)
    deep = _all_levels(channels).astype(np.uint16) * 257
    np.testing.assert_allclose(_write(deep, np.float32, layout, 65535), deep / 65535, atol=1e-7)


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (1, 7), (7, 1), (3, 5), (16, 33), (0, 4), (4, 0), (0, 0)]
)
def test_parts_of_larger_arrays(
    layout: str, channels: int, dtype: Any, height: int, width: int
) -> None:
    """Each value as in float64, rounded once; and nothing is written around the part."""
    largest = 255 if dtype is np.uint8 else 65535
    levels = np.random.default_rng(height).integers(
        0, largest + 1, (height + 2, width + 3, channels)
    )
    pixels = levels.astype(dtype)[1:-1, 2:-1]
    mean, std = MEAN[:channels], STD[:channels]
    expected = (pixels / np.float64(largest) - mean) / std
    room = np.full((height + 2, width + 3, channels), 77, np.float32)
    if layout == "CHW":
        room = room.transpose(2, 0, 1).copy()
    axes = (0, 1) if layout == "HWC" else (1, 2)
    part = [slice(None)] * 3
    part[axes[0]], part[axes[1]] = slice(1, -1), slice(2, -1)
    out = room[tuple(part)]
    Normaliser(np.float32, layout, mean, std).write(pixels, out, largest)  # type: ignore[arg-type]
    written = out if layout == "HWC" else out.transpose(1, 2, 0)
    if dtype is np.uint8:
        np.testing.assert_array_equal(written, expected.astype(np.float32))
    else:
        np.testing.assert_allclose(written, expected, atol=1e-6)
    assert (room == 77).sum() >= room.size - out.size
    assert not (out == 77).any()


@pytest.mark.parametrize("mean", [(0.0,) * 3, MEAN[:3]])
def test_16_bits_and_floats_are_multiplied_and_added_in_float32(mean: Any) -> None:
    """Each step rounds once, on every processor."""
    std = STD[:3]
    every = np.arange(65536 * 3).reshape(256, 256, 3) % 65536
    for pixels in (every.astype(np.uint16), every.astype(np.float32)):
        factors = (1 / (65535 * np.array(std))).astype(np.float32)
        shifts = (-np.array(mean) / std).astype(np.float32)
        expected = pixels.astype(np.float32) * factors + shifts
        written = _write(pixels, np.float32, "CHW", 65535, mean=mean, std=std)
        np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize(
    ("pixels", "tables", "out", "is_planar"),
    [
        ((4, 5, 3), (3, 256), (4, 5, 3), True),
        ((4, 5, 3), (3, 256), (3, 4, 5), False),
        ((4, 5, 3), (3, 256), (3, 5, 4), True),
        ((4, 5, 3), (3, 256), (4, 5, 4), False),
        ((4, 5, 3), (3, 255), (4, 5, 3), False),
        ((4, 5, 3), (2, 256), (4, 5, 3), False),
    ],
)
def test_arrays_that_do_not_match(pixels: Any, tables: Any, out: Any, is_planar: bool) -> None:
    made = np.zeros(pixels, np.uint8), np.zeros(tables, np.float32), np.zeros(3, np.float32)
    target = np.zeros(out, np.float32)
    with pytest.raises(IndexError):
        normalise(*made, target, is_planar)
