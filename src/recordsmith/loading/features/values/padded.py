"""Lists of numbers of different lengths, padded to one length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, DataError, Defect, OptionError, option
from recordsmith.example import Column, Kind, RaggedArray
from recordsmith.image.storing.image_options import check_word
from recordsmith.loading.features.feature import NUMBERS, ColumnRequest, ValueFeature
from recordsmith.loading.features.values.numbers import as_dtype, can_hold, check_dtype, number_type
from recordsmith.loading.number_options import is_whole

TooLong = Literal["error", "cut"]
"""For a row that is too long: raise an error, or keep its first values."""


@dataclass(frozen=True)
class Padded(ValueFeature):
    """Any number of values from each record, padded: int64 or float32, (batch, length).

    Adds `<name>_lengths`, int64, (batch,): the number of values of each record, 0 for records
    without the feature.

    Attributes:
        key: the key of the feature in the records.
        length: of all rows. Default: that of the longest row of the batch.
        fill: the padding.
        dtype: as of `Tensor`.
        too_long: for a row longer than `length`: an `error`, or `cut` the rest.
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
        if not _stored_kinds(self.dtype, self.fill):
            raise OptionError(
                option="fill",
                value=self.fill,
                expected=f"a number that {self.dtype or 'float32'} can hold",
            )

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(_stored_kinds(self.dtype, self.fill), "ragged")}

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
            problem = f"feature {self.key!r} has too many values"
            raise too_long(self.key, problem, values, width, row)
        column = as_dtype(self.key, column, self.dtype)
        padded, kept = pad(column.values, lengths, width, self.fill)
        return dict(zip(self.outputs(name), (padded, kept), strict=True))


def pad(
    values: Any, lengths: Int64Array, width: int | None, fill: float
) -> tuple[npt.NDArray[Any], Int64Array]:
    """Pad or cut rows to one length.

    Args:
        values: (value_count, ...), all rows end to end.
        lengths: int64, (rows,): how many values each row has.
        width: of all rows; None for that of the longest.

    Returns:
        (rows, width, ...), of the values' dtype, and int64, (rows,): the number of values kept.
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


def _stored_kinds(dtype: str | None, fill: object) -> tuple[Kind, ...]:
    """Return the kinds of features that can be padded with this number."""
    if not isinstance(fill, Real):
        return ()
    if dtype is not None:
        return NUMBERS if can_hold(number_type(dtype), fill) else ()
    stored = {"int64": "int64", "float": "float32"}
    return tuple(kind for kind in NUMBERS if can_hold(np.dtype(stored[kind]), fill))


def check_room(length: object, policy: object) -> None:
    """Check `length` and `too_long` of a padded feature.

    Raises:
        OptionError: they are invalid or conflict.
    """
    if length is not None and not (is_whole(length) and length >= 0):
        raise OptionError(
            option="length",
            value=length,
            expected="an integer of at least 0, or None for the longest row of a batch",
        )
    check_word("too_long", policy, get_args(TooLong))
    if length is None and policy == "cut":
        raise OptionError(
            f"{option('too_long', 'cut')} needs {option('length')}",
            option="length",
            remedy=f"Pass {option('length')}.",
        )


def too_long(key: str, problem: str, found: str, width: int, row: int) -> DataError:
    """Return the error of a row that is too long."""
    return CorruptDataError(
        Defect.FEATURE_SHAPE,
        problem,
        found=found,
        expected=f"at most {width}",
        remedy=f"Pass {option('too_long', 'cut')} to keep the first ones.",
        feature=key,
        record=row,
    )
