"""The parts of a where expression, and their evaluation on columns.

Columns are ragged: one row per record with all its values of a feature. A comparison is true for a
row if it is true for any of its values, so it is false for rows without values and for NaN. int64
is compared exactly, float as 32-bit floats, and text byte by byte as UTF-8.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.support.errors import OptionError

Columns: TypeAlias = Mapping[str, RaggedArray]
RowMask: TypeAlias = npt.NDArray[np.bool_]
Value: TypeAlias = int | float | bytes

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TEXT_METHODS: dict[str, Callable[[bytes, bytes], bool]] = {
    "startswith": bytes.startswith,
    "endswith": bytes.endswith,
}
_INT64 = np.iinfo(np.int64)
_MANY = 6  # values, from which on one search for all of them is faster


@dataclass(frozen=True)
class Comparison:
    """A comparison of a feature with values, such as `0 < label < 3` or `label in (1, 2)`.

    measure: what is compared: any value, all values (at least one), or the number of values.
    tests: operators or methods, each with its values; a value of the feature must pass all.
    text: the comparison as in the expression, for messages.
    """

    key: str
    measure: Literal["any", "all", "len"]
    tests: tuple[tuple[str, tuple[Value, ...]], ...]
    text: str

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        column = columns.get(self.key)
        if self.measure == "len":
            return self._hits(np.zeros(row_count, np.int64) if column is None else column.lengths)
        if column is None:
            return np.zeros(row_count, np.bool_)
        values: Any = column.values
        is_text = isinstance(values, BytesArray)
        self.check_kind("bytes" if is_text else "int64" if values.dtype == np.int64 else "float")
        before = np.zeros(len(values) + 1, np.int64)
        np.cumsum(self._hits(values), out=before[1:])
        counts = np.diff(before[column.row_splits])
        if self.measure == "all":
            return np.asarray((counts == column.lengths) & (column.lengths > 0))
        return np.asarray(counts > 0)

    def check_kind(self, kind: str) -> None:
        """Check that a feature of this kind can be compared with these values."""
        is_text = isinstance(self.tests[0][1][0], bytes)
        if self.measure == "len" or kind not in ("bytes", "float", "int64"):
            return
        if is_text != (kind == "bytes"):
            raise OptionError(
                f"feature {self.key!r} is {kind}, but {self.text} compares it with "
                + ("text" if is_text else "a number"),
                option="where",
                value=self.text,
                remedy="Write numbers without quotes."
                if is_text
                else 'Write text in quotes, such as "daisy".',
            )

    def comparisons(self) -> Iterator[Comparison]:
        yield self

    def _hits(self, values: Any) -> RowMask:
        return reduce(np.logical_and, (_hits(values, name, wanted) for name, wanted in self.tests))


@dataclass(frozen=True)
class Combination:
    """Conditions joined by `and` or `or`, or one with `not`."""

    word: Literal["and", "or", "not"]
    parts: tuple[Condition, ...]

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        parts = (part.evaluate(columns, row_count) for part in self.parts)
        if self.word == "not":
            return ~next(parts)
        return reduce(np.logical_and if self.word == "and" else np.logical_or, parts)

    def comparisons(self) -> Iterator[Comparison]:
        for part in self.parts:
            yield from part.comparisons()


Condition: TypeAlias = Comparison | Combination


def _hits(values: Any, name: str, wanted: tuple[Value, ...]) -> RowMask:
    is_text = isinstance(values, BytesArray)
    compare: Callable[[Any, str, Any], RowMask] = (
        _text_hits if is_text else _int_hits if values.dtype == np.int64 else _float_hits
    )
    if name not in ("in", "not in"):
        return compare(values, name, wanted[0])
    if len(wanted) > _MANY and is_text:
        chosen = set(wanted)
        found = np.fromiter((bytes(view) in chosen for view in values.views()), bool)
    elif len(wanted) > _MANY:
        is_int = values.dtype == np.int64
        numbers = _int_values(wanted) if is_int else np.array([*map(_float_value, wanted)], "f8")
        found = np.isin(values, numbers)
    else:
        found = np.zeros(len(values), np.bool_)
        for value in wanted:
            found |= compare(values, "==", value)
    if name == "in":
        return found
    return ~found if is_text else ~found & ~np.isnan(values)


def _int_hits(values: npt.NDArray[np.int64], name: str, number: float) -> RowMask:
    """Compare exactly: floats may have fractions, and ints may not fit int64."""
    never = np.zeros(len(values), np.bool_)
    whole = math.floor(number)
    if whole != number:  # no integer is equal
        if name in ("==", "!="):
            return never if name == "==" else ~never
        name = "<=" if name in ("<", "<=") else ">"
    if not _INT64.min <= whole <= _INT64.max:
        is_above = whole > 0
        return ~never if name in ("!=", *(("<", "<=") if is_above else (">", ">="))) else never
    return OPERATORS[name](values, np.int64(whole))  # type: ignore[no-any-return]


def _float_hits(values: npt.NDArray[Any], name: str, number: float) -> RowMask:
    wanted = _float_value(number)
    if wanted.dtype == np.float64:
        values = values.astype(np.float64)
    hits: RowMask = OPERATORS[name](values, wanted)
    return hits & ~np.isnan(values) if name == "!=" else hits


def _float_value(number: Any) -> Any:
    """A number as a 32-bit float, or as float64 if it is too large."""
    try:
        wanted = np.float64(number)
    except OverflowError:
        wanted = np.float64(math.inf if number > 0 else -math.inf)
    return np.float32(number) if abs(wanted) <= np.finfo(np.float32).max else wanted


def _int_values(numbers: Iterable[Any]) -> npt.NDArray[np.int64]:
    """The numbers that an int64 can be equal to."""
    whole = [math.floor(number) for number in numbers if math.floor(number) == number]
    return np.array([each for each in whole if _INT64.min <= each <= _INT64.max], np.int64)


def _text_hits(values: BytesArray, name: str, wanted: Any) -> RowMask:
    if name not in ("==", "!="):
        compare = OPERATORS.get(name) or TEXT_METHODS[name]
        return np.fromiter((compare(bytes(view), wanted) for view in values.views()), bool)
    hits: RowMask = values == wanted
    return hits if name == "==" else ~hits
