"""Verifies one shard: reads it in order, decompressing it, and checks its records.

Reading continues after a damaged payload. It stops at a damaged length, because the start of the
next record is unknown. If a record is damaged, the file is read a second time, past all caches,
before it is reported.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from recordsmith.dataset.shard import Shard
from recordsmith.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    MissingFileError,
    accessing,
)
from recordsmith.examining.verification.payload_check import PayloadCheck, PayloadSummary
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.stores import ObjectReader
from recordsmith.wire import HEAD_BYTES, crc32c, detect_compression, read_blocks

_WORTH_A_SECOND_LOOK = (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC, Defect.BROKEN_COMPRESSION)
_WRONG_TWICE = "A second read past all caches returned the same error."
_BEING_WRITTEN = "Another program is writing it; verify it again when that program is done."


def check_shard(
    shard: Shard, advance: Callable[[int], None], new_check: Callable[[], PayloadCheck] | None
) -> tuple[ShardFindings, PayloadSummary | None]:
    """Check a shard, and its payloads if `new_check` makes a check of them.

    Raises:
        FileAccessError: the shard cannot be read.
    """
    path = str(shard.location)
    with shard.open_read() as file, accessing(shard.location):
        size = file.size_bytes if file.seekable() else None  # a pipe is read only once
        head = b"" if size is None else file.read_head(HEAD_BYTES)
        findings, summary = _read(path, _WatchedFile(file, size, advance), new_check)
        doubtful = _doubtful(findings)
        if size is not None and doubtful:
            again = _UncachedFile(file, size, lambda _: None)
            findings, summary = _read(path, again, new_check)
            for error in _doubtful(findings):
                error.advise(_WRONG_TWICE)
            if not _doubtful(findings):
                findings.notice(map(_transient, doubtful))
    if size is not None:
        findings.compression = detect_compression(head)
        _notice_changes(shard, findings, size)
    if findings.size_bytes == 0 and shard.entry is None:
        _notice(
            findings,
            Defect.EMPTY_FILE,
            "the file has 0 bytes, which is a valid TFRecord file without records",
            "If you expect records, the writer or a copy may have been interrupted.",
        )
    return findings, summary


def add_unreadable(findings: ShardFindings, error: FileAccessError) -> None:
    """Add that a shard cannot be read."""
    is_missing = isinstance(error, MissingFileError)
    defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
    findings.is_read, findings.checksum = False, None
    findings.add([CorruptDataError(defect, str(error))])


def _read(
    path: str, file: _WatchedFile, new_check: Callable[[], PayloadCheck] | None
) -> tuple[ShardFindings, PayloadSummary | None]:
    """Read a shard from its beginning to its end."""
    findings = ShardFindings(path)
    check = None if new_check is None else new_check()
    for block in read_blocks(file, on_defect=lambda error: findings.add([error])):
        findings.record_count += len(block)
        if check is not None:
            check.check_block(block, findings)
    file.drain()
    damaged = sum(error.defect is Defect.PAYLOAD_CRC for error in findings.defects)
    findings.seen_count = findings.record_count + damaged
    findings.size_bytes, findings.checksum = file.size_bytes, file.crc32c
    return findings, None if check is None else check.summary


def _doubtful(findings: ShardFindings) -> list[DataError]:
    return [error for error in findings.defects if error.defect in _WORTH_A_SECOND_LOOK]


def _transient(error: DataError) -> DataError:
    """Make the notice for a defect that a second read did not find."""
    return CorruptDataError(
        Defect.TRANSIENT_READ,
        f"{error.defect} in the first read; a second read past all caches was right, "
        "so the file is intact",
        remedy="If this happens again, test the memory, cables and disk of this machine.",
        record=error.record,
        offset=error.offset,
    )


def _notice_changes(shard: Shard, findings: ShardFindings, size: int) -> None:
    """Report a file that grew, shrank or was removed while it was being read."""
    try:
        now = shard.size_bytes
    except FileAccessError:
        what = "the file was removed while it was being read; the results are for the removed file"
        _notice(findings, Defect.CHANGING_SHARD, what, "")
        return
    what = ""
    if now > size:
        what = f"the file grew while it was being read; only its first {size} bytes were checked"
    elif now < size:
        what = "the file became shorter while it was being read"
    if what:
        _notice(findings, Defect.CHANGING_SHARD, what, _BEING_WRITTEN)


def _notice(findings: ShardFindings, defect: Defect, problem: str, remedy: str) -> None:
    findings.notice([CorruptDataError(defect, problem, remedy=remedy)])


class _WatchedFile(io.RawIOBase):
    """A file, limited to a size, that reports progress and computes a checksum. Not owned."""

    def __init__(
        self, file: ObjectReader, size: int | None, advance: Callable[[int], None]
    ) -> None:
        self._file = file
        self._limit = size
        self._advance = advance
        self.size_bytes = 0
        self.crc32c = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        if self._limit is not None:
            view = view[: self._limit - self.size_bytes]
        count = self._read(view)
        self.crc32c = crc32c(view[:count], self.crc32c)
        self.size_bytes += count
        self._advance(count)
        return count

    def _read(self, view: memoryview) -> int:
        return self._file.readinto(view) or 0

    def drain(self) -> None:
        """Read the rest, so that size and checksum cover the whole file."""
        scratch = bytearray(1 << 20)
        while self.readinto(scratch):
            pass


class _UncachedFile(_WatchedFile):
    """Reads a file as the device has it now, where that is possible."""

    def _read(self, view: memoryview) -> int:
        stop = self.size_bytes + len(view)
        data = self._file.read_uncached(self.size_bytes, stop)
        data = self._file.read_at(self.size_bytes, stop) if data is None else data
        view[: len(data)] = data
        return len(data)
