"""Arrow streams, Parquet and Feather files: batches of columns.

Types are stored as in `recordsmith.dataset.arrow`. A column of images as in Hugging Face datasets,
a struct of bytes and path, becomes `image/encoded` and `image/filename`.
"""

from __future__ import annotations

import io
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from recordsmith.dataset import (
    ArrowColumns,
    ArrowStream,
    as_stored,
    feature_kinds,
    import_pyarrow,
    kind_of_type,
    schema_as_text,
)
from recordsmith.format.example import Kind
from recordsmith.format.example.keys import FILENAME, IMAGE
from recordsmith.sources.files.known_names import ARROW_SUFFIXES
from recordsmith.sources.problems import count_notice, join_names, raise_problems
from recordsmith.sources.tables.arrow_memory import (
    decoded_bytes,
    memory_of_groups,
    rows_that_fit,
)
from recordsmith.sources.tables.nested_columns import described_features, flat_table
from recordsmith.sources.tables.precision import PrecisionLoss
from recordsmith.sources.tables.table_rows import RowBatch, TableRows
from recordsmith.stores import Location, ObjectReader
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.problems import Problems

_IMAGE_NAME = "image"
_BATCH_ROWS = 8192
_BATCH_BYTES = 16 << 20
_IPC_MAGIC = b"ARROW1"
_STREAM_MAGIC = b"\xff\xff\xff\xff"


class ArrowRows(TableRows):
    """The rows of some files with the same columns, or of one stream."""

    unit = "row"

    def __init__(
        self,
        paths: Sequence[Location],
        stream: ArrowStream | None,
        kinds: Mapping[str, Kind],
        *,
        required: Mapping[str, str],
        image_column: str | None = None,
        batch_bytes: int | None = None,
    ) -> None:
        """Check the types of all columns.

        Args:
            batch_bytes: limits the memory of a batch, also if values are repeated; None for a limit
                of the average.
        """
        super().__init__(paths)
        self._pa = import_pyarrow()
        self.nulls: Counter[str] = Counter()
        if stream is not None:
            self._inputs = [_stream(stream, paths[0])]
        else:
            self._inputs = [_open_file(path, batch_bytes) for path in paths]
        try:
            described = [
                _described(path, file.schema, image_column)
                for path, file in zip(paths, self._inputs, strict=True)
            ]
        except UnicodeDecodeError:
            raise SourceError("the name of a column is not UTF-8", path=paths[0]) from None
        self.image, self._others, self.class_names, self.of_lists = described[0]
        schema = self._inputs[0].schema
        problems = Problems()
        for path, file, other in zip(paths, self._inputs, described, strict=True):
            problems.extend(
                f"{path}: {difference}" for difference in _differences(schema, file.schema)
            )
            if other != described[0]:
                problems.add(f"{path}: other images or class names")
        raise_problems(
            problems, "Write all files with the same columns and types, or pack them one by one."
        )
        as_bytes = dict.fromkeys(self._others, self._pa.large_binary())
        self._schema = self._pa.schema(
            [
                self._pa.field(field.name, as_bytes.get(field.name, field.type))
                for field in schema
                if field.name != self.image
            ]
        )
        self._natural = feature_kinds(self._schema, problems, f"{paths[0]}: ")
        if self.image is not None:
            problems.extend(
                f"{paths[0]}: column {name!r} has the name of an image feature; rename it"
                for name in (IMAGE, FILENAME)
                if name in self._natural
            )
        raise_problems(problems)
        self._kinds = {name: kinds.get(name, kind) for name, kind in self._natural.items()}
        images = () if self.image is None else (self.image,)
        self.check_columns(required, (*self._kinds, *images))
        if self.image is not None:
            self._kinds[IMAGE] = self._kinds[FILENAME] = "bytes"

    def batches(self, number: int) -> Iterator[_ArrowBatch]:
        first = 0
        path = self.paths[number]
        with _reading(path, first):
            batches = iter(self._inputs[number].batches())
        while True:
            with _reading(path, first):
                batch = next(batches, None)
            if batch is None:
                break
            if len(batch):
                columns = self._stored(path, first, batch)
                yield _ArrowBatch(self, path, range(first, first + len(batch)), columns)
            first += len(batch)
        if not first and len(self.paths) == 1:
            raise SourceError("the table has no rows", path=path)

    def arrow_schema(self, loss: PrecisionLoss) -> str:
        kept = [
            field
            for field in self._schema
            if field.name not in loss.inexact
            and not self._pa.types.is_null(field.type)
            and self.kinds[field.name] == kind_of_type(field.type)
        ]
        return schema_as_text(self._pa.schema(kept))

    def notices(self) -> list[str]:
        empty = [field.name for field in self._schema if self._pa.types.is_null(field.type)]
        notices = count_notice(empty, "column", "without values skipped")
        nulls_by_column = [
            f"{nulls:,} in {name!r}"
            for name, nulls in self.nulls.items()
            if nulls and not (name == FILENAME and self.image is not None)
        ]
        if nulls_by_column:
            notices.append(f"nulls left out of their rows: {', '.join(nulls_by_column)}")
        if self._others:
            others = join_names(self._others)
            notices.append(f"images of other columns stored as encoded bytes: {others}")
        return notices

    def _stored(self, path: Location, first: int, batch: Any) -> dict[str, Any]:
        """The columns of a batch by name, in types whose kinds are those of this table."""
        from pyarrow import compute

        pa = self._pa
        columns: dict[str, Any] = {}
        for name, natural in self._natural.items():
            columns[name] = batch.column(name)
            if name in self._others and pa.types.is_struct(columns[name].type):
                columns[name] = compute.struct_field(columns[name], "bytes")
            if self._kinds[name] != natural:
                try:
                    columns[name] = _cast(pa, columns[name], self._kinds[name])
                except (pa.ArrowException, ValueError) as error:
                    raise SourceError(
                        f"rows from {first}: cannot store column {name!r} "
                        f"({batch.column(name).type}) as {self._kinds[name]}: "
                        f"{arrow_reason(error)}",
                        path=path,
                    ) from None
        if self.image is None:
            return columns
        images = batch.column(self.image)
        if not pa.types.is_struct(images.type):
            return columns | {IMAGE: images, FILENAME: pa.nulls(len(batch), pa.string())}
        return columns | {
            IMAGE: compute.struct_field(images, "bytes"),
            FILENAME: compute.struct_field(images, "path"),
        }


class _ArrowBatch(RowBatch):
    """Some rows, in the types of this table."""

    def __init__(
        self, table: ArrowRows, path: Location, lines: range, columns: dict[str, Any]
    ) -> None:
        super().__init__(table, path, lines)
        self._table = table
        self._columns = columns

    @property
    def size_bytes(self) -> int:
        return sum(map(decoded_bytes, self._columns.values()))

    def survey(self) -> bool:
        """Count nulls; kinds are known from the types."""
        self._table.nulls.update(
            {name: column.null_count for name, column in self._columns.items()}
        )
        return False

    def values(self, name: str) -> list[Any]:
        array = as_stored(self._columns[FILENAME if name == self._table.image else name])
        try:
            return array.to_pylist()  # type: ignore[no-any-return]
        except UnicodeDecodeError:
            return array.cast("large_binary").to_pylist()  # type: ignore[no-any-return]

    def columns(self) -> tuple[dict[str, Any], dict[str, Any], dict[int, Problems]]:
        batch = import_pyarrow().RecordBatch.from_pydict(self._columns)
        try:
            return *ArrowColumns(batch.schema).convert(batch, self.lines[0]), {}
        except OptionError as error:
            raise SourceError(error.problem, path=self._path) from None


class _Columns(NamedTuple):
    """What the columns of a file are, as `datasets` describes them.

    image: the column of images, if there is one.
    others: other columns of images.
    class_names: by column.
    of_lists: those of columns with lists of classes.
    """

    image: str | None
    others: list[str]
    class_names: dict[str, Sequence[str]]
    of_lists: dict[str, Sequence[str]]


def _described(path: Location, schema: Any, image_column: str | None) -> _Columns:
    types = import_pyarrow().types
    features = described_features(schema)
    class_names: dict[str, Sequence[str]] = {}
    images: list[str] = []
    of_lists: dict[str, Sequence[str]] = {}
    for field in schema:
        feature = features.get(field.name)
        feature = feature if isinstance(feature, dict) else {}
        inner, names = feature.get("feature"), feature.get("names")
        is_class = feature.get("_type") == "ClassLabel" and types.is_integer(field.type)
        if is_class and isinstance(names, list) and {str}.issuperset(map(type, names)):
            class_names[field.name] = names
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            listed = inner.get("names")
            are_names = isinstance(listed, list) and {str}.issuperset(map(type, listed))
            of_lists[field.name] = [*listed] if listed and are_names else []
        is_encoded = feature.get("_type") == "Image" and types.is_binary(field.type)
        if is_encoded or _is_image(field.type):
            images.append(field.name)
    image = image_column if image_column in images else None
    if image_column is None and images:
        image = _IMAGE_NAME if _IMAGE_NAME in images else images[0]
        if image != _IMAGE_NAME and len(images) > 1:
            raise OptionError(
                f"{path}: the columns {join_names(images)} have images",
                option="image_column",
                expected="the column to store as image/encoded",
                remedy=f"Pass {option('image_column', image)}.",
            )
    return _Columns(image, [name for name in images if name != image], class_names, of_lists)


def _differences(first: Any, other: Any) -> list[str]:
    """In which columns a file differs from the first."""
    types = {field.name: field.type for field in first}
    others = {field.name: field.type for field in other}
    return [
        f"column {name!r} is {others.get(name, 'missing')}, but {types.get(name, 'missing')} in "
        "the first file"
        for name in {**types, **others}
        if types.get(name) != others.get(name)
    ]


class _Input(NamedTuple):
    """A file or stream; `batches` reads it from its start, a stream only once."""

    schema: Any
    batches: Callable[[], Iterable[Any]]


def _stream(stream: ArrowStream, path: Location) -> _Input:
    try:
        reader = import_pyarrow().RecordBatchReader.from_stream(stream)
    except Exception as error:  # of any library
        raise SourceError(f"cannot read the table: {arrow_reason(error)}", path=path) from error
    return _Input(reader.schema, partial(_sliced, reader))


class ArrowFile(io.RawIOBase):
    """An open object that pyarrow reads; a damaged file may announce more bytes than there are."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        weakref.finalize(self, reader.close)

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        return self._reader.tell()

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._reader.size_bytes - self._reader.tell())
        return self._reader.read(left if size < 0 else min(size, left)) or b""


def _parquet_file(path: Location, batch_bytes: int | None) -> _Input:
    from pyarrow import parquet

    file = parquet.ParquetFile(ArrowFile(path.open_read()))
    groups = range(file.num_row_groups)
    row_count = _rows_at_once(file.metadata.num_rows, memory_of_groups(file, groups))
    if batch_bytes is not None:
        row_count = min(row_count, rows_that_fit(file, groups, batch_bytes))
    if not any(_has_inner_dictionary(field.type) for field in file.schema_arrow):
        return _Input(file.schema_arrow, partial(file.iter_batches, row_count))

    def batches() -> Iterator[Any]:
        for number in groups:  # pyarrow cannot join their dictionaries
            yield from file.iter_batches(row_count, row_groups=[number])

    return _Input(file.schema_arrow, batches)


def _has_inner_dictionary(arrow_type: Any) -> bool:
    is_dictionary = import_pyarrow().types.is_dictionary
    children = [arrow_type.field(number).type for number in range(arrow_type.num_fields)]
    return any(is_dictionary(child) or _has_inner_dictionary(child) for child in children)


def _feather_file(path: Location, batch_bytes: int | None) -> _Input:
    pa = import_pyarrow()
    is_file = path.read(0, len(_IPC_MAGIC)) == _IPC_MAGIC
    open_file = pa.ipc.open_file if is_file else pa.ipc.open_stream

    def batches() -> Iterator[Any]:
        with path.open_read() as file:
            reader = open_file(ArrowFile(file))
            given = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in given:
                batch.validate(full=True)  # its offsets are used as they are
                yield from _sliced((batch,), batch_bytes)

    with path.open_read() as file:
        return _Input(open_file(ArrowFile(file)).schema, batches)


def _sliced(batches: Iterable[Any], batch_bytes: int | None = None) -> Iterator[Any]:
    """Batches in parts, as encoding takes several times the memory of the rows."""
    for batch in batches:
        rows = _rows_at_once(len(batch), sum(map(decoded_bytes, batch.columns)))
        if batch_bytes is not None:
            rows = min(rows, max(1, batch_bytes // max(1, batch.get_total_buffer_size())))
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)


def _rows_at_once(row_count: int, size_bytes: int) -> int:
    row_bytes = max(1, size_bytes // max(1, row_count))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes))


@contextmanager
def _reading(path: Location, first: int) -> Iterator[None]:
    """Translate the errors of pyarrow in the rows from `first` on."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"cannot read rows from {first}: {arrow_reason(error)}", path=path
        ) from None


def is_arrow_file(path: Location) -> bool:
    """Whether a file is Parquet or Feather, by its first bytes or its name."""
    head = path.read(0, len(_IPC_MAGIC))
    has_magic = head[:4] in (b"PAR1", _STREAM_MAGIC) or head == _IPC_MAGIC
    return has_magic or path.suffix.lower() in ARROW_SUFFIXES


def _open_file(path: Location, batch_bytes: int | None) -> _Input:
    pa = import_pyarrow()
    is_parquet = path.read(0, 4) == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
    try:
        open_file = _parquet_file if is_parquet else _feather_file
        return _Input(*flat_table(*open_file(path, batch_bytes), where=str(path)))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        form = "Parquet" if is_parquet else "Feather"
        raise SourceError(f"not a {form} file: {arrow_reason(error)}", path=path) from None


def _is_image(arrow_type: Any) -> bool:
    """Whether a type is a struct of encoded bytes and a path."""
    pa = import_pyarrow()
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != 2:
        return False
    kinds = {}
    with suppress(TypeError):
        for field in arrow_type:
            is_null = pa.types.is_null(field.type)
            kinds[field.name] = "bytes" if is_null else kind_of_type(field.type)
    return kinds == {"bytes": "bytes", "path": "bytes"}


def _cast(pa: Any, array: Any, kind: Kind) -> Any:
    """An array as the type of another kind, also within lists."""
    target = {"int64": pa.int64(), "float": pa.float64(), "bytes": pa.large_string()}[kind]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        target = pa.large_list(target)
    return array.cast(target, safe=kind != "float")


def arrow_reason(error: Exception) -> str:
    text = str(error).partition(". Detail: ")[0]
    return text.splitlines()[0] if text else type(error).__name__
