"""Inspects a dataset: counts, splits, schema, classes and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from recordsmith.checking.shard_summaries import (
    PAYLOADS,
    SECTIONS,
    ShardSummary,
    ShardTotals,
    output_compression,
    span,
)
from recordsmith.dataset import (
    ClassNames,
    Dataset,
    KeypointClasses,
    LocatedBlock,
    Paths,
    ShardRange,
    dataset_of,
    keypoint_classes_to_json,
    records_of,
    tells_split,
)
from recordsmith.format.example import Schema, SchemaSurvey
from recordsmith.support.reports import ReportContent, ReportTable
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import first_of
from recordsmith.support.words import size as format_size
from recordsmith.support.work import Progress

_NAMES_SHOWN = 20


@dataclass(frozen=True, repr=False)
class Inspection(ShardTotals, Report):
    """A summary of a dataset.

    compression: none, gzip or zlib; "mixed" if shards differ.
    schema: the schema of all records.
    from_manifest: whether the summary comes from a manifest rather than from the records.
    keypoint_classes: what the keypoints of objects are, by the label of their class.
    layers: the features of each layer, by its name.
    """

    _shown = ("record_count", "size_bytes")

    shards: tuple[ShardSummary, ...]
    compression: str
    schema: Schema
    class_names: ClassNames | None
    from_manifest: bool = False
    keypoint_classes: KeypointClasses = field(default_factory=dict)
    layers: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return records, size_bytes, payload, compression, from_manifest, splits, shards,
        class_names, keypoint_classes and layers if there are any, and features.

        SequenceExamples add context and feature_lists, ranking lists context and examples.
        """
        schema = self.schema.to_json()
        points = keypoint_classes_to_json(self.keypoint_classes)
        return {
            **fields_to_json(self, ("record_count", "size_bytes")),
            "payload": schema.pop("payload"),
            **fields_to_json(self, ("compression", "from_manifest")),
            **self.shards_to_json(),
            **fields_to_json(self, ("class_names",)),
            **({"keypoint_classes": points} if points else {}),
            **({"layers": dict(self.layers)} if self.layers else {}),
            "features": {},
        } | {key: section for key, section in schema.items() if key != "records"}

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        number = format_count(self.record_count, *PAYLOADS[self.schema.payload])
        shards = format_count(len(self.shards), "shard")
        size, is_plain = format_size(self.size_bytes), self.compression == "none"
        how = "not compressed" if is_plain else f"compressed with {self.compression}"
        return ReportContent(
            summary=f"{number} in {shards}, {size}, {how}",
            verdict=number,
            level="good",
            figures=((number, "in it"), (f"{len(self.shards):,}", "shards"), (size, "of shards")),
            tables=[table for table in self._tables() if table.rows],
            findings=(),
            notes=[*self._notes()],
        )

    def _tables(self) -> Iterator[ReportTable]:
        are_files = not self.from_manifest and not any(  # no file name contains a split
            tells_split(PurePath(shard.path).name, shard.split) for shard in self.shards
        )
        yield self.splits_table("file" if are_files else "split")
        for section, features in self.schema.sections.items():
            rows = []
            for key, known in features.items():
                values = span(known.min_length, known.max_length)
                if known.min_steps is not None:
                    values = f"{span(known.min_steps, known.max_steps or 0)} steps of {values}"
                kind = known.kind + (f" ({known.content_text})" if known.content else "")
                present = "all" if known.present == self.record_count else f"{known.present:,}"
                size = f"{known.value_bytes / max(1, known.present):,.0f}"
                rows.append((key, kind, values, present, size))
            heads = (SECTIONS[section], "kind", "values per record", "records", "stored bytes")
            yield ReportTable("", heads, rows, heads[3:], heads[4:])

    def _notes(self) -> Iterator[str]:
        if self.schema.omission is not None:
            yield f"{self.schema.omission}."
        if self.class_names is not None:
            names = [f"{n} {name}" for n, name in enumerate(self.class_names) if name is not None]
            number = format_count(len(names), "class", "classes")
            yield f"{number}: {first_of(names, _NAMES_SHOWN)}"
        for label, known in self.keypoint_classes.items():
            number = format_count(len(known.names), "keypoint")
            yield f"{number} of class {label}: {first_of(known.names, _NAMES_SHOWN)}"
        if self.layers:
            named = [f"{name} ({first_of(keys, 3)})" for name, keys in self.layers.items()]
            yield f"{format_count(len(named), 'layer')}: {first_of(named, _NAMES_SHOWN)}"
        if self.from_manifest:
            yield "Read from dataset.json; run `recordsmith verify` to check the files."


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
        keypoint_classes=dataset.keypoint_classes,
        layers={
            layer.location.parent.name: sorted(layer.features)
            for shard in dataset.shards
            for layer in shard.layers
        },
    )


def _survey(shards: Sequence[ShardRange], progress: Progress | None) -> tuple[Schema, list[int]]:
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
