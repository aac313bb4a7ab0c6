"""Record and byte counts of a dataset, per shard and in total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import AnyShard
from recordsmith.serialization import to_json


@dataclass(frozen=True)
class ShardSummary:
    """The counts of one shard."""

    path: str
    split: str
    record_count: int
    size_bytes: int
    compression: str


def output_compression(shards: Iterable[AnyShard | ShardSummary]) -> str:
    """Return none, gzip or zlib; "mixed" if shards differ. Empty shards are ignored."""
    found = {shard.compression for shard in shards if shard.size_bytes}
    return "mixed" if len(found) > 1 else next(iter(found), "none")


class ShardTotals:
    """Totals of a dataset, computed from its shards."""

    shards: tuple[ShardSummary, ...]

    @property
    def record_count(self) -> int:
        return sum(shard.record_count for shard in self.shards)

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def splits(self) -> dict[str, list[ShardSummary]]:
        """The shards of each split."""
        splits: dict[str, list[ShardSummary]] = {}
        for shard in self.shards:
            splits.setdefault(shard.split, []).append(shard)
        return splits

    def shards_to_json(self) -> dict[str, Any]:
        """Return splits and shards."""
        return {
            "splits": {
                split: {
                    "records": sum(shard.record_count for shard in shards),
                    "shards": len(shards),
                    "size_bytes": sum(shard.size_bytes for shard in shards),
                }
                for split, shards in self.splits.items()
            },
            "shards": to_json(self.shards),
        }
