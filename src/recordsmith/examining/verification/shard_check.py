"""Is one shard right? Read by one thread, or a large plain one in ranges by several.

A damaged payload does not end the reading of its shard, a damaged length does, as the way to the
next record is lost.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from recordsmith.dataset.shard import Shard, empty_file
from recordsmith.errors import CorruptDataError, Defect, FileAccessError, MissingFileError
from recordsmith.examining.verification.contents import DeepCheck
from recordsmith.examining.verification.frame_ranges import (
    RangeCheck,
    RangeFindings,
    join_ranges,
    ranges_of,
)
from recordsmith.examining.verification.report import ShardFindings
from recordsmith.examining.verification.shard_stream import read_stream
from recordsmith.files import accessing, open_file, read_head
from recordsmith.wire import HEAD_BYTES, Compression, detect_compression, join_crc32c
from recordsmith.work import Work

_SHARED_FROM_BYTES = 128 << 20  # plain shards of this size are read by several threads


@dataclass
class ReadingPlan:
    """How a shard is read: calls that may run side by side, and what makes one of their answers."""

    calls: list[Callable[[], Any]]
    finish: Callable[[Iterator[Any]], ShardFindings]


def plan_of(shard: Shard, work: Work, deep: DeepCheck | None) -> ReadingPlan:
    """How a shard is read: a large plain one in ranges, unless its payloads are looked at.

    Args:
        deep: what looks at the payloads; None: nothing does.
    """
    if deep is None and work.threads > 1:
        with suppress(FileAccessError):  # whoever reads it says that
            size = shard.size_bytes
            head = read_head(shard.path, HEAD_BYTES) if size >= _SHARED_FROM_BYTES else None
            if head is not None and detect_compression(head) == "none":
                return _plan_of_ranges(shard, size, work)
    return ReadingPlan([partial(_check_shard, shard, work, deep)], next)


def _plan_of_ranges(shard: Shard, size: int, work: Work) -> ReadingPlan:
    ranges = ranges_of(size)

    def check(start: int, stop: int) -> RangeFindings | FileAccessError:
        try:
            with open_file(shard.path) as file:
                return _range_check(shard, file, size, work).range(start, stop, is_guess=start > 0)
        except FileAccessError as error:
            return error

    def finish(parts: Iterator[RangeFindings | FileAccessError]) -> ShardFindings:
        findings = ShardFindings(str(shard.path), size, compression="none")
        try:
            with open_file(shard.path) as file:
                checker = _range_check(shard, file, size, work)
                _take(findings, join_ranges(_raising(parts), ranges, checker))
        except FileAccessError as error:
            _refused(findings, error)
        _look_for_changes(shard, findings)
        return findings

    return ReadingPlan([partial(check, start, stop) for start, stop in ranges], finish)


def _range_check(shard: Shard, file: BinaryIO, size: int, work: Work) -> RangeCheck:
    return RangeCheck(
        file.fileno(), shard.path, size, work.advance, with_checksum=shard.entry is not None
    )


def _raising(parts: Iterator[RangeFindings | FileAccessError]) -> Iterator[RangeFindings]:
    for part in parts:
        if isinstance(part, FileAccessError):
            raise part
        yield part


def _take(findings: ShardFindings, parts: Iterable[RangeFindings]) -> None:
    """Put the ranges of a shard together."""
    checksum: int | None = 0
    for part in parts:
        findings.record_count += part.record_count
        findings.seen_count += part.seen_count
        findings.add(part.errors, part.error_count)
        findings.notice(part.notices)
        if not part.start:
            checksum = part.checksum
        elif checksum is not None:
            checksum = join_crc32c(checksum, part.checksum, part.stop - part.start)
        if part.is_lost:  # the rest was not read
            checksum = None
    findings.checksum = checksum


def _check_shard(shard: Shard, work: Work, deep: DeepCheck | None) -> ShardFindings:
    """One shard by one thread. The file's own bytes say how it is compressed."""
    findings = ShardFindings(str(shard.path))
    try:
        with open_file(shard.path) as file, accessing(shard.path):
            status = os.fstat(file.fileno())
            is_regular = stat.S_ISREG(status.st_mode)
            findings.size_bytes = status.st_size
            compression: Compression | None = None
            if is_regular:
                compression = detect_compression(os.pread(file.fileno(), HEAD_BYTES, 0))
            if deep is None and compression == "none":
                checker = _range_check(shard, file, status.st_size, work)
                _take(findings, [checker.range(0, status.st_size)])
            else:
                new = None if deep is None else deep.new
                contents = read_stream(file, findings, work.advance, new)
                if deep is not None and contents is not None:
                    contents.check.let_go()
                    deep.done[findings.path] = contents
            findings.compression = compression
    except FileAccessError as error:
        _refused(findings, error)
        return findings
    if is_regular:
        _look_for_changes(shard, findings)
    entry = shard.entry
    if findings.size_bytes == 0 and (entry is None or entry.record_count):
        findings.add([empty_file(shard.path)])
    return findings


def _refused(findings: ShardFindings, error: FileAccessError) -> None:
    is_missing = isinstance(error, MissingFileError)
    defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
    findings.is_read, findings.checksum = False, None
    findings.add([CorruptDataError(defect, str(error))])


def _look_for_changes(shard: Shard, findings: ShardFindings) -> None:
    """A file that grew while it was read: what was there when that began was judged."""
    try:
        size = os.stat(shard.path).st_size
    except OSError:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    "the file was removed while it was read; what is said of it holds for what "
                    "was there.",
                )
            ]
        )
        return
    if size > findings.size_bytes:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    f"the file grew from {findings.size_bytes} to {size} bytes while it was read; "
                    "what was there at first was judged. Another program is writing it: verify it "
                    "again when that is done.",
                )
            ]
        )
