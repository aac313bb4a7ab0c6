"""How close decoded pixels are to the pixels before encoding: PSNR and SSIM."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

_PEAK = 255.0
_WINDOW, _SIGMA = 11, 1.5
_STABLE_MEAN, _STABLE_VARIANCE = (0.01 * _PEAK) ** 2, (0.03 * _PEAK) ** 2
_STRIP_PIXELS = 1 << 20  # images are compared in strips, to use little memory
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


class Fidelity(NamedTuple):
    """How close an image is to its original.

    psnr: 10 log10(255² / mean squared error) over all channels, in decibels; None if all pixels
        are equal.
    ssim: from 0 to 1 for equal images; None for images of less than 11 pixels a side.
    """

    psnr: float | None
    ssim: float | None


def compare_pixels(original: Any, stored: Any) -> Fidelity:
    """Compare two images of one shape: uint8, (height, width, 1 or 3).

    SSIM is that of the brightness (Wang et al. 2004), with their parameters: a Gaussian window of
    11 x 11 pixels with sigma 1.5, K1 = 0.01 and K2 = 0.03, where the window is inside the image.
    """
    height, width = map(int, original.shape[:2])
    margin = _WINDOW - 1  # of rows that the windows of two strips share
    squares, total = 0, 0.0
    for start in range(0, height, max(1, _STRIP_PIXELS // width)):
        stop = start + max(1, _STRIP_PIXELS // width)
        first, second = original[start:stop].astype(np.int32), stored[start:stop]
        squares += int(np.square(first - second).sum(dtype=np.int64))
        if min(height, width) >= _WINDOW and start < height - margin:
            strip = slice(start, stop + margin)
            total += _similarity(_luma(original[strip]), _luma(stored[strip]))
    psnr = 10 * math.log10(_PEAK**2 * original.size / squares) if squares else None
    if min(height, width) < _WINDOW:
        return Fidelity(psnr, None)
    return Fidelity(psnr, total / ((height - margin) * (width - margin)))


def _similarity(x: Any, y: Any) -> float:
    """The sum of the structural similarity of all windows that are inside two strips."""
    import cv2

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
    if pixels.shape[2] == 1:
        return pixels[:, :, 0].astype(np.float32)
    import cv2

    return cv2.transform(pixels.astype(np.float32), np.array([_LUMA], np.float32))
