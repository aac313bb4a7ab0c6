"""Findings on whole datasets: duplicates within and across splits, and uneven or empty shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordsmith.examining.shard_summaries import ShardSummary
from recordsmith.examining.stats.duplicates import DuplicateStats
from recordsmith.examining.stats.findings.finding import Finding, are, have, some
from recordsmith.words import count

_UNEVEN = 2
_UNEVEN_BYTES = 1 << 20


def leakage(found: DuplicateStats) -> Iterator[Finding]:
    """Yield duplicates shared by two splits."""
    for shared in found.shared:
        one, other = shared.splits
        text = (
            f"{_how_many(found, shared.contents)} of split {one!r} {are(shared.contents)} also in "
            f"{other!r}, byte for byte: evaluation on these is optimistic (leakage). Drop them "
            "from one of the splits, or split again."
        )
        if shared.places:
            text += f" First duplicate: {shared.places[0][0]} and {shared.places[0][1]}."
        yield Finding("leakage", found.feature, text, shared.places[0] if shared.places else ())


def repeated(found: DuplicateStats) -> Iterator[Finding]:
    """Yield duplicates within a split."""
    again = sum(found.within.values())
    if again:
        text = (
            f"{_how_many(found, again)} of {found.count:,} {are(again)} exact duplicates in the "
            "same split: duplicates are weighted twice in training."
        )
        if found.places:
            text += f" First duplicate: {found.places[0][0]} and {found.places[0][1]}."
        yield Finding("duplicates", found.feature, text, found.places[0] if found.places else ())


def _how_many(found: DuplicateStats, number: int) -> str:
    about = "about " if found.sampled > 1 else ""
    return about + count(number, "record" if found.feature is None else "image")


def odd_shards(shards: Sequence[ShardSummary]) -> Iterator[Finding]:
    """Yield uneven and empty shards of each split."""
    splits: dict[str, list[ShardSummary]] = {}
    for shard in shards:
        splits.setdefault(shard.split, []).append(shard)
    for split, members in splits.items():
        sizes = [shard.size_bytes for shard in members]
        mean = sum(sizes) / len(sizes)
        largest = max(members, key=lambda shard: shard.size_bytes)
        if len(sizes) > 1 and largest.size_bytes > max(_UNEVEN * mean, _UNEVEN_BYTES):
            times = largest.size_bytes / mean
            yield Finding(
                "uneven-shards",
                None,
                f"shards of split {split!r} differ in size: {largest.path} is {times:.1f} times as "
                "large as the mean, so parallel readers wait for it. Run `recordsmith reshard` to "
                "balance them.",
            )
        empty = [shard.path for shard in members if not shard.record_count]
        if empty:
            yield Finding(
                "empty-shards",
                None,
                f"{count(len(empty), 'shard')} of split {split!r} {have(len(empty))} no records: "
                f"{some(empty)}.",
            )
