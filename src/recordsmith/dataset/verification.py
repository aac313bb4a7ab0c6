"""Are these shards what they should be? Every checksum, and what the manifest says of them.

Each shard is read once, in order, by one of several threads; a damaged payload does not end the
reading of its shard, a damaged length does, as the way to the next record is lost.
"""

from __future__ import annotations

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.dataset.manifest import ShardEntry
from recordsmith.dataset.shard import Shard
from recordsmith.errors import CorruptDataError, Defect, FileAccessError
from recordsmith.files import Progress, open_file, size_of
from recordsmith.wire import crc32c

MAX_DEFECTS_PER_SHARD = 1000
"""So many are listed one by one; the rest of a shard's are only counted."""


@dataclass
class VerifyReport:
    """What a verification found.

    records: intact records.
    shards: shards that were read.
    size_bytes: bytes that were read.
    defects: everything that is wrong, at most MAX_DEFECTS_PER_SHARD of each shard.
    defect_count: how many there are, listed or not.
    """

    records: int = 0
    shards: int = 0
    size_bytes: int = 0
    defects: list[CorruptDataError] = field(default_factory=list)
    defect_count: int = 0

    @property
    def is_good(self) -> bool:
        """Nothing is wrong."""
        return self.defect_count == 0

    def to_json(self) -> dict[str, Any]:
        """records, shards, size_bytes, defect_count, and defects with defect, path, position,
        offset (null where none is meant) and detail.
        """
        return {
            "records": self.records,
            "shards": self.shards,
            "size_bytes": self.size_bytes,
            "defect_count": self.defect_count,
            "defects": [
                {
                    "defect": str(error.defect),
                    "path": error.path,
                    "position": error.position,
                    "offset": error.offset,
                    "detail": error.detail,
                }
                for error in self.defects
            ],
        }


def verify(
    paths: Paths,
    split: str | None = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check every record of every shard, and the shards against their manifest.

    Args:
        paths: a file, folder, glob or a list of these.
        split: only this one.
        threads: how many shards are read at once; None: one for each processor.
        progress: told the bytes done and in all.

    Returns:
        The report; defects of the data are in it and never raised.

    Raises:
        FileAccessError: a path does not exist or cannot be read.
        OptionError: nothing there looks like a TFRecord, or there is no such split.
    """
    report = VerifyReport()
    try:
        located = locate(paths, split)
    except CorruptDataError as error:  # a broken manifest: a finding, not a failure
        report.defects.append(error)
        report.defect_count = 1
        return report
    report.defects += located.defects
    report.defect_count = len(located.defects)
    entries = _entries(located)
    total = sum(shard.size_bytes for shard in located.shards)
    lock = threading.Lock()

    def advance(count: int) -> None:
        with lock:
            report.size_bytes += count
            if progress is not None:
                progress(report.size_bytes, total)

    def check(shard: Shard) -> _ShardFindings:
        findings = _ShardFindings(shard)
        findings.read(entries.get(shard.path), advance)
        return findings

    workers = max(1, min(threads or os.cpu_count() or 1, len(located.shards)))
    with ThreadPoolExecutor(workers) as pool:
        try:
            for findings in pool.map(check, located.shards):
                report.shards += 1
                report.records += findings.records
                report.defects += findings.defects
                report.defect_count += findings.defect_count
        except BaseException:
            pool.shutdown(cancel_futures=True, wait=False)
            raise
    return report


def _entries(located: Located) -> dict[Path, ShardEntry]:
    if located.manifest is None:
        return {}
    by_name = {entry.file: entry for shards in located.manifest.splits.values() for entry in shards}
    return {shard.path: by_name[shard.path.name] for shard in located.shards}


class _ShardFindings:
    """Reads one shard and collects what is wrong with it."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.records = 0
        self.defects: list[CorruptDataError] = []
        self.defect_count = 0

    def read(self, entry: ShardEntry | None, advance: Any) -> None:
        try:
            size = size_of(self._shard.path)
            with open_file(self._shard.path) as file:
                stream = _WatchedStream(file, advance, entry is not None)
                # the file's own bytes say how it is compressed, not the manifest
                shard = Shard(self._shard.path, self._shard.split)
                for block in shard.blocks(on_defect=self._add, stream=cast(BinaryIO, stream)):
                    self.records += len(block)
                stream.drain()
        except FileAccessError as error:
            self._add(CorruptDataError(Defect.MISSING_SHARD, str(error), path=self._shard.path))
            return
        if size == 0 and (entry is None or entry.record_count):
            self._add(
                CorruptDataError(
                    Defect.EMPTY_FILE,
                    "the file has 0 bytes, so no records. Its writer may have been stopped before "
                    "it wrote anything, or the copy failed.",
                    path=self._shard.path,
                )
            )
        elif entry is not None:
            self._compare(entry, size, stream.crc32c)

    def _add(self, error: CorruptDataError) -> None:
        if error.path is None:
            error.path = str(self._shard.path)
        self.defect_count += 1
        if len(self.defects) < MAX_DEFECTS_PER_SHARD:
            self.defects.append(error)

    def _compare(self, entry: ShardEntry, size: int, checksum: int) -> None:
        """With the manifest: says only what the records have not said already."""
        if size != entry.size_bytes:
            self._differs(Defect.SHARD_SIZE, f"{size} bytes", f"{entry.size_bytes}")
        elif checksum != entry.crc32c and not self.defects:
            self._differs(Defect.SHARD_CHECKSUM, f"checksum {checksum:08x}", f"{entry.crc32c:08x}")
        if self.records != entry.record_count and not self.defects:
            self._differs(Defect.RECORD_COUNT, f"{self.records} records", f"{entry.record_count}")

    def _differs(self, defect: Defect, found: str, expected: str) -> None:
        self._add(
            CorruptDataError(
                defect,
                f"the shard has {found}, its manifest says {expected}. It was changed, replaced or "
                "mixed up with another after it was packed.",
                path=self._shard.path,
            )
        )


class _WatchedStream(io.RawIOBase):
    """A file, not owned, that tells how far it was read; keeps a checksum of it on request."""

    def __init__(self, file: BinaryIO, advance: Any, with_checksum: bool) -> None:
        self._file = file
        self._advance = advance
        self._with_checksum = with_checksum
        self.crc32c = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = self._file.readinto(target)  # type: ignore[attr-defined]
        if self._with_checksum and count:
            self.crc32c = crc32c(memoryview(target)[:count], self.crc32c)
        self._advance(count)
        return cast(int, count)

    def drain(self) -> None:
        """Read what is left, for the checksum."""
        scratch = bytearray(1 << 20)
        while self._with_checksum and self.readinto(scratch):
            pass
