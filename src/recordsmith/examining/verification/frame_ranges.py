"""Checks the frames of an uncompressed file in ranges, so that several threads can share a file.

The first frame of a range is guessed: the next 12 bytes that are a length with a valid checksum.
When ranges are joined, each must begin exactly where the frames of the previous one end; otherwise
it is checked again from there. A wrong guess costs time but never changes the result.

The file is read in blocks that fit the processor's cache. A damaged frame is read again, bypassing
the page cache, before it is reported.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypedDict

import numpy as np

from recordsmith.errors import CorruptDataError, DataError, Defect, accessing
from recordsmith.stores import Location, ObjectReader
from recordsmith.wire import FRAME_BYTES, HEAD_BYTES, HEADER_BYTES, check_frames, crc32c
from recordsmith.wire.framing import Frames, describe_defect, find_header, stored_crc
from recordsmith.wire.stream import BLOCK_BYTES, other_format_defect

RANGE_BYTES = 64 << 20
"""Larger files are divided into ranges of about this size, one per thread at a time."""

LONGEST_BYTES = 256 << 20
"""Longer ranges are not read a second time."""

WRONG_TWICE = "A second read that bypassed the page cache returned the same error."
BEING_WRITTEN = "Another program is writing it; verify it again when that program is done."

_SEARCH_BYTES = 1 << 20  # longer records are rare; such ranges are checked when joined
_AGAIN_AT_MOST = 100  # bad frames of a range that are read again
_LISTED_AT_MOST = 1000
_TAIL_BYTES = 64
_NONE = np.empty(0, np.int64)
_LARGE_PAGE_BYTES = 2 << 20
_SMALL_BYTES = 64 << 10
_local = threading.local()


@dataclass
class RangeFindings:
    """The findings in one range.

    start: offset of its first frame; None if none was found.
    stop: offset of the first frame after it, or of the frame that ended the check.
    record_count: intact records.
    seen_count: records, intact or not; record numbers of errors count from the first.
    errors, error_count: defects; not all are listed.
    notices: bad reads that were right the second time.
    is_lost: the start of the next frame is unknown, or the file ends.
    checksum: CRC-32C of the bytes start:stop.
    """

    start: int | None
    stop: int
    record_count: int = 0
    seen_count: int = 0
    errors: list[DataError] = field(default_factory=list)
    error_count: int = 0
    notices: list[DataError] = field(default_factory=list)
    is_lost: bool = False
    checksum: int = 0

    def shifted(self, position: int) -> RangeFindings:
        """Add `position` to the record numbers of all errors and notices."""
        for error in (*self.errors, *self.notices):
            if error.record is not None:
                error.record += position
        return self


def ranges_of(size: int) -> list[tuple[int, int]]:
    """Divide a file of this size into ranges."""
    count = max(1, -(-size // RANGE_BYTES))
    return list(pairwise(size * number // count for number in range(count + 1)))


def join_ranges(
    parts: Iterator[RangeFindings],
    ranges: Sequence[tuple[int, int]],
    check: Callable[[int, int], RangeFindings],
) -> Iterator[RangeFindings]:
    """Yield the ranges of a file in order, each starting where the previous one ends."""
    at = position = 0
    for part, (_, stop) in zip(parts, ranges, strict=True):
        if at >= stop:  # one record spans the whole range
            continue
        good = part if part.start == at else check(at, stop)
        yield good.shifted(position)
        at, position = good.stop, position + good.seen_count
        if good.is_lost:
            return


class RangeCheck:
    """Checks ranges of one open file. Thread-safe.

    Only the first `size` bytes are checked: the size of the file when the check began.
    """

    def __init__(
        self,
        file: ObjectReader,
        location: Location,
        size: int,
        advance: Callable[[int], None],
        *,
        with_checksum: bool,
    ) -> None:
        self.file = file
        self.location = location
        self.size = size
        self.advance = advance
        self.with_checksum = with_checksum

    def range(self, start: int, stop: int, *, is_guess: bool = False) -> RangeFindings:
        """Check the frames that begin in start:stop; with `is_guess` from the first one found."""
        if is_guess:
            block = self.read(start, min(_SEARCH_BYTES, stop - start) + HEADER_BYTES - 1)
            place = find_header(block, self.size - start)
            if place is None:
                return RangeFindings(None, stop)
            start += place
        return _Walk(self, start, stop).run()

    def read(self, at: int, size: int) -> memoryview:
        """Read bytes into this thread's buffer; fewer at the end of the file."""
        view = block_memory(size)[: max(0, min(size, self.size - at))]
        done = 0
        with accessing(self.location):
            self.file.seek(at)
            while done < len(view):
                count = self.file.readinto(view[done:])
                if not count:
                    break
                done += count
        return view[:done]


class _Place(TypedDict):
    record: int
    offset: int


class _Walk:
    """One pass over a range."""

    def __init__(self, check: RangeCheck, start: int, stop: int) -> None:
        self._check = check
        self._stop = stop
        self._at = start
        self._reported = start
        self._again_count = 0
        self._found = RangeFindings(start, start)

    def run(self) -> RangeFindings:
        """Check all frames of the range."""
        wanted = 0
        while self._at < self._stop and not self._found.is_lost:
            wanted = max(wanted, min(BLOCK_BYTES, self._stop - self._at), HEADER_BYTES)
            block = self._check.read(self._at, wanted)
            frames = check_frames(block)
            is_cut = len(block) < min(wanted, self._check.size - self._at)
            self._advance(block[: frames.stop], frames.record_count, frames.record_count)
            wanted = 0
            if frames.defect in (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC):
                self._handle_bad_checksum(block[frames.stop :], frames.defect)
            elif is_cut:
                self._add_shrunk(len(block) - frames.stop)
            elif frames.defect is not None and not frames.stop:
                wanted = self._handle_partial_frame(block, frames.defect)
            self._report_progress()
        self._found.stop = self._at
        return self._found

    def _advance(self, block: memoryview, seen_count: int, good_count: int) -> None:
        self._found.seen_count += seen_count
        self._found.record_count += good_count
        if self._check.with_checksum:
            self._found.checksum = crc32c(block, self._found.checksum)
        self._at += len(block)

    def _report_progress(self) -> None:
        self._check.advance(self._at - self._reported)
        self._reported = self._at

    def _handle_partial_frame(self, block: memoryview, defect: Defect) -> int:
        """Handle a frame that does not fit the buffer; return how many bytes to read next."""
        size = int.from_bytes(block[:8], "little") + FRAME_BYTES
        if defect is Defect.TRUNCATED_HEADER or size > self._check.size - self._at:
            self._add_error(
                describe_defect(Frames(_NONE, _NONE, 0, defect), block, **self._place())
            )
            return 0
        if size > BLOCK_BYTES:
            self._check_long_frame(bytes(block[:HEADER_BYTES]), size)
            return 0
        return size

    def _add_shrunk(self, left: int) -> None:
        self._add_error(
            CorruptDataError(
                Defect.TRUNCATED_HEADER if left < HEADER_BYTES else Defect.TRUNCATED_PAYLOAD,
                "the file became shorter while it was being read",
                found=f"{left} bytes after this offset",
                expected=f"a file of {self._check.size} bytes",
                remedy=BEING_WRITTEN,
                **self._place(),
            )
        )

    def _check_long_frame(self, header: bytes, size: int) -> None:
        """Check a record that is longer than the buffer, in pieces."""
        at, stop = self._at + HEADER_BYTES, self._at + size - 4
        payload_crc, whole_crc = 0, crc32c(header, self._found.checksum)
        while at < stop:
            piece = self._check.read(at, min(BLOCK_BYTES, stop - at))
            if not piece:
                self._add_shrunk(at - self._at)
                return
            payload_crc = crc32c(piece, payload_crc)
            if self._check.with_checksum:
                whole_crc = crc32c(piece, whole_crc)
            at += len(piece)
            self._check.advance(at - self._reported)
            self._reported = at
        footer = bytes(self._check.read(at, 4))
        if footer == stored_crc(payload_crc):
            self._found.record_count += 1
        else:
            again = read_again(self._check.file, self._at, self._at + size)
            if again is not None and check_frames(again).defect is None:
                self._add_transient()
                self._found.record_count += 1
            else:
                self._add_error(
                    CorruptDataError(
                        Defect.PAYLOAD_CRC,
                        f"the payload of {size - FRAME_BYTES} bytes does not match its checksum",
                        found=footer.hex(),
                        expected=stored_crc(payload_crc).hex(),
                        remedy=_describe_rereading(again is not None),
                        **self._place(),
                    )
                )
        self._found.seen_count += 1
        self._found.checksum = crc32c(footer, whole_crc)
        self._at += size

    def _handle_bad_checksum(self, block: memoryview, defect: Defect) -> None:
        """Read a frame with a bad checksum again, and report it if it is still bad."""
        size = int.from_bytes(block[:8], "little") + FRAME_BYTES
        again = self._read_again(size if defect is Defect.PAYLOAD_CRC else None)
        if again is not None and check_frames(again).record_count:
            self._add_transient()
            self._advance(memoryview(again)[: check_frames(again).stop], 1, 1)
            return
        error = describe_defect(Frames(_NONE, _NONE, 0, defect), block, **self._place())
        if defect is Defect.LENGTH_CRC and self._at == 0:
            head = bytes(block[:HEAD_BYTES])
            tail = bytes(self._check.read(max(0, self._check.size - _TAIL_BYTES), _TAIL_BYTES))
            error = other_format_defect(head, tail) or error
        if error.defect is not Defect.NOT_A_TFRECORD:
            error.advise(_describe_rereading(again is not None))
        self._add_error(error)
        if defect is Defect.PAYLOAD_CRC:
            self._advance(block[:size], 1, 0)

    def _read_again(self, size: int | None) -> bytes | None:
        """Read the current frame again, bypassing the page cache; its size may differ this time."""
        self._again_count += 1
        if self._again_count > _AGAIN_AT_MOST:
            return None
        file = self._check.file
        if size is None:
            header = read_again(file, self._at, self._at + HEADER_BYTES)
            if header is None or len(header) < HEADER_BYTES:
                return header
            if stored_crc(crc32c(header[:8])) != header[8:]:
                return header
            size = int.from_bytes(header[:8], "little") + FRAME_BYTES
        return read_again(file, self._at, min(self._at + size, self._check.size))

    def _add_transient(self) -> None:
        self._found.notices.append(
            transient(
                "a checksum did not match in the first read",
                **self._place(),
            )
        )

    def _add_error(self, error: DataError) -> None:
        self._found.error_count += 1
        if len(self._found.errors) < _LISTED_AT_MOST:
            self._found.errors.append(error)
        if error.defect is not Defect.PAYLOAD_CRC:
            self._found.is_lost = True

    def _place(self) -> _Place:
        return {"record": self._found.seen_count, "offset": self._at}


def _describe_rereading(was_read_again: bool) -> str:
    return WRONG_TWICE if was_read_again else "It was read only once."


def transient(what: str, record: int | None, offset: int | None) -> DataError:
    """Make the notice for bytes that were right when read again; `what` was wrong at first."""
    return CorruptDataError(
        Defect.TRANSIENT_READ,
        f"{what}; a second read that bypassed the page cache was right, so the file is intact",
        remedy="If this happens again, test the memory, cables and disk of this machine.",
        record=record,
        offset=offset,
    )


def read_again(file: ObjectReader, start: int, stop: int) -> bytes | None:
    """Read bytes start:stop of an object, bypassing all caches; None if that fails.

    Returns fewer bytes if the object ends earlier.
    """
    return None if stop - start > LONGEST_BYTES else file.read_uncached(start, stop)


def block_memory(size: int) -> memoryview:
    """Return this thread's buffer of at least `size` bytes, at most 2 MiB.

    It uses one huge page where the system provides it: scattered 4 KiB pages evict each other from
    the cache, and reading and checking takes two thirds of the time with a huge page. Small files
    use a small buffer, because making a huge page takes longer than reading them.
    """
    name = "small" if size <= _SMALL_BYTES else "large"
    memory: memoryview | None = getattr(_local, name, None)
    if memory is None:
        memory = memoryview(bytearray(_SMALL_BYTES)) if name == "small" else _large_page()
        setattr(_local, name, memory)
    return memory


def _large_page() -> memoryview:
    """Return 2 MiB aligned to a huge page."""
    memory = mmap.mmap(-1, 2 * _LARGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # not supported here
            memory.madvise(mmap.MADV_HUGEPAGE)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    start = -address % _LARGE_PAGE_BYTES
    return memoryview(memory)[start : start + _LARGE_PAGE_BYTES]
