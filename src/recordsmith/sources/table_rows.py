"""The interface between tables and the readers of their formats, and what they share."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.errors import SourceError
from recordsmith.example import ColumnEncoder, Kind
from recordsmith.sources.encoded_rows import EncodedRows
from recordsmith.sources.problems import Fault

LOST_DIGITS = "numbers beyond 16,777,216 lost digits in 32-bit floats"
EXACT = float(1 << 24)
"""Up to this a 32-bit float holds every integer."""

_EXACT_DOUBLE = float(1 << 53)
_ROWS_AT_ONCE = 1 << 13  # more rows exceed the cache


class ColumnSink(Protocol):
    """Receives the values of one column while the table is encoded."""

    def extend(self, values: Sequence[str | None], table: int) -> None:
        """Add the values of the next rows; `table` is the number of their file."""

    def clear(self) -> None:
        """Forget all values."""


class RowBatch(Protocol):
    """Some consecutive rows of one file.

    count: the number of rows, with those that cannot be stored.
    """

    count: int

    def category(self, name: str) -> Sequence[str | None]:
        """The value of each row that names its split, group, class or image; None without one.

        Raises:
            TypeError: a value is neither text nor an integer.
        """

    def encode(self, lost: LostDigits) -> tuple[Any, Int64Array, Mapping[int, Fault]]:
        """Encode the rows by the kinds that are known now.

        Returns:
            The payloads end to end, their offsets: int64, (count + 1,), and why some rows cannot be
            stored, by their number in the batch; their payloads are empty.
        """

    def line(self, row: int) -> int:
        """The line, or number, of a row of the batch in its file."""


class TableRows(Protocol):
    """The rows of the files of a table, in one format.

    paths: of the files.
    unit: what `RowBatch.line` counts: line or row.
    kinds: by column; final after all batches were surveyed.
    class_names: by column, where they are known.
    image: the column with encoded images, if there is one.
    """

    paths: Sequence[Path]
    unit: str
    class_names: Mapping[str, Sequence[str]]
    image: str | None

    def arrow_schema(self, lost: LostDigits) -> str | None:
        """The schema of an Arrow table, without columns that lost digits, as in `Manifest`."""

    @property
    def kinds(self) -> Mapping[str, Kind]: ...

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Read one file from its start."""

    def survey(self, batch: RowBatch) -> bool:
        """Consider the values of a batch; return whether it changes how rows are encoded."""

    def notices(self) -> list[str]:
        """What was found, after all batches were surveyed."""


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

    def note(self, place: str, _: str, where: str) -> None:
        """Count one number; `where` is "<place>: <column>, <number>", as `json_features` has it."""
        column, _, number = where.removeprefix(f"{place}: ").rpartition(", ")
        self._add(column, 1, f"{place}: {number}")

    def _add(self, column: str, number: int, where: str) -> None:
        before, first = self._found.get(column, (0, where))
        self._found[column] = before + number, first

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
    chosen: Sequence[tuple[str, ColumnSink]],
    *,
    required: str | None = None,
    with_lines: bool = False,
) -> EncodedTable:
    """Encode all rows, in one pass if the first rows show the kinds of all columns, else in two.

    Args:
        chosen: the columns whose values are wanted, with what receives them.
        required: the chosen column that must have a value; rows without one cannot be stored.

    Raises:
        SourceError: a chosen column has other values than text and integers.
    """
    is_settled = False
    while True:
        encoded, counts, lost = EncodedRows(), [0] * len(table.paths), LostDigits()
        lines = array("q")
        is_encoding = True
        for number, path in enumerate(table.paths):
            for batch in table.batches(number):
                if not is_settled and table.survey(batch):
                    is_encoding = False
                if not is_encoding:
                    continue
                data, offsets, faults = batch.encode(lost)
                invalid = faults.keys()
                for name, column in chosen:
                    try:
                        values = batch.category(name)
                    except TypeError as error:
                        raise SourceError(
                            f"column {name!r} cannot name splits, groups, classes or images: "
                            f"{error}",
                            path=path,
                            remedy="Convert it to text or integers. A regression target needs no "
                            "label column: it is a feature.",
                        ) from None
                    if invalid:
                        values = [
                            None if row in invalid else value for row, value in enumerate(values)
                        ]
                    column.extend(values, number)
                    if name == required and None in values:
                        empty = {
                            row: Fault(
                                f"split column {name!r} is empty",
                                sample=f"{path}, {table.unit} {batch.line(row)}",
                            )
                            for row, value in enumerate(values)
                            if value is None
                        }
                        faults = {**empty, **faults}
                encoded.extend(data, offsets, faults)
                counts[number] += batch.count
                if with_lines:
                    lines.extend(map(batch.line, range(batch.count)))
        if is_encoding:
            encoded.finish()
            notices = [*table.notices(), *lost.notices()]
            return EncodedTable(encoded, counts, lines, notices, lost)
        table.notices()  # raises what is wrong with the kinds
        is_settled = True
        for _, column in chosen:
            column.clear()


def encode_good(
    columns: Mapping[str, Any],
    validity: Mapping[str, npt.ArrayLike],
    good: Int64Array | None,
    count: int,
) -> tuple[Any, Int64Array]:
    """Encode the columns of the rows that can be stored, with empty payloads for the others.

    Args:
        good: the numbers of these rows; None for all.
        count: the number of all rows.
    """
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
