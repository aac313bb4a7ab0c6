"""Reports of `salvage`: recovered, lost and repaired records of each shard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from recordsmith.errors import Defect
from recordsmith.serialization import fields_to_json
from recordsmith.stores import Location
from recordsmith.summaries import Report
from recordsmith.wire import LostBytes, Repair

MOST_LISTED = 1000
"""The most ranges and repairs of a shard that are listed; all are counted."""


@dataclass
class SalvagedShard:
    """The result of one shard.

    path: the damaged file.
    file: its name in the new dataset; None if no record could be recovered.
    record_count: number of recovered records.
    expected_count: number of records in the manifest; None without a manifest.
    size_bytes: of the damaged file.
    compression: none, gzip or zlib.
    lost: byte ranges without intact records, at most MOST_LISTED; in the decompressed data if the
        file is compressed.
    lost_count, lost_bytes: number and total size of all these ranges.
    breaks: ranges of the file that cannot be read or decompressed, at most MOST_LISTED; an empty
        range at the end of the file means that the end mark is missing.
    repairs: fixed bits, at most MOST_LISTED.
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
    lost: list[LostBytes] = field(default_factory=list)
    lost_count: int = 0
    lost_bytes: int = 0
    breaks: list[LostBytes] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
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

    def add_lost(self, lost: LostBytes) -> None:
        """Add a lost range."""
        self.lost_count += 1
        self.lost_bytes += lost.stop - lost.start
        if len(self.lost) < MOST_LISTED:
            self.lost.append(lost)

    def add_unreadable(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Add ranges that the disk cannot read."""
        self.breaks += [LostBytes(*span, Defect.UNREADABLE_SHARD) for span in ranges]
        self.breaks = sorted(self.breaks)[:MOST_LISTED]

    def add_repair(self, repair: Repair) -> None:
        """Add a fixed bit."""
        self.repair_count += 1
        if len(self.repairs) < MOST_LISTED:
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
    is_new: False if this is the report of an earlier run.
    """

    _shown = ("record_count", "expected_count", "lost_bytes")

    folder: Location
    shards: list[SalvagedShard] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    is_new: bool = True

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
