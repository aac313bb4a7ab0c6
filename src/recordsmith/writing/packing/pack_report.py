"""What `pack` reports: its result and unreadable samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from recordsmith.dataset import Manifest
from recordsmith.sources import join_names
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError, option, with_options
from recordsmith.support.problems import MAX_PROBLEMS, Problems
from recordsmith.support.summaries import Report
from recordsmith.support.words import note_text
from recordsmith.writing.building.shards import Occurrences, ShardResult, add_notes
from recordsmith.writing.packing.pack_plan import PackJob

_CLASSES = 20
"""How many classes of dropped objects are named."""


@dataclass(repr=False)
class PackReport(Report):
    """The result of `pack`.

    folder: the folder of the dataset.
    sample_count: number of packed samples.
    class_count: number of classes, or None.
    shard_count: number of shards.
    reused_count: number of shards that an interrupted earlier run had completed.
    splits: number of records of each split.
    bytes_in, bytes_out: total size of the samples and of the shards.
    skipped: the first unreadable samples, at most 100, with the reason.
    skipped_count: number of unreadable samples.
    notes: changes to samples and properties worth knowing, with counts and places.
    notices: what the source ignored.
    account: which files of the source were read as what, or left out and why, with their counts;
        None for a source without a folder. See `recordsmith detect`.
    deviations: where `stratify` had to keep groups whole, for each split, and each fold such as
        `fold 0`, the share of each class in it minus the share that was wanted. At most 1,000.
    images_are_checked: whether every image was decoded; otherwise only headers and the checksums
        inside PNGs were checked.
    is_new: False if the finished dataset of the same plan already existed.
    """

    folder: Location
    sample_count: int = 0
    class_count: int | None = None
    shard_count: int = 0
    reused_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    notes: dict[str, Occurrences] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    account: dict[str, Any] | None = None
    deviations: dict[str, dict[str, float]] = field(default_factory=dict)
    images_are_checked: bool = False
    is_new: bool = True

    def fill(self, manifest: Manifest) -> None:
        """Fill in the numbers of a finished dataset."""
        self.sample_count = manifest.record_count
        self.shard_count = manifest.shard_count
        self.splits = manifest.record_counts
        self.bytes_out = manifest.size_bytes


def report_existing(
    report: PackReport, earlier: Manifest, sample_count: int, skip_errors: bool
) -> None:
    """Fill the report from a finished dataset of the same plan."""
    skipped, count, bytes_in = map(earlier.provenance.get, ("skipped", "skipped_count", "bytes_in"))
    report.skipped = list(map(str, skipped)) if isinstance(skipped, list) else []
    report.skipped_count = count if isinstance(count, int) else len(report.skipped)
    if report.skipped and not skip_errors:
        raise _unreadable(report, sample_count)
    report.is_new = False
    report.bytes_in = bytes_in if isinstance(bytes_in, int) else 0
    report.fill(earlier)


def add_results(
    report: PackReport, job: PackJob, results: Sequence[ShardResult], skip_errors: bool
) -> None:
    """Add what was skipped and changed in all shards to the report."""
    failures = {number: why for result in results for number, why in result.skipped.items()}
    report.skipped = [with_options(failures[number]) for number in sorted(failures)[:MAX_PROBLEMS]]
    report.skipped_count = job.sample_count - sum(result.record_count for result in results)
    report.bytes_in = sum(result.bytes_in for result in results)
    report.reused_count = sum(result.was_reused for result in results)
    notes: dict[str, Occurrences] = {}
    for result in results:
        add_notes(notes, result.notes)
    report.notes = {with_options(sentence): noted for sentence, noted in notes.items()}
    if failures and not skip_errors:
        raise _unreadable(report, job.sample_count)
    counts = dict.fromkeys(job.splits, 0)
    for shard, result in zip(job.shards, results, strict=True):
        counts[shard.split] += result.record_count
    for split, record_count in counts.items():
        if not record_count:
            raise SourceError(
                f"all samples of split {split!r} are unreadable, so nothing was packed; first: "
                + report.skipped[0],
                _problems(report),
            )
    _add_objects(report, results)


def _add_objects(report: PackReport, results: Sequence[ShardResult]) -> None:
    """Report the objects that were left out; fails if none is packed although there were some."""
    counts = [result.label_count for result in results if result.label_count is not None]
    if not counts:
        return
    all_notes = Occurrences()
    for noted in report.notes.values():
        all_notes.extend(noted)
    left_out = all_notes.left_out
    if not any(counts) and (left_out or report.skipped):
        problems = [
            f"{note_text(noted.count, what)}: {noted.places[0]}"
            for what, noted in report.notes.items()
            if noted.left_out
        ]
        problems += [f"unreadable: {why}" for why in report.skipped]
        raise SourceError(
            "no object would be packed, although the annotations have some",
            problems,
            remedy="Fix the annotations, or pack the images without them with "
            f"{option('format', 'files')}:",
            lists_problems=True,
        )
    most = sorted((-number, name) for name, number in left_out.items() if name)
    if most:
        dropped = join_names([f"{-number:,} of {name}" for number, name in most], shown=_CLASSES)
        report.notices += (f"objects dropped: {dropped}",)
    if not any(counts):
        report.notices += ("no image has an object",)


def _unreadable(report: PackReport, sample_count: int) -> SourceError:
    return SourceError(
        f"{report.skipped_count} of {sample_count} samples are unreadable, so nothing was packed",
        _problems(report),
        remedy=f"Fix or remove them, or rerun with {option('skip_errors', True)}:",
        lists_problems=True,
    )


def _problems(report: PackReport) -> Problems:
    problems = Problems()
    problems.extend(report.skipped, report.skipped_count)
    return problems
