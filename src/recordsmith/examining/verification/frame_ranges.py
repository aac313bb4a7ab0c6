"""Are the frames of a plain file right? Checked range by range, so that threads can share a file.

Where a range has its first frame is not known before what comes ahead of it is read. So it is
guessed: the next 12 bytes that are a length with its checksum. Afterwards the ranges are joined:
each must begin exactly where the frames of the one before end, or it is checked again from there.
So a guess can cost time, and nothing else.

The file is read in blocks that stay in the processor's cache; nothing is kept of its records.
A frame that is wrong is read once more, past the page cache, before the file is blamed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

import numpy as np

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.examining.verification.block_memory import block_memory
from recordsmith.examining.verification.rereading import WRONG_TWICE, read_again, transient
from recordsmith.files import accessing
from recordsmith.wire import FRAME_BYTES, HEAD_BYTES, HEADER_BYTES, check_frames, crc32c
from recordsmith.wire.framing import Frames, describe_defect, find_header, stored_crc
from recordsmith.wire.stream import BLOCK_BYTES, foreign_defect

RANGE_BYTES = 64 << 20
"""What one thread checks at a time of a file that is larger; all of them alike."""

_SEARCH_BYTES = 1 << 20  # records that are longer are rare: their ranges wait for those before
_AGAIN_AT_MOST = 100  # bad frames of a range are read twice; a file that is rotten needs no proof
_LISTED_AT_MOST = 1000
_TAIL_BYTES = 64
_NONE = np.empty(0, np.int64)


@dataclass
class RangeFindings:
    """What a range holds.

    start: where its first frame begins; None if none was found.
    stop: where the first frame behind it begins, or the frame that ended the walk.
    record_count: intact records.
    seen_count: records, intact or not; positions of errors count from the first.
    errors, error_count: what is wrong; not all are listed.
    notices: bad reads that were right the second time.
    is_lost: the way to the next frame is lost, or the file ends.
    checksum: CRC-32C of the bytes start:stop.
    """

    start: int | None
    stop: int
    record_count: int = 0
    seen_count: int = 0
    errors: list[CorruptDataError] = field(default_factory=list)
    error_count: int = 0
    notices: list[CorruptDataError] = field(default_factory=list)
    is_lost: bool = False
    checksum: int = 0

    def shifted(self, position: int) -> RangeFindings:
        """The same with positions counted from another record on."""
        for error in (*self.errors, *self.notices):
            if error.position is not None:
                error.position += position
        return self


def ranges_of(size: int) -> list[tuple[int, int]]:
    """How a file of this size is divided."""
    count = max(1, -(-size // RANGE_BYTES))
    return list(pairwise(size * number // count for number in range(count + 1)))


def join_ranges(
    parts: Iterator[RangeFindings], ranges: Sequence[tuple[int, int]], check: RangeCheck
) -> Iterator[RangeFindings]:
    """The ranges of a file, in order, each from where the one before ends."""
    at = position = 0
    for part, (_, stop) in zip(parts, ranges, strict=True):
        if at >= stop:  # one record goes over all of it
            continue
        good = part if part.start == at else check.range(at, stop)
        yield good.shifted(position)
        at, position = good.stop, position + good.seen_count
        if good.is_lost:
            return


class RangeCheck:
    """Checks ranges of one open file. May be used from several threads.

    Only the first `size` bytes of the file are looked at: those that were there when it began.
    """

    def __init__(
        self,
        file: int,
        path: Path,
        size: int,
        advance: Callable[[int], None],
        *,
        with_checksum: bool,
    ) -> None:
        self.file = file
        self.path = path
        self.size = size
        self.advance = advance
        self.with_checksum = with_checksum

    def range(self, start: int, stop: int, *, is_guess: bool = False) -> RangeFindings:
        """The frames that begin in start:stop; with `is_guess` from the first that is found."""
        if is_guess:
            first = self._find(start, stop)
            if first is None:
                return RangeFindings(None, stop)
            start = first
        return _Walk(self, start, stop).run()

    def _find(self, start: int, stop: int) -> int | None:
        block = self.read(start, min(_SEARCH_BYTES, stop - start) + HEADER_BYTES - 1)
        place = find_header(block, self.size - start)
        return None if place is None else start + place

    def read(self, at: int, size: int) -> memoryview:
        """Some bytes in this thread's buffer; fewer where what is looked at ends."""
        view = block_memory(size)[: max(0, min(size, self.size - at))]
        done = 0
        with accessing(self.path):
            while done < len(view):
                count = os.preadv(self.file, [view[done:]], at + done)
                if count == 0:
                    break
                done += count
        return view[:done]


class _Place(TypedDict):
    position: int
    offset: int


class _Walk:
    """The way through one range."""

    def __init__(self, check: RangeCheck, start: int, stop: int) -> None:
        self._check = check
        self._stop = stop
        self._at = start
        self._told = start
        self._again_count = 0
        self._found = RangeFindings(start, start)

    def run(self) -> RangeFindings:
        """Through all of its frames."""
        wanted = 0
        while self._at < self._stop and not self._found.is_lost:
            wanted = max(wanted, min(BLOCK_BYTES, self._stop - self._at), HEADER_BYTES)
            block = self._check.read(self._at, wanted)
            frames = check_frames(block)
            is_cut = len(block) < min(wanted, self._check.size - self._at)
            self._pass(block[: frames.stop], frames.record_count, frames.record_count)
            wanted = 0
            if frames.defect in (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC):
                self._judge(block[frames.stop :], frames.defect)
            elif is_cut:
                self._became_shorter(len(block) - frames.stop)
            elif frames.defect is not None and not frames.stop:
                wanted = self._grasp(block, frames.defect)
            self._tell()
        self._found.stop = self._at
        return self._found

    def _pass(self, block: memoryview, seen_count: int, good_count: int) -> None:
        self._found.seen_count += seen_count
        self._found.record_count += good_count
        if self._check.with_checksum:
            self._found.checksum = crc32c(block, self._found.checksum)
        self._at += len(block)

    def _tell(self) -> None:
        self._check.advance(self._at - self._told)
        self._told = self._at

    def _grasp(self, block: memoryview, defect: Defect) -> int:
        """What to do with a frame that is not in the buffer whole: answers how much to read."""
        size = int.from_bytes(block[:8], "little") + FRAME_BYTES
        if defect is Defect.TRUNCATED_HEADER or size > self._check.size - self._at:
            self._error(describe_defect(Frames(_NONE, _NONE, 0, defect), block, **self._place()))
            return 0
        if size > BLOCK_BYTES:
            self._long_frame(bytes(block[:HEADER_BYTES]), size)
            return 0
        return size

    def _became_shorter(self, left: int) -> None:
        self._error(
            CorruptDataError(
                Defect.TRUNCATED_HEADER if left < HEADER_BYTES else Defect.TRUNCATED_PAYLOAD,
                f"the file became shorter while it was read: it had {self._check.size} bytes, and "
                f"ends {left} bytes behind this place now. Another program is writing it; verify "
                "it again when that is done.",
                **self._place(),
            )
        )

    def _long_frame(self, header: bytes, size: int) -> None:
        """A record that is longer than the buffer, piece by piece."""
        at, stop = self._at + HEADER_BYTES, self._at + size - 4
        payload_crc, whole_crc = 0, crc32c(header, self._found.checksum)
        while at < stop:
            piece = self._check.read(at, min(BLOCK_BYTES, stop - at))
            if not piece:
                self._became_shorter(at - self._at)
                return
            payload_crc = crc32c(piece, payload_crc)
            if self._check.with_checksum:
                whole_crc = crc32c(piece, whole_crc)
            at += len(piece)
            self._check.advance(at - self._told)
            self._told = at
        footer = bytes(self._check.read(at, 4))
        if footer == stored_crc(payload_crc):
            self._found.record_count += 1
        else:
            again = read_again(self._check.path, self._at, self._at + size)
            if again is not None and check_frames(again).defect is None:
                self._was_transient()
                self._found.record_count += 1
            else:
                self._error(
                    CorruptDataError(
                        Defect.PAYLOAD_CRC,
                        f"the payload of {size - FRAME_BYTES} bytes does not match its checksum: "
                        f"found {footer.hex()}, expected {stored_crc(payload_crc).hex()}. "
                        + _twice(again is not None),
                        **self._place(),
                    )
                )
        self._found.seen_count += 1
        self._found.checksum = crc32c(footer, whole_crc)
        self._at += size

    def _judge(self, block: memoryview, defect: Defect) -> None:
        """A frame whose checksum is wrong: is it so a second time?"""
        size = int.from_bytes(block[:8], "little") + FRAME_BYTES
        again = self._read_again(size if defect is Defect.PAYLOAD_CRC else None)
        if again is not None and check_frames(again).record_count:
            self._was_transient()
            self._pass(memoryview(again)[: check_frames(again).stop], 1, 1)
            return
        error = describe_defect(Frames(_NONE, _NONE, 0, defect), block, **self._place())
        if defect is Defect.LENGTH_CRC and self._at == 0:
            head = bytes(block[:HEAD_BYTES])
            tail = bytes(self._check.read(max(0, self._check.size - _TAIL_BYTES), _TAIL_BYTES))
            error = foreign_defect(head, tail) or error
        if error.defect is not Defect.NOT_A_TFRECORD:
            error.detail += " " + _twice(again is not None)
        self._error(error)
        if defect is Defect.PAYLOAD_CRC:
            self._pass(block[:size], 1, 0)

    def _read_again(self, size: int | None) -> bytes | None:
        """The whole frame at hand, past the page cache; its size is that of its second reading."""
        self._again_count += 1
        if self._again_count > _AGAIN_AT_MOST:
            return None
        path = self._check.path
        if size is None:
            header = read_again(path, self._at, self._at + HEADER_BYTES)
            if header is None or len(header) < HEADER_BYTES:
                return header
            if stored_crc(crc32c(header[:8])) != header[8:]:
                return header
            size = int.from_bytes(header[:8], "little") + FRAME_BYTES
        return read_again(path, self._at, min(self._at + size, self._check.size))

    def _was_transient(self) -> None:
        self._found.notices.append(
            transient(
                "a checksum was wrong, and right when the same bytes were read once more",
                **self._place(),
            )
        )

    def _error(self, error: CorruptDataError) -> None:
        self._found.error_count += 1
        if len(self._found.errors) < _LISTED_AT_MOST:
            self._found.errors.append(error)
        if error.defect is not Defect.PAYLOAD_CRC:
            self._found.is_lost = True

    def _place(self) -> _Place:
        return {"position": self._found.seen_count, "offset": self._at}


def _twice(was_read_again: bool) -> str:
    return WRONG_TWICE if was_read_again else "It was read once."
