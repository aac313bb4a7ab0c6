"""Inspects a dataset: counts, splits, schema, classes and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
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
from recordsmith.errors import DataError, OptionError
from recordsmith.examining.shard_summaries import ShardSummary, ShardTotals, output_compression
from recordsmith.example import Schema, SchemaSurvey, classify, decode_fields
from recordsmith.serialization import fields_to_json
from recordsmith.summaries import Report
from recordsmith.work import Progress

MAX_RECORDS = 10_000
"""How many records are searched for ones that are not Examples."""

MAX_SURVEYED = 1000
"""How many of those records are surveyed."""


@dataclass(frozen=True)
class FieldCount:
    """A field of a message.

    number: field number, as in a .proto file.
    wire_types: varint, fixed64, delimited, group or fixed32; several if records differ.
    contents: number, text, message, numbers or bytes, most frequent first; mostly guessed.
    present: number of records that have the field.
    count: number of occurrences in all records.
    """

    number: int
    wire_types: tuple[str, ...]
    contents: tuple[str, ...]
    present: int
    count: int


@dataclass(frozen=True)
class FieldSurvey:
    """The fields of the first records that are not Examples.

    record_count: number of surveyed records.
    message_count: how many of them are well-formed protobuf messages.
    fields: the fields of those messages, by number.
    """

    record_count: int
    message_count: int
    fields: tuple[FieldCount, ...]


def survey_fields(shards: Iterable[AnyShard]) -> FieldSurvey:
    """Count the fields of the first records of unknown message type."""
    record_count = message_count = 0
    present: Counter[int] = Counter()
    wire_types: dict[int, Counter[str]] = {}
    contents: dict[int, Counter[str]] = {}
    for payload in _first_others(shards):
        record_count += 1
        with suppress(DataError, OptionError):  # not a message, or too many fields
            fields = decode_fields(payload, max_depth=1)
            message_count += 1
            present.update({field.number for field in fields})
            for field in fields:
                wire_types.setdefault(field.number, Counter())[field.wire_type] += 1
                contents.setdefault(field.number, Counter())[field.content] += 1
    return FieldSurvey(
        record_count,
        message_count,
        tuple(
            FieldCount(
                number,
                tuple(sorted(wire_types[number])),
                tuple(content for content, _ in contents[number].most_common()),
                present[number],
                wire_types[number].total(),
            )
            for number in sorted(present)
        ),
    )


def _first_others(shards: Iterable[AnyShard]) -> Iterator[memoryview]:
    seen = found = 0
    for shard in shards:
        for block in shard.blocks() if shard.size_bytes else ():
            for payload in block.payloads():
                seen += 1
                if len(payload) and classify(payload) == "other":
                    found += 1
                    yield payload
                if seen >= MAX_RECORDS or found >= MAX_SURVEYED:
                    return


@dataclass(frozen=True, repr=False)
class Inspection(ShardTotals, Report):
    """A summary of a dataset.

    compression: none, gzip or zlib; "mixed" if shards differ.
    schema: the schema of all records.
    from_manifest: whether the summary comes from a manifest rather than from the records.
    other_fields: the fields of records that are not Examples; None if all are Examples.
    """

    _shown = ("record_count", "size_bytes")

    shards: tuple[ShardSummary, ...]
    compression: str
    schema: Schema
    class_names: ClassNames | None
    from_manifest: bool = False
    other_fields: FieldSurvey | None = None

    def to_json(self) -> dict[str, Any]:
        """Return records, size_bytes, payload, compression, from_manifest, splits, shards,
        class_names, other_fields and features.

        SequenceExamples add context and feature_lists, ranking lists context and examples.
        """
        schema = self.schema.to_json()
        return {
            **fields_to_json(self, ("record_count", "size_bytes")),
            "payload": schema.pop("payload"),
            **fields_to_json(self, ("compression", "from_manifest")),
            **self.shards_to_json(),
            **fields_to_json(self, ("class_names", "other_fields")),
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
        other_fields=survey_fields(shards) if schema.payload in ("other", "mixed") else None,
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
