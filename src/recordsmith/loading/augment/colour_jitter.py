"""Changes brightness, contrast, saturation and hue of images at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from recordsmith.image import jitter
from recordsmith.loading.augment.checks import RowAugmentation, number, number_range

_STEPS = ("brightness", "contrast", "saturation", "hue")  # as the kernel numbers them

_HIGHEST = 1e6  # times levels, it is an int32 in the kernel

FactorRange = float | tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ColorJitter(RowAugmentation):
    """Change brightness, contrast, saturation and hue of each image, in random order.

    The meaning of the options, and the result for given factors, are those of torchvision's
    ColorJitter for uint8, to one level for each change. Each image has its own factors and order,
    and all steps of a window of `Episodes` have the same.

    Attributes:
        brightness, contrast, saturation: a number x for factors from max(0, 1 - x) to 1 + x, or
            the smallest and the largest factor, up to 1e6. Factor 1 changes nothing. Factor 0 makes
            an image black, one grey, or shades of grey.
        hue: a number x up to 0.5 for turns from -x to x, or the smallest and the largest turn. 0.5
            is half of the colour circle.
        image: the name of the images: uint8, (batch, height, width, 3), or of windows (batch,
            steps, height, width, 3); in `map_examples`, without the axis of the batch.

    Raises:
        OptionError: an option is invalid, or, when called, images do not match.

    Example:
        jitter = rs.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)
        features = {"image": rs.Image(size=64), "label": "image/class/label"}
        loader = rs.Loader(dataset, features, batch_size=8, map_batches=jitter)
        print(next(iter(loader))["image"].dtype)  # uint8
    """

    brightness: FactorRange = 0.0
    contrast: FactorRange = 0.0
    saturation: FactorRange = 0.0
    hue: FactorRange = 0.0
    image: str = "image"
    _dtypes: ClassVar = ("uint8",)
    _channels: ClassVar = (3,)

    def __post_init__(self) -> None:
        self._ranges()

    def _ranges(self) -> dict[int, tuple[float, float]]:
        """Return the smallest and the largest factor of each step that changes something."""
        ranges = {}
        for step, name in enumerate(_STEPS):
            value, centre = getattr(self, name), float(name != "hue")
            lowest, highest = (0.0, _HIGHEST) if centre else (-0.5, 0.5)
            if isinstance(value, (tuple, list)):
                begin, end = number_range(name, value, lowest, highest)
            else:
                reach = number(name, value, 0, highest)
                begin, end = max(lowest, centre - reach), centre + reach
            if not begin == end == centre:
                ranges[step] = begin, end
        return ranges

    def _changed(
        self, images: npt.NDArray[Any], generator: np.random.Generator
    ) -> npt.NDArray[Any]:
        ranges, (count, step_count) = self._ranges(), images.shape[:2]
        steps = np.tile(np.fromiter(ranges, np.int8), (count, 1))
        factors = np.zeros((count, len(_STEPS)))
        for step, (begin, end) in ranges.items():
            factors[:, step] = generator.uniform(begin, end, count)
        steps = generator.permuted(steps, axis=1).repeat(step_count, axis=0)
        factors = factors.repeat(step_count, axis=0)
        changed, shape = np.empty_like(images), (len(steps), -1, 3) if len(steps) else (0, 0, 3)
        jitter(images.reshape(shape), steps, factors, changed.reshape(shape))
        return changed
