"""Findings on shards: uneven sizes and empty shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recordsmith.examining.shard_summaries import ShardSummary
from recordsmith.examining.stats.findings.finding import Finding, have, some
from recordsmith.words import count

_UNEVEN = 2
_UNEVEN_BYTES = 1 << 20


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
