"""Numbers of a fixed shape: one for each record, or an array of one shape."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Column, RaggedArray
from recordsmith.loading.features.contract import NUMBERS, Request, ValueFeature


@dataclass(frozen=True)
class _Numbers(ValueFeature):
    """As many numbers from each record."""

    key: str
    _: KW_ONLY
    dtype: str | None = None
    default: Any = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        return {name: as_dtype(self.key, columns[self.key], self.dtype)}


@dataclass(frozen=True)
class Tensor(_Numbers):
    """An array of numbers from each record: int64 or float32, (batch, *shape).

    key: the feature's name in the records.
    shape: of one record's values in C order: (13,), (3, 4).
    dtype: what the numbers become, such as "float16" or "int32"; as they are stored, if not said.
        Floats lose what is behind the point where they become integers.
    default: stands in where a record lacks the feature.
    """

    shape: tuple[int, ...]

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(NUMBERS, self.shape, self.default)}


@dataclass(frozen=True)
class Scalar(_Numbers):
    """One number from each record: int64 or float32, (batch,). Fields as of `Tensor`."""

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(NUMBERS, (), self.default)}


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


@overload
def as_dtype(key: str, column: RaggedArray, dtype: str | None) -> RaggedArray: ...
@overload
def as_dtype(key: str, column: Any, dtype: str | None) -> Any: ...
def as_dtype(key: str, column: Any, dtype: str | None) -> Any:
    """Numbers in another type; the same column, if it has that type already.

    Raises:
        CorruptDataError: feature-value-mismatch: one is too large for it; `position` is its row.
    """
    if dtype is None:
        return column
    if isinstance(column, RaggedArray):
        numbers, converted = column.values, _converted(column.values, np.dtype(dtype))
    else:
        numbers, converted = column, _converted(column, np.dtype(dtype))
    if isinstance(converted, int):
        row = row_of(column, converted)
        number = numbers.reshape(-1)[converted].item()
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            f"feature {key!r} has the number {number!r}, which {np.dtype(dtype)} cannot hold; "
            "expected one that it can: say another dtype",
            position=row,
        )
    if isinstance(column, RaggedArray):
        return RaggedArray(converted, column.row_splits)
    return converted


def row_of(column: Any, value: int) -> int:
    """Which row of a column has its value number `value`, counted over all of them."""
    if isinstance(column, RaggedArray):
        return int(np.searchsorted(column.row_splits, value, side="right")) - 1
    shape: tuple[int, ...] = column.shape
    return value // math.prod(shape[1:])


def _converted(numbers: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any] | int:
    """The numbers in another type, or which of them is the first that it cannot hold."""
    if dtype.kind in "iu" and not np.can_cast(numbers.dtype, dtype):
        lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
        if numbers.dtype.kind == "f":  # the limits are powers of two, which floats hold
            fits = (np.trunc(numbers) >= float(lowest)) & (numbers < float(highest) + 1)
        else:
            fits = (numbers >= lowest) & (numbers <= highest)
        if not fits.all():
            return int(np.argmin(fits))
    with np.errstate(over="ignore"):
        converted: npt.NDArray[Any] = numbers.astype(dtype, copy=False)
    if dtype == np.float16:
        fits = np.isfinite(converted) | ~np.isfinite(numbers)
        if not fits.all():
            return int(np.argmin(fits))
    return converted
