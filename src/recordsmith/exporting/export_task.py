"""Exports as tasks: a shard each, or a part of a large one, becomes a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from recordsmith.dataset import (
    Dataset,
    View,
    joined_shards,
    records_of,
    records_of_part,
    shard_parts,
)
from recordsmith.dataset.parts import part_from_json, part_to_json
from recordsmith.errors import OptionError
from recordsmith.example import Schema
from recordsmith.exporting.export_writer import Divisible, ExportWriter, TableExporter, TaskFile
from recordsmith.exporting.formats import AnyExporter, make_exporter
from recordsmith.exporting.record_passing import (
    Count,
    begin_export,
    export_columns,
    export_records,
)
from recordsmith.exporting.tfds import TfdsFiles, read_known
from recordsmith.stores import FolderWriter, shared_folder
from recordsmith.tasks import Engine, Task, run_on

_PART_BYTES = 512_000_000
"""The largest part by default: shards have about half of it, unless the user said otherwise."""


class ExportTasks:
    """The tasks of an export, made while they are iterated."""

    def __init__(
        self,
        dataset: Dataset,
        format: str,
        exporter: AnyExporter,
        part_bytes: int | None,
        writer: ExportWriter,
        files: FolderWriter,
    ) -> None:
        """
        Args:
            exporter: of the format, a Divisible; its `begin` is called here.
            part_bytes: the most bytes of the input of a task; None: 512 MB.
            writer, files: of this process.

        Raises:
            OptionError: the format cannot hold such a dataset, or tasks cannot write it; or the
                records are not in the order of the files.
        """
        assert isinstance(exporter, Divisible)
        description = _describe(dataset, exporter)
        begin_export(_described(description), exporter, writer, format)
        records = records_of(dataset)
        len(records)  # counts the shards in parallel
        try:
            parts = [*shard_parts(records, part_bytes or _PART_BYTES)]
        except OptionError as error:
            error.advise("Or export it without an engine.")
            raise
        self._parts = [part for part in parts if part.record_count]
        counts = Counter(part.split for part in self._parts)
        left = {
            split: iter(exporter.part_names(writer.split_name(split), count))
            for split, count in counts.items()
        }
        self._names = [next(left[part.split]) for part in self._parts]
        self._writer = writer
        self._files = files
        self._common = {
            "format": format,
            "description": description,
            "folder": files.share(self._names),
        }

    def run(self, engine: Engine, count: Count) -> list[Any]:
        """Run the tasks; return what `Divisible.describe` needs of each."""
        found = run_on(engine, self, lambda read: count("", read, 0)) if self._parts else {}
        for number, (part, name) in enumerate(zip(self._parts, self._names, strict=True)):
            result = found[number]
            self._files.take(name, result["attempt"])
            self._writer.merge(result["writer"])
            count(part.split, 0, result["record_count"])
        return [found[number]["result"] for number in range(len(found))]

    def __iter__(self) -> Iterator[Task]:
        counts = [part.record_count for part in self._parts]
        firsts = accumulate(counts, initial=0)
        for number, (part, name, first, count) in enumerate(
            zip(self._parts, self._names, firsts, counts, strict=False)
        ):
            content = {
                **self._common,
                "file": name,
                "part": part_to_json(part),
                "first": first,
                "record_count": count,
            }
            yield Task(run_task, number, name, count, content)


def run_task(content: dict[str, Any]) -> dict[str, Any]:
    """Write the file of a task; return what was written and found."""
    part, first = part_from_json(content["part"]), content["first"]
    exporter = make_exporter(content["format"])
    assert isinstance(exporter, Divisible)
    written_count = 0

    def count(_split: str, _read: int, written: int) -> None:
        nonlocal written_count
        written_count += written

    with shared_folder(content["folder"]) as (files, attempt):
        file = TaskFile(content["file"], content["record_count"])
        writer = ExportWriter(files, [part.split], file)
        try:
            begin_export(_described(content["description"]), exporter, writer, content["format"])
            records = records_of_part(part)
            if isinstance(exporter, TableExporter):
                place = partial(_position, first)
                export_columns(records, exporter, part.split, count, place)
            else:
                export_records(records, exporter, writer, count, first)
            exporter.finish()
        finally:
            writer.clean_up()
    return {
        "attempt": attempt,
        "record_count": written_count,
        "writer": writer.to_json(),
        "result": exporter.result(),
    }


def _position(first: int, done: int, row: int) -> int:
    return first + done + row


def _describe(dataset: Dataset, exporter: AnyExporter) -> dict[str, Any]:
    """Return what exporters use of a dataset, besides its records, as plain JSON values.

    A selection has the columns of the whole, so that no process reads all records before.
    """
    schema = known = None
    if isinstance(exporter, TableExporter):
        schema = dataset.view.outer_schema or dataset.schema
    if isinstance(exporter, TfdsFiles):
        known = read_known(dataset)
    return {
        "schema": None if schema is None else schema.to_json(),
        "class_names": dataset.class_names,
        "arrow_schema": dataset.view.arrow_schema,
        "tfds": None if known is None else known.to_json(),
    }


def _described(document: dict[str, Any]) -> Dataset:
    """Return a Dataset without shards for `Exporter.begin`."""
    class_names = document["class_names"]
    schema = None if document["schema"] is None else Schema.from_json(document["schema"])
    view = View(
        joined_shards([]),
        schema,
        schema,
        None if class_names is None else tuple(class_names),
        arrow_schema=document["arrow_schema"],
        formats={} if document["tfds"] is None else {"tfds": document["tfds"]},
    )
    return Dataset(view)
