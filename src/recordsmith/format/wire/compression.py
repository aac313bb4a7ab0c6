"""Detect, read and write GZIP and ZLIB as TensorFlow does, in bounded memory.

`detect_compression` uses the first bytes only, not the file name. `Inflater` decompresses a stream
with any number of members and flush points; `Deflater` compresses one deterministically.
"""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO, Literal, TypeAlias, Union

from recordsmith.format.wire.framing import FOOTER_BYTES, HEADER_BYTES, starts_with_frame
from recordsmith.support.errors import CorruptDataError, Defect, option
from recordsmith.support.explaining import unknown_word

ByteStream: TypeAlias = Union[BinaryIO, "io.RawIOBase"]
"""An open file, or what can be read like one."""

Compression: TypeAlias = Literal["none", "gzip", "zlib"]
COMPRESSIONS: tuple[Compression, ...] = ("none", "gzip", "zlib")

MAX_DECOMPRESSED_BYTES = 64 << 30
"""The decompressed size above which a stream is treated as a decompression bomb."""

MAX_COMPRESSED_RECORD_BYTES = 1 << 30
"""The size limit of a record in a compressed stream, which is held in memory."""

HEAD_BYTES = 512
"""How many bytes `detect_compression` and `detect_other_format` need."""

GZIP_MAGIC = b"\x1f\x8b\x08"  # RFC 1952, and deflate
_WINDOW_BITS: dict[str, int] = {"gzip": 31, "zlib": 15}
_INPUT_BYTES = 1 << 18


def detect_compression(head: bytes) -> Compression:
    """Detect how a file that begins with `head` is compressed.

    A valid length checksum means an uncompressed TFRecord. Otherwise the magic bytes of GZIP (RFC
    1952) and ZLIB (RFC 1950) decide; ZLIB has only two, so the bytes after them must also inflate.
    """
    if starts_with_frame(head):
        return "none"
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    if _begins_zlib(head):
        try:
            zlib.decompressobj(_WINDOW_BITS["zlib"]).decompress(head, HEADER_BYTES + FOOTER_BYTES)
        except zlib.error:
            return "none"
        return "zlib"
    return "none"


def starts_with_record(head: bytes) -> bool:
    """Return whether a file begins with a length and its checksum, once it is decompressed.

    Args:
        head: the first HEAD_BYTES of the file.
    """
    compression = detect_compression(head)
    if compression == "none":
        return starts_with_frame(head)
    try:
        inflater = zlib.decompressobj(_WINDOW_BITS[compression])
        return starts_with_frame(inflater.decompress(head, HEADER_BYTES))
    except zlib.error:
        return False


def _begins_zlib(head: bytes) -> bool:
    """Check RFC 1950: deflate, a window of at most 32 KiB, a header that is a multiple of 31."""
    return len(head) >= 2 and head[0] & 0x8F == 0x08 and int.from_bytes(head[:2], "big") % 31 == 0


class Inflater(io.RawIOBase):
    """A readable stream of decompressed data.

    Reads several members, as flushed or concatenated files have them. A stream without an end mark
    is read to its last byte, as in TensorFlow; `is_complete` is False then.

    Raises:
        CorruptDataError: broken-compression; decompression-limit past `max_bytes`.
    """

    def __init__(
        self,
        stream: ByteStream,
        compression: Literal["gzip", "zlib"],
        *,
        max_bytes: int = MAX_DECOMPRESSED_BYTES,
    ) -> None:
        self._stream = stream
        self._compression = compression
        self._max_bytes = max_bytes
        self._engine = zlib.decompressobj(_WINDOW_BITS[compression])
        self._pending = b""
        self._failure: CorruptDataError | None = None
        self._input_bytes = 0
        self._output_bytes = 0

    @property
    def is_complete(self) -> bool:
        """Whether the last member that was read has an end mark."""
        return self._engine.eof

    @property
    def consumed_bytes(self) -> int:
        """How many compressed bytes have been decompressed so far."""
        return self._input_bytes - len(self._pending)

    def readable(self) -> bool:
        return True

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        view = memoryview(target).cast("B")
        if not view:
            return 0
        while True:
            if self._failure is not None:
                raise self._failure
            if not self._pending:
                self._pending = self._stream.read(_INPUT_BYTES)
                self._input_bytes += len(self._pending)
            ended = not self._pending
            if self._engine.eof and not self._begin_member():
                if ended:
                    return 0
                continue
            data = self._decompress(len(view))
            if data:
                self._output_bytes += len(data)
                if self._output_bytes > self._max_bytes:
                    raise self._too_large()
                view[: len(data)] = data
                return len(data)
            if ended and self._failure is None:
                return 0

    def _begin_member(self) -> bool:
        """Skip the padding after a member (RFC 1952 allows it) and begin the next one, if any.

        Other bytes after a ZLIB stream are ignored, as in TensorFlow.
        """
        self._pending = self._pending.lstrip(b"\0")
        if len(self._pending) == 1:  # a header takes two bytes
            more = self._stream.read(_INPUT_BYTES)
            self._input_bytes += len(more)
            self._pending += more
        if not self._pending:
            return False
        if self._compression == "zlib" and not _begins_zlib(self._pending):
            self._pending = b""
            while self._stream.read(_INPUT_BYTES):
                pass
            return False
        self._engine = zlib.decompressobj(_WINDOW_BITS[self._compression])
        return True

    def _decompress(self, size: int) -> bytes:
        """Decompress at most `size` bytes; at damaged data, all bytes before it but at most one."""
        spare = self._engine.copy()
        try:
            data = self._engine.decompress(self._pending, size)
        except zlib.error as error:
            self._engine = spare
            data = self._inflate_rest(size)
            if len(data) < size:
                self._failure = self._broken(error)
            return data
        self._pending = self._engine.unconsumed_tail or self._engine.unused_data
        return data

    def _inflate_rest(self, size: int) -> bytes:
        """Decompress the data before the damage in ever smaller steps: a failed step gives nothing.

        The last steps are single bytes, output before the next input, so that the result does not
        depend on `size`. A byte that zlib would output together with the error is lost.
        """
        rescued = bytearray()
        for step in (1 << 14, 1 << 10, 1 << 6, 1 << 3):
            while self._pending and len(rescued) < size:
                more = self._try(step, size - len(rescued))
                if more is None:
                    break
                rescued += more
        while len(rescued) < size:
            more = self._try(0, 1) or (self._try(1, 1) if self._pending else None)
            if more is None:
                break
            rescued += more
        return bytes(rescued)

    def _try(self, input_size: int, output_size: int) -> bytes | None:
        """Decompress one step; return None and restore the state if it fails."""
        engine = self._engine.copy()
        try:
            data = engine.decompress(self._pending[:input_size], output_size)
        except zlib.error:
            return None
        self._engine = engine
        self._pending = engine.unconsumed_tail + self._pending[input_size:]
        return data

    def _broken(self, error: zlib.error) -> CorruptDataError:
        reason = str(error).partition(": ")[2] or str(error)
        return CorruptDataError(
            Defect.BROKEN_COMPRESSION,
            f"the {self._compression} data is damaged near byte {self.consumed_bytes} of the file "
            f"({reason})",
            remedy="Fetch the file again; the records before this byte are intact.",
        )

    def _too_large(self) -> CorruptDataError:
        return CorruptDataError(
            Defect.DECOMPRESSION_LIMIT,
            "the stream may be a decompression bomb",
            found=f"more than {self._max_bytes} bytes from {self._input_bytes} compressed bytes",
            expected=f"at most {self._max_bytes}",
            remedy="If you trust the file, decompress it with another tool, or read it with "
            f"read_records and a larger {option('max_decompressed_bytes')}.",
        )


class Deflater:
    """Compress written data into another stream; `finish` writes the end mark."""

    def __init__(self, stream: ByteStream, compression: Literal["gzip", "zlib"]) -> None:
        self._stream = stream
        self._engine = zlib.compressobj(wbits=_WINDOW_BITS[compression])

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._stream.write(self._engine.compress(data))

    def finish(self) -> None:
        self._stream.write(self._engine.flush())


def check_compression(name: object) -> Compression:
    """Convert a name to one of COMPRESSIONS; None means none."""
    if name is None or name == "":
        return "none"
    for compression in COMPRESSIONS:
        if str(name).lower() == compression:
            return compression
    raise unknown_word("compression", name, COMPRESSIONS)
