"""What came of a job, as it is told to its caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.dataset import Manifest


@dataclass
class ReshardReport:
    """What `reshard` did.

    records_in: how many records the inputs have.
    record_count: how many there are now.
    shard_count: how many files of records there are.
    kept_count: how many of these an earlier run, which was stopped, had completed.
    splits: how many records each has.
    bytes_in, bytes_out: of the files that were read, and of the shards.
    notices: what should be known of the inputs.
    is_new: False if a finished dataset of the same plan was there already.
    """

    folder: Path
    records_in: int = 0
    record_count: int = 0
    shard_count: int = 0
    kept_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def of(
        cls, folder: Path, manifest: Manifest, *, is_new: bool, kept_count: int = 0
    ) -> ReshardReport:
        """What a finished dataset says of itself and of how it was made."""
        made_from = manifest.made_from
        return cls(
            folder,
            records_in=int(made_from.get("records_in", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            kept_count=kept_count,
            splits=manifest.record_counts,
            bytes_in=int(made_from.get("bytes_in", 0)),
            bytes_out=manifest.size_bytes,
            notices=tuple(map(str, made_from.get("notices", ()))),
            is_new=is_new,
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, shards, kept."""
        return {
            "folder": str(self.folder),
            "records_in": self.records_in,
            "records": self.record_count,
            "shards": self.shard_count,
            "kept": self.kept_count,
            "splits": self.splits,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "notices": list(self.notices),
            "is_new": self.is_new,
        }


@dataclass
class AppendReport:
    """What `append` did.

    appended_count: how many records came to the dataset.
    record_count, shard_count: how many there are now.
    splits: how many records each has now.
    renamed_count: how many shards that were there have another name now.
    notices: what should be known.
    is_new: False if these records had been appended before.
    """

    folder: Path
    appended_count: int = 0
    record_count: int = 0
    shard_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    renamed_count: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def of(cls, folder: Path, manifest: Manifest, step: Mapping[str, Any]) -> AppendReport:
        """What a dataset says of itself, and of one time that something was appended."""
        return cls(
            folder,
            appended_count=int(step.get("records", 0)),
            record_count=manifest.record_count,
            shard_count=manifest.shard_count,
            splits=manifest.record_counts,
            renamed_count=int(step.get("renamed", 0)),
            notices=tuple(map(str, step.get("notices", ()))),
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called appended, records, shards and
        renamed.
        """
        return {
            "folder": str(self.folder),
            "appended": self.appended_count,
            "records": self.record_count,
            "shards": self.shard_count,
            "splits": self.splits,
            "renamed": self.renamed_count,
            "notices": list(self.notices),
            "is_new": self.is_new,
        }
