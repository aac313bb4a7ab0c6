"""Reads one shard in order, decompressing it, and checks its records.

Used where ranges do not work: compressed files, pipes, and shards whose payloads are checked. If a
record is damaged, the file is read a second time, bypassing the page cache, before it is reported.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from recordsmith.errors import DataError, Defect
from recordsmith.examining.verification.frame_ranges import WRONG_TWICE, transient
from recordsmith.examining.verification.verify_report import ShardFindings
from recordsmith.stores import ObjectReader
from recordsmith.wire import RecordBlock, crc32c, read_blocks

_WORTH_A_SECOND_LOOK = (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC, Defect.BROKEN_COMPRESSION)


class Contents(Protocol):
    """Checks the payloads of one shard."""

    def check_block(self, block: RecordBlock, findings: ShardFindings) -> None:
        """Check some records, in order."""


_Contents = TypeVar("_Contents", bound=Contents)


def read_stream(
    file: ObjectReader,
    findings: ShardFindings,
    advance: Callable[[int], None],
    contents: Callable[[], _Contents] | None,
) -> _Contents | None:
    """Read a shard from its beginning to its end.

    Args:
        file: a pipe is read only once.
        findings: receives the results; its path is that of the file.
        advance: called with the number of bytes read.
        contents: makes the object that checks the payloads; None to skip that check.

    Returns:
        The object that checked the payloads.
    """
    size = file.size_bytes if file.seekable() else None
    first = _Reading(findings.path, file, size, advance, contents)
    result = first
    if size is not None and first.is_doubtful:
        file.drop_cached()
        file.seek(0)
        result = _Reading(findings.path, file, size, lambda _: None, contents)
        if result.is_doubtful:
            for error in result.found.defects:
                if error.defect in _WORTH_A_SECOND_LOOK:
                    error.advise(WRONG_TWICE)
        else:
            result.found.notice(
                transient(
                    f"{error.defect} in the first read",
                    error.record,
                    error.offset,
                )
                for error in first.found.defects
                if error.defect in _WORTH_A_SECOND_LOOK
            )
    vars(findings).update(vars(result.found))
    return result.contents


class _Reading(Generic[_Contents]):
    """One pass over a shard."""

    def __init__(
        self,
        path: str,
        file: ObjectReader,
        size: int | None,
        advance: Callable[[int], None],
        contents: Callable[[], _Contents] | None,
    ) -> None:
        self.found = ShardFindings(path)
        self.contents = None if contents is None else contents()
        self._bad_count = 0
        stream = _WatchedStream(file, size, advance)
        for block in read_blocks(stream, on_defect=self._add):
            self.found.record_count += len(block)
            if self.contents is not None:
                self.contents.check_block(block, self.found)
        stream.drain()
        self.found.seen_count = self.found.record_count + self._bad_count
        self.found.size_bytes = stream.size_bytes
        self.found.checksum = stream.crc32c

    @property
    def is_doubtful(self) -> bool:
        return any(error.defect in _WORTH_A_SECOND_LOOK for error in self.found.defects)

    def _add(self, error: DataError) -> None:
        self._bad_count += error.defect is Defect.PAYLOAD_CRC
        self.found.add([error])


class _WatchedStream(io.RawIOBase):
    """A file, limited to a size, that reports progress and computes a checksum. Not owned."""

    def __init__(
        self, file: ObjectReader, size: int | None, advance: Callable[[int], None]
    ) -> None:
        self._file = file
        self._left = size
        self._advance = advance
        self.size_bytes = 0
        self.crc32c = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        view = memoryview(target)
        if self._left is not None:
            view = view[: self._left]
        count = self._file.readinto(view) or 0
        if self._left is not None:
            self._left -= count
        self.crc32c = crc32c(view[:count], self.crc32c)
        self.size_bytes += count
        self._advance(count)
        return count

    def drain(self) -> None:
        """Read the rest, so that size and checksum cover the whole file."""
        scratch = bytearray(1 << 20)
        while self.readinto(scratch):
            pass
