"""Verifies one shard: reads it in order, decompressing it, and checks its records.

Reading continues after a damaged payload. It stops at a damaged length, because the start of the
next record is unknown. If a record is damaged, the file is read a second time, past all caches,
before it is reported. Threads share a large file that has no checksum in a manifest.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from recordsmith.checking.verification.payload_check import PayloadCheck, PayloadSummary
from recordsmith.checking.verification.verify_report import ShardFindings
from recordsmith.dataset import Shard
from recordsmith.format.wire import (
    HEAD_BYTES,
    check_frames,
    crc32c,
    detect_compression,
    find_header,
    read_blocks,
)
from recordsmith.stores import ObjectReader
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    FileAccessError,
    MissingFileError,
    accessing,
)

_WORTH_A_SECOND_LOOK = (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC, Defect.BROKEN_COMPRESSION)
_SHARED_BYTES = 128 << 20  # threads share files of this size
_FULL_BUFFER_BYTES = 128 << 20  # a file with longer records is read in order
_BLOCK_BYTES = 1 << 20
_SEARCHED_BYTES = 8 << 20
_WRONG_TWICE = "A second read past all caches returned the same error."
_BEING_WRITTEN = "Another program is writing it; verify it again when that program is done."


def check_shard(
    shard: Shard,
    advance: Callable[[int], None],
    new_check: Callable[[], PayloadCheck] | None,
    *,
    with_places: bool = False,
) -> tuple[ShardFindings, PayloadSummary | None]:
    """Check a shard, and its payloads if `new_check` makes a check of them.

    Args:
        with_places: keep the places of all defects.

    Raises:
        FileAccessError: the shard cannot be read.
    """
    path = str(shard.location)
    with shard.open_read() as file, accessing(shard.location):
        size = file.size_bytes if file.seekable() else None  # a pipe is read only once
        head = b"" if size is None else file.read_head(HEAD_BYTES)
        with_checksum = shard.entry is not None
        first = _WatchedFile(file, size, advance, with_checksum=with_checksum)
        findings, summary = _read(path, first, new_check, with_places)
        doubtful = _doubtful(findings)
        if size is not None and doubtful:
            again = _WatchedFile(
                file, size, lambda _: None, with_checksum=with_checksum, past_caches=True
            )
            findings, summary = _read(path, again, new_check, with_places)
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


def check_in_ranges(
    shard: Shard, advance: Callable[[int], None], pool: ThreadPoolExecutor, threads: int
) -> ShardFindings | None:
    """Check a large local file, with several threads.

    Returns None for other files, and for a file in which anything is wrong: `check_shard` reads it
    in order and reports what.
    """
    if shard.is_remote or shard.entry is not None:
        return None
    with shard.open_read() as file, accessing(shard.location):
        size = file.size_bytes if file.seekable() else 0
        if size < _SHARED_BYTES or detect_compression(file.read_head(HEAD_BYTES)) != "none":
            return None
        parts = [size * part // threads for part in range(1, threads)]
        borders = sorted({0, size, *(_next_record(file, part, size) for part in parts)})

    def count(borders: tuple[int, int]) -> int | None:
        with shard.open_read() as file, accessing(shard.location):
            return _count_intact(file, *borders, advance)

    counts = list(pool.map(count, pairwise(borders)))
    if None in counts:
        return None
    findings = ShardFindings(str(shard.location), size, compression="none")
    findings.record_count = findings.seen_count = sum(filter(None, counts))
    _notice_changes(shard, findings, size)
    return findings


def _count_intact(
    file: ObjectReader, start: int, stop: int, advance: Callable[[int], None]
) -> int | None:
    """Count the records from one byte to another; None if anything is wrong."""
    count, buffer = 0, memoryview(bytearray(_BLOCK_BYTES))
    while start < stop:
        file.seek(start)
        filled = file.readinto(buffer[: stop - start])
        record_count, stop_in_buffer, defect = check_frames(buffer[:filled])
        count, start = count + record_count, start + stop_in_buffer
        advance(stop_in_buffer)
        if defect in _WORTH_A_SECOND_LOOK:
            return None
        if not stop_in_buffer:  # a long record, or a file that became shorter
            if filled < len(buffer) or filled >= _FULL_BUFFER_BYTES:
                return None
            buffer = memoryview(bytearray(2 * len(buffer)))
    return count


def _next_record(file: ObjectReader, start: int, size: int) -> int:
    """Return where a record seems to begin, from a byte on; the size of the file if none is near.

    It may be inside a payload: then the range before it ends with a part of a record.
    """
    found = find_header(file.read_at(start, min(start + _SEARCHED_BYTES, size)), size - start)
    return size if found is None else start + found


def add_unreadable(findings: ShardFindings, error: FileAccessError) -> None:
    is_missing = isinstance(error, MissingFileError)
    defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
    findings.is_read, findings.checksum = False, None
    findings.add([CorruptDataError(defect, str(error))])


def _read(
    path: str,
    file: _WatchedFile,
    new_check: Callable[[], PayloadCheck] | None,
    with_places: bool,
) -> tuple[ShardFindings, PayloadSummary | None]:
    findings = ShardFindings(path, places=[] if with_places else None)
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
    """A file, limited to a size, that reports progress and computes a checksum. Not owned.

    past_caches: whether to read what the device has now, where that is possible.
    """

    def __init__(
        self,
        file: ObjectReader,
        size: int | None,
        advance: Callable[[int], None],
        *,
        with_checksum: bool,
        past_caches: bool = False,
    ) -> None:
        self._file = file
        self._past_caches = past_caches
        self._limit = size
        self._advance = advance
        self.size_bytes = 0
        self.crc32c: int | None = 0 if with_checksum else None

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        if self._limit is not None:
            view = view[: self._limit - self.size_bytes]
        count = self._read(view)
        if self.crc32c is not None:
            self.crc32c = crc32c(view[:count], self.crc32c)
        self.size_bytes += count
        self._advance(count)
        return count

    def _read(self, view: memoryview) -> int:
        if not self._past_caches:
            return self._file.readinto(view) or 0
        stop = self.size_bytes + len(view)
        data = self._file.read_uncached(self.size_bytes, stop)
        data = self._file.read_at(self.size_bytes, stop) if data is None else data
        view[: len(data)] = data
        return len(data)

    def drain(self) -> None:
        """Read the rest, so that size and checksum cover the whole file."""
        scratch = bytearray(1 << 20)
        while self.readinto(scratch):
            pass
