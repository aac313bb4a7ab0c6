"""Checks the options of augmentations, and the images that they receive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError


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


def images_of(
    batch: Mapping[str, Any],
    name: str,
    dtypes: tuple[str, ...],
    *,
    channels: tuple[int, ...] = (1, 3, 4),
    example: bool = False,
) -> npt.NDArray[Any]:
    """Return the images of a batch as a contiguous array: (batch, height, width, channels).

    Args:
        dtypes, channels: what is supported.
        example: whether `batch` may be an example, whose image is a batch of one.
    """
    images = entry_of(batch, "image", name)
    is_array = isinstance(images, np.ndarray)
    shape: tuple[int, ...] = images.shape if is_array else ()
    fits = len(shape) == 4 or (example and len(shape) == 3)
    if (
        not fits
        or shape[-1] not in channels
        or 0 in shape[-3:-1]
        or images.dtype.name not in dtypes
    ):
        described = f"{images.dtype} of shape {shape}" if is_array else f"a {type(images).__name__}"
        alone = " or (height, width, channels)" if example else ""
        raise OptionError(
            f"{name!r} is {described}",
            option="image",
            expected=f"{' or '.join(dtypes)} of shape (batch, height, width, channels){alone} "
            f"with {', '.join(map(str, channels))} channels",
            remedy="Load images of one size with layout='HWC'.",
        )
    return np.ascontiguousarray(images if len(shape) == 4 else images[np.newaxis])
