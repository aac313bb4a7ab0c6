"""Many shards as one sequence of examples.

A Dataset is light: it has shards and a range of positions. A slice is another Dataset over the same
shards. Whole shards are read in order, single positions through indexes.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.open_shards import OpenShards
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, Defect, OptionError, located, option, suggest_names
from recordsmith.example import (
    BytesArray,
    Column,
    ColumnDecoder,
    FeatureRequest,
    Features,
    FeatureSchema,
    FeatureSpec,
    Schema,
    SchemaSurvey,
    SequenceExample,
    decode_payload,
)
from recordsmith.wire import FRAME_BYTES, RecordBlock
from recordsmith.work import Work, thread_count

Positions: TypeAlias = Sequence[int] | Sequence[bool] | Int64Array | npt.NDArray[np.bool_]


class RecordLocation(NamedTuple):
    """The file of a record, its number in the file, and the offset of its frame."""

    path: str
    number: int
    offset: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.number}, byte {self.offset}"


class ShardSpan(NamedTuple):
    """Consecutive records of a dataset, from position `first`, with their numbers in a shard."""

    shard: Shard
    first: int
    numbers: range


class ShardGroup(NamedTuple):
    """The positions of a request that lie in one shard.

    members: int64, (n,): their indexes in the request; or a slice.
    numbers: int64, (n,): their record numbers in the shard.
    """

    shard: Shard
    members: Int64Array | slice
    numbers: Int64Array


class Dataset:
    """A sequence of examples from one or more shards. Returned by `recordsmith.open`.

    Indexing and iteration return decoded examples: a dict of int64 arrays, float32 arrays and lists
    of bytes, as in `decode_example`, or a SequenceExample. Every checksum is verified. Thread-safe.

    Example:
        dataset = rs.open("out", split="train")
        print(len(dataset), dataset.class_names)
        image = dataset[0]["image/encoded"][0]
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        *,
        schema: Schema | None = None,
        class_names: ClassNames | None = None,
        positions: range | None = None,
        _open: OpenShards | None = None,
    ) -> None:
        self.shards = tuple(shards)
        self.class_names = class_names
        self._schema = schema if positions is None else None
        self._outer_schema = schema  # of this dataset, or of the one that it is a slice of
        self._range = positions  # None: all records, not counted yet
        self._starts: list[int] | None = None
        self._starts_array: Int64Array | None = None  # the same as an array
        self._open = _open or OpenShards()

    def __repr__(self) -> str:
        part = "" if self._range is None else f", record_count={len(self._range)}"
        return f"Dataset(shard_count={len(self.shards)}{part})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle paths and positions, but no open files."""
        return {**vars(self), "_open": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open = OpenShards()

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def known_record_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        if self._range is not None:
            return len(self._range)
        counts = [shard.known_record_count for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return a decoded example, or for a slice a Dataset of these positions.

        Raises:
            IndexError: the position is out of range.
            OptionError: the shard is compressed, so it can only be read in order.
            CorruptDataError: the record is damaged or not an Example.
        """
        if isinstance(index, slice):
            return Dataset(
                self.shards,
                class_names=self.class_names,
                schema=self._outer_schema,
                positions=self._positions[index],
                _open=self._open,
            )
        shard, number, payload = self._locate(index)
        with located(shard.path):
            return _decode(payload, number)

    def __iter__(self) -> Iterator[Any]:
        for shard, block in self._blocks():
            for number, payload in enumerate(block.payloads(), block.position):
                with located(shard.path):
                    example = _decode(payload, number)
                yield example

    def read_record(self, position: int) -> bytes:
        """Return the payload at a position without decoding it; raises as indexing does."""
        return bytes(self._locate(position)[2])

    def read_records(self, positions: Positions) -> BytesArray:
        """Read the payloads at many positions; the fast way to read random records.

        Args:
            positions: a sequence or array of integers, where negative ones count from the end; or a
                boolean mask with one value per record.

        Returns:
            BytesArray, (count,), in the order of the positions.

        Raises:
            IndexError: a position is out of range.
            OptionError: the positions are not integers or a mask of the right length, or a shard
                is compressed, so it can only be read in order.
            CorruptDataError: a record is damaged.
        """
        wanted: Any = positions
        if not (type(positions) is list and len(positions) == 1 and type(positions[0]) is int):
            wanted = integer_positions(positions, len(self))
        if len(wanted) == 1:  # faster than arrays for one record
            payload = np.frombuffer(self._locate(int(wanted[0]))[2], np.uint8)
            return BytesArray(payload.copy(), np.array([0, len(payload)]))
        groups = self._by_shard(wanted)
        offsets = np.zeros(len(wanted) + 1, np.int64)
        np.cumsum(_sizes(len(wanted), groups), out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        self._copy(groups, offsets[:-1], data)
        return BytesArray(data, offsets)

    def copy_records(
        self,
        positions: Positions,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> None:
        """Copy the payloads at many positions into a buffer.

        Args:
            positions: as in `read_records`.
            places: int64, (count,): the offset of each payload in `out`.
            out: uint8, large enough for all payloads; see `record_sizes`.

        Raises:
            IndexError, OptionError, CorruptDataError: as in `read_records`.
        """
        self._copy(self.by_shard(positions), places, out)

    def read_frames(self, positions: Positions) -> BytesArray:
        """Read whole frames at many positions, with verified checksums.

        Args:
            positions: as in `read_records`.

        Returns:
            BytesArray, (count,), in the order of the positions.

        Raises:
            IndexError, OptionError, CorruptDataError: as in `read_records`.
        """
        wanted = integer_positions(positions, len(self))
        groups = self._by_shard(wanted)
        offsets = np.zeros(len(wanted) + 1, np.int64)
        np.cumsum(_sizes(len(wanted), groups) + FRAME_BYTES, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        self._copy(groups, offsets[:-1], data, whole=True)
        return BytesArray(data, offsets)

    def record_sizes(self, positions: Positions) -> Int64Array:
        """Return the payload sizes at many positions from the indexes, in bytes.

        Args:
            positions: as in `read_records`.

        Returns:
            int64, (count,).

        Raises:
            IndexError, OptionError: as in `read_records`.
        """
        wanted = integer_positions(positions, len(self))
        return _sizes(len(wanted), self._by_shard(wanted))

    def by_shard(self, positions: Positions) -> list[ShardGroup]:
        """Group positions by shard; shards without positions are left out.

        Raises:
            IndexError, OptionError: as in `read_records`.
        """
        return self._by_shard(integer_positions(positions, len(self)))

    def _by_shard(self, wanted: Int64Array) -> list[ShardGroup]:
        """Group validated positions: int64, none negative."""
        chosen = self._positions
        if chosen.start or chosen.step != 1:
            wanted = chosen.start + chosen.step * wanted
        if not wanted.size:
            return []
        if len(self.shards) == 1:
            return [ShardGroup(self.shards[0], slice(None), wanted)]
        if self._starts_array is None:
            self._starts_array = np.array(self._shard_starts, np.int64)
        of_shard = np.searchsorted(self._starts_array, wanted, side="right") - 1
        numbers = wanted - self._starts_array[of_shard]
        grouped = of_shard.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(of_shard[grouped])) + 1
        return [
            ShardGroup(self.shards[of_shard[members[0]]], members, numbers[members])
            for members in np.split(grouped, cuts)
        ]

    def shard_spans(self) -> list[ShardSpan]:
        """The spans of the shards in this dataset, in order, without empty ones."""
        chosen = self._positions
        forwards = chosen if chosen.step > 0 else chosen[::-1]
        spans = []
        for shard, begin, end in zip(
            self.shards, self._shard_starts[:-1], self._shard_starts[1:], strict=True
        ):
            low, high = bisect.bisect_left(forwards, begin), bisect.bisect_left(forwards, end)
            if low < high:
                part = forwards[low:high]
                numbers = range(part.start - begin, part.stop - begin, part.step)
                spans.append(ShardSpan(shard, low, numbers))
        if forwards is chosen:
            return spans
        return [
            ShardSpan(shard, len(chosen) - first - len(numbers), numbers[::-1])
            for shard, first, numbers in reversed(spans)
        ]

    def locate_record(self, position: int) -> RecordLocation:
        """Return the file, the number and the offset of the record at a position.

        Raises:
            IndexError: the position is out of range.
        """
        shard, number = self._shard_of(position)
        return RecordLocation(str(shard.path), number, int(shard.index.offsets[number]))

    def records(self) -> Iterator[bytes]:
        """Yield the payloads in order without decoding them."""
        for _, block in self._blocks():
            for payload in block.payloads():
                yield bytes(payload)

    def located_records(self) -> Iterator[tuple[Shard, int, bytes]]:
        """Yield the payloads in order, with their shard and their number in it."""
        for shard, block in self._blocks():
            for number, payload in enumerate(block.payloads(), block.position):
                yield shard, number, bytes(payload)

    def read_columns(self, keys: FeatureRequest | None = None) -> dict[str, Column]:
        """Read features of all examples as columns.

        Args:
            keys: feature names, or a dict of names and FeatureSpecs; None for all features of the
                schema that have values. A known schema completes missing kinds and shapes.

        Returns:
            For each name an ndarray (int64 or float32, (len(dataset), *shape)), a BytesArray of
            that shape, or a RaggedArray if the number of values varies. All columns are in memory
            at once, so select the columns you need.

        Raises:
            OptionError: no record has a feature of that name.
            CorruptDataError: a record is damaged or not an Example, or a feature does not match
                its FeatureSpec.

        Example:
            labels = dataset.read_columns(["image/class/label"])["image/class/label"]
        """
        if keys is None or self._outer_schema is not None:
            keys = self._specs(keys)
        decoder = ColumnDecoder(keys)
        for shard, block in self._blocks():
            _append(decoder, shard, block)
        try:
            return decoder.finish()
        except CorruptDataError as error:
            if error.defect is Defect.MISSING_FEATURE:
                self._check_keys(list(keys))
            raise

    def batches(
        self, size: int, keys: FeatureRequest | None = None, *, drop_last: bool = False
    ) -> Iterator[dict[str, Column]]:
        """Read columns of `size` examples at a time, in order.

        Shapes come from the schema, so all batches have the same columns. The schema of a foreign
        dataset takes one pass over it; a FeatureSpec with kind and shape for every name avoids it.

        Args:
            size: number of examples in a batch; the last batch may have fewer.
            keys: as in `read_columns`.
            drop_last: drop an incomplete last batch.

        Yields:
            Columns as in `read_columns`.

        Raises:
            OptionError: the size is not positive; or as in `read_columns`.
            CorruptDataError: as in `read_columns`.
        """
        if size < 1:
            raise OptionError(option="size", value=size, expected="a positive integer")
        return self._batches(size, self._specs(keys), drop_last)

    def _batches(
        self, size: int, specs: Mapping[str, FeatureSpec], drop_last: bool
    ) -> Iterator[dict[str, Column]]:
        decoder, filled = ColumnDecoder(specs), 0
        for shard, block in self._blocks():
            at = 0
            while at < len(block):
                stop = min(len(block), at + size - filled)
                _append(decoder, shard, block, at, stop)
                filled += stop - at
                at = stop
                if filled == size:
                    yield decoder.finish()
                    filled = 0
        if filled and not drop_last:
            yield decoder.finish()

    @property
    def schema(self) -> Schema:
        """The features of the examples, from the manifest or from one pass over the records."""
        if self._schema is None:
            survey = SchemaSurvey()
            for shard, block in self._blocks():
                with located(shard.path, block.position):
                    survey.update(block.buffer, block.starts, block.lengths)
            self._schema = survey.finish()
            self._outer_schema = self._outer_schema or self._schema
        return self._schema

    def glance(self, record_count: int) -> tuple[Schema, bool]:
        """Return the known schema, or that of the first undamaged records; and if it covers all."""
        if self._schema is not None and self._schema.is_complete:
            return self._schema, True
        is_all = record_count >= len(self)
        try:
            first = (self if is_all else self[:record_count]).schema
        except CorruptDataError:
            survey = SchemaSurvey()
            for record in self._readable(record_count):
                with suppress(CorruptDataError):
                    start, length = np.zeros(1, np.int64), np.array([len(record)])
                    SchemaSurvey().update(record, start, length)  # raises before damage is counted
                    survey.update(record, start, length)
            return survey.finish(), False
        return first, is_all and first.is_complete

    def _readable(self, record_count: int) -> Iterator[bytes]:
        """Yield the first records, without damaged ones."""
        position = 0
        with suppress(CorruptDataError):
            for record in self[:record_count].records():
                yield record
                position += 1
        for after in range(position, min(record_count, len(self))):
            with suppress(CorruptDataError, OptionError):  # compressed shards have no random access
                yield self.read_record(after)

    # -- positions -----------------------------------------------------------------------------

    @property
    def _positions(self) -> range:
        if self._range is None:
            self._range = range(self._shard_starts[-1])
        return self._range

    @property
    def _shard_starts(self) -> list[int]:
        """The position of the first record of each shard, and the end."""
        if self._starts is None:
            self._starts = list(itertools.accumulate(record_counts(self.shards), initial=0))
        return self._starts

    def _copy(
        self,
        groups: list[ShardGroup],
        places: Int64Array,
        out: npt.NDArray[np.uint8],
        *,
        whole: bool = False,
    ) -> None:
        for shard, members, numbers in groups:
            self._open.use(shard)
            shard.gather(numbers, places[members], out, whole=whole)

    def _locate(self, index: int) -> tuple[Shard, int, memoryview]:
        """The shard, the number in it, and the payload of a position."""
        shard, number = self._shard_of(index)
        self._open.use(shard)
        return shard, number, shard.read(number)

    def _shard_of(self, index: int) -> tuple[Shard, int]:
        """The shard and the number in it of a position."""
        try:
            position = self._positions[index]
        except IndexError:
            raise _no_position(index, len(self)) from None
        at = bisect.bisect_right(self._shard_starts, position) - 1
        return self.shards[at], position - self._shard_starts[at]

    def _blocks(self) -> Iterator[tuple[Shard, RecordBlock]]:
        """Yield all records in order, in blocks."""
        if self._range is None:  # no counting needed
            for shard in self.shards:
                for block in shard.blocks():
                    yield shard, block
        elif self._range.step == 1:
            starts = self._shard_starts
            for shard, first, end in zip(self.shards, starts[:-1], starts[1:], strict=True):
                low, high = max(self._range.start, first), min(self._range.stop, end)
                if low < high:
                    for block in shard.blocks(low - first, high - first):
                        yield shard, block
        else:
            for index in range(len(self._range)):
                shard, number, payload = self._locate(index)
                start, length = np.zeros(1, np.int64), np.array([len(payload)])
                yield shard, RecordBlock(payload, start, length, number, 0)

    # -- features ------------------------------------------------------------------------------

    @property
    def _known_schema(self) -> Schema:
        """The schema of this dataset, or of the one that it is a slice of."""
        return self._outer_schema or self.schema

    @property
    def _known_features(self) -> Mapping[str, FeatureSchema]:
        return self._known_schema.features

    def _specs(self, keys: FeatureRequest | None) -> dict[str, FeatureSpec]:
        """Complete the FeatureSpecs of features with kinds and shapes from the schema."""
        wanted: Mapping[str, FeatureSpec | None]
        if isinstance(keys, Mapping):
            wanted = keys
        elif isinstance(keys, str):
            raise OptionError(option="keys", value=keys, expected="a list of names")
        elif keys is None:
            if self._known_schema.payload not in ("Example", "mixed", "none"):
                raise self._not_examples()
            self._known_schema.check_complete("select the features that you need")
            features = self._known_features.items()
            wanted = dict.fromkeys(key for key, feature in features if feature.kind != "none")
        else:
            wanted = dict.fromkeys(keys)
        return {key: self._spec(key, spec or FeatureSpec()) for key, spec in wanted.items()}

    def _spec(self, key: str, spec: FeatureSpec) -> FeatureSpec:
        if spec.shape is not None and spec.kind is not None:
            return spec
        known = self._known_features.get(key)
        if known is not None:
            return _complete(key, spec, known)
        self._known_schema.check_complete(
            f"{key!r} is not listed in the schema, so pass a FeatureSpec with kind and shape"
        )
        if spec.default is None:
            self._check_keys([key])
        return spec

    def _check_keys(self, keys: Iterable[str]) -> None:
        """Raise an OptionError for a feature that no record has."""
        known = self._known_features
        if "features" not in self._known_schema.sections and len(self):
            raise self._not_examples()
        for key in keys:
            if key not in known and self._known_schema.is_complete:
                none = "records have no features" if len(self) else "the dataset is empty"
                hint = suggest_names(key, known, none)
                raise OptionError(
                    f"no record has a feature {key!r}; {hint}", option="keys", value=key
                )

    def _not_examples(self) -> OptionError:
        return OptionError(
            f"the records are {self.schema.payload}, not Examples, so they have no columns",
            value=self.schema.payload,
            remedy="Read them one by one, or as bytes with records().",
        )


def record_counts(shards: Sequence[Shard]) -> list[int]:
    """Return the number of records of each shard; unknown ones are counted in threads.

    Raises:
        CorruptDataError: the first shard with damaged frames.
    """
    unknown = [shard for shard in shards if shard.known_record_count is None]
    if len(unknown) > 1:
        work = Work(thread_count(None), None)
        for _ in work.in_order(lambda shard: shard.record_count, unknown, ahead=2 * work.threads):
            pass
    return [shard.record_count for shard in shards]


def integer_positions(positions: Positions, count: int) -> Int64Array:
    """Convert positions in a sequence of `count` records to int64 from 0 to `count` - 1.

    Raises:
        IndexError, OptionError: as in `Dataset.read_records`.
    """
    try:
        array = np.asarray(positions)
    except ValueError:  # lists of unequal length
        array = np.empty(0, object)
    kind = array.dtype.kind
    if array.ndim != 1 or kind not in "biuO":
        if array.ndim == 1 and not array.size and not isinstance(positions, np.ndarray):
            return np.empty(0, np.int64)
        raise _not_positions(f"an array of {array.dtype}, shape {array.shape}")
    if kind == "b":
        if len(array) != count:
            raise _not_positions(f"a boolean mask of {len(array)} values")
        return np.flatnonzero(array)
    if kind == "O" and not (array.size and all(type(number) is int for number in array)):
        raise _not_positions("objects")
    # for one position, minimum and maximum would cost more than the read
    if len(array) == 1 and kind == "i" and 0 <= array[0] < count:
        return array.astype(np.int64, copy=False)
    if array.size and (array.min() < 0 or array.max() >= count):
        outside = np.flatnonzero((array < -count) | (array >= count))
        if len(outside):
            raise _no_position(int(array[outside[0]]), count)
        array = np.where(array < 0, array + count, array)
    return array.astype(np.int64, copy=False)


def _not_positions(found: str) -> OptionError:
    return OptionError(
        f"{option('positions')} is {found}",
        option="positions",
        expected="integers along one axis, or a boolean mask with one value per record",
    )


def _no_position(index: int, count: int) -> IndexError:
    return IndexError(f"position {index} is out of range for a dataset of {count} records")


def _sizes(count: int, groups: list[ShardGroup]) -> Int64Array:
    sizes = np.empty(count, np.int64)
    for shard, members, numbers in groups:
        sizes[members] = shard.sizes(numbers)
    return sizes


def _decode(payload: memoryview, number: int) -> Features | SequenceExample:
    try:
        return decode_payload(payload)
    except CorruptDataError as error:
        error.record = number
        raise


def _append(
    decoder: ColumnDecoder, shard: Shard, block: RecordBlock, low: int = 0, high: int | None = None
) -> None:
    with located(shard.path, block.position + low):
        decoder.append(block.buffer, block.starts[low:high], block.lengths[low:high])


def _complete(key: str, spec: FeatureSpec, known: FeatureSchema) -> FeatureSpec:
    if spec.kind is None and known.kind in ("mixed", "none"):
        detail = "different kinds in different records" if known.kind == "mixed" else "no values"
        raise OptionError(
            f"feature {key!r} has {detail}",
            option="keys",
            value=key,
            remedy="Pass a FeatureSpec with a kind to read it.",
        )
    shape = spec.shape
    if shape is None:
        shape = "ragged" if known.shape is None else known.shape
    kind = spec.kind or known.kind
    return FeatureSpec(kind, shape, spec.default)  # type: ignore[arg-type]
