"""Parquet: batches of columns -> payloads in a spool, encoded many rows at a time.

Integers, booleans, times and durations (in microseconds; timestamps count from 1970, UTC) become
int64; floats and decimals float; texts, bytes and dates (as 2024-01-31) bytes; lists of these as
well. What is null is left out of its row. Structs, maps and lists of lists are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordsmith.errors import MissingExtraError, OptionError, Problems, SourceError
from recordsmith.example import BytesArray, Kind, RaggedArray, encode_columns, encode_example
from recordsmith.sources.json_values import EXACT, LOST_DIGITS
from recordsmith.sources.problems import count_notice, join_names, raise_problems
from recordsmith.sources.row_columns import ColumnSink, category_text
from recordsmith.sources.source import Note
from recordsmith.sources.spool import Spool

_BATCH_ROWS = 8192
_BATCH_BYTES = 16 << 20


class ParquetRows:
    """The rows of some files. Safe to read from several threads.

    kinds: of each column, by its name.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        marks: Sequence[tuple[str, ColumnSink]],
        kinds: Mapping[str, Kind],
    ) -> None:
        """Read all files, and encode them; `marks` hear of the columns they are named with.

        Raises:
            MissingExtraError: pyarrow is not installed.
            OptionError: there is no column of a name that was asked for.
            SourceError: a file is no Parquet file, or has columns that cannot be stored.
            FileAccessError: a file cannot be read; there is no space for the temporary file.
        """
        self.notices: list[str] = []
        self._paths = list(paths)
        self._spool = Spool()
        self._starts = [0]
        files = [_ParquetFile(path) for path in paths]
        self.kinds = self._kinds(files, [name for name, _ in marks], kinds)
        for number, file in enumerate(files):
            for row, columns in file.batches(self.kinds):
                for name, mark in marks:
                    for value in columns[name].to_pylist():
                        mark.append(category_text(value), number)
                self._append(file.path, row, columns)
            self._starts.append(len(self._spool))
            self.notices += file.notices
        self._spool.flush()
        if not len(self._spool):
            raise SourceError("the table has no rows", path=paths[0])

    @property
    def counts(self) -> list[int]:
        return np.diff(self._starts).tolist()

    def sizes(self, number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """int64, (rows,): how long the records of one file will be."""
        return self._spool.sizes[self._starts[number] : self._starts[number + 1]]

    def place(self, number: int, row: int) -> str:
        """File and number of a row, from 0."""
        return f"{self._paths[number]}, row {row}"

    def read(self, number: int, row: int, note: Note) -> bytes:
        """The payload of one row of one file."""
        return self._spool.read(self._starts[number] + row)

    def _kinds(
        self, files: Sequence[_ParquetFile], marked: Sequence[str], declared: Mapping[str, Kind]
    ) -> dict[str, Kind]:
        """The kind of each column in all files.

        Raises:
            SourceError: a column cannot be stored, or is text here and numbers there.
        """
        kinds: dict[str, Kind] = {}
        problems = Problems()
        for file in files:
            for name, found in file.kinds.items():
                kind = declared.get(name, found)
                before = kinds.setdefault(name, kind)
                if {before, kind} == {"int64", "float"}:
                    kinds[name] = "float"
                elif before != kind:
                    problems.add(f"{file.path}: column {name!r} is {kind}, but {before} elsewhere")
            problems.extend(file.problems)
        raise_problems(problems)
        for name in (*marked, *declared):
            if name not in kinds:
                raise OptionError(
                    f"{files[0].path} has no column {name!r}",
                    value=name,
                    expected=f"one of {', '.join(kinds)}",
                )
        return kinds

    def _append(self, path: Path, first: int, columns: Mapping[str, Any]) -> None:
        """Encode one batch: rows without nulls as columns, the others one by one."""
        lacking = np.zeros(len(next(iter(columns.values()))), bool)
        for column in columns.values():
            if column.null_count:
                lacking |= column.is_null().to_numpy(zero_copy_only=False)
        try:
            if not lacking.any():
                self._spool.extend(*encode_columns(_encodable(columns, self.kinds)))
                return
            whole = {name: column.filter(_as_mask(~lacking)) for name, column in columns.items()}
            payloads = _split(*encode_columns(_encodable(whole, self.kinds)))
            rest = {
                name: column.filter(_as_mask(lacking)).to_pylist()
                for name, column in columns.items()
            }
            rows = zip(*rest.values(), strict=True)
            for is_lacking in lacking.tolist():
                self._spool.append(
                    encode_example(dict(zip(rest, next(rows), strict=True)), self.kinds)
                    if is_lacking
                    else next(payloads)
                )
        except OptionError as error:
            raise SourceError(f"rows from {first}: {error}", path=path) from None


class _ParquetFile:
    """One file: what its columns are, and its rows in batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = Problems()
        self.notices: list[str] = []
        self.kinds: dict[str, Kind] = {}
        self._lost: dict[str, list[int]] = {}  # column -> rows whose numbers lose digits
        try:
            import pyarrow as pa
            from pyarrow import compute, parquet
        except ImportError:
            raise MissingExtraError("arrow", "pyarrow") from None
        self._arrow = pa
        self._compute = compute
        try:
            self._file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"not a Parquet file: {_reason(error)}", path=path) from None
        nothing = []
        names = self._file.schema_arrow.names
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise SourceError(f"repeated column names: {join_names(twice)}", path=path)
        for field in self._file.schema_arrow:
            if pa.types.is_null(field.type):
                nothing.append(field.name)
                continue
            kind = self._kind(field.type)
            if kind is None:
                self.problems.add(
                    f"{path}: column {field.name!r} has the unsupported type {field.type!s:.80}; "
                    "expected numbers, text, bytes, dates or lists of these"
                )
            else:
                self.kinds[field.name] = kind
        self.notices += count_notice(nothing, "column", "without values skipped")

    def batches(self, kinds: Mapping[str, Kind]) -> Any:
        """(number of the first row, columns of that batch by name), as they can be stored."""
        row = 0
        nulls = dict.fromkeys(self.kinds, 0)
        batches = self._file.iter_batches(self._batch_rows(), columns=list(self.kinds))
        while True:
            try:
                batch = next(batches, None)
            except (self._arrow.ArrowException, OSError) as error:
                raise SourceError(
                    f"cannot read rows from {row}: {_reason(error)}", path=self.path
                ) from None
            if batch is None:
                break
            columns = {}
            for name in self.kinds:
                column = batch.column(name)
                nulls[name] += column.null_count
                try:
                    columns[name] = self._stored(column, kinds[name])
                except (self._arrow.ArrowException, ValueError, OverflowError) as error:
                    raise SourceError(
                        f"rows from {row}: cannot store column {name!r} ({column.type}) as "
                        f"{kinds[name]}: {error}",
                        path=self.path,
                    ) from None
                self._find_lost_digits(name, column, row)
            if columns:
                yield row, columns
            row += batch.num_rows
        self._file.close()
        places = [f"{count:,} in {name!r}" for name, count in nulls.items() if count]
        if places:
            self.notices.append(f"{self.path}: nulls left out of their rows: {', '.join(places)}")
        for name, (count, first) in self._lost.items():
            self.notices.append(
                f"{self.path}: {count:,} {LOST_DIGITS}: column {name!r}, the first in row {first}"
            )

    def _batch_rows(self) -> int:
        """How many rows are read at once: fewer where they are long."""
        metadata = self._file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        row_bytes: int = sum(group.total_byte_size for group in groups) // max(1, metadata.num_rows)
        return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, row_bytes)))

    def _kind(self, kind: Any) -> Kind | None:
        """What a type of Arrow is stored as."""
        types = self._arrow.types
        if isinstance(kind, self._arrow.BaseExtensionType):
            return self._kind(kind.storage_type)
        if types.is_dictionary(kind):
            return self._kind(kind.value_type)
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return None if types.is_nested(kind.value_type) else self._kind(kind.value_type)
        if types.is_integer(kind) or types.is_boolean(kind):
            return "int64"
        if types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind):
            return "int64"
        if types.is_floating(kind) or types.is_decimal(kind):
            return "float"
        is_bytes = (
            types.is_string(kind)
            or types.is_large_string(kind)
            or types.is_binary(kind)
            or types.is_large_binary(kind)
            or types.is_fixed_size_binary(kind)
            or types.is_date(kind)
            or str(kind) in ("string_view", "binary_view")
        )
        return "bytes" if is_bytes else None

    def _stored(self, column: Any, kind: Kind) -> Any:
        """A column as one of int64, double, large_binary, or large_list of one of these."""
        arrow, types = self._arrow, self._arrow.types
        if isinstance(column, arrow.ExtensionArray):
            return self._stored(column.storage, kind)
        if types.is_dictionary(column.type):
            return self._stored(column.dictionary_decode(), kind)
        if types.is_nested(column.type):
            flat = column.flatten()
            if flat.null_count:
                raise ValueError("nulls within lists are not supported")
            lengths = self._compute.list_value_length(column).fill_null(0).to_numpy()
            offsets = arrow.array(np.cumsum([0, *lengths.tolist()]), arrow.int64())
            mask = column.is_null() if column.null_count else None
            return arrow.LargeListArray.from_arrays(offsets, self._stored(flat, kind), mask=mask)
        if kind == "bytes":
            if not (types.is_binary(column.type) or types.is_fixed_size_binary(column.type)):
                column = column.cast(arrow.large_string())
            return column.cast(arrow.large_binary())
        if types.is_timestamp(column.type) or types.is_duration(column.type):
            unit = arrow.duration if types.is_duration(column.type) else arrow.timestamp
            column = column.cast(unit("us"), safe=False)
        elif types.is_time(column.type):
            column = column.cast(arrow.time64("us"), safe=False)
        if types.is_decimal(column.type) or types.is_float16(column.type):
            column = column.cast(arrow.float64())
        if kind == "float":
            return column.cast(arrow.float64(), safe=False)
        return column.cast(arrow.int64())

    def _find_lost_digits(self, name: str, column: Any, first: int) -> None:
        if not (self._arrow.types.is_float64(column.type) or column.type == self._arrow.int64()):
            return
        if self.kinds[name] != "float":
            return
        values = column.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            lost = (np.abs(values) > EXACT) & np.isfinite(values)
            lost &= values.astype(np.float32) != values
        count = int(lost.sum())
        if count:
            known = self._lost.setdefault(name, [0, first + int(lost.argmax())])
            known[0] += count


def _encodable(columns: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """Columns of Arrow without nulls, as `encode_columns` takes them."""
    return {name: _as_column(column, kinds[name]) for name, column in columns.items()}


def _as_column(column: Any, kind: Kind) -> Any:
    import pyarrow as pa

    if pa.types.is_large_list(column.type):
        return RaggedArray(_as_column(column.flatten(), kind), column.offsets.to_numpy())
    if kind == "bytes":
        _, offset_memory, memory = column.buffers()
        offsets = np.frombuffer(offset_memory, np.int64) if offset_memory else np.zeros(1, np.int64)
        offsets = offsets[column.offset : column.offset + len(column) + 1]
        if not len(offsets):
            offsets = np.zeros(1, np.int64)
        return BytesArray(memory or b"", offsets)
    return column.to_numpy(zero_copy_only=False)


def _as_mask(mask: Any) -> Any:
    import pyarrow as pa

    return pa.array(mask)


def _split(data: Any, offsets: Any) -> Any:
    """The payloads one by one."""
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        yield data[start:stop].tobytes()


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
