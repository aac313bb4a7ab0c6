"""`recordsmith.salvage`: recover intact records from damaged shards.

Each shard becomes one of the same name in a new folder, with every record whose checksums match.
All shards appear together when they are written and synced. The damaged files are only read.
What cannot be decompressed is skipped, and frames whose two checksums match are written byte for
byte. The written shards are read back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, cast

from recordsmith.dataset import (
    INTERNAL_FOLDER,
    LABEL_MAP_NAME,
    Located,
    Manifest,
    Paths,
    Shard,
    ShardWriter,
    as_places,
    locate,
)
from recordsmith.format import wire
from recordsmith.stores import Location, PlaceLike, ScratchFile, as_folder
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    OptionError,
    SourceError,
    accessing,
    located,
)
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import first_of
from recordsmith.support.work import Progress, WorkerPool, thread_count
from recordsmith.writing.building import publishing
from recordsmith.writing.building.fingerprints import fingerprint
from recordsmith.writing.building.shards import ShardResult, open_partial_shard, survey_written
from recordsmith.writing.reshaping.inputs import check_separate

MAX_LISTED = 1000
"""The most ranges and repairs of a shard that are listed; all are counted."""

_NAMED = 5  # files in a message
_NOT_IN_NAMES = re.compile(r"[/\\:\0]")


@dataclass
class SalvagedShard:
    """The result of one shard.

    path: the damaged file.
    file: its name in the new dataset; None if no record could be recovered.
    record_count: number of recovered records.
    expected_count: number of records in the manifest; None without a manifest.
    size_bytes: of the damaged file.
    compression: none, gzip or zlib.
    lost: byte ranges without intact records, at most MAX_LISTED; in the decompressed data if the
        file is compressed.
    lost_count, lost_bytes: number and total size of all these ranges.
    breaks: ranges of the file that cannot be decompressed, at most MAX_LISTED; an empty range at
        the end of the file means that the end mark is missing.
    repairs: fixed bits, at most MAX_LISTED.
    repair_count: number of fixed bits.
    problem: why no record could be recovered; otherwise empty.
    """

    path: str
    split: str
    file: str | None = None
    record_count: int = 0
    expected_count: int | None = None
    size_bytes: int = 0
    compression: str = "none"
    lost: list[wire.LostBytes] = field(default_factory=list)
    lost_count: int = 0
    lost_bytes: int = 0
    breaks: list[wire.LostBytes] = field(default_factory=list)
    repairs: list[wire.Repair] = field(default_factory=list)
    repair_count: int = 0
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is lost."""
        return not (
            self.lost_count
            or self.breaks
            or self.problem
            or (self.expected_count or 0) > self.record_count
        )

    def add_lost(self, lost: wire.LostBytes) -> None:
        self.lost_count += 1
        self.lost_bytes += lost.stop - lost.start
        if len(self.lost) < MAX_LISTED:
            self.lost.append(lost)

    def add_repair(self, repair: wire.Repair) -> None:
        self.repair_count += 1
        if len(self.repairs) < MAX_LISTED:
            self.repairs.append(repair)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return fields_to_json(self)


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
            missing, all its files are used; if it lists missing files, also those that it does not
            list.
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
        report = rs.salvage("damaged.tfrecord", "recovered")
        print(report.lost_bytes)
    """
    folder = as_folder(out)
    publishing.check_folder(folder)
    workers = WorkerPool(thread_count(threads, most=publishing.WRITING_THREADS), progress)
    located = locate(paths, split, around_defects=True)
    locations = [shard.location for shard in located.shards]
    check_separate(folder, [*as_places(paths), *locations])
    job = _SalvageJob(located, folder, _shard_names(locations), workers)
    with publishing.locked_folder(folder) as notices:
        job.report.notices += notices
        earlier = publishing.existing_dataset(
            folder,
            job.fingerprint,
            list(job.names),
            has_label_map=job.has_label_map,
            overwrite=overwrite,
        )
        with publishing.claimed_folder(
            folder, job.fingerprint, job.names, overwrite=overwrite, earlier=earlier
        ) as claimed:
            publishing.clean_up(claimed)
            manifest = job.manifest(job.run(claimed))
            publishing.publish_dataset(
                claimed, manifest, has_label_map=job.has_label_map, earlier=earlier
            )
    return job.report


@dataclass
class _SalvageJob:
    """One call of `salvage`. names: of the new shards, in the order of the damaged ones."""

    located: Located
    folder: Location
    names: list[str]
    workers: WorkerPool

    def __post_init__(self) -> None:
        located = self.located
        self.compression = _common_compression(located)
        self.fingerprint = self._fingerprint()
        self.has_label_map = located.label_map is not None or (
            located.class_names is not None
            and any(
                (shard.location.parent / LABEL_MAP_NAME).exists() for shard in located.shards[:1]
            )
        )
        self.report = SalvageReport(
            self.folder,
            missing=[str(missing.error) for missing in located.missing],
            notices=[str(error) for error in located.ignored],
        )
        layers = () if located.manifest is None else located.manifest.layers
        for layer in layers:  # its values may be those of other records than the recovered ones
            self.report.notices.append(
                f"left out the layer {layer.name!r}: records have what they had without it "
                f"({first_of([*map(repr, layer.features)], _NAMED)}); add it again with "
                "`recordsmith layers add`"
            )
        if left_out := [location.name for location in located.left_out]:
            self.report.notices.append(
                f"left out {format_count(len(left_out), 'other file')} of the folder: "
                f"{first_of(left_out, _NAMED)}; pass a glob to search them for records"
            )

    def _fingerprint(self) -> str:
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
        self.workers.total += sum(shard.size_bytes for shard in shards)
        outcomes = self.workers.each(
            lambda number: _recover_shard(
                shards[number], folder, self.names[number], self.compression, self.workers.advance
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
        rescued = [
            (shard.split, result)
            for shard, result in zip(self.located.shards, results, strict=True)
            if result is not None
        ]
        old, report = self.located.manifest, self.report
        return publishing.make_manifest(
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
            keypoint_classes={} if old is None else old.keypoint_classes,
        )

    def _failure(self) -> DataError | SourceError:
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


def _common_compression(located: Located) -> wire.Compression:
    """Return the compression for the new dataset: that of the manifest, or of most shards."""
    if located.manifest is not None:
        return located.manifest.compression
    heads: Counter[wire.Compression] = Counter()
    for shard in located.shards:
        with shard.location.open_read() as file, accessing(shard.location):
            head = file.read(wire.HEAD_BYTES)
        heads[wire.detect_compression(head)] += bool(head)
    return heads.most_common(1)[0][0] if heads else "none"


def _shard_names(locations: list[Location]) -> list[str]:
    """Return the name of each shard in the new folder; OptionError if two have the same."""
    names: dict[str, Location] = {}
    for location in locations:
        name = _NOT_IN_NAMES.sub("_", location.name)
        if name in names:
            raise OptionError(
                f"{names[name]} and {location} would have the same name in the new dataset",
                option="paths",
                value=name,
                remedy="Salvage them into separate folders.",
            )
        names[name] = location
    return list(names)


# -- one shard -----------------------------------------------------------------------------------


def _recover_shard(
    shard: Shard,
    folder: Location,
    name: str,
    compression: wire.Compression,
    advance: Callable[[int], None],
) -> tuple[SalvagedShard, ShardResult | None]:
    """Write the intact records of a shard under a temporary name.

    Returns the report, and the written shard; None if a damaged shard has no intact records.
    """
    expected = None if shard.entry is None else shard.entry.record_count
    salvaged = SalvagedShard(str(shard.location), shard.split, expected_count=expected)
    with ExitStack() as stack:
        opened = stack.enter_context(shard.open_read())
        stack.enter_context(accessing(shard.location))
        stack.enter_context(located(shard.location))
        salvaged.size_bytes = opened.size_bytes
        file = cast(BinaryIO, opened)
        head = file.read(wire.HEAD_BYTES)
        salvaged.compression = wire.detect_compression(head)
        if salvaged.compression == "none":
            stream, advance_copy = file, advance
        else:
            # decompressing the file reports all progress
            stream, advance_copy = _inflate(file, salvaged, folder, advance), lambda _: None
        writer = stack.enter_context(open_partial_shard(folder, name, compression))
        _copy(stream, writer, salvaged, advance_copy)
        salvaged.record_count = writer.record_count
        is_damaged = salvaged.lost_count or salvaged.breaks or expected
        if not writer.record_count and expected != 0 and is_damaged:
            salvaged.problem = _failure_reason(head)
            writer.discard()
            return salvaged, None
        schema = survey_written(writer)
    salvaged.file = name
    return salvaged, ShardResult(writer.entry(), schema.packed(), salvaged.size_bytes)


def _copy(
    stream: BinaryIO, writer: ShardWriter, salvaged: SalvagedShard, advance: Callable[[int], None]
) -> None:
    reported = 0
    for finding in wire.recover(stream):
        if isinstance(finding, wire.IntactFrames):
            writer.write_piece(finding.frames, finding.lengths)
            reached = finding.offset + len(finding.frames)
        elif isinstance(finding, wire.Repair):
            salvaged.add_repair(finding)
            reached = finding.offset
        else:
            salvaged.add_lost(finding)
            reached = finding.stop
        advance(max(0, reached - reported))
        reported = max(reported, reached)


def _inflate(
    file: BinaryIO, salvaged: SalvagedShard, folder: Location, advance: Callable[[int], None]
) -> BinaryIO:
    """Decompress a shard to an unnamed temporary file, which is seekable."""
    internal = folder / INTERNAL_FOLDER
    spool = ScratchFile(folder=internal if internal.store.can_rename else None)
    compression = cast(Literal["gzip", "zlib"], salvaged.compression)
    reported = 0
    for piece in wire.inflate_damaged_stream(file, compression):
        if isinstance(piece, wire.LostBytes):
            if len(salvaged.breaks) < MAX_LISTED:
                salvaged.breaks.append(piece)
            continue
        spool.append(piece)
        reached = file.tell()
        advance(max(0, reached - reported))
        reported = max(reported, reached)
    return cast(BinaryIO, spool)


def _failure_reason(head: bytes) -> str:
    """Explain from the first bytes of a file why no record was recovered."""
    if not head:
        return "it is empty"
    foreign = wire.detect_other_format(head)
    if foreign is not None:
        return foreign.sentences.removesuffix(".")
    if not any(head):
        return "it begins with zeros and has no record with matching checksums"
    return "it has no record with matching checksums"
