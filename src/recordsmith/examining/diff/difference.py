"""What differs between two datasets? Their records by content, whatever their order and shards.

First records are matched that are equal byte for byte, then, among the others, those of equal
content (see `example/canonical.py`), each by a digest of 128 bits. What is left is matched by a
feature that names a record, so that it can be said what changed in it. Each step looks only at what
the one before has left.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset.locate import Paths, locate_whole
from recordsmith.errors import OptionError, names_like
from recordsmith.examining.diff.comparing import (
    DigestStore,
    MakeDigests,
    Reading,
    Side,
    Wanted,
    each,
)
from recordsmith.examining.diff.matching import Digests, as_digests, has_repeats, pairs_of
from recordsmith.examining.diff.partners import Partners
from recordsmith.examining.diff.record_changes import (
    RecordNotes,
    changes_between,
    in_words,
    key_of,
    take_notes,
    value_digest,
)
from recordsmith.examining.diff.report import (
    MAX_COMPARED,
    MAX_LISTED,
    DatasetSummary,
    DiffReport,
    LoneRecord,
    RecordChange,
)
from recordsmith.examining.diff.schema_changes import schema_changes
from recordsmith.example import ColumnDecoder, FeatureSpec, Schema
from recordsmith.example.canonical import canonical
from recordsmith.files import Progress
from recordsmith.wire import RecordBlock
from recordsmith.work import Work, thread_count

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
"""Features that usually name a record, most likely first."""


def diff(
    a: Paths,
    b: Paths,
    *,
    split: str | None = None,
    by: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DiffReport:
    """Compare two datasets by the content of their records, not by their order or their shards.

    Args:
        a, b: a file, folder, glob or a list of these each.
        split: only this one of both.
        by: the feature that names a record, to say what changed in it. None: the first of
            KEY_FEATURES that most records have, each with another value; else changed records
            count as one that only A has and one that only B has.
        threads: how many shards are read at once; None: one for each processor.
        progress: told the bytes read and in all; the latter grows when records must be read again.

    Raises:
        CorruptDataError: a record is damaged, a shard is missing: `verify` lists all that is.
        FileAccessError, OptionError: as in `recordsmith.open`; no record has the feature `by`.
    """
    work = Work(thread_count(threads), progress)
    sides = (Side.of(locate_whole(a, split)), Side.of(locate_whole(b, split)))
    reading = Reading(sides, work)
    partners = Partners(reading)
    partners.match_first(each(lambda payload: blake2b(payload, digest_size=16).digest()))
    if by is not None:
        _check_key(by, sides)
    report = _report(sides)
    report.same_bytes_count = partners.count
    partners.match(each(lambda payload: blake2b(canonical(payload), digest_size=16).digest()))
    report.same_count = partners.count
    report.is_same_order = partners.is_same_order()
    _count_moves(report, partners)
    _compare_rest(report, partners, by)
    return report


def _check_key(by: str, sides: tuple[Side, Side]) -> None:
    for side in sides:
        known = side.schema.sections.get(_key_section(side.schema), {})
        if by not in known and side.record_count and side.schema.is_complete:
            hint = names_like(by, known, "its records have no features")
            raise OptionError(f"no record in {side.shards[0].path} has a feature {by!r}; {hint}")


def _key_section(schema: Schema) -> str:
    """Where the features are that may name a record."""
    return "context" if schema.payload == "SequenceExample" else "features"


def _report(sides: tuple[Side, Side]) -> DiffReport:
    a, b = sides
    both = a.class_names is not None and b.class_names is not None
    return DiffReport(
        _summary(a),
        _summary(b),
        schema=schema_changes(a.schema, b.schema),
        remarks=tuple(
            f"not all features of {name} were compared by name: {side.schema.remark}"
            for name, side in (("A", a), ("B", b))
            if not side.schema.is_complete
        ),
        class_names=(a.class_names, b.class_names),
        class_names_differ=a.class_names != b.class_names
        and (both or (a.has_manifest and b.has_manifest)),
    )


def _summary(side: Side) -> DatasetSummary:
    splits: dict[str, int] = {}
    for shard, count in zip(side.shards, np.diff(side.starts).tolist(), strict=True):
        splits[shard.split] = splits.get(shard.split, 0) + count
    compressions = {shard.compression for shard in side.shards if shard.size_bytes}
    return DatasetSummary(
        side.record_count,
        len(side.shards),
        sum(shard.size_bytes for shard in side.shards),
        "mixed" if len(compressions) > 1 else next(iter(compressions), "none"),
        side.schema.payload,
        splits,
    )


def _count_moves(report: DiffReport, partners: Partners) -> None:
    report.moves = tuple(partners.moves())
    report.splits_are_comparable = bool(report.a.splits.keys() & report.b.splits.keys())


def _compare_rest(report: DiffReport, partners: Partners, by: str | None) -> None:
    """Records without a partner: those that changed, and those that only one dataset has."""
    left = partners.left()
    if not len(left[0]) and not len(left[1]):
        return
    keys = [by] if by is not None else _usual_keys(partners.sides)
    pairs = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(left[0]) and len(left[1]):
        report.by = by or next((key for key in keys if _is_unique(partners, key)), None)
        if report.by is not None:
            pairs, report.shared_key_count = _pairs_by_key(partners, left, report.by)
    report.changed_count = len(pairs[0])
    lone = tuple(
        np.setdiff1d(all_left, paired, assume_unique=True)
        for all_left, paired in zip(left, pairs, strict=True)
    )
    report.only_a_count, report.only_b_count = map(len, lone)
    name = report.by or next(iter(keys), None)  # to know by what is listed
    _tell(report, partners, name, pairs, (lone[0][:MAX_LISTED], lone[1][:MAX_LISTED]))


def _key_digests(key: str) -> MakeDigests:
    def make(payload: memoryview) -> bytes | None:
        value = key_of(payload, key)
        return None if value is None else value_digest(value)

    return each(make)


def _key_digests_of_examples(key: str, kind: Any) -> MakeDigests:
    """Others, where all records are Examples with at most one value: in less time."""

    def make(block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        spec: Any = FeatureSpec(kind, "ragged")
        decoder = ColumnDecoder({key: spec})
        decoder.append(block.buffer, block.starts[rows], block.lengths[rows])
        column: Any = decoder.finish()[key]
        if kind == "int64":
            digests = np.zeros((len(column.values), 2), np.uint64)
            digests[:, 0] = column.values.view(np.uint64)
            digests[:, 0] *= np.uint64(0x9E3779B97F4A7C15)  # odd: another for each, and spread
        else:
            views = column.values.views()
            digests = as_digests(b"".join(blake2b(view, digest_size=16).digest() for view in views))
        return rows[column.lengths > 0], digests

    return make


def _usual_keys(sides: tuple[Side, Side]) -> list[str]:
    """Which of the usual names most records have."""
    return [
        key
        for key in KEY_FEATURES
        if all(_names_most(side.schema, key) for side in sides if side.record_count)
    ]


def _is_unique(partners: Partners, key: str) -> bool:
    """Whether no two records of a dataset have the same; looks at few of them first."""
    make = _key_digests(key)
    if {side.schema.payload for side in partners.sides} == {"Example"}:
        kinds = {side.schema.features[key].kind for side in partners.sides}
        if len(kinds) == 1:
            make = _key_digests_of_examples(key, kinds.pop())
    return not _repeats(partners, make, partners.left()) and not _repeats(partners, make, None)


def _names_most(schema: Schema, key: str) -> bool:
    """Whether at least half of the records have it, each one value."""
    feature = schema.sections.get(_key_section(schema), {}).get(key)
    return (
        feature is not None
        and feature.kind in ("bytes", "int64")
        and feature.min_length == feature.max_length == 1
        and 2 * feature.present >= schema.record_count
    )


def _repeats(partners: Partners, make: MakeDigests, wanted: Wanted | None) -> bool:
    """Whether two records of a dataset have the same key."""
    store = DigestStore()
    part = 0
    while True:
        partners.reading.digests(make, store, wanted)
        for side in (0, 1):
            if has_repeats(store.taken(side, partners.sides[side].starts)[1]):
                return True
        part += 1
        if part >= 1 << store.bits:
            return False
        store = DigestStore(store.bits, part)


def _pairs_by_key(
    partners: Partners, left: Wanted, key: str
) -> tuple[tuple[Int64Array, Int64Array], int]:
    """Positions of records that have the same key, and how many more there would be if no two of a
    dataset had the same.
    """
    make = _key_digests(key)
    found: list[tuple[Int64Array, Int64Array]] = []
    shared = 0
    bits, part = 0, 0
    while part < 1 << bits:
        store = DigestStore(bits, part)
        partners.reading.digests(make, store, left)
        bits, part = store.bits, part + 1
        of_a, digests_a = store.taken(0, partners.sides[0].starts)
        of_b, digests_b = store.taken(1, partners.sides[1].starts)
        places_a, places_b = pairs_of(digests_a, digests_b, only_unique=True)
        found.append((of_a[places_a], of_b[places_b]))
        shared += len(pairs_of(digests_a, digests_b)[0]) - len(places_a)
    a = np.concatenate([pairs[0] for pairs in found])
    b = np.concatenate([pairs[1] for pairs in found])
    order = np.argsort(a)
    return (a[order], b[order]), shared


def _tell(
    report: DiffReport,
    partners: Partners,
    name: str | None,
    pairs: tuple[Int64Array, Int64Array],
    lone: tuple[Int64Array, Int64Array],
) -> None:
    """What changed in the first records, and the first that only one dataset has."""
    compared = (pairs[0][:MAX_COMPARED], pairs[1][:MAX_COMPARED])
    notes: tuple[dict[int, RecordNotes], dict[int, RecordNotes]] = ({}, {})
    keys: tuple[dict[int, str], dict[int, str]] = ({}, {})
    are_lone = (set(lone[0].tolist()), set(lone[1].tolist()))

    def note(side: int, position: int, payload: memoryview) -> None:
        value = None if name is None else key_of(payload, name)
        if value is not None:
            keys[side][position] = in_words(value)
        if position not in are_lone[side]:
            notes[side][position] = take_notes(payload) or {}

    wanted = tuple(
        np.union1d(of_side, alone) for of_side, alone in zip(compared, lone, strict=True)
    )
    partners.reading.payloads((wanted[0], wanted[1]), note)
    counts: Counter[str] = Counter()
    for a, b in zip(compared[0].tolist(), compared[1].tolist(), strict=True):
        changes = changes_between(notes[0][a], notes[1][b])
        counts.update(change.feature for change in changes)
        if len(report.changes) < MAX_LISTED:
            places = partners.sides[0].place(a), partners.sides[1].place(b)
            report.changes.append(RecordChange(keys[0][a], *places, changes))
    report.changed_features = dict(counts.most_common())
    report.compared_count = len(compared[0])
    for side, listed in enumerate((report.only_a, report.only_b)):
        for position in lone[side].tolist():
            place = partners.sides[side].place(position)
            listed.append(LoneRecord(keys[side].get(position), place))
