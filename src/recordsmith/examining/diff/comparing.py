"""Reads the records of two datasets and computes a digest of each.

Several threads, or the tasks of an engine, read the shards of both. If there are more digests than
fit into memory, the shards are read several times; each pass keeps the digests with one prefix.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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

if TYPE_CHECKING:
    from recordsmith.examining.diff.diff_task import RunReadings

DIGESTS_AT_ONCE = 1 << 23
"""How many digests are in memory at once: 104 bytes each, including the memory for sorting."""

_MOST_PARTS = 16  # as a power of two: if all records are equal, parts do not get smaller

MakeDigest: TypeAlias = Callable[[memoryview], bytes | None]
"""Makes 16 bytes from a payload; None skips the record."""


@dataclass(frozen=True)
class MakeDigests:
    """Makes the digests of some rows of a block; also returns the rows that were not skipped.

    kind, arguments: how `diff_task` makes the same one in another process.
    """

    kind: str
    arguments: tuple[str, ...]
    make: Callable[[RecordBlock, Int64Array], tuple[Int64Array, Digests]]

    def __call__(self, block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        return self.make(block, rows)


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
        """Return a side with the records of a dataset.

        Raises:
            OptionError: they are not in the order of their files.
        """
        records = records_of(dataset)
        if not records.positions.is_ascending:
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
            begin, end = np.searchsorted(numbers, [block.position, block.position + len(block)])
            if begin < end:
                yield block, numbers[begin:end] - block.position

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

    def digests(
        self, make: MakeDigests, work: Work, survey: SchemaSurvey | None = None
    ) -> Iterator[tuple[int, Int64Array, Digests]]:
        """Yield for each block its number of records, the numbers in the shard and the digests.

        Args:
            survey: surveys all records that are read.
        """
        for block, rows in self.rows(work):
            with LocatedBlock(block, self.shard).located():
                if survey is not None:
                    survey.update(block.buffer, block.starts, block.lengths)
                kept, digests = make(block, rows)
            yield len(block), kept + block.position, digests

    def notes(
        self, name: str | None, changed: Int64Array, work: Work
    ) -> Iterator[tuple[int, RecordNote]]:
        """Yield number and note of each wanted record; arguments as of `note_record`.

        Args:
            changed: the numbers of records whose features are noted.
        """
        wanted = set(changed.tolist())
        for block, rows in self.rows(work):
            for row, payload in payloads_of(block, rows):
                at = block.position + row
                yield at, note_record(payload, name, with_features=at in wanted)


class SideReader:
    """Reads both sides, shard by shard, in threads or on an engine; reports progress."""

    def __init__(
        self, sides: tuple[Side, Side], work: Work, run: RunReadings | None = None
    ) -> None:
        """`run`: runs readings on an engine; None for threads."""
        self.sides = sides
        self._work = work
        self._run = run

    def first(self, make: MakeDigests, store: DigestStore) -> None:
        """Store the digests of all records; also survey record counts and schemas."""
        counts = [np.zeros(len(side.shards), np.int64) for side in self.sides]

        def read(reading: ShardReading) -> None:
            survey = self.sides[reading.side].survey
            for count, numbers, digests in reading.digests(make, self._work, survey):
                counts[reading.side][reading.number] += count
                store.add(reading.side, reading.number, numbers, digests)

        readings = [
            ShardReading(side, number, shard)
            for side in (0, 1)
            for number, shard in enumerate(self.sides[side].shards)
        ]
        schemas = [side.survey.counts() for side in self.sides]
        if self._run is None:
            self._in_threads(read, readings)
            schemas = [side.survey.counts() for side in self.sides]
        else:
            run = self._run.digests(self._begun(readings), make, store, surveys=True)
            for reading, count, schema in run:
                counts[reading.side][reading.number] = count
                if schema is not None:
                    schemas[reading.side].merge(schema)
        for side, counted, found in zip(self.sides, counts, schemas, strict=True):
            side.starts = np.concatenate([[0], np.cumsum(counted, dtype=np.int64)])
            side.schema = found.schema()

    def digests(self, make: MakeDigests, store: DigestStore, wanted: Wanted | None) -> None:
        """Store the digests of some records, or of all."""

        def read(reading: ShardReading) -> None:
            for _, numbers, digests in reading.digests(make, self._work):
                store.add(reading.side, reading.number, numbers, digests)

        if self._run is None:
            self._in_threads(read, self._readings(wanted))
        else:
            for _ in self._run.digests(self._begun(self._readings(wanted)), make, store):
                pass

    def parts(
        self, make: MakeDigests, wanted: Wanted | None, *, bits: int = 0, part: int = 0
    ) -> Iterator[DigestStore]:
        """Yield the digests of some records, or of all, in as many passes as needed."""
        while part < 1 << bits:
            store = DigestStore(bits, part)
            self.digests(make, store, wanted)
            yield store
            bits, part = store.bits, part + 1

    def notes(self, wanted: Wanted, name: str | None, changed: Wanted) -> Notes:
        """Return the notes of some records by side and position.

        Args:
            name: the feature that identifies records.
            changed: the positions of records whose features are noted.
        """
        found: Notes = ({}, {})
        readings = self._readings(wanted)

        def changed_in(reading: ShardReading) -> Int64Array:
            return self._numbers(reading.side, reading.number, changed)

        def first_of(reading: ShardReading) -> int:
            return int(self.sides[reading.side].starts[reading.number])

        def read(reading: ShardReading) -> None:
            for number, note in reading.notes(name, changed_in(reading), self._work):
                found[reading.side][first_of(reading) + number] = note

        if self._run is None:
            self._in_threads(read, readings)
            return found
        for reading, notes in self._run.notes(self._begun(readings), name, changed_in):
            for number, note in notes:
                found[reading.side][first_of(reading) + number] = note
        return found

    def _readings(self, wanted: Wanted | None) -> list[ShardReading]:
        """Return the shards that must be read, and what of them."""
        readings = []
        for number, side in enumerate(self.sides):
            if wanted is None:
                counts = np.diff(side.starts).tolist()
                readings += [
                    ShardReading(number, at, side.shards[at], count)
                    for at, count in enumerate(counts)
                ]
                continue
            for at in np.unique(side.shards_of(wanted[number])).tolist():
                numbers = self._numbers(number, at, wanted)
                stop = int(numbers[-1]) + 1
                readings.append(ShardReading(number, at, side.shards[at], stop, numbers))
        return readings

    def _numbers(self, side: int, number: int, positions: Wanted) -> Int64Array:
        """Return the numbers in a shard of those positions that are in it."""
        first, stop = self.sides[side].starts[number : number + 2].tolist()
        low, high = np.searchsorted(positions[side], [first, stop])
        return positions[side][low:high] - np.int64(first)

    def _begun(self, readings: list[ShardReading]) -> list[ShardReading]:
        """Add readings to the total of the progress."""
        self._work.total += sum(reading.shard.size_bytes for reading in readings)
        return readings

    def _in_threads(
        self, read: Callable[[ShardReading], None], readings: list[ShardReading]
    ) -> None:
        self._work.each(read, self._begun(readings))


class DigestStore:
    """The digests and places of the records of one pass.

    Keeps digests that begin with `part`, of 2 ** `bits` parts. The pass for part 0 divides the
    digests into more parts when there are too many.
    """

    def __init__(self, bits: int = 0, part: int = 0, *, divides: bool = True) -> None:
        """`divides`: whether part 0 divides the digests into more parts."""
        self.bits = bits
        self.part = part
        self._divides = divides
        self._held = 0
        self._pieces: dict[tuple[int, int], list[tuple[Int64Array, Digests]]] = {}
        self._lock = threading.Lock()

    def add(self, side: int, shard: int, numbers: Int64Array, digests: Digests) -> None:
        """Add the digests that belong to this part."""
        with self._lock:
            self._keep(side, shard, numbers, digests)
            while self._divides and self._is_full:
                self.bits += 1
                pieces, self._pieces, self._held = self._pieces, {}, 0
                for place, kept in pieces.items():
                    for piece in kept:
                        self._keep(*place, *piece)

    @property
    def _is_full(self) -> bool:
        return self._held > DIGESTS_AT_ONCE and self.part == 0 and self.bits < _MOST_PARTS

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


def each(kind: str, arguments: tuple[str, ...], make: MakeDigest) -> MakeDigests:
    """Make digests record by record; `kind` and `arguments` as of `MakeDigests`."""

    def make_all(block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        made = bytearray()
        left_out = []
        for place, (_, payload) in enumerate(payloads_of(block, rows)):
            digest = make(payload)
            if digest is None:
                left_out.append(place)
            else:
                made += digest
        return np.delete(rows, left_out) if left_out else rows, as_digests(made)

    return MakeDigests(kind, arguments, make_all)


def digests_of_bytes() -> MakeDigests:
    """Make the digests of whole payloads."""
    return each("bytes", (), digest_of)


def digests_of_content() -> MakeDigests:
    """Make digests that are equal for records with equal features."""
    return each("content", (), lambda payload: digest_of(canonical(payload)))


def payloads_of(block: RecordBlock, rows: Int64Array) -> Iterator[tuple[int, memoryview]]:
    """Yield some rows of a block with their payloads."""
    starts, lengths = block.starts[rows].tolist(), block.lengths[rows].tolist()
    for row, start, length in zip(rows.tolist(), starts, lengths, strict=True):
        yield row, block.buffer[start : start + length]
