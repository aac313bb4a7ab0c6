"""Many shards as one sequence of examples, from position 0.

A Dataset is light: it holds shards and a range of positions, and a slice is another one over the
same shards. Whole shards are read in order; single positions through the shards' indexes.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.open_shards import OpenShards
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, Defect, OptionError, located, names_like
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


class RecordLocation(NamedTuple):
    """Where a record lies: its file, its number there, and the byte at which its frame begins."""

    path: str
    number: int
    offset: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.number}, byte {self.offset}"


class ShardSpan(NamedTuple):
    """Some records of a shard: at positions `first` and after are those with these numbers."""

    shard: Shard
    first: int
    numbers: range


class ShardGroup(NamedTuple):
    """Which of many positions lie in a shard, and as which of its records.

    members: int64, (n,): their places among the positions; or a slice of these.
    numbers: int64, (n,).
    """

    shard: Shard
    members: Int64Array | slice
    numbers: Int64Array


class Dataset:
    """The examples of some shards. Made by `recordsmith.open`.

    Indexing and iterating give decoded examples: a dict with int64 arrays, float32 arrays and
    lists of bytes, as in `decode_example`, or a SequenceExample; to type checkers Any, as only the
    data knows which. Every checksum is checked on the way. Safe to read from several threads.
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
        self._outer_schema = schema  # of this, or of the dataset that this is a part of
        self._range = positions  # None: all of them, not counted yet
        self._starts: list[int] | None = None
        self._starts_array: Int64Array | None = None  # the same
        self._open = _open or OpenShards()

    def __repr__(self) -> str:
        part = "" if self._range is None else f", record_count={len(self._range)}"
        return f"Dataset(shard_count={len(self.shards)}{part})"

    def __getstate__(self) -> dict[str, Any]:
        """A dataset travels to another process as paths and numbers."""
        return {**vars(self), "_open": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open = OpenShards()

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def known_record_count(self) -> int | None:
        """How many records it has, if that is known without looking."""
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
        """One decoded example, or for a slice a Dataset of those positions.

        Raises:
            IndexError: there is no such position.
            OptionError: the shard is compressed: those are read in order only.
            CorruptDataError: the record is damaged, or no Example.
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
        """The payload at a position, whatever it holds; errors as in indexing."""
        return bytes(self._locate(position)[2])

    def read_records(self, positions: Sequence[int] | Int64Array) -> BytesArray:
        """The payloads at many positions, in that order, copied end to end; the fast way to read
        here and there.

        Args:
            positions: int64, (count,), or a sequence of ints; negative ones count from the end.

        Returns:
            BytesArray, (count,).

        Raises:
            IndexError: there is no such position.
            OptionError: a shard is compressed: those are read in order only.
            CorruptDataError: a record is damaged.
        """
        if len(positions) == 1:  # the arrays below cost more than one record
            payload = np.frombuffer(self._locate(positions[0])[2], np.uint8)
            return BytesArray(payload.copy(), np.array([0, len(payload)]))
        groups = self.by_shard(positions)
        offsets = np.zeros(len(positions) + 1, np.int64)
        np.cumsum(_sizes(len(positions), groups), out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        self._copy(groups, offsets[:-1], data)
        return BytesArray(data, offsets)

    def copy_records(
        self,
        positions: Sequence[int] | Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> None:
        """Copy the payloads at many positions, each to where it shall begin in `out`.

        Args:
            positions: as of `read_records`.
            places: int64, (count,).
            out: uint8, with room for all: `record_sizes` tells their sizes.

        Raises:
            IndexError, OptionError, CorruptDataError: as `read_records`.
        """
        self._copy(self.by_shard(positions), places, out)

    def read_frames(self, positions: Sequence[int] | Int64Array) -> BytesArray:
        """The records at many positions as they lie in their files, framing and checksums included,
        after these were checked; copied end to end.

        Args:
            positions: as of `read_records`.

        Returns:
            BytesArray, (count,).

        Raises:
            IndexError, OptionError, CorruptDataError: as `read_records`.
        """
        groups = self.by_shard(positions)
        offsets = np.zeros(len(positions) + 1, np.int64)
        np.cumsum(_sizes(len(positions), groups) + FRAME_BYTES, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        self._copy(groups, offsets[:-1], data, whole=True)
        return BytesArray(data, offsets)

    def record_sizes(self, positions: Sequence[int] | Int64Array) -> Int64Array:
        """How long the payloads at many positions are, in bytes, as the indexes tell; compressed
        shards have indexes too.

        Args:
            positions: as of `read_records`.

        Returns:
            int64, (count,).

        Raises:
            IndexError: there is no such position.
        """
        return _sizes(len(positions), self.by_shard(positions))

    def by_shard(self, positions: Sequence[int] | Int64Array) -> list[ShardGroup]:
        """Which of many positions lie in which shard; shards with none of them are left out.

        Raises:
            IndexError: there is no such position.
        """
        wanted = np.asarray(positions, np.int64)
        length = len(self)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= length):
            outside = np.flatnonzero((wanted < -length) | (wanted >= length))
            if len(outside):
                raise self._no_position(int(wanted[outside[0]]))
            wanted = np.where(wanted < 0, wanted + length, wanted)
        chosen = self._positions
        if chosen.start or chosen.step != 1:
            wanted = chosen.start + chosen.step * wanted
        if len(self.shards) == 1:
            return [ShardGroup(self.shards[0], slice(None), wanted)]
        if not wanted.size:
            return []
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
        """Where the shards lie in this dataset, in its order, without those it has nothing of."""
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
        """Where the record at a position lies.

        Raises:
            IndexError: there is no such position.
        """
        shard, number = self._shard_of(position)
        return RecordLocation(str(shard.path), number, int(shard.index.offsets[number]))

    def records(self) -> Iterator[bytes]:
        """The payloads in order, whatever they hold."""
        for _, block in self._blocks():
            for payload in block.payloads():
                yield bytes(payload)

    def located_records(self) -> Iterator[tuple[Shard, int, bytes]]:
        """The payloads in order, each with its shard and its number in that shard."""
        for shard, block in self._blocks():
            for number, payload in enumerate(block.payloads(), block.position):
                yield shard, number, bytes(payload)

    def read_columns(self, keys: FeatureRequest | None = None) -> dict[str, Column]:
        """Read features of all examples as columns.

        Args:
            keys: names, or names with a FeatureSpec each; None for every feature of the schema
                that has a kind. Where the schema is known, it completes what is not declared.

        Returns:
            For each name an ndarray (int64 or float32, (len(dataset), *shape)), a BytesArray of
            that shape, or a RaggedArray where examples have different numbers of values. They own
            their memory: all of it is in memory at once, so name the columns you need.

        Raises:
            OptionError: no record has a feature of that name.
            CorruptDataError: a damaged record; one that is no Example; a feature that does not
                fit its FeatureSpec; each with path, position in the shard, and what was found.
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

        The schema decides which features have a fixed shape, so that all batches are alike; give
        a FeatureSpec with a shape for every name to do without it. (The schema of a foreign
        dataset costs one pass over it, once.)

        Args:
            size: examples in a batch; the last one may have fewer.
            keys: as in `read_columns`.
            drop_last: leave out a last batch that is not full.

        Yields:
            Columns as in `read_columns`.
        """
        if size < 1:
            raise OptionError(f"size is {size}, expected at least 1")
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
        """Which features these examples have: as the manifest tells, else by reading them once."""
        if self._schema is None:
            survey = SchemaSurvey()
            for shard, block in self._blocks():
                with located(shard.path, block.position):
                    survey.update(block.buffer, block.starts, block.lengths)
            self._schema = survey.finish()
            self._outer_schema = self._outer_schema or self._schema
        return self._schema

    def glance(self, record_count: int) -> tuple[Schema, bool]:
        """The schema if it is known without reading, else that of the first records, without those
        that are damaged; and whether it speaks of all.
        """
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
                    SchemaSurvey().update(record, start, length)  # counts nothing that is damaged
                    survey.update(record, start, length)
            return survey.finish(), False
        return first, is_all and first.is_complete

    def _readable(self, record_count: int) -> Iterator[bytes]:
        """The first records, without those that are damaged."""
        position = 0
        with suppress(CorruptDataError):
            for record in self[:record_count].records():
                yield record
                position += 1
        for after in range(position, min(record_count, len(self))):
            with suppress(CorruptDataError, OptionError):  # compressed: not without those before
                yield self.read_record(after)

    # -- positions -----------------------------------------------------------------------------

    @property
    def _positions(self) -> range:
        if self._range is None:
            self._range = range(self._shard_starts[-1])
        return self._range

    @property
    def _shard_starts(self) -> list[int]:
        """The position of each shard's first record, and the end."""
        if self._starts is None:
            counts = (shard.record_count for shard in self.shards)
            self._starts = list(itertools.accumulate(counts, initial=0))
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
        """(shard, number in it, payload) of a position."""
        shard, number = self._shard_of(index)
        self._open.use(shard)
        return shard, number, shard.read(number)

    def _shard_of(self, index: int) -> tuple[Shard, int]:
        """(shard, number in it) of a position."""
        try:
            position = self._positions[index]
        except IndexError:
            raise self._no_position(index) from None
        at = bisect.bisect_right(self._shard_starts, position) - 1
        return self.shards[at], position - self._shard_starts[at]

    def _no_position(self, index: int) -> IndexError:
        return IndexError(f"position {index} is outside a dataset of {len(self)} records")

    def _blocks(self) -> Iterator[tuple[Shard, RecordBlock]]:
        """All records in order, in blocks of neighbours."""
        if self._range is None:  # nothing needs to be counted
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
        """Of this dataset, or of the one that it is a part of."""
        return self._outer_schema or self.schema

    @property
    def _known_features(self) -> Mapping[str, FeatureSchema]:
        return self._known_schema.features

    def _specs(self, keys: FeatureRequest | None) -> dict[str, FeatureSpec]:
        """A FeatureSpec with kind and shape for each name, completed from the schema."""
        wanted: Mapping[str, FeatureSpec | None]
        if isinstance(keys, Mapping):
            wanted = keys
        elif isinstance(keys, str):
            raise OptionError(f"keys is the string {keys!r}; expected a list of names")
        elif keys is None:
            if self._known_schema.payload not in ("Example", "mixed", "none"):
                raise self._no_examples()
            self._known_schema.check_complete("name the features that you want")
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
            f"{key!r} is not listed in the schema, so give a FeatureSpec with kind and shape"
        )
        if spec.default is None:
            self._check_keys([key])
        return spec

    def _check_keys(self, keys: Iterable[str]) -> None:
        """Raise OptionError for a name that no record has."""
        known = self._known_features
        if "features" not in self._known_schema.sections and len(self):
            raise self._no_examples()
        for key in keys:
            if key not in known and self._known_schema.is_complete:
                none = "they have none at all" if len(self) else "there are no records"
                hint = names_like(key, known, none)
                raise OptionError(f"no record has a feature {key!r}; {hint}")

    def _no_examples(self) -> OptionError:
        return OptionError(
            f"the records are {self.schema.payload}, not Examples, so they have no columns; read "
            "them one by one, or as bytes with records()"
        )


def _sizes(count: int, groups: list[ShardGroup]) -> Int64Array:
    sizes = np.empty(count, np.int64)
    for shard, members, numbers in groups:
        sizes[members] = shard.sizes(numbers)
    return sizes


def _decode(payload: memoryview, number: int) -> Features | SequenceExample:
    try:
        return decode_payload(payload)
    except CorruptDataError as error:
        error.position = number
        raise


def _append(
    decoder: ColumnDecoder, shard: Shard, block: RecordBlock, low: int = 0, high: int | None = None
) -> None:
    with located(shard.path, block.position + low):
        decoder.append(block.buffer, block.starts[low:high], block.lengths[low:high])


def _complete(key: str, spec: FeatureSpec, known: FeatureSchema) -> FeatureSpec:
    if spec.kind is None and known.kind in ("mixed", "none"):
        raise OptionError(f"feature {key!r} has {known.kind} kinds; declare one to read it")
    shape = spec.shape
    if shape is None:
        shape = "ragged" if known.shape is None else known.shape
    kind = spec.kind or known.kind
    return FeatureSpec(kind, shape, spec.default)  # type: ignore[arg-type]
