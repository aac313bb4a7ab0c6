"""The report of a verification: findings for each shard and for the whole dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from recordsmith.errors import DataError
from recordsmith.examining.verification.defect_explanations import explain
from recordsmith.examining.verification.verify_content import verify_content
from recordsmith.reports import ReportContent
from recordsmith.summaries import Report
from recordsmith.wire import Compression

MAX_DEFECTS_PER_SHARD = 1000
"""How many defects of a shard are listed; further ones are only counted."""


@dataclass
class ShardFindings:
    """The findings for one shard.

    path: path of the file.
    size_bytes: size of the file when reading began.
    compression: none, gzip or zlib, detected from the first bytes; None if not detected.
    record_count: number of intact records.
    seen_count: number of records, intact or not, up to a damaged length.
    defects: the first defects, at most MAX_DEFECTS_PER_SHARD.
    defect_count: number of all defects.
    notices: findings that are not defects.
    checksum: CRC-32C of the file; None if it was not read completely.
    is_read: whether the file could be read.
    image_count: number of decoded images.
    """

    path: str
    size_bytes: int = 0
    compression: Compression | None = None
    record_count: int = 0
    seen_count: int = 0
    defects: list[DataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[DataError] = field(default_factory=list)
    checksum: int | None = None
    is_read: bool = True
    image_count: int = 0

    @property
    def is_good(self) -> bool:
        """Whether the shard has no defects."""
        return self.defect_count == 0

    def add(self, errors: Iterable[DataError]) -> None:
        """Add defects."""
        given = list(errors)
        for error in given:
            if error.path is None:
                error.path = self.path
        self.defects += given[: max(0, MAX_DEFECTS_PER_SHARD - len(self.defects))]
        self.defect_count += len(given)

    def notice(self, errors: Iterable[DataError]) -> None:
        """Add notices."""
        for error in errors:
            if error.path is None:
                error.path = self.path
            self.notices.append(error)


@dataclass(repr=False)
class VerifyReport(Report):
    """The report of a verification.

    record_count: number of intact records.
    expected_record_count: number of records in the manifest, including missing shards; None without
        a manifest.
    shard_count: number of shards read.
    size_bytes: number of bytes read.
    defects: the defects found, at most 1,000 per shard.
    defect_count: number of all defects.
    notices: findings that are not defects: bad reads that were right the second time, files that
        changed while they were being read.
    shards: the findings for each shard.
    image_count: number of decoded images.
    is_deep: whether payloads and images were checked, not only checksums.
    unchecked: what was not checked, and why.
    """

    _shown = ("is_good",)

    record_count: int = 0
    expected_record_count: int | None = None
    shard_count: int = 0
    size_bytes: int = 0
    defects: list[DataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[DataError] = field(default_factory=list)
    shards: list[ShardFindings] = field(default_factory=list)
    image_count: int = 0
    is_deep: bool = False
    unchecked: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether no defects were found."""
        return self.defect_count == 0

    @property
    def compressions(self) -> dict[str, Compression]:
        """The compression of each compressed shard, by path; offsets count decompressed bytes."""
        return {
            shard.path: shard.compression
            for shard in self.shards
            if shard.compression not in (None, "none")
        }

    def add(self, defects: Iterable[DataError]) -> None:
        """Add defects that do not belong to a shard that was read."""
        listed = list(defects)
        self.defects += listed
        self.defect_count += len(listed)

    def add_shard(self, shard: ShardFindings) -> None:
        """Add the findings for a shard."""
        self.shards.append(shard)
        self.shard_count += 1
        self.record_count += shard.record_count
        self.size_bytes += shard.size_bytes
        self.image_count += shard.image_count
        self.defects += shard.defects
        self.defect_count += shard.defect_count
        self.notices += shard.notices

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        return verify_content(self)

    def to_json(self) -> dict[str, Any]:
        """Return records, expected, shards, size_bytes, images, deep, defect_count, defects,
        notices, explanations and unchecked.

        Each defect and notice has defect, path, record, offset, feature (null if unknown) and
        detail. `explanations` maps each defect name that occurs to its meaning and advice.
        """
        names = dict.fromkeys(str(error.defect) for error in (*self.defects, *self.notices))
        return {
            "records": self.record_count,
            "expected": self.expected_record_count,
            "shards": self.shard_count,
            "size_bytes": self.size_bytes,
            "images": self.image_count,
            "deep": self.is_deep,
            "defect_count": self.defect_count,
            "defects": [_to_json(error) for error in self.defects],
            "notices": [_to_json(error) for error in self.notices],
            "explanations": {name: explain(name)._asdict() for name in names},
            "unchecked": self.unchecked,
        }


def _to_json(error: DataError) -> dict[str, Any]:
    return {
        "defect": str(error.defect),
        "path": error.path,
        "record": error.record,
        "offset": error.offset,
        "feature": error.feature,
        "detail": error.detail,
    }
