"""`recordsmith.export`: write records as files for other tools.

Records are read once, in order, and passed to the exporter of the format. Features that the format
cannot hold and changed names are reported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import Dataset, dataset_of, records_of
from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError, Problems, SourceError, option
from recordsmith.exporting.export_task import ExportTasks
from recordsmith.exporting.export_writer import ChangedName, Divisible, ExportWriter, TableExporter
from recordsmith.exporting.formats import DIVISIBLE, AnyExporter, make_exporter
from recordsmith.exporting.record_passing import (
    Count,
    begin_export,
    export_columns,
    export_records,
)
from recordsmith.serialization import fields_to_json
from recordsmith.stores import Location, PlaceLike, as_folder, write_folder
from recordsmith.summaries import Report
from recordsmith.tasks import Engine
from recordsmith.work import Progress

_TYPED = ("csv", "parquet", "feather")  # the formats that restore types


@dataclass(repr=False)
class ExportReport(Report):
    """What `export` wrote.

    Attributes:
        folder: the folder that was written.
        format: folder, pairs, voc, coco, yolo, csv, parquet, feather, huggingface,
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
    restore_types: bool | None = None,
    skip_errors: bool = False,
    overwrite: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write the examples of a dataset as files for other tools.

    Encoded images and masks are written byte for byte. The folder appears when it is complete; in a
    store that cannot rename, its note `.export.json` does. Memory holds some records, a number for
    each file name and changed names.

    Args:
        path_or_dataset: a path as for `open`, or a Dataset, such as a slice.
        out: the folder to create: a path, or a place in another store.
        format: folder (a folder for each class, or images and masks), pairs (images and masks),
            voc, coco, yolo, webdataset, npz, tfds (for TensorFlow Datasets); array-record, which
            needs the extra of that name; or csv, parquet, feather or huggingface (Parquet with
            images and class names for `datasets`), which need the extra `arrow`.
        split: export only this split of a path.
        shard_size_bytes: webdataset, tfds, array-record: approximate size of a file; None for
            256MB. With an engine, larger shards are divided, from 512 MB by default.
        restore_types: for csv, parquet and feather, as in `Dataset.to_arrow`: by default, columns
            have the types of the Arrow table that was packed, where the manifest has them.
        skip_errors: skip records that the format cannot represent and report them. By default, they
            are an error after all records have been tried. A damaged shard always stops the job.
        overwrite: replace an earlier export in this folder, and all files in the way.
        engine: what runs the job, such as `rs.engines.Processes(4)`; None for this thread. Each
            shard becomes a file, or several; so the format must not be folder, pairs, voc, coco or
            yolo, nor csv with images. The processes must see shards and folder under the same
            paths.
        progress: called as `progress(done, total)`; total is 0 if unknown.

    Returns:
        A report of what was written, which names were changed, and which problems were found.

    Raises:
        SourceError: records cannot be exported in this format; `problems` has the first 100.
        CorruptDataError: a record is damaged.
        OptionError: the format is unknown or cannot hold these records, or `out` is not empty; or
            an engine cannot write the format, or records that are not in the order of their files.
        MissingExtraError: pyarrow is not installed.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        report = rs.export("records", "images", "coco", split="train")
    """
    folder = as_folder(out)
    exporter = make_exporter(format, shard_size_bytes)
    if engine is not None and not isinstance(exporter, Divisible):
        raise OptionError(
            f"{option('engine')} needs a format whose files are independent of each other, not "
            f"{option('format', format)}",
            option="engine",
            expected=f"one of the formats {', '.join(DIVISIBLE)}",
        )
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    if restore_types is not None and format not in _TYPED:
        raise OptionError(
            f"{option('restore_types')} needs one of the formats {', '.join(_TYPED)}, not "
            f"{option('format', format)}",
            option="restore_types",
            value=restore_types,
        )
    dataset = dataset_of(path_or_dataset, split)
    if restore_types:
        dataset.to_arrow(restore_types=True)  # raises if there are none
    elif restore_types is False:
        dataset = Dataset(replace(dataset.view, arrow_schema=None))
    shards = {shard.location.identity: str(shard.location) for shard in dataset.shards}
    _check_apart(shards, folder)
    report = ExportReport(folder, format)
    note = {"format": "recordsmith-export", "version": 2, "export_format": format}
    problems = Problems()
    with write_folder(
        folder, note, overwrite=overwrite, keeping=shards, report=problems.add
    ) as files:
        writer = ExportWriter(files, dict.fromkeys(shard.split for shard in dataset.shards))
        try:
            count = _Count(dataset, report, progress)
            if engine is None:
                begin_export(dataset, exporter, writer, format)
                _export_here(dataset, exporter, writer, count.add)
                results = None
            else:
                tasks = ExportTasks(dataset, format, exporter, shard_size_bytes, writer, files)
                results = tasks.run(engine, count.add)
            report.skipped, report.skipped_count = writer.skipped.first, writer.skipped.count
            report.skipped_positions = writer.skipped_positions
            _check_skipped(report, writer.skipped, skip_errors=skip_errors)
            if not report.record_count:
                raise SourceError("the dataset has no records to export")
            exporter.finish()
            if isinstance(exporter, Divisible):
                exporter.describe([exporter.result()] if results is None else results)
        finally:
            writer.clean_up()
    report.file_count, report.size_bytes = writer.file_count, writer.size_bytes
    report.changed_names = writer.changed_names
    problems.extend(writer.problems)
    report.problems, report.problem_count = problems.first, problems.count
    report.dropped_features = dict(sorted(writer.dropped_features.items()))
    return report


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
        if read and self._progress is not None:
            self._progress(self._done, records_of(self._dataset).known_record_count or 0)


def _export_here(
    dataset: Dataset, exporter: AnyExporter, writer: ExportWriter, count: Count
) -> None:
    """Pass all records to the exporter."""
    if not isinstance(exporter, TableExporter):
        export_records(records_of(dataset), exporter, writer, count)
        return
    for split, part in dataset.splits.items():
        position = _position_finder(dataset, split)
        export_columns(records_of(part), exporter, split, count, position)


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
