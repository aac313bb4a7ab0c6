"""SSIM equals that of scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recordsmith.writing.forecasting import fidelity
from recordsmith.writing.forecasting.fidelity import structural_similarity

LUMA = np.array([0.299, 0.587, 0.114])
EXPECTED = {
    "equal": 1.0,
    "noise": 0.5801458794303737,
    "shift": 0.9886047274478863,
    "blur": 0.9541100489814919,
}
"""By scikit-image 0.26.0 with gaussian_weights, sigma=1.5 and without use_sample_covariance."""


def pair(change: str) -> tuple[Any, Any]:
    """An image of 90 x 64 pixels and a changed copy."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:64, 0:90]
    base = np.stack([127 + 80 * np.sin(x / 9) * np.cos(y / 7), 60 + 1.5 * x, 200 - 2 * y], axis=2)
    noise = {
        "equal": 0 * base,
        "noise": rng.normal(0, 12, base.shape),
        "shift": np.full(base.shape, 20.0),
        "blur": -0.5 * (base - base.mean((0, 1))),
    }[change]
    first, second = (np.clip(np.rint(v), 0, 255).astype(np.uint8) for v in (base, base + noise))
    return first, second


@pytest.mark.parametrize("change", EXPECTED)
@pytest.mark.parametrize("strip_pixels", [1 << 20, 90, 1000])
def test_fidelity_is_that_of_scikit_image(
    change: str, strip_pixels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fidelity, "_STRIP_PIXELS", strip_pixels)
    assert structural_similarity(*pair(change)) == pytest.approx(EXPECTED[change], abs=1e-5)


def test_frozen_figures_are_those_of_the_installed_scikit_image() -> None:
    metrics = pytest.importorskip("skimage.metrics")
    for change, expected in EXPECTED.items():
        first, second = pair(change)
        grey = (first.astype(float) @ LUMA, second.astype(float) @ LUMA)
        options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
        found = metrics.structural_similarity(*grey, data_range=255, **options)
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("height", "width", "is_defined"), [(10, 50, False), (11, 11, True)])
def test_ssim_needs_a_whole_window(height: int, width: int, is_defined: bool) -> None:
    pixels = np.full((height, width, 1), 9, np.uint8)
    assert (structural_similarity(pixels, pixels) is not None) == is_defined
