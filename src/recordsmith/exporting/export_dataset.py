"""`recordsmith.export`: write records as files for other tools.

Records are read once, in order, and passed to the exporter of the format. Features that the format
cannot hold and changed names are reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, get_type_hints

import msgspec
from msgspec.structs import asdict, replace

from recordsmith.dataset import Dataset, Paths, dataset_of, records_of
from recordsmith.exporting.export_job import export_locally, export_on_engine
from recordsmith.exporting.export_writer import ChangedName, ExportTally, ExportWriter
from recordsmith.exporting.exporter import EXPORTERS, WHAT, FileExporter
from recordsmith.exporting.standard_names import StandardNames, find_standard_names
from recordsmith.stores import Location, PlaceLike, as_folder, write_folder
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.problems import Problems
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.tasks import Engine
from recordsmith.support.work import Progress


@dataclass(repr=False)
class ExportReport(Report):
    """What `export` wrote.

    Attributes:
        folder: the folder that was written.
        format: the name of the format.
        record_count: the number of exported records.
        splits: the number of records of each split.
        file_count, size_bytes: the number of files and their size.
        changed_names: names that were changed, with their new names.
        problems: the first 100 problems of exported records and of the folder; equal ones of
            several records are one line.
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
    image_key: str | None = None,
    fps: float | None = None,
    yolo_task: str | None = None,
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
        format: what to write. One of `recordsmith.exporting.EXPORTERS`.
        split: export only this split of a path.
        shard_size_bytes: approximate size of a file; None for 256MB. With an engine, larger
            shards are divided, from 512 MB by default.
        restore_types: of tables, as in `Dataset.to_arrow`: by default, columns have the types of
            the Arrow table that was packed, where the manifest has them.
        image_key: the feature with the image, where several may be it; None for `image/encoded`, or
            the only other one.
        fps: frames per second of the videos; None for those of the records.
        yolo_task: what the rows of YOLO have: `detect` (boxes), `obb` (the corners of rotated
            boxes) or `pose` (boxes and keypoints); None for corners, or else keypoints, where the
            dataset has them.
        skip_errors: skip records that the format cannot represent and report them. By default, they
            are an error after all records have been tried. A damaged shard always stops the job.
        overwrite: replace an earlier export in this folder, and all files in the way.
        engine: what runs the job, such as `rs.engines.Processes(4)`; None for this thread. Each
            shard becomes a file, or several; so the format must have files that are independent of
            each other. The processes must see shards and folder under the same paths.
        progress: called as `progress(done, total)`; total is 0 if unknown.

    Returns:
        A report of what was written, which names were changed, and which problems were found.

    Raises:
        SourceError: records cannot be exported in this format; `problems` has the first 100.
        CorruptDataError: a record is damaged.
        OptionError: the format is unknown or cannot hold these records, or `out` is not empty;
            several features may be the image; or an engine cannot write the format, or records that
            are not in the order of their files.
        MissingExtraError: pyarrow is not installed.
        FileAccessError: a folder cannot be read or written, or the disk is full.

    Example:
        report = rs.export("out", "images", "folder", split="train")
    """
    folder = as_folder(out)
    check_word("format", format, sorted(EXPORTERS))
    exporter = EXPORTERS[format]()
    exporter.format, exporter.fps, exporter.yolo_task = format, fps, yolo_task
    given = {
        "shard_size_bytes": shard_size_bytes,
        "restore_types": restore_types,
        "image_key": image_key,
        "fps": fps,
        "yolo_task": yolo_task,
        "engine": engine,
    }
    for name, value in given.items():
        if value is not None and name not in exporter.options:
            raise OptionError(
                f"{option(name)} needs one of the formats {', '.join(formats_with(name))}, not "
                f"{option('format', format)}",
                option=name,
                value=value,
            )
    if not isinstance(skip_errors, bool):
        raise OptionError(option="skip_errors", value=skip_errors, expected="True or False")
    dataset = dataset_of(path_or_dataset, split)
    if restore_types:
        dataset.view.arrow_types(restore_types)  # raises if there are none
    elif restore_types is False:
        dataset = Dataset(replace(dataset.view, arrow_schema=None))
    names = StandardNames()
    if "image_key" in exporter.options and not (image_key is None and exporter.keeps_keys(dataset)):
        names = find_standard_names(dataset.view.preview_schema()[0].features, image_key)
    shards = {shard.location.identity: str(shard.location) for shard in dataset.shards}
    _check_apart(shards, folder)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, records_of(dataset).known_record_count or 0)

    note = {"format": "recordsmith-export", "version": 2, "export_format": format}
    options = [format, image_key, restore_types, fps, yolo_task, shard_size_bytes, skip_errors]
    job = _fingerprint(dataset, options)
    problems = Problems()
    with write_folder(
        folder, note, overwrite=overwrite, keeping=shards, report=problems.add
    ) as files:
        finished = _finished_report(files.finished, folder, job)
        if finished is not None:
            files.keep()
            return finished
        splits = dict.fromkeys(shard.split for shard in dataset.shards)
        writer = ExportWriter(files, splits, names)
        try:
            if engine is None:
                finish = export_locally(dataset, exporter, writer, shard_size_bytes, advance)
            else:
                assert isinstance(exporter, FileExporter)
                finish = export_on_engine(
                    engine, dataset, exporter, writer, files, shard_size_bytes, advance
                )
            if dataset.keypoint_classes and isinstance(exporter, FileExporter):
                writer.tally.problems.add(
                    f"{format} has no names, skeletons and flip pairs of keypoints, so they are "
                    "left out"
                )
            _check_tally(writer.tally, format, skip_errors=skip_errors)
            finish()
            report = _report_of(writer.tally, folder, format)
            if job is not None:
                files.result = {
                    "fingerprint": job,
                    "report": {name: getattr(report, name) for name in _KEPT},
                }
        finally:
            exporter.abandon()
    report.problems = [*problems.first, *report.problems]
    report.problem_count += problems.count
    return report


_KEPT = tuple(attribute.name for attribute in fields(ExportReport) if attribute.name != "folder")


def _report_of(tally: ExportTally, folder: Location, format: str) -> ExportReport:
    return ExportReport(
        folder,
        format,
        tally.splits.total(),
        dict(tally.splits),
        tally.file_count,
        tally.size_bytes,
        tally.changed_names,
        tally.problems.first,
        tally.problems.count,
        {key: count for key, count in sorted(tally.dropped_features.items()) if count},
        tally.skipped.first,
        tally.skipped.count,
        tally.skipped_positions,
    )


def formats_with(name: str) -> list[str]:
    """The formats that have an option; for `format` all of them, with what they write."""
    if name == "format":
        return [f"{known} ({what})" for known, what in sorted(WHAT.items())]
    return sorted(known for known, exporter in EXPORTERS.items() if name in exporter.options)


export.__doc__ = str(export.__doc__).replace(
    "`recordsmith.exporting.EXPORTERS`", f",\n{' ' * 12}".join(formats_with("format"))
)


def _fingerprint(dataset: Dataset, options: Sequence[Any]) -> str | None:
    """Return a hash of the records and of options; None for a selection of records."""
    if not records_of(dataset).has_all:
        return None
    shards = []
    for shard in dataset.shards:
        for file in (shard, *shard.layers):
            info = file.info()
            shards.append([file.location.identity, file.split, info.size_bytes, info.version])
    return hashlib.sha256(json.dumps([shards, *options]).encode()).hexdigest()


def _finished_report(
    finished: Mapping[str, Any] | None, folder: Location, job: str | None
) -> ExportReport | None:
    """Return the report of an equal export that was killed after it wrote all files."""
    if finished is None or job is None or finished.get("fingerprint") != job:
        return None
    types = [(name, kind) for name, kind in get_type_hints(ExportReport).items() if name in _KEPT]
    try:
        report = msgspec.convert(finished.get("report"), msgspec.defstruct("_Report", types))
    except msgspec.ValidationError:
        return None
    return ExportReport(folder, **asdict(report))


def _check_apart(shards: Iterable[str], folder: Location) -> None:
    """Raise OptionError if shards, given by their identity, are directly in the folder."""
    identity = folder.identity.rstrip("/")
    for shard in shards:
        if shard.rpartition("/")[0].rstrip("/") == identity:
            raise OptionError(
                f"{folder} is the folder of the dataset itself",
                option="out",
                value=str(folder),
                remedy="Export to another folder.",
            )


def _check_tally(tally: ExportTally, format: str, *, skip_errors: bool) -> None:
    """Raise SourceError if records were skipped without permission, or none are left."""
    skipped, written = tally.skipped, tally.splits.total()
    if skipped and not (skip_errors and written):
        raise SourceError(
            f"{skipped.count} of {written + skipped.count} records cannot be exported as {format}",
            skipped,
            remedy=(
                f"Nothing was written. Choose another format, or skip these records with "
                f"{option('skip_errors', True)}."
            ),
            lists_problems=True,
            records=tally.skipped_positions,
        )
    if not written:
        raise SourceError("the dataset has no records to export")
