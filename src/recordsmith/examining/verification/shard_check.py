"""Verifies one shard: with one thread, or a large uncompressed shard in ranges with several.

Reading continues after a damaged payload. It stops at a damaged length, because the start of the
next record is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from recordsmith.dataset.shard import Shard
from recordsmith.errors import (
    CorruptDataError,
    Defect,
    FileAccessError,
    MissingFileError,
    accessing,
)
from recordsmith.examining.verification.deep_check import DeepCheck
from recordsmith.examining.verification.frame_ranges import (
    BEING_WRITTEN,
    RangeCheck,
    RangeFindings,
    join_ranges,
    ranges_of,
)
from recordsmith.examining.verification.shard_stream import read_stream
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.stores import ObjectReader
from recordsmith.wire import HEAD_BYTES, Compression, combine_crc32c, detect_compression
from recordsmith.work import Work

_SHARED_FROM_BYTES = 128 << 20  # several threads share uncompressed shards of this size


@dataclass
class ReadingPlan:
    """How to read a shard: calls that may run in parallel, and a function to join their results."""

    calls: list[Callable[[], Any]]
    finish: Callable[[Iterator[Any]], ShardFindings]


def plan_of(shard: Shard, work: Work, deep: DeepCheck | None) -> ReadingPlan:
    """Plan how to read a shard: large local ones without compression in ranges, unless payloads are
    checked. Over a network, one thread keeps up with what is read ahead.
    """
    if deep is None and work.threads > 1:
        size = _size_to_divide(shard)
        if size is not None:
            return _plan_of_ranges(shard, size, work)
    return ReadingPlan([partial(_check_all, shard, work, deep)], next)


def _size_to_divide(shard: Shard) -> int | None:
    """Return the size of a large local shard without compression; None for other shards."""
    if shard.is_remote:
        return None
    with suppress(FileAccessError):  # reported when the shard is read
        size = shard.size_bytes
        head = shard.location.read(0, HEAD_BYTES) if size >= _SHARED_FROM_BYTES else None
        if head is not None and detect_compression(head) == "none":
            return size
    return None


def _plan_of_ranges(shard: Shard, size: int, work: Work) -> ReadingPlan:
    ranges = ranges_of(size)

    def check(start: int, stop: int) -> RangeFindings:
        with shard.open_read() as file:
            return _range_check(shard, file, size, lambda _: None).range(start, stop)

    def guess(start: int, stop: int) -> RangeFindings | FileAccessError:
        try:
            with shard.open_read() as file:
                checker = _range_check(shard, file, size, work.advance)
                return checker.range(start, stop, is_guess=start > 0)
        except FileAccessError as error:
            return error

    def finish(parts: Iterator[RangeFindings | FileAccessError]) -> ShardFindings:
        findings = ShardFindings(str(shard.location), size, compression="none")
        try:
            _take(findings, join_ranges(_raising(parts), ranges, check))
        except FileAccessError as error:
            add_unreadable(findings, error)
        _detect_changes(shard, findings)
        return findings

    return ReadingPlan([partial(guess, start, stop) for start, stop in ranges], finish)


def _range_check(
    shard: Shard, file: ObjectReader, size: int, advance: Callable[[int], None]
) -> RangeCheck:
    return RangeCheck(file, shard.location, size, advance, with_checksum=shard.entry is not None)


def _raising(parts: Iterator[RangeFindings | FileAccessError]) -> Iterator[RangeFindings]:
    for part in parts:
        if isinstance(part, FileAccessError):
            raise part
        yield part


def _take(findings: ShardFindings, parts: Iterable[RangeFindings]) -> None:
    """Join the findings of the ranges of a shard."""
    checksum: int | None = 0
    for part in parts:
        findings.record_count += part.record_count
        findings.seen_count += part.seen_count
        findings.add(part.errors, part.error_count)
        findings.notice(part.notices)
        if not part.start:
            checksum = part.checksum
        elif checksum is not None:
            checksum = combine_crc32c(checksum, part.checksum, part.stop - part.start)
        if part.is_lost:  # the rest was not read
            checksum = None
    findings.checksum = checksum


def _check_all(shard: Shard, work: Work, deep: DeepCheck | None) -> ShardFindings:
    """Check a shard with one thread; a shard that cannot be read is a finding."""
    findings = ShardFindings(str(shard.location))
    try:
        check_shard(shard, findings, work.advance, deep)
    except FileAccessError as error:
        add_unreadable(findings, error)
    return findings


def check_shard(
    shard: Shard, findings: ShardFindings, advance: Callable[[int], None], deep: DeepCheck | None
) -> None:
    """Check a shard with one thread. Compression is detected from the first bytes."""
    with shard.open_read() as file, accessing(shard.location):
        is_regular = file.seekable()
        findings.size_bytes = file.size_bytes
        compression: Compression | None = None
        if is_regular:
            compression = detect_compression(file.read_head(HEAD_BYTES))
        if deep is None and compression == "none":
            checker = _range_check(shard, file, findings.size_bytes, advance)
            _take(findings, [checker.range(0, findings.size_bytes)])
        else:
            new = None if deep is None else deep.new
            contents = read_stream(file, findings, advance, new)
            if deep is not None and contents is not None:
                deep.done[findings.path] = contents.finish()
        findings.compression = compression
    if is_regular:
        _detect_changes(shard, findings)
    if findings.size_bytes == 0 and shard.entry is None:
        findings.notice(
            [
                CorruptDataError(
                    Defect.EMPTY_FILE,
                    "the file has 0 bytes, which is a valid TFRecord file without records",
                    remedy="If you expect records, the writer or a copy may have been interrupted.",
                )
            ]
        )


def add_unreadable(findings: ShardFindings, error: FileAccessError) -> None:
    """Add that a shard cannot be read."""
    is_missing = isinstance(error, MissingFileError)
    defect = Defect.MISSING_SHARD if is_missing else Defect.UNREADABLE_SHARD
    findings.is_read, findings.checksum = False, None
    findings.add([CorruptDataError(defect, str(error))])


def _detect_changes(shard: Shard, findings: ShardFindings) -> None:
    """Report a file that grew or was removed while it was being read."""
    try:
        size = shard.size_bytes
    except FileAccessError:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    "the file was removed while it was being read; the results are for the "
                    "removed file",
                )
            ]
        )
        return
    if size > findings.size_bytes:
        findings.notice(
            [
                CorruptDataError(
                    Defect.CHANGING_SHARD,
                    "the file grew while it was being read; only its first "
                    f"{findings.size_bytes} bytes were checked",
                    found=f"{size} bytes",
                    remedy=BEING_WRITTEN,
                )
            ]
        )
