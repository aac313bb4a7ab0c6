"""`recordsmith.export`: from records back to files that other tools read, or to nothing.

Records are read once, in order, and handed to the exporter of the format. Everything is written to
a hidden folder that gets its name when all of it is there. What a format cannot hold, and every
name that had to be changed, is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from recordsmith.dataset import Dataset, dataset_of
from recordsmith.dataset.locate import Paths
from recordsmith.errors import CorruptDataError, OptionError, SourceError, located
from recordsmith.example import Features, classify, decode_example
from recordsmith.exporting.class_folders import ClassFolders
from recordsmith.exporting.coco import CocoFiles
from recordsmith.exporting.contract import Exporter
from recordsmith.exporting.csv_tables import CsvTables
from recordsmith.exporting.npz import NpzFiles
from recordsmith.exporting.outbox import ChangedName, Outbox
from recordsmith.exporting.parquet import ParquetTables
from recordsmith.exporting.staging import staged
from recordsmith.exporting.voc import VocFiles
from recordsmith.exporting.webdataset import SHARD_SIZE_BYTES, WebDatasetShards
from recordsmith.exporting.yolo import YoloFiles
from recordsmith.files import PathLike, Progress, as_path

OnError = Literal["stop", "skip"]

_EXPORTERS: dict[str, Callable[[], Exporter]] = {
    "folder": ClassFolders,
    "voc": VocFiles,
    "coco": CocoFiles,
    "yolo": YoloFiles,
    "csv": CsvTables,
    "parquet": ParquetTables,
    "webdataset": WebDatasetShards,
    "npz": NpzFiles,
}
FORMATS = tuple(_EXPORTERS)
_LISTED = 20  # reasons in the message of an error; its `problems` has all of them


@dataclass
class ExportReport:
    """What `export` did.

    format: folder, voc, coco, yolo, csv, parquet, webdataset or npz.
    record_count: how many records came out.
    splits: how many of each split.
    file_count, size_bytes: what was written.
    changed_names: names that could not be kept, with what they became.
    problems: what is not as it should be in the records, and came out all the same.
    left_out: features that the format has no place for -> how many records have them.
    skipped: records that could not be exported, with the reason.
    """

    folder: Path
    format: str
    record_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    file_count: int = 0
    size_bytes: int = 0
    changed_names: list[ChangedName] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, files."""
        return {
            "folder": str(self.folder),
            "format": self.format,
            "records": self.record_count,
            "splits": self.splits,
            "files": self.file_count,
            "size_bytes": self.size_bytes,
            "changed_names": [changed._asdict() for changed in self.changed_names],
            "problems": self.problems,
            "left_out": [
                {"feature": key, "records": count} for key, count in self.left_out.items()
            ],
            "skipped": self.skipped,
        }


def export(
    path_or_dataset: Paths | Dataset,
    out: PathLike,
    as_: str = "folder",
    *,
    split: str | None = None,
    shard_size_bytes: int | None = None,
    on_error: OnError = "stop",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Write the examples of a dataset as files that other tools read.

    Args:
        path_or_dataset: what `open` takes, or a Dataset, be it a slice.
        out: the folder to make.
        as_: folder (a folder for each class, or images and masks), voc, coco, yolo, csv, parquet
            (extra `parquet`), webdataset, or npz.
        split: only this split of a path.
        shard_size_bytes: of webdataset: about how large a tar shall be; by default 256 MB.
        on_error: what a record does that cannot be exported: stop the job with the complete list
            of them, or be skipped and reported.
        overwrite: replace an earlier export in this folder, and whatever has a name that is needed.
        progress: told the records done and in all; 0 in all if nobody knows.

    Returns:
        What was written, which names were changed, what is not as it should be. Encoded pictures
        and masks come out byte for byte. Memory holds a record, and for each one a number for its
        name (of npz, the lengths of its features) and each sentence of the report.

    Raises:
        SourceError: records cannot be exported in this format; `problems` has all of them.
        CorruptDataError: a record is damaged.
        OptionError: there is no such format, it cannot hold these records, or `out` is not empty.
        MissingExtraError: pyarrow is not installed.
        FileAccessError: a folder cannot be read or written, or the disk is full.
    """
    folder = as_path(out)
    exporter = _exporter(as_, shard_size_bytes)
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; expected 'stop' or 'skip'")
    dataset = dataset_of(path_or_dataset, split)
    _check_apart(dataset, folder)
    report = ExportReport(folder, as_)
    note = {"format": "recordsmith-export", "version": 1, "as": as_}
    shards = [shard.path for shard in dataset.shards]
    with staged(folder, note, overwrite=overwrite, keeping=shards) as staging:
        outbox = Outbox(staging, dict.fromkeys(shard.split for shard in dataset.shards))
        try:
            exporter.begin(dataset, outbox)
            _export_all(dataset, exporter, outbox, report, on_error, progress)
            exporter.finish()
        finally:
            outbox.discard()
    report.file_count, report.size_bytes = outbox.file_count, outbox.size_bytes
    report.changed_names, report.problems = outbox.changed_names, outbox.problems
    report.left_out = dict(sorted(outbox.left_out.items()))
    return report


def _exporter(name: str, shard_size_bytes: int | None) -> Exporter:
    if name not in _EXPORTERS:
        raise OptionError(f"there is no format {name!r}; expected one of {', '.join(FORMATS)}")
    if name == "webdataset":
        return WebDatasetShards(SHARD_SIZE_BYTES if shard_size_bytes is None else shard_size_bytes)
    if shard_size_bytes is not None:
        raise OptionError(f"a size of shards goes with webdataset, not with {name}")
    return _EXPORTERS[name]()


def _check_apart(dataset: Dataset, folder: Path) -> None:
    place = os.path.realpath(folder)
    for shard in dataset.shards:
        if os.path.dirname(os.path.realpath(shard.path)) == place:
            raise OptionError(
                f"{folder} is the folder of the dataset itself; choose another one to export to"
            )


def _export_all(
    dataset: Dataset,
    exporter: Exporter,
    outbox: Outbox,
    report: ExportReport,
    on_error: OnError,
    progress: Progress | None,
) -> None:
    total = dataset.known_record_count or 0
    for position, (split, example) in enumerate(_examples(dataset)):
        outbox.position = position
        try:
            exporter.add(example, split, position)
        except SourceError as error:
            report.skipped.append(f"record {position}: {error}")
        else:
            report.record_count += 1
            report.splits[split] = report.splits.get(split, 0) + 1
        if progress is not None:
            progress(position + 1, total)
    if report.skipped and (on_error == "stop" or not report.record_count):
        listed = "\n".join(f"  {reason}" for reason in report.skipped[:_LISTED])
        if len(report.skipped) > _LISTED:
            more = len(report.skipped) - _LISTED
            listed += f"\n  … and {more:,} more (all of them in the error's problems)"
        raise SourceError(
            f"{len(report.skipped)} of {report.record_count + len(report.skipped)} records cannot "
            f"be exported as {report.format}, so nothing was. Choose another format, or leave them "
            f"out with on_error='skip':\n{listed}",
            report.skipped,
        )
    if not report.record_count:
        raise SourceError("there are no records to export")


def _examples(dataset: Dataset) -> Iterator[tuple[str, Features]]:
    for shard, number, payload in dataset.located_records():
        with located(shard.path):
            try:
                example = decode_example(payload)
            except CorruptDataError as error:
                error.position = number
                kind = classify(payload)
                if kind == "Example":
                    raise
                raise _no_example(kind, str(shard.path), number) from error
        yield shard.split, example


def _no_example(kind: str, path: str, number: int) -> OptionError:
    what = {"SequenceExample": "a SequenceExample", "ELWC": "a ranking list", "Event": "an Event"}
    return OptionError(
        f"{path}, record {number}: it is {what.get(kind, 'no Example')}, and only Examples can be "
        "exported; iterate over the dataset (recordsmith.open) to read it"
    )
