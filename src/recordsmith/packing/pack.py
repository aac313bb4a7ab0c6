"""`recordsmith.pack`: from a source to a complete dataset, or to nothing.

Plan, write every shard under a temporary name in parallel threads, then give all of them their
names, and the manifest last. Until then no file has a final name, so a job that is stopped, runs
out of disk or meets a bad picture leaves the folder as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from recordsmith.dataset import (
    LABELS_NAME,
    MANIFEST_NAME,
    Manifest,
    ShardEntry,
    ShardWriter,
    read_manifest,
    write_labels,
)
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    OptionError,
    SourceError,
)
from recordsmith.example import SchemaSurvey
from recordsmith.files import (
    INTERNAL_FOLDER,
    PathLike,
    Progress,
    exclusive,
    list_folder,
    make_folder,
    read_head,
    remove,
    sync_folder,
    write_atomically,
)
from recordsmith.packing.plan import Plan, PlannedShard, Shards, make_plan
from recordsmith.sources import Listing, Source
from recordsmith.wire import check_compression

OnError = Literal["stop", "skip"]
LOCK_NAME = "lock"
BEGUN_NAME = "begun-plan"


@dataclass
class PackReport:
    """What `pack` did.

    samples: how many were packed.
    classes: how many classes there are, or None.
    shards: how many files of records were written.
    bytes_in, bytes_out: of the pictures, and of the shards.
    skipped: samples that could not be read, with the reason.
    notices: what the source passed over.
    is_new: False if a finished dataset of the same plan was there already.
    """

    folder: Path
    samples: int = 0
    classes: int | None = None
    shards: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    skipped: list[str] = field(default_factory=list)
    notices: tuple[str, ...] = ()
    is_new: bool = True

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above."""
        return {**vars(self), "folder": str(self.folder), "notices": list(self.notices)}


def pack(
    source: Source,
    out: PathLike,
    *,
    splits: Mapping[str, float] | None = None,
    shards: Shards | None = None,
    shard_size_bytes: int | None = None,
    seed: int = 0,
    stratify: bool = False,
    compression: str | None = None,
    on_error: OnError = "stop",
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PackReport:
    """Pack a source into a folder of TFRecord shards.

    Args:
        source: where samples come from, such as `ImageFolder("flowers")`.
        out: the folder of the dataset; made if it is not there.
        splits: share of each split, adding up to 1; None for one split, train.
        shards: how many shards each split has, one number for all or one for each.
        shard_size_bytes: about how large a shard shall be instead; by default 256 MB.
        seed: of the order, and so of which sample goes to which split.
        stratify: split each class by itself, so that all splits have the same mix.
        compression: none (the default: pictures are compressed already), gzip or zlib.
        on_error: what a sample that cannot be read does: stop the job with the complete list of
            such samples, or be skipped and reported.
        overwrite: replace a dataset that is there.
        threads: how many shards are written at once; None: one for each processor, at most 8.
        progress: told the samples done and in all.

    Returns:
        What was done. The same listing, options and seed give the same bytes in every shard,
        whatever the number of threads.

    Raises:
        SourceError: the source holds nothing to pack, or samples that cannot be read.
        OptionError: options contradict each other or the data; the folder holds another dataset.
        FileAccessError: a folder cannot be read or written, or the disk is full.
    """
    folder = Path(out)
    name = check_compression(compression)
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}, expected 'stop' or 'skip'")
    listing = source.list_samples()
    plan = make_plan(
        listing,
        splits=splits or {"train": 1.0},
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        seed=seed,
        stratify=stratify,
        compression=name,
        source=source.describe(),
    )
    report = PackReport(folder, notices=listing.notices)
    if listing.class_names is not None:
        report.classes = len(listing.class_names)
    earlier = _earlier_dataset(folder, plan, overwrite)
    if earlier is not None and earlier.made_from.get("plan") == plan.fingerprint:
        _fill_report(report, earlier)
        report.is_new = False
        report.bytes_in = int(earlier.made_from.get("bytes_in", 0))
        report.skipped = list(earlier.made_from.get("skipped", ()))
        return report
    internal = folder / INTERNAL_FOLDER
    make_folder(internal)
    with exclusive(internal / LOCK_NAME):
        job = _Job(source, listing, plan, folder, on_error, progress)
        try:
            job.write_all(threads or min(8, os.cpu_count() or 1))
            report.skipped = job.skipped()
            report.bytes_in = job.bytes_in
            manifest = job.manifest(
                {
                    "source": dict(source.describe()),
                    "seed": seed,
                    "stratify": stratify,
                    "plan": plan.fingerprint,
                    "bytes_in": job.bytes_in,
                    "skipped": report.skipped,
                }
            )
            job.publish(manifest, earlier)
        finally:
            job.clean_up()
    _fill_report(report, manifest)
    return report


def _earlier_dataset(folder: Path, plan: Plan, overwrite: bool) -> Manifest | None:
    """The dataset that is in the folder already.

    Raises:
        OptionError: it is another one, or there are files in the way, and overwrite is not said.
    """
    if not folder.is_dir():
        return None
    try:
        manifest = read_manifest(folder)
    except CorruptDataError:
        if not overwrite:
            raise
        manifest = None
    if manifest is not None:
        if overwrite or manifest.made_from.get("plan") == plan.fingerprint:
            return manifest
        raise OptionError(
            f"{folder} holds another dataset of {manifest.record_count} records, made from other "
            "files or with other options; choose another folder, or say overwrite (--overwrite) "
            "to replace it"
        )
    if _begun_plan(folder) == plan.fingerprint:
        return None  # this very job was killed while it gave its files their names
    names = {entry.name for entry in list_folder(folder)}
    in_the_way = sorted(names & {*(shard.file for shard in plan.shards), LABELS_NAME})
    if in_the_way and not overwrite:
        raise OptionError(
            f"{folder} holds {in_the_way[0]} already, and no manifest says where it comes from; "
            "choose another folder, or say overwrite (--overwrite) to replace it"
        )
    return None


def _begun_plan(folder: Path) -> str | None:
    """The plan whose files may stand in the folder without a manifest."""
    path = folder / INTERNAL_FOLDER / BEGUN_NAME
    if not path.is_file():
        return None
    return read_head(path, 64).decode("ascii", "replace")


def _remove_dataset(folder: Path, manifest: Manifest) -> None:
    """The manifest first: what is left is then no dataset any more."""
    remove(folder / MANIFEST_NAME)
    remove(folder / LABELS_NAME)
    for shards in manifest.splits.values():
        for shard in shards:
            remove(folder / shard.file)
            remove(folder / INTERNAL_FOLDER / f"{shard.file}.index")


def _fill_report(report: PackReport, manifest: Manifest) -> None:
    report.samples = manifest.record_count
    report.shards = sum(len(shards) for shards in manifest.splits.values())
    report.splits = {
        split: sum(shard.record_count for shard in shards)
        for split, shards in manifest.splits.items()
    }
    report.bytes_out = sum(
        shard.size_bytes for shards in manifest.splits.values() for shard in shards
    )


class _Job:
    """The shards of one plan while they are written."""

    def __init__(
        self,
        source: Source,
        listing: Listing,
        plan: Plan,
        folder: Path,
        on_error: OnError,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._listing = listing
        self._plan = plan
        self._folder = folder
        self._on_error = on_error
        self._progress = progress
        self._kinds = source.kinds()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._done = 0
        self._survey = SchemaSurvey()
        self._failures: dict[int, str] = {}  # number of the sample -> why it cannot be read
        self._writers: dict[PlannedShard, ShardWriter] = {}
        self.bytes_in = 0

    def write_all(self, threads: int) -> None:
        """Write every shard under its temporary name.

        Raises:
            SourceError: samples cannot be read, and the job shall stop at that.
        """
        with ThreadPoolExecutor(min(threads, len(self._plan.shards))) as pool:
            futures = [pool.submit(self._write_shard, shard) for shard in self._plan.shards]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                for future in futures:
                    if future.done() and not future.cancelled():
                        future.result()
            finally:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
        if self._failures and self._on_error == "stop":
            problems = self.skipped()
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise SourceError(
                f"{len(problems)} of {len(self._listing.samples)} samples cannot be read, so "
                f"nothing was packed. Mend or remove them, or skip them (--skip-errors):\n{listed}",
                problems,
            )

    def skipped(self) -> list[str]:
        """The samples that could not be read, in the order of the listing."""
        return [self._failures[number] for number in sorted(self._failures)]

    def manifest(self, made_from: Mapping[str, Any]) -> Manifest:
        entries: dict[str, list[ShardEntry]] = {split: [] for split in self._plan.splits}
        for shard in self._plan.shards:
            writer = self._writers[shard]
            entries[shard.split].append(
                ShardEntry(shard.file, writer.record_count, writer.size_bytes, writer.crc32c)
            )
        return Manifest(
            {split: tuple(shards) for split, shards in entries.items()},
            self._survey.finish(),
            self._plan.compression,
            self._listing.class_names,
            made_from,
        )

    def publish(self, manifest: Manifest, earlier: Manifest | None) -> None:
        """Give everything its final name, the manifest last."""
        internal = self._folder / INTERNAL_FOLDER
        write_atomically(internal / BEGUN_NAME, self._plan.fingerprint.encode())
        if earlier is not None:
            _remove_dataset(self._folder, earlier)
        for shard in self._plan.shards:
            self._writers[shard].publish()
        if manifest.class_names is not None:
            write_labels(self._folder, manifest.class_names)
        manifest.write(self._folder)
        sync_folder(self._folder)
        remove(internal / BEGUN_NAME)

    def clean_up(self) -> None:
        """Remove what has no final name, from this job or one that was killed."""
        internal = self._folder / INTERNAL_FOLDER
        for writer in self._writers.values():
            writer.discard()
        with suppress(FileAccessError):
            for entry in list_folder(internal):
                if entry.name.endswith(".partial") or entry.name == LOCK_NAME:
                    remove(entry.path)
        with suppress(OSError):
            internal.rmdir()  # if nothing of value is in it

    def _write_shard(self, shard: PlannedShard) -> None:
        writer = ShardWriter(
            self._folder / shard.file,
            compression=self._plan.compression,
            overwrite=True,
            temporary=self._folder / INTERNAL_FOLDER / f"{shard.file}.partial",
        )
        with self._lock:
            self._writers[shard] = writer
        for number in shard.samples:
            if self._stopping.is_set():
                return
            self._write_sample(writer, number)
        writer.finish()
        self._read_back(writer)

    def _write_sample(self, writer: ShardWriter, number: int) -> None:
        sample = self._listing.samples[number]
        failure = None
        try:
            features = self._source.read_features(sample)
        except (CorruptDataError, FileAccessError) as error:
            failure = str(error)
        else:
            writer.write_example(features, self._kinds)
        with self._lock:
            if failure is None:
                self.bytes_in += sample.size_bytes
            else:
                self._failures[number] = failure
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, len(self._listing.samples))

    def _read_back(self, writer: ShardWriter) -> None:
        """Prove what was written, every checksum, and count its features for the schema."""
        records = 0
        for block in writer.written_blocks():
            with self._lock:
                self._survey.update(block.buffer, block.starts, block.lengths)
            records += len(block)
        if records != writer.record_count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                f"{writer.record_count} records were written, {records} came back; the disk or "
                "its file system is failing",
                path=writer.path,
            )
