"""GZIP and ZLIB as TensorFlow writes them: recognised by their bytes, read in bounded memory.

`detect_compression` looks at the first bytes and nothing else: names lie. `Inflater` turns a
compressed stream into a plain one, through any number of members and flush points. `Deflater`
is the way back; it writes the same bytes for the same input at every run.
"""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO, Literal, TypeAlias

from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.wire.framing import FOOTER_BYTES, HEADER_BYTES, begins_frame

Compression: TypeAlias = Literal["none", "gzip", "zlib"]
COMPRESSIONS: tuple[Compression, ...] = ("none", "gzip", "zlib")

MAX_DECOMPRESSED_BYTES = 64 << 30
"""How much one compressed stream may become before it is taken for a decompression bomb."""

MAX_COMPRESSED_RECORD_BYTES = 1 << 30
"""How long one record of a compressed stream may be: it has to be held in memory whole."""

HEAD_BYTES = 512
"""How many first bytes `detect_compression` and `describe_foreign` want to see."""

_WINDOW_BITS: dict[str, int] = {"gzip": 31, "zlib": 15}
_INPUT_BYTES = 1 << 18


def detect_compression(head: bytes) -> Compression:
    """How a file that begins with `head` is compressed.

    A plain TFRecord is recognised by its first length, whose checksum can hardly be right by
    chance; only where that fails do the magic bytes of GZIP (RFC 1952) and ZLIB (RFC 1950) count,
    and the two bytes of ZLIB only where what follows inflates.
    """
    if begins_frame(head):
        return "none"
    if head[:3] == b"\x1f\x8b\x08":
        return "gzip"
    if _begins_zlib(head):
        try:
            zlib.decompressobj(_WINDOW_BITS["zlib"]).decompress(head, HEADER_BYTES + FOOTER_BYTES)
        except zlib.error:
            return "none"
        return "zlib"
    return "none"


def _begins_zlib(head: bytes) -> bool:
    """RFC 1950: deflate, a window of at most 32 KiB, and a header that is a multiple of 31."""
    return len(head) >= 2 and head[0] & 0x8F == 0x08 and int.from_bytes(head[:2], "big") % 31 == 0


class Inflater(io.RawIOBase):
    """A readable stream of what a compressed stream holds.

    Members may follow one another, as flushed and concatenated writers leave them. A stream that
    ends without its end mark reads to its last byte, as in TensorFlow; `is_complete` tells.

    Raises:
        CorruptDataError: broken-compression; decompression-limit past `max_bytes`.
    """

    def __init__(
        self,
        stream: BinaryIO,
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
        """Whether the last member read so far had its end mark."""
        return self._engine.eof

    @property
    def consumed_bytes(self) -> int:
        """How many compressed bytes were understood so far."""
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
        """Pass the padding after a member (RFC 1952 leaves room for it); is there another one?

        What else follows a ZLIB stream is no part of it, as in TensorFlow.
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
        """At most `size` bytes; where the data breaks, every byte before that but at most one."""
        spare = self._engine.copy()
        try:
            data = self._engine.decompress(self._pending, size)
        except zlib.error as error:
            self._engine = spare
            data = self._rescue(size)
            if len(data) < size:
                self._failure = self._broken(error)
            return data
        self._pending = self._engine.unconsumed_tail or self._engine.unused_data
        return data

    def _rescue(self, size: int) -> bytes:
        """What comes before the break: ever smaller steps, as one that breaks gives nothing.

        In the end single bytes, taken out before another is put in: so the same comes, whatever
        `size` is. A byte that zlib gives together with the break is lost.
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
        """A step into the data that is not there if it breaks."""
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
            f"the {self._compression} data cannot be decompressed near byte {self.consumed_bytes} "
            f"of the file ({reason}). What was read before is intact; fetch the file again.",
        )

    def _too_large(self) -> CorruptDataError:
        return CorruptDataError(
            Defect.DECOMPRESSION_LIMIT,
            f"{self._input_bytes} compressed bytes became more than {self._max_bytes}; stopped, as "
            "this may be a decompression bomb. If you trust the file, unpack it with another tool, "
            "or read it with read_records and a larger max_decompressed_bytes.",
        )


class Deflater:
    """Compress what is written to it into another stream; `finish` writes the end mark."""

    def __init__(self, stream: BinaryIO, compression: Literal["gzip", "zlib"]) -> None:
        self._stream = stream
        self._engine = zlib.compressobj(wbits=_WINDOW_BITS[compression])

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._stream.write(self._engine.compress(data))

    def finish(self) -> None:
        self._stream.write(self._engine.flush())


def check_compression(name: object) -> Compression:
    """`name` as one of COMPRESSIONS; None means none.

    Raises:
        OptionError: it is no compression that TFRecord files have.
    """
    if name is None or name == "":
        return "none"
    for compression in COMPRESSIONS:
        if str(name).lower() == compression:
            return compression
    raise OptionError(f"compression {name!r} is unknown; it can be {', '.join(COMPRESSIONS)}")
