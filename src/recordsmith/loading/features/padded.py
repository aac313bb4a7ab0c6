"""Lists of numbers of unequal length, filled up to one length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import Column, Kind, RaggedArray
from recordsmith.image.options import check_word
from recordsmith.loading.features.contract import NUMBERS, Request, ValueFeature
from recordsmith.loading.features.numbers import as_dtype, check_dtype
from recordsmith.loading.options import is_whole

TooLong = Literal["error", "cut"]
"""What becomes of a row with more values than there is room for: it is an error, or its first
values are kept."""


@dataclass(frozen=True)
class Padded(ValueFeature):
    """Any number of numbers from each record: int64 or float32, (batch, length), filled up.

    `<name>_lengths` is int64, (batch,): how many values of each row are the record's. A record that
    lacks the feature has none.

    key: the feature's name in the records.
    length: of all rows; that of the batch's longest, if not said.
    fill: what stands behind the values of a row.
    dtype: as of `Tensor`.
    too_long: whether a row that is longer than `length` is an `error`, or is `cut`.
    """

    key: str
    length: int | None = None
    _: KW_ONLY
    fill: float = 0
    dtype: str | None = None
    too_long: TooLong = "error"

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        check_room(self.length, self.too_long)
        dtype = np.dtype(self.dtype or "float32")
        if not holds(dtype, self.fill):
            raise OptionError(f"fill is {self.fill!r}; expected a number that {dtype} can hold")

    def requests(self) -> dict[str, Request]:
        kinds: tuple[Kind, ...] = NUMBERS
        if self.dtype is None and not holds(np.dtype(np.int64), self.fill):
            kinds = ("float",)
        return {self.key: Request(kinds, "ragged")}

    def outputs(self, name: str) -> tuple[str, ...]:
        return name, f"{name}_lengths"

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        column = columns[self.key]
        assert isinstance(column, RaggedArray)
        lengths, width = column.lengths, self.length
        if width is not None and self.too_long == "error" and (lengths > width).any():
            row = int(np.argmax(lengths > width))
            values = "1 value" if lengths[row] == 1 else f"{lengths[row]} values"
            raise too_long(f"feature {self.key!r} has {values}", width, row)
        column = as_dtype(self.key, column, self.dtype)
        padded, kept = pad(column.values, lengths, width, self.fill)
        return dict(zip(self.outputs(name), (padded, kept), strict=True))


def pad(
    values: Any, lengths: Int64Array, width: int | None, fill: float
) -> tuple[npt.NDArray[Any], Int64Array]:
    """Rows that lie end to end, as rows of one length: what is too long is cut.

    Args:
        values: (value_count, ...).
        lengths: int64, (rows,): how many values each row has.
        width: of all rows; None for that of the longest.

    Returns:
        (rows, width, ...), of the values' dtype, and int64, (rows,): how many of them are values.
    """
    if width is None:
        width = int(lengths.max(initial=0))
    padded = np.full((len(lengths), width, *values.shape[1:]), fill, values.dtype)
    kept = np.minimum(lengths, width)
    if (kept < lengths).any():
        starts = np.cumsum(lengths) - lengths
        values = values[np.arange(len(values)) - np.repeat(starts, lengths) < width]
    padded[np.arange(width) < kept[:, np.newaxis]] = values
    return padded, kept


def holds(dtype: np.dtype[Any], number: object) -> bool:
    """Whether a number can be one of these, but for its last digits."""
    if not isinstance(number, Real):
        return False
    value = float(number)
    if dtype.kind in "iu":
        return value.is_integer() and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    return dtype.kind != "f" or not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)


def check_room(length: object, policy: object) -> None:
    """Raise OptionError unless these are `length` and `too_long` of a feature that is padded."""
    if length is not None and not (is_whole(length) and length >= 0):
        raise OptionError(
            f"length is {length!r}; expected a whole number, or None for the longest of a batch"
        )
    check_word("too_long", policy, get_args(TooLong))
    if length is None and policy == "cut":
        raise OptionError("too_long is 'cut', but there is no length to cut to; say length")


def too_long(found: str, width: int, row: int) -> CorruptDataError:
    """The error of a row that has more values than there is room for."""
    return CorruptDataError(
        Defect.FEATURE_SHAPE,
        f"{found}, expected at most {width}; too_long='cut' keeps the first of them",
        position=row,
    )
