"""The interface between tables and the readers of their formats, and how rows are encoded.

A reader yields rows in batches of columns; from there on, all formats are the same.
"""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recordsmith.format.example import ColumnEncoder, Kind, RaggedArray
from recordsmith.sources.problems import Fault, join_problems
from recordsmith.sources.tables.categories import CategoryColumn, category_text
from recordsmith.sources.tables.encoded_rows import EncodedRows
from recordsmith.sources.tables.named_images import NamedImages
from recordsmith.sources.tables.precision import PrecisionLoss
from recordsmith.stores import Location
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import SourceError, option
from recordsmith.support.explaining import unknown_word
from recordsmith.support.problems import Problems

_ROWS_AT_ONCE = 1 << 13  # more rows exceed the cache


class TableRows(ABC):
    """The rows of the files of a table, in one format.

    unit: what numbers the rows of a file in messages: line or row.
    class_names: by column, where they are known.
    of_lists: the names of classes by column with lists of them.
    image: the column with encoded images, if there is one.
    """

    unit = "line"
    image: str | None = None

    def __init__(self, paths: Sequence[Location]) -> None:
        self.paths = paths
        self.class_names: dict[str, Sequence[str]] = {}
        self.of_lists: Mapping[str, Sequence[str]] = {}
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
        """What was noticed, after all batches were surveyed."""

    def arrow_schema(self, loss: PrecisionLoss) -> str | None:
        """The schema of an Arrow table, without columns that lost digits, as in `Manifest`."""
        return None

    def check_columns(self, required: Mapping[str, str], known: Collection[str]) -> None:
        """Check that columns exist; `required` has the option that each is from."""
        for name, option_name in required.items():
            if name not in known:
                problem = f"{self.paths[0]} has no column {name!r} for {option(option_name)}"
                raise unknown_word(option_name, name, known, problem)


class RowBatch(ABC):
    """Some consecutive rows of one file.

    lines: the line, or number, of each row in its file.
    """

    def __init__(self, table: TableRows, path: Location, lines: Sequence[int] | Int64Array) -> None:
        self.lines = lines
        self._unit = table.unit
        self._path = path

    def __len__(self) -> int:
        return len(self.lines)

    @abstractmethod
    def survey(self) -> bool:
        """Consider the values; return whether they change how earlier rows are encoded."""

    @abstractmethod
    def values(self, name: str) -> Sequence[Any]:
        """The values of a column; empty if the rows have no such column."""

    def columns(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, Problems]]:
        """The columns, in the kinds that are known now, for `encode`.

        Returns columns and validity as in `ColumnEncoder`, and the problems of rows that cannot be
        stored.
        """
        raise NotImplementedError

    def category(self, name: str, convert: Callable[[Any], Any] = category_text) -> list[Any]:
        """The value of each row that names its split, group, class or image; None without one."""
        texts: list[Any] = []
        try:
            texts.extend(map(convert, self.values(name)))
        except TypeError as error:
            raise SourceError(
                f"column {name!r} cannot name splits, groups, classes or images: in {self._unit} "
                f"{self.lines[len(texts)]}, {error}",
                path=self._path,
                remedy="Convert it to text or integers. A regression target needs no label column: "
                "it is a feature.",
            ) from None
        return texts or [None] * len(self)

    def encode(self, loss: PrecisionLoss) -> tuple[Any, Int64Array, dict[int, Fault]]:
        """Encode the rows by the kinds that are known now.

        Returns the payloads end to end, their offsets, and why some rows cannot be stored, by
        their number in the batch.
        """
        columns, validity, problems = self.columns()
        for name, column in columns.items():
            columns[name] = _check_floats(name, column, loss, problems)
        faults = {
            row: self.fault(row, join_problems(several), several)
            for row, several in problems.items()
        }
        if not columns:
            return b"", np.zeros(len(self) + 1, np.int64), faults
        encoder = ColumnEncoder(columns, validity)
        pieces = [
            encoder.encode(start, min(start + _ROWS_AT_ONCE, encoder.row_count))
            for start in range(0, encoder.row_count, _ROWS_AT_ONCE)
        ]
        if len(pieces) == 1:
            return *pieces[0], faults
        lengths = np.concatenate([np.diff(offsets) for _, offsets in pieces])
        return np.concatenate([data for data, _ in pieces]), offsets_from_lengths(lengths), faults

    def fault(self, row: int, problem: str, problems: Problems | None = None) -> Fault:
        if self._unit == "line":
            return Fault(problem, str(self._path), int(self.lines[row]), problems=problems)
        return Fault(problem, sample=f"{self._path}, row {self.lines[row]}", problems=problems)

    def place(self, row: int) -> str:
        return f"{self._path}, {self._unit} {self.lines[row]}"


def _check_floats(
    name: str, column: Any, loss: PrecisionLoss, problems: dict[int, Problems]
) -> Any:
    """Look for numbers that do not fit a 32-bit float, or lose digits."""
    is_ragged = isinstance(column, RaggedArray)
    flat = column.values if is_ragged else column
    if not isinstance(flat, np.ndarray) or flat.dtype != np.float64:
        return column
    values = flat.reshape(-1)
    too_large = loss.check(name, values)
    if too_large is None:
        return column
    per_row = values.size // max(1, len(column))
    splits = column.row_splits if is_ragged else np.arange(len(column) + 1) * per_row
    for index in np.flatnonzero(too_large).tolist():
        row = int(np.searchsorted(splits, index, side="right")) - 1
        problem = f"column {name!r}: {values[index]:.17g} does not fit a 32-bit float"
        problems.setdefault(row, Problems()).add(problem)
    filled = np.where(too_large, 0, values)
    return RaggedArray(filled, splits) if is_ragged else filled.reshape(column.shape)


class EncodedTable(NamedTuple):
    """The encoded rows of a table.

    counts: the number of rows in each file.
    lines: the line or number of each row in its file; empty unless asked for.
    """

    rows: EncodedRows
    counts: list[int]
    lines: array[int]
    notices: list[str]
    loss: PrecisionLoss


def encode_table(
    table: TableRows,
    columns: Sequence[tuple[str | None, CategoryColumn | NamedImages | None]],
    *,
    required: str | None = None,
    with_lines: bool = False,
) -> EncodedTable:
    """Encode all rows, in one pass if the first rows show the kinds of all columns, else in two.

    `columns` get their values; a row whose image is left out has none in those after the images.
    """
    chosen = [(name, column) for name, column in columns if name is not None and column is not None]
    is_settled = False
    while True:
        for _, column in chosen:
            column.clear()
        encoded, counts, loss = EncodedRows(), [0] * len(table.paths), PrecisionLoss()
        lines = array("q")
        is_encoding = True
        for number in range(len(table.paths)):
            for batch in table.batches(number):
                if not is_settled and batch.survey():
                    is_encoding = False
                if not is_encoding:
                    continue
                data, offsets, faults = batch.encode(loss)
                without_value = {*faults}
                for name, column in chosen:
                    values = column.read(batch, name)
                    for row in without_value:
                        values[row] = None
                    column.extend(values, number)
                    if isinstance(column, NamedImages):
                        first = bisect.bisect_left(column.left_out, len(encoded))
                        without_value |= {row - len(encoded) for row in column.left_out[first:]}
                    if name == required and None in values:
                        problem = f"split column {name!r} is empty"
                        for row, value in enumerate(values):
                            if value is None:
                                faults.setdefault(row, batch.fault(row, problem))
                encoded.extend(data, offsets, faults)
                counts[number] += len(batch)
                if with_lines:
                    lines.extend(batch.lines)
        if is_encoding:
            encoded.finish()
            notices = [*table.notices(), *loss.notices()]
            return EncodedTable(encoded, counts, lines, notices, loss)
        table.notices()  # raises what is wrong with the kinds
        is_settled = True
