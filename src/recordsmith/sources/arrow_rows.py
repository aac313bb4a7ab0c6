"""Arrow streams, Parquet and Feather files: batches of columns.

Types are stored as in `recordsmith.arrow`. A column of images as in Hugging Face datasets, a struct
of bytes and path, becomes `image/encoded` and `image/filename`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.arrow import ArrowColumns, ArrowStream, feature_kinds
from recordsmith.arrow.columns import as_stored, kind_of_type
from recordsmith.arrow.library import import_pyarrow
from recordsmith.arrow.restoring import schema_as_text
from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, Problems, SourceError, option
from recordsmith.example import Kind, RaggedArray
from recordsmith.example.keys import FILENAME, IMAGE
from recordsmith.files import read_head
from recordsmith.sources.problems import Fault, count_notice, raise_problems
from recordsmith.sources.row_columns import category_texts
from recordsmith.sources.table_rows import LostDigits, RowBatch, encode_good

_BATCH_ROWS = 8192
_BATCH_BYTES = 16 << 20
_IPC_MAGIC = b"ARROW1"
_STREAM_MAGIC = b"\xff\xff\xff\xff"
ARROW_SUFFIXES = (".parquet", ".pq", ".feather", ".arrow", ".arrows", ".ipc")


class ArrowRows:
    """The rows of some files, or of one stream.

    kinds: by column.
    class_names: by column, of columns with labels whose names are known.
    image: the column with encoded images, if there is one.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        stream: ArrowStream | None,
        kinds: Mapping[str, Kind],
        *,
        wanted: Sequence[str] = (),
        image_column: str | None = None,
    ) -> None:
        """Check the types of all columns.

        Args:
            paths: of Parquet or Feather files; of a stream, one path for messages.
            stream: read instead of files, once.
            kinds: of columns that are stored with another kind than that of their type.
            wanted: columns that must exist.
            image_column: the column with images, where there are several.

        Raises:
            MissingExtraError: pyarrow is not installed.
            OptionError: a wanted column does not exist.
            SourceError: a file is invalid, or columns cannot be stored.
            FileAccessError: a file cannot be read.
        """
        self._pa = import_pyarrow()
        self.paths = paths
        self.unit = "row"
        self._nulls: dict[str, int] = {}
        self._inputs = (
            [_Stream(stream, paths[0])] if stream is not None else list(map(_open_file, paths))
        )
        self._notices: list[str] = []
        self.class_names: Mapping[str, Sequence[str]] = {}
        self.kinds: dict[str, Kind] = {}
        self.image: str | None = None
        self._units: dict[str, str] = {}
        problems = Problems()
        for path, found in zip(paths, self._inputs, strict=True):
            try:
                self._find_metadata(path, found.schema, image_column)
                self._add_kinds(path, found.schema, kinds, problems)
            except UnicodeDecodeError:
                raise SourceError("the name of a column is not UTF-8", path=path) from None
        raise_problems(problems)
        for name in (*wanted, *kinds):
            if name not in self.kinds and name != self.image:
                raise OptionError(
                    f"{paths[0]} has no column {name!r}",
                    value=name,
                    expected=f"one of {', '.join(self.kinds)}",
                )

    def batches(self, number: int) -> Iterator[RowBatch]:
        """Read one file, or the stream.

        Raises:
            SourceError: it cannot be read, or has no rows.
        """
        first = 0
        path = self.paths[number]
        with _reading(path, first):
            batches = self._inputs[number].batches()
        while True:
            with _reading(path, first):
                batch = next(batches, None)
            if batch is None:
                break
            if len(batch):
                columns = self._stored(number, first, batch)
                yield _ArrowBatch(self, path, first, batch, columns)
            first += len(batch)
        if not first and len(self.paths) == 1:
            raise SourceError("the table has no rows", path=path)

    def survey(self, batch: RowBatch) -> bool:
        """Count nulls; kinds are known from the types."""
        assert isinstance(batch, _ArrowBatch)
        for name in self.kinds:
            if nulls := batch.columns[name].null_count:
                self._nulls[name] = self._nulls.get(name, 0) + nulls
        return False

    def arrow_schema(self, lost: LostDigits) -> str:
        schemas = [found.schema for found in self._inputs]
        kept = [
            field.remove_metadata()
            for field in schemas[0]
            if field.name not in lost.inexact
            and field.name != self.image
            and all(field.name in other.names for other in schemas)
            and all(field.type == other.field(field.name).type for other in schemas)
            and not self._pa.types.is_null(field.type)
            and self.kinds[field.name] == kind_of_type(field.type)
        ]
        return schema_as_text(self._pa.schema(kept))

    def notices(self) -> list[str]:
        found = [f"{nulls:,} in {name!r}" for name, nulls in self._nulls.items()]
        if found:
            return [*self._notices, f"nulls left out of their rows: {', '.join(found)}"]
        return self._notices

    def _find_metadata(self, path: Path, schema: Any, image_column: str | None) -> None:
        """Find images and class names, as `datasets` describes them.

        Raises:
            SourceError: there are several columns of images, or other files have other images or
                class names.
        """
        pa = self._pa
        features: Any = {}
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        if not isinstance(features, dict):
            features = {}
        described = {
            name: feature for name, feature in features.items() if isinstance(feature, dict)
        }
        class_names: dict[str, Sequence[str]] = {}
        images: list[str] = []
        for field in schema:
            feature = described.get(field.name, {})
            names = feature.get("names")
            is_class = feature.get("_type") == "ClassLabel" and pa.types.is_integer(field.type)
            if is_class and isinstance(names, list) and {str}.issuperset(map(type, names)):
                class_names[field.name] = names
            if _is_image(pa, field.type) or (
                feature.get("_type") == "Image" and pa.types.is_binary(field.type)
            ):
                images.append(field.name)
        if image_column is not None:
            images = [name for name in images if name == image_column]
        if len(images) > 1:
            raise SourceError(
                f"several columns of images: {', '.join(images)}",
                path=path,
                remedy=f"Choose one with {option('image_column', images[0])}, after the others "
                "were removed from the table.",
            )
        image = images[0] if images else None
        if path == self.paths[0]:
            self.image, self.class_names = image, class_names
        elif (image, class_names) != (self.image, self.class_names):
            what = "class names" if image == self.image else "columns of images"
            raise SourceError(
                f"other {what} than in {self.paths[0]}",
                path=path,
                remedy="Pack the files one by one, or write them with the same features.",
            )

    def _add_kinds(
        self, path: Path, schema: Any, declared: Mapping[str, Kind], problems: Problems
    ) -> None:
        """Add the kinds of the columns of a file; one with text must not have numbers elsewhere."""
        pa = self._pa
        stored = pa.schema([field for field in schema if field.name != self.image])
        found = feature_kinds(stored, problems, f"{path}: ")
        if self.image is not None:
            problems.extend(
                f"{path}: column {name!r} has the name of an image feature; rename it"
                for name in (IMAGE, FILENAME)
                if name in found
            )
        for field in stored:
            if pa.types.is_null(field.type):
                continue
            unit = self._units.setdefault(field.name, _unit(pa, field.type))
            if unit != _unit(pa, field.type):
                problems.add(f"{path}: column {field.name!r} is {field.type}, but {unit} elsewhere")
        nothing = [field.name for field in schema if pa.types.is_null(field.type)]
        self._notices += count_notice(nothing, "column", "without values skipped")
        for name, natural in found.items():
            kind = declared.get(name, natural)
            before = self.kinds.setdefault(name, kind)
            if {before, kind} == {"int64", "float"}:
                self.kinds[name] = "float"
            elif before != kind:
                problems.add(f"{path}: column {name!r} is {kind}, but {before} elsewhere")
        if self.image is not None:
            self.kinds[IMAGE] = "bytes"
            self.kinds[FILENAME] = "bytes"

    def _stored(self, number: int, first: int, batch: Any) -> dict[str, Any]:
        """The columns of a batch by name, in types whose kinds are those of this table."""
        pa = self._pa
        columns: dict[str, Any] = {}
        stored = pa.schema([field for field in batch.schema if field.name != self.image])
        natural = feature_kinds(stored, Problems())
        for name, kind in self.kinds.items():
            if name in (IMAGE, FILENAME) and self.image is not None:
                columns |= self._image_columns(batch)
            elif name not in natural:
                columns[name] = pa.nulls(
                    len(batch), {"int64": pa.int64(), "float": pa.float32()}.get(kind, pa.binary())
                )
            elif natural[name] == kind:
                columns[name] = batch.column(name)
            else:
                try:
                    columns[name] = _cast(pa, batch.column(name), kind)
                except (pa.ArrowException, ValueError) as error:
                    raise SourceError(
                        f"rows from {first}: cannot store column {name!r} "
                        f"({batch.column(name).type}) as {kind}: {_reason(error)}",
                        path=self.paths[number],
                    ) from None
        return columns

    def _image_columns(self, batch: Any) -> dict[str, Any]:
        pa = self._pa
        images = batch.column(self.image)
        if not pa.types.is_struct(images.type):
            return {IMAGE: images, FILENAME: pa.nulls(len(batch), pa.string())}
        from pyarrow import compute

        return {
            IMAGE: compute.struct_field(images, "bytes"),
            FILENAME: compute.struct_field(images, "path"),
        }


class _ArrowBatch:
    """Some rows; `columns` are pyarrow arrays by name."""

    def __init__(
        self, table: ArrowRows, path: Path, first: int, given: Any, columns: dict[str, Any]
    ) -> None:
        """
        Args:
            first: the number of the first row in its file.
            given: pyarrow.RecordBatch, as it was read.
        """
        self._given = given
        self._table = table
        self._path = path
        self._first = first
        self.columns = columns
        self.count = len(given)

    def category(self, name: str) -> Sequence[str | None]:
        if name == self._table.image:
            name = FILENAME
        array = as_stored(self.columns[name])
        try:
            values = array.to_pylist()
        except UnicodeDecodeError:
            values = array.cast("large_binary").to_pylist()
        try:
            return category_texts(values)
        except TypeError as error:
            problem, row = error.args
            raise TypeError(f"in row {self.line(row)}, {problem}") from None

    def encode(self, lost: LostDigits) -> tuple[Any, Int64Array, Mapping[int, Fault]]:
        import pyarrow as pa

        try:
            with _reading(self._path, self._first):
                batch = pa.RecordBatch.from_pydict(self.columns)
                columns, validity = ArrowColumns(batch.schema).convert(batch, self._first)
        except OptionError as error:
            raise SourceError(error.problem, path=self._path) from None
        faults: dict[int, Fault] = {}
        for name, column in columns.items():
            if self._table.kinds[name] == "float":
                columns[name] = self._checked(name, column, lost, faults)
        return *encode_good(columns, validity, None, self.count), faults

    def line(self, row: int) -> int:
        return self._first + row

    def place(self, row: int) -> str:
        """File and number of a row."""
        return f"{self._path}, row {self.line(row)}"

    def _checked(self, name: str, column: Any, lost: LostDigits, faults: dict[int, Fault]) -> Any:
        """Look for numbers that do not fit a 32-bit float, or lose digits."""
        flat = column.values if isinstance(column, RaggedArray) else column
        values: Any = flat.reshape(-1)
        if values.dtype in (np.float16, np.float32):
            return column
        row_of: Callable[[int], int]
        if isinstance(column, RaggedArray):
            splits = column.row_splits
            row_of = lambda at: int(np.searchsorted(splits, at, side="right")) - 1  # noqa: E731
        else:
            width = max(1, values.size // max(1, len(column)))
            row_of = lambda at: at // width  # noqa: E731
        wrong = lost.check(
            name,
            values.astype(np.float64),
            partial(_exact, self._given.column(name), values),
            lambda at: self.place(row_of(at)),
        )
        if wrong is None:
            return column
        for at in np.flatnonzero(wrong).tolist():
            row = row_of(at)
            faults[row] = Fault(
                f"column {name!r}: {values[at]} does not fit a 32-bit float",
                sample=self.place(row),
            )
        filled = np.where(wrong, 0, values)
        return (
            RaggedArray(filled, column.row_splits)
            if isinstance(column, RaggedArray)
            else filled.reshape(column.shape)
        )


def _exact(array: Any, values: npt.NDArray[Any], at: int) -> Any:
    """A number of a column before it was converted."""
    if hasattr(array, "flatten"):
        array = array.flatten()
    return array[at].as_py() if len(array) == len(values) else values[at].item()


class _Stream:
    """An object with `__arrow_c_stream__`, which can often be read only once."""

    def __init__(self, stream: ArrowStream, path: Path) -> None:
        try:
            self._reader = import_pyarrow().RecordBatchReader.from_stream(stream)
        except Exception as error:  # of any library
            raise SourceError(f"cannot read the table: {_reason(error)}", path=path) from error
        self.schema = self._reader.schema

    def batches(self) -> Iterator[Any]:
        for batch in self._reader:
            yield from _slices(batch)


class _ParquetFile:
    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path)
        self.schema = self._file.schema_arrow

    def batches(self) -> Iterator[Any]:
        metadata = self._file.metadata
        sizes = [metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)]
        rows = _rows_at_once(metadata.num_rows, sum(sizes))
        return self._file.iter_batches(rows)  # type: ignore[no-any-return]


class _FeatherFile:
    def __init__(self, path: Path) -> None:
        self._pa = import_pyarrow()
        self._path = path
        with self._pa.OSFile(str(path)) as file:
            self.schema = self._open(file).schema

    def _open(self, file: Any) -> Any:
        ipc = self._pa.ipc
        is_file = read_head(self._path, len(_IPC_MAGIC)) == _IPC_MAGIC
        return ipc.open_file(file) if is_file else ipc.open_stream(file)

    def batches(self) -> Iterator[Any]:
        with self._pa.OSFile(str(self._path)) as file:
            reader = self._open(file)
            if hasattr(reader, "num_record_batches"):
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                batches = iter(reader)
            for batch in batches:
                batch.validate(full=True)  # its offsets are used as they are
                yield from _slices(batch)


def is_arrow_file(path: Path) -> bool:
    """Whether a file is Parquet or Feather, by its first bytes or its name."""
    head = read_head(path, len(_IPC_MAGIC))
    has_magic = head[:4] in (b"PAR1", _STREAM_MAGIC) or head == _IPC_MAGIC
    return has_magic or path.suffix.lower() in ARROW_SUFFIXES


def _open_file(path: Path) -> _ParquetFile | _FeatherFile:
    pa = import_pyarrow()
    is_parquet = read_head(path, 4) == b"PAR1" or path.suffix.lower() in (".parquet", ".pq")
    try:
        return _ParquetFile(path) if is_parquet else _FeatherFile(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        form = "Parquet" if is_parquet else "Feather"
        raise SourceError(f"not a {form} file: {_reason(error)}", path=path) from None


def _rows_at_once(row_count: int, size_bytes: int) -> int:
    row_bytes = max(1, size_bytes // max(1, row_count))
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes))


def _slices(batch: Any) -> Iterator[Any]:
    """A batch in parts, as encoding takes several times the memory of the rows."""
    rows = _rows_at_once(len(batch), batch.nbytes)
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)


@contextmanager
def _reading(path: Path, first: int) -> Iterator[None]:
    """Translate the errors of pyarrow in the rows from `first` on."""
    pa = import_pyarrow()
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read rows from {first}: {_reason(error)}", path=path) from None


def _is_image(pa: Any, arrow_type: Any) -> bool:
    """Whether a type is a struct of encoded bytes and a path."""
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != 2:
        return False
    kinds = {}
    with suppress(TypeError):
        for field in arrow_type:
            is_null = pa.types.is_null(field.type)
            kinds[field.name] = "bytes" if is_null else kind_of_type(field.type)
    return kinds == {"bytes": "bytes", "path": "bytes"}


def _unit(pa: Any, arrow_type: Any) -> str:
    """What integers of a type count: numbers, or units of time."""
    while hasattr(arrow_type, "value_type"):  # lists and dictionaries
        arrow_type = arrow_type.value_type
    if not pa.types.is_temporal(arrow_type):
        return "a number or text"
    return str(arrow_type).partition(",")[0]


def _cast(pa: Any, array: Any, kind: Kind) -> Any:
    """An array as the type of another kind, also within lists."""
    target = _types(pa)[kind]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        target = pa.large_list(target)
    return array.cast(target, safe=kind != "float")


def _types(pa: Any) -> dict[Kind, Any]:
    return {"int64": pa.int64(), "float": pa.float64(), "bytes": pa.large_string()}


def _reason(error: Exception) -> str:
    text = str(error).partition(". Detail: ")[0]
    return text.splitlines()[0] if text else type(error).__name__
