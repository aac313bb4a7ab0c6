"""Find the intact records of a damaged file by their checksums, and the ranges that are lost.

Reads frame after frame while both checksums are valid. After a defect, searches for the next twelve
bytes that are a length with its checksum, and verifies the frame there like any other. Output is
bytes exactly as in the file, so a record cannot be assembled from two; only a single flipped bit in
a header or footer is corrected, and reported.

A frame with a valid length and an invalid payload is skipped whole if another frame begins at its
end: what looks like frames inside it is its content, unless those frames lead to that end.

Memory and the number of passes are bounded, whatever lengths the file contains.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from recordsmith.format.wire.compression import (
    GZIP_MAGIC,
    MAX_DECOMPRESSED_BYTES,
    ByteStream,
    Inflater,
)
from recordsmith.format.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    crc32c,
    scan,
    starts_with_frame,
    stored_crc,
)
from recordsmith.format.wire.kernel import find_header, masked_crc32c
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError, Defect

BLOCK_BYTES = 1 << 20
LONGEST_HELD_BYTES = 1 << 24
"""Frames up to this length fit into the buffer and are read once; longer ones twice."""

_MAX_WASTED_PASSES = 8
"""How many times the file's size may be read for lengths that turn out to be wrong; after that, the
range of such a length is skipped instead of searched. An undamaged file needs at most one."""

_MIN_WASTED_BYTES = 1 << 24
"""The minimum of this limit, for small files."""


class IntactFrames(NamedTuple):
    """Bytes of intact frames, to be written end to end.

    frames: a view, valid until the next step. A long frame comes in several pieces.
    lengths: int64, (count,): of the payloads of the frames that end here.
    offset: the byte of the file where `frames` begins.
    """

    frames: memoryview
    lengths: Int64Array
    offset: int


class LostBytes(NamedTuple):
    """Bytes [start, stop) of the file without intact records, and the defect."""

    start: int
    stop: int
    defect: Defect


class Repair(NamedTuple):
    """A flipped bit that was corrected.

    offset: the byte that contains the bit.
    bit: its number in the byte, 0 for the lowest.
    field: the part of the frame: `length`, `length-crc` or `payload-crc`.
    """

    offset: int
    bit: int
    field: str


Finding: TypeAlias = IntactFrames | LostBytes | Repair

_LENGTH_BYTES = HEADER_BYTES - 4
_BREAKS = (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC)
_NOTHING = np.empty(0, np.int64)


def recover(stream: ByteStream) -> Iterator[Finding]:
    """Read a file that may be damaged anywhere.

    Args:
        stream: uncompressed, open for reading at its first byte, and seekable.

    Returns:
        Everything in order: intact frames, lost ranges, and corrected bits, each before its frame.
    """
    return _Recovery(stream).findings()


class _Window:
    """Reads any part of a file through one buffer that grows as needed."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.size = stream.seek(0, os.SEEK_END)  # less, if the file shrinks meanwhile
        self._buffer = bytearray(min(BLOCK_BYTES, self.size))
        self._start = 0
        self._filled = 0

    def hold(self, start: int, size: int) -> memoryview:
        """Return the buffer from byte `start`: at least `size` bytes, unless the file ends.

        The view is valid until the next call.
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
            count = self._stream.readinto(view[self._filled :])  # type: ignore[union-attr]
            if not count:
                self.size = start + self._filled
            self._filled += count


class _Recovery:
    def __init__(self, stream: ByteStream) -> None:
        self._window = _Window(stream)
        self._wasted_bytes = 0
        self._most_wasted_bytes = _MAX_WASTED_PASSES * self._window.size + _MIN_WASTED_BYTES

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
                    yield IntactFrames(view[:stop].toreadonly(), lengths, at)
                at = yield from self._eight_byte_frame(at + stop)
            elif len(lengths):
                yield IntactFrames(view[:stop].toreadonly(), lengths, at)
                at += stop
            else:
                at = yield from self._other_frame(at)

    def _eight_byte_frame(self, at: int) -> Generator[Finding, None, int]:
        """Handle a frame of eight bytes before a defect; return where to continue.

        A header is eight bytes and their checksum too. The header of an eight-byte record without
        its payload and the next header together look like an intact record; the intact frame that
        begins inside shows the difference.
        """
        inside = at + HEADER_BYTES
        length = self._length_at(inside)
        if length is not None and len(set(self._checksums(inside, length))) == 1:
            yield LostBytes(at, inside, Defect.TRUNCATED_PAYLOAD)
            return inside
        yield from self._pieces(at, FRAME_BYTES + _LENGTH_BYTES, _LENGTH_BYTES)
        return at + FRAME_BYTES + _LENGTH_BYTES

    def _wanted(self, at: int) -> int:
        """Return how many bytes the buffer needs for the whole frame."""
        length = self._length_at(at)
        if length is None or length + FRAME_BYTES > LONGEST_HELD_BYTES:
            return HEADER_BYTES
        return length + FRAME_BYTES

    def _other_frame(self, at: int) -> Generator[Finding, None, int]:
        """Handle a frame that is long, has a flipped bit or is lost; return where to continue."""
        length = self._length_at(at)
        if length is None:
            corrected = self._corrected(at)
            if corrected is not None:
                repair, header = corrected
                yield repair
                yield IntactFrames(memoryview(header), _NOTHING, at)
                length = int.from_bytes(header[:8], "little")
                yield from self._pieces(at + HEADER_BYTES, length + FOOTER_BYTES, length)
                return at + FRAME_BYTES + length
            stop = self._search(at + 1, self._window.size)
            defect = self._defect_at(at)
        else:
            stored, computed = self._checksums(at, length)
            if stored == computed:
                yield from self._pieces(at, length + FRAME_BYTES, length)
                return at + FRAME_BYTES + length
            bit = _only_bit(stored ^ computed)
            footer_at = at + HEADER_BYTES + length
            # missing bytes can look like this too: then the next frame begins too early
            behind = self._search(footer_at, footer_at + FOOTER_BYTES)
            if bit is not None and behind == footer_at + FOOTER_BYTES:
                yield Repair(footer_at + bit // 8, bit % 8, "payload-crc")
                yield from self._pieces(at, HEADER_BYTES + length)
                footer = computed.to_bytes(FOOTER_BYTES, "little")
                yield IntactFrames(memoryview(footer), np.array([length], np.int64), footer_at)
                return footer_at + FOOTER_BYTES
            stop = self._after_wrong_payload(at, footer_at + FOOTER_BYTES)
            defect = Defect.PAYLOAD_CRC
        yield LostBytes(at, stop, defect)
        return stop

    def _after_wrong_payload(self, at: int, end: int) -> int:
        """Return where to continue after a frame with a valid length and an invalid payload.

        If another frame begins at its end, the payload was changed in place. Missing or extra bytes
        can look the same by chance; then the frames inside lead to that end or past it, which the
        content of a payload cannot do.
        """
        if self._has_wasted_too_much:
            return end
        if not self._is_frame_border(end):
            return self._search(at + HEADER_BYTES, self._window.size)
        inside = at + HEADER_BYTES
        while (inside := self._search(inside, end)) < end and not self._has_wasted_too_much:
            reached = self._reach(inside, end)
            if reached >= end:
                return inside
            inside = max(reached, inside + 1)
        return end

    def _is_frame_border(self, at: int) -> bool:
        """Return whether the file ends or a frame begins here, even with a flipped header bit."""
        if at == self._window.size:
            return True
        return starts_with_frame(self._header(at)) or self._corrected(at) is not None

    def _reach(self, at: int, enough: int) -> int:
        """Follow intact frames up to `enough`; return where they end, to search from there."""
        length: int | None = None
        while at < enough:
            before, length = length, self._length_at(at)
            if length is None or len(set(self._checksums(at, length))) > 1:
                # this frame may consist of two headers: see _eight_byte_frame
                return at - HEADER_BYTES if before == _LENGTH_BYTES else at
            at += FRAME_BYTES + length
        return at

    def _search(self, at: int, stop: int) -> int:
        """Find the next valid length of a frame that fits before `stop`; else return `stop`."""
        while at < stop:
            view = self._window.hold(at, HEADER_BYTES)
            seen = min(len(view) - HEADER_BYTES + 1, stop - at)
            if seen <= 0:
                return stop
            header_at = find_header(view, 0, seen, self._window.size - at)
            at += header_at
            if header_at < seen:
                return at
        return stop

    def _header(self, at: int) -> bytes:
        return bytes(self._window.hold(at, HEADER_BYTES)[:HEADER_BYTES])

    def _length_at(self, at: int) -> int | None:
        """Return the length of the frame here, if its checksum is valid and the frame fits."""
        header = self._header(at)
        if not starts_with_frame(header):
            return None
        length = int.from_bytes(header[:8], "little")
        return length if length <= self._window.size - at - FRAME_BYTES else None

    def _defect_at(self, at: int) -> Defect:
        header = self._header(at)
        if len(header) < HEADER_BYTES:
            return Defect.TRUNCATED_HEADER
        return Defect.TRUNCATED_PAYLOAD if starts_with_frame(header) else Defect.LENGTH_CRC

    def _checksums(self, at: int, length: int) -> tuple[int, int]:
        """Return the stored and the computed checksum of the payload here."""
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
        if len(footer) < FOOTER_BYTES:  # the file became shorter
            return -1, 0
        stored, computed = (int.from_bytes(crc, "little") for crc in (footer, stored_crc(value)))
        if stored != computed:
            self._wasted_bytes += length
        return stored, computed

    @property
    def _has_wasted_too_much(self) -> bool:
        return self._wasted_bytes > self._most_wasted_bytes

    def _corrected(self, at: int) -> tuple[Repair, bytes] | None:
        """Correct one bit of the header here, if that makes both checksums valid."""
        header = self._header(at)
        most = self._window.size - at - FRAME_BYTES
        if len(header) < HEADER_BYTES or most < 0 or self._has_wasted_too_much:
            return None
        bit = _flipped_bit(header, most)
        if bit is None:
            return None
        corrected = bytearray(header)
        corrected[bit // 8] ^= 1 << bit % 8
        stored, computed = self._checksums(at, int.from_bytes(corrected[:8], "little"))
        if stored != computed:
            return None
        repair = Repair(at + bit // 8, bit % 8, "length" if bit < 64 else "length-crc")
        return repair, bytes(corrected)

    def _pieces(self, start: int, size: int, length: int | None = None) -> Iterator[IntactFrames]:
        """Yield bytes of a checked frame; `length` is that of its payload, if it ends there."""
        lengths = _NOTHING if length is None else np.array([length], np.int64)
        stop = start + size
        while start < stop:
            view = self._window.hold(start, 1)[: stop - start]
            if not view:
                raise CorruptDataError(
                    Defect.TRUNCATED_PAYLOAD,
                    "the file became shorter while it was read",
                    remedy="Wait until no other program writes to it.",
                    offset=start,
                )
            offset = start
            start += len(view)
            yield IntactFrames(view.toreadonly(), lengths if start == stop else _NOTHING, offset)


def _flipped_bit(header: bytes, most: int) -> int | None:
    """Find the one of 96 bits that, flipped, gives a length of at most `most` with its checksum.

    At most one bit does: two lengths with equal checksums differ in more than two bits.
    """
    length, stored = int.from_bytes(header[:8], "little"), int.from_bytes(header[8:], "little")
    for bit in range(64):
        other = length ^ 1 << bit
        if other <= most and masked_crc32c(other.to_bytes(8, "little")) == stored:
            return bit
    bit_of_checksum = _only_bit(stored ^ masked_crc32c(header[:8]))
    return None if bit_of_checksum is None or length > most else 64 + bit_of_checksum


def _only_bit(number: int) -> int | None:
    is_one = number > 0 and number & number - 1 == 0
    return number.bit_length() - 1 if is_one else None


_RESERVED_FLAGS = 0xE0
_HEADER_BYTES = 10
_PROBE_BYTES = 1 << 14


def inflate_damaged_stream(
    stream: ByteStream,
    compression: Literal["gzip", "zlib"],
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[memoryview | LostBytes]:
    """Decompress all readable parts of a stream.

    Args:
        stream: open for reading, and seekable.
        max_bytes: the limit of the decompressed size; data beyond it is lost.

    Yields:
        The decompressed bytes in order, as views that are valid until the next step, and the ranges
        of the compressed file that are lost. An empty range at the end of the file means that the
        end mark is missing.
    """
    size = stream.seek(0, os.SEEK_END)
    buffer = bytearray(BLOCK_BYTES)
    view = memoryview(buffer)
    start: int | None = 0
    while start is not None:
        stream.seek(start)
        inflater = Inflater(stream, compression, max_bytes=max_bytes)
        try:
            while count := inflater.readinto(buffer):
                max_bytes -= count
                yield view[:count]
        except CorruptDataError as error:
            broken = start + max(1, inflater.consumed_bytes)
            start = None
            if compression == "gzip" and error.defect is Defect.BROKEN_COMPRESSION:
                start = _next_member(stream, broken, size)
            yield LostBytes(broken, size if start is None else start, error.defect)
            continue
        if not inflater.is_complete:
            yield LostBytes(size, size, Defect.TRUNCATED_COMPRESSION)
        return


def _next_member(stream: ByteStream, at: int, size: int) -> int | None:
    while at < size:
        stream.seek(at)
        block = stream.read(BLOCK_BYTES)
        magic_at = -1
        while (magic_at := block.find(GZIP_MAGIC, magic_at + 1)) >= 0:
            if _is_readable(stream, at + magic_at):
                return at + magic_at
        if len(block) < len(GZIP_MAGIC):
            break
        at += len(block) - len(GZIP_MAGIC) + 1
    return None


def _is_readable(stream: ByteStream, at: int) -> bool:
    stream.seek(at)
    probe = stream.read(_PROBE_BYTES)
    if len(probe) < _HEADER_BYTES or probe[3] & _RESERVED_FLAGS:
        return False
    try:
        return bool(zlib.decompressobj(31).decompress(probe, _PROBE_BYTES))
    except zlib.error:
        return False
