"""`recordsmith.pack`: from a source to a complete dataset, or to nothing.

Plan, write every shard under a temporary name in parallel threads, then give all of them their
names, and the manifest last. Until then no file has a final name, so a job that is stopped, runs
out of disk or meets a bad picture leaves the folder as it was. Giving names takes no space; a job
that is killed in that moment has left a note, and finishes when it is run again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from recordsmith.dataset import (
    LABELS_NAME,
    MANIFEST_NAME,
    Begun,
    Manifest,
    ShardEntry,
    ShardWriter,
    begun_path,
    labels_to_bytes,
    parse_shard_name,
    read_begun,
    read_manifest,
)
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    OptionError,
    SourceError,
)
from recordsmith.example import (
    Kind,
    SchemaSurvey,
    SequenceExample,
    encode_example,
    encode_sequence_example,
)
from recordsmith.files import (
    INTERNAL_FOLDER,
    PathLike,
    Progress,
    as_path,
    exclusive,
    list_folder,
    make_folder,
    publish,
    remove,
    size_of,
    sync_folder,
    write_atomically,
    write_synced,
)
from recordsmith.packing.plan import Plan, PlannedShard, Shards, make_plan
from recordsmith.sources import Content, Listing, Source
from recordsmith.wire import check_compression

OnError = Literal["stop", "skip"]


@dataclass
class PackReport:
    """What `pack` did.

    sample_count: how many were packed.
    class_count: how many classes there are, or None.
    shard_count: how many files of records were written.
    splits: how many records each has.
    bytes_in, bytes_out: of the pictures, and of the shards.
    skipped: samples that could not be read, with the reason.
    notices: what the source passed over.
    is_new: False if a finished dataset of the same plan was there already.
    """

    folder: Path
    sample_count: int = 0
    class_count: int | None = None
    shard_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    skipped: list[str] = field(default_factory=list)
    notices: tuple[str, ...] = ()
    is_new: bool = True

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called samples, classes, shards."""
        return {
            "folder": str(self.folder),
            "samples": self.sample_count,
            "classes": self.class_count,
            "shards": self.shard_count,
            "splits": self.splits,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "skipped": self.skipped,
            "notices": list(self.notices),
            "is_new": self.is_new,
        }


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
    folder = as_path(out)
    name = check_compression(compression)
    _check_arguments(source, folder, on_error, threads)
    listing = source.list_samples()
    plan = make_plan(
        listing,
        splits=splits,
        shards=shards,
        shard_size_bytes=shard_size_bytes,
        seed=seed,
        stratify=stratify,
        compression=name,
        making={"kind": source.describe()["kind"]},
    )
    report = PackReport(folder, notices=listing.notices)
    if listing.class_names is not None:
        report.class_count = sum(name is not None for name in listing.class_names)
    with _working_in(folder):
        earlier = _earlier_dataset(folder, plan, overwrite=overwrite)
        if earlier is not None and not overwrite:
            skipped = list(earlier.made_from.get("skipped", ()))
            if skipped and on_error == "stop":
                raise _unreadable(skipped, len(listing.samples))
            remove(begun_path(folder))
            report.is_new = False
            report.skipped = skipped
            report.bytes_in = int(earlier.made_from.get("bytes_in", 0))
            _fill_report(report, earlier)
            return report
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
            job.publish(manifest, _replaced_names(folder, plan, earlier))
        finally:
            job.clean_up()
    _fill_report(report, manifest)
    return report


def _check_arguments(source: Source, folder: Path, on_error: OnError, threads: int | None) -> None:
    if isinstance(source, (str, os.PathLike)):
        raise OptionError(
            f"{source!r} is a path; expected a source, such as recordsmith.ImageFolder({source!r})"
        )
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; expected 'stop' or 'skip'")
    if threads is not None and threads < 1:
        raise OptionError(f"threads is {threads}; expected at least 1")
    root = getattr(source, "root", None)
    if root is not None and folder.resolve().is_relative_to(Path(root).resolve()):
        raise OptionError(
            f"{folder} lies in the folder that is packed, {root}; choose one outside of it"
        )


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Hold the folder for this job; leave no empty folders behind."""
    is_new = not folder.exists()
    internal = folder / INTERNAL_FOLDER
    make_folder(internal)
    try:
        with exclusive(folder):
            yield
    finally:
        with suppress(OSError):
            internal.rmdir()
            if is_new:
                folder.rmdir()


def _earlier_dataset(folder: Path, plan: Plan, *, overwrite: bool) -> Manifest | None:
    """The dataset that is in the folder already: the same one, or with `overwrite` any.

    Raises:
        OptionError: it is another one, or there are files in the way, and overwrite is not said.
    """
    try:
        manifest = read_manifest(folder)
    except CorruptDataError:
        if not overwrite:
            raise
        manifest = None
    if overwrite:
        return manifest
    if manifest is not None:
        if manifest.made_from.get("plan") != plan.fingerprint:
            raise OptionError(
                f"{folder} holds another dataset of {manifest.record_count} records, made from "
                "other files or with other options; choose another folder, or say overwrite=True "
                "(--overwrite) to replace it"
            )
        return manifest if _is_complete(folder, manifest) else None
    begun = read_begun(folder)
    if begun is not None and begun.plan == plan.fingerprint:
        return None  # this very job was killed while it gave its files their names
    names = {entry.name for entry in list_folder(folder)}
    in_the_way = sorted(names & {*(shard.file for shard in plan.shards), LABELS_NAME})
    if in_the_way:
        raise OptionError(
            f"{folder} holds {in_the_way[0]} already, and no manifest says where it comes from; "
            "choose another folder, or say overwrite=True (--overwrite) to replace it"
        )
    return None


def _is_complete(folder: Path, manifest: Manifest) -> bool:
    """Whether all its files are there in their size; what is in them is for `verify` to say."""
    expected = {
        shard.file: shard.size_bytes for shards in manifest.splits.values() for shard in shards
    }
    if manifest.class_names is not None:
        expected[LABELS_NAME] = len(labels_to_bytes(manifest.class_names))
    try:
        return all(size_of(folder / name) == size for name, size in expected.items())
    except FileAccessError:
        return False


def _replaced_names(folder: Path, plan: Plan, earlier: Manifest | None) -> set[str]:
    """Files of an earlier dataset, or of a job that was killed: they go when the new ones come."""
    names = set()
    if earlier is not None:
        names |= {shard.file for shards in earlier.splits.values() for shard in shards}
    else:  # no manifest tells: what would be taken for a shard of a split that is packed now
        for entry in list_folder(folder):
            number = parse_shard_name(entry.name)
            if number is not None and number.split in plan.splits:
                names.add(entry.name)
    begun = read_begun(folder)
    if begun is not None:
        names.update(begun.removing)
    return names


def _fill_report(report: PackReport, manifest: Manifest) -> None:
    report.sample_count = manifest.record_count
    report.shard_count = sum(len(shards) for shards in manifest.splits.values())
    report.splits = {
        split: sum(shard.record_count for shard in shards)
        for split, shards in manifest.splits.items()
    }
    report.bytes_out = sum(
        shard.size_bytes for shards in manifest.splits.values() for shard in shards
    )


def _unreadable(problems: list[str], sample_count: int) -> SourceError:
    listed = "\n".join(f"  {problem}" for problem in problems)
    return SourceError(
        f"{len(problems)} of {sample_count} samples cannot be read, so nothing was packed. Mend or "
        f"remove them, or skip them with on_error='skip' (--skip-errors):\n{listed}",
        problems,
    )


def _encode(content: Content, kinds: Mapping[str, Kind]) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, SequenceExample):
        return encode_sequence_example(*content, kinds)
    return encode_example(content, kinds)


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
        self._surveys = {split: SchemaSurvey() for split in plan.splits}
        self._failures: dict[int, str] = {}  # number of the sample -> why it cannot be read
        self._writers: dict[str, ShardWriter] = {}  # file -> its writer
        self.bytes_in = 0
        self.notes: dict[str, list[str]] = {}

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
            raise _unreadable(self.skipped(), len(self._listing.samples))
        for split in self._plan.splits:
            writers = [self._writers[shard.file] for shard in self._plan.shards_of(split)]
            if not any(writer.record_count for writer in writers):
                raise SourceError(
                    f"no sample of split {split!r} can be read, so nothing was packed; the first: "
                    + self.skipped()[0],
                    self.skipped(),
                )

    def skipped(self) -> list[str]:
        """The samples that could not be read, in the order of the listing."""
        return [self._failures[number] for number in sorted(self._failures)]

    def manifest(self, made_from: Mapping[str, Any]) -> Manifest:
        splits = {}
        for split in self._plan.splits:
            writers = [self._writers[shard.file] for shard in self._plan.shards_of(split)]
            splits[split] = tuple(
                ShardEntry(writer.path.name, writer.record_count, writer.size_bytes, writer.crc32c)
                for writer in writers
            )
        return Manifest(
            splits,
            self._survey.finish(),
            {split: survey.finish() for split, survey in self._surveys.items()},
            self._plan.compression,
            self._listing.class_names,
            made_from,
        )

    def publish(self, manifest: Manifest, replaced: set[str]) -> None:
        """Give everything its final name, the manifest last.

        Whatever needs space on the disk is written before the first name is given.
        """
        internal = self._folder / INTERNAL_FOLDER
        small_files = {MANIFEST_NAME: manifest.to_bytes()}
        if manifest.class_names is not None:
            small_files = {LABELS_NAME: labels_to_bytes(manifest.class_names)} | small_files
        for name, data in small_files.items():
            write_synced(internal / f"{name}.partial", data)
        new = {*(shard.file for shard in self._plan.shards), *small_files}
        begun = Begun(self._plan.fingerprint, tuple(sorted(replaced | new)))
        write_atomically(begun_path(self._folder), begun.to_bytes())
        remove(self._folder / MANIFEST_NAME)  # from here on the folder is no dataset
        for name in sorted({*replaced, LABELS_NAME} - new):
            remove(self._folder / name)
            remove(internal / f"{name}.index")
        for shard in self._plan.shards:
            self._writers[shard.file].publish()
        for name in small_files:
            publish(internal / f"{name}.partial", self._folder / name)
        sync_folder(self._folder)
        remove(begun_path(self._folder))

    def clean_up(self) -> None:
        """Remove what has no final name, from this job or one that was killed."""
        for writer in self._writers.values():
            writer.discard()
        with suppress(FileAccessError):
            for entry in list_folder(self._folder / INTERNAL_FOLDER):
                if entry.name.endswith(".partial"):
                    remove(entry.path)

    def _write_shard(self, shard: PlannedShard) -> None:
        writer = ShardWriter(
            self._folder / shard.file,
            compression=self._plan.compression,
            overwrite=True,
            temporary=self._folder / INTERNAL_FOLDER / f"{shard.file}.partial",
        )
        with self._lock:
            self._writers[shard.file] = writer
        for number in shard.samples:
            if self._stopping.is_set():
                return
            self._write_sample(writer, number)
        self._read_back(writer, self._surveys[shard.split])

    def _write_sample(self, writer: ShardWriter, number: int) -> None:
        sample = self._listing.samples[number]
        failure = None
        try:
            content = self._source.read_sample(sample, self._note)
        except (CorruptDataError, FileAccessError, SourceError) as error:
            failure = str(error)
        else:
            writer.write(_encode(content, self._kinds))
        with self._lock:
            if failure is None:
                self.bytes_in += sample.size_bytes
            else:
                self._failures[number] = failure
            self._done += 1
            if self._progress is not None:
                self._progress(self._done, len(self._listing.samples))

    def _note(self, what: str, where: str) -> None:
        with self._lock:
            self.notes.setdefault(what, []).append(where)

    def _read_back(self, writer: ShardWriter, survey: SchemaSurvey) -> None:
        """Prove what was written, every checksum, and count its features for the schema."""
        records = 0
        for block in writer.written_blocks():
            with self._lock:
                self._survey.update(block.buffer, block.starts, block.lengths)
                survey.update(block.buffer, block.starts, block.lengths)
            records += len(block)
        if records != writer.record_count:
            raise CorruptDataError(
                Defect.RECORD_COUNT,
                f"{writer.record_count} records were written, {records} came back; the disk or "
                "its file system is failing",
                path=writer.path,
            )
