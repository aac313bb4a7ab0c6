r"""Where does each record of a shard begin? Answered from a small file, made once.

The index lies beside the shard in a hidden folder, or in the user's cache where that cannot be
written. It holds the size of the shard and a checksum over samples of its bytes, so that an index
of a replaced, grown or cut shard is not used; and a checksum of itself. It is replaced atomically,
so several processes may build it at once.

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

import numpy as np

from recordsmith.buffers import Int64Array, as_view
from recordsmith.errors import FileAccessError
from recordsmith.files import (
    DOCUMENT_BYTES,
    INTERNAL_FOLDER,
    accessing,
    cache_folder,
    make_folder,
    open_file,
    read_document,
    read_head,
    size_of,
    write_atomically,
)
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
_DEFLATE_RATIO = 1032  # more than that no byte of a deflate stream can become (RFC 1951)
_CHECKED_AT_A_TIME = 1 << 14
_SAMPLE_BYTES = 4096
_SAMPLE_COUNT = 8

KEEP_FROM_BYTES = 1 << 20
"""Indexes of smaller foreign shards are not kept: building one again takes a millisecond."""


@dataclass(frozen=True)
class ShardIndex:
    """Where the records of one shard are.

    offsets: int64, (record_count + 1,): where each frame begins, and where the last one ends.
    compression: if not none, offsets count the decompressed bytes.
    """

    offsets: Int64Array
    compression: Compression

    @property
    def record_count(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def from_lengths(cls, lengths: Int64Array, compression: Compression) -> ShardIndex:
        """The index of frames that follow one another without a gap, from byte 0."""
        offsets = np.empty(len(lengths) + 1, np.int64)
        offsets[0] = 0
        np.add(lengths, FRAME_BYTES, out=offsets[1:])
        np.cumsum(offsets, out=offsets)
        return cls(offsets, compression)


def most_bytes(size_bytes: int, compression: Compression) -> int:
    """How many bytes of frames a file of some size can hold."""
    if compression == "none":
        return size_bytes
    return min(_DEFLATE_RATIO * size_bytes, MAX_DECOMPRESSED_BYTES)


def index_paths(shard: Path) -> tuple[Path, Path]:
    """Where the index of a shard may lie: beside it, and in the user's cache."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(shard))).hexdigest()[:32]
    return (
        shard.parent / INTERNAL_FOLDER / f"{shard.name}.index",
        cache_folder() / "index" / f"{name}.index",
    )


def load_index(shard: Path) -> ShardIndex | None:
    """The index of a shard, if there is one that fits what the shard holds now."""
    found = find_index(shard)
    return None if found is None else found[1]


def find_index(shard: Path) -> tuple[Path, ShardIndex] | None:
    """The same, and where it lies."""
    for path in index_paths(shard):
        try:
            # a file of records has 16 bytes for each; where it is compressed to less, the index
            # is made again each time
            data = read_document(path, DOCUMENT_BYTES + 8 * size_of(shard))
        except FileAccessError:
            continue
        index = _parse(data, shard)
        if index is not None:
            return path, index
    return None


def index_pieces(shard: Path, index: ShardIndex) -> tuple[bytes | memoryview, ...]:
    """What an index file holds, end to end; `shard` is the file as it is now."""
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
    """Keep an index for next time; answers where, or None if no place can be written."""
    pieces = index_pieces(shard, index)
    for path in index_paths(shard):
        if path.parent.is_symlink():  # whoever made the shard may have made the link
            continue
        with suppress(FileAccessError):
            make_folder(path.parent)
            write_atomically(path, *pieces)
            return path
    return None


def _parse(data: bytes, shard: Path) -> ShardIndex | None:
    """None unless everything about it is right: it can always be built again.

    Whoever made the shard may have made the index, with checksums that fit: so offsets must be such
    as the file can have, before memory is asked for by them.
    """
    if len(data) < _HEADER.size + 12 or data[:8] != _MAGIC:
        return None
    _, size, samples, compression, count = _HEADER.unpack_from(data)
    if len(data) != _HEADER.size + 8 * (count + 1) + 4 or compression >= len(COMPRESSIONS):
        return None
    if crc32c(memoryview(data)[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    if size_of(shard) != size or _sample_checksum(shard, size) != samples:
        return None
    name = COMPRESSIONS[compression]
    if size and detect_compression(read_head(shard, HEAD_BYTES)) != name:
        return None
    offsets = np.frombuffer(data, "<i8", count + 1, _HEADER.size)
    if offsets[0] != 0 or not _are_frames(offsets):
        return None
    if offsets[-1] != size if name == "none" else offsets[-1] > most_bytes(size, name):
        return None
    return ShardIndex(offsets.astype(np.int64, copy=False), name)


def _are_frames(offsets: Int64Array) -> bool:
    """Whether each begins where a frame before it can end; part by part, within the cache."""
    for start in range(0, len(offsets) - 1, _CHECKED_AT_A_TIME):
        part = offsets[start : start + _CHECKED_AT_A_TIME + 1]
        if (part[1:] <= part[:-1]).any():
            return False  # only offsets that ascend have differences that are true
        if (np.diff(part) < FRAME_BYTES).any():
            return False
    return True


def _sample_checksum(shard: Path, size: int) -> int:
    """CRC-32C over the first bytes, the last, and some between, evenly spread."""
    value = 0
    with open_file(shard) as file, accessing(shard):
        for number in range(_SAMPLE_COUNT):
            file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLE_COUNT - 1))
            value = crc32c(file.read(_SAMPLE_BYTES), value)
    return value
