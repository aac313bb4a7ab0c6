"""Convert pixels to network inputs: dtype, scale and layout.

8-bit values come from a lookup table per channel, computed in float64 and rounded once; 16-bit and
float values are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Layout = Literal["HWC", "CHW"]


class Normaliser:
    """Writes frames of pixels with one dtype and one layout.

    Pixels are uint8, uint16, or float32 in the range of either, (height, width, channels).
    """

    def __init__(
        self, dtype: npt.DTypeLike, layout: Layout, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        """`mean`, `std`: per channel, in units of [0, 1]; used for float32 only."""
        self._is_float = np.dtype(dtype) == np.float32
        self._dtype = np.dtype(dtype)
        self._is_planar = layout == "CHW"
        self._mean, self._std = np.array(mean, np.float64), np.array(std, np.float64)
        levels = np.arange(256) / 255
        tables = (levels - self._mean[:, np.newaxis]) / self._std[:, np.newaxis]
        self._tables = tables.astype(np.float32)
        self._shifts = (-self._mean / self._std).astype(np.float32)

    def write(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any], largest: int) -> None:
        """Write a frame to `out`: (height, width, channels), or (channels, height, width)."""
        if not self._is_float:
            self._write_whole(pixels, out)
            return
        from recordsmith.image.kernel.normalising import normalise

        factors = self._tables
        if pixels.dtype != np.uint8:
            factors = (1 / (largest * self._std)).astype(np.float32)[:, np.newaxis]
        normalise(pixels, factors, self._shifts, out, self._is_planar)

    def _write_whole(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        if pixels.dtype != self._dtype:
            np.rint(pixels, out=pixels)
            pixels = np.clip(pixels, 0, np.iinfo(self._dtype).max).astype(self._dtype)
        if self._is_planar:
            _split(pixels, out)
        else:
            np.copyto(out, pixels)


def _split(pixels: npt.NDArray[Any], planes: npt.NDArray[Any]) -> None:
    from recordsmith.support.libraries import cv2

    if pixels.shape[2] == 1:
        np.copyto(planes[0], pixels[:, :, 0])
        return
    targets = list(planes)
    for written, target in zip(cv2.split(pixels, targets), targets, strict=True):
        if written is not target:  # OpenCV silently allocated another array
            target[...] = written
