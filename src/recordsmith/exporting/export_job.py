"""Passes records to exporters: in this process, or in tasks that write a file each.

The names of all files are known before: of each split here, of each shard or part of a large one on
an engine. What describes all files is written at the end, from the results of their writers.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache, partial
from itertools import islice, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    DEFAULT_TEMPLATE,
    Dataset,
    SelectedRecords,
    View,
    check_shard_options,
    joined_shards,
    part_for_task,
    part_from_task,
    records_of,
    records_of_part,
    shard_bounds,
    shard_counts,
    shard_parts,
)
from recordsmith.exporting.export_writer import ExportTally, ExportWriter
from recordsmith.exporting.exporter import (
    Exporter,
    FileExporter,
    FolderExporter,
    RecordFiles,
    TableFiles,
    WrittenFile,
)
from recordsmith.format.example import Features, Schema, decode_example, merged
from recordsmith.stores import FolderWriter, shared_folder
from recordsmith.support.errors import DataError, OptionError, SourceError, located
from recordsmith.support.tasks import Engine, Task, run_on

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of records that were read since the last call."""

_PART_BYTES = 512_000_000
"""The largest part by default: shards have about half of it, unless the user said otherwise."""


def export_locally(
    dataset: Dataset,
    exporter: Exporter,
    writer: ExportWriter,
    size_bytes: int | None,
    advance: Advance,
) -> Callable[[], None]:
    """Pass all records to an exporter; return what writes the files that describe them."""
    if isinstance(exporter, FileExporter):
        exporter.inspect(dataset)
    _begin(dataset, exporter, writer)
    if isinstance(exporter, FolderExporter):
        for number, (split, example) in enumerate(_examples(records_of(dataset), writer)):
            _add(partial(exporter.add, example, split, number), writer, split, number)
            advance(1)
        return exporter.finish
    assert isinstance(exporter, FileExporter)
    files: list[WrittenFile] = []
    for split, names in _file_names(dataset, exporter, writer, size_bytes).items():
        records = records_of(dataset.splits[split])
        position = _position_finder(dataset, split)
        files += _write_files(exporter, writer, split, names, records, position, advance)
    return lambda: exporter.describe(files, [exporter.result()])


def export_on_engine(
    engine: Engine,
    dataset: Dataset,
    exporter: FileExporter,
    writer: ExportWriter,
    files: FolderWriter,
    part_bytes: int | None,
    advance: Advance,
) -> Callable[[], None]:
    """As `export_locally`, in tasks whose input has at most `part_bytes`; None: 512 MB."""
    exporter.inspect(dataset)
    description, for_tasks = _described(dataset, exporter), copy(exporter)
    _begin(description, exporter, writer)
    records = records_of(dataset)
    len(records)  # counts the shards in parallel
    try:
        parts = [*shard_parts(records, part_bytes or _PART_BYTES)]
    except OptionError as error:
        error.advise("Or export it without an engine.")
        raise
    parts = [part for part in parts if part.record_count]
    of_split = {
        split: iter(exporter.file_names(writer.split_name(split), count))
        for split, count in Counter(part.split for part in parts).items()
    }
    names = [next(of_split[part.split]) for part in parts]
    folder = files.share(names)
    common = {
        "exporter": for_tasks,
        "dataset": description,
        "folder": folder,
        "names": writer.names,
    }

    def tasks() -> Iterator[Task]:
        first = 0
        for number, (part, name) in enumerate(zip(parts, names, strict=True)):
            content = {**common, "file": name, "part": part_for_task(part), "first": first}
            yield Task(_write_part, number, name, part.record_count, content)
            first += part.record_count

    results = run_on(engine, tasks(), advance) if parts else {}
    written, described = [], []
    for number, (part, name) in enumerate(zip(parts, names, strict=True)):
        record_count, tally, result = results[number]
        writer.tally.merge(tally)
        written.append(WrittenFile(name, part.split, record_count))
        described.append(result)
    return lambda: exporter.describe(written, described)


def _write_part(content: dict[str, Any]) -> tuple[int, ExportTally, Any]:
    """Write the file of a task; return the number of records, and what was found."""
    part, first = part_from_task(content["part"]), content["first"]
    exporter: FileExporter = copy(content["exporter"])
    with shared_folder(content["folder"]) as files:
        writer = ExportWriter(files, [part.split], content["names"])
        try:
            _begin(content["dataset"], exporter, writer)
            (file,) = _write_files(
                exporter,
                writer,
                part.split,
                [(content["file"], part.record_count)],
                records_of_part(part),
                lambda done, row: first + done + row,
                lambda _: None,
            )
        finally:
            exporter.abandon()
    return file.record_count, writer.tally, exporter.result()


def _begin(dataset: Dataset, exporter: Exporter, writer: ExportWriter) -> None:
    if isinstance(exporter, TableFiles):
        _check_columns(dataset.schema, exporter.format)
    exporter.begin(dataset, writer)


def _write_files(
    exporter: FileExporter,
    writer: ExportWriter,
    split: str,
    names: Sequence[tuple[str, int]],
    records: SelectedRecords,
    position: Callable[[int, int], int],
    advance: Advance,
) -> list[WrittenFile]:
    """Write the records of a split, or of a part of it; `names` are with numbers of records."""
    if isinstance(exporter, TableFiles):
        return _write_table(exporter, writer, split, names[0][0], records, position, advance)
    assert isinstance(exporter, RecordFiles)
    items: Iterator[tuple[int, Any]]
    if exporter.has_payloads:
        items = enumerate(
            merged(payload) if shard.layers else payload
            for shard, _, payload in records.located_records()
        )
    else:
        items = enumerate(example for _, example in _examples(records, writer))
    files: list[WrittenFile] = []
    for name, record_count in names:
        exporter.open(writer.open(name), split)
        written = 0
        for number, item in islice(items, record_count):
            written += _add(partial(exporter.add, item), writer, split, position(number, 0))
            advance(1)
        exporter.close()
        writer.close(name)
        files.append(WrittenFile(name, split, written))
    return files


def _write_table(
    exporter: TableFiles,
    writer: ExportWriter,
    split: str,
    name: str,
    records: SelectedRecords,
    position: Callable[[int, int], int],
    advance: Advance,
) -> list[WrittenFile]:
    """Write a table, unless there are no records."""
    done = written = 0
    for block in records.blocks():
        if not done:
            exporter.open(writer.open(name), split)
        block.append_to(exporter.decoder)
        row_count = len(block.block)
        with block.located():
            written += exporter.add(row_count, partial(position, done))
        advance(row_count)
        done += row_count
    if written:
        writer.tally.splits[split] += written
    if not done:
        return []
    exporter.close()
    writer.close(name)
    return [WrittenFile(name, split, written)]


def _add(add: Callable[[], None], writer: ExportWriter, split: str, position: int) -> int:
    """Add a record; return 1, or 0 if it was skipped."""
    writer.position = position
    try:
        add()
    except SourceError as error:
        writer.skip(error)
        return 0
    writer.tally.splits[split] += 1
    return 1


def _examples(records: SelectedRecords, writer: ExportWriter) -> Iterator[tuple[str, Features]]:
    """Decode records, with standard keys for the image and its features."""
    for shard, number, payload in records.located_records():
        with located(shard.location):
            try:
                example = decode_example(payload)
            except DataError as error:
                error.record = number
                raise
        yield shard.split, writer.names.apply(example)


def _file_names(
    dataset: Dataset, exporter: FileExporter, writer: ExportWriter, size_bytes: int | None
) -> dict[str, list[tuple[str, int]]]:
    """Return the files of each split, with the number of records of each; of tables, it is 0."""
    if isinstance(exporter, TableFiles):
        return {
            split: [(writer.split_name(split) + exporter.suffix, 0)] for split in dataset.splits
        }
    check_shard_options(None, size_bytes, DEFAULT_TEMPLATE)
    counts, sizes = {}, {}
    for split, part in dataset.splits.items():
        used = records_of(part).used_shards()
        total = max(1, sum(shard.record_count for shard in used))
        counts[split] = len(part)
        files_of = (file for shard in used for file in (shard, *shard.layers))
        sizes[split] = sum(file.size_bytes for file in files_of) * len(part) // total
        sizes[split] += exporter.overhead_bytes * len(part)
    files = shard_counts(counts, sizes, None, size_bytes)
    names: dict[str, list[tuple[str, int]]] = {}
    for split, record_count in counts.items():
        if record_count:
            of_split = exporter.file_names(writer.split_name(split), max(1, files[split]))
            bounds = shard_bounds(record_count, len(of_split))
            names[split] = [
                (name, stop - start)
                for name, (start, stop) in zip(of_split, pairwise(bounds), strict=True)
            ]
    return names


def _position_finder(dataset: Dataset, split: str) -> Callable[[int, int], int]:
    """Return a function from a row of a split to its position in the dataset.

    The row is the sum of both arguments.
    """
    if len(dataset.splits) == 1:
        return operator.add

    @cache
    def positions() -> npt.NDArray[np.int64]:
        return np.flatnonzero(records_of(dataset).are_in_split(split))

    return lambda first, row: int(positions()[first + row])


def _check_columns(schema: Schema, format: str) -> None:
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


def _described(dataset: Dataset, exporter: FileExporter) -> Dataset:
    """Return what exporters use of a dataset, besides its records: a Dataset without shards.

    A selection has the columns of the whole, so that no process reads all records before.
    """
    schema = None
    if isinstance(exporter, TableFiles):
        schema = dataset.view.outer_schema or dataset.schema
    view = View(
        joined_shards([]),
        schema,
        schema,
        dataset.class_names,
        arrow_schema=dataset.view.arrow_schema,
    )
    return Dataset(view)
