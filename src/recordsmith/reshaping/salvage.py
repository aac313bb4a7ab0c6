"""What can be had back from damaged shards, as a dataset of its own.

Each shard becomes one of the same name in a new folder, with every record that its checksums prove
whole. Nothing appears there before all of them are written and synced. The damaged files are only
read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardResult,
    check_folder,
    clean_up,
    clean_up_after,
    earlier_dataset,
    manifest_of,
    publish_dataset,
    replaced_names,
    tidying_up,
    working_in,
)
from recordsmith.dataset import LABEL_MAP_NAME, Manifest, Shard
from recordsmith.dataset.locate import Located, Paths, as_paths, locate
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, OptionError
from recordsmith.files import PathLike, Progress, as_path, read_head, size_of
from recordsmith.reshaping.fingerprints import fingerprint
from recordsmith.reshaping.inputs import check_apart
from recordsmith.reshaping.salvage_note import keep_findings, kept_findings
from recordsmith.reshaping.salvage_report import SalvageReport
from recordsmith.reshaping.shard_rescue import ShardRescue
from recordsmith.wire import HEAD_BYTES, Compression, detect_compression
from recordsmith.work import Work, thread_count

_NOT_IN_NAMES = re.compile(r"[/\\:\0]")


def salvage(
    paths: Paths,
    out: PathLike,
    *,
    split: str | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SalvageReport:
    """Rescue every whole record from damaged shards into a new dataset.

    A record comes back if its bytes prove it with both checksums, wherever it lies. Where one
    flipped bit in a length or in a checksum is all that is wrong, it is turned back, and reported.
    No record is put together from pieces.

    Args:
        paths: a file, folder, glob or a list of these. Of a folder whose manifest is broken or
            missing, the files that are there.
        out: the folder of the new dataset; neither that of the shards nor in it.
        split: only this one.
        overwrite: replace a dataset that is in `out`; also the one that this very job wrote.
        threads: how many shards are read at once; None: one for each processor, at most 8.
        progress: told the bytes done and in all.

    Returns:
        What was rescued, lost and repaired, shard by shard. A shard of which nothing is left has no
        file in `out`. If the same job was done before, what it found then.

    Raises:
        CorruptDataError: not-a-tfrecord, empty-file, missing-shard: nothing can be rescued;
            nothing is written then.
        OptionError: nothing there looks like a TFRecord; `out` holds another dataset, or is the
            folder of the shards.
        FileAccessError: a path does not exist, or `out` cannot be written.
    """
    folder = as_path(out)
    check_folder(folder)
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    found = locate(paths, split, around_defects=True)
    check_apart(folder, [*as_paths(paths), *(shard.path for shard in found.shards)])
    names = _names_of(found.shards)
    job = _Salvage(found, folder, names, work)
    with working_in(folder):
        earlier = earlier_dataset(
            folder,
            job.fingerprint,
            list(names.values()),
            has_label_map=job.has_label_map,
            overwrite=overwrite,
        )
        if earlier is not None and not overwrite:
            findings = kept_findings(folder, job.fingerprint, found.shards)
            if findings is not None:
                clean_up_after(folder)
                job.report.shards, job.report.is_new = findings, False
                return job.report
        clean_up(folder)
        with tidying_up(folder, ()):
            results = job.run()
            manifest = job.manifest(results)
            publish_dataset(
                folder,
                job.fingerprint,
                manifest,
                has_label_map=job.has_label_map,
                replaced=replaced_names(folder, list(manifest.splits), earlier),
            )
            keep_findings(folder, job.fingerprint, job.report.shards)
    return job.report


class _Salvage:
    """One job: the shards that were found, and what comes of them."""

    def __init__(
        self,
        found: Located,
        folder: Path,
        names: Mapping[Path, str],
        work: Work,
    ) -> None:
        self._found = found
        self._folder = folder
        self._names = names
        self._work = work
        self._compression = _compression_of(found)
        self.fingerprint = self._fingerprint()
        self.has_label_map = found.class_names is not None and any(
            (shard.path.parent / LABEL_MAP_NAME).is_file() for shard in found.shards[:1]
        )
        self.report = SalvageReport(
            folder,
            missing=[str(error) for _, error in found.missing],
            notices=[str(error) for error in found.ignored],
        )

    def _fingerprint(self) -> str:
        """Of this job: equal for the same files, as far as name, size and time tell, and for the
        same words of their manifest.
        """
        found, files = self._found, list[Any]()
        for shard in found.shards:
            with suppress(OSError):
                status = os.stat(shard.path)
                expected = None if shard.entry is None else shard.entry.record_count
                told = (self._names[shard.path], shard.split, expected)
                files.append(
                    (os.path.realpath(shard.path), *told, status.st_size, status.st_mtime_ns)
                )
        missing = [(split, os.path.basename(error.path or "")) for split, error in found.missing]
        return fingerprint(["salvage", files, missing, self._compression, found.class_names])

    def run(self) -> list[ShardResult | None]:
        """Rescue all shards; None for one of which nothing is left.

        Raises:
            CorruptDataError: nothing is left of any.
        """
        shards = self._found.shards
        for shard in shards:
            with suppress(FileAccessError):
                self._work.total += size_of(shard.path)
        rescue = ShardRescue(self._folder, self._compression, self._work.advance)
        outcomes = self._work.each(
            lambda shard: rescue.rewrite(shard, self._names[shard.path]), shards
        )
        self.report.shards = [salvaged for salvaged, _ in outcomes]
        results = [result for _, result in outcomes]
        if not any(results):
            raise self._nothing()
        return results

    def manifest(self, results: list[ShardResult | None]) -> Manifest:
        """What the new dataset consists of."""
        rescued = [
            (shard.split, result)
            for shard, result in zip(self._found.shards, results, strict=True)
            if result is not None
        ]
        old = self._found.manifest
        report = self.report
        return manifest_of(
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
                "plan": self.fingerprint,
                "before": None if old is None else dict(old.made_from),
            },
        )

    def _nothing(self) -> CorruptDataError:
        """The error for shards of which nothing is left, and what the first of them is."""
        if not self.report.shards:
            for _, error in self._found.missing:
                return error
            return CorruptDataError(
                Defect.BROKEN_MANIFEST,
                "the manifest lists no shards, so there is nothing to rescue. If there are some, "
                "name them with a glob, or remove the manifest.",
            )
        first = self.report.shards[0]
        others = len(self.report.shards) - 1
        more = f" Nor from {others:,} other files." if others else ""
        defect = Defect.NOT_A_TFRECORD if first.size_bytes else Defect.EMPTY_FILE
        return CorruptDataError(
            defect,
            f"no record could be rescued from it: {first.problem}.{more} Nothing was written.",
            path=first.path,
        )


def _compression_of(found: Located) -> Compression:
    """One for the new dataset: what the manifest says, or what most shards have."""
    if found.manifest is not None:
        return found.manifest.compression
    heads: Counter[Compression] = Counter()
    for shard in found.shards:
        with suppress(FileAccessError):
            heads[detect_compression(read_head(shard.path, HEAD_BYTES))] += 1
    return heads.most_common(1)[0][0] if heads else "none"


def _names_of(shards: list[Shard]) -> dict[Path, str]:
    """For each shard its name in the new folder.

    Raises:
        OptionError: two have the same.
    """
    names: dict[Path, str] = {}
    taken: dict[str, Path] = {}
    for shard in shards:
        name = _NOT_IN_NAMES.sub("_", shard.path.name)
        other = taken.setdefault(name, shard.path)
        if shard.path in names or other != shard.path:
            raise OptionError(
                f"{other} and {shard.path} would have the same name in the new dataset; salvage "
                "each into a folder of its own"
            )
        names[shard.path] = name
    return names
