"""Inspects a dataset: counts, splits, schema, classes and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import (
    AnyShard,
    ClassNames,
    Dataset,
    LocatedBlock,
    dataset_of,
    records_of,
)
from recordsmith.dataset.locate import Paths
from recordsmith.examining.shard_summaries import ShardSummary, ShardTotals, output_compression
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.serialization import fields_to_json
from recordsmith.summaries import Report
from recordsmith.work import Progress


@dataclass(frozen=True, repr=False)
class Inspection(ShardTotals, Report):
    """A summary of a dataset.

    compression: none, gzip or zlib; "mixed" if shards differ.
    schema: the schema of all records.
    from_manifest: whether the summary comes from a manifest rather than from the records.
    """

    _shown = ("record_count", "size_bytes")

    shards: tuple[ShardSummary, ...]
    compression: str
    schema: Schema
    class_names: ClassNames | None
    from_manifest: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return records, size_bytes, payload, compression, from_manifest, splits, shards,
        class_names and features.

        SequenceExamples add context and feature_lists, ranking lists context and examples.
        """
        schema = self.schema.to_json()
        return {
            **fields_to_json(self, ("record_count", "size_bytes")),
            "payload": schema.pop("payload"),
            **fields_to_json(self, ("compression", "from_manifest")),
            **self.shards_to_json(),
            **fields_to_json(self, ("class_names",)),
            "features": {},
        } | {key: section for key, section in schema.items() if key != "records"}


def inspect(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    progress: Progress | None = None,
) -> Inspection:
    """Summarize a dataset. Uses the manifest if there is one; otherwise reads all records once.

    Args:
        paths_or_dataset: a file, folder, glob, or a list of these; or a Dataset, such as a slice.
        split: only this split, or part of one: train, train[:80%]. None for all.
        progress: called as `progress(done_bytes, total_bytes)`.

    Returns:
        Counts, splits, schema, classes and sizes.

    Raises:
        CorruptDataError: a record is damaged, a shard is missing, or its size differs from the
            manifest. Use `verify` to compare the contents with the manifest.
        FileAccessError, OptionError: as in `recordsmith.open`.

    Example:
        summary = rs.inspect("out")
        print(summary.record_count, list(summary.schema.features))
    """
    dataset = dataset_of(paths_or_dataset, split)
    shards = records_of(dataset).in_file_order().parts()
    known = dataset.view.schema
    if known is None:
        schema, counts = _survey(shards, progress)
    else:
        schema, counts = known, [shard.record_count for shard in shards]
    summaries = tuple(
        ShardSummary(str(shard.location), shard.split, count, shard.size_bytes, shard.compression)
        for shard, count in zip(shards, counts, strict=True)
    )
    return Inspection(
        summaries,
        output_compression(summaries),
        schema,
        dataset.class_names,
        from_manifest=known is not None
        and all(shard.entry is not None for shard in dataset.shards),
    )


def _survey(shards: Sequence[AnyShard], progress: Progress | None) -> tuple[Schema, list[int]]:
    """Read all records once; return their schema and the number of records of each shard."""
    survey = SchemaSurvey()
    counts = []
    total, before = sum(shard.size_bytes for shard in shards), 0
    for shard in shards:
        count = 0
        for block in shard.blocks():
            with LocatedBlock(block, shard).located():
                survey.update(block.buffer, block.starts, block.lengths)
            count += len(block)
            if progress is not None and shard.compression == "none":
                progress(before + block.offset + len(block.buffer), total)
        counts.append(count)
        before += shard.size_bytes
        if progress is not None:
            progress(before, total)
    return survey.finish(), counts
