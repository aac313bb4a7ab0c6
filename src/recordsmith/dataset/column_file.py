"""Numbers of all records of a shard, in a file next to its index: classes, weights, lengths.

An order by class, by weight or by length needs a number of each record before the first batch.
Reading it takes a pass over the records, so the numbers are kept, by the rules of the index: in the
hidden folder next to the shard, or in the user's cache, with the size and a checksum over samples
of the shard. What is missing, stale or damaged is read again from the records.

docs/reference/dataset.md describes the file.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.buffers import BytesLike, Int64Array, as_view
from recordsmith.dataset.dataset import Dataset, records_of
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    check_folder,
    index_locations,
    sample_checksum,
    save_pieces,
)
from recordsmith.dataset.shard_sequence import reading_threads
from recordsmith.dataset.view import PREVIEW_COUNT
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    OptionError,
    located,
    suggest_names,
)
from recordsmith.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    Schema,
    SchemaSurvey,
    step_counts,
)
from recordsmith.stores import Location, ObjectInfo
from recordsmith.wire import crc32c
from recordsmith.work import Progress, WorkerPool

Measure = Literal["value", "count", "steps"]
"""What is kept of a feature: its only value, how many values it has, or how many steps its list."""

Numbers: TypeAlias = npt.NDArray[Any]

_MAGIC = b"RSCOLMN\x01"
_HEADER = struct.Struct("<8sQIII")
_TYPES = ("<u1", "<u2", "<u4", "<i8", "<f4")
_LARGEST_TEXT = 1 << 10
MAX_FILE_BYTES = 1 << 30


class ColumnEntry(msgspec.Struct, frozen=True):
    """A column of a file.

    texts: the values, where the numbers count them.
    """

    dtype: Literal["<u1", "<u2", "<u4", "<i8", "<f4"]
    crc32c: int
    texts: tuple[str, ...] = ()


class _Description(msgspec.Struct, frozen=True):
    record_count: int
    columns: dict[str, ColumnEntry]


class ShardColumn(NamedTuple):
    """The numbers of the records of a shard.

    numbers: (record_count,): integers of the smallest sufficient type, or float32.
    texts: the values, where the numbers count them; else empty.
    """

    numbers: Numbers
    texts: tuple[str, ...] = ()

    def rows(self, chosen: slice) -> RaggedArray:
        """Return the values of some records, as they are decoded from records."""
        numbers = self.numbers[chosen]
        values: Any = numbers if numbers.dtype.kind == "f" else numbers.astype(np.int64)
        if self.texts:
            values = BytesArray.from_values(self.texts)[values]
        return RaggedArray(values, np.arange(len(numbers) + 1))


def record_counts(dataset: Dataset, key: str) -> Numbers:
    """How many values of a feature each record has; 0 for records without it.

    The first use reads all records of the shards once; later ones read what was kept.

    Returns:
        Unsigned integers of the smallest sufficient type, (len(dataset),).

    Raises:
        OptionError: no record has the feature.
        CorruptDataError: a record is damaged.
    """
    return _joined(dataset, key, "count").numbers


def record_steps(dataset: Dataset, key: str) -> Numbers:
    """How many steps a feature list of each SequenceExample has; as `record_counts`."""
    return _joined(dataset, key, "steps").numbers


def record_values(dataset: Dataset, key: str) -> ShardColumn:
    """The value of a feature of each record, or the number of its text among all texts.

    Returns:
        Integers or float32, (len(dataset),), and the sorted texts of a feature of texts.

    Raises:
        OptionError: no record has the feature.
        CorruptDataError: a record is damaged, or does not have exactly one value.
    """
    return _joined(dataset, key, "value")


def _joined(dataset: Dataset, key: str, measure: Measure) -> ShardColumn:
    """Join the columns of all shards, and choose the selected records."""
    from recordsmith.stores.local.scratch import scratch_array

    if not len(dataset):
        return ShardColumn(np.empty(0, np.uint8))
    records = records_of(dataset)
    count = sum(shard.record_count for shard in records.all_shards)
    joined: Numbers | None = None
    numbers_of: dict[str, int] = {}
    start = 0
    for column in _shard_columns(dataset, key, measure):
        own, texts = column
        if texts:
            of_all = [numbers_of.setdefault(text, len(numbers_of)) for text in texts]
            own = np.array(of_all, np.min_scalar_type(len(numbers_of)))[own]
        if joined is None:
            joined = scratch_array(count, own.dtype)
        elif (wider := np.promote_types(joined.dtype, own.dtype)) != joined.dtype:
            narrow, joined = joined, scratch_array(count, wider)
            joined[:start] = narrow[:start]
        joined[start : start + len(own)] = own
        start += len(own)
    assert joined is not None
    if not records.has_all:
        joined = joined[records.selection.all()]
    texts = tuple(sorted(numbers_of))
    if texts:
        places = np.empty(len(texts), joined.dtype)
        places[[numbers_of[text] for text in texts]] = np.arange(len(texts))
        joined = places[joined]
    return ShardColumn(joined, texts)


def keep_columns(dataset: Dataset, keys: Sequence[str], progress: Progress | None) -> None:
    """Keep the columns of some features next to the shards: values, and counts of lists.

    Args:
        progress: called as `progress(done, total)` with numbers of bytes.

    Raises:
        OptionError: no record has one of the features.
        CorruptDataError: a record is damaged.
    """
    features = [_feature(dataset, key) for key in keys]
    shards = records_of(dataset).all_shards
    total = len(keys) * sum(shard.size_bytes for shard in shards)
    workers = WorkerPool(reading_threads(None, shards), progress, total)
    for key, (kind, measure) in zip(keys, features, strict=True):
        read = partial(_shard_column, key=key, kind=kind, measure=measure, is_near=True)
        for shard, _ in zip(
            shards, workers.in_order(read, shards, ahead=2 * workers.threads), strict=True
        ):
            workers.advance(shard.size_bytes)
    workers.finish()


def _shard_columns(dataset: Dataset, key: str, measure: Measure) -> Iterator[ShardColumn]:
    """Yield the column of each shard; shards without it are read in threads, and it is kept."""
    kind: Kind = "bytes" if measure == "steps" else _feature(dataset, key, has_lists=False)[0]
    shards = records_of(dataset).all_shards
    workers = WorkerPool(reading_threads(None, shards), None)
    read = partial(_shard_column, key=key, kind=kind, measure=measure)
    yield from workers.in_order(read, shards, ahead=2 * workers.threads)


def _feature(dataset: Dataset, key: str, *, has_lists: bool = True) -> tuple[Kind, Measure]:
    """Return the kind of a feature, and what is kept of it."""
    schema, _ = dataset.view.preview_schema()
    kind, measure = _measured(schema, key)
    if kind is None or (measure == "steps" and not has_lists):
        raise OptionError(
            f"the records have no feature {key!r}, or none of one kind; "
            f"{suggest_names(key, schema.features, 'they have no features')}",
            option="key",
            value=key,
        )
    return kind, measure


def _shard_column(
    shard: Shard, *, key: str, kind: Kind, measure: Measure, is_near: bool = False
) -> ShardColumn:
    """Return a column of one shard: as it was kept, or from its records.

    is_near: whether it must be next to the shard, whatever its size and store.
    """
    name = f"{measure} {key}"
    info = shard.info()
    near, cached = _locations(shard, info)
    kept = _load(shard, info, [near] if is_near else [near, cached])
    if name in kept:
        return kept[name]
    column = _read(shard, key, kind, measure)
    if is_near or (shard.keeps_index and info.size_bytes >= KEEP_FROM_BYTES):
        places = [near] if is_near else [cached] if shard.is_remote else [near, cached]
        samples = 0 if shard.is_remote else sample_checksum(shard.location, info.size_bytes)
        pieces = column_pieces({**kept, name: column}, info.size_bytes, samples)
        if save_pieces(pieces, places) is None and is_near:
            near.put(pieces)  # raises the reason
    return column


def kept_values(shard: Shard, keys: Iterable[str]) -> dict[str, ShardColumn]:
    """Return the values of each record, of those features whose values are kept.

    Reads no record, and writes nothing.
    """
    kept: dict[str, ShardColumn] = {}
    with suppress(FileAccessError, DataError):
        info = shard.info()
        kept = _load(shard, info, [*_locations(shard, info)])
    return {key: kept[name] for key in keys if (name := f"value {key}") in kept}


# -- from the records ------------------------------------------------------------------------------


def _read(shard: Shard, key: str, kind: Kind, measure: Measure) -> ShardColumn:
    column = _ColumnBuilder(key, kind, measure)
    for block in shard.blocks():
        with located(shard.location, block.position):
            column.append(block.buffer, block.starts, block.lengths)
    with located(shard.location):
        return column.finish()


class _ColumnBuilder:
    """A column of a shard, from its records block by block."""

    def __init__(self, key: str, kind: Kind, measure: Measure) -> None:
        self._key, self._kind, self._measure = key, kind, measure
        self._spec = {key: FeatureSpec(kind, "ragged" if measure == "count" else ())}
        self._pieces: list[Any] = []

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the payloads at buffer[starts[i]:starts[i] + lengths[i]]."""
        if self._measure == "steps":
            self._pieces.append(step_counts(buffer, starts, lengths, self._key))
            return
        # bytes stay in the buffer of the block: only their number, or short texts, are taken
        borrowed = [self._key] if self._kind == "bytes" else ()
        decoder = ColumnDecoder(self._spec, borrowed=borrowed)
        decoder.append(buffer, starts, lengths)
        column: Any = decoder.finish()[self._key]
        if self._measure == "count":
            column = _lengths(column)
        elif isinstance(column, BytesArray):
            if column.lengths.max(initial=0) > _LARGEST_TEXT:  # before it takes memory
                raise _not_texts(self._key)
            column = column.tolist()
        self._pieces.append(column)

    def finish(self) -> ShardColumn:
        """Return the column."""
        if self._measure == "value" and self._kind == "bytes":
            return _counted(self._key, [text for piece in self._pieces for text in piece])
        numbers = np.concatenate(self._pieces) if self._pieces else np.empty(0, np.int64)
        return ShardColumn(numbers if numbers.dtype.kind == "f" else _smallest(numbers))


class ColumnSurvey:
    """Collects the columns of a new shard while its records are verified.

    Leaves out a feature that has no number in one of the records: its first use reports why.
    """

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = keys
        self._builders: dict[str, tuple[str, _ColumnBuilder]] | None = None

    def update(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the payloads at buffer[starts[i]:starts[i] + lengths[i]]."""
        if self._builders is None:
            self._builders = self._begin(buffer, starts, lengths) if self._keys else {}
        for key, (_, builder) in tuple(self._builders.items()):
            try:
                builder.append(buffer, starts, lengths)
            except DataError:
                del self._builders[key]

    def _begin(
        self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
    ) -> dict[str, tuple[str, _ColumnBuilder]]:
        """Choose what to keep of each feature, by the first records."""
        survey = SchemaSurvey()
        survey.update(buffer, starts[:PREVIEW_COUNT], lengths[:PREVIEW_COUNT])
        schema = survey.finish()
        builders = {}
        for key in self._keys:
            known, measure = _measured(schema, key)
            if known is not None:
                builders[key] = f"{measure} {key}", _ColumnBuilder(key, known, measure)
        return builders

    def finish(self) -> dict[str, ShardColumn]:
        """Return the columns by name."""
        columns = {}
        for name, builder in (self._builders or {}).values():
            with suppress(DataError):
                columns[name] = builder.finish()
        return columns


def _measured(schema: Schema, key: str) -> tuple[Kind | None, Measure]:
    """Return the kind of a feature and what is kept of it; None if it has no numbers."""
    if key in schema.sections.get("feature_lists", {}):
        return "bytes", "steps"
    known = schema.features.get(key)
    if known is None or known.kind not in ("bytes", "float", "int64"):
        return None, "count"
    return known.kind, "value" if known.shape == () else "count"


def _lengths(column: RaggedArray) -> Numbers:
    return np.diff(column.row_splits)


def _counted(key: str, values: list[bytes]) -> ShardColumn:
    """Number the distinct texts of a shard."""
    distinct = sorted(set(values))
    try:
        texts = tuple(value.decode() for value in distinct)
    except UnicodeDecodeError:
        raise _not_texts(key) from None
    numbers = {value: number for number, value in enumerate(distinct)}
    counted = np.fromiter((numbers[value] for value in values), np.int64, len(values))
    return ShardColumn(_smallest(counted), texts)


def _not_texts(key: str) -> CorruptDataError:
    return CorruptDataError(
        Defect.FEATURE_VALUE,
        f"{key!r} has values that are not short texts",
        expected=f"UTF-8 of up to {_LARGEST_TEXT} bytes, such as class names",
        feature=key,
    )


def _smallest(numbers: Numbers) -> Numbers:
    """Return integers in the smallest type that holds them."""
    if len(numbers) and numbers.min() < 0:
        return numbers.astype("<i8")
    most = int(numbers.max(initial=0))
    dtype = next((name for name in _TYPES[:3] if most <= np.iinfo(name).max), "<i8")
    return numbers.astype(dtype)


# -- files -----------------------------------------------------------------------------------------


def _locations(shard: Shard, info: ObjectInfo) -> tuple[Location, Location]:
    version = info.version if shard.is_remote else ""
    return index_locations(shard.location, version, ".columns")


def _load(shard: Shard, info: ObjectInfo, locations: list[Location]) -> dict[str, ShardColumn]:
    """Return the columns that are kept of a shard; none if no file is valid.

    `locations`: next to the shard, and in the cache.
    """
    if shard.is_remote:  # the cache takes no request
        locations = [*locations[1:], *(locations[:1] if shard.may_have_index else ())]
    for location in locations:
        with suppress(FileAccessError, ValueError, DataError):
            check_folder(location)
            size = location.size()
            if size <= MAX_FILE_BYTES:
                return _parse(shard, info, location.read(0, size))
    return {}


def _parse(shard: Shard, info: ObjectInfo, data: bytes) -> dict[str, ShardColumn]:
    """Return the columns of a file; ValueError if it is not one of this shard."""
    if len(data) < _HEADER.size:
        raise ValueError("too short")
    magic, size, samples, description_size, checksum = _HEADER.unpack_from(data)
    text = data[_HEADER.size : _HEADER.size + description_size]
    if magic != _MAGIC or size != info.size_bytes or crc32c(text) != checksum:
        raise ValueError("another file")
    if not shard.is_remote and samples != sample_checksum(shard.location, size):
        raise ValueError("the shard was changed")
    description = msgspec.json.decode(text, type=_Description)
    count, start = description.record_count, _HEADER.size + description_size
    if count != shard.record_count:
        raise ValueError("another number of records")
    columns = {}
    for name, entry in description.columns.items():
        stop = start + count * np.dtype(entry.dtype).itemsize
        content = data[start:stop]
        numbers = np.frombuffer(content, entry.dtype)
        if len(numbers) != count or crc32c(content) != entry.crc32c:
            raise ValueError("damaged")
        is_count = bool(entry.texts) or not name.startswith("value ")
        if is_count and (numbers.dtype.kind == "f" or numbers.min(initial=0) < 0):
            raise ValueError("a number that is not a count")
        if entry.texts and int(numbers.max(initial=0)) >= len(entry.texts):
            raise ValueError("a number without a text")
        columns[name] = ShardColumn(numbers, entry.texts)
        start = stop
    return columns


def column_pieces(
    columns: Mapping[str, ShardColumn], size_bytes: int, samples: int
) -> tuple[bytes | memoryview, ...]:
    """Return the content of the file of a shard.

    Args:
        columns: by name, at least one.
        size_bytes: of the shard.
        samples: the checksum of samples of it; 0 over a network.
    """
    entries, arrays = {}, []
    for name, column in columns.items():
        array = np.ascontiguousarray(column.numbers)
        data = as_view(array.view(np.uint8))
        dtype: Any = array.dtype.str.replace("|", "<")
        entries[name] = ColumnEntry(dtype, crc32c(data), column.texts)
        arrays.append(data)
    count = len(next(iter(columns.values())).numbers)
    text = msgspec.json.encode(_Description(count, entries))
    head = _HEADER.pack(_MAGIC, size_bytes, samples, len(text), crc32c(text))
    return head, text, *arrays
