"""What came of a rescue: of each shard what is there again, what is lost, and what was mended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.errors import Defect
from recordsmith.wire import LostRange, Repair

MOST_LISTED = 1000
"""So many ranges and repairs of a shard are listed one by one; the rest are only counted."""


@dataclass
class SalvagedShard:
    """One shard.

    path: the damaged file.
    file: its name in the new dataset; None if it was left out, as nothing could be rescued.
    record_count: how many records were rescued.
    expected_count: how many the manifest says there were; None where there is none.
    size_bytes: of the damaged file.
    compression: none, gzip or zlib.
    lost: ranges of bytes of which no record could be had, at most MOST_LISTED; in the
        decompressed data, if the file is compressed.
    lost_count, lost_bytes: how many ranges there are, listed or not, and their bytes.
    breaks: ranges of the file that the disk could not read, or that cannot be decompressed, at
        most MOST_LISTED; an empty one at its end says that the end mark is missing.
    repairs: bits that were turned back, at most MOST_LISTED.
    repair_count: how many there are.
    problem: why nothing could be rescued, if so; else "".
    """

    path: Path
    split: str
    file: str | None = None
    record_count: int = 0
    expected_count: int | None = None
    size_bytes: int = 0
    compression: str = "none"
    lost: list[LostRange] = field(default_factory=list)
    lost_count: int = 0
    lost_bytes: int = 0
    breaks: list[LostRange] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    repair_count: int = 0
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Nothing of it is lost."""
        return not (
            self.lost_count
            or self.breaks
            or self.problem
            or (self.expected_count or 0) > self.record_count
        )

    def add_lost(self, lost: LostRange) -> None:
        """One more range is lost."""
        self.lost_count += 1
        self.lost_bytes += lost.stop - lost.start
        if len(self.lost) < MOST_LISTED:
            self.lost.append(lost)

    def add_unreadable(self, ranges: Iterable[tuple[int, int]]) -> None:
        """The disk cannot read some ranges of the file."""
        self.breaks += [LostRange(*span, Defect.UNREADABLE_SHARD) for span in ranges]
        self.breaks = sorted(self.breaks)[:MOST_LISTED]

    def add_repair(self, repair: Repair) -> None:
        """One more bit was turned back."""
        self.repair_count += 1
        if len(self.repairs) < MOST_LISTED:
            self.repairs.append(repair)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, expected."""
        return {
            "path": str(self.path),
            "split": self.split,
            "file": self.file,
            "records": self.record_count,
            "expected": self.expected_count,
            "size_bytes": self.size_bytes,
            "compression": self.compression,
            "lost_count": self.lost_count,
            "lost_bytes": self.lost_bytes,
            "lost": [_range_to_json(lost) for lost in self.lost],
            "breaks": [_range_to_json(lost) for lost in self.breaks],
            "repair_count": self.repair_count,
            "repairs": [repair._asdict() for repair in self.repairs],
            "problem": self.problem,
        }


@dataclass
class SalvageReport:
    """What `salvage` did.

    folder: the new dataset.
    shards: every shard that was looked at, also those of which nothing is left.
    missing: shards that should be there and are not: a sentence for each.
    notices: what was wrong with the dataset besides, and was gone around.
    is_new: False if the same job was done before: then all this is what it found.
    """

    folder: Path
    shards: list[SalvagedShard] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_new: bool = True

    @property
    def record_count(self) -> int:
        """How many records were rescued."""
        return sum(shard.record_count for shard in self.shards)

    @property
    def expected_count(self) -> int | None:
        """How many there were in these shards, if a manifest says it of all of them."""
        counts = [shard.expected_count for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    @property
    def lost_bytes(self) -> int:
        """How many bytes are lost in all shards."""
        return sum(shard.lost_bytes for shard in self.shards)

    @property
    def repair_count(self) -> int:
        """How many bits were turned back."""
        return sum(shard.repair_count for shard in self.shards)

    @property
    def is_whole(self) -> bool:
        """Nothing is lost, as far as can be known."""
        return not self.missing and all(shard.is_whole for shard in self.shards)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict of everything above; counts are called records, expected."""
        return {
            "folder": str(self.folder),
            "records": self.record_count,
            "expected": self.expected_count,
            "is_whole": self.is_whole,
            "lost_bytes": self.lost_bytes,
            "repair_count": self.repair_count,
            "shards": [shard.to_json() for shard in self.shards],
            "missing": self.missing,
            "notices": self.notices,
            "is_new": self.is_new,
        }


def _range_to_json(lost: LostRange) -> dict[str, Any]:
    return {"start": lost.start, "stop": lost.stop, "defect": str(lost.defect)}
