"""How close decoded pixels are to the pixels before encoding: PSNR and SSIM."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_PEAK = 255.0
_WINDOW, _SIGMA = 11, 1.5
_STABLE_MEAN, _STABLE_VARIANCE = (0.01 * _PEAK) ** 2, (0.03 * _PEAK) ** 2
_STRIP_PIXELS = 1 << 20  # images are compared in strips, to use little memory
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601


class Fidelity(NamedTuple):
    """How close an image is to its original.

    psnr: in decibels; None if all pixels are equal.
    ssim: from 0 to 1 for equal images; None for images of less than 11 pixels a side.
    """

    psnr: float | None
    ssim: float | None


def compare_pixels(original: Any, stored: Any) -> Fidelity:
    """Compare two images of one shape: uint8, (height, width, 1 or 3)."""
    return Fidelity(psnr(original, stored), ssim(original, stored))


def psnr(original: Any, stored: Any) -> float | None:
    """Peak signal-to-noise ratio over all channels: 10 log10(255² / mean squared error)."""
    squares, step = 0, _rows(original)
    for start in range(0, len(original), step):
        first, second = (
            image[start : start + step].astype(np.int32) for image in (original, stored)
        )
        squares += int(np.square(first - second).sum(dtype=np.int64))
    return 10 * math.log10(_PEAK**2 * original.size / squares) if squares else None


def ssim(original: Any, stored: Any) -> float | None:
    """Mean structural similarity of the brightness of two images (Wang et al. 2004).

    With their parameters: a Gaussian window of 11 x 11 pixels with sigma 1.5, K1 = 0.01 and
    K2 = 0.03, where the window is inside the image. There is no scaling before.

    Args:
        original, stored: uint8, (height, width, 1 or 3).
    """
    import cv2

    height, width = map(int, original.shape[:2])
    if min(height, width) < _WINDOW:
        return None
    window = cv2.getGaussianKernel(_WINDOW, _SIGMA, cv2.CV_32F)
    margin = _WINDOW // 2

    def averaged(values: Any) -> Any:
        blurred = cv2.sepFilter2D(values, cv2.CV_32F, window, window)
        return blurred[margin : len(values) - margin, margin : width - margin]

    total, step = 0.0, _rows(original)
    for start in range(0, height - _WINDOW + 1, step):
        rows = slice(start, start + step + _WINDOW - 1)
        # float32 is precise enough if values are near 0
        x, y = (luma(image[rows]) - np.float32(_PEAK / 2) for image in (original, stored))
        mean_x, mean_y = averaged(x), averaged(y)
        variances = averaged(x * x + y * y) - mean_x**2 - mean_y**2
        covariance = averaged(x * y) - mean_x * mean_y
        mean_x, mean_y = mean_x + np.float32(_PEAK / 2), mean_y + np.float32(_PEAK / 2)
        luminance = (2 * mean_x * mean_y + _STABLE_MEAN) / (mean_x**2 + mean_y**2 + _STABLE_MEAN)
        structure = (2 * covariance + _STABLE_VARIANCE) / (variances + _STABLE_VARIANCE)
        total += float((luminance * structure).sum(dtype=np.float64))
    return total / ((height - _WINDOW + 1) * (width - _WINDOW + 1))


def luma(pixels: Any) -> npt.NDArray[np.float32]:
    """The brightness of grey or RGB pixels: float32, (height, width), 0-255."""
    if pixels.shape[2] == 1:
        grey: npt.NDArray[np.float32] = pixels[:, :, 0].astype(np.float32)
        return grey
    import cv2

    weights = np.array([_LUMA], np.float32)
    return cv2.transform(pixels.astype(np.float32), weights)  # type: ignore[return-value]


def _rows(image: Any) -> int:
    return max(1, _STRIP_PIXELS // int(image.shape[1]))
