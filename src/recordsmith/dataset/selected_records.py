"""Reading of selected records: many at any place, or all in order.

This is what other packages use to read a dataset; `records_of` returns it for a Dataset.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import AllocateBytes, BytesLike, Int64Array, empty_bytes
from recordsmith.dataset.parts import AnyShard, ShardPart, cut_part
from recordsmith.dataset.selection import (
    ChosenPositions,
    PositionArray,
    PositionRange,
    Positions,
    ShuffledPositions,
    integer_positions,
    one_place,
    position_array,
)
from recordsmith.dataset.shard import Shard
from recordsmith.dataset.shard_sequence import (
    PLACES_AT_ONCE,
    Faults,
    ShardGroup,
    ShardSequence,
    blocks_of,
    gather_payloads,
    payload_sizes,
    scattered_blocks,
)
from recordsmith.errors import DataError, OptionError
from recordsmith.example import BytesArray
from recordsmith.threads import renew_in_children
from recordsmith.wire import RecordBlock

_FEW_PLACES = 1 << 10


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


class SelectedRecords:
    """The selected records of some shards. Thread-safe.

    Which records they are is found out at first use if that takes reading: a slice of records that
    are not counted yet, or those that match a condition.
    """

    def __init__(
        self,
        records: ShardSequence,
        positions: ChosenPositions | Callable[[], ChosenPositions] | None = None,
    ) -> None:
        """`positions`: those in `records` that are selected, or how to find them; None for all."""
        self._records = records
        self.is_everything_known = positions is None
        """Whether these are known to be all records of the shards, in order."""
        self._positions: ChosenPositions | None = None
        self._find_positions: Any = partial(_everything, records)
        if isinstance(positions, ChosenPositions):
            self._positions = positions
        elif positions is not None:
            self._find_positions = positions
        self._watch_forks()

    def _watch_forks(self) -> None:
        self.renew_lock()
        if self._positions is None:
            renew_in_children(self)

    def renew_lock(self) -> None:
        """Replace the lock with a new, unlocked one."""
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the positions, or how to find them."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._watch_forks()

    @property
    def positions(self) -> ChosenPositions:
        """Which records these are."""
        if self._positions is None:
            with self._lock:
                if self._positions is None:
                    self._positions = self._find_positions()
                    self._find_positions = None
        return self._positions

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def known_record_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        if self.is_everything_known:
            return self._records.known_record_count
        return None if self._positions is None else len(self._positions)

    @property
    def is_in_file_order(self) -> bool:
        """Whether the records are in the order of the files."""
        return self.is_everything_known or self.positions.is_ascending

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

    # -- selection -----------------------------------------------------------------------------

    def select(self, positions: ChosenPositions | Callable[[], ChosenPositions]) -> SelectedRecords:
        """Return other records of the same shards; a function finds out at first use which."""
        return SelectedRecords(self._records, positions)

    def _derive(self, choose: Callable[[SelectedRecords], ChosenPositions]) -> SelectedRecords:
        """Choose from these records: now, if their number is known, or else at first use."""
        is_known = self.known_record_count is not None
        return self.select(choose(self) if is_known else partial(choose, self))

    def cut(self, index: slice) -> SelectedRecords:
        """Return the records in a slice."""
        if self.known_record_count is None:
            return self.select(partial(_cut, self, index))
        positions = _cut(self, index)
        return self if positions is self.positions else self.select(positions)

    def pick(self, places: Positions) -> SelectedRecords:
        """Return the records at some places; IndexError or OptionError if they are invalid."""
        array = np.array(position_array(places))  # a copy: the caller may change its array
        return self._derive(partial(_pick, places=array))

    def shuffled(self, seed: int) -> SelectedRecords:
        """Return the records in a random order."""
        return self._derive(partial(_shuffled, seed=seed))

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
        """Read the payloads at many places, as `Dataset.read_records`; `faults` as of `gather`."""
        places: Any = positions
        if not (type(positions) is list and len(positions) == 1 and type(positions[0]) is int):
            places = integer_positions(positions, len(self))
        if len(places) == 1 and faults is None:  # faster than arrays for one record
            payload = np.frombuffer(self.read(int(places[0]))[2], np.uint8)
            buffer = allocate(len(payload))
            buffer[:] = payload
            return BytesArray(buffer, np.array([0, len(payload)]))
        return gather_payloads(self._records, self.positions.at(places), allocate, faults)

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
        positions = self.positions
        return positions.one(one_place(index, len(positions)))

    def _at(self, places: Positions) -> Int64Array:
        return self.positions.at(integer_positions(places, len(self)))

    # -- in order ------------------------------------------------------------------------------

    def blocks(self) -> Iterator[LocatedBlock]:
        """Yield all records in order, in blocks; damage is raised after the records before it."""
        if self.is_in_file_order and not self._are_few_far_away():
            for shard, block in blocks_of(self.parts()):
                yield LocatedBlock(block, shard)
            return
        self.check_readable_in_order()
        count = len(self)
        for start in range(0, count, PLACES_AT_ONCE):
            places = np.arange(start, min(start + PLACES_AT_ONCE, count), dtype=np.int64)
            for block, positions in scattered_blocks(self._records, self.positions.at(places)):
                yield LocatedBlock(block, (self._records, positions))

    def _are_few_far_away(self) -> bool:
        """Whether they are best read together over a network, as for a preview of a selection."""
        return (
            not self.is_everything_known  # whose number may be unknown
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
        records = self._records
        if self.is_everything_known:
            return list(records.shards)  # not counted
        chosen = self.positions
        run = chosen.run
        if run is not None and run.step < 0:  # of one record at most
            run = range(run[0], run[0] + 1) if run else range(0)
        numbers: Any = chosen.all() if run is None else run
        if not len(numbers):
            return []
        parts: list[AnyShard] = []
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
            parts.append(shard if is_whole else ShardPart(shard, inner, records, begin))
        return parts

    def in_file_order(self) -> SelectedRecords:
        """Return the same records, in the order of the files."""
        if self.is_in_file_order:
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
        return [shard for number in numbers if (shard := self.all_shards[number]).record_count]

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

    def compressed_shard(self) -> Shard | None:
        """The first compressed shard with selected records."""
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


def _everything(records: ShardSequence) -> ChosenPositions:
    return PositionRange(range(len(records)), is_everything=True)


def _cut(records: SelectedRecords, index: slice) -> ChosenPositions:
    return records.positions.cut(range(len(records))[index])


def _pick(records: SelectedRecords, places: Positions) -> ChosenPositions:
    return PositionArray(records.positions.at(integer_positions(places, len(records))))


def _shuffled(records: SelectedRecords, seed: int) -> ChosenPositions:
    return ShuffledPositions(records.positions, seed)


def joined_shards(shards: Sequence[Shard]) -> SelectedRecords:
    """Return all records of some shards."""
    return SelectedRecords(ShardSequence(shards))


def records_of_part(part: AnyShard) -> SelectedRecords:
    """Return the records of a shard or of a part of one."""
    if not isinstance(part, ShardPart):
        return joined_shards([part])
    numbers = part.numbers()
    is_run = isinstance(numbers, range)
    positions = PositionRange(numbers) if is_run else PositionArray(numbers)  # type: ignore[arg-type]
    return joined_shards([part.shard]).select(positions)


def shard_parts(records: SelectedRecords, max_bytes: int) -> Iterator[AnyShard]:
    """Yield the shards of records, and large ones in parts of at most so many bytes, in order."""
    if not records.is_in_file_order:
        raise OptionError(
            "the records are not in the order of their files, so they have no parts",
            option="dataset",
            remedy="Pass the dataset before it was shuffled, and shuffle what is read.",
        )
    for part in records.parts():
        yield from cut_part(part, max_bytes)
