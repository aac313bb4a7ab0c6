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
        self,
        dtype: npt.DTypeLike,
        layout: Layout,
        mean: Sequence[float],
        std: Sequence[float],
    ) -> None:
        """`mean`, `std`: per channel, in units of [0, 1]; used for float32 only."""
        self._is_float = np.dtype(dtype) == np.float32
        self._dtype = np.dtype(dtype)
        self._is_planar = layout == "CHW"
        self._mean, self._std = np.array(mean, np.float64), np.array(std, np.float64)
        levels = np.arange(256)[:, np.newaxis] / 255
        table = ((levels - self._mean) / self._std).astype(np.float32)
        self._table = table.reshape(1, 256, len(mean))
        self._channel_tables = [np.ascontiguousarray(column)[np.newaxis] for column in table.T]

    def write(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any], largest: int) -> None:
        """Write a frame to `out`: (height, width, channels), or (channels, height, width).

        Args:
            largest: the pixel value that becomes 1: 255 or 65,535.
        """
        if not self._is_float:
            self._write_whole(pixels, out)
        elif pixels.dtype == np.uint8:
            self._look_up(pixels, out)
        else:
            self._compute(pixels, out, largest)

    def _write_whole(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        if pixels.dtype != self._dtype:
            np.rint(pixels, out=pixels)
            pixels = np.clip(pixels, 0, np.iinfo(self._dtype).max).astype(self._dtype)
        if self._is_planar:
            _split(pixels, out)
        else:
            np.copyto(out, pixels)

    def _look_up(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
        import cv2

        if self._is_planar:
            planes = np.empty((pixels.shape[2], *pixels.shape[:2]), np.uint8)
            _split(pixels, planes)
            for plane, table, target in zip(planes, self._channel_tables, out, strict=True):
                _written(cv2.LUT(plane, table, dst=target), target)
        elif pixels.shape[2] == 1:
            target = out[:, :, 0]
            _written(cv2.LUT(pixels[:, :, 0], self._channel_tables[0], dst=target), target)
        else:
            _written(cv2.LUT(pixels, self._table, dst=out), out)

    def _compute(self, pixels: npt.NDArray[Any], out: npt.NDArray[Any], largest: int) -> None:
        factors = (1 / (largest * self._std)).astype(np.float32)
        shifts = (-self._mean / self._std).astype(np.float32)
        for channel in range(pixels.shape[2]):
            target = out[channel] if self._is_planar else out[:, :, channel]
            np.multiply(pixels[:, :, channel], factors[channel], out=target)
            if shifts[channel]:
                target += shifts[channel]


def _split(pixels: npt.NDArray[Any], planes: npt.NDArray[Any]) -> None:
    import cv2

    if pixels.shape[2] == 1:
        np.copyto(planes[0], pixels[:, :, 0])
        return
    targets = list(planes)
    for written, target in zip(cv2.split(pixels, targets), targets, strict=True):
        _written(written, target)


def _written(written: Any, target: npt.NDArray[Any]) -> None:
    """Copy the result if OpenCV silently allocated another array instead of using `target`."""
    if written is not target:
        target[...] = written
