"""Which records of a damaged file are whole? Everything that its checksums prove, and what is lost.

Frame follows frame for as long as both checksums are right. Where they are not, the next twelve
bytes are searched that are a length with its checksum, and what stands there has to prove itself
like any other frame. What comes out is bytes as they lie in the file, so that no record can be put
together from two; only where one flipped bit in a frame's own twelve or four bytes explains what is
there is that bit turned back, and said.

A frame whose length is right and whose payload is not is passed over whole if a frame stands at its
end: what looks like frames inside of it is then its content, unless it leads to that end.

Reads any part of the file, the same part again if need be, through a buffer of bounded size. Ends
after a bounded number of passes, whatever the lengths in the file say.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect
from recordsmith.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    begins_frame,
    crc32c,
    scan,
    stored_crc,
)
from recordsmith.wire.kernel import find_header, masked_crc32c

BLOCK_BYTES = 1 << 20
LONGEST_HELD_BYTES = 1 << 24
"""Frames up to this length are read once; longer ones twice, as they do not fit into the buffer."""

_MOST_VAIN_PASSES = 8
"""So many times the file's size is read for lengths that turn out to lie; no honest file needs two.
After that, what such a length claims is passed over instead of searched."""

_FREE_BYTES = 1 << 24
"""And so much in any case, for a small file."""


class Whole(NamedTuple):
    """Bytes of whole frames, to be written one after the other.

    frames: a view, good until the next one is asked for. A long frame comes in several pieces.
    lengths: int64, (count,): of the payloads of those frames that end here.
    offset: the byte of the file that `frames` begins with.
    """

    frames: memoryview
    lengths: Int64Array
    offset: int


class LostRange(NamedTuple):
    """Bytes [start, stop) of the file, of which no record can be had; and what was met there."""

    start: int
    stop: int
    defect: Defect


class Repair(NamedTuple):
    """A bit that was turned back.

    offset: the byte that has the bit.
    bit: which one of the byte, 0 for the lowest.
    field: what it is a part of: `length`, `length-crc` or `payload-crc`.
    """

    offset: int
    bit: int
    field: str


Finding: TypeAlias = Whole | LostRange | Repair

_LENGTH_BYTES = HEADER_BYTES - 4
_BREAKS = (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC)
_NOTHING = np.empty(0, np.int64)


def rescue(stream: BinaryIO) -> Iterator[Finding]:
    """Read a file of frames that may be damaged anywhere.

    Args:
        stream: uncompressed; open for reading, from its first byte, and able to seek.

    Returns:
        Everything, in order: the frames that are whole, ranges that are lost, and bits that were
        turned back, each before its frame.
    """
    return _Rescue(stream).findings()


class _Window:
    """Any part of a file, by one buffer that grows to what is asked for."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, os.SEEK_END)  # less, if the file shrinks meanwhile
        self._buffer = bytearray(min(BLOCK_BYTES, self.size))
        self._start = 0
        self._filled = 0

    def hold(self, start: int, size: int) -> memoryview:
        """What is in the buffer from byte `start` on: at least `size` bytes, unless the file ends.

        The view is good until the next call.
        """
        kept = self._start + self._filled - start
        if not 0 <= start - self._start <= self._filled or kept < min(size, self.size - start):
            self._fill(start, kept if start >= self._start else 0, size)
        offset = start - self._start
        return memoryview(self._buffer)[offset : self._filled]

    def _fill(self, start: int, kept: int, size: int) -> None:
        kept = max(0, kept)
        rest = self._buffer[self._filled - kept : self._filled]
        room = min(max(size, BLOCK_BYTES), self.size)
        if room != len(self._buffer):
            self._buffer = bytearray(room)
        self._buffer[:kept] = rest
        self._start, self._filled = start, kept
        self._stream.seek(start + kept)
        view = memoryview(self._buffer)
        while self._filled < len(view) and start + self._filled < self.size:
            count = self._stream.readinto(view[self._filled :])  # type: ignore[attr-defined]
            if not count:
                self.size = start + self._filled
            self._filled += count


class _Rescue:
    """One way through a file."""

    def __init__(self, stream: BinaryIO) -> None:
        self._window = _Window(stream)
        self._vain_bytes = 0
        self._most_vain_bytes = _MOST_VAIN_PASSES * self._window.size + _FREE_BYTES

    def findings(self) -> Iterator[Finding]:
        at = 0
        while at < self._window.size:
            view = self._window.hold(at, self._wanted(at))
            frames = scan(view)
            stop, lengths = frames.stop, frames.lengths
            is_break = frames.defect in _BREAKS or at + len(view) >= self._window.size
            if len(lengths) and lengths[-1] == _LENGTH_BYTES and is_break:
                stop, lengths = stop - FRAME_BYTES - _LENGTH_BYTES, lengths[:-1]
                if len(lengths):
                    yield Whole(view[:stop].toreadonly(), lengths, at)
                at = yield from self._like_a_header(at + stop)
            elif len(lengths):
                yield Whole(view[:stop].toreadonly(), lengths, at)
                at += stop
            else:
                at = yield from self._beyond(at)

    def _like_a_header(self, at: int) -> Generator[Finding, None, int]:
        """Pass a frame of eight bytes that nothing whole follows; answers where to go on.

        Eight bytes and their checksum are what a header is. So the header of a record of eight
        bytes that has lost the rest, and the header behind it, look like a whole record, but for
        the whole frame that begins within.
        """
        inside = at + HEADER_BYTES
        length = self._length_at(inside)
        if length is not None and len(set(self._checksums(inside, length))) == 1:
            yield LostRange(at, inside, Defect.TRUNCATED_PAYLOAD)
            return inside
        yield from self._pieces(at, FRAME_BYTES + _LENGTH_BYTES, _LENGTH_BYTES)
        return at + FRAME_BYTES + _LENGTH_BYTES

    def _wanted(self, at: int) -> int:
        """How many bytes are to be held, so that a frame can be seen whole."""
        length = self._length_at(at)
        if length is None or length + FRAME_BYTES > LONGEST_HELD_BYTES:
            return HEADER_BYTES
        return length + FRAME_BYTES

    def _beyond(self, at: int) -> Generator[Finding, None, int]:
        """Pass a frame that is long, or flipped in one bit, or lost; answers where to go on."""
        length = self._length_at(at)
        if length is None:
            mended = self._mended(at)
            if mended is not None:
                repair, header = mended
                yield repair
                yield Whole(memoryview(header), _NOTHING, at)
                length = int.from_bytes(header[:8], "little")
                yield from self._pieces(at + HEADER_BYTES, length + FOOTER_BYTES, length)
                return at + FRAME_BYTES + length
            stop = self._search(at + 1, self._window.size)
            defect = self._defect_at(at)
        else:
            stored, found = self._checksums(at, length)
            if stored == found:
                yield from self._pieces(at, length + FRAME_BYTES, length)
                return at + FRAME_BYTES + length
            bit = _only_bit(stored ^ found)
            footer_at = at + HEADER_BYTES + length
            # bytes that are missing can have that look, too: then the next frame begins too early
            behind = self._search(footer_at, footer_at + FOOTER_BYTES)
            if bit is not None and behind == footer_at + FOOTER_BYTES:
                yield Repair(footer_at + bit // 8, bit % 8, "payload-crc")
                yield from self._pieces(at, HEADER_BYTES + length)
                footer = found.to_bytes(FOOTER_BYTES, "little")
                yield Whole(memoryview(footer), np.array([length], np.int64), footer_at)
                return footer_at + FOOTER_BYTES
            stop = self._after_wrong_payload(at, footer_at + FOOTER_BYTES)
            defect = Defect.PAYLOAD_CRC
        yield LostRange(at, stop, defect)
        return stop

    def _after_wrong_payload(self, at: int, end: int) -> int:
        """Where to go on after a frame whose length is right and whose payload is not.

        Its payload was changed in place if another frame stands at its end. Bytes that are missing
        or too many can have the same look by chance; then the frames that were taken for a part
        of the payload lead to that end, or over it, which what a payload holds cannot do.
        """
        if self._has_read_in_vain:
            return end
        if not self._is_frame_border(end):
            return self._search(at + HEADER_BYTES, self._window.size)
        inside = at + HEADER_BYTES
        while (inside := self._search(inside, end)) < end and not self._has_read_in_vain:
            reached = self._reach(inside, end)
            if reached >= end:
                return inside
            inside = max(reached, inside + 1)
        return end

    def _is_frame_border(self, at: int) -> bool:
        """Whether the file ends here, or a frame begins, even if a bit of its header is flipped."""
        if at == self._window.size:
            return True
        return begins_frame(self._header(at)) or self._mended(at) is not None

    def _reach(self, at: int, enough: int) -> int:
        """Follow whole frames from here until it is enough, or where to search on if it is not."""
        length: int | None = None
        while at < enough:
            before, length = length, self._length_at(at)
            if length is None or len(set(self._checksums(at, length))) > 1:
                # what ends here may be a header and another one: see _like_a_header
                return at - HEADER_BYTES if before == _LENGTH_BYTES else at
            at += FRAME_BYTES + length
        return at

    def _search(self, at: int, stop: int) -> int:
        """The next place before `stop` with a right length, of a frame that fits; else `stop`."""
        while at < stop:
            view = self._window.hold(at, HEADER_BYTES)
            seen = min(len(view) - HEADER_BYTES + 1, stop - at)
            if seen <= 0:
                return stop
            found = find_header(view, 0, seen, self._window.size - at)
            at += found
            if found < seen:
                return at
        return stop

    def _header(self, at: int) -> bytes:
        return bytes(self._window.hold(at, HEADER_BYTES)[:HEADER_BYTES])

    def _length_at(self, at: int) -> int | None:
        """The length of the frame here, if its checksum is right and the frame fits."""
        header = self._header(at)
        if not begins_frame(header):
            return None
        length = int.from_bytes(header[:8], "little")
        return length if length <= self._window.size - at - FRAME_BYTES else None

    def _defect_at(self, at: int) -> Defect:
        header = self._header(at)
        if len(header) < HEADER_BYTES:
            return Defect.TRUNCATED_HEADER
        return Defect.TRUNCATED_PAYLOAD if begins_frame(header) else Defect.LENGTH_CRC

    def _checksums(self, at: int, length: int) -> tuple[int, int]:
        """Of the payload of the frame here: the one that is stored, and the right one."""
        value = 0
        start = at + HEADER_BYTES
        stop = start + length
        while start < stop:
            view = self._window.hold(start, 1)[: stop - start]
            if not view:
                break
            value = crc32c(view, value)
            start += len(view)
        footer = self._window.hold(stop, FOOTER_BYTES)[:FOOTER_BYTES]
        if len(footer) < FOOTER_BYTES:  # the file has shrunk
            return -1, 0
        stored, found = (int.from_bytes(crc, "little") for crc in (footer, stored_crc(value)))
        if stored != found:
            self._vain_bytes += length
        return stored, found

    @property
    def _has_read_in_vain(self) -> bool:
        return self._vain_bytes > self._most_vain_bytes

    def _mended(self, at: int) -> tuple[Repair, bytes] | None:
        """The header here with one bit turned back, if that makes both checksums right."""
        header = self._header(at)
        most = self._window.size - at - FRAME_BYTES
        if len(header) < HEADER_BYTES or most < 0 or self._has_read_in_vain:
            return None
        bit = _flipped_bit(header, most)
        if bit is None:
            return None
        mended = bytearray(header)
        mended[bit // 8] ^= 1 << bit % 8
        stored, found = self._checksums(at, int.from_bytes(mended[:8], "little"))
        if stored != found:
            return None
        repair = Repair(at + bit // 8, bit % 8, "length" if bit < 64 else "length-crc")
        return repair, bytes(mended)

    def _pieces(self, start: int, size: int, length: int | None = None) -> Iterator[Whole]:
        """Bytes of a frame that was checked; `length` is that of its payload, if it ends there."""
        lengths = _NOTHING if length is None else np.array([length], np.int64)
        stop = start + size
        while start < stop:
            view = self._window.hold(start, 1)[: stop - start]
            if not view:
                raise CorruptDataError(
                    Defect.TRUNCATED_PAYLOAD,
                    "the file became shorter while it was read. Wait until nobody writes to it.",
                    offset=start,
                )
            offset = start
            start += len(view)
            yield Whole(view.toreadonly(), lengths if start == stop else _NOTHING, offset)


def _flipped_bit(header: bytes, most: int) -> int | None:
    """Which of the 96 bits, turned, gives a length of at most `most` and its checksum.

    There is one such bit at most: two lengths with one checksum differ in more than two bits.
    """
    length, stored = int.from_bytes(header[:8], "little"), int.from_bytes(header[8:], "little")
    for bit in range(64):
        other = length ^ 1 << bit
        if other <= most and masked_crc32c(other.to_bytes(8, "little")) == stored:
            return bit
    bit_of_checksum = _only_bit(stored ^ masked_crc32c(header[:8]))
    return None if bit_of_checksum is None or length > most else 64 + bit_of_checksum


def _only_bit(number: int) -> int | None:
    """Which bit of a positive number is set, if it is one only."""
    is_one = number > 0 and number & number - 1 == 0
    return number.bit_length() - 1 if is_one else None
