"""Reading of selected records: many at any place, or all in order.

This is what other packages use to read a dataset; `records_of` returns it for a Dataset.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from recordsmith.dataset.parts import ShardRange, blocks_of, cut_part
from recordsmith.dataset.selection import (
    Positions,
    Selection,
    integer_positions,
    one_place,
)
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import (
    PLACES_AT_ONCE,
    Faults,
    ShardGroup,
    ShardSequence,
    gather_payloads,
    payload_sizes,
    scattered_blocks,
)
from recordsmith.format.example import BytesArray, ColumnDecoder
from recordsmith.format.wire import RecordBlock
from recordsmith.support.buffers import AllocateBytes, Int64Array, empty_bytes
from recordsmith.support.errors import DataError, OptionError

if TYPE_CHECKING:
    from recordsmith.dataset.arrow.arrays import ArrowDecoder
    from recordsmith.dataset.where.expression import Where

_FEW_PLACES = 1 << 10


class RecordLocation(NamedTuple):
    """The file of a record, its number in the file, and the offset of its frame."""

    path: str
    number: int
    offset: int

    def located(self, error: DataError) -> DataError:
        found = copy(error)
        found.path, found.record, found.offset = str(self.path), self.number, self.offset
        return found

    def __str__(self) -> str:
        return f"{self.path}, record {self.number}, byte {self.offset}"


class LocatedBlock(msgspec.Struct, frozen=True):
    """Records that were read together, and where they are from.

    block: the records; their bytes are valid until the next block is read.
    origin: the part of a shard that the block is from; or a sequence, and the positions of the
        records there.
    rows: which records of the block that was read these are; None for all.
    """

    block: RecordBlock
    origin: ShardRange | tuple[ShardSequence, Int64Array]
    rows: Int64Array | None = None

    def select(self, rows: Int64Array) -> LocatedBlock:
        """Return some of the records, which keep their places."""
        block = self.block
        chosen = replace(block, starts=block.starts[rows], lengths=block.lengths[rows])
        return LocatedBlock(chosen, self.origin, rows)

    def find(self, row: int) -> tuple[Shard, int]:
        if self.rows is not None:
            row = int(self.rows[row])
        if isinstance(self.origin, tuple):
            records, positions = self.origin
            return records.find(int(positions[row]))
        return self.origin.shard, self.origin.number_of(self.block.position + row)

    def matching(self, where: Where) -> Int64Array:
        """Return the rows that match a condition."""
        with self.located():
            return np.flatnonzero(where.matches(replace(self.block, position=0)))

    @contextmanager
    def located(self, first_row: int = 0) -> Iterator[None]:
        """Add path and number to every DataError whose record counts from `first_row`."""
        try:
            yield
        except DataError as error:
            if error.path is None:
                shard, number = self.find(first_row + (error.record or 0))
                error.path = str(shard.location)
                error.record = None if error.record is None else number
            raise

    def append_to(
        self, decoder: ColumnDecoder | ArrowDecoder, low: int = 0, high: int | None = None
    ) -> None:
        """Append the rows low:high to a decoder; its errors have path and number."""
        block = self.block
        with self.located(low):
            decoder.append(block.buffer, block.starts[low:high], block.lengths[low:high])


class SelectedRecords:
    """The selected records of some shards. Immutable and thread-safe."""

    def __init__(self, records: ShardSequence, selection: Selection | None = None) -> None:
        """`selection`: which of `records` these are; None for all, whose number may be unknown."""
        self._records = records
        self._selection = selection

    @property
    def has_all(self) -> bool:
        """Whether these are all records of the shards, in order."""
        return self._selection is None

    @property
    def selection(self) -> Selection:
        if self._selection is None:
            return Selection(range(len(self._records)))
        return self._selection

    def describe(self) -> Any:
        """Describe the selection, as `Selection.describe`; None for all records."""
        return None if self._selection is None else self._selection.describe()

    def __len__(self) -> int:
        return len(self._records if self._selection is None else self._selection)

    @property
    def known_record_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        return self._records.known_record_count if self._selection is None else len(self)

    @property
    def is_in_file_order(self) -> bool:
        return self._selection is None or self._selection.is_ascending

    @property
    def all_shards(self) -> tuple[Shard, ...]:
        """All shards, also those without selected records."""
        return self._records.shards

    @property
    def repeats(self) -> bool:
        """Whether a record is selected more than once; the positions must be ascending."""
        if self.selection.run is not None:
            return False
        positions = self.selection.all()
        return bool((positions[1:] == positions[:-1]).any())

    # -- selection -----------------------------------------------------------------------------

    def select(self, selection: Selection) -> SelectedRecords:
        """Return other records of the same shards."""
        return SelectedRecords(self._records, selection)

    def cut(self, index: slice) -> SelectedRecords:
        """Return the records in a slice; the same object for all of them."""
        places = range(len(self))
        return self if places[index] == places else self.select(self.selection.cut(index))

    def pick(self, places: Positions) -> SelectedRecords:
        """Return the records at some places; IndexError or OptionError if they are invalid."""
        return self.select(self.selection.pick(places))

    def shuffled(self, seed: int) -> SelectedRecords:
        """Return the records in a random order."""
        return self.select(self.selection.shuffled(seed))

    # -- at any place --------------------------------------------------------------------------

    def read(self, index: int) -> tuple[Shard, int, memoryview]:
        """Return the shard of a record, its number there, and its payload."""
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
        """Read the payloads at many places, as `Dataset.read_records`; `faults` as in `gather`."""
        places: Any = positions
        if not (type(positions) is list and len(positions) == 1 and type(positions[0]) is int):
            places = integer_positions(positions, len(self))
        if len(places) == 1 and faults is None:  # faster than arrays for one record
            payload = np.frombuffer(self.read(int(places[0]))[2], np.uint8)
            buffer = allocate(len(payload))
            buffer[:] = payload
            return BytesArray(buffer, np.array([0, len(payload)]))
        return gather_payloads(self._records, self._positions(places), allocate, faults)

    def record_sizes(self, positions: Positions) -> Int64Array:
        """Return the payload sizes at many places from the indexes: int64, (count,)."""
        chosen = self._at(positions)
        return payload_sizes(len(chosen), self._records.group(chosen))

    def by_shard(self, positions: Positions) -> list[ShardGroup]:
        """Group places by shard; shards without any are left out."""
        return self._records.group(self._at(positions))

    def locate_record(self, index: int) -> RecordLocation:
        """Return the file, the number and the offset of the record at a place."""
        shard, number = self._records.find(self._position(index))
        return RecordLocation(str(shard.location), number, int(shard.index.offsets[number]))

    def _position(self, index: int) -> int:
        if self._selection is None:
            return one_place(index, len(self._records))
        return self._selection.one(one_place(index, len(self._selection)))

    def _at(self, places: Positions) -> Int64Array:
        return self._positions(integer_positions(places, len(self)))

    def _positions(self, places: Int64Array) -> Int64Array:
        return places if self._selection is None else self._selection.at(places)

    # -- in order ------------------------------------------------------------------------------

    def blocks(self) -> Iterator[LocatedBlock]:
        """Yield all records in order, in blocks; damage is raised after the records before it."""
        if self.is_in_file_order and not self._are_few_far_away():
            for part, block in blocks_of(self.parts()):
                yield LocatedBlock(block, part)
            return
        self.check_readable_in_order()
        count = len(self)
        for start in range(0, count, PLACES_AT_ONCE):
            places = np.arange(start, min(start + PLACES_AT_ONCE, count), dtype=np.int64)
            for block, positions in scattered_blocks(self._records, self._positions(places)):
                yield LocatedBlock(block, (self._records, positions))

    def _are_few_far_away(self) -> bool:
        """Whether they are best read together over a network, as for a preview of a selection."""
        return (
            self._selection is not None
            and self._selection.run is None
            and len(self) <= _FEW_PLACES
            and all(
                shard.is_remote and shard.known_compression == "none" for shard in self.all_shards
            )
        )

    def payloads(self) -> Iterator[tuple[Shard, int, memoryview]]:
        """Yield shard, number and payload of all records in order."""
        for located in self.blocks():
            part = located.origin
            if isinstance(part, ShardRange) and part.numbers is None:  # the common case, faster
                shard = part.shard
                for number, payload in enumerate(located.block.payloads(), located.block.position):
                    yield shard, number, payload
            else:
                for row, payload in enumerate(located.block.payloads()):
                    yield *located.find(row), payload

    def located_records(self) -> Iterator[tuple[Shard, int, bytes]]:
        """Yield shard, number and payload of all records in order, as bytes."""
        for shard, number, payload in self.payloads():
            yield shard, number, bytes(payload)

    def parts(self) -> list[ShardRange]:
        """The parts of the shards with selected records, in order.

        The records must be in the order of the files: see `in_file_order`.
        """
        records = self._records
        if self._selection is None:
            return [ShardRange(shard, None, records.opened) for shard in records.shards]
        run = self._selection.run
        if run is not None and run.step < 0:  # of one record at most
            run = range(run[0], run[0] + 1) if run else range(0)
        numbers: Any = self._selection.all() if run is None else run
        if not len(numbers):
            return []
        parts: list[ShardRange] = []
        starts = records.starts
        first = bisect.bisect_right(starts, numbers[0]) - 1
        for number in range(first, bisect.bisect_right(starts, numbers[-1])):
            shard, begin, end = records.shards[number], starts[number], starts[number + 1]
            low, high = bisect.bisect_left(numbers, begin), bisect.bisect_left(numbers, end)
            if low == high:
                continue
            inner: Any = numbers[low:high]
            inner = (
                range(inner.start - begin, inner.stop - begin, inner.step) if run else inner - begin
            )
            is_whole = isinstance(inner, range) and inner == range(end - begin)
            parts.append(ShardRange(shard, None if is_whole else inner, records.opened))
        return parts

    def reading(self, keys: Iterable[str]) -> SelectedRecords:
        """Return records with only these features, of the files that have them, or more."""
        keys = {*keys}
        if not keys or not any(shard.layers for shard in self.all_shards):
            return self
        shards = [shard.reading(keys) for shard in self.all_shards]
        return SelectedRecords(ShardSequence(shards), self._selection)

    def in_file_order(self) -> SelectedRecords:
        if self.is_in_file_order:
            return self
        run = self.selection.run
        in_order = np.sort(self.selection.all()) if run is None else run[::-1]
        return self.select(Selection(in_order))

    def used_shards(self) -> list[Shard]:
        """The shards with selected records; for a shuffled dataset, all that may have some."""
        if self._selection is None:
            return [shard for shard in self.all_shards if shard.record_count]
        spread = self._selection.unordered()
        run = spread.run
        positions = spread.all() if run is None else np.array([*run[:1], *run[-1:]], np.int64)
        numbers = np.unique(self._records.shard_numbers(positions)).tolist()
        if run:
            numbers = range(numbers[0], numbers[-1] + 1)
        return [shard for number in numbers if (shard := self.all_shards[number]).record_count]

    def shard_numbers(self, start: int, stop: int) -> Int64Array:
        """Return the index in `all_shards` of the shards of the records start:stop: int64, (n,)."""
        places = np.arange(start, stop, dtype=np.int64)
        return self._records.shard_numbers(self._positions(places))

    def are_in_split(self, split: str) -> npt.NDArray[np.bool_]:
        """Whether each record is in a shard of this split: bool, (count,)."""
        of_split = np.array([shard.split == split for shard in self.all_shards], np.bool_)
        if not len(of_split):
            return np.empty(0, np.bool_)
        return of_split[self._records.shard_numbers(self.selection.all())]

    def compressed_shard(self) -> Shard | None:
        compressed = (shard for shard in self.used_shards() if shard.compression != "none")
        return next(compressed, None)

    def check_readable_in_order(self) -> None:
        """Raise OptionError if a shard is compressed, and the order is not that of the files."""
        if self.is_in_file_order:
            return
        shard = self.compressed_shard()
        if shard is not None:
            raise OptionError(
                f"{shard.location} is compressed with {shard.compression}, so its records can only "
                "be read in their order",
                option="dataset",
                value=str(shard.location),
                remedy="Select records in ascending order, or write the dataset uncompressed with "
                "`recordsmith reshard`.",
            )


def joined_shards(shards: Sequence[Shard]) -> SelectedRecords:
    return SelectedRecords(ShardSequence(shards))


def records_of_part(part: ShardRange, start: int = 0, stop: int | None = None) -> SelectedRecords:
    records = joined_shards([part.shard])
    if part.numbers is not None:
        records = records.select(Selection(part.numbers))
    return records if (start, stop) == (0, None) else records.cut(slice(start, stop))


def shard_parts(records: SelectedRecords, max_bytes: int) -> Iterator[ShardRange]:
    """Yield the shards of records, and large ones in parts of at most so many bytes, in order."""
    if not records.is_in_file_order:
        raise OptionError(
            "the records are not in the order of their files, so they have no parts",
            option="dataset",
            remedy="Pass the dataset before it was shuffled, and shuffle what is read.",
        )
    for part in records.parts():
        yield from cut_part(part, max_bytes)
