"""Numbers of all records of a shard, in a file next to its index: classes, weights, lengths.

An order by class, by weight or by length needs a number of each record before the first batch.
Reading it takes a pass over the records, so the numbers are kept, by the rules of the index: in the
hidden folder next to the shard, or in the user's cache, with the size and the time of the shard. If
the time differs, the shard was copied or changed: the checksums of its payloads decide, and numbers
of the same payloads get the new time. Over a network, the version of the shard decides. What is
missing, stale or damaged is read again from the records.

docs/reference/dataset.md describes the file.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.dataset.dataset import Dataset, records_of
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_index import (
    KEEP_FROM_BYTES,
    check_folder,
    index_locations,
    is_version,
    max_bytes,
    save_pieces,
    version_of,
)
from recordsmith.dataset.shard_sequence import reading_threads
from recordsmith.dataset.view import PREVIEW_COUNT
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    FeatureSpec,
    Kind,
    RaggedArray,
    Schema,
    SchemaSurvey,
    step_counts,
)
from recordsmith.format.wire import FOOTER_BYTES, crc32c
from recordsmith.stores import Location, ObjectInfo
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    OptionError,
    located,
)
from recordsmith.support.words import suggest_names
from recordsmith.support.work import Progress, WorkerPool

Measure = Literal["value", "count", "steps"]
"""What is kept of a feature: its only value, how many values it has, or how many steps its list."""

Numbers: TypeAlias = npt.NDArray[Any]

_MAGIC = b"RSCOLMN\x02"
_HEADER = struct.Struct("<8sQQIIII")
_FOOTERS_AT_ONCE = 1 << 16
_FIRST_BYTES = 1 << 16
_DESCRIPTION_BYTES = 1 << 16  # longer ones are of texts, each of which is in the shard
_ESCAPED_BYTES = 6  # bytes of JSON for a byte
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


class ColumnsOrigin(NamedTuple):
    """What the columns of a file were computed from.

    version: of the shard, as `version_of` returns it.
    payloads: CRC-32C over the checksums that the frames of the shard have for their payloads.
    file_crc32c: of the shard, from its manifest or its writer; 0 if unknown.
    """

    size_bytes: int
    version: int
    payloads: int
    file_crc32c: int = 0


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
    """How many values of a feature each record has, 0 without it: unsigned, (len(dataset),).

    The first use reads all records of the shards once; later ones read what was kept.
    """
    return _joined(dataset, key, "count").numbers


def record_steps(dataset: Dataset, key: str) -> Numbers:
    """How many steps a feature list of each SequenceExample has; as `record_counts`."""
    return _joined(dataset, key, "steps").numbers


def record_values(dataset: Dataset, key: str) -> ShardColumn:
    """The value of a feature of each record: integers or float32; or the number of its text.

    CorruptDataError if a record does not have exactly one.
    """
    return _joined(dataset, key, "value")


def _joined(dataset: Dataset, key: str, measure: Measure) -> ShardColumn:
    from recordsmith.stores import scratch_array

    if not len(dataset):
        return ShardColumn(np.empty(0, np.uint8))
    records = records_of(dataset)
    shards = records.all_shards
    count = sum(shard.record_count for shard in shards)
    kind: Kind = "bytes" if measure == "steps" else _feature(dataset, key, has_lists=False)[0]
    workers = WorkerPool(reading_threads(None, shards), None)
    read = partial(_shard_column, key=key, kind=kind, measure=measure)
    joined: Numbers | None = None
    numbers_of: dict[str, int] = {}
    start = 0
    for column in workers.in_order(read, shards, ahead=2 * workers.threads):
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
    """Keep the columns of some features next to the shards: values, and counts of lists."""
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


def _feature(dataset: Dataset, key: str, *, has_lists: bool = True) -> tuple[Kind, Measure]:
    schema, _ = dataset.view.preview_schema()
    kind, measure = _measured(schema, key)
    if measure == "steps" and not has_lists:
        raise OptionError(
            f"{key!r} is a feature list",
            option="key",
            value=key,
            expected="a feature of the context",
        )
    if kind is None:
        raise OptionError(
            f"the records have no feature {key!r}, or none of one kind; "
            f"{suggest_names(key, schema.columns, 'they have no features')}",
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
    shard, name = shard.holding(key), f"{measure} {key}"
    info = shard.info()
    near, cached = _locations(shard, info)
    kept = _load(shard, info, [near] if is_near else [near, cached])
    if kept is not None and name in kept.columns:
        return kept.columns[name]
    column, payloads = _read(shard, key, kind, measure)
    if is_near or (shard.keeps_index and info.size_bytes >= KEEP_FROM_BYTES):
        places = [near] if is_near else [cached] if shard.is_remote else [near, cached]
        others = {} if kept is None or kept.origin.payloads != payloads else kept.columns
        file_crc32c = 0 if shard.entry is None else shard.entry.crc32c
        version = version_of(shard.location, info)
        origin = ColumnsOrigin(info.size_bytes, version, payloads, file_crc32c)
        pieces = column_pieces({**others, name: column}, origin)
        if save_pieces(pieces, places) is None and is_near:
            near.put(pieces)  # raises the reason
    return column


def kept_values(shard: Shard, keys: Iterable[str]) -> dict[str, ShardColumn]:
    """Return the kept values of features of each record, without reading a payload."""
    by_file: dict[Shard, list[str]] = {}
    alone = shard.alone()
    for key in keys:
        holder = shard.holding(key)
        by_file.setdefault(holder if holder in shard.layers else alone, []).append(key)
    found: dict[str, ShardColumn] = {}
    for file, own in by_file.items():
        with suppress(FileAccessError, DataError):
            info = file.info()
            kept = _load(file, info, [*_locations(file, info)])
            columns = {} if kept is None else kept.columns
            found |= {key: columns[name] for key in own if (name := f"value {key}") in columns}
    return found


def wrong_columns(shard: Shard, kinds: Mapping[str, str]) -> tuple[Location, list[str]]:
    """Return the file of columns next to a shard, and the features of wrong columns in it.

    Reads the records once for each column, uses no index, and writes nothing.
    """
    shard = copy(shard.alone())
    shard.keeps_index = False
    info = shard.info()
    near, _ = _locations(shard, info)
    kept = _load(shard, info, [near], renews=False)
    wrong = []
    for name, column in () if kept is None else kept.columns.items():
        measure: Any
        measure, _, key = name.partition(" ")
        kind: Any = "bytes" if measure == "steps" else kinds.get(key, "int64")
        if measure in get_args(Measure):
            own = None
            with suppress(DataError):
                own, _ = _read(shard, key, kind, measure)
            if own is None or own.texts != column.texts or (own.numbers != column.numbers).any():
                wrong.append(key)
    return near, wrong


# -- from the records ------------------------------------------------------------------------------


def _read(shard: Shard, key: str, kind: Kind, measure: Measure) -> tuple[ShardColumn, int]:
    """Return a column, and the checksum of the payloads that it was read from."""
    column, payloads = _ColumnBuilder(key, kind, measure), 0
    for block in shard.blocks():
        payloads = _payloads_crc32c(payloads, block.buffer, block.starts, block.lengths)
        with located(shard.location, block.position):
            column.append(block.buffer, block.starts, block.lengths)
    with located(shard.location):
        return column.finish(), payloads


def _payloads_crc32c(
    before: int, buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> int:
    """Continue a CRC-32C over the checksums that frames have after their payloads."""
    footers = (starts + lengths)[:, np.newaxis] + np.arange(FOOTER_BYTES)
    return crc32c(np.frombuffer(buffer, np.uint8)[footers].reshape(-1), before)


def _shard_crc32c(shard: Shard) -> int:
    """Return `_payloads_crc32c` of a local shard; of a plain one, reads nothing else of it."""
    checksum = 0
    if shard.compression != "none":
        for block in shard.blocks():
            checksum = _payloads_crc32c(checksum, block.buffer, block.starts, block.lengths)
        return checksum
    ends = shard.index.offsets[1:]
    footers = np.empty(FOOTER_BYTES * min(len(ends), _FOOTERS_AT_ONCE), np.uint8)
    with shard.open_read() as file:
        for start in range(0, len(ends), _FOOTERS_AT_ONCE):
            own = ends[start : start + _FOOTERS_AT_ONCE]
            places = FOOTER_BYTES * np.arange(len(own))
            if not file.read_pieces(own - FOOTER_BYTES, own, places, footers):
                raise ValueError("the shard is being changed")
            checksum = crc32c(footers[: FOOTER_BYTES * len(own)], checksum)
    return checksum


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
            column = column.lengths
        elif isinstance(column, BytesArray):
            if column.lengths.max(initial=0) > _LARGEST_TEXT:  # before it takes memory
                raise _not_texts(self._key)
            column = column.tolist()
        self._pieces.append(column)

    def finish(self) -> ShardColumn:
        if self._measure == "value" and self._kind == "bytes":
            return _counted(self._key, [text for piece in self._pieces for text in piece])
        numbers = np.concatenate(self._pieces) if self._pieces else np.empty(0, np.int64)
        return ShardColumn(numbers if numbers.dtype.kind == "f" else _smallest(numbers))


class ColumnSurvey:
    """Collects the columns of a new shard while its records are verified.

    Leaves out a feature that has no number in one of the records: its first use reports why.

    Attributes:
        payloads: as in `ColumnsOrigin`.
    """

    def __init__(self, keys: Collection[str]) -> None:
        self.payloads = 0
        self._keys = keys
        self._builders: dict[str, tuple[str, _ColumnBuilder]] | None = None

    def update(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None:
        """Add the payloads at buffer[starts[i]:starts[i] + lengths[i]], each in its frame."""
        if not self._keys:
            return
        self.payloads = _payloads_crc32c(self.payloads, buffer, starts, lengths)
        if self._builders is None:
            self._builders = self._begin(buffer, starts, lengths)
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
        columns = {}
        for name, builder in (self._builders or {}).values():
            with suppress(DataError):
                columns[name] = builder.finish()
        return columns


def _measured(schema: Schema, key: str) -> tuple[Kind | None, Measure]:
    """Return the kind of a feature and what is kept of it; None if it has no numbers."""
    if key in schema.sections.get("feature_lists", {}):
        return "bytes", "steps"
    known = schema.columns.get(key)
    if known is None or known.kind not in ("bytes", "float", "int64"):
        return None, "count"
    return known.kind, "value" if known.shape == () else "count"


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
    if len(numbers) and numbers.min() < 0:
        return numbers.astype("<i8")
    most = int(numbers.max(initial=0))
    dtype = next((name for name in _TYPES[:3] if most <= np.iinfo(name).max), "<i8")
    return numbers.astype(dtype)


# -- files -----------------------------------------------------------------------------------------


def _locations(shard: Shard, info: ObjectInfo) -> tuple[Location, Location]:
    version = info.version if shard.is_remote else ""
    return index_locations(shard.location, version, ".columns")


class _Kept(NamedTuple):
    """The columns of a valid file."""

    origin: ColumnsOrigin
    columns: dict[str, ShardColumn]


def _load(
    shard: Shard, info: ObjectInfo, locations: list[Location], *, renews: bool = True
) -> _Kept | None:
    """Return the columns that are kept of a shard; None if no file is valid.

    Args:
        locations: next to the shard, and in the cache.
        renews: whether a file with another time is written again with that of the shard.
    """
    if shard.is_remote:  # the cache takes no request
        locations = [*locations[1:], *(locations[:1] if shard.may_have_index else ())]
    others = []
    for location in locations:
        with suppress(FileAccessError, ValueError, DataError):
            check_folder(location)
            kept = _parse(shard, info, location)
            if is_version(kept.origin.version, shard.location, info):
                return kept
            if not shard.is_remote:
                others.append(kept)
    with suppress(FileAccessError, ValueError, DataError):
        payloads = _shard_crc32c(shard) if others else 0
        for origin, columns in others:
            if origin.payloads == payloads:
                version = version_of(shard.location, info)
                kept = _Kept(origin._replace(version=version), columns)
                if version and renews:
                    save_pieces(column_pieces(columns, kept.origin), locations)
                return kept
    return None


def _parse(shard: Shard, info: ObjectInfo, location: Location) -> _Kept:
    """Return the columns of a file; ValueError if it is not one of this shard, or is damaged.

    The file is untrusted: its length is compared with the shard before it is read.
    """
    file_bytes = location.size()
    if file_bytes > MAX_FILE_BYTES:
        raise ValueError("too long")
    data = location.read(0, min(file_bytes, _FIRST_BYTES))
    if len(data) < _HEADER.size:
        raise ValueError("too short")
    magic, *origin, text_bytes, checksum = _HEADER.unpack_from(data)
    made_from = ColumnsOrigin(*origin)
    if magic != _MAGIC or made_from.size_bytes != info.size_bytes:
        raise ValueError("another file")
    entry = shard.entry
    if entry is not None and made_from.file_crc32c not in (0, entry.crc32c):
        raise ValueError("made from a shard of another manifest")
    start = _HEADER.size + text_bytes
    if text_bytes > min(_DESCRIPTION_BYTES, file_bytes) and (
        text_bytes > file_bytes
        or text_bytes > _ESCAPED_BYTES * max_bytes(info.size_bytes, shard.compression)
    ):
        raise ValueError("the description is longer than the texts of the shard")
    if start > len(data):
        data += location.read(len(data), start)
    text = data[_HEADER.size : start]
    if _checksum(data[: _HEADER.size - 4], text) != checksum:
        raise ValueError("damaged")
    description = msgspec.json.decode(text, type=_Description)
    count = description.record_count
    entries = description.columns.items()
    row_bytes = sum(np.dtype(entry.dtype).itemsize for _, entry in entries)
    if count != shard.record_count or file_bytes != start + count * row_bytes:
        raise ValueError("another number of records")
    if file_bytes > len(data):
        data += location.read(len(data), file_bytes)
    return _Kept(made_from, dict(_columns(data, start, count, entries)))


def _columns(
    data: bytes, start: int, count: int, entries: Iterable[tuple[str, ColumnEntry]]
) -> Iterator[tuple[str, ShardColumn]]:
    """Yield name and content of each column; ValueError if one is invalid."""
    for name, entry in entries:
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
        yield name, ShardColumn(numbers, entry.texts)
        start = stop


def _checksum(head: bytes, text: bytes) -> int:
    return crc32c(text, crc32c(head))


def column_pieces(
    columns: Mapping[str, ShardColumn], origin: ColumnsOrigin
) -> tuple[bytes | memoryview, ...]:
    """Return the content of the file of a shard, with at least one column."""
    entries, arrays = {}, []
    for name, column in columns.items():
        array = np.ascontiguousarray(column.numbers)
        data = as_view(array.view(np.uint8))
        dtype: Any = array.dtype.str.replace("|", "<")
        entries[name] = ColumnEntry(dtype, crc32c(data), column.texts)
        arrays.append(data)
    count = len(next(iter(columns.values())).numbers)
    text = msgspec.json.encode(_Description(count, entries))
    head = _HEADER.pack(_MAGIC, *origin, len(text), 0)[:-4]
    return head, struct.pack("<I", _checksum(head, text)), text, *arrays


def keep_for_copy(shard: Location, copy: Location) -> None:
    """Keep the columns of a shard for its copy over a network, which has another version.

    Their files were copied together.
    """
    with suppress(FileAccessError):
        near = index_locations(copy, suffix=".columns")[0]
        data = near.read(0, MAX_FILE_BYTES)
        if len(data) < _HEADER.size:
            return
        magic, *origin, text_bytes, _ = _HEADER.unpack_from(data)
        made_from = ColumnsOrigin(*origin)
        if magic != _MAGIC or not is_version(made_from.version, shard, shard.info()):
            return
        made_from = made_from._replace(version=version_of(copy, copy.info(), is_own=True))
        head = _HEADER.pack(_MAGIC, *made_from, text_bytes, 0)[:-4]
        rest = data[_HEADER.size :]
        near.put((head, struct.pack("<I", _checksum(head, rest[:text_bytes])), rest))
