"""What came of a whole job, as it is told to its caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.building import Noted
from recordsmith.dataset import Manifest


@dataclass
class PackReport:
    """What `pack` did.

    sample_count: how many were packed.
    class_count: how many classes there are, or None.
    shard_count: how many files of records there are.
    kept_count: how many of these an earlier run, which was stopped, had completed.
    splits: how many records each has.
    bytes_in, bytes_out: of the pictures, and of the shards.
    skipped: samples that could not be read, with the reason.
    notes: what was changed in samples or should be known of them, with counts and places.
    notices: what the source passed over.
    is_new: False if a finished dataset of the same plan was there already.
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
    notes: dict[str, Noted] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    is_new: bool = True

    def fill(self, manifest: Manifest) -> None:
        """Take what a finished dataset says of itself."""
        self.sample_count = manifest.record_count
        self.shard_count = manifest.shard_count
        self.splits = manifest.record_counts
        self.bytes_out = manifest.size_bytes

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called samples, classes, shards and
        kept.
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
            "notes": {
                what: {"count": noted.count, "places": noted.places}
                for what, noted in self.notes.items()
            },
            "notices": list(self.notices),
            "is_new": self.is_new,
        }
