"""What augmentations share: how they are called, and the checks of their options and images."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from recordsmith.support.errors import OptionError


class Augmentation(ABC):
    """A map of batches, also of those without rows, which keep the shapes and dtypes of others."""

    @abstractmethod
    def __call__(self, batch: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        """Return a batch, whose first axis counts the rows, with other images."""

    def map_example(
        self, example: Mapping[str, Any], generator: np.random.Generator
    ) -> dict[str, Any]:
        """Return an example with other images, as `map_examples` of a loader does."""
        return self(example, generator)


class RowAugmentation(Augmentation):
    """Changes the images of each row, and all steps of a window alike."""

    image: str
    _dtypes: ClassVar[tuple[str, ...]]
    _channels: ClassVar[tuple[int, ...]] = (1, 3, 4)

    def __call__(self, batch: Mapping[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        """Return the batch with other images; an image without an axis of rows is one row."""
        return self._with_changed(batch, generator, is_example=False)

    def map_example(
        self, example: Mapping[str, Any], generator: np.random.Generator
    ) -> dict[str, Any]:
        """Return the example with other images."""
        return self._with_changed(example, generator, is_example=True)

    def _with_changed(
        self, batch: Mapping[str, Any], generator: np.random.Generator, *, is_example: bool
    ) -> dict[str, Any]:
        axes = (3, 4) if is_example else (3, 4, 5)
        images = images_of(batch, self.image, self._dtypes, self._channels, axes)
        leading = images.shape[:-3]
        rows = 1 if is_example or not leading else leading[0]
        steps = math.prod(leading if is_example else leading[1:])
        changed = self._changed(images.reshape(rows, steps, *images.shape[-3:]), generator)
        return {**batch, self.image: changed.reshape(images.shape)}

    @abstractmethod
    def _changed(
        self, images: npt.NDArray[Any], generator: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Return other images: contiguous, (rows, steps, height, width, channels), as these."""


def number(name: str, value: object, lowest: float, highest: float = math.inf) -> float:
    """Check an option that is a finite number from `lowest` to `highest`."""
    if is_number(value) and lowest <= value <= highest:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    bound = f"of at least {lowest:g}" if highest == math.inf else f"from {lowest:g} to {highest:g}"
    raise OptionError(option=name, value=value, expected=f"a number {bound}")


def number_range(name: str, value: object, lowest: float, highest: float) -> tuple[float, float]:
    """Check an option that is a smallest and a largest number."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_number, value)):
        begin, end = map(float, value)
        if lowest <= begin <= end <= highest:
            return begin, end
    within = f"at least {lowest:g}" if highest == math.inf else f"from {lowest:g} to {highest:g}"
    expected = f"a smallest and a largest number, {within}"
    raise OptionError(option=name, value=value, expected=expected)


def is_number(value: object) -> bool:
    """Whether a value is a finite number of Python or NumPy; True and False are not."""
    is_real = isinstance(value, (int, float, np.integer, np.floating))
    return is_real and not isinstance(value, bool) and math.isfinite(value)  # type: ignore[arg-type]


def entry_of(batch: Mapping[str, Any], option: str, name: str) -> Any:
    """Return an entry of a batch, whose name is the value of an option."""
    if name not in batch:
        names = ", ".join(map(repr, batch)) or "nothing"
        raise OptionError(option=option, value=name, expected=f"an entry of the batch: {names}")
    return batch[name]


_AXES = {3: "", 4: "batch, ", 5: "batch, steps, "}


def images_of(
    batch: Mapping[str, Any],
    name: str,
    dtypes: tuple[str, ...],
    channels: tuple[int, ...] = (1, 3, 4),
    axes: tuple[int, ...] = (4,),
) -> npt.NDArray[Any]:
    """Return the images of a batch as a contiguous array: (batch, height, width, channels).

    `dtypes`, `channels`, `axes`: what is supported; `axes` are counts of axes.
    """
    images = entry_of(batch, "image", name)
    is_array = isinstance(images, np.ndarray)
    shape: tuple[int, ...] = images.shape if is_array else ()
    if (
        len(shape) not in axes
        or shape[-1] not in channels
        or (0 in shape[-3:-1] and shape[0])
        or images.dtype.name not in dtypes
    ):
        described = f"{images.dtype} of shape {shape}" if is_array else f"a {type(images).__name__}"
        shapes = " or ".join(f"({_AXES[count]}height, width, channels)" for count in reversed(axes))
        raise OptionError(
            f"{name!r} is {described}",
            option="image",
            expected=f"{' or '.join(dtypes)} of shape {shapes} "
            f"with {', '.join(map(str, channels))} channels",
            remedy="Load images of one size with layout='HWC'.",
        )
    return np.ascontiguousarray(images)
