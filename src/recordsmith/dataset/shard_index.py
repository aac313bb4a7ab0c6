r"""Index files, which store the offset of each record of a shard.

An index lies in a hidden folder next to the shard, or in the user's cache if that folder is not
writable. It has the size of the shard and a checksum over samples of its bytes, so that the index
of a changed shard is not used, and a checksum of itself. Files are replaced atomically, so several
processes may build an index at once.

Layout, little-endian:
    0   8  b"RSINDEX\\1"
    8   8  size of the shard in bytes
    16  4  CRC-32C over samples of the shard
    20  4  compression: 0 none, 1 gzip, 2 zlib
    24  8  number of records
    32  8 * (records + 1)  where each frame begins, then where the last one ends; in the
           decompressed stream, if the shard is compressed
    ..  4  CRC-32C of all bytes before
"""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from recordsmith.buffers import Int64Array, as_view
from recordsmith.errors import FileAccessError
from recordsmith.files import (
    INTERNAL_FOLDER,
    accessing,
    cache_folder,
    make_folder,
    open_file,
    open_regular_file,
    read_head,
    size_of,
)
from recordsmith.stores import write_atomically
from recordsmith.wire import (
    COMPRESSIONS,
    FRAME_BYTES,
    HEAD_BYTES,
    Compression,
    crc32c,
    detect_compression,
)
from recordsmith.wire.compression import MAX_DECOMPRESSED_BYTES

_MAGIC = b"RSINDEX\x01"
_HEADER = struct.Struct("<8sQIIQ")
_DEFLATE_RATIO = 1032  # the maximum expansion of a deflate stream (RFC 1951)
_MOST_BYTES = 1 << 26  # plus 8 per byte of the shard; limits compressed shards
_CHECKED_AT_A_TIME = 1 << 14
_SAMPLE_BYTES = 4096
_SAMPLE_COUNT = 8

KEEP_FROM_BYTES = 1 << 20
"""Indexes of smaller foreign shards are not saved: building one takes a millisecond."""


@dataclass(frozen=True)
class ShardIndex:
    """The offsets of the records of one shard.

    offsets: int64, (record_count + 1,): the start of each frame, and the end of the last one.
    compression: if not none, offsets are in the decompressed data.
    """

    offsets: Int64Array
    compression: Compression

    @property
    def record_count(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_lengths(cls, lengths: Int64Array, compression: Compression) -> ShardIndex:
        """Make the index of contiguous frames from byte 0."""
        offsets = np.empty(len(lengths) + 1, np.int64)
        offsets[0] = 0
        np.add(lengths, FRAME_BYTES, out=offsets[1:])
        np.cumsum(offsets, out=offsets)
        return cls(offsets, compression)


def most_bytes(size_bytes: int, compression: Compression) -> int:
    """The maximum number of bytes of frames in a file of a given size."""
    if compression == "none":
        return size_bytes
    return min(_DEFLATE_RATIO * size_bytes, MAX_DECOMPRESSED_BYTES)


def index_paths(shard: Path) -> tuple[Path, Path]:
    """The possible paths of an index: next to the shard, and in the user's cache."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(shard))).hexdigest()[:32]
    return (
        shard.parent / INTERNAL_FOLDER / f"{shard.name}.index",
        cache_folder() / "index" / f"{name}.index",
    )


def load_index(shard: Path) -> ShardIndex | None:
    """Load the index of a shard; None if there is no valid one."""
    found = find_index(shard)
    return None if found is None else found[1]


def find_index(shard: Path) -> tuple[Path, ShardIndex] | None:
    """The path and the index of a shard; None if there is no valid one."""
    for path in index_paths(shard):
        with suppress(FileAccessError), open_regular_file(path) as file, accessing(path):
            index = _read(file, shard)
            if index is not None:
                return path, index
    return None


def index_pieces(shard: Path, index: ShardIndex) -> tuple[bytes | memoryview, ...]:
    """The content of an index file for the current file `shard`."""
    size = size_of(shard)
    head = _HEADER.pack(
        _MAGIC,
        size,
        _sample_checksum(shard, size),
        COMPRESSIONS.index(index.compression),
        index.record_count,
    )
    table = np.ascontiguousarray(index.offsets, "<i8").view(np.uint8)
    return head, as_view(table), struct.pack("<I", crc32c(table, crc32c(head)))


def save_index(shard: Path, index: ShardIndex) -> Path | None:
    """Save an index; return its path, or None if no location is writable."""
    pieces = index_pieces(shard, index)
    for path in index_paths(shard):
        if path.parent.is_symlink():  # the link may come from the author of the shard
            continue
        with suppress(FileAccessError):
            make_folder(path.parent)
            write_atomically(path, pieces)
            return path
    return None


def _read(file: BinaryIO, shard: Path) -> ShardIndex | None:
    """Read an index file; None if anything is wrong, because an index can be rebuilt.

    The file is untrusted: the author of the shard may have made it with matching checksums. Its
    length is checked before memory is allocated.
    """
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or head[:8] != _MAGIC:
        return None
    _, size, samples, compression, count = _HEADER.unpack(head)
    if compression >= len(COMPRESSIONS) or size_of(shard) != size:
        return None
    name = COMPRESSIONS[compression]
    table_bytes = 8 * (count + 1)
    if os.fstat(file.fileno()).st_size != _HEADER.size + table_bytes + 4:
        return None
    if count > most_bytes(size, name) // FRAME_BYTES or table_bytes > _MOST_BYTES + 8 * size:
        return None
    table, checksum = file.read(table_bytes), file.read(4)
    if len(table) != table_bytes or crc32c(table, crc32c(head)) != int.from_bytes(
        checksum, "little"
    ):
        return None
    if _sample_checksum(shard, size) != samples:
        return None
    if size and detect_compression(read_head(shard, HEAD_BYTES)) != name:
        return None
    offsets = np.frombuffer(table, "<i8")
    if offsets[0] != 0 or not _are_frames(offsets):
        return None
    if offsets[-1] != size if name == "none" else offsets[-1] > most_bytes(size, name):
        return None
    return ShardIndex(offsets.astype(np.int64, copy=False), name)


def _are_frames(offsets: Int64Array) -> bool:
    """Whether the offsets leave room for each frame; checked in parts that fit the cache."""
    for start in range(0, len(offsets) - 1, _CHECKED_AT_A_TIME):
        part = offsets[start : start + _CHECKED_AT_A_TIME + 1]
        if (part[1:] <= part[:-1]).any():
            return False  # differences of descending offsets could overflow
        if (np.diff(part) < FRAME_BYTES).any():
            return False
    return True


def _sample_checksum(shard: Path, size: int) -> int:
    """CRC-32C over evenly spaced samples, from the first to the last bytes."""
    value = 0
    with open_file(shard) as file, accessing(shard):
        for number in range(_SAMPLE_COUNT):
            file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLE_COUNT - 1))
            value = crc32c(file.read(_SAMPLE_BYTES), value)
    return value
