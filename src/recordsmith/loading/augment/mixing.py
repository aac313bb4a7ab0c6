"""Mixes each image of a batch with the one before it, and their labels in the same proportion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recordsmith.image import mix
from recordsmith.loading.augment.checks import Augmentation, entry_of, images_of, is_number, number
from recordsmith.support.errors import OptionError
from recordsmith.support.explaining import check_word
from recordsmith.support.number_options import whole_number

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class _Mixing(Augmentation):
    """What Mixup and Cutmix have in common. One share is drawn for a batch, as in torchvision."""

    classes: int
    alpha: float = 1.0
    probability: float = 1.0
    image: str = "image"
    label: str = "label"

    def __post_init__(self) -> None:
        whole_number("classes", self.classes, 1)
        number("probability", self.probability, 0, 1)
        if not is_number(self.alpha) or self.alpha <= 0:
            raise OptionError(option="alpha", value=self.alpha, expected="a positive number")

    def __call__(self, batch: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        """Return the batch with mixed images and float32 labels, (batch, classes)."""
        images = images_of(batch, self.image, ("uint8", "float32"))
        labels = self._soft_labels(entry_of(batch, "label", self.label), len(images))
        share = 1.0
        if generator.random() < self.probability:
            share = float(generator.beta(self.alpha, self.alpha))
        mixed, share = self._mix(images, share, generator)
        mixed_labels = np.empty_like(labels)
        mix(labels, share, mixed_labels)
        return {**batch, self.image: mixed, self.label: mixed_labels}

    def _mix(
        self, images: npt.NDArray[Any], share: float, generator: np.random.Generator
    ) -> tuple[npt.NDArray[Any], float]:
        """Return the images, and the share that each has of its own pixels."""
        raise NotImplementedError

    def _soft_labels(self, labels: Any, count: int) -> Floats:
        values = np.asarray(labels)
        if values.dtype.kind == "f" and values.shape == (count, self.classes):
            return np.ascontiguousarray(values, np.float32)
        if values.dtype.kind not in "iu" or values.shape != (count,):
            raise OptionError(
                f"{self.label!r} is {values.dtype} of shape {values.shape}",
                option="label",
                expected=f"integers of shape ({count},) or floats of shape "
                f"({count}, {self.classes})",
            )
        outside = values[(values < 0) | (values >= self.classes)]
        if len(outside):
            raise OptionError(
                f"{self.label!r} has the class {outside[0]}",
                option="classes",
                expected=f"classes from 0 to {self.classes - 1}",
            )
        soft = np.zeros((count, self.classes), np.float32)
        soft[np.arange(count), values] = 1
        return soft


@dataclass(frozen=True, kw_only=True)
class Mixup(_Mixing):
    """Mix each image with the one before it: share * image + (1 - share) * the one before.

    The share is drawn once for a batch from Beta(alpha, alpha), and labels are mixed alike, as in
    torchvision. The first image is mixed with the last one.

    Attributes:
        classes: the number of classes.
        alpha: positive; small values rarely mix much.
        probability: of mixing a batch; labels become probabilities in any case.
        image: the name of the images: uint8 or float32, (batch, height, width, channels).
        label: the name of the labels: integers, (batch,), or probabilities, (batch, classes). They
            become float32, (batch, classes).
        dtype: of mixed images: uint8 (rounded) or float32. Default: that of the images. Levels
            keep their range: 0 to 255 for images that were uint8.

    Raises:
        OptionError: an option is invalid, or, when called, images or labels do not match.

    Example:
        mixup = rs.Mixup(classes=3, alpha=0.2)
        features = {"image": rs.Image(size=64), "label": "image/class/label"}
        loader = rs.Loader(dataset, features, batch_size=8, shuffle=True, map_batches=mixup)
        print(next(iter(loader))["label"].shape)  # (8, 3)
    """

    dtype: Literal["uint8", "float32"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype is not None:
            check_word("dtype", self.dtype, ("uint8", "float32"))

    def _mix(
        self, images: npt.NDArray[Any], share: float, generator: np.random.Generator
    ) -> tuple[npt.NDArray[Any], float]:
        del generator  # only Cutmix draws more than the share
        if self.dtype == "uint8" and images.dtype != np.uint8:
            raise OptionError(option="dtype", value="uint8", expected="float32 for float images")
        mixed = np.empty(images.shape, self.dtype or images.dtype)
        values = images[0].size if images.size else 0
        mix(images.reshape(len(images), values), share, mixed.reshape(len(images), values))
        return mixed, share


@dataclass(frozen=True, kw_only=True)
class Cutmix(_Mixing):
    """Replace a box in each image by that of the image before it.

    The area of the box is drawn once for a batch, 1 - Beta(alpha, alpha), its centre evenly, and
    what lies outside the image is cut off, as in torchvision. Labels are mixed by the area.

    Attributes:
        classes: the number of classes.
        alpha: positive; 1 draws all areas equally often.
        probability: of changing a batch; labels become probabilities in any case.
        image: the name of the images: uint8 or float32, (batch, height, width, channels).
        label: the name of the labels: integers, (batch,), or probabilities, (batch, classes). They
            become float32, (batch, classes).

    Raises:
        OptionError: an option is invalid, or, when called, images or labels do not match.

    Example:
        cutmix = rs.Cutmix(classes=3)
        batch = {"image": np.zeros((4, 32, 32, 3), "uint8"), "label": np.array([0, 1, 2, 0])}
        print(cutmix(batch, np.random.default_rng(0))["label"].sum(axis=1))  # [1. 1. 1. 1.]
    """

    def _mix(
        self, images: npt.NDArray[Any], share: float, generator: np.random.Generator
    ) -> tuple[npt.NDArray[Any], float]:
        if not images.size:
            return images.copy(), share
        height, width = images.shape[1:3]
        half = 0.5 * math.sqrt(1 - share)
        rows, columns = _side(generator, height, half), _side(generator, width, half)
        box = images[:, rows, columns]
        mixed = images.copy()
        mixed[:, rows, columns] = np.roll(box, 1, axis=0)
        return mixed, 1 - box.shape[1] * box.shape[2] / (height * width)


def _side(generator: np.random.Generator, size: int, half: float) -> slice:
    """Draw where a box is on an axis. `half` is half its length, as a share of the axis."""
    centre, reach = int(generator.integers(size)), int(half * size)
    return slice(max(centre - reach, 0), min(centre + reach, size))
