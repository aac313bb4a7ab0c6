"""Passes records to exporters in order, and counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from recordsmith.dataset import Dataset, SelectedRecords
from recordsmith.errors import DataError, OptionError, SourceError, located
from recordsmith.example import Features, Schema, decode_example
from recordsmith.exporting.export_writer import (
    Exporter,
    ExportWriter,
    PayloadExporter,
    TableExporter,
)

Count: TypeAlias = Callable[[str, int, int], None]
"""Called with a split, and the numbers of records that were read and written."""


def begin_export(
    dataset: Dataset,
    exporter: Exporter | PayloadExporter | TableExporter,
    writer: ExportWriter,
    format: str,
) -> None:
    """Prepare an exporter.

    Raises:
        OptionError: the format cannot hold such a dataset.
    """
    if isinstance(exporter, TableExporter):
        _check_columns(dataset.schema, format)
    exporter.begin(dataset, writer)


def export_records(
    records: SelectedRecords,
    exporter: Exporter | PayloadExporter,
    writer: ExportWriter,
    count: Count,
    first: int = 0,
) -> None:
    """Pass records one by one; `first` is the position of the first one in the dataset."""
    if isinstance(exporter, PayloadExporter):
        for shard, _, payload in records.located_records():
            exporter.add(payload, shard.split)
            count(shard.split, 1, 1)
        return
    for position, (split, example) in enumerate(_examples(records), first):
        writer.position = position
        written = 1
        try:
            exporter.add(example, split, position)
        except SourceError as error:
            writer.skip(error)
            written = 0
        count(split, 1, written)


def export_columns(
    records: SelectedRecords,
    exporter: TableExporter,
    split: str,
    count: Count,
    position: Callable[[int, int], int],
) -> None:
    """Pass the records of a split as columns.

    Args:
        position: returns the position in the dataset of a record, whose number among these is the
            sum of both arguments.
    """
    done = 0
    for block in records.blocks():
        block.append_to(exporter.decoder)
        row_count = len(block.block)
        with block.located():
            written = exporter.add(split, row_count, partial(position, done))
        count(split, row_count, written)
        done += row_count


def _check_columns(schema: Schema, format: str) -> None:
    """Raise OptionError if the features have no columns."""
    schema.check_complete("a table has a column for each feature")
    mixed = [
        key
        for section in schema.sections.values()
        for key, feature in section.items()
        if feature.kind == "mixed"
    ]
    if mixed:
        raise OptionError(
            f"{mixed[0]!r} has different kinds in different records, and {format} needs one",
            option="format",
            value=format,
            remedy="Choose another format, or remove the feature with `recordsmith edit --drop`.",
        )


def _examples(records: SelectedRecords) -> Iterator[tuple[str, Features]]:
    for shard, number, payload in records.located_records():
        with located(shard.location):
            try:
                example = decode_example(payload)
            except DataError as error:
                error.record = number
                raise
        yield shard.split, example
