"""What a verification found: of each shard, and of all together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from recordsmith.errors import CorruptDataError
from recordsmith.examining.verification.explanations import explain
from recordsmith.wire import Compression

MAX_DEFECTS_PER_SHARD = 1000
"""So many are listed one by one; the rest of a shard's are only counted."""


@dataclass
class ShardFindings:
    """What was found in one shard.

    path: of the file.
    size_bytes: as it was when its reading began.
    compression: none, gzip or zlib, as its first bytes say; None where they were not looked at.
    record_count: intact records.
    seen_count: records, intact or not, up to where the way was lost.
    defects: what is wrong with it; not all are listed.
    defect_count: how many there are, listed or not.
    notices: what should be known and condemns nothing.
    checksum: CRC-32C of the file, if all of it was read.
    is_read: whether it could be read at all.
    picture_count: pictures that were decoded.
    """

    path: str
    size_bytes: int = 0
    compression: Compression | None = None
    record_count: int = 0
    seen_count: int = 0
    defects: list[CorruptDataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[CorruptDataError] = field(default_factory=list)
    checksum: int | None = None
    is_read: bool = True
    picture_count: int = 0

    @property
    def is_good(self) -> bool:
        """Nothing is wrong with it."""
        return self.defect_count == 0

    def add(self, errors: Iterable[CorruptDataError], count: int | None = None) -> None:
        """Add defects; `count` is how many there really are, if not all are among these."""
        given = list(errors)
        for error in given:
            if error.path is None:
                error.path = self.path
        self.defects += given[: max(0, MAX_DEFECTS_PER_SHARD - len(self.defects))]
        self.defect_count += len(given) if count is None else count

    def notice(self, errors: Iterable[CorruptDataError]) -> None:
        """Add what should be known."""
        for error in errors:
            if error.path is None:
                error.path = self.path
            self.notices.append(error)


@dataclass
class VerifyReport:
    """What a verification found.

    record_count: intact records.
    expected_record_count: how many the manifest lists, missing shards included; None without one.
    shard_count: shards that were read.
    size_bytes: bytes that were read.
    defects: everything that is wrong, at most 1,000 of each shard.
    defect_count: how many there are, listed or not.
    notices: what should be known and condemns nothing: bad reads that were right the second time,
        files that changed while they were read.
    shards: what was found in each shard that was read.
    picture_count: pictures that were decoded, where that was asked for.
    is_deep: whether payloads and pictures were looked at, not only checksums.
    remarks: sentences on what was not looked at, and why.
    """

    record_count: int = 0
    expected_record_count: int | None = None
    shard_count: int = 0
    size_bytes: int = 0
    defects: list[CorruptDataError] = field(default_factory=list)
    defect_count: int = 0
    notices: list[CorruptDataError] = field(default_factory=list)
    shards: list[ShardFindings] = field(default_factory=list)
    picture_count: int = 0
    is_deep: bool = False
    remarks: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Nothing is wrong."""
        return self.defect_count == 0

    @property
    def compressions(self) -> dict[str, Compression]:
        """Of the shards that are compressed, by path: offsets count their decompressed bytes."""
        return {
            shard.path: shard.compression
            for shard in self.shards
            if shard.compression not in (None, "none")
        }

    def add(self, defects: Iterable[CorruptDataError]) -> None:
        """Add defects that are of no shard that was read."""
        listed = list(defects)
        self.defects += listed
        self.defect_count += len(listed)

    def add_shard(self, shard: ShardFindings) -> None:
        """Add what was found in a shard."""
        self.shards.append(shard)
        self.shard_count += 1
        self.record_count += shard.record_count
        self.size_bytes += shard.size_bytes
        self.picture_count += shard.picture_count
        self.defects += shard.defects
        self.defect_count += shard.defect_count
        self.notices += shard.notices

    def to_json(self) -> dict[str, Any]:
        """records, expected, shards, size_bytes, pictures, deep, defect_count, defects and notices
        with defect, path, position, offset, feature (null where none is meant) and detail;
        explanations: for each name that occurs its meaning and advice; remarks.
        """
        names = dict.fromkeys(str(error.defect) for error in (*self.defects, *self.notices))
        return {
            "records": self.record_count,
            "expected": self.expected_record_count,
            "shards": self.shard_count,
            "size_bytes": self.size_bytes,
            "pictures": self.picture_count,
            "deep": self.is_deep,
            "defect_count": self.defect_count,
            "defects": [_to_json(error) for error in self.defects],
            "notices": [_to_json(error) for error in self.notices],
            "explanations": {name: explain(name)._asdict() for name in names},
            "remarks": self.remarks,
        }


def _to_json(error: CorruptDataError) -> dict[str, Any]:
    return {
        "defect": str(error.defect),
        "path": error.path,
        "position": error.position,
        "offset": error.offset,
        "feature": error.feature,
        "detail": error.detail,
    }
