"""What is in this dataset? Counts, splits, schema, classes, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.dataset.locate import Paths, locate_whole
from recordsmith.dataset.shard import Shard
from recordsmith.errors import located
from recordsmith.examining.field_survey import FieldSurvey, survey_fields
from recordsmith.examining.shard_summaries import OfShards, ShardSummary, compression_of
from recordsmith.example import Schema, SchemaSurvey
from recordsmith.files import Progress


@dataclass(frozen=True)
class Inspection(OfShards):
    """What a dataset consists of.

    compression: none, gzip or zlib; "mixed" if shards differ.
    schema: of all records.
    from_manifest: whether a manifest tells all this, rather than the records themselves.
    other_fields: of records that are no Examples; None if there are none.
    """

    shards: tuple[ShardSummary, ...]
    compression: str
    schema: Schema
    class_names: ClassNames | None
    from_manifest: bool = False
    other_fields: FieldSurvey | None = None

    def to_json(self) -> dict[str, Any]:
        """records, size_bytes, payload, compression, splits, shards, class_names, features; for
        SequenceExamples context and feature_lists, for ranking lists context and examples.
        """
        schema = self.schema.to_json()
        return {
            "records": self.record_count,
            "size_bytes": self.size_bytes,
            "payload": schema.pop("payload"),
            "compression": self.compression,
            "from_manifest": self.from_manifest,
            **self.shards_to_json(),
            "class_names": None if self.class_names is None else list(self.class_names),
            "other_fields": None if self.other_fields is None else self.other_fields.to_json(),
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
        CorruptDataError: a record is damaged; a shard is missing, or not as long as its manifest
            says. That a manifest tells the truth of what is inside is for `verify` to say.
        FileAccessError, OptionError: as in `recordsmith.open`.
    """
    found = locate_whole(paths, split)
    schema = None if found.manifest is None else found.manifest.schema_of(split)
    if schema is None:
        schema, counts = _survey(found.shards, progress)
    else:
        counts = [shard.record_count for shard in found.shards]
    summaries = tuple(
        ShardSummary(str(shard.path), shard.split, count, shard.size_bytes, shard.compression)
        for shard, count in zip(found.shards, counts, strict=True)
    )
    return Inspection(
        summaries,
        compression_of(summaries),
        schema,
        found.class_names,
        from_manifest=found.manifest is not None,
        other_fields=survey_fields(found.shards) if schema.payload in ("other", "mixed") else None,
    )


def _survey(shards: Sequence[Shard], progress: Progress | None) -> tuple[Schema, list[int]]:
    """The schema of all records, and how many each shard has, by reading them once."""
    survey = SchemaSurvey()
    counts = []
    total, before = sum(shard.size_bytes for shard in shards), 0
    for shard in shards:
        count = 0
        for block in shard.blocks():
            with located(shard.path, block.position):
                survey.update(block.buffer, block.starts, block.lengths)
            count += len(block)
            if progress is not None and shard.compression == "none":
                progress(before + block.offset + len(block.buffer), total)
        counts.append(count)
        before += shard.size_bytes
        if progress is not None:
            progress(before, total)
    return survey.finish(), counts
