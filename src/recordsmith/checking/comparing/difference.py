"""Compares the records of two datasets by content, independent of order and shards.

Matches records in steps: first by bytes, then by content (see `example/canonical.py`), both with
128-bit digests, then by a feature that identifies a record, to report what changed in it. Each step
reads only the records left by the previous one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.comparing.diff_report import (
    MAX_COMPARED,
    MAX_LISTED,
    DatasetSummary,
    DiffReport,
    LoneRecord,
    Move,
    RecordChange,
    SplitLocation,
)
from recordsmith.checking.comparing.features import (
    RecordNotes,
    changes_between,
    describe_value,
    digest_of,
    key_of,
    note_features,
    schema_changes,
    value_digest,
)
from recordsmith.checking.shard_summaries import output_compression
from recordsmith.dataset import (
    Dataset,
    FindingsWriter,
    LocatedBlock,
    Paths,
    ShardRange,
    dataset_of,
    records_of,
)
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.format.example.canonical import canonical
from recordsmith.format.example.spans import payload_views
from recordsmith.format.wire import RecordBlock
from recordsmith.stores import PlaceLike
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError
from recordsmith.support.words import suggest_names
from recordsmith.support.work import Progress, WorkerPool, thread_count

KEY_FEATURES = (
    "image/filename",
    "image/source_id",
    "image/key/sha256",
    "filename",
    "source_id",
    "id",
    "key",
    "uuid",
    "name",
)
"""Features that usually identify a record, most likely first."""

Digests: TypeAlias = npt.NDArray[np.uint64]
"""(count, 2): digests of 128 bits."""

MakeDigest: TypeAlias = Callable[[memoryview], bytes | None]
"""Makes 16 bytes from a payload; None skips the record."""

Positions: TypeAlias = tuple[Int64Array, Int64Array]
"""The positions of some records of both sides, ascending; or of pairs, one of each side."""


def diff(
    a: Paths | Dataset,
    b: Paths | Dataset,
    *,
    split: str | None = None,
    by: str | None = None,
    findings: PlaceLike | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DiffReport:
    """Compare two datasets by the content of their records, independent of order and shards.

    Takes about 100 bytes of memory for each record.

    Args:
        a, b: each a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        by: the feature that identifies records, such as id; None to detect it. It is used to report
            what changed in a record. Detected is the first of `difference.KEY_FEATURES` that most
            records have, with different values in all differing records of each side. Records that
            it does not pair count as records only in A and only in B.
        findings: also write the places of all differing records of `a` to this file, for `without`:
            changed, only-in-a, in-another-split.
        overwrite: replace existing files.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done_bytes, total_bytes)`; the total grows if records must be
            read again.

    Returns:
        A report; `is_equal` is True if both have the same records in the same splits.

    Raises:
        CorruptDataError: a record is damaged or a shard is missing; use `verify` to list all.
        FileAccessError: as in `recordsmith.open`.
        OptionError: as in `recordsmith.open`, or no record has the feature `by`, or the file
            `findings` exists.

    Example:
        report = rs.diff("out", "copy")
        print(report.is_equal, report.changed_count)
    """
    sides = (_Side.of(dataset_of(a, split)), _Side.of(dataset_of(b, split)))
    matching = _Matching(sides, WorkerPool(thread_count(threads), progress))
    origin = sides[0].dataset.view.origin.places
    writer = FindingsWriter.of_dataset(
        findings, "diff", origin, overwrite=overwrite, split=split, by=by
    )
    matching.match_all()
    if by is not None:
        _check_key(by, sides)
    report = _report(sides)
    report.same_bytes_count = matching.count
    matching.match_rest()
    report.same_count = matching.count
    report.is_same_order = matching.is_same_order()
    report.moves = matching.moves()
    pairs, lone = _compare_rest(report, matching, by)
    if writer is not None:
        moved = matching.moved() if report.splits_are_comparable else (lone[:0], lone[:0])
        _write_places(writer, sides, pairs, lone, moved)
    return report


def _write_places(
    writer: FindingsWriter,
    sides: tuple[_Side, _Side],
    pairs: Positions,
    lone: Int64Array,
    moved: Positions,
) -> None:
    """Write the records of A that differ, by kind, in order; pairs have their records of B."""
    for check, (of_a, of_b) in {"changed": pairs, "in-another-split": moved}.items():
        for a, b in zip(of_a.tolist(), of_b.tolist(), strict=True):
            place, other = sides[0].place(a), sides[1].place(b)
            found = f"split {other.split} in B" if check != "changed" else f"differs from {other}"
            writer.add_record(check, "warning", place.path, place.record, found)
    for a in lone.tolist():
        place = sides[0].place(a)
        writer.add_record("only-in-a", "warning", place.path, place.record, "B lacks it")
    writer.save()


@dataclass
class _Side:
    """One of the two datasets; `starts` has the position of the first record of each shard."""

    dataset: Dataset
    shards: Sequence[ShardRange]
    survey: SchemaSurvey = field(default_factory=SchemaSurvey)
    schema: Schema = field(default_factory=lambda: Schema("none", 0))
    starts: Int64Array = field(default_factory=lambda: np.zeros(1, np.int64))

    @classmethod
    def of(cls, dataset: Dataset) -> _Side:
        records = records_of(dataset)
        if not records.is_in_file_order:
            raise OptionError(
                "diff compares datasets in the order of their files",
                option="dataset",
                value=dataset,
                remedy="Pass the dataset unshuffled, with selected positions in ascending order.",
            )
        return cls(dataset, tuple(records.parts()))

    @property
    def record_count(self) -> int:
        return int(self.starts[-1])

    def shards_of(self, positions: Int64Array) -> Int64Array:
        """Return the shard numbers of records: int64, (count,)."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def place(self, position: int) -> SplitLocation:
        number = int(self.shards_of(np.array([position]))[0])
        shard = self.shards[number]
        record = shard.number_of(position - int(self.starts[number]))
        return SplitLocation(str(shard.location), record, shard.split)

    def summary(self) -> DatasetSummary:
        splits: dict[str, int] = {}
        for shard, count in zip(self.shards, np.diff(self.starts).tolist(), strict=True):
            splits[shard.split] = splits.get(shard.split, 0) + count
        return DatasetSummary(
            self.record_count,
            len(self.shards),
            sum(shard.size_bytes for shard in self.shards),
            output_compression(self.shards),
            self.schema.payload,
            splits,
        )

    @property
    def _key_section(self) -> str:
        return "context" if self.schema.payload == "SequenceExample" else "features"

    def key_features(self) -> dict[str, bool]:
        """Return the features that may be a key, and whether most records have one value of it."""
        return {
            key: feature.kind in ("bytes", "int64")
            and feature.min_length == feature.max_length == 1
            and 2 * feature.present >= self.schema.record_count
            for key, feature in self.schema.sections.get(self._key_section, {}).items()
        }


class _Matching:
    """The matching between the records of A and B.

    partners: int64, (records of A,): positions in B, -1 without a match.
    is_taken: bool, (records of B,): whether a record has a match.
    """

    def __init__(self, sides: tuple[_Side, _Side], workers: WorkerPool) -> None:
        self.sides = sides
        self._workers = workers
        self.splits = list(dict.fromkeys(shard.split for side in sides for shard in side.shards))
        self.partners: Int64Array = np.zeros(0, np.int64)
        self.is_taken: npt.NDArray[np.bool_] = np.zeros(0, bool)

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.partners >= 0))

    def rest(self) -> Positions:
        return np.flatnonzero(self.partners < 0), np.flatnonzero(~self.is_taken)

    def splits_of(self, side: int, positions: Int64Array) -> Int64Array:
        """Return the split numbers of records: int64, (count,)."""
        shards = self.sides[side].shards
        of_shard = np.array([self.splits.index(shard.split) for shard in shards], np.int64)
        return of_shard[self.sides[side].shards_of(positions)]

    def match_all(self) -> None:
        """Match all records by their bytes; also survey schemas and record counts."""
        digests: list[list[bytearray]] = [[bytearray() for _ in side.shards] for side in self.sides]

        def read(side: int, number: int, block: RecordBlock, _: Int64Array) -> None:
            survey = self.sides[side].survey
            survey.update(block.buffer, block.starts, block.lengths)
            digests[side][number] += b"".join(map(digest_of, block.payloads()))

        self._read(read, None)
        for side, made in zip(self.sides, digests, strict=True):
            side.starts = np.cumsum([0, *(len(of_shard) // 16 for of_shard in made)])
            side.schema = side.survey.finish()
        self.partners = np.full(self.sides[0].record_count, -1, np.int64)
        self.is_taken = np.zeros(self.sides[1].record_count, bool)
        of_a, of_b = (_as_digests(b"".join(made)) for made in digests)
        self._match(self.rest(), (of_a, of_b))

    def match_rest(self) -> None:
        rest = self.rest()
        if len(rest[0]) and len(rest[1]):
            self._match(*self.digests(rest, lambda payload: digest_of(canonical(payload))))

    def digests(
        self, selected: Positions, make: MakeDigest
    ) -> tuple[Positions, tuple[Digests, Digests]]:
        """Return the positions and digests of the records that `make` does not skip."""
        digests: list[dict[int, bytes]] = [{}, {}]

        def read(side: int, number: int, block: RecordBlock, rows: Int64Array) -> None:
            for position, payload in self._payloads(side, number, block, rows):
                digest = make(payload)
                if digest is not None:
                    digests[side][position] = digest

        self._read(read, selected)
        ordered = [sorted(made.items()) for made in digests]
        a, b = (np.array([position for position, _ in made], np.int64) for made in ordered)
        of_a, of_b = (_as_digests(b"".join(digest for _, digest in made)) for made in ordered)
        return (a, b), (of_a, of_b)

    def note(
        self, selected: Positions, key: str | None, compared: Positions
    ) -> list[dict[int, tuple[str | None, RecordNotes]]]:
        """Return the key of some records as text, by side and position, with their features if they
        are compared.
        """
        notes: list[dict[int, tuple[str | None, RecordNotes]]] = [{}, {}]
        with_features = [set(positions.tolist()) for positions in compared]

        def read(side: int, number: int, block: RecordBlock, rows: Int64Array) -> None:
            for position, payload in self._payloads(side, number, block, rows):
                value = None if key is None else key_of(payload, key)
                features = note_features(payload) if position in with_features[side] else {}
                notes[side][position] = None if value is None else describe_value(value), features

        self._read(read, selected)
        return notes

    def _payloads(
        self, side: int, number: int, block: RecordBlock, rows: Int64Array
    ) -> Iterable[tuple[int, memoryview]]:
        positions = rows + int(self.sides[side].starts[number]) + block.position
        views = payload_views(block.buffer, block.starts[rows], block.lengths[rows])
        return zip(positions.tolist(), views, strict=True)

    def _read(
        self, read: Callable[[int, int, RecordBlock, Int64Array], None], selected: Positions | None
    ) -> None:
        """Call `read` with blocks and their selected rows, in threads; each shard is in one."""
        readings: list[tuple[int, int, Int64Array | None]] = []
        for number, side in enumerate(self.sides):
            for shard in range(len(side.shards)):
                numbers = None
                if selected is not None:
                    first, stop = side.starts[shard : shard + 2].tolist()
                    low, high = np.searchsorted(selected[number], [first, stop])
                    numbers = selected[number][low:high] - first
                if numbers is None or len(numbers):
                    readings.append((number, shard, numbers))
        shards = [self.sides[number].shards[shard] for number, shard, _ in readings]
        self._workers.total += sum(shard.size_bytes for shard in shards)

        def read_shard(reading: tuple[int, int, Int64Array | None]) -> None:
            side, number, numbers = reading
            shard, reported = self.sides[side].shards[number], 0
            stop = None if numbers is None else int(numbers[-1]) + 1
            for block in shard.blocks(0, stop) if shard.size_bytes else ():
                self._workers.check()
                if numbers is None:
                    rows = np.arange(len(block))
                else:
                    ends = block.position, block.position + len(block)
                    first, last = np.searchsorted(numbers, ends)
                    rows = numbers[first:last] - block.position
                with LocatedBlock(block, shard).located():
                    read(side, number, block, rows)
                if shard.compression == "none":
                    end = min(block.offset + len(block.buffer), shard.size_bytes)
                    self._workers.advance(end - reported)
                    reported = end
            self._workers.advance(shard.size_bytes - reported)

        self._workers.each(read_shard, readings)

    def _match(self, positions: Positions, digests: tuple[Digests, Digests]) -> None:
        """Match equal digests, in the same split first, so that copies in several splits are not
        reported as moved.
        """
        (of_a, of_b), (digests_a, digests_b) = positions, digests
        tagged = [made.copy() for made in digests]
        for side in (0, 1):
            numbers = self.splits_of(side, positions[side]).astype(np.uint64)
            tagged[side][:, 1] ^= numbers * np.uint64(0x9E3779B97F4A7C15)
        self._pair(of_a, of_b, pairs_of(*tagged))
        rest_a, rest_b = self.partners[of_a] < 0, ~self.is_taken[of_b]
        pairs = pairs_of(digests_a[rest_a], digests_b[rest_b])
        self._pair(of_a[rest_a], of_b[rest_b], pairs)

    def _pair(self, of_a: Int64Array, of_b: Int64Array, pairs: Positions) -> None:
        self.partners[of_a[pairs[0]]] = of_b[pairs[1]]
        self.is_taken[of_b[pairs[1]]] = True

    def is_same_order(self) -> bool:
        of_a = np.flatnonzero(self.partners >= 0)
        of_b = self.partners[of_a]
        splits = self.splits_of(0, of_a) * len(self.splits) + self.splits_of(1, of_b)
        return not any((np.diff(of_b[splits == pair]) < 0).any() for pair in np.unique(splits))

    def moved(self) -> Positions:
        """Return the matched records in splits of different names."""
        of_a = np.flatnonzero(self.partners >= 0)
        of_b = self.partners[of_a]
        is_moved = self.splits_of(0, of_a) != self.splits_of(1, of_b)
        return of_a[is_moved], of_b[is_moved]

    def moves(self) -> tuple[Move, ...]:
        """Count matched records in splits of different names."""
        of_a = np.flatnonzero(self.partners >= 0)
        splits = self.splits_of(0, of_a), self.splits_of(1, self.partners[of_a])
        counts = Counter(zip(*(numbers.tolist() for numbers in splits), strict=True))
        return tuple(
            Move(self.splits[a], self.splits[b], count)
            for (a, b), count in sorted(counts.items())
            if a != b
        )


def pairs_of(a: Digests, b: Digests, *, only_unique: bool = False) -> Positions:
    """Pair equal digests of two multisets, each used once, the first with the first.

    The digests are sorted together, so that equal ones form a run, those of `a` before those of
    `b`.

    Args:
        a, b: uint64, (count, 2).
        only_unique: skip digests that occur more than once on a side.

    Returns:
        Two int64 arrays of shape (pair_count,): indices into `a` and into `b`.
    """
    both = np.concatenate([a, b])
    order = np.lexsort((both[:, 1], both[:, 0]))  # stable
    in_order = both[order]
    is_first = np.ones(len(order) + 1, bool)
    is_first[1:-1] = (in_order[1:] != in_order[:-1]).any(axis=1)
    edges = np.flatnonzero(is_first) if len(order) else np.zeros(1, np.int64)
    starts, stops = edges[:-1], edges[1:]
    is_a = np.concatenate([[0], np.cumsum(order < len(a))])
    of_a = is_a[stops] - is_a[starts]
    of_b = stops - starts - of_a
    counts = np.minimum(of_a, of_b)
    if only_unique:
        counts[(of_a > 1) | (of_b > 1)] = 0
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first_a = np.repeat(starts, counts) + within
    first_b = first_a + np.repeat(of_a, counts)
    return order[first_a], order[first_b] - len(a)


def _as_digests(data: bytes) -> Digests:
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def _check_key(by: str, sides: tuple[_Side, _Side]) -> None:
    for side in sides:
        known = side.key_features()
        if by not in known and side.record_count and side.schema.is_complete:
            hint = suggest_names(by, known, "its records have no features")
            raise OptionError(
                f"no record in {side.shards[0].location} has the feature {by!r}; {hint}",
                option="by",
                value=by,
            )


def _report(sides: tuple[_Side, _Side]) -> DiffReport:
    a, b = (side.summary() for side in sides)
    names = sides[0].dataset.class_names, sides[1].dataset.class_names
    have_manifests = all(s.entry is not None for side in sides for s in side.dataset.shards)
    return DiffReport(
        a,
        b,
        splits_are_comparable=bool(a.splits.keys() & b.splits.keys()),
        schema=tuple(schema_changes(sides[0].schema, sides[1].schema)),
        uncompared=tuple(
            f"not all features of {name} were compared by name: {side.schema.omission}"
            for name, side in zip("AB", sides, strict=True)
            if not side.schema.is_complete
        ),
        class_names=names,
        class_names_differ=names[0] != names[1] and (None not in names or have_manifests),
    )


def _compare_rest(
    report: DiffReport, matching: _Matching, by: str | None
) -> tuple[Positions, Int64Array]:
    """Compare records without a match: changed records, and records in only one dataset."""
    rest = matching.rest()
    pairs: Positions = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if not len(rest[0]) and not len(rest[1]):
        return pairs, rest[0]
    known = [side.key_features() for side in matching.sides if side.record_count]
    keys = [key for key in KEY_FEATURES if all(features.get(key) for features in known)]
    if len(rest[0]) and len(rest[1]):
        for key in [by] if by is not None else keys:
            positions, digests = matching.digests(rest, partial(_key_digest, key))
            if by is None and any(len(np.unique(made, axis=0)) < len(made) for made in digests):
                continue
            unique = pairs_of(*digests, only_unique=True)
            order = np.argsort(unique[0])
            pairs = positions[0][unique[0][order]], positions[1][unique[1][order]]
            report.by = key
            report.shared_key_count = len(pairs_of(*digests)[0]) - len(order)
            break
    lone = np.setdiff1d(rest[0], pairs[0]), np.setdiff1d(rest[1], pairs[1])
    report.changed_count = len(pairs[0])
    report.left_only_count, report.right_only_count = map(len, lone)
    _list_records(report, matching, report.by or next(iter(keys), None), pairs, lone)
    return pairs, lone[0]


def _key_digest(key: str, payload: memoryview) -> bytes | None:
    value = key_of(payload, key)
    return None if value is None else value_digest(value)


def _list_records(
    report: DiffReport, matching: _Matching, key: str | None, pairs: Positions, lone: Positions
) -> None:
    compared = pairs[0][:MAX_COMPARED], pairs[1][:MAX_COMPARED]
    lone = lone[0][:MAX_LISTED], lone[1][:MAX_LISTED]
    selected = np.union1d(compared[0], lone[0]), np.union1d(compared[1], lone[1])
    notes = matching.note(selected, key, compared)
    counts: Counter[str] = Counter()
    for a, b in zip(compared[0].tolist(), compared[1].tolist(), strict=True):
        changes = changes_between(notes[0][a][1], notes[1][b][1])
        counts.update(change.feature for change in changes)
        if len(report.changes) < MAX_LISTED:
            places = matching.sides[0].place(a), matching.sides[1].place(b)
            report.changes.append(RecordChange(notes[0][a][0], *places, changes))
    report.changed_features = dict(counts.most_common())
    report.compared_count = len(compared[0])
    for side, listed in enumerate((report.left_only, report.right_only)):
        for position in lone[side].tolist():
            place = matching.sides[side].place(position)
            listed.append(LoneRecord(notes[side][position][0], place))
