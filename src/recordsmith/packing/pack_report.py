"""The report of a packing job."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.building import Noted
from recordsmith.dataset import Manifest
from recordsmith.summaries import Report


@dataclass(repr=False)
class PackReport(Report):
    """The result of `pack`.

    folder: the folder of the dataset.
    sample_count: number of packed samples.
    class_count: number of classes, or None.
    shard_count: number of shards.
    kept_count: number of shards that an interrupted earlier run had completed.
    splits: number of records of each split.
    bytes_in, bytes_out: total size of the samples and of the shards.
    skipped: the first unreadable samples, at most 100, with the reason.
    skipped_count: number of unreadable samples.
    notes: changes to samples and properties worth knowing, with counts and places.
    notices: what the source ignored.
    images_are_checked: whether every image was decoded; otherwise only headers and the checksums
        inside PNGs were checked.
    is_new: False if the finished dataset of the same plan already existed.
    """

    folder: Path
    sample_count: int = 0
    class_count: int | None = None
    shard_count: int = 0
    kept_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    notes: dict[str, Noted] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    images_are_checked: bool = False
    is_new: bool = True

    def fill(self, manifest: Manifest) -> None:
        """Fill in the numbers of a finished dataset."""
        self.sample_count = manifest.record_count
        self.shard_count = manifest.shard_count
        self.splits = manifest.record_counts
        self.bytes_out = manifest.size_bytes

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict of all fields; the counts are named samples, classes, shards
        and kept.
        """
        return {
            "folder": str(self.folder),
            "samples": self.sample_count,
            "classes": self.class_count,
            "shards": self.shard_count,
            "kept": self.kept_count,
            "splits": self.splits,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "skipped": self.skipped,
            "skipped_count": self.skipped_count,
            "notes": {
                what: {"count": noted.count, "places": noted.places}
                for what, noted in self.notes.items()
            },
            "notices": list(self.notices),
            "images_are_checked": self.images_are_checked,
            "is_new": self.is_new,
        }
