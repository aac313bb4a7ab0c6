"""CSV and TSV: blocks of rows -> columns of cells, whose kinds all rows decide.

pyarrow parses blocks with regular quotes, with every cell as text. The csv module parses other
blocks, and finds the invalid rows.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.arrow.library import import_pyarrow
from recordsmith.buffers import Int64Array
from recordsmith.errors import Problems, SourceError
from recordsmith.example import BytesArray, Kind
from recordsmith.example.schema import MOST_FEATURES
from recordsmith.sources.files.text_file import TextFile, last_line_end
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.tables.cell_columns import CellColumn, cell_kind, cell_memory
from recordsmith.sources.tables.table_rows import LostDigits, RowBatch, TableRows
from recordsmith.stores import Location
from recordsmith.words import count

_LARGEST_CELL = 1 << 24
_SLOW_CHARACTERS = 1 << 18  # of rows at once with the csv module: a row takes 500 bytes or more
_MAX_REREADS = 8  # how often cells without a closing quote may cause all bytes to be read again
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LINE_BREAKS = tuple(b"\r\n")


class CsvRows(TableRows):
    """The rows of some files."""

    def __init__(
        self,
        paths: Sequence[Location],
        kinds: Mapping[str, Kind],
        *,
        wanted: Mapping[str, str],
        delimiter: str | None,
        encoding: str,
    ) -> None:
        """Read the names of the columns."""
        super().__init__(paths)
        import_pyarrow()
        csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_CELL))
        self._notices: list[str] = []
        self._files = [_CsvFile(self, path, delimiter, encoding, self._notices) for path in paths]
        self.columns: dict[str, CellColumn] = {}
        for file in self._files:
            for name in file.names:
                column = CellColumn(name, kinds.get(name), is_named=name not in file.nameless)
                self.columns.setdefault(name, column)
        self.check_columns(wanted, self.columns)

    @property
    def kinds(self) -> dict[str, Kind]:
        return {
            name: column.kind for name, column in self.columns.items() if not column.is_left_out
        }

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Parse one file."""
        is_empty = True
        for batch in self._files[number].batches():
            is_empty = False
            yield batch
        if is_empty:
            file = self._files[number]
            raise SourceError(
                f"no rows below the column names ({join_names(file.names)})", path=file.path
            )

    def notices(self) -> list[str]:
        columns = [column for column in self.columns.values() if not column.is_left_out]
        unnamed = [column.name for column in columns if not column.is_named]
        notices = [*self._notices, *count_notice(unnamed, "column", "without a name numbered")]
        notices += [
            f"column {column.name!r} stored as text, because a cell is not a number: "
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
            total = sum(column.empty_count for column in columns)
            notices.append(f"{count(total, 'empty cell')}: {', '.join(empty)}")
        return notices


class _CsvBatch(RowBatch):
    """Some rows of a file, as columns of cells."""

    def __init__(
        self,
        table: CsvRows,
        path: Location,
        cells: Mapping[str, Any],
        lines: Sequence[int] | Int64Array,
        faults: Mapping[int, str] | None = None,
    ) -> None:
        """`cells`: pyarrow.StringArray by name, of the rows without faults."""
        super().__init__(table, path, lines, faults)
        self._cells = cells
        self._columns = table.columns

    def survey(self) -> bool:
        changed = [
            self._columns[name].update(array, self.place) for name, array in self._cells.items()
        ]
        return any(changed)

    def values(self, name: str) -> list[str]:
        return (
            [cell.strip() for cell in self._cells[name].to_pylist()] if name in self._cells else []
        )

    def columns(self, lost: LostDigits) -> tuple[Any, Any, Mapping[int, Problems]]:
        columns: dict[str, Any] = {}
        validity: dict[str, npt.NDArray[np.bool_]] = {}
        problems: dict[int, Problems] = {}
        for name, array in self._cells.items():
            column = self._columns[name]
            if column.is_left_out:
                continue
            if column.kind == "bytes":
                columns[name] = BytesArray(*cell_memory(array))
                continue
            columns[name], valid, wrong = column.numbers(array, lost, self.place)
            if not valid.all():
                validity[name] = valid
            for number, problem in wrong.items():
                problems.setdefault(number, Problems()).add(f"column {name!r}: {problem}")
        return columns, validity, problems


class _CsvFile:
    """One file: the names of its columns, and its rows in blocks."""

    def __init__(
        self,
        table: CsvRows,
        path: Location,
        delimiter: str | None,
        encoding: str,
        notices: list[str],
    ) -> None:
        self._table = table
        self._budget = 0  # how many characters may still be read again
        self.path = path
        self._text = TextFile(path, encoding)
        block = next(self._text.lines(), (0, 1, b""))[2]
        header = self._text.decoded(block, self._text.start, 1)
        if delimiter is None:
            delimiter = guess_delimiter(path.name, header.split("\n", 1)[0])
            if delimiter != guess_delimiter(path.name, ""):
                notices.append(f"{path}: cells are separated by {_DELIMITERS[delimiter]}")
        self._delimiter = delimiter
        self._dialect = csv.reader((), delimiter=delimiter, strict=True).dialect
        lines = io.StringIO(header, newline="").readlines()
        reader = csv.reader(lines, self._dialect)
        try:
            names = next((cells for cells in reader if cells), [])
        except csv.Error as error:
            raise SourceError(_fault(error), path=path, line=1) from None
        read = "".join(lines[: reader.line_num])
        self._first = self._text.start + len(read.encode()), reader.line_num + 1
        self.nameless = {f"column_{at}" for at, name in enumerate(names) if not name.strip()}
        self.names = [name.strip() or f"column_{at}" for at, name in enumerate(names)]
        if len(names) > MOST_FEATURES:
            raise SourceError(
                f"{len(names):,} columns; at most {MOST_FEATURES:,} can be read",
                path=path,
                line=1,
                remedy="Store the numbers of a row in an array (`.npy`) or a Parquet list.",
            )
        twice = sorted(name for name, times in Counter(self.names).items() if times > 1)
        if twice:
            raise SourceError(
                f"repeated column names: {join_names(twice)}",
                path=path,
                line=1,
                remedy="Rename the columns.",
            )
        _check_header(path, self.names)

    def batches(self) -> Iterator[_CsvBatch]:
        """Parse all rows."""
        self._budget = 0
        return filter(len, self._text.blocks(self._take, *self._first))

    def _take(self, data: bytes, offset: int, line: int, is_last: bool) -> tuple[_CsvBatch, int]:
        batch, stop = self._parsed(data, line, is_last=is_last)
        if batch is None:
            batch, stop = self._parsed_slowly(data, offset, line, is_last=is_last)
            self._budget += _MAX_REREADS * stop
        return batch, stop

    def _parsed(self, data: bytes, line: int, *, is_last: bool) -> tuple[_CsvBatch | None, int]:
        """Parse the whole rows of a block; None if it needs the csv module."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if len(data) > _LARGEST_CELL or not self._delimiter.isascii():
            return None, 0
        content = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(content == ord('"'))
        ends = _line_ends(data, content, is_last=is_last)
        row_ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        stop = len(data) if is_last else int(row_ends[-1]) + 1 if len(row_ends) else 0
        quotes = quotes[: np.searchsorted(quotes, stop)]
        if not stop or not self._are_regular(content[:stop], quotes):
            return None, 0
        if data.startswith(codecs.BOM_UTF8):  # pyarrow drops it
            return None, 0
        is_ragged = False

        def skip_row(_: Any) -> str:
            nonlocal is_ragged
            is_ragged = True
            return "skip"

        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data[:stop]),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=stop + 1, column_names=self.names
                ),
                arrow_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip_row
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
        except pa.ArrowInvalid:
            return None, 0
        starts = np.append(0, row_ends + 1)
        is_blank = np.isin(content[np.minimum(starts, stop - 1)], _LINE_BREAKS) | (starts >= stop)
        starts = starts[~is_blank]
        if is_ragged or len(starts) != len(table):
            return None, 0
        cells = {
            name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            for name, column in zip(self.names, table.columns, strict=True)
        }
        lines = line + np.searchsorted(ends, starts)
        return _CsvBatch(self._table, self.path, cells, lines), stop

    def _are_regular(self, content: npt.NDArray[np.uint8], quotes: Int64Array) -> bool:
        """Whether every quote opens or closes a cell, or is doubled within one.

        Then all parsers find the same cells.
        """
        if not len(quotes):
            return True
        if len(quotes) % 2:
            return False
        borders = np.zeros(256, bool)
        borders[[ord(self._delimiter), *_LINE_BREAKS]] = True
        opening, closing = quotes[::2], quotes[1::2]
        is_doubled = closing[:-1] + 1 == opening[1:]
        is_begin = (opening == 0) | borders[content[opening - 1]]
        is_begin[1:] |= is_doubled
        last = len(content) - 1
        is_end = (closing == last) | borders[content[np.minimum(closing + 1, last)]]
        is_end[:-1] |= is_doubled
        return bool(is_begin.all() and is_end.all())

    def _parsed_slowly(
        self, data: bytes, offset: int, line: int, *, is_last: bool
    ) -> tuple[_CsvBatch, int]:
        """Parse rows of which some may be wrong; return them and the number of their bytes."""
        import pyarrow as pa

        block = data if is_last else data[: last_line_end(data)]
        text = io.StringIO(self._text.decoded(block, offset, line), newline="")
        width = len(self.names)
        rows: list[list[str]] = []
        numbers: list[int] = []
        faults: dict[int, str] = {}
        start = first = base = 0  # where a row starts, in characters and lines
        reader = csv.reader(text, self._dialect)
        while start < _SLOW_CHARACTERS:
            problem = ""
            try:
                cells = next(reader)
                if cells and len(cells) != width:
                    problem = f"found {count(len(cells), 'cell')}; expected {width}"
            except StopIteration:
                break
            except csv.Error as error:
                problem = _fault(error)
                if "unexpected end" in str(error) and not is_last and len(block) <= _LARGEST_CELL:
                    break  # the row continues after this block
                # an open quote may span many lines; only the first is skipped
                stop = text.tell()
                text.seek(start)
                text.readline()
                self._budget -= stop - text.tell()
                if self._budget < -_MAX_REREADS * len(data):
                    raise SourceError(
                        f"{problem}, like many rows before it",
                        path=self.path,
                        line=line + first,
                        remedy="Close every quote, and double quotes within cells.",
                    ) from None
                base = first + 1
                reader = csv.reader(text, self._dialect)
            if problem:
                faults[len(numbers)] = problem
            elif cells:
                rows.append(cells)
            if problem or cells:
                numbers.append(line + first)
            start, first = text.tell(), base + reader.line_num
        text.seek(start)
        taken = len(block) - len(text.read().encode())
        by_column = zip(*rows, strict=True) if rows else [()] * width
        columns = {
            name: pa.array(cells, pa.string())
            for name, cells in zip(self.names, by_column, strict=True)
        }
        return _CsvBatch(self._table, self.path, columns, numbers, faults), taken


def guess_delimiter(name: str, header: str) -> str:
    """The delimiter of a file from its name and first line: a comma, unless the line has none."""
    if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
    found = max(counts, key=counts.__getitem__)
    return "," if "," in header or not counts[found] else found


def _line_ends(data: bytes, content: npt.NDArray[np.uint8], *, is_last: bool) -> Int64Array:
    r"""Where lines end: the places of \n, also after \r, and of other \r."""
    if b"\r" not in data:
        return np.flatnonzero(content == ord("\n"))
    is_end = content == ord("\n")
    is_return = content == ord("\r")
    is_return[:-1] &= ~is_end[1:]
    is_return[-1] &= is_last  # a \n may follow
    return np.flatnonzero(is_end | is_return)


def _check_header(path: Location, names: Sequence[str]) -> None:
    """Refuse numbers as names: they are data. Numbers that count up are names, as in pandas."""
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
