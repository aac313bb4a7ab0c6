"""CSV and TSV: cells of text -> numbers and text, as their whole columns allow.

One pass finds where rows begin and which kind each column has; then any row is read on its own. A
row that cannot be understood is a sample that cannot be read, reported with all others.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.sources.cells import Column, check_number, kind_of_cell
from recordsmith.sources.contract import Note
from recordsmith.sources.json_values import as_float
from recordsmith.sources.lines import TextFile
from recordsmith.sources.numbered import Mark
from recordsmith.sources.wording import some

_BATCH_ROWS = 4096
_LARGEST_CELL = 1 << 24
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class DelimitedRows:
    """The rows of some files with the same kind of columns. Safe to read from several threads.

    kinds: of each column, by its name.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        marks: Sequence[tuple[str, Mark]],
        kinds: Mapping[str, Kind],
        *,
        delimiter: str | None,
        encoding: str,
    ) -> None:
        """Look through all files; `marks` hear of the columns that they are named with.

        Raises:
            OptionError: there is no column of a name that was asked for.
            SourceError: a file is no table.
            FileAccessError: a file cannot be read.
        """
        csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
        self.notices: list[str] = []
        self._columns: dict[str, Column] = {}
        self._files = [_DelimitedFile(path, delimiter, encoding, self.notices) for path in paths]
        for number, file in enumerate(self._files):
            for name in file.names:
                self._columns.setdefault(name, Column(name, kinds.get(name)))
            file.look_through(number, self._columns, marks)
        nameless = [name for file in self._files for name in file.nameless]
        for name in nameless:  # every line ends with a comma
            if name in self._columns and not self._columns[name].filled_count:
                del self._columns[name]
        for file in self._files:
            file.settle(self._columns)
        self.kinds: dict[str, Kind] = {name: column.kind for name, column in self._columns.items()}
        self.notices += _notices(self._columns.values(), nameless)

    @property
    def counts(self) -> list[int]:
        return [file.row_count for file in self._files]

    def sizes(self, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """int64, (rows,): about how long the records of one file will be."""
        return self._files[number].sizes()

    def place(self, number: int, row: int) -> str:
        """File and line of a row."""
        return self._files[number].place(row)

    def read(self, number: int, row: int, note: Note) -> dict[str, Any]:
        """The features of one row of one file.

        Raises:
            SourceError: the row is ragged, or a cell does not fit its column.
        """
        return self._files[number].read(row, note)


class _DelimitedFile:
    """One file: its names of columns, and where its rows begin."""

    def __init__(
        self, path: Path, delimiter: str | None, encoding: str, notices: list[str]
    ) -> None:
        self.path = path
        self._file = TextFile(path, encoding)
        self._delimiter = delimiter or ","
        self._begin(delimiter, notices)
        self._starts = array("q")
        self._lines = array("I")
        self._columns: list[tuple[str, Kind | None, bool]] = []
        self._overhead = 0

    @property
    def row_count(self) -> int:
        return len(self._lines)

    def place(self, row: int) -> str:
        return f"{self.path}, line {self._lines[row]}"

    def sizes(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        starts = np.array(self._starts, np.int64)
        return starts[1:] - starts[:-1] + self._overhead

    def _begin(self, delimiter: str | None, notices: list[str]) -> None:
        """Read the names of the columns."""
        lines = self._file.lines()
        if delimiter is None:
            self._delimiter = self._guess(next(self._file.lines(), ""), notices)
        names: list[str] = []
        try:
            names = next((cells for cells in self._reader(lines) if cells), [])
        except csv.Error as error:
            raise SourceError(f"{self.path}, line 1: {_words(error)}") from None
        self._first = (lines.offset, lines.number)
        self.nameless = [f"column_{place}" for place, name in enumerate(names) if not name.strip()]
        self.names = [name.strip() or f"column_{place}" for place, name in enumerate(names)]
        twice = sorted(name for name, count in Counter(self.names).items() if count > 1)
        if twice:
            raise SourceError(
                f"{self.path}, line 1: several columns are called {some(twice)}; give each its "
                "own name"
            )
        _check_header(self.path, self.names)

    def _guess(self, header: str, notices: list[str]) -> str:
        """What separates the cells: a comma, unless the first line has none of them."""
        if self.path.name.removesuffix(".gz").lower().endswith((".tsv", ".tab")):
            return "\t"
        if "," in header:
            return ","
        counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
        found = max(counts, key=counts.__getitem__)
        if not counts[found]:
            return ","
        notices.append(
            f"{self.path}: cells are separated by {_DELIMITERS[found]}, as its first line tells"
        )
        return found

    def _reader(self, lines: Any) -> Any:
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    def look_through(
        self, number: int, columns: Mapping[str, Column], marks: Sequence[tuple[str, Mark]]
    ) -> None:
        """Find where rows begin, and what columns hold."""
        places = {name: place for place, name in enumerate(self.names)}
        for name, _ in marks:
            if name not in places:
                raise OptionError(
                    f"{self.path} has no column {name!r}; it has {', '.join(self.names)}"
                )
        marked = [(places[name], mark) for name, mark in marks]
        width = len(self.names)
        batch: list[list[str]] = []
        batch_lines: list[int] = []
        starts, line_numbers = self._starts, self._lines
        lines = self._file.lines(*self._first)
        reader = self._reader(lines)
        while True:
            start, line = lines.offset, lines.number
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:  # it may have swallowed lines after a quote: only the first is lost
                lines = self._file.lines(start, line)
                next(lines)
                reader = self._reader(lines)
                cells = [""] * (width + 1)
            if not cells:
                continue
            starts.append(start)
            line_numbers.append(line)
            if len(cells) == width:
                batch.append(cells)
                batch_lines.append(line)
            for place, mark in marked:
                value = cells[place].strip() if len(cells) == width else ""
                mark.append(value or None, number)
            if len(batch) == _BATCH_ROWS:
                self._look_at(batch, batch_lines, columns)
        self._look_at(batch, batch_lines, columns)
        starts.append(lines.offset)
        if not line_numbers:
            raise SourceError(
                f"{self.path} has names of columns ({some(self.names)}) and no rows below them"
            )

    def _look_at(
        self, batch: list[list[str]], lines: list[int], columns: Mapping[str, Column]
    ) -> None:
        for name, cells in zip(self.names, zip(*batch, strict=True), strict=False):
            columns[name].look_at(cells, lines, self.path)
        batch.clear()
        lines.clear()

    def settle(self, columns: Mapping[str, Column]) -> None:
        """Take the kinds that all files together have."""
        self._columns = [
            (name, column.kind, column.declared is not None)
            if (column := columns.get(name)) is not None
            else (name, None, False)
            for name in self.names
        ]
        self._overhead = sum(len(name.encode()) + 8 for name, _, _ in self._columns)

    def read(self, row: int, note: Note) -> dict[str, Any]:
        text = self._file.text(self._starts[row], self._starts[row + 1])
        try:
            cells = next(self._reader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise SourceError(f"{self.place(row)}: {_words(error)}") from None
        if len(cells) != len(self._columns):
            raise SourceError(
                f"{self.place(row)}: there are {len(cells)} cells, expected "
                f"{len(self._columns)}, as many as there are names of columns"
            )
        features: dict[str, Any] = {}
        problems = []
        for (name, kind, is_declared), cell in zip(self._columns, cells, strict=True):
            if kind == "bytes":
                features[name] = cell.encode()
            elif kind is not None and cell and not cell.isspace():
                try:
                    if is_declared:
                        check_number(cell, kind)
                    if kind == "int64":
                        features[name] = int(cell)
                    else:
                        features[name] = as_float(float(cell), note, name, row, self.place)
                except ValueError as error:
                    problems.append(f"{self.place(row)}: column {name!r}: {error}")
        if problems:
            raise SourceError("; ".join(problems), problems)
        return features


def _check_header(path: Path, names: Sequence[str]) -> None:
    """Numbers as names are data without names, unless they count up by one, as pandas has them."""
    numbers = [
        name
        for name in names
        if any(map(str.isdigit, name)) and kind_of_cell(name) in ("int64", "float")
    ]
    whole = [int(name) for name in numbers if kind_of_cell(name) == "int64"]
    counts_up = len(whole) == len(numbers) > 1 and whole == list(
        range(whole[0], whole[0] + len(whole))
    )
    if not names or (numbers and not counts_up):
        found = f"there are numbers in it: {some(numbers)}" if names else "the file is blank"
        raise SourceError(
            f"{path}, line 1: expected the names of the columns; {found}. Add a first line with "
            "names"
        )


def _words(error: csv.Error) -> str:
    """What is wrong with the quotes of a row."""
    if "field larger" in str(error):
        return f"a cell is longer than {_LARGEST_CELL:,} characters; is a quote not closed?"
    if "unexpected end" in str(error):
        return "a cell begins with a quote and does not end"
    if "expected after" in str(error):
        return f"there is text behind the quote that ends a cell ({error})"
    return str(error)


def _notices(columns: Any, nameless: Sequence[str]) -> list[str]:
    columns = list(columns)
    notices = []
    unnamed = [column.name for column in columns if column.name in nameless]
    if unnamed:
        notices.append(f"columns without a name are called {some(unnamed)}")
    notices += [
        f"column {column.name!r} is stored as text, as not all of its cells are numbers: "
        f"{column.oddity}"
        for column in columns
        if column.oddity
    ]
    empty = [
        f"{column.empty_count:,} in {column.name!r} "
        f"({'empty text' if column.kind == 'bytes' else 'left out'})"
        for column in columns
        if column.empty_count
    ]
    if empty:
        notices.append(f"empty cells: {', '.join(empty)}")
    return notices
