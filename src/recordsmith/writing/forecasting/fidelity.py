"""How close decoded pixels are to the pixels before encoding."""

from __future__ import annotations

from typing import Any

import numpy as np

_PEAK = 255.0
_WINDOW, _SIGMA = 11, 1.5
MIN_SIDE = _WINDOW
"""Smaller images cannot be compared."""

_STABLE_MEAN, _STABLE_VARIANCE = (0.01 * _PEAK) ** 2, (0.03 * _PEAK) ** 2
_STRIP_PIXELS = 1 << 20  # images are compared in strips, to use little memory
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


def structural_similarity(original: Any, stored: Any) -> float | None:
    """Compare two images of one shape: uint8, (height, width, 1 or 3).

    SSIM is that of the brightness (Wang et al. 2004), with their parameters: a Gaussian window of
    11 x 11 pixels with sigma 1.5, K1 = 0.01 and K2 = 0.03, where the window is inside the image.
    It is 1 for equal images, and None for images of less than 11 pixels a side.
    """
    height, width = map(int, original.shape[:2])
    margin = _WINDOW - 1  # of rows that the windows of two strips share
    if min(height, width) < _WINDOW:
        return None
    rows = max(1, _STRIP_PIXELS // width)
    total = 0.0
    for start in range(0, height - margin, rows):
        strip = slice(start, start + rows + margin)
        total += _similarity(_luma(original[strip]), _luma(stored[strip]))
    return total / ((height - margin) * (width - margin))


def _similarity(x: Any, y: Any) -> float:
    """The sum of the structural similarity of all windows that are inside two strips."""
    from recordsmith.support.libraries import cv2

    window = cv2.getGaussianKernel(_WINDOW, _SIGMA, cv2.CV_32F)
    margin = _WINDOW // 2

    def averaged(values: Any) -> Any:
        blurred = cv2.sepFilter2D(values, cv2.CV_32F, window, window)
        return blurred[margin : len(values) - margin, margin : values.shape[1] - margin]

    x, y = x - np.float32(_PEAK / 2), y - np.float32(_PEAK / 2)  # squares lose fewer digits
    mean_x, mean_y = averaged(x), averaged(y)
    variances = averaged(x * x) + averaged(y * y) - mean_x**2 - mean_y**2
    covariance = averaged(x * y) - mean_x * mean_y
    mean_x, mean_y = mean_x + np.float32(_PEAK / 2), mean_y + np.float32(_PEAK / 2)
    luminance = (2 * mean_x * mean_y + _STABLE_MEAN) / (mean_x**2 + mean_y**2 + _STABLE_MEAN)
    structure = (2 * covariance + _STABLE_VARIANCE) / (variances + _STABLE_VARIANCE)
    return float((luminance * structure).sum(dtype=np.float64))


def _luma(pixels: Any) -> Any:
    """The brightness of grey or RGB pixels: float32, (height, width), 0-255."""
    return pixels.astype(np.float32) @ np.array(_LUMA if pixels.shape[2] == 3 else [1], np.float32)
