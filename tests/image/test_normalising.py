"""Normalising pixels: exact values in every layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordsmith.image.geometry.normalising import Normaliser

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
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_integers_are_kept_and_floats_rounded(layout: str, channels: int, dtype: Any) -> None:
    pixels = _all_levels(channels).astype(dtype)
    np.testing.assert_array_equal(_write(pixels, dtype, layout, 255), pixels)
    fractions = pixels.astype(np.float32)
    fractions += np.where(pixels % 2, 0.49, -0.49).astype(np.float32)
    np.testing.assert_array_equal(_write(fractions, dtype, layout, 255), pixels)
