"""Compares the records of two datasets by content, independent of order and shards.

Matches records in steps: first by bytes, then by content (see `example/canonical.py`), both with
128-bit digests, then by a feature that identifies a record, to report what changed in it, last by
all other features. Each step uses only the records left by the previous one.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from recordsmith.dataset import Dataset, dataset_of
from recordsmith.dataset.locate import Paths
from recordsmith.examining.diff.comparing import (
    Side,
    SideReader,
    Wanted,
    digests_of_bytes,
    digests_of_content,
)
from recordsmith.examining.diff.diff_report import (
    MAX_COMPARED,
    MAX_LISTED,
    DatasetSummary,
    DiffReport,
    LoneRecord,
    RecordChange,
)
from recordsmith.examining.diff.naming import (
    check_key,
    is_unique,
    pairs_by_key,
    pairs_by_rest,
    usual_keys,
)
from recordsmith.examining.diff.partners import Partners
from recordsmith.examining.diff.record_changes import changes_between, schema_changes
from recordsmith.examining.shard_summaries import output_compression
from recordsmith.work import Progress, Work, thread_count


def diff(
    a: Paths | Dataset,
    b: Paths | Dataset,
    *,
    split: str | None = None,
    by: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> DiffReport:
    """Compare two datasets by the content of their records, independent of order and shards.

    Args:
        a, b: each a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        by: the feature that identifies records, such as id; None to detect it. It is used to report
            what changed in a record. Detected is the first of `naming.KEY_FEATURES` that most
            records have with unique values. Records that differ only in it count as changed as
            well; all others that it does not pair, as records only in A and only in B.
        threads: number of threads; None for one per processor.
        progress: called as `progress(done_bytes, total_bytes)`; the total grows if records must be
            read again.

    Returns:
        A report; `is_equal` is True if both have the same records in the same splits.

    Raises:
        CorruptDataError: a record is damaged or a shard is missing; use `verify` to list all.
        FileAccessError: as in `recordsmith.open`.
        OptionError: as in `recordsmith.open`, or no record has the feature `by`.

    Example:
        report = rs.diff("out", "copy")
        print(report.is_equal, report.changed_count)
    """
    work = Work(thread_count(threads), progress)
    sides = (Side.of(dataset_of(a, split)), Side.of(dataset_of(b, split)))
    partners = Partners(SideReader(sides, work))
    partners.match_first(digests_of_bytes)
    if by is not None:
        check_key(by, sides)
    report = _report(sides)
    report.same_bytes_count = partners.count
    partners.match(digests_of_content)
    report.same_count = partners.count
    report.is_same_order = partners.is_same_order()
    _count_moves(report, partners)
    _compare_rest(report, partners, by)
    return report


def _report(sides: tuple[Side, Side]) -> DiffReport:
    a, b = sides
    both = a.class_names is not None and b.class_names is not None
    return DiffReport(
        _summary(a),
        _summary(b),
        schema=schema_changes(a.schema, b.schema),
        uncompared=tuple(
            f"not all features of {name} were compared by name: {side.schema.omission}"
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
    return DatasetSummary(
        side.record_count,
        len(side.shards),
        sum(shard.size_bytes for shard in side.shards),
        output_compression(side.shards),
        side.schema.payload,
        splits,
    )


def _count_moves(report: DiffReport, partners: Partners) -> None:
    report.moves = tuple(partners.moves())
    report.splits_are_comparable = bool(report.a.splits.keys() & report.b.splits.keys())


def _compare_rest(report: DiffReport, partners: Partners, by: str | None) -> None:
    """Compare records without a match: changed records, and records in only one dataset."""
    left = partners.left()
    if not len(left[0]) and not len(left[1]):
        return
    keys = [by] if by is not None else usual_keys(partners.sides)
    pairs: Wanted = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    if len(left[0]) and len(left[1]):
        report.by = by or next(
            (key for key in keys if is_unique(partners.reading, key, left)), None
        )
        if report.by is not None:
            pairs, report.shared_key_count = pairs_by_key(partners.reading, left, report.by)
    lone = _without(left, pairs)
    if report.by is not None and len(lone[0]) and len(lone[1]):
        pairs = _joined(pairs, pairs_by_rest(partners.reading, lone, report.by))
        lone = _without(left, pairs)
    report.changed_count = len(pairs[0])
    report.left_only_count, report.right_only_count = map(len, lone)
    name = report.by or next(iter(keys), None)  # identifies the listed records
    _list_records(report, partners, name, pairs, lone)


def _without(wanted: Wanted, pairs: Wanted) -> Wanted:
    a, b = (
        np.setdiff1d(every, some, assume_unique=True)
        for every, some in zip(wanted, pairs, strict=True)
    )
    return a, b


def _joined(pairs: Wanted, more: Wanted) -> Wanted:
    """Return the pairs of both, in the order of A."""
    a, b = (np.concatenate(both) for both in zip(pairs, more, strict=True))
    order = np.argsort(a)
    return a[order], b[order]


def _list_records(
    report: DiffReport,
    partners: Partners,
    name: str | None,
    pairs: Wanted,
    lone: Wanted,
) -> None:
    """List the first changed records and the first records in only one dataset."""
    compared = (pairs[0][:MAX_COMPARED], pairs[1][:MAX_COMPARED])
    lone = (lone[0][:MAX_LISTED], lone[1][:MAX_LISTED])
    wanted = tuple(
        np.union1d(of_side, alone) for of_side, alone in zip(compared, lone, strict=True)
    )
    changed = (np.sort(compared[0]), np.sort(compared[1]))
    notes = partners.reading.notes((wanted[0], wanted[1]), name, changed)
    counts: Counter[str] = Counter()
    for a, b in zip(compared[0].tolist(), compared[1].tolist(), strict=True):
        changes = changes_between(notes[0][a].features or {}, notes[1][b].features or {})
        counts.update(change.feature for change in changes)
        if len(report.changes) < MAX_LISTED:
            places = partners.sides[0].place(a), partners.sides[1].place(b)
            report.changes.append(RecordChange(notes[0][a].key, *places, changes))
    report.changed_features = dict(counts.most_common())
    report.compared_count = len(compared[0])
    for side, listed in enumerate((report.left_only, report.right_only)):
        for position in lone[side].tolist():
            place = partners.sides[side].place(position)
            listed.append(LoneRecord(notes[side][position].key, place))
