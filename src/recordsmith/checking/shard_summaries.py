"""Record and byte counts of a dataset, per shard and in total."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import ShardRange
from recordsmith.support.reports import ReportTable
from recordsmith.support.serialization import to_json
from recordsmith.support.words import size as format_size

PAYLOADS = {  # singular and plural
    "Example": ("Example", "Examples"),
    "SequenceExample": ("SequenceExample", "SequenceExamples"),
    "ELWC": ("ranking list (ELWC)", "ranking lists (ELWC)"),
    "Event": ("TensorBoard event", "TensorBoard events"),
    "mixed": ("record", "records of several kinds"),
    "none": ("record", "records"),
    "other": ("record that is not an Example", "records that are not Examples"),
}
SECTIONS = {  # what a section lists
    "features": "feature",
    "feature_lists": "feature list",
    "context": "feature of the context",
    "examples": "feature of the Examples",
}


_SPLITS_SHOWN = 10


def span(low: int, high: int) -> str:
    """Return a range of whole numbers: "5", or "0 to 12"."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


@dataclass(frozen=True)
class ShardSummary:
    """The counts of one shard."""

    path: str
    split: str
    record_count: int
    size_bytes: int
    compression: str


def output_compression(shards: Iterable[ShardRange | ShardSummary]) -> str:
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
        splits: dict[str, list[ShardSummary]] = {}
        for shard in self.shards:
            splits.setdefault(shard.split, []).append(shard)
        return splits

    def split_totals(self) -> dict[str, dict[str, int]]:
        """Return records, shards and size_bytes of each split."""
        return {
            split: {
                "records": sum(shard.record_count for shard in shards),
                "shards": len(shards),
                "size_bytes": sum(shard.size_bytes for shard in shards),
            }
            for split, shards in self.splits.items()
        }

    def splits_table(self, title: str = "split") -> ReportTable:
        rows = []
        for split, shards in self.splits.items():
            sizes = [shard.size_bytes for shard in shards]
            records = sum(shard.record_count for shard in shards)
            shown = map(format_size, (sum(sizes), min(sizes), max(sizes)))
            rows.append((split, f"{records:,}", f"{len(shards):,}", *shown))
        heads = (title, "records", "shards", "size", "smallest shard", "largest shard")
        return ReportTable("", heads, rows, heads[1:], heads[-2:], terminal_rows=_SPLITS_SHOWN)

    def shards_to_json(self) -> dict[str, Any]:
        return {
            "splits": self.split_totals(),
            "shards": to_json(self.shards),
        }
