"""A dataset shard by shard, in numbers: how many records and bytes each has, and all together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.shard import Shard


@dataclass(frozen=True)
class ShardSummary:
    """One shard in numbers."""

    path: str
    split: str
    record_count: int
    size_bytes: int
    compression: str


def compression_of(shards: Iterable[Shard | ShardSummary]) -> str:
    """none, gzip or zlib; "mixed" if shards differ. Those without bytes do not count."""
    found = {shard.compression for shard in shards if shard.size_bytes}
    return "mixed" if len(found) > 1 else next(iter(found), "none")


class OfShards:
    """What is told of a dataset beside its shards follows from them."""

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
        """splits, shards."""
        return {
            "splits": {
                split: {
                    "records": sum(shard.record_count for shard in shards),
                    "shards": len(shards),
                    "size_bytes": sum(shard.size_bytes for shard in shards),
                }
                for split, shards in self.splits.items()
            },
            "shards": [
                {
                    "path": shard.path,
                    "split": shard.split,
                    "records": shard.record_count,
                    "size_bytes": shard.size_bytes,
                    "compression": shard.compression,
                }
                for shard in self.shards
            ],
        }
