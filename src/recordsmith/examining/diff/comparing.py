"""Reads the records of two datasets and computes a digest of each.

Several threads read the shards of both. If there are more digests than fit into memory, the shards
are read several times; each pass keeps the digests with one prefix.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import AnyShard, ClassNames, Dataset, LocatedBlock, records_of
from recordsmith.errors import OptionError
from recordsmith.examining.diff.matching import Digests, as_digests
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.wire import RecordBlock
from recordsmith.work import Work

DIGESTS_AT_ONCE = 1 << 23
"""How many digests are in memory at once: 104 bytes each, including the memory for sorting."""

_MOST_PARTS = 16  # as a power of two: if all records are equal, parts do not get smaller

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


_T = TypeVar("_T")

Wanted: TypeAlias = tuple[Int64Array, Int64Array]
"""The positions of some records of both sides, ascending."""


class SideReader:
    """Reads both sides, shard by shard, in threads; reports progress."""

    def __init__(self, sides: tuple[Side, Side], work: Work) -> None:
        self.sides = sides
        self._work = work

    def first(self, make: MakeDigests, store: DigestStore) -> None:
        """Store the digests of all records; also survey record counts and schemas."""

        def read(side: int, number: int) -> int:
            count = 0
            shard, survey = self.sides[side].shards[number], self.sides[side].survey
            for block in self._blocks(shard, None):
                with LocatedBlock(block, shard).located():
                    survey.update(block.buffer, block.starts, block.lengths)
                    rows, digests = make(block, np.arange(len(block)))
                count += len(block)
                store.add(side, number, rows + block.position, digests)
            return count

        everything = [range(len(side.shards)) for side in self.sides]
        for side, counts in zip(self.sides, self._in_threads(read, everything), strict=True):
            side.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
            side.schema = side.survey.finish()

    def digests(self, make: MakeDigests, store: DigestStore, wanted: Wanted | None) -> None:
        """Store the digests of some records, or of all."""

        def read(side: int, number: int) -> None:
            shard = self.sides[side].shards[number]
            for block, rows in self._chosen(side, number, wanted):
                with LocatedBlock(block, shard).located():
                    kept, digests = make(block, rows)
                store.add(side, number, kept + block.position, digests)

        self._in_threads(read, self._with_any(wanted))

    def parts(
        self, make: MakeDigests, wanted: Wanted | None, *, bits: int = 0, part: int = 0
    ) -> Iterator[DigestStore]:
        """Yield the digests of some records, or of all, in as many passes as needed."""
        while part < 1 << bits:
            store = DigestStore(bits, part)
            self.digests(make, store, wanted)
            yield store
            bits, part = store.bits, part + 1

    def payloads(self, wanted: Wanted, use: Callable[[int, int, memoryview], None]) -> None:
        """Call `use` with side, position and payload of some records."""

        def read(side: int, number: int) -> None:
            first = int(self.sides[side].starts[number])
            for block, rows in self._chosen(side, number, wanted):
                for row, payload in payloads_of(block, rows):
                    use(side, first + block.position + row, payload)

        self._in_threads(read, self._with_any(wanted))

    def _with_any(self, wanted: Wanted | None) -> list[Sequence[int]]:
        """Return the shards that must be read."""
        if wanted is None:
            return [range(len(side.shards)) for side in self.sides]
        return [
            np.unique(side.shards_of(positions)).tolist()
            for side, positions in zip(self.sides, wanted, strict=True)
        ]

    def _chosen(
        self, side: int, number: int, wanted: Wanted | None
    ) -> Iterator[tuple[RecordBlock, Int64Array]]:
        """Yield the blocks of a shard that have wanted rows, with these rows."""
        shard, starts = self.sides[side].shards[number], self.sides[side].starts
        first, stop = int(starts[number]), int(starts[number + 1])
        if wanted is None:
            for block in self._blocks(shard, stop - first):
                yield block, np.arange(len(block))
            return
        low, high = np.searchsorted(wanted[side], [first, stop])
        numbers = wanted[side][low:high] - first
        for block in self._blocks(shard, int(numbers[-1]) + 1):
            begin, end = np.searchsorted(numbers, [block.position, block.position + len(block)])
            if begin < end:
                yield block, numbers[begin:end] - block.position

    def _blocks(self, shard: AnyShard, stop: int | None) -> Iterator[RecordBlock]:
        """Yield the blocks of a shard; report the bytes read."""
        reported = 0
        is_plain = shard.size_bytes > 0 and shard.compression == "none"
        for block in shard.blocks(0, stop) if shard.size_bytes else ():
            self._work.check()
            yield block
            if is_plain:
                end = min(block.offset + len(block.buffer), shard.size_bytes)
                self._work.advance(end - reported)
                reported = end
        self._work.advance(shard.size_bytes - reported)

    def _in_threads(
        self, read: Callable[[int, int], _T], shards: Sequence[Sequence[int]]
    ) -> list[list[_T]]:
        jobs = [(side, number) for side in (0, 1) for number in shards[side]]
        self._work.total += sum(self.sides[side].shards[number].size_bytes for side, number in jobs)
        found = self._work.each(lambda job: read(*job), jobs)
        return [found[: len(shards[0])], found[len(shards[0]) :]]


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
            while self._held > DIGESTS_AT_ONCE and self.part == 0 and self.bits < _MOST_PARTS:
                self.bits += 1
                pieces, self._pieces, self._held = self._pieces, {}, 0
                for place, kept in pieces.items():
                    for piece in kept:
                        self._keep(*place, *piece)

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
        left_out = []
        for place, (_, payload) in enumerate(payloads_of(block, rows)):
            digest = make(payload)
            if digest is None:
                left_out.append(place)
            else:
                made += digest
        return np.delete(rows, left_out) if left_out else rows, as_digests(made)

    return make_all


def payloads_of(block: RecordBlock, rows: Int64Array) -> Iterator[tuple[int, memoryview]]:
    """Yield some rows of a block with their payloads."""
    starts, lengths = block.starts[rows].tolist(), block.lengths[rows].tolist()
    for row, start, length in zip(rows.tolist(), starts, lengths, strict=True):
        yield row, block.buffer[start : start + length]
