"""CSV and TSV: one pass finds the rows and the kinds of columns, then any row can be read."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, Problems, SourceError
from recordsmith.example import Kind
from recordsmith.sources.cells import Column, cell_kind, check_number
from recordsmith.sources.json_values import as_float
from recordsmith.sources.lines import TextRows, TextTable
from recordsmith.sources.problems import count_notice, join_names, raise_problems
from recordsmith.sources.row_columns import ColumnSink
from recordsmith.sources.source import Note
from recordsmith.words import count

_BATCH_ROWS = 4096
_LARGEST_CELL = 1 << 24
_REREAD_BYTES, _MOST_REREADS = 1 << 20, 8  # what cells without a closing quote may cost
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class DelimitedRows(TextTable["_DelimitedFile"]):
    """The rows of some files with the same kind of columns. Safe to read from several threads.

    kinds: of each column, by its name.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        marks: Sequence[tuple[str, ColumnSink]],
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
        self.files = [_DelimitedFile(path, delimiter, encoding, self.notices) for path in paths]
        for number, file in enumerate(self.files):
            for name in file.names:
                self._columns.setdefault(name, Column(name, kinds.get(name)))
            file.survey_rows(number, self._columns, marks)
        nameless = [name for file in self.files for name in file.nameless]
        for name in nameless:  # every line ends with a comma
            if name in self._columns and not self._columns[name].filled_count:
                del self._columns[name]
        for file in self.files:
            file.settle(self._columns)
        self.kinds: dict[str, Kind] = {name: column.kind for name, column in self._columns.items()}
        self.notices += _notices(self._columns.values(), nameless)

    def read(self, number: int, row: int, note: Note) -> dict[str, Any]:
        """The features of one row of one file.

        Raises:
            SourceError: the row is ragged, or a cell does not fit its column.
        """
        return self.files[number].read(row, note)


class _DelimitedFile(TextRows):
    """One file: its names of columns, and where its rows begin."""

    def __init__(
        self, path: Path, delimiter: str | None, encoding: str, notices: list[str]
    ) -> None:
        super().__init__(path, encoding)
        self._dialect = _dialect(delimiter or ",")
        self._begin(delimiter, notices)
        self._columns: list[tuple[str, Kind | None, bool]] = []
        self._overhead = 0

    def sizes(self) -> Int64Array:
        return super().sizes() + self._overhead

    def _begin(self, delimiter: str | None, notices: list[str]) -> None:
        """Read the names of the columns."""
        lines = self.file.lines()
        if delimiter is None:
            self._dialect = _dialect(self._guess(next(self.file.lines(), ""), notices))
        names: list[str] = []
        try:
            names = next((cells for cells in self._reader(lines) if cells), [])
        except csv.Error as error:
            raise SourceError(_fault(error), path=self.path, line=1) from None
        self._first = (lines.offset, lines.number)
        self.nameless = [f"column_{place}" for place, name in enumerate(names) if not name.strip()]
        self.names = [name.strip() or f"column_{place}" for place, name in enumerate(names)]
        twice = sorted(name for name, count in Counter(self.names).items() if count > 1)
        if twice:
            raise SourceError(
                f"repeated column names: {join_names(twice)}",
                path=self.path,
                line=1,
                remedy="Rename the columns.",
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
        notices.append(f"{self.path}: cells are separated by {_DELIMITERS[found]}")
        return found

    def _reader(self, lines: Any) -> Any:
        return csv.reader(lines, self._dialect)

    def survey_rows(
        self, number: int, columns: Mapping[str, Column], marks: Sequence[tuple[str, ColumnSink]]
    ) -> None:
        """Find where rows begin, and what columns hold."""
        places = {name: place for place, name in enumerate(self.names)}
        for name, _ in marks:
            if name not in places:
                raise OptionError(
                    f"{self.path} has no column {name!r}",
                    value=name,
                    expected=f"one of {', '.join(self.names)}",
                )
        marked = [(places[name], mark) for name, mark in marks]
        width = len(self.names)
        batch: list[list[str]] = []
        batch_lines: list[int] = []
        starts, line_numbers = self._starts, self._lines  # for `add`, a million times
        lines = self.file.lines(*self._first)
        reader = self._reader(lines)
        reread_bytes = furthest = 0
        while True:
            start, line = lines.offset, lines.number
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                # it may have swallowed lines after a quote: only the first is lost
                reread_bytes += lines.offset - start
                furthest = max(furthest, lines.offset)
                if reread_bytes > _REREAD_BYTES + _MOST_REREADS * furthest:
                    raise SourceError(
                        f"{_fault(error)}, like many rows before it",
                        path=self.path,
                        line=line,
                        remedy="Close every quote, and double quotes within cells.",
                    ) from None
                lines = self.file.lines(start, line)
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
                self._update_columns(batch, batch_lines, columns)
        self._update_columns(batch, batch_lines, columns)
        self.end(lines.offset)
        if not len(self):
            raise SourceError(
                f"no rows below the column names ({join_names(self.names)})", path=self.path
            )

    def _update_columns(
        self, batch: list[list[str]], lines: list[int], columns: Mapping[str, Column]
    ) -> None:
        for name, cells in zip(self.names, zip(*batch, strict=True), strict=False):
            columns[name].update(cells, lines, self.path)
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
        try:
            cells = next(self._reader(io.StringIO(self.text(row), newline="")))
        except csv.Error as error:
            raise SourceError(_fault(error), path=self.path, line=self.line(row)) from None
        if len(cells) != len(self._columns):
            raise SourceError(
                f"found {count(len(cells), 'cell')}; expected {len(self._columns)}",
                path=self.path,
                line=self.line(row),
            )
        features: dict[str, Any] = {}
        problems = Problems()
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
                    problems.add(f"{self.place(row)}: column {name!r}: {error}")
        raise_problems(problems)
        return features


def _dialect(delimiter: str) -> Any:
    """Made once, as there is a reader for each row; made from words it costs more than its row."""
    return csv.reader((), delimiter=delimiter, strict=True).dialect


def _check_header(path: Path, names: Sequence[str]) -> None:
    """Numbers as names are data without names, unless they count up by one, as pandas has them."""
    numbers = [
        name
        for name in names
        if any(map(str.isdigit, name)) and cell_kind(name) in ("int64", "float")
    ]
    whole = [int(name) for name in numbers if cell_kind(name) == "int64"]
    counts_up = len(whole) == len(numbers) > 1 and whole == list(
        range(whole[0], whole[0] + len(whole))
    )
    if not names or (numbers and not counts_up):
        found = f"found numbers: {join_names(numbers)}" if names else "the file is blank"
        raise SourceError(
            f"no column names: {found}",
            path=path,
            line=1,
            remedy="Add a first line with column names.",
        )


def _fault(error: csv.Error) -> str:
    """What is wrong with the quotes of a row."""
    if "field larger" in str(error):
        return f"a cell exceeds {_LARGEST_CELL:,} characters, probably for a missing quote"
    if "unexpected end" in str(error):
        return "missing closing quote"
    if "expected after" in str(error):
        return f"text after a closing quote ({error})"
    return str(error)


def _notices(columns: Any, nameless: Sequence[str]) -> list[str]:
    columns = list(columns)
    unnamed = [column.name for column in columns if column.name in nameless]
    notices = count_notice(unnamed, "column", "without a name numbered")
    notices += [
        f"column {column.name!r} stored as text, because a cell is not a number: {column.oddity}"
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
        total = count(sum(column.empty_count for column in columns), "empty cell")
        notices.append(f"{total}: {', '.join(empty)}")
    return notices
