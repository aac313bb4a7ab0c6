"""Decompress a damaged file: everything before a defect, and the readable members after it.

Deflate data cannot be read from the middle, so a defect loses the rest of its member. Flushing
writers and joined files leave several GZIP members; the next one is found by its magic bytes and
must decompress. The two magic bytes of ZLIB are too few for a search.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Literal

from recordsmith.errors import CorruptDataError, Defect
from recordsmith.wire.compression import GZIP_MAGIC, MAX_DECOMPRESSED_BYTES, ByteStream, Inflater
from recordsmith.wire.recovery import BLOCK_BYTES, LostBytes

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
    """Find the next readable GZIP member."""
    while at < size:
        stream.seek(at)
        block = stream.read(BLOCK_BYTES)
        found = -1
        while (found := block.find(GZIP_MAGIC, found + 1)) >= 0:
            if _is_readable(stream, at + found):
                return at + found
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
