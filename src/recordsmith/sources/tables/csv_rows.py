"""CSV and TSV: blocks of rows -> columns of cells, whose kinds all rows decide.

pyarrow parses blocks with regular quotes, with every cell as text, and converts numbers. The csv
module parses other blocks, and finds what is wrong with a row. A column is int64 if all cells are
integers, float if all are numbers, else text; codes such as 007, phone numbers with a + and
integers beyond int64 are text.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import ArrowColumns, import_pyarrow
from recordsmith.format.example import Kind
from recordsmith.format.example.schema import MAX_FEATURES
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.text_file import TextFile, last_line_end
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.tables.table_rows import RowBatch, TableRows
from recordsmith.stores import Location
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import SourceError
from recordsmith.support.problems import Problems
from recordsmith.support.words import count

_MAX_CELL_CHARACTERS = 1 << 24
_SLOW_BYTES = 1 << 18  # of rows at once with the csv module: a row takes 500 bytes or more
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_LINE_BREAKS = tuple(b"\r\n")
_OPEN_QUOTE = "unexpected end"
_LIMIT = 2**63
_OF_FLOATS = b"+.eEnNaAiIfFtTyY"  # in addition to digits and -
_INTEGER = r"-?(?:0|[1-9][0-9]{0,18})"
_FLOAT = (
    r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+[eE][+-]?[0-9]+"
    r"|[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
)


class CsvRows(TableRows):
    """The rows of some files."""

    def __init__(
        self,
        paths: Sequence[Location],
        kinds: Mapping[str, Kind],
        *,
        required: Mapping[str, str],
        delimiter: str | None,
        encoding: str,
    ) -> None:
        super().__init__(paths)
        import_pyarrow()
        csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARACTERS))
        self._files = [_CsvFile(self, path, delimiter, encoding) for path in paths]
        self.columns: dict[str, _CellColumn] = {}
        for file in self._files:
            for name in file.names:
                column = _CellColumn(name, kinds.get(name), is_named=name not in file.nameless)
                self.columns.setdefault(name, column)
        self.check_columns(required, self.columns)

    @property
    def kinds(self) -> dict[str, Kind]:
        return {
            name: column.kind for name, column in self.columns.items() if not column.is_left_out
        }

    def batches(self, number: int) -> Iterator[RowBatch]:
        file = self._files[number]
        batch = None
        for batch in file.batches():
            yield batch
        if batch is None:
            raise SourceError(
                f"no rows below the column names ({join_names(file.names)})", path=file.path
            )

    def notices(self) -> list[str]:
        columns = [column for column in self.columns.values() if not column.is_left_out]
        unnamed = [column.name for column in columns if not column.is_named]
        delimiters = [file.notice for file in self._files if file.notice]
        notices = [*delimiters, *count_notice(unnamed, "column", "without a name numbered")]
        notices += [
            f"column {column.name!r} stored as text, because a cell is not a number: "
            f"{column.first_text}"
            for column in columns
            if column.first_text
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
    """Some rows of a file, as columns of cells: pyarrow.StringArray by name."""

    def __init__(
        self,
        table: CsvRows,
        path: Location,
        cells: Mapping[str, Any],
        lines: Sequence[int] | Int64Array,
    ) -> None:
        super().__init__(table, path, lines)
        self._cells = cells
        self._columns = table.columns

    def survey(self) -> bool:
        changed = [
            self._columns[name].update(cells, self.place) for name, cells in self._cells.items()
        ]
        return any(changed)

    def values(self, name: str) -> list[str]:
        if name not in self._cells:
            return []
        return [cell.strip() for cell in self._cells[name].to_pylist()]

    def columns(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, Problems]]:
        arrays: dict[str, Any] = {}
        problems: dict[int, Problems] = {}
        for name, cells in self._cells.items():
            if not self._columns[name].is_left_out:
                arrays[name], wrong = self._columns[name].convert(cells)
                for number, problem in wrong.items():
                    problems.setdefault(number, Problems()).add(f"column {name!r}: {problem}")
        batch = import_pyarrow().RecordBatch.from_pydict(arrays)
        return *ArrowColumns(batch.schema).convert(batch), problems


class _CsvFile:
    """One file: the names of its columns, and its rows in blocks.

    nameless: which names are numbers of columns without a name.
    notice: about its delimiter; empty for the usual one.
    """

    def __init__(
        self, table: CsvRows, path: Location, delimiter: str | None, encoding: str
    ) -> None:
        self._table = table
        self.path = path
        self._text = TextFile(path, encoding)
        block = next(self._text.lines(), (0, 1, b""))[2]
        content = self._text.decoded(block, self._text.start, 1)
        text = io.StringIO(content, newline="")
        self.notice = ""
        if delimiter is None:
            delimiter = guess_delimiter(path.name, text.readline())
            text.seek(0)
            if delimiter != guess_delimiter(path.name, ""):
                self.notice = f"{path}: cells are separated by {_DELIMITERS[delimiter]}"
        self._delimiter = delimiter
        reader = self._csv_reader(text)
        try:
            names: list[str] = next((cells for cells in reader if cells), [])
        except csv.Error as error:
            raise self._error(error, 1) from None
        header_bytes = len(content[: text.tell()].encode())
        self._first = self._text.start + header_bytes, reader.line_num + 1
        self.names = column_names(names)
        self.nameless = {
            found for found, name in zip(self.names, names, strict=True) if not name.strip()
        }
        _check_header(path, self.names)

    def batches(self) -> Iterator[_CsvBatch]:
        return filter(len, self._text.blocks(self._take, *self._first))

    def _take(self, data: bytes, offset: int, line: int, is_last: bool) -> tuple[_CsvBatch, int]:
        batch, stop = self._parse(data, line, is_last=is_last)
        if batch is not None:
            return batch, stop
        head = last_line_end(data[:_SLOW_BYTES]) if len(data) > _SLOW_BYTES else 0
        if head:
            batch, stop = self._parse_slowly(data[:head], offset, line, is_last=False)
        if batch is None or not stop:
            block = data if is_last else data[: last_line_end(data)]
            batch, stop = self._parse_slowly(block, offset, line, is_last=is_last)
        return batch, stop

    def _csv_reader(self, lines: Iterable[str]) -> Any:
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    def _error(self, error: csv.Error, line: int) -> SourceError:
        """What is wrong with the quotes of a row."""
        text = str(error)
        if "field larger" in text:
            text = (
                f"a cell exceeds {_MAX_CELL_CHARACTERS:,} characters, probably for a missing quote"
            )
        elif _OPEN_QUOTE in text:
            text = "missing closing quote"
        elif "expected after" in text:
            text = f"text after a closing quote ({text})"
        return SourceError(
            text,
            path=self.path,
            line=line,
            remedy="Close every quote, and double quotes within cells.",
        )

    def _parse(self, data: bytes, line: int, *, is_last: bool) -> tuple[_CsvBatch | None, int]:
        """Parse the whole rows of a block; None if it needs the csv module."""
        if len(data) > _MAX_CELL_CHARACTERS or not self._delimiter.isascii():
            return None, 0
        content = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(content == ord('"')) if b'"' in data else np.empty(0, np.int64)
        ends = _line_ends(data, content, is_last=is_last)
        row_ends = ends[np.searchsorted(quotes, ends) % 2 == 0] if len(quotes) else ends
        stop = len(data) if is_last else int(row_ends[-1]) + 1 if len(row_ends) else 0
        quotes = quotes[: np.searchsorted(quotes, stop)]
        if not stop or not self._are_regular(content[:stop], quotes):
            return None, 0
        if data.startswith(codecs.BOM_UTF8):  # pyarrow drops it
            return None, 0
        cells = self._read(data[:stop])
        starts = np.append(0, row_ends + 1)
        is_blank = np.isin(content[np.minimum(starts, stop - 1)], _LINE_BREAKS) | (starts >= stop)
        starts = starts[~is_blank]
        if cells is None or any(len(starts) != len(column) for column in cells.values()):
            return None, 0
        return _CsvBatch(self._table, self.path, cells, line + np.searchsorted(ends, starts)), stop

    def _read(self, data: bytes) -> dict[str, Any] | None:
        """Parse rows with pyarrow; None if some have another number of cells."""
        pa = import_pyarrow()
        from pyarrow import csv as arrow_csv

        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=self.names
                ),
                arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.string()),
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
        except pa.ArrowInvalid:
            return None
        return {
            name: column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            for name, column in zip(self.names, table.columns, strict=True)
        }

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

    def _parse_slowly(
        self, block: bytes, offset: int, line: int, *, is_last: bool
    ) -> tuple[_CsvBatch, int]:
        """Parse rows with the csv module; return them and the number of their bytes."""
        pa = import_pyarrow()
        lines = io.StringIO(self._text.decoded(block, offset, line), newline="").readlines()
        rows: list[list[str]] = []
        numbers: list[int] = []
        begin = 0
        reader = self._csv_reader(lines)
        try:
            for cells in reader:
                if cells and len(cells) != len(self.names):
                    raise SourceError(
                        f"found {count(len(cells), 'cell')}; expected {len(self.names)}",
                        path=self.path,
                        line=line + begin,
                        remedy="Fix or remove the line.",
                    )
                if cells:
                    rows.append(cells)
                    numbers.append(line + begin)
                begin = reader.line_num
        except csv.Error as error:
            is_open = _OPEN_QUOTE in str(error)
            if not is_open or is_last or len(block) > _MAX_CELL_CHARACTERS:
                raise self._error(error, line + begin) from None
            # the row continues after this block
        columns = zip(*rows, strict=True) if rows else [()] * len(self.names)
        arrays = {
            name: pa.array(cells, pa.string())
            for name, cells in zip(self.names, columns, strict=True)
        }
        taken = sum(len(text.encode()) for text in lines[:begin])
        return _CsvBatch(self._table, self.path, arrays, numbers), taken


def column_names(cells: Sequence[str]) -> list[str]:
    """The names of columns by the cells of the first line; those without one are numbered."""
    return [name.strip() or f"column_{number}" for number, name in enumerate(cells)]


def guess_delimiter(name: str, header: str) -> str:
    """The delimiter of a file from its name and first line: a comma, unless the line has none."""
    if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
    most = max(counts, key=counts.__getitem__)
    return "," if "," in header or not counts[most] else most


def _line_ends(data: bytes, content: npt.NDArray[np.uint8], *, is_last: bool) -> Int64Array:
    r"""Where lines end: the places of \n, also after \r, and of other \r."""
    is_end = content == ord("\n")
    if b"\r" not in data:
        return np.flatnonzero(is_end)
    is_return = content == ord("\r")
    is_return[:-1] &= ~is_end[1:]
    is_return[-1] &= is_last  # a \n may follow
    return np.flatnonzero(is_end | is_return)


def _check_header(path: Location, names: Sequence[str]) -> None:
    """Refuse too many or repeated names, and numbers and file names of images, which are data.

    Numbers that count up are names, as in pandas.
    """
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    numbers = [
        name
        for name in names
        if any(map(str.isdigit, name)) and _cell_kind(name) in ("int64", "float")
    ]
    whole = [int(name) for name in numbers if _cell_kind(name) == "int64"]
    counts_up = len(whole) > 1 and whole == [whole[0] + n for n in range(len(numbers))]
    problem, remedy = "", "Add a first line with column names."
    if len(names) > MAX_FEATURES:
        problem = f"{len(names):,} columns; at most {MAX_FEATURES:,} can be read"
        remedy = "Store the numbers of a row in an array (`.npy`) or a Parquet list."
    elif not names:
        problem = "no column names: the file is blank"
    elif numbers and not counts_up:
        problem = f"no column names: found numbers: {join_names(numbers)}"
    elif images := [name for name in names if has_image_name(name)]:
        problem = f"no column names: found file names: {join_names(images)}"
    elif repeated:
        problem = f"repeated column names: {join_names(repeated)}"
        remedy = "Rename the columns."
    if problem:
        raise SourceError(problem, path=path, line=1, remedy=remedy)


class _CellColumn:
    """A column, over all files.

    is_left_out: whether it has neither a name nor values, as where every line ends with a comma.
    first_text: the first cell that made a column of numbers text, with its place.
    """

    def __init__(self, name: str, declared: Kind | None, *, is_named: bool) -> None:
        self.name = name
        self.is_named = is_named
        self.empty_count = 0
        self.first_text = ""
        self._is_declared = declared is not None
        self._kind = declared
        self._is_filled = False
        self._row_count = 0
        self._surveyed: tuple[Any, Any] = (None, None)  # cells, as numbers

    @property
    def kind(self) -> Kind:
        return self._kind or "bytes"

    @property
    def is_left_out(self) -> bool:
        return not self.is_named and not self._is_filled

    def update(self, cells: Any, place: Callable[[int], str]) -> bool:
        """Consider more cells; return whether they change how earlier ones are stored."""
        has_earlier = self._row_count > 0
        self._row_count += len(cells)
        empty_count = len(cells) - int(np.count_nonzero(np.diff(_offsets(cells))))
        self.empty_count += empty_count
        if empty_count == len(cells):
            return False
        before, was_left_out = self._kind, self.is_left_out
        self._is_filled = True
        if self._kind != "bytes" and not self._is_declared:
            self._kind = self._kind_with(cells, place)
        return has_earlier and (self._kind != before or was_left_out)

    def _kind_with(self, cells: Any, place: Callable[[int], str]) -> Kind | None:
        numbers = _as_numbers(cells)
        if numbers is not None:
            self._surveyed = (cells, numbers)
            if numbers.null_count == len(numbers):
                return self._kind
            return "float" if _is_float(numbers) or self._kind == "float" else "int64"
        kinds = {self._kind}
        for number, cell in enumerate(cells.to_pylist()):
            kind = _cell_kind(cell)
            if kind == "bytes":
                if kinds != {None}:
                    self.first_text = f"{place(number)}: {cell:.40}"
                return "bytes"
            kinds.add(kind)
        return "float" if "float" in kinds else "int64"

    def convert(self, cells: Any) -> tuple[Any, dict[int, str]]:
        """The values as a pyarrow.Array, and why some cells cannot be stored, by row."""
        if self.kind == "bytes":
            return cells, {}
        from pyarrow import compute

        as_float = self.kind == "float"
        surveyed, numbers = self._surveyed
        self._surveyed = (None, None)
        if surveyed is not cells or (as_float and not _is_float(numbers)):
            numbers = _as_numbers(cells, as_float=as_float)
        if numbers is None or (_is_float(numbers) and not as_float):
            return self._convert_one_by_one(cells)
        if _is_float(numbers):
            infinite = cells.filter(compute.is_inf(numbers))
            if len(infinite) and not _all_match(infinite, "[^0-9]*"):
                return self._convert_one_by_one(cells)
        return numbers, {}

    def _convert_one_by_one(self, cells: Any) -> tuple[Any, dict[int, str]]:
        pa = import_pyarrow()
        values: list[int | float | None] = [None] * len(cells)
        problems: dict[int, str] = {}
        for row, cell in enumerate(cells.to_pylist()):
            if not cell or cell.isspace():
                continue
            try:
                values[row] = _to_number(cell, self.kind)
            except ValueError as error:
                problems[row] = str(error)
        return pa.array(values, pa.int64() if self.kind == "int64" else pa.float64()), problems


def _cell_kind(cell: str) -> Kind | None:
    """The kind of a single cell; None if it is blank."""
    bare = cell.strip(" \t")
    if not bare:
        return None
    if re.fullmatch(_INTEGER, bare) and -_LIMIT <= int(bare) < _LIMIT:
        return "int64"
    return "float" if re.fullmatch(_FLOAT, bare) else "bytes"


def _to_number(cell: str, kind: Kind) -> int | float:
    """The number in a cell; ValueError if it is none of this kind."""
    bare = cell.strip()
    is_integer = re.fullmatch("[+-]?[0-9]+", bare) is not None
    if kind == "int64":
        if not is_integer:
            raise ValueError(f"{cell!r:.40} is not an integer")
        if not -_LIMIT <= int(bare[:30]) < _LIMIT:
            raise ValueError(f"{cell} does not fit int64; expected the kind bytes")
        return int(bare)
    if not is_integer and not re.fullmatch(_FLOAT, bare):
        raise ValueError(f"{cell!r:.40} is not a number")
    number = float(bare)
    if math.isinf(number) and re.search("[0-9]", cell):
        raise ValueError(f"{cell:.40} does not fit a 32-bit float")
    return number


def _as_numbers(cells: Any, *, as_float: bool = False) -> Any:
    """Cells as an array of int64 or float64, null for blank ones; None if one is neither.

    pyarrow also takes 007 as a number, which is text here.
    """
    from pyarrow import compute

    pa = import_pyarrow()
    offsets = _offsets(cells)
    content = memoryview(cells.buffers()[2] or b"") if len(cells) else memoryview(b"")
    others = content[offsets[0] : offsets[-1]].tobytes().translate(None, b"0123456789-")
    if b" " in others or b"\t" in others:
        cells = compute.ascii_trim(cells, " \t")
        others = others.translate(None, b" \t")
    if others.translate(None, _OF_FLOATS):
        return None  # not left to `cast`, which describes each cell that it refuses
    is_filled = np.diff(_offsets(cells)) > 0
    if not is_filled.all():
        # neither pa.scalar nor pa.array, which import pandas where it is installed
        valid = pa.py_buffer(np.packbits(is_filled, bitorder="little"))
        buffers = pa.py_buffer(_offsets(cells)), cells.buffers()[2], valid
        cells = pa.StringArray.from_buffers(len(cells), *buffers)
    with suppress(pa.ArrowInvalid):
        if not others and not as_float:
            integers = cells.cast(pa.int64())
            starts = compute.starts_with(cells, "0"), compute.starts_with(cells, "-0")
            if _all_match(cells.filter(compute.or_(*starts)), _INTEGER):
                return integers
        floats = cells.cast(pa.float64())
        integral = cells.filter(compute.invert(compute.match_substring(cells, ".")))
        is_integer = compute.match_substring_regex(integral, f"^(?:{_INTEGER})$")
        integral.filter(is_integer).cast(pa.int64())
        if _all_match(integral, f"{_INTEGER}|{_FLOAT}"):
            return floats
    return None


def _all_match(cells: Any, pattern: str) -> bool:
    from pyarrow import compute

    matches = compute.match_substring_regex(cells, f"^(?:{pattern})$")
    return bool(compute.all(matches, min_count=0).as_py())


def _offsets(cells: Any) -> npt.NDArray[np.int32]:
    """Where each cell begins in the memory of a pyarrow.StringArray."""
    if not len(cells):
        return np.zeros(1, np.int32)
    return np.frombuffer(cells.buffers()[1], np.int32)[cells.offset :][: len(cells) + 1]


def _is_float(numbers: Any) -> bool:
    return bool(import_pyarrow().types.is_floating(numbers.type))
