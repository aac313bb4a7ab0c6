"""Erases a random box of each image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.loading.augment.checks import (
    RowAugmentation,
    is_number,
    number,
    number_range,
)
from recordsmith.support.errors import OptionError

_TRIES = 10  # to find a box that fits, as in torchvision


@dataclass(frozen=True, kw_only=True)
class RandomErasing(RowAugmentation):
    """Erase a random box of some images, as torchvision's RandomErasing.

    Each image has its own box, and all steps of a window of `Episodes` have the same. An image in
    which no box fits, after ten tries, stays as it is.

    Attributes:
        probability: of erasing a box of an image.
        scale: the smallest and the largest share of the image's area.
        ratio: the smallest and the largest aspect ratio (height / width).
        value: what erased pixels become: one number, one for each channel, or `random` for noise:
            even from 0 to 255 in uint8, standard normal in float32.
        image: the name of the images: uint8 or float32, (batch, height, width, channels), or of
            windows (batch, steps, height, width, channels); in `map_examples`, without the axis of
            the batch.

    Raises:
        OptionError: an option is invalid, or, when called, images do not match.

    Example:
        erasing = rs.RandomErasing(probability=0.25, value="random")
        loader = rs.Loader(dataset, {"image": rs.Image(size=64)}, batch_size=8, map_batches=erasing)
        print(next(iter(loader))["image"].shape)  # (8, 64, 64, 3)
    """

    probability: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    value: float | Sequence[float] | Literal["random"] = 0
    image: str = "image"
    _dtypes: ClassVar = ("uint8", "float32")

    def __post_init__(self) -> None:
        number("probability", self.probability, 0, 1)
        number_range("scale", self.scale, 0, 1)
        if number_range("ratio", self.ratio, 0, math.inf)[0] == 0:
            raise OptionError(option="ratio", value=self.ratio, expected="positive")
        values = self.value if isinstance(self.value, (tuple, list)) else [self.value]
        if self.value != "random" and not (values and all(map(is_number, values))):
            expected = "a number, one for each channel, or 'random'"
            raise OptionError(option="value", value=self.value, expected=expected)

    def _changed(
        self, images: npt.NDArray[Any], generator: np.random.Generator
    ) -> npt.NDArray[Any]:
        erased, fill = images.copy(), self._fill(images)
        for row in np.flatnonzero(generator.random(len(images)) < self.probability):
            box = self._box(erased[row], generator)
            if fill is not None:
                box[:] = fill
            elif images.dtype == np.uint8:
                box[:] = generator.integers(0, 256, box.shape[1:], np.uint8)
            else:
                box[:] = generator.standard_normal(box.shape[1:], np.float32)
        return erased

    def _fill(self, images: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """Return the value of each channel, or one for all; None for noise."""
        if self.value == "random":
            return None
        values, channels = np.atleast_1d(np.asarray(self.value, np.float64)), images.shape[-1]
        if len(values) not in (1, channels):
            expected = f"one number, or one for each of the {channels} channels"
            raise OptionError(option="value", value=self.value, expected=expected)
        if images.dtype == np.uint8 and (values.min() < 0 or values.max() > 255):
            raise OptionError(option="value", value=self.value, expected="from 0 to 255 for uint8")
        return values

    def _box(self, steps: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[Any]:
        """Return a random part of the images of some steps, without pixels if none fits."""
        height, width = steps.shape[1:3]
        for _ in range(_TRIES):
            area = height * width * generator.uniform(*self.scale)
            ratio = math.exp(generator.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            rows, columns = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if rows < height and columns < width:
                top = generator.integers(height - rows + 1)
                left = generator.integers(width - columns + 1)
                return steps[:, top : top + rows, left : left + columns]
        return steps[:, :0]
