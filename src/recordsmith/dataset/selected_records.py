"""Reading of selected records: many at any place, or all in order.

This is what other packages use to read a dataset; `records_of` returns it for a Dataset.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import (
    AllocateBytes,
    BytesLike,
    Int64Array,
    as_view,
    empty_bytes,
    offsets_from_lengths,
)
from recordsmith.dataset.selection import (
    AllPositions,
    ChosenPositions,
    PositionArray,
    PositionRange,
    Positions,
    integer_positions,
    one_place,
)
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import (
    Faults,
    ShardGroup,
    ShardSequence,
    gather,
    payload_sizes,
)
from recordsmith.dataset.shards_ahead import blocks_of
from recordsmith.errors import DataError, OptionError
from recordsmith.example import BytesArray
from recordsmith.wire import FRAME_BYTES, RecordBlock
from recordsmith.work import Work

_PLACES_AT_ONCE = 8192
_FEW_PLACES = 1 << 10
_GROUP_BYTES = 4 << 20  # of scattered records that are read together
_GROUPS_AHEAD = 4  # groups that are read at the same time over a network


class RecordLocation(NamedTuple):
    """The file of a record, its number in the file, and the offset of its frame."""

    path: str
    number: int
    offset: int

    def __str__(self) -> str:
        return f"{self.path}, record {self.number}, byte {self.offset}"


class Decoder(Protocol):
    """Decodes the payloads of many blocks, to columns or to Arrow."""

    def append(self, buffer: BytesLike, starts: Int64Array, lengths: Int64Array) -> None: ...


@dataclass(frozen=True, slots=True)
class LocatedBlock:
    """Records that were read together, and where they are from.

    block: the records; their bytes are valid until the next block is read.
    origin: the shard or part of a shard that the block is from, by its position; or the shards
        and numbers of its records.
    rows: which records of the block that was read these are; None for all.
    """

    block: RecordBlock
    origin: Shard | ShardPart | tuple[ShardSequence, Int64Array]
    rows: Int64Array | None = None

    def select(self, rows: Int64Array) -> LocatedBlock:
        """Return some of the records, which keep their places."""
        block = self.block
        chosen = replace(block, starts=block.starts[rows], lengths=block.lengths[rows])
        return LocatedBlock(chosen, self.origin, rows)

    def place(self, row: int) -> tuple[Shard, int]:
        """Return the shard of a record and its number there."""
        if self.rows is not None:
            row = int(self.rows[row])
        if isinstance(self.origin, tuple):
            records, positions = self.origin
            return records.find(int(positions[row]))
        shard = self.origin.shard if isinstance(self.origin, ShardPart) else self.origin
        return shard, self.origin.number_of(self.block.position + row)

    @contextmanager
    def located(self, first_row: int = 0) -> Iterator[None]:
        """Add path and number to every CorruptDataError whose record counts from `first_row`."""
        try:
            yield
        except DataError as error:
            if error.path is None:
                shard, number = self.place(first_row + (error.record or 0))
                error.path = str(shard.location)
                error.record = None if error.record is None else number
            raise

    def append_to(self, decoder: Decoder, low: int = 0, high: int | None = None) -> None:
        """Append the rows low:high to a decoder; its errors have path and number."""
        block = self.block
        with self.located(low):
            decoder.append(block.buffer, block.starts[low:high], block.lengths[low:high])


class ShardPart:
    """Some records of a shard, in order, which are read like a shard that has only these.

    `number_of` converts the number of a record in this part to its number in the file.
    """

    def __init__(
        self, records: ShardSequence, shard: Shard, first: int, numbers: range | Int64Array
    ) -> None:
        """
        Args:
            first: the position of the shard's first record in `records`.
            numbers: int64 or a range, ascending and not empty.
        """
        self.shard = shard
        self.location = shard.location
        self.split = shard.split
        self._records = records
        self._first = first
        self._numbers = numbers

    @property
    def record_count(self) -> int:
        """The number of records in this part."""
        return len(self._numbers)

    def numbers(self) -> range | Int64Array:
        """Return the numbers in the file of all records."""
        return self._numbers

    @property
    def compression(self) -> str:
        """none, gzip or zlib."""
        return self.shard.compression

    @property
    def size_bytes(self) -> int:
        """The size of the records with their frames, before compression."""
        if self._is_run:
            offsets = self.shard.index.offsets
            return int(offsets[self._numbers[-1] + 1] - offsets[self._numbers[0]])
        return int(self.shard.sizes(self._all()).sum()) + FRAME_BYTES * len(self._numbers)

    def number_of(self, number: int) -> int:
        """Return the number in the file of a record of this part."""
        return int(self._numbers[number])

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[RecordBlock]:
        """Yield the records start:stop of this part in blocks, whose positions count in the part.

        Raises:
            CorruptDataError: as `Shard.blocks`.
        """
        numbers = self._numbers[start:stop]
        if not len(numbers):
            return
        done = 0  # bytes: at the end of each block, they are its offset and the size of its buffer
        if not self._is_run and self.compression == "none":
            for located in scattered_blocks(self._records, self._first + np.asarray(numbers)):
                block = located.block
                done += int(block.lengths.sum()) + FRAME_BYTES * len(block)
                offset = done - len(block.buffer)
                yield RecordBlock(block.buffer, block.starts, block.lengths, start, offset)
                start += len(block)
            return
        for block in self.shard.blocks(int(numbers[0]), int(numbers[-1]) + 1):
            end = block.position + len(block)
            low, high = (
                bisect.bisect_left(numbers, block.position),
                bisect.bisect_left(numbers, end),
            )
            if low == high:
                continue
            rows: Any = slice(None)
            if not self._is_run:
                rows = np.asarray(numbers[low:high]) - block.position
            starts, lengths = block.starts[rows], block.lengths[rows]
            done += int(lengths.sum()) + FRAME_BYTES * len(lengths)
            yield RecordBlock(block.buffer, starts, lengths, start + low, done - len(block.buffer))

    @property
    def _is_run(self) -> bool:
        return isinstance(self._numbers, range) and self._numbers.step == 1

    def _all(self) -> Int64Array:
        return np.asarray(self._numbers, np.int64)


AnyShard: TypeAlias = Shard | ShardPart


class SelectedRecords:
    """The selected records of some shards. Thread-safe."""

    def __init__(self, records: ShardSequence, positions: ChosenPositions | None = None) -> None:
        """`positions`: those in `records` that are selected; None for all."""
        self._records = records
        self.positions = AllPositions(records) if positions is None else positions

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def known_record_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        return self.positions.known_count

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """All shards, also those without selected records."""
        return self._records.shards

    @property
    def repeats(self) -> bool:
        """Whether a record is selected more than once; the positions must be ascending."""
        if self.positions.run is not None:
            return False
        positions = self.positions.all()
        return bool((positions[1:] == positions[:-1]).any())

    def select(self, positions: ChosenPositions) -> SelectedRecords:
        """Return other records of the same shards."""
        return SelectedRecords(self._records, positions)

    # -- at any place --------------------------------------------------------------------------

    def read(self, index: int) -> tuple[Shard, int, memoryview]:
        """Return the shard of a record, its number there, and its payload.

        Raises:
            IndexError: the index is out of range.
            OptionError: the shard is compressed, so it can only be read in order.
            CorruptDataError: the record is damaged.
        """
        return self._records.read(self._position(index))

    def read_record(self, index: int) -> bytes:
        """Return the payload at a place; raises as `read`."""
        return bytes(self.read(index)[2])

    def read_records(
        self,
        positions: Positions,
        allocate: AllocateBytes = empty_bytes,
        faults: Faults | None = None,
    ) -> BytesArray:
        """Read the payloads at many places, as `Dataset.read_records`.

        Args:
            faults: receives the errors of damaged records; see `gather`.
        """
        wanted: Any = positions
        if not (type(positions) is list and len(positions) == 1 and type(positions[0]) is int):
            wanted = integer_positions(positions, len(self))
        if len(wanted) == 1 and faults is None:  # faster than arrays for one record
            payload = np.frombuffer(self.read(int(wanted[0]))[2], np.uint8)
            buffer = allocate(len(payload))
            buffer[:] = payload
            return BytesArray(buffer, np.array([0, len(payload)]))
        return _gathered(self._records, self.positions.at(wanted), allocate, faults)

    def read_frames(self, positions: Positions) -> BytesArray:
        """Read whole frames at many places, with verified checksums, as `read_records`."""
        wanted = integer_positions(positions, len(self))
        return _gathered(self._records, self.positions.at(wanted), whole=True)

    def record_sizes(self, positions: Positions) -> Int64Array:
        """Return the payload sizes at many places from the indexes: int64, (count,)."""
        wanted = integer_positions(positions, len(self))
        return payload_sizes(len(wanted), self._records.group(self.positions.at(wanted)))

    def by_shard(self, positions: Positions) -> list[ShardGroup]:
        """Group places by shard; shards without any are left out."""
        wanted = integer_positions(positions, len(self))
        return self._records.group(self.positions.at(wanted))

    def locate_record(self, index: int) -> RecordLocation:
        """Return the file, the number and the offset of the record at a place.

        Raises:
            IndexError: the index is out of range.
        """
        shard, number = self._records.find(self._position(index))
        return RecordLocation(str(shard.location), number, int(shard.index.offsets[number]))

    def _position(self, index: int) -> int:
        return self.positions.one(one_place(index, len(self.positions)))

    # -- in order ------------------------------------------------------------------------------

    def blocks(self) -> Iterator[LocatedBlock]:
        """Yield all records in order, in blocks.

        Raises:
            OptionError: a shard is compressed, and the order is not that of the files.
            CorruptDataError: a record is damaged; after all records before it.
        """
        if self.positions.is_ascending and not self._are_few_far_away():
            for shard, block in blocks_of(self.parts()):
                yield LocatedBlock(block, shard)
            return
        self.check_readable_in_order()
        count = len(self)
        for start in range(0, count, _PLACES_AT_ONCE):
            places = np.arange(start, min(start + _PLACES_AT_ONCE, count), dtype=np.int64)
            yield from scattered_blocks(self._records, self.positions.at(places))

    def _are_few_far_away(self) -> bool:
        """Whether they are best read together over a network, as for a preview of a selection."""
        return (
            not self.positions.is_everything  # whose number may be unknown
            and self.positions.run is None
            and len(self) <= _FEW_PLACES
            and all(
                shard.is_remote and shard.known_compression == "none" for shard in self.all_shards
            )
        )

    def payloads(self) -> Iterator[tuple[Shard, int, memoryview]]:
        """Yield shard, number and payload of all records in order."""
        for located in self.blocks():
            if isinstance(located.origin, Shard):  # the common case, faster
                shard = located.origin
                for number, payload in enumerate(located.block.payloads(), located.block.position):
                    yield shard, number, payload
            else:
                for row, payload in enumerate(located.block.payloads()):
                    yield *located.place(row), payload

    def located_records(self) -> Iterator[tuple[Shard, int, bytes]]:
        """Yield shard, number and payload of all records in order, as bytes."""
        for shard, number, payload in self.payloads():
            yield shard, number, bytes(payload)

    def parts(self) -> list[AnyShard]:
        """The shards with selected records, or parts of them, in order.

        The records must be in the order of the files: see `in_file_order`. A shard that is selected
        completely is returned itself.
        """
        chosen, records = self.positions, self._records
        if chosen.is_everything:
            return list(records.shards)  # not counted
        run = chosen.run
        if run is not None and run.step < 0:  # of one record at most
            run = range(run[0], run[0] + 1) if run else range(0)
        numbers: Any = chosen.all() if run is None else run
        parts: list[AnyShard] = []
        for shard, begin, end in zip(
            records.shards, records.starts[:-1], records.starts[1:], strict=True
        ):
            low, high = bisect.bisect_left(numbers, begin), bisect.bisect_left(numbers, end)
            if low == high:
                continue
            own: Any = numbers[low:high]
            own = range(own.start - begin, own.stop - begin, own.step) if run else own - begin
            is_whole = isinstance(own, range) and own == range(end - begin)
            parts.append(shard if is_whole else ShardPart(records, shard, begin, own))
        return parts

    def in_file_order(self) -> SelectedRecords:
        """Return the same records, in the order of the files."""
        if self.positions.is_ascending:
            return self
        run = self.positions.run
        if run is not None:
            return self.select(PositionRange(run[::-1]))
        return self.select(PositionArray(np.sort(self.positions.all())))

    def used_shards(self) -> list[Shard]:
        """The shards with selected records; for a shuffled dataset, all that may have some."""
        spread = self.positions.unordered()
        run = spread.run
        if run is None:
            numbers = np.unique(self._records.shard_numbers(spread.all())).tolist()
        elif run:
            first, last = sorted(self._records.shard_numbers(np.array([run[0], run[-1]])).tolist())
            numbers = range(first, last + 1)
        else:
            numbers = []
        return [shard for at in numbers if (shard := self.all_shards[at]).record_count]

    def shard_numbers(self, start: int, stop: int) -> Int64Array:
        """Return the index in `all_shards` of the shards of the records start:stop: int64, (n,)."""
        places = np.arange(start, stop, dtype=np.int64)
        return self._records.shard_numbers(self.positions.at(places))

    def are_in_split(self, split: str) -> npt.NDArray[np.bool_]:
        """Whether each record is in a shard of this split: bool, (count,)."""
        of_split = np.array([shard.split == split for shard in self.all_shards], np.bool_)
        if not len(of_split):
            return np.empty(0, np.bool_)
        return of_split[self._records.shard_numbers(self.positions.all())]

    def span_lengths(self) -> list[int]:
        """How many records of each shard are read in a row; one span if they are mixed."""
        if not self.positions.is_ascending:
            return [len(self)]
        return [count for part in self.parts() if (count := part.record_count)]

    def compressed_shard(self) -> Shard | None:
        """The first compressed shard with selected records."""
        compressed = (shard for shard in self.used_shards() if shard.compression != "none")
        return next(compressed, None)

    def check_readable_in_order(self) -> None:
        """Check that the records can be read in their order.

        Raises:
            OptionError: a shard is compressed, and the order is not that of the files.
        """
        if self.positions.is_ascending:
            return
        shard = self.compressed_shard()
        if shard is not None:
            raise OptionError(
                f"{shard.location} is compressed with {shard.compression}, so its records can only "
                "be read in their order",
                option="dataset",
                value=str(shard.location),
                remedy="Select records in ascending order, shuffle with a Loader and "
                "BufferShuffle(), or write the dataset uncompressed with `recordsmith reshard`.",
            )


def scattered_blocks(records: ShardSequence, positions: Int64Array) -> Iterator[LocatedBlock]:
    """Yield records at any positions of plain shards, as much at a time as is fast.

    Over a network, the next groups of records are read meanwhile.

    Raises:
        CorruptDataError: a record is damaged; after all records before it.
    """
    groups = _cut_by_size(records, positions)
    read = partial(_read_together, records)
    if any(shard.is_remote for shard in records.shards):
        each = Work(_GROUPS_AHEAD, None).in_order(read, groups, ahead=_GROUPS_AHEAD)
    else:
        each = (read(group) for group in groups)
    with closing(each):
        for block, fault in each:
            yield block
            if fault is not None:
                raise fault


def _cut_by_size(records: ShardSequence, positions: Int64Array) -> Iterator[Int64Array]:
    """Yield positions in groups of about `_GROUP_BYTES`."""
    for start in range(0, len(positions), _PLACES_AT_ONCE):
        chosen = positions[start : start + _PLACES_AT_ONCE]
        stops = np.cumsum(payload_sizes(len(chosen), records.group(chosen)))
        begin = 0
        while begin < len(chosen):
            before = int(stops[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(stops, before + _GROUP_BYTES, side="right")))
            yield chosen[begin:end]
            begin = end


def _read_together(
    records: ShardSequence, positions: Int64Array
) -> tuple[LocatedBlock, DataError | None]:
    """Return the records up to the first damaged one, and its error."""
    faults: Faults = {}
    payloads = _gathered(records, positions, faults=faults)
    first = min(faults, default=len(positions))
    offsets = payloads.offsets[: first + 1]
    block = RecordBlock(as_view(payloads.buffer), offsets[:-1], np.diff(offsets), 0, 0)
    return LocatedBlock(block, (records, positions[:first])), faults.get(first)


def _gathered(
    records: ShardSequence,
    positions: Int64Array,
    allocate: AllocateBytes = empty_bytes,
    faults: Faults | None = None,
    *,
    whole: bool = False,
) -> BytesArray:
    groups = records.group(positions)
    sizes = payload_sizes(len(positions), groups)
    offsets = offsets_from_lengths(sizes + FRAME_BYTES if whole else sizes)
    data = allocate(int(offsets[-1]))
    gather(groups, offsets[:-1], data, whole=whole, faults=faults)
    return BytesArray(data, offsets)


def records_of_part(part: AnyShard) -> SelectedRecords:
    """Return the records of a part of `shard_parts`."""
    if not isinstance(part, ShardPart):
        return joined_shards([part])
    numbers = part.numbers()
    if isinstance(numbers, range):
        return joined_shards([part.shard]).select(PositionRange(numbers))
    return joined_shards([part.shard]).select(PositionArray(numbers))


def joined_shards(shards: Sequence[Shard]) -> SelectedRecords:
    """Return all records of some shards."""
    return SelectedRecords(ShardSequence(shards))
