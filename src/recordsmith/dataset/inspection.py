"""What is in this dataset? Counts, splits, schema, classes, sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.dataset import Dataset
from recordsmith.dataset.locate import Paths, locate
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.example import Schema
from recordsmith.files import Progress


@dataclass(frozen=True)
class ShardSummary:
    """One shard in numbers."""

    path: str
    split: str
    records: int
    size_bytes: int
    compression: str


@dataclass(frozen=True)
class Inspection:
    """What a dataset consists of.

    compression: none, gzip or zlib; "mixed" if shards differ.
    schema: of all records.
    """

    shards: tuple[ShardSummary, ...]
    compression: str
    schema: Schema
    class_names: tuple[str, ...] | None

    @property
    def records(self) -> int:
        return sum(shard.records for shard in self.shards)

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def splits(self) -> dict[str, tuple[ShardSummary, ...]]:
        """The shards of each split."""
        splits: dict[str, tuple[ShardSummary, ...]] = {}
        for shard in self.shards:
            splits[shard.split] = (*splits.get(shard.split, ()), shard)
        return splits

    def to_json(self) -> dict[str, Any]:
        """records, size_bytes, payload, compression, splits, shards, class_names, features; for
        SequenceExamples context and feature_lists, for ranking lists context and examples.
        """
        schema = self.schema.to_json()
        return {
            "records": self.records,
            "size_bytes": self.size_bytes,
            "payload": schema.pop("payload"),
            "compression": self.compression,
            "splits": {
                name: {
                    "records": sum(shard.records for shard in shards),
                    "shards": len(shards),
                    "size_bytes": sum(shard.size_bytes for shard in shards),
                }
                for name, shards in self.splits.items()
            },
            "shards": [vars(shard) for shard in self.shards],
            "class_names": None if self.class_names is None else list(self.class_names),
            "features": {},
        } | {key: section for key, section in schema.items() if key != "records"}


def inspect(
    paths: Paths, split: str | None = None, *, progress: Progress | None = None
) -> Inspection:
    """Find out what a dataset holds. A packed one is told by its manifest; others are read once.

    Args:
        paths: a file, folder, glob or a list of these.
        split: only this one.
        progress: told the bytes read and in all.

    Raises:
        CorruptDataError: a record is damaged; a shard is missing or is not as its manifest says.
        FileAccessError, OptionError: as in `recordsmith.open`.
    """
    located = locate(paths, split)
    if located.defects:
        raise located.defects[0]
    if located.manifest is not None and split is None:
        schema = located.manifest.schema
    else:
        schema = Dataset(located.shards).survey(progress)
    summaries = []
    for shard in located.shards:
        size = shard.size_bytes
        if size == 0 and len(located.shards) == 1 and located.manifest is None:
            raise CorruptDataError(
                Defect.EMPTY_FILE,
                "the file has 0 bytes, so no records. Its writer may have been stopped before it "
                "wrote anything, or the copy failed.",
                path=shard.path,
            )
        summaries.append(
            ShardSummary(str(shard.path), shard.split, shard.record_count, size, shard.compression)
        )
    compressions = {summary.compression for summary in summaries if summary.size_bytes}
    return Inspection(
        tuple(summaries),
        "mixed" if len(compressions) > 1 else next(iter(compressions), "none"),
        schema,
        located.class_names,
    )
