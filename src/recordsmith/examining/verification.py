"""Are these shards what they should be? Every checksum, and what the manifest says of them.

Each shard is read once, in order, by one of several threads; a damaged payload does not end the
reading of its shard, a damaged length does, as the way to the next record is lost.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from recordsmith.dataset.labels import LABELS_NAME, read_labels
from recordsmith.dataset.locate import Located, Paths, locate
from recordsmith.dataset.manifest import ShardEntry
from recordsmith.dataset.shard import Shard, empty_file
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, MissingFileError
from recordsmith.files import Progress, accessing, open_file, size_of
from recordsmith.wire import crc32c, read_blocks

MAX_DEFECTS_PER_SHARD = 1000
"""So many are listed one by one; the rest of a shard's are only counted."""


@dataclass
class VerifyReport:
    """What a verification found.

    record_count: intact records.
    shard_count: shards that were read.
    size_bytes: bytes that were read.
    defects: everything that is wrong, at most MAX_DEFECTS_PER_SHARD of each shard.
    defect_count: how many there are, listed or not.
    """

    record_count: int = 0
    shard_count: int = 0
    size_bytes: int = 0
    defects: list[CorruptDataError] = field(default_factory=list)
    defect_count: int = 0

    @property
    def is_good(self) -> bool:
        """Nothing is wrong."""
        return self.defect_count == 0

    def add(self, defects: Iterable[CorruptDataError], count: int | None = None) -> None:
        """Add defects; `count` is how many there really are, if not all are listed."""
        listed = list(defects)
        self.defects += listed
        self.defect_count += len(listed) if count is None else count

    def to_json(self) -> dict[str, Any]:
        """records, shards, size_bytes, defect_count, and defects with defect, path, position,
        offset (null where none is meant) and detail.
        """
        return {
            "records": self.record_count,
            "shards": self.shard_count,
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
        report.add(error for _, error in located.missing)
        report.add(_check_labels(located))
    except CorruptDataError as error:  # a broken manifest: a finding, not a failure
        report.add([error])
        return report
    total = sum(size_of(shard.path) for shard in located.shards)
    lock = threading.Lock()
    stopping = threading.Event()

    def advance(count: int) -> None:
        if stopping.is_set():
            raise _StoppedError
        with lock:
            report.size_bytes += count
            if progress is not None:
                progress(report.size_bytes, total)

    def check(shard: Shard) -> _ShardFindings:
        findings = _ShardFindings(shard)
        findings.read(advance)
        return findings

    workers = max(1, min(threads or os.cpu_count() or 1, len(located.shards)))
    with ThreadPoolExecutor(workers) as pool:
        try:
            for findings in pool.map(check, located.shards):
                report.shard_count += 1
                report.record_count += findings.record_count
                report.add(findings.defects, findings.defect_count)
        except BaseException:
            stopping.set()
            pool.shutdown(cancel_futures=True)
            raise
    return report


class _StoppedError(Exception):
    """Somebody else failed, or the user wants to stop: leave the shard at hand."""


def _check_labels(located: Located) -> list[CorruptDataError]:
    """`labels.txt` must say what the manifest says."""
    manifest = located.manifest
    if manifest is None or manifest.class_names is None or not located.shards:
        return []
    folder = located.shards[0].path.parent
    if read_labels(folder) == manifest.class_names:
        return []
    return [
        CorruptDataError(
            Defect.LABELS,
            f"{LABELS_NAME} does not name the classes that the manifest names. One of them was "
            "changed after packing, or the file is missing.",
            path=folder / LABELS_NAME,
        )
    ]


class _ShardFindings:
    """Reads one shard and collects what is wrong with it."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self.record_count = 0
        self.defects: list[CorruptDataError] = []
        self.defect_count = 0

    def read(self, advance: Callable[[int], None]) -> None:
        """The file's own bytes say how it is compressed, not its manifest."""
        path, entry = self._shard.path, self._shard.entry
        try:
            with open_file(path) as file, accessing(path):
                stream = _WatchedStream(file, advance, with_checksum=entry is not None)
                for block in read_blocks(cast(BinaryIO, stream), on_defect=self._add):
                    self.record_count += len(block)
                stream.drain()
        except FileAccessError as error:
            is_missing = isinstance(error, MissingFileError)
            defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
            self._add(CorruptDataError(defect, str(error), path=path))
            return
        if stream.size_bytes == 0 and (entry is None or entry.record_count):
            self._add(empty_file(path))
        elif entry is not None:
            self._compare(entry, stream.size_bytes, stream.crc32c)

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
        if self.record_count != entry.record_count and not self.defects:
            self._differs(
                Defect.RECORD_COUNT, f"{self.record_count} records", f"{entry.record_count}"
            )

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

    def __init__(
        self, file: BinaryIO, advance: Callable[[int], None], *, with_checksum: bool
    ) -> None:
        self._file = file
        self._advance = advance
        self._with_checksum = with_checksum
        self.size_bytes = 0
        self.crc32c = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = self._file.readinto(target)  # type: ignore[attr-defined]
        if self._with_checksum and count:
            self.crc32c = crc32c(memoryview(target)[:count], self.crc32c)
        self.size_bytes += count
        self._advance(count)
        return cast(int, count)

    def drain(self) -> None:
        """Read what is left, so that size and checksum are those of the file."""
        scratch = bytearray(1 << 20)
        while self.readinto(scratch):
            pass
