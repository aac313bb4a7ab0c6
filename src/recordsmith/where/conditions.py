"""The tree of a where expression, and its evaluation on columns.

Columns are ragged: one row per record with all its values of a feature. A comparison is true for a
row if it is true for any of its values, so it is false for rows without values and for NaN. int64
is compared exactly, float as 32-bit floats, and text byte by byte as UTF-8.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError
from recordsmith.example import BytesArray, RaggedArray

Columns: TypeAlias = Mapping[str, RaggedArray]
RowMask: TypeAlias = npt.NDArray[np.bool_]
Value: TypeAlias = int | float | bytes

KEYWORDS = frozenset(("and", "or", "not", "in", "has", "missing", "len", "all"))
BARE_KEY = re.compile(r"[^\W\d][\w/.:\-]*")

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Comparison:
    """A comparison of a feature with one value, or with several by `in` and `not in`.

    measure: what is compared: any value, all values (at least one), or the number of values.
    """

    key: str
    measure: Literal["any", "all", "len"]
    operator: str
    values: tuple[Value, ...]

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        column = columns.get(self.key)
        if self.measure == "len":
            lengths = np.zeros(row_count, np.int64) if column is None else column.lengths
            return self._hits(lengths)
        if column is None:
            return np.zeros(row_count, np.bool_)
        self.check_kind(_common_kind(column.values))
        counts = _counts(self._hits(column.values), column)
        if self.measure == "all":
            return np.asarray((counts == column.lengths) & (column.lengths > 0))
        return np.asarray(counts > 0)

    def check_kind(self, kind: str) -> None:
        """Check that a feature of this kind can be compared with these values.

        Raises:
            OptionError: it cannot.
        """
        is_text = isinstance(self.values[0], bytes)
        if self.measure == "len" or kind not in ("bytes", "float", "int64"):
            return
        if is_text and kind != "bytes":
            raise OptionError(
                f"feature {self.key!r} is {kind}, but {self} compares it with text",
                option="where",
                value=str(self),
                remedy="Write numbers without quotes.",
            )
        if not is_text and kind == "bytes":
            raise OptionError(
                f"feature {self.key!r} is bytes, but {self} compares it with a number",
                option="where",
                value=str(self),
                remedy='Write text in quotes, such as "daisy".',
            )

    def _hits(self, values: npt.NDArray[Any] | BytesArray) -> RowMask:
        """Whether the comparison is true for each value."""
        is_text = isinstance(values, BytesArray)
        compare: Callable[[Any, str, Any], RowMask] = _text_hits if is_text else _number_hits
        if self.operator not in ("in", "not in"):
            return compare(values, self.operator, self.values[0])
        if isinstance(values, BytesArray) and len(self.values) > len(OPERATORS):
            wanted = set(self.values)
            found = np.fromiter((bytes(view) in wanted for view in values.views()), bool)
        else:
            found = np.zeros(len(values), np.bool_)
            for value in self.values:
                found |= compare(values, "==", value)
        if self.operator == "in":
            return found
        return ~found if isinstance(values, BytesArray) else ~found & ~np.isnan(values)

    def comparisons(self) -> Iterator[Comparison]:
        yield self

    def keys(self) -> Iterator[str]:
        yield self.key

    def __str__(self) -> str:
        key = quote_key(self.key)
        measured = key if self.measure == "any" else f"{self.measure}({key})"
        values = ", ".join(map(format_value, self.values))
        is_list = self.operator in ("in", "not in")
        return f"{measured} {self.operator} {f'({values})' if is_list else values}"


@dataclass(frozen=True)
class Presence:
    """A test whether a record has a value of a feature."""

    key: str
    wanted: bool

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        column = columns.get(self.key)
        found = np.zeros(row_count, np.bool_) if column is None else column.lengths > 0
        return found if self.wanted else ~found

    def comparisons(self) -> Iterator[Comparison]:
        yield from ()

    def keys(self) -> Iterator[str]:
        yield self.key

    def __str__(self) -> str:
        return f"{'has' if self.wanted else 'missing'}({quote_key(self.key)})"


@dataclass(frozen=True)
class Not:
    """The negation of a condition."""

    part: Condition

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        return ~self.part.evaluate(columns, row_count)

    def comparisons(self) -> Iterator[Comparison]:
        yield from self.part.comparisons()

    def keys(self) -> Iterator[str]:
        yield from self.part.keys()

    def __str__(self) -> str:
        return f"not ({self.part})" if isinstance(self.part, Combination) else f"not {self.part}"


@dataclass(frozen=True)
class Combination:
    """Several conditions joined by `and` or `or`."""

    joined_by: Literal["and", "or"]
    parts: tuple[Condition, ...]

    def evaluate(self, columns: Columns, row_count: int) -> RowMask:
        """Evaluate for each row: bool, (row_count,)."""
        held = self.parts[0].evaluate(columns, row_count).copy()
        for part in self.parts[1:]:
            if self.joined_by == "and":
                held &= part.evaluate(columns, row_count)
            else:
                held |= part.evaluate(columns, row_count)
        return held

    def comparisons(self) -> Iterator[Comparison]:
        for part in self.parts:
            yield from part.comparisons()

    def keys(self) -> Iterator[str]:
        for part in self.parts:
            yield from part.keys()

    def __str__(self) -> str:
        return f" {self.joined_by} ".join(
            f"({part})" if isinstance(part, Combination) else str(part) for part in self.parts
        )


Condition: TypeAlias = Comparison | Presence | Not | Combination


def quote_key(key: str) -> str:
    """Write a key as in an expression, in backticks where necessary."""
    if BARE_KEY.fullmatch(key) and key not in KEYWORDS:
        return key
    return "`" + key.replace("`", "``") + "`"


def format_value(value: Value) -> str:
    if not isinstance(value, bytes):
        return repr(value)
    written = ""
    for char in value.decode("utf-8", "surrogateescape"):
        if char in '\\"':
            written += f"\\{char}"
        elif char < " " or char == "\x7f":
            written += f"\\x{ord(char):02x}"
        elif "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8
            written += f"\\x{ord(char) - 0xDC00:02x}"
        else:
            written += char
    return f'"{written}"'


def _common_kind(values: npt.NDArray[Any] | BytesArray) -> str:
    if isinstance(values, BytesArray):
        return "bytes"
    return "int64" if values.dtype == np.int64 else "float"


def _counts(hits: RowMask, column: RaggedArray) -> npt.NDArray[np.int64]:
    """Count the hits in each row."""
    before = np.zeros(len(hits) + 1, np.int64)
    np.cumsum(hits, out=before[1:])
    return np.diff(before[column.row_splits])


def _number_hits(values: Any, name: str, number: Any) -> RowMask:
    return (_int_hits if values.dtype == np.int64 else _float_hits)(values, name, number)


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
    try:
        wanted: Any = np.float64(number)
    except OverflowError:
        wanted = np.float64(math.inf if number > 0 else -math.inf)
    if abs(wanted) <= np.finfo(np.float32).max:
        wanted = np.float32(number)
    else:
        values = values.astype(np.float64)
    hits: RowMask = OPERATORS[name](values, wanted)
    return hits & ~np.isnan(values) if name == "!=" else hits


def _text_hits(values: BytesArray, name: str, wanted: Any) -> RowMask:
    if name not in ("==", "!="):
        compare = OPERATORS[name]
        return np.fromiter((compare(bytes(view), wanted) for view in values.views()), bool)
    hits: RowMask = values == wanted
    return hits if name == "==" else ~hits
