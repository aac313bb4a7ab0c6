"""What came of a job, as it is told to its caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.dataset import Manifest


@dataclass
class ReshardReport:
    """What `reshard` did.

    records_in: how many records the inputs have.
    record_count: how many there are now.
    shard_count: how many files of records were written.
    splits: how many records each has.
    bytes_in, bytes_out: of the files that were read, and of the shards.
    notices: what should be known of the inputs.
    is_new: False if a finished dataset of the same plan was there already.
    """

    folder: Path
    records_in: int = 0
    record_count: int = 0
    shard_count: int = 0
    splits: dict[str, int] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @classmethod
    def of(cls, folder: Path, manifest: Manifest, *, is_new: bool) -> ReshardReport:
        """What a finished dataset says of itself and of how it was made."""
        made_from = manifest.made_from
        shards = [shard for shards in manifest.splits.values() for shard in shards]
        return cls(
            folder,
            records_in=int(made_from.get("records_in", 0)),
            record_count=manifest.record_count,
            shard_count=len(shards),
            splits={
                split: sum(shard.record_count for shard in of_split)
                for split, of_split in manifest.splits.items()
            },
            bytes_in=int(made_from.get("bytes_in", 0)),
            bytes_out=sum(shard.size_bytes for shard in shards),
            notices=tuple(map(str, made_from.get("notices", ()))),
            is_new=is_new,
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, shards."""
        return {
            "folder": str(self.folder),
            "records_in": self.records_in,
            "records": self.record_count,
            "shards": self.shard_count,
            "splits": self.splits,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "notices": list(self.notices),
            "is_new": self.is_new,
        }
