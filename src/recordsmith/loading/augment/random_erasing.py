"""Erases a random box of each image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError
from recordsmith.loading.augment.checks import images_of, is_number, number, number_range

_TRIES = 10  # to find a box that fits, as in torchvision


@dataclass(frozen=True, kw_only=True)
class RandomErasing:
    """Erase a random box of some images, as torchvision's RandomErasing.

    Each image has its own box. An image in which no box fits, after ten tries, stays as it is.

    Attributes:
        probability: of erasing a box of an image.
        scale: the smallest and the largest share of the image's area.
        ratio: the smallest and the largest aspect ratio (height / width).
        value: what erased pixels become: one number, one for each channel, or `random` for noise:
            even from 0 to 255 in uint8, standard normal in float32.
        image: the name of the images: uint8 or float32, (batch, height, width, channels); in
            `map_examples`, (height, width, channels).

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

    def __post_init__(self) -> None:
        number("probability", self.probability, 0, 1)
        number_range("scale", self.scale, 0, 1)
        if number_range("ratio", self.ratio, 0, math.inf)[0] == 0:
            raise OptionError(option="ratio", value=self.ratio, expected="positive")
        values = self.value if isinstance(self.value, (tuple, list)) else [self.value]
        if self.value != "random" and not (values and all(map(is_number, values))):
            expected = "a number, one for each channel, or 'random'"
            raise OptionError(option="value", value=self.value, expected=expected)

    def __call__(self, batch: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        """Return the batch, or the example, with boxes erased."""
        images = images_of(batch, self.image, ("uint8", "float32"), example=True)
        erased, fill = images.copy(), self._fill(images)
        for row in np.flatnonzero(generator.random(len(images)) < self.probability):
            box = self._box(erased[row], generator)
            if fill is not None:
                box[:] = fill
            elif images.dtype == np.uint8:
                box[:] = generator.integers(0, 256, box.shape, np.uint8)
            else:
                box[:] = generator.standard_normal(box.shape, np.float32)
        return {**batch, self.image: erased.reshape(batch[self.image].shape)}

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

    def _box(self, image: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[Any]:
        """Return a random part of an image, without pixels if none fits."""
        height, width = image.shape[:2]
        for _ in range(_TRIES):
            area = height * width * generator.uniform(*self.scale)
            ratio = math.exp(generator.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            rows, columns = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if rows < height and columns < width:
                top = generator.integers(height - rows + 1)
                left = generator.integers(width - columns + 1)
                return image[top : top + rows, left : left + columns]
        return image[:0]
