"""Read and write records in binary streams: files, pipes and sockets, compressed or not.

Reads block by block into one buffer, which is scanned in place and reused. It grows for longer
records, but to at most twice the bytes received, so that a damaged length cannot exhaust memory.
Streams need only `read`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import cast

import msgspec

from recordsmith.format.wire.compression import (
    HEAD_BYTES,
    MAX_COMPRESSED_RECORD_BYTES,
    MAX_DECOMPRESSED_BYTES,
    ByteStream,
    Compression,
    Deflater,
    Inflater,
    check_compression,
    detect_compression,
)
from recordsmith.format.wire.framing import (
    FOOTER_BYTES,
    FRAME_BYTES,
    HEADER_BYTES,
    Frames,
    describe_defect,
    encode_record,
    scan,
)
from recordsmith.format.wire.other_formats import detect_other_format
from recordsmith.support.buffers import BytesLike, Int64Array, as_view
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

BLOCK_BYTES = 1 << 20
"""The read size: smaller blocks cost calls, larger ones exceed the processor's cache (measured)."""

_SMALL_BYTES = 4096  # of records, on average

_WITHOUT_LENGTH = (Defect.LENGTH_CRC, Defect.TRUNCATED_HEADER)

DefectHandler = Callable[[CorruptDataError], None]


class RecordBlock(msgspec.Struct, frozen=True):
    """Consecutive records of a stream, without copies.

    buffer: a view of their bytes, valid until the next block is read.
    starts: int64, (count,): where each payload begins in `buffer`.
    lengths: int64, (count,): how long each payload is.
    position: the position of the first record in the stream.
    offset: the byte of the (decompressed) stream that `buffer` begins with.
    """

    buffer: memoryview
    starts: Int64Array
    lengths: Int64Array
    position: int
    offset: int

    def __len__(self) -> int:
        return len(self.starts)

    def payloads(self) -> Iterator[memoryview]:
        """Each payload, as a view."""
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            yield self.buffer[start : start + length]

    def records(self) -> Iterator[bytes]:
        """Each payload, as a copy; small ones are cut from one copy of all, in less time."""
        stops = self.starts + self.lengths
        if not len(stops) or stops[-1] - self.starts[0] > len(stops) * _SMALL_BYTES:
            yield from map(bytes, self.payloads())
            return
        data = bytes(self.buffer[: int(stops[-1])])
        for start, stop in zip(self.starts.tolist(), stops.tolist(), strict=True):
            yield data[start:stop]

    def frames(self) -> memoryview:
        """All records with their frames, as a view; without gaps unless a defect was skipped."""
        if not len(self.starts):
            return self.buffer[:0]
        start = int(self.starts[0]) - HEADER_BYTES
        return self.buffer[start : int(self.starts[-1] + self.lengths[-1]) + FOOTER_BYTES]


def read_blocks(
    stream: ByteStream,
    *,
    compression: Compression | None = None,
    check_payloads: bool = True,
    on_defect: DefectHandler | None = None,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[RecordBlock]:
    """Read the records of a binary stream, block by block.

    Args:
        stream: open for reading at the first record. It is not closed.
        compression: none, gzip or zlib; None detects it from the first bytes.
        check_payloads: whether to check the checksums of payloads; those of lengths always are.
        on_defect: called with a defect instead of raising it. A record with a damaged payload is
            skipped; any other defect ends the stream. Only with `on_defect` is a missing end mark
            of a compressed stream a defect: the data may be complete, and TensorFlow reads it.
        max_decompressed_bytes: the size limit of a compressed stream.
    """
    reader = _BlockReader(stream, compression, max_decompressed_bytes)
    while True:
        frames = reader.scan(check_payloads)
        if len(frames.starts):
            yield reader.block(frames)
        error = reader.advance(frames)
        if error is not None:
            if on_defect is None:
                raise error
            on_defect(error)
            if error.defect is not Defect.PAYLOAD_CRC:
                return
        elif reader.is_finished:
            if on_defect is not None and reader.lacks_end_mark:
                on_defect(reader.end_mark_defect())
            return


def read_records(
    stream: ByteStream,
    *,
    compression: Compression | None = None,
    check_payloads: bool = True,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[bytes]:
    """Read the payloads of a binary stream one by one, with the arguments of `read_blocks`.

    Example:
        with open("out/train-00000-of-00002.tfrecord", "rb") as stream:
            for payload in rs.read_records(stream):
                print(len(payload))
    """
    for block in read_blocks(
        stream,
        compression=compression,
        check_payloads=check_payloads,
        max_decompressed_bytes=max_decompressed_bytes,
    ):
        yield from block.records()


def other_format_defect(head: bytes) -> CorruptDataError | None:
    """Return the error for a file of another format, or None if its format is unknown."""
    foreign = detect_other_format(head)
    if foreign is None:
        return None
    return CorruptDataError(
        Defect.NOT_A_TFRECORD,
        f"not a TFRecord file; {foreign.evidence} {foreign.name}",
        remedy=foreign.advice,
        offset=0,
    )


class RecordWriter:
    """Write records to a binary stream, compressed on request. The stream is not closed.

    Call `finish` once at the end: a compressed stream needs its end mark.
    """

    def __init__(self, stream: ByteStream, *, compression: str | None = None) -> None:
        name = check_compression(compression)
        self._deflater = None if name == "none" else Deflater(stream, name)
        self._write = stream.write if self._deflater is None else self._deflater.write

    def write(self, payload: BytesLike) -> None:
        """Frame one payload and write it."""
        self._write(encode_record(payload))

    def write_frames(self, frames: BytesLike) -> None:
        self._write(as_view(frames))

    def finish(self) -> None:
        """Write the end of a compressed stream."""
        if self._deflater is not None:
            self._deflater.finish()


class _BlockReader:
    """Buffers a stream for scanning and counts its records and bytes."""

    def __init__(
        self, stream: ByteStream, compression: Compression | None, max_decompressed_bytes: int
    ) -> None:
        if compression is not None:
            compression = check_compression(compression)
        self._readinto = _readinto(stream)
        self._buffer = bytearray(BLOCK_BYTES)
        self._filled = 0
        self._at = 0  # the first byte that is not scanned yet
        self._offset = 0  # of the buffer's first byte in the stream
        self._position = 0  # of the record at _at
        self._expected = 1024  # an estimate of the records in a block
        self._ended = False
        self._inflater: Inflater | None = None
        self._failure: CorruptDataError | None = None
        self._fill()
        self._head = bytes(self._buffer[: min(self._filled, HEAD_BYTES)])
        if compression is None:
            compression = detect_compression(self._head)
        if compression != "none":
            rest = _PrefixedStream(bytes(self._buffer[: self._filled]), self._readinto)
            self._inflater = Inflater(rest, compression, max_bytes=max_decompressed_bytes)
            self._readinto = self._inflater.readinto
            self._filled, self._ended = 0, False
            self._fill()

    @property
    def is_finished(self) -> bool:
        return self._ended and self._failure is None and self._at == self._filled

    @property
    def lacks_end_mark(self) -> bool:
        return self._inflater is not None and not self._inflater.is_complete

    def end_mark_defect(self) -> CorruptDataError:
        return CorruptDataError(
            Defect.TRUNCATED_COMPRESSION,
            f"the compressed stream has no end mark after {self._position} complete records",
            remedy="Fetch the file again, or close its writer: records may be missing.",
            offset=self._offset + self._at,
        )

    def scan(self, check_payloads: bool) -> Frames:
        frames = scan(
            memoryview(self._buffer)[: self._filled],
            self._at,
            check_payloads=check_payloads,
            expected=self._expected,
        )
        self._expected = len(frames.starts) * 9 // 8 + 64  # similar to the blocks before
        return frames

    def block(self, frames: Frames) -> RecordBlock:
        return RecordBlock(
            memoryview(self._buffer)[: self._filled].toreadonly(),
            frames.starts,
            frames.lengths,
            self._position,
            self._offset,
        )

    def advance(self, frames: Frames) -> CorruptDataError | None:
        """Move past the scanned frames and read more bytes; return the defect, if any."""
        self._position += len(frames.starts)
        self._at = frames.stop
        if frames.defect in (Defect.LENGTH_CRC, Defect.PAYLOAD_CRC):
            error = self._defect(frames)
            if frames.defect is Defect.PAYLOAD_CRC:  # the next frame begins where this one ends
                self._at += FRAME_BYTES + self._length_at(frames.stop)
                self._position += 1
            return error
        if self._failure is not None:  # kept until the records before it were returned
            error, self._failure = self._failure, None
            error.record = self._position
            self._at = self._filled
            self._ended = True
            return error
        if not self._ended:
            return self._more(frames.defect)
        return None if frames.defect is None else self._defect(frames)

    def _more(self, reason: Defect | None) -> CorruptDataError | None:
        """Keep the bytes that are not scanned and fill the rest of the buffer."""
        kept = self._filled - self._at
        needed = BLOCK_BYTES
        if reason is Defect.TRUNCATED_PAYLOAD:
            needed = self._length_at(self._at) + FRAME_BYTES
            if self._inflater is not None and needed > MAX_COMPRESSED_RECORD_BYTES:
                return CorruptDataError(
                    Defect.DECOMPRESSION_LIMIT,
                    "the compressed record is too long",
                    found=f"{needed} bytes",
                    expected=f"at most {MAX_COMPRESSED_RECORD_BYTES}",
                    remedy="Store records of this size uncompressed.",
                    record=self._position,
                    offset=self._offset + self._at,
                )
        # at most twice the bytes received: the length may be damaged
        size = max(BLOCK_BYTES, min(needed, 2 * kept))
        if size == len(self._buffer):
            self._buffer[:kept] = self._buffer[self._at : self._filled]
        else:
            larger = bytearray(size)
            memoryview(larger)[:kept] = memoryview(self._buffer)[self._at : self._filled]
            self._buffer = larger
        self._offset += self._at
        self._at, self._filled = 0, kept
        self._fill()
        return None

    def _fill(self) -> None:
        view = memoryview(self._buffer)
        while self._filled < len(view) and not self._ended:
            try:
                count = self._readinto(view[self._filled :])
            except CorruptDataError as error:
                self._failure = error
                count = 0
            if count is None:
                raise OptionError(
                    "the stream is non-blocking, so end of file cannot be detected",
                    remedy="Open it in blocking mode.",
                )
            self._filled += count
            self._ended = count == 0

    def _length_at(self, at: int) -> int:
        return int.from_bytes(self._buffer[at : at + 8], "little")

    def _defect(self, frames: Frames) -> CorruptDataError:
        buffer = memoryview(self._buffer)[: self._filled]
        offset = self._offset + frames.stop
        # a first length that is valid or cut off belongs to a TFRecord
        is_cut = frames.defect is Defect.TRUNCATED_HEADER and self.lacks_end_mark
        if offset == 0 and not is_cut and frames.defect in _WITHOUT_LENGTH:
            foreign = other_format_defect(self._head)
            if foreign is not None:
                return foreign
        return describe_defect(frames, buffer, record=self._position, offset=offset)


class _PrefixedStream(io.RawIOBase):
    """A stream with bytes that were already read put back in front."""

    def __init__(self, head: bytes, readinto: Callable[[memoryview], int]) -> None:
        self._head = head
        self._readinto = readinto

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(target).cast("B")
        if not self._head:
            return self._readinto(view)
        count = min(len(view), len(self._head))
        view[:count] = self._head[:count]
        self._head = self._head[count:]
        return count


def _readinto(stream: ByteStream) -> Callable[[memoryview], int]:
    if not hasattr(stream, "read") or isinstance(stream, io.TextIOBase):
        raise OptionError(
            f"{stream!r:.80} is not a binary stream",
            value=stream,
            remedy="Open the file in mode 'rb', or open its path with recordsmith.open.",
        )
    native = getattr(stream, "readinto", None)
    if native is not None:
        return cast(Callable[[memoryview], int], native)

    def readinto(view: memoryview) -> int:
        data = stream.read(len(view))
        view[: len(data)] = data
        return len(data)

    return readinto
