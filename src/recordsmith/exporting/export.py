"""`recordsmith.export`: write records as files for other tools.

Records are read once, in order, and passed to the exporter of the format. Features that the format
cannot hold and changed names are reported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, dataset_of, records_of
from recordsmith.dataset.locate import Paths
from recordsmith.errors import (
    CorruptDataError,
    OptionError,
    Problems,
    SourceError,
    located,
    option,
)
from recordsmith.example import Features, Schema, classify, decode_example
from recordsmith.exporting.array_record import ArrayRecordFiles
from recordsmith.exporting.arrow_tables import ArrowTables
from recordsmith.exporting.class_folders import ClassFolders
from recordsmith.exporting.coco import CocoFiles
from recordsmith.exporting.csv_tables import CsvTables
from recordsmith.exporting.export_writer import (
    ChangedName,
    Exporter,
    ExportWriter,
    PayloadExporter,
    TableExporter,
)
from recordsmith.exporting.hugging_face import HuggingFaceTables
from recordsmith.exporting.npz import NpzFiles
from recordsmith.exporting.tfds import TfdsFiles
from recordsmith.exporting.voc import VocFiles
from recordsmith.exporting.webdataset import SHARD_SIZE_BYTES, WebDatasetShards
from recordsmith.exporting.yolo import YoloFiles
from recordsmith.serialization import fields_to_json
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.summaries import Report
from recordsmith.work import Progress

_AnyExporter: TypeAlias = Exporter | TableExporter | PayloadExporter

_EXPORTERS: dict[str, Callable[[], _AnyExporter]] = {
    "folder": ClassFolders,
    "voc": VocFiles,
    "coco": CocoFiles,
    "yolo": YoloFiles,
    "csv": CsvTables,
    "parquet": partial(ArrowTables, "parquet"),
    "feather": partial(ArrowTables, "feather"),
    "huggingface": HuggingFaceTables,
    "webdataset": WebDatasetShards,
    "tfds": TfdsFiles,
    "array-record": ArrayRecordFiles,
    "npz": NpzFiles,
}
FORMATS = tuple(_EXPORTERS)
_SHARDED = ("webdataset", "tfds", "array-record")


@dataclass(repr=False)
class ExportReport(Report):
    """What `export` wrote.

    Attributes:
        folder: the folder that was written.
        format: folder, voc, coco, yolo, csv, parquet, feather, huggingface,
            webdataset, tfds, array-record or npz.
        record_count: the number of exported records.
        splits: the number of records of each split.
        file_count, size_bytes: the number of files and their size.
        changed_names: names that were changed, with their new names.
        problems: the first 100 problems of exported records and of the folder.
        problem_count: the number of all problems.
        dropped_features: features that the format cannot hold -> how many records have them.
        skipped: the first 100 skipped records, with the reason.
        skipped_count: the number of all skipped records.
        skipped_positions: the positions of the first 100 in the dataset.
    """

    folder: Location
    format: str
    record_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    file_count: int = 0
    size_bytes: int = 0
    changed_names: list[ChangedName] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    dropped_features: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    skipped_positions: list[int] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict; `dropped_features` becomes a list."""
        dropped = [{"feature": key, "records": n} for key, n in self.dropped_features.items()]
        return fields_to_json(self) | {"dropped_features": dropped}


def export(
    path_or_dataset: Paths | Dataset,
    out: PlaceLike,
    format: str = "folder",
    *,
    split: str | None = None,
    shard_size_bytes: int | None = None,
    skip_errors: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Write the examples of a dataset as files for other tools.

    Encoded images and masks are written byte for byte. The folder appears when it is complete; in a
    store that cannot rename, its note `.export.json` does. Memory holds some records, a number for
    each file name and changed names.

    Args:
        path_or_dataset: a path as for `open`, or a Dataset, such as a slice.
        out: the folder to create: a path, or a place in another store.
        format: folder (a folder for each class, or images and masks), voc, coco, yolo, webdataset,
            npz, tfds (for TensorFlow Datasets); array-record, which needs the extra of that name;
            or csv, parquet, feather or huggingface (Parquet with images and class names for
            `datasets`), which need the extra `arrow`.
        split: export only this split of a path.
        shard_size_bytes: for webdataset, tfds and array-record, the approximate size of a file;
            256 MB by default.
        skip_errors: skip and report records that cannot be exported. By default, they are an error
            after all records have been tried.
        overwrite: replace an earlier export in this folder, and all files in the way.
        progress: called as `progress(done, total)`; total is 0 if unknown.

    Returns:
        A report of what was written, which names were changed, and which problems were found.

    Raises:
        SourceError: records cannot be exported in this format; `problems` has the first 100.
        CorruptDataError: a record is damaged.
        OptionError: the format is unknown or cannot hold these records, or `out` is not empty.
        MissingExtraError: pyarrow is not installed.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        report = rs.export("records", "images", "coco", split="train")
    """
    folder = as_folder(out)
    exporter = _exporter(format, shard_size_bytes)
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    dataset = dataset_of(path_or_dataset, split)
    shards = {shard.location.identity: str(shard.location) for shard in dataset.shards}
    _check_apart(shards, folder)
    report = ExportReport(folder, format)
    note = {"format": "recordsmith-export", "version": 2, "export_format": format}
    problems = Problems()
    with folder.store.write_folder(
        folder.key, note, overwrite=overwrite, keeping=shards, report=problems.add
    ) as files:
        writer = ExportWriter(files, dict.fromkeys(shard.split for shard in dataset.shards))
        try:
            if isinstance(exporter, TableExporter):
                _check_columns(dataset.schema, format)
            exporter.begin(dataset, writer)
            count = _Count(dataset, report, progress)
            if isinstance(exporter, TableExporter):
                _export_columns(dataset, exporter, count)
            elif isinstance(exporter, PayloadExporter):
                for shard, _, payload in records_of(dataset).located_records():
                    exporter.add(payload, shard.split)
                    count.add(shard.split, 1, 1)
            else:
                _export_records(dataset, exporter, writer, count)
            report.skipped, report.skipped_count = writer.skipped.first, writer.skipped.count
            report.skipped_positions = writer.skipped_positions
            _check_skipped(report, writer.skipped, skip_errors=skip_errors)
            exporter.finish()
            if not report.record_count:
                raise SourceError("the dataset has no records to export")
        finally:
            writer.clean_up()
    report.file_count, report.size_bytes = writer.file_count, writer.size_bytes
    report.changed_names = writer.changed_names
    problems.extend(writer.problems)
    report.problems, report.problem_count = problems.first, problems.count
    report.dropped_features = dict(sorted(writer.dropped_features.items()))
    return report


def _exporter(name: str, shard_size_bytes: int | None) -> _AnyExporter:
    if name not in _EXPORTERS:
        raise OptionError(option="format", value=name, expected=f"one of {', '.join(FORMATS)}")
    if name == "webdataset":
        return WebDatasetShards(SHARD_SIZE_BYTES if shard_size_bytes is None else shard_size_bytes)
    if name == "tfds":
        return TfdsFiles(shard_size_bytes)
    if name == "array-record":
        return ArrayRecordFiles(shard_size_bytes)
    if shard_size_bytes is not None:
        raise OptionError(
            f"{option('shard_size_bytes')} needs one of the formats {', '.join(_SHARDED)}, not "
            f"{option('format', name)}",
            option="shard_size_bytes",
            value=shard_size_bytes,
        )
    return _EXPORTERS[name]()


def _check_apart(shards: Iterable[str], folder: Location) -> None:
    """Raise OptionError if shards, given by their identity, are directly in the folder."""
    place = folder.identity.rstrip("/")
    for shard in shards:
        if shard.rpartition("/")[0].rstrip("/") == place:
            raise OptionError(
                f"{folder} is the folder of the dataset itself",
                option="out",
                value=str(folder),
                remedy="Export to another folder.",
            )


class _Count:
    """Counts records in the report and calls `progress`."""

    def __init__(self, dataset: Dataset, report: ExportReport, progress: Progress | None) -> None:
        self._dataset, self._report, self._progress = dataset, report, progress
        self._done = 0

    def add(self, split: str, read: int, written: int) -> None:
        report = self._report
        self._done += read
        report.record_count += written
        if written:
            report.splits[split] = report.splits.get(split, 0) + written
        if self._progress is not None:
            self._progress(self._done, records_of(self._dataset).known_record_count or 0)


def _export_records(
    dataset: Dataset, exporter: Exporter, writer: ExportWriter, count: _Count
) -> None:
    for position, (split, example) in enumerate(_examples(dataset)):
        writer.position = position
        written = 1
        try:
            exporter.add(example, split, position)
        except SourceError as error:
            writer.skip(error)
            written = 0
        count.add(split, 1, written)


def _export_columns(dataset: Dataset, exporter: TableExporter, count: _Count) -> None:
    for split, part in dataset.splits.items():
        position_of = _position_finder(dataset, split)
        done = 0
        for block in records_of(part).blocks():
            block.append_to(exporter.decoder)
            row_count = len(block.block)
            with block.located():
                written = exporter.add(split, row_count, partial(position_of, done))
            count.add(split, row_count, written)
            done += row_count


def _check_skipped(report: ExportReport, skipped: Problems, *, skip_errors: bool) -> None:
    if skipped and (not skip_errors or not report.record_count):
        raise SourceError(
            f"{skipped.count} of {report.record_count + skipped.count} records cannot be exported "
            f"as {report.format}",
            skipped,
            remedy=(
                f"Nothing was written. Choose another format, or skip these records with "
                f"{option('skip_errors', True)}."
            ),
            lists_problems=True,
            records=report.skipped_positions,
        )


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


def _examples(dataset: Dataset) -> Iterator[tuple[str, Features]]:
    for shard, number, payload in records_of(dataset).located_records():
        with located(shard.location):
            try:
                example = decode_example(payload)
            except CorruptDataError as error:
                error.record = number
                kind = classify(payload)
                if kind == "Example":
                    raise
                raise _wrong_kind(kind, str(shard.location), number) from error
        yield shard.split, example


def _wrong_kind(kind: str, path: str, number: int) -> OptionError:
    what = {"SequenceExample": "a SequenceExample", "ELWC": "a ranking list", "Event": "an Event"}
    return OptionError(
        f"{path}, record {number} is {what.get(kind, 'not an Example')}, and only Examples can be "
        "exported",
        remedy="Read it with recordsmith.open.",
    )
