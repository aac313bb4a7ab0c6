"""The interface between tables and the readers of their formats, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.errors import OptionError, Problems, SourceError
from recordsmith.example import ColumnEncoder, Kind
from recordsmith.sources.problems import Fault, join_problems
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.sources.tables.named_images import NamedImages
from recordsmith.sources.tables.row_columns import CategoryColumn, category_texts
from recordsmith.stores import Location

LOST_DIGITS = "numbers beyond 16,777,216 lost digits in 32-bit floats"
EXACT = float(1 << 24)
"""Up to this a 32-bit float holds every integer."""

_EXACT_DOUBLE = float(1 << 53)
_ROWS_AT_ONCE = 1 << 13  # more rows exceed the cache


class TableRows(ABC):
    """The rows of the files of a table, in one format.

    paths: of the files.
    unit: what numbers the rows of a file in messages: line or row.
    class_names: by column, where they are known.
    image: the column with encoded images, if there is one.
    """

    unit = "line"
    image: str | None = None

    def __init__(self, paths: Sequence[Location]) -> None:
        self.paths = paths
        self.class_names: dict[str, Sequence[str]] = {}
        self._kinds: dict[str, Kind] = {}

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of the columns; final after all batches were surveyed."""
        return self._kinds

    @abstractmethod
    def batches(self, number: int) -> Iterator[RowBatch]:
        """Read one file from its start."""

    @abstractmethod
    def notices(self) -> list[str]:
        """What was found, after all batches were surveyed."""

    def arrow_schema(self, lost: LostDigits) -> str | None:
        """The schema of an Arrow table, without columns that lost digits, as in `Manifest`."""
        return None

    def check_columns(self, wanted: Mapping[str, str], known: Collection[str]) -> None:
        """Check that columns exist; `wanted` has the option that each is from.

        Raises:
            OptionError: one does not.
        """
        for name, wanting in wanted.items():
            if name not in known:
                raise OptionError(
                    f"{self.paths[0]} has no column {name!r}",
                    option=wanting,
                    value=name,
                    expected=f"one of {', '.join(known)}",
                )


class RowBatch(ABC):
    """Some consecutive rows of one file.

    lines: the line, or number, of each row in its file.
    """

    def __init__(
        self,
        table: TableRows,
        path: Location,
        lines: Sequence[int] | Int64Array,
        faults: Mapping[int, str] | None = None,
    ) -> None:
        """`faults`: why some rows cannot be stored, by their number in the batch."""
        self.lines = lines
        self._unit = table.unit
        self._path = path
        self._faults = {row: self.fault(row, problem) for row, problem in (faults or {}).items()}
        self._good: Int64Array | None = None  # the numbers of the rows without faults; None for all
        if self._faults:
            self._good = np.setdiff1d(np.arange(len(lines)), list(self._faults))

    def __len__(self) -> int:
        return len(self.lines)

    @abstractmethod
    def survey(self) -> bool:
        """Consider the values; return whether they change how earlier rows are encoded."""

    @abstractmethod
    def values(self, name: str) -> Sequence[Any]:
        """The values of a column in the rows without faults; empty if they have no such column."""

    @abstractmethod
    def columns(
        self, lost: LostDigits
    ) -> tuple[Mapping[str, Any], Mapping[str, npt.ArrayLike], Mapping[int, Problems]]:
        """The columns of the rows without faults, in the kinds that are known now.

        Returns:
            The columns and their validity as in `ColumnEncoder`, and the problems of rows that
            cannot be stored.
        """

    def category(self, name: str) -> list[str | None]:
        """The value of each row that names its split, group, class or image; None without one.

        Raises:
            SourceError: a value is neither text nor an integer.
        """
        try:
            found = category_texts(self.values(name))
        except TypeError as error:
            problem, number = error.args
            raise SourceError(
                f"column {name!r} cannot name splits, groups, classes or images: in {self._unit} "
                f"{self.lines[self._row(number)]}, {problem}",
                path=self._path,
                remedy="Convert it to text or integers. A regression target needs no label column: "
                "it is a feature.",
            ) from None
        if self._good is None and found:
            return found
        spread: list[str | None] = [None] * len(self)
        for number, value in enumerate(found):
            spread[self._row(number)] = value
        return spread

    def encode(self, lost: LostDigits) -> tuple[Any, Int64Array, dict[int, Fault]]:
        """Encode the rows by the kinds that are known now.

        Returns:
            The payloads end to end, their offsets: int64, (rows + 1,), and why some rows cannot be
            stored, by their number in the batch.
        """
        columns, validity, problems = self.columns(lost)
        faults = self._faults | {
            self._row(number): self.fault(self._row(number), join_problems(found), found)
            for number, found in problems.items()
        }
        return *_encode(columns, validity, self._good, len(self)), faults

    def fault(self, row: int, problem: str, problems: Problems | None = None) -> Fault:
        """Why a row cannot be stored."""
        if self._unit == "line":
            return Fault(problem, str(self._path), int(self.lines[row]), problems=problems)
        return Fault(problem, sample=f"{self._path}, row {self.lines[row]}", problems=problems)

    def place(self, number: int) -> str:
        """File and line of a row by its number among those without faults."""
        return f"{self._path}, {self._unit} {self.lines[self._row(number)]}"

    def _row(self, number: int) -> int:
        return number if self._good is None else int(self._good[number])


class LostDigits:
    """Which numbers lost digits when they became 32-bit floats.

    inexact: the columns with any value that changed, also by less than a float holds digits.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}
        self.inexact: set[str] = set()

    def extend(self, other: LostDigits) -> None:
        """Add what another one has found."""
        for column, (number, where) in other._found.items():
            self._add(column, number, where)
        self.inexact |= other.inexact

    def check(
        self,
        column: str,
        values: npt.NDArray[np.float64],
        exact: Callable[[int], Any],
        place: Callable[[int], str],
    ) -> npt.NDArray[np.bool_] | None:
        """Count the numbers of a column that lose digits.

        Args:
            values: (n,).
            exact: the number at a place as int, float or Decimal, as doubles round large integers.
            place: where such a number is, for the notice.

        Returns:
            Which numbers do not fit a 32-bit float; None if all do.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            stored = values.astype(np.float32)
            large = np.flatnonzero((np.abs(values) > EXACT) & (np.abs(values) < np.inf))
            if column not in self.inexact and ((stored != values) & (values == values)).any():  # noqa: PLR0124
                self.inexact.add(column)
        if not len(large):
            return None
        is_lost = stored[large] != values[large]
        for at in np.flatnonzero(~is_lost & (np.abs(values[large]) >= _EXACT_DOUBLE)).tolist():
            is_lost[at] = exact(int(large[at])) != float(stored[large[at]])
        too_large = np.isinf(stored[large])
        lost = large[is_lost & ~too_large]
        if len(lost):
            at = int(lost[0])
            self._add(column, len(lost), f"{place(at)}: {exact(at)}")
        if not too_large.any():
            return None
        mask = np.zeros(len(values), bool)
        mask[large[too_large]] = True
        return mask

    def _add(self, column: str, number: int, where: str) -> None:
        before, first = self._found.get(column, (0, where))
        self._found[column] = before + number, first

    def places(self) -> list[str]:
        """The first such number of each column, with its place."""
        return [f"{where} in {name!r}" for name, (_, where) in self._found.items()]

    def notices(self) -> list[str]:
        """A notice for each column with such numbers."""
        return [
            f"{number:,} {LOST_DIGITS}: column {name!r}, first {where}"
            for name, (number, where) in self._found.items()
        ]


class EncodedTable(NamedTuple):
    """The encoded rows of a table.

    counts: the number of rows in each file.
    lines: the line or number of each row in its file; empty unless asked for.
    """

    rows: EncodedRows
    counts: list[int]
    lines: array[int]
    notices: list[str]
    lost: LostDigits


def encode_table(
    table: TableRows,
    columns: Sequence[tuple[str | None, CategoryColumn | NamedImages | None]],
    *,
    required: str | None = None,
    with_lines: bool = False,
) -> EncodedTable:
    """Encode all rows, in one pass if the first rows show the kinds of all columns, else in two.

    Args:
        columns: the columns whose values are collected, and what collects them; those without
            either are ignored.
        required: the chosen column that must have a value; rows without one cannot be stored.
    """
    chosen = [(name, column) for name, column in columns if name is not None and column is not None]
    is_settled = False
    while True:
        for _, column in chosen:
            column.clear()
        encoded, counts, lost = EncodedRows(), [0] * len(table.paths), LostDigits()
        lines = array("q")
        is_encoding = True
        for number in range(len(table.paths)):
            for batch in table.batches(number):
                if not is_settled and batch.survey():
                    is_encoding = False
                if not is_encoding:
                    continue
                data, offsets, faults = batch.encode(lost)
                invalid = faults.keys()
                for name, column in chosen:
                    values = batch.category(name)
                    if invalid:
                        values = [
                            None if row in invalid else value for row, value in enumerate(values)
                        ]
                    column.extend(values, number)
                    if name == required and None in values:
                        problem = f"split column {name!r} is empty"
                        faults = {
                            row: batch.fault(row, problem)
                            for row, value in enumerate(values)
                            if value is None
                        } | faults
                encoded.extend(data, offsets, faults)
                counts[number] += len(batch)
                if with_lines:
                    lines.extend(batch.lines)
        if is_encoding:
            encoded.finish()
            notices = [*table.notices(), *lost.notices()]
            return EncodedTable(encoded, counts, lines, notices, lost)
        table.notices()  # raises what is wrong with the kinds
        is_settled = True


def _encode(
    columns: Mapping[str, Any],
    validity: Mapping[str, npt.ArrayLike],
    good: Int64Array | None,
    count: int,
) -> tuple[Any, Int64Array]:
    """Encode the columns of the rows that can be stored, with empty payloads for the others."""
    encoder = ColumnEncoder(columns, validity)
    if not columns:
        return b"", np.zeros(count + 1, np.int64)
    pieces = [
        encoder.encode(start, min(start + _ROWS_AT_ONCE, encoder.row_count))
        for start in range(0, encoder.row_count, _ROWS_AT_ONCE)
    ]
    lengths = np.zeros(count, np.int64)
    if pieces:
        found = np.concatenate([np.diff(offsets) for _, offsets in pieces])
        lengths[slice(None) if good is None else good] = found
    return np.concatenate(
        [data for data, _ in pieces] or [np.empty(0, np.uint8)]
    ), offsets_from_lengths(lengths)
