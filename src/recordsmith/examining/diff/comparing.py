"""Reads the records of two datasets and computes a digest of each.

Several threads read the shards of both. If there are more digests than fit into memory, the shards
are read several times; each pass keeps the digests with one prefix.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import AnyShard, ClassNames, Dataset, LocatedBlock, records_of
from recordsmith.errors import OptionError
from recordsmith.examining.diff.matching import Digests, as_digests, digest_of
from recordsmith.examining.diff.record_changes import RecordNote, note_record
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.example.canonical import canonical
from recordsmith.wire import RecordBlock
from recordsmith.work import Work

DIGESTS_AT_ONCE = 1 << 23
"""How many digests are in memory at once: 104 bytes each, including the memory for sorting."""

_MAX_PARTS = 16  # as a power of two: if all records are equal, parts do not get smaller

MakeDigest: TypeAlias = Callable[[memoryview], bytes | None]
"""Makes 16 bytes from a payload; None skips the record."""


MakeDigests: TypeAlias = Callable[[RecordBlock, Int64Array], tuple[Int64Array, Digests]]
"""Makes the digests of some rows of a block; also returns the rows that were not skipped."""


class RecordPlace(NamedTuple):
    """The place of a record: its file, its position in that file, its split."""

    path: str
    record: int
    split: str


@dataclass
class Side:
    """One of the two datasets.

    starts: int64, (shard_count + 1,): position of the first record of each shard; known after the
        first pass.
    """

    shards: Sequence[AnyShard]
    class_names: ClassNames | None = None
    has_manifest: bool = False
    survey: SchemaSurvey = field(default_factory=SchemaSurvey)
    schema: Schema = field(default_factory=lambda: Schema("none", 0))
    starts: Int64Array = field(default_factory=lambda: np.zeros(1, np.int64))

    @classmethod
    def of(cls, dataset: Dataset) -> Side:
        """Return a side with the records of a dataset."""
        records = records_of(dataset)
        if not records.is_in_file_order:
            raise OptionError(
                "diff compares datasets in the order of their files",
                option="dataset",
                value=dataset,
                remedy="Pass the dataset unshuffled, with selected positions in ascending order.",
            )
        has_manifest = all(shard.entry is not None for shard in dataset.shards)
        return cls(tuple(records.parts()), dataset.class_names, has_manifest)

    @property
    def record_count(self) -> int:
        return int(self.starts[-1])

    def shards_of(self, positions: Int64Array) -> Int64Array:
        """Return the shard numbers of records: int64, (count,)."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def splits_of(self, positions: Int64Array, numbers: dict[str, int]) -> Int64Array:
        """Return the split numbers of records: int64, (count,)."""
        of_shard = np.array([numbers[shard.split] for shard in self.shards], np.int64)
        return of_shard[self.shards_of(positions)]

    def place(self, position: int) -> RecordPlace:
        number = int(self.shards_of(np.array([position]))[0])
        shard = self.shards[number]
        place = shard.number_of(position - int(self.starts[number]))
        return RecordPlace(str(shard.location), place, shard.split)


Wanted: TypeAlias = tuple[Int64Array, Int64Array]
"""The positions of some records of both sides, ascending."""

Notes: TypeAlias = tuple[dict[int, RecordNote], dict[int, RecordNote]]
"""The notes of some records of both sides, by position."""


@dataclass(frozen=True)
class ShardReading:
    """What one pass reads of a shard.

    side, number: which shard.
    stop: how many of its records to read; None for all, and then their number is checked.
    numbers: int64, the wanted records, ascending; None for all.
    """

    side: int
    number: int
    shard: AnyShard
    stop: int | None = None
    numbers: Int64Array | None = None

    def rows(self, work: Work) -> Iterator[tuple[RecordBlock, Int64Array]]:
        """Yield the blocks that have wanted rows, with these rows; report the bytes read."""
        numbers = self.numbers
        for block in self._blocks(work):
            if numbers is None:
                yield block, np.arange(len(block))
                continue
            first, stop = np.searchsorted(numbers, [block.position, block.position + len(block)])
            if first < stop:
                yield block, numbers[first:stop] - block.position

    def _blocks(self, work: Work) -> Iterator[RecordBlock]:
        shard, reported = self.shard, 0
        is_plain = shard.size_bytes > 0 and shard.compression == "none"
        for block in shard.blocks(0, self.stop) if shard.size_bytes else ():
            work.check()
            yield block
            if is_plain:
                end = min(block.offset + len(block.buffer), shard.size_bytes)
                work.advance(end - reported)
                reported = end
        work.advance(shard.size_bytes - reported)


class SideReader:
    """Reads both sides, shard by shard, in threads; reports progress."""

    def __init__(self, sides: tuple[Side, Side], work: Work) -> None:
        self.sides = sides
        self._work = work

    def first(self, make: MakeDigests, store: DigestStore) -> None:
        """Store the digests of all records; also survey record counts and schemas."""
        counts = [np.zeros(len(side.shards), np.int64) for side in self.sides]

        def read(reading: ShardReading) -> None:
            for block, rows in reading.rows(self._work):
                with LocatedBlock(block, reading.shard).located():
                    survey = self.sides[reading.side].survey
                    survey.update(block.buffer, block.starts, block.lengths)
                    _store_digests(store, reading, block, make(block, rows))
                counts[reading.side][reading.number] += len(block)

        self._each(
            read,
            [
                ShardReading(side, number, shard)
                for side in (0, 1)
                for number, shard in enumerate(self.sides[side].shards)
            ],
        )
        for side, counted in zip(self.sides, counts, strict=True):
            side.starts = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])
            side.schema = side.survey.finish()

    def parts(
        self, make: MakeDigests, wanted: Wanted | None, *, bits: int = 0, part: int = 0
    ) -> Iterator[DigestStore]:
        """Yield the digests of some records, or of all, in as many passes as needed."""
        while part < 1 << bits:
            store = DigestStore(bits, part)

            def read(reading: ShardReading, store: DigestStore = store) -> None:
                for block, rows in reading.rows(self._work):
                    with LocatedBlock(block, reading.shard).located():
                        _store_digests(store, reading, block, make(block, rows))

            self._each(read, self._readings(wanted))
            yield store
            bits, part = store.bits, part + 1

    def notes(self, wanted: Wanted, name: str | None, changed: Wanted) -> Notes:
        """Return the notes of some records by side and position."""
        notes: Notes = ({}, {})
        noted = [set(positions.tolist()) for positions in changed]

        def read(reading: ShardReading) -> None:
            first = int(self.sides[reading.side].starts[reading.number])
            for block, rows in reading.rows(self._work):
                for row, payload in payloads_of(block, rows):
                    position = first + block.position + row
                    with_features = position in noted[reading.side]
                    note = note_record(payload, name, with_features=with_features)
                    notes[reading.side][position] = note

        self._each(read, self._readings(wanted))
        return notes

    def _readings(self, wanted: Wanted | None) -> list[ShardReading]:
        """Return the shards that must be read, and what of them."""
        readings = []
        for number, side in enumerate(self.sides):
            for shard in range(len(side.shards)):
                first, stop = side.starts[shard : shard + 2].tolist()
                if wanted is None:
                    readings.append(ShardReading(number, shard, side.shards[shard], stop - first))
                    continue
                low, high = np.searchsorted(wanted[number], [first, stop])
                if low < high:
                    numbers = wanted[number][low:high] - first
                    last = int(numbers[-1]) + 1
                    readings.append(ShardReading(number, shard, side.shards[shard], last, numbers))
        return readings

    def _each(self, read: Callable[[ShardReading], None], readings: list[ShardReading]) -> None:
        self._work.total += sum(reading.shard.size_bytes for reading in readings)
        self._work.each(read, readings)


def _store_digests(
    store: DigestStore, reading: ShardReading, block: RecordBlock, made: tuple[Int64Array, Digests]
) -> None:
    rows, digests = made
    store.add(reading.side, reading.number, rows + block.position, digests)


class DigestStore:
    """The digests and places of the records of one pass.

    Keeps digests that begin with `part`, of 2 ** `bits` parts. The pass for part 0 divides the
    digests into more parts when there are too many.
    """

    def __init__(self, bits: int = 0, part: int = 0) -> None:
        self.bits = bits
        self.part = part
        self._held = 0
        self._pieces: dict[tuple[int, int], list[tuple[Int64Array, Digests]]] = {}
        self._lock = threading.Lock()

    def add(self, side: int, shard: int, numbers: Int64Array, digests: Digests) -> None:
        """Add the digests that belong to this part."""
        with self._lock:
            self._keep(side, shard, numbers, digests)
            while self._is_full:
                self.bits += 1
                pieces, self._pieces, self._held = self._pieces, {}, 0
                for place, kept in pieces.items():
                    for piece in kept:
                        self._keep(*place, *piece)

    @property
    def _is_full(self) -> bool:
        return self._held > DIGESTS_AT_ONCE and self.part == 0 and self.bits < _MAX_PARTS

    def _keep(self, side: int, shard: int, numbers: Int64Array, digests: Digests) -> None:
        if self.bits:
            mine = digests[:, 0] >> np.uint64(64 - self.bits) == self.part
            numbers, digests = numbers[mine], digests[mine]
        self._held += len(numbers)
        self._pieces.setdefault((side, shard), []).append((numbers, digests))

    def pop(self, side: int, starts: Int64Array) -> tuple[Int64Array, Digests]:
        """Remove and return the positions, ascending, and digests of a side."""
        positions, digests = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.uint64)]
        for place in sorted(place for place in self._pieces if place[0] == side):
            for numbers, made in self._pieces.pop(place):
                positions.append(numbers + starts[place[1]])
                digests.append(made)
        return np.concatenate(positions), np.concatenate(digests)


def each(make: MakeDigest) -> MakeDigests:
    """Make digests record by record."""

    def make_all(block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        made = bytearray()
        skipped = []
        for place, (_, payload) in enumerate(payloads_of(block, rows)):
            digest = make(payload)
            if digest is None:
                skipped.append(place)
            else:
                made += digest
        return np.delete(rows, skipped) if skipped else rows, as_digests(made)

    return make_all


digests_of_bytes = each(digest_of)
"""Makes the digests of whole payloads."""

digests_of_content = each(lambda payload: digest_of(canonical(payload)))
"""Makes digests that are equal for records with equal features."""


def payloads_of(block: RecordBlock, rows: Int64Array) -> Iterator[tuple[int, memoryview]]:
    """Yield some rows of a block with their payloads."""
    starts, lengths = block.starts[rows].tolist(), block.lengths[rows].tolist()
    for row, start, length in zip(rows.tolist(), starts, lengths, strict=True):
        yield row, block.buffer[start : start + length]
