"""The report of a packing job."""

from __future__ import annotations

from dataclasses import dataclass, field

from recordsmith.building import Occurrences
from recordsmith.dataset import Manifest
from recordsmith.linting import LintReport
from recordsmith.stores import Location
from recordsmith.summaries import Report


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
    images_are_checked: whether every image was decoded; otherwise only headers and the checksums
        inside PNGs were checked.
    lint: what the checks before packing found; None if they were off.
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
    images_are_checked: bool = False
    is_new: bool = True
    lint: LintReport | None = None

    def fill(self, manifest: Manifest) -> None:
        """Fill in the numbers of a finished dataset."""
        self.sample_count = manifest.record_count
        self.shard_count = manifest.shard_count
        self.splits = manifest.record_counts
        self.bytes_out = manifest.size_bytes
