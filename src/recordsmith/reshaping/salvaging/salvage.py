"""`recordsmith.salvage`: recover intact records from damaged shards.

Each shard becomes one of the same name in a new folder, with every record whose checksums match.
All shards appear together when they are written and synced. The damaged files are only read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardResult,
    check_folder,
    check_written_bytes,
    clean_up,
    clean_up_after_kill,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    note_files,
    publish_dataset,
    writing,
)
from recordsmith.dataset import LABEL_MAP_NAME, Manifest, Shard
from recordsmith.dataset.locate import Located, Paths, as_places, locate
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    OptionError,
    SourceError,
    accessing,
)
from recordsmith.reshaping.inputs.fingerprints import fingerprint
from recordsmith.reshaping.inputs.input_shards import check_separate
from recordsmith.reshaping.salvaging.fault_tolerant_file import FaultTolerantFile
from recordsmith.reshaping.salvaging.salvage_note import load_results, save_results
from recordsmith.reshaping.salvaging.salvage_report import SalvageReport
from recordsmith.reshaping.salvaging.salvage_task import name_in_dataset, outcome, salvage_tasks
from recordsmith.reshaping.salvaging.shard_recovery import ShardRecovery
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.tasks import Engine, run_on
from recordsmith.wire import HEAD_BYTES, Compression, detect_compression
from recordsmith.words import first_of
from recordsmith.work import Progress, Work, thread_count

_NAMED = 5  # files in a message


def salvage(
    paths: Paths,
    out: PlaceLike,
    *,
    split: str | None = None,
    overwrite: bool = False,
    engine: Engine | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SalvageReport:
    """Recover every intact record from damaged shards into a new dataset.

    Recovers each record whose two checksums match, anywhere in its file. Fixes and reports single
    flipped bits in lengths and checksums. Never joins pieces of records.

    Args:
        paths: a file, folder, glob or a list of these. If the manifest of a folder is broken or
            missing, all its files are used.
        out: the folder of the new dataset, outside of the input folders.
        split: only this split. None for all.
        overwrite: replace an existing dataset, including one that this job wrote.
        engine: what recovers the shards, such as `rs.engines.Processes(4)`; None for threads of
            this process. Its processes must see the files and `out` under the same paths.
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report of recovered, lost and repaired records by shard. A shard without intact records
        has no file in `out`. If the same job ran before, its report.

    Raises:
        CorruptDataError: not-a-tfrecord, missing-shard: no record can be recovered. Nothing is
            written.
        SourceError: no shard is damaged, and none has records.
        OptionError: no TFRecord files; `out` contains another dataset or an input.
        FileAccessError: a path does not exist, or `out` cannot be written; or a process of the
            engine does not see the same file.

    Example:
        >>> recordsmith.salvage("damaged", "recovered")  # doctest: +SKIP
    """
    folder = as_folder(out)
    check_folder(folder)
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    found = locate(paths, split, around_defects=True)
    check_separate(folder, [*as_places(paths), *(shard.location for shard in found.shards)])
    names = _shard_names(found.shards)
    job = _Salvage(found, folder, names, work)
    with locked_folder(folder) as notices:
        job.report.notices += notices
        earlier = existing_dataset(
            folder,
            job.fingerprint,
            list(names.values()),
            has_label_map=job.has_label_map,
            overwrite=overwrite,
        )
        if earlier is not None and not overwrite:
            findings = load_results(folder, job.fingerprint, found.shards)
            if findings is not None:
                clean_up_after_kill(folder)
                job.report.shards, job.report.is_new = findings, False
                return job.report
        with writing(folder, job.fingerprint, (), overwrite=overwrite, earlier=earlier) as claimed:
            clean_up(claimed)
            note_files(claimed, names.values())
            results = job.run(claimed, engine)
            manifest = job.manifest(results)
            publish_dataset(
                claimed,
                job.fingerprint,
                manifest,
                has_label_map=job.has_label_map,
                replaced=files_to_replace(claimed, list(manifest.splits), earlier),
            )
            save_results(claimed, job.fingerprint, job.report.shards)
    return job.report


class _Salvage:
    """One call of `salvage`."""

    def __init__(
        self,
        found: Located,
        folder: Location,
        names: Mapping[Location, str],
        work: Work,
    ) -> None:
        self._found = found
        self._folder = folder
        self._names = names
        self._work = work
        self._compression = _common_compression(found)
        self.fingerprint = self._fingerprint()
        self.has_label_map = found.class_names is not None and any(
            (shard.location.parent / LABEL_MAP_NAME).exists() for shard in found.shards[:1]
        )
        self.report = SalvageReport(
            folder,
            missing=[str(missing.error) for missing in found.missing],
            notices=[str(error) for error in found.ignored],
        )

    def _fingerprint(self) -> str:
        """Return a hash of names, sizes, modification times and manifest of the inputs."""
        found, files = self._found, list[Any]()
        for shard in found.shards:
            info = shard.info()
            expected = None if shard.entry is None else shard.entry.record_count
            known = (self._names[shard.location], shard.split, expected)
            files.append((shard.location.identity, *known, info.size_bytes, info.version))
        missing = [(missing.split, missing.location.name) for missing in found.missing]
        return fingerprint(["salvage", files, missing, self._compression, found.class_names])

    def run(self, folder: Location, engine: Engine | None) -> list[ShardResult | None]:
        """Recover all shards into a folder; a result is None for a shard without intact records.

        Raises:
            CorruptDataError: no shard has intact records.
            SourceError: no shard is damaged, and none has records.
        """
        shards = self._found.shards
        self._work.total += sum(shard.size_bytes for shard in shards)
        if engine is None:
            recover = ShardRecovery(folder, self._compression, self._work.advance)
            outcomes = self._work.each(
                lambda shard: recover.rewrite(shard, self._names[shard.location]), shards
            )
        else:
            tasks = salvage_tasks(shards, self._names, folder, self._compression, self.fingerprint)
            found = run_on(engine, tasks, self._work.advance)
            outcomes = [outcome(shard, found[number]) for number, shard in enumerate(shards)]
            written = [result for _, result in outcomes if result is not None]
            check_written_bytes(folder, written, self._work)
        self.report.shards = [salvaged for salvaged, _ in outcomes]
        results = [result for _, result in outcomes]
        is_empty = not self.report.record_count and self.report.expected_count != 0
        if not any(results) or is_empty:
            raise self._failure()
        return results

    def manifest(self, results: list[ShardResult | None]) -> Manifest:
        """Return the manifest of the new dataset."""
        rescued = [
            (shard.split, result)
            for shard, result in zip(self._found.shards, results, strict=True)
            if result is not None
        ]
        old = self._found.manifest
        report = self.report
        return make_manifest(
            dict.fromkeys(split for split, _ in rescued),
            rescued,
            self._compression,
            self._found.class_names,
            {
                "salvage": {
                    "expected": report.expected_count,
                    "lost_bytes": report.lost_bytes,
                    "repair_count": report.repair_count,
                },
                "fingerprint": self.fingerprint,
                "previous": None if old is None else dict(old.provenance),
            },
            arrow_schema=None if old is None else old.arrow_schema,
            tfds=None if old is None else old.carried_tfds,
        )

    def _failure(self) -> DataError | SourceError:
        """Return the error for shards without intact records."""
        if not self.report.shards:
            for missing in self._found.missing:
                return missing.error
            return CorruptDataError(
                Defect.BROKEN_MANIFEST,
                "the manifest lists no shards",
                remedy="If there are shards, pass them as a glob, or remove the manifest.",
            )
        shards = self.report.shards
        first = next((shard for shard in shards if shard.problem), None)
        if first is None:
            names = first_of([shard.path for shard in shards], _NAMED)
            return SourceError(f"no records and no damage in {names}", path=shards[0].path)
        others = len(shards) - 1
        more = f" or {others:,} other files" if others else ""
        return CorruptDataError(
            Defect.NOT_A_TFRECORD,
            f"no record could be recovered from this{more}: {first.problem}",
            remedy="Nothing was written.",
            path=first.path,
        )


def _common_compression(found: Located) -> Compression:
    """Return the compression for the new dataset: that of the manifest, or of most shards."""
    if found.manifest is not None:
        return found.manifest.compression
    heads: Counter[Compression] = Counter()
    for shard in found.shards:
        with shard.location.open_read() as file, accessing(shard.location):
            head = FaultTolerantFile(file).read(HEAD_BYTES) or b""
        heads[detect_compression(head)] += bool(head)
    return heads.most_common(1)[0][0] if heads else "none"


def _shard_names(shards: list[Shard]) -> dict[Location, str]:
    """Return the name of each shard in the new folder.

    Raises:
        OptionError: two shards have the same name.
    """
    names: dict[Location, str] = {}
    taken: dict[str, Location] = {}
    for shard in shards:
        name = name_in_dataset(shard.location.name)
        other = taken.setdefault(name, shard.location)
        if shard.location in names or other != shard.location:
            raise OptionError(
                f"{other} and {shard.location} would have the same name in the new dataset",
                option="paths",
                value=name,
                remedy="Salvage them into separate folders.",
            )
        names[shard.location] = name
    return names
