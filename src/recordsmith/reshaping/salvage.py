"""`recordsmith.salvage`: recover intact records from damaged shards.

Each shard becomes one of the same name in a new folder, with every record whose checksums match.
All shards appear together when they are written and synced. The damaged files are only read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from recordsmith.building import (
    WRITING_THREADS,
    ShardResult,
    check_folder,
    clean_up,
    existing_dataset,
    files_to_replace,
    locked_folder,
    make_manifest,
    note_files,
    publish_dataset,
    writing,
)
from recordsmith.dataset import LABEL_MAP_NAME, Manifest
from recordsmith.dataset.locate import Located, Paths, as_places, locate
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    OptionError,
    SourceError,
    accessing,
)
from recordsmith.reshaping.inputs import check_separate, fingerprint
from recordsmith.reshaping.shard_recovery import SalvagedShard, recover_shard
from recordsmith.serialization import fields_to_json
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.summaries import Report
from recordsmith.wire import HEAD_BYTES, Compression, detect_compression
from recordsmith.words import first_of
from recordsmith.work import Progress, Work, thread_count

_NAMED = 5  # files in a message
_NOT_IN_NAMES = re.compile(r"[/\\:\0]")


@dataclass(repr=False)
class SalvageReport(Report):
    """The report of `salvage`.

    folder: the new dataset.
    shards: the results of all shards.
    missing: a message for each missing shard.
    notices: other defects of the dataset, which were ignored.
    """

    _shown = ("record_count", "expected_count", "lost_bytes")

    folder: Location
    shards: list[SalvagedShard] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def record_count(self) -> int:
        """Number of recovered records."""
        return sum(shard.record_count for shard in self.shards)

    @property
    def expected_count(self) -> int | None:
        """Number of records before the damage, if manifests contain it for all shards."""
        counts = [shard.expected_count for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    @property
    def lost_bytes(self) -> int:
        """Number of lost bytes in all shards."""
        return sum(shard.lost_bytes for shard in self.shards)

    @property
    def repair_count(self) -> int:
        """Number of fixed bits."""
        return sum(shard.repair_count for shard in self.shards)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known to be lost."""
        return not self.missing and all(shard.is_complete for shard in self.shards)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        totals = ("record_count", "expected_count", "is_complete", "lost_bytes", "repair_count")
        return fields_to_json(self) | fields_to_json(self, totals)


def salvage(
    paths: Paths,
    out: PlaceLike,
    *,
    split: str | None = None,
    overwrite: bool = False,
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
        threads: number of threads; None for one per processor, at most 8.
        progress: called as `progress(done, total)` with bytes.

    Returns:
        A report of recovered, lost and repaired records by shard. A shard without intact records
        has no file in `out`. If the same job ran before, it runs again.

    Raises:
        CorruptDataError: not-a-tfrecord, missing-shard: no record can be recovered. Nothing is
            written.
        SourceError: no shard is damaged, and none has records.
        OptionError: no TFRecord files; `out` contains another dataset or an input.
        FileAccessError: a path does not exist, or `out` cannot be written.

    Example:
        >>> recordsmith.salvage("damaged", "recovered")  # doctest: +SKIP
    """
    folder = as_folder(out)
    check_folder(folder)
    work = Work(thread_count(threads, most=WRITING_THREADS), progress)
    located = locate(paths, split, around_defects=True)
    places = [shard.location for shard in located.shards]
    check_separate(folder, [*as_places(paths), *places])
    job = _Salvage(located, folder, _shard_names(places), work)
    with locked_folder(folder) as notices:
        job.report.notices += notices
        earlier = existing_dataset(
            folder,
            job.fingerprint,
            list(job.names),
            has_label_map=job.has_label_map,
            overwrite=overwrite,
        )
        with writing(folder, job.fingerprint, (), overwrite=overwrite, earlier=earlier) as claimed:
            clean_up(claimed)
            note_files(claimed, job.names)
            manifest = job.manifest(job.run(claimed))
            publish_dataset(
                claimed,
                job.fingerprint,
                manifest,
                has_label_map=job.has_label_map,
                replaced=files_to_replace(claimed, list(manifest.splits), earlier),
            )
    return job.report


@dataclass
class _Salvage:
    """One call of `salvage`. names: of the new shards, in the order of the damaged ones."""

    located: Located
    folder: Location
    names: list[str]
    work: Work

    def __post_init__(self) -> None:
        located = self.located
        self.compression = _common_compression(located)
        self.fingerprint = self._fingerprint()
        self.has_label_map = located.class_names is not None and any(
            (shard.location.parent / LABEL_MAP_NAME).exists() for shard in located.shards[:1]
        )
        self.report = SalvageReport(
            self.folder,
            missing=[str(missing.error) for missing in located.missing],
            notices=[str(error) for error in located.ignored],
        )

    def _fingerprint(self) -> str:
        """Return a hash of names, sizes, modification times and manifest of the inputs."""
        located, files = self.located, list[Any]()
        for shard, name in zip(located.shards, self.names, strict=True):
            info = shard.info()
            expected = None if shard.entry is None else shard.entry.record_count
            known = (name, shard.split, expected)
            files.append((shard.location.identity, *known, info.size_bytes, info.version))
        missing = [(missing.split, missing.location.name) for missing in located.missing]
        return fingerprint(["salvage", files, missing, self.compression, located.class_names])

    def run(self, folder: Location) -> list[ShardResult | None]:
        """Recover all shards into a folder; a result is None for a shard without intact records."""
        shards = self.located.shards
        self.work.total += sum(shard.size_bytes for shard in shards)
        outcomes = self.work.each(
            lambda number: recover_shard(
                shards[number], folder, self.names[number], self.compression, self.work.advance
            ),
            range(len(shards)),
        )
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
            for shard, result in zip(self.located.shards, results, strict=True)
            if result is not None
        ]
        old, report = self.located.manifest, self.report
        return make_manifest(
            dict.fromkeys(split for split, _ in rescued),
            rescued,
            self.compression,
            self.located.class_names,
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
            formats=None if old is None else old.formats,
        )

    def _failure(self) -> DataError | SourceError:
        """Return the error for shards without intact records."""
        shards = self.report.shards
        if not shards:
            for missing in self.located.missing:
                return missing.error
            return CorruptDataError(
                Defect.BROKEN_MANIFEST,
                "the manifest lists no shards",
                remedy="If there are shards, pass them as a glob, or remove the manifest.",
            )
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


def _common_compression(located: Located) -> Compression:
    """Return the compression for the new dataset: that of the manifest, or of most shards."""
    if located.manifest is not None:
        return located.manifest.compression
    heads: Counter[Compression] = Counter()
    for shard in located.shards:
        with shard.location.open_read() as file, accessing(shard.location):
            head = file.read(HEAD_BYTES)
        heads[detect_compression(head)] += bool(head)
    return heads.most_common(1)[0][0] if heads else "none"


def _shard_names(places: list[Location]) -> list[str]:
    """Return the name of each shard in the new folder; OptionError if two have the same."""
    names: dict[str, Location] = {}
    for place in places:
        name = _NOT_IN_NAMES.sub("_", place.name)
        if name in names:
            raise OptionError(
                f"{names[name]} and {place} would have the same name in the new dataset",
                option="paths",
                value=name,
                remedy="Salvage them into separate folders.",
            )
        names[name] = place
    return list(names)
