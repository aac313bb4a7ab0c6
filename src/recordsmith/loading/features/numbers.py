"""Numbers of a fixed shape: one for each record, or an array of one shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError
from recordsmith.example import Column
from recordsmith.loading.features.contract import NUMBERS, Request, ValueFeature


@dataclass(frozen=True)
class Tensor(ValueFeature):
    """An array of numbers from each record: int64 or float32, (batch, *shape).

    key: the feature's name in the records.
    shape: of one record's values in C order: (13,), (3, 4).
    dtype: what the numbers become, such as "float16" or "int32"; as they are stored, if not said.
    default: stands in where a record lacks the feature.
    """

    key: str
    shape: tuple[int, ...]
    dtype: str | None = None
    default: Any = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(NUMBERS, self.shape, self.default)}

    def values(self, name: str, columns: Mapping[str, Column]) -> dict[str, Column]:
        return {name: as_dtype(columns[self.key], self.dtype)}


@dataclass(frozen=True)
class Scalar(ValueFeature):
    """One number from each record: int64 or float32, (batch,). Fields as of `Tensor`."""

    key: str
    dtype: str | None = None
    default: Any = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(NUMBERS, (), self.default)}

    def values(self, name: str, columns: Mapping[str, Column]) -> dict[str, Column]:
        return {name: as_dtype(columns[self.key], self.dtype)}


def check_dtype(dtype: object) -> None:
    """Raise OptionError unless it is None, or names a type of numbers."""
    if dtype is None:
        return
    try:
        is_number = np.dtype(dtype).kind in "biuf"  # type: ignore[call-overload]
    except TypeError:
        is_number = False
    if not is_number:
        raise OptionError(f"dtype is {dtype!r}; expected a type of numbers, such as 'float32'")


def as_dtype(column: Any, dtype: str | None) -> npt.NDArray[Any]:
    """Numbers in another type; the same array, if it has that type already."""
    numbers: npt.NDArray[Any] = column if dtype is None else column.astype(dtype, copy=False)
    return numbers
