r"""Index files, which store the offset of each record of a shard.

An index lies in a hidden folder next to the shard, or in the user's cache if that folder is not
writable. It has the size and the time of the shard, and checksums of itself. If the time differs,
the shard was copied or changed: the headers of its frames decide, and an index that fits them gets
the new time. Files are replaced atomically, so several processes may build an index at once.

Of a shard in a store over a network, the time is not compared, as records show a wrong index, and
most indexes are one request. An index that is built on reading such a shard goes to the user's
cache, by the name and version of the shard. So does one that is read, if the store keeps what it
reads.

docs/reference/dataset.md describes the file.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec
import numpy as np

from recordsmith.dataset.names import INTERNAL_FOLDER
from recordsmith.format.wire import (
    COMPRESSIONS,
    FRAME_BYTES,
    HEAD_BYTES,
    HEADER_BYTES,
    Compression,
    crc32c,
    detect_compression,
    lengths_of_headers,
)
from recordsmith.format.wire.compression import MAX_DECOMPRESSED_BYTES
from recordsmith.stores import (
    INDEX_FOLDER,
    Location,
    ObjectInfo,
    PlaceLike,
    as_folder,
    as_location,
    check_private,
    make_private,
    make_private_folder,
    user_cache_folder,
)
from recordsmith.support.buffers import Int64Array, as_view
from recordsmith.support.errors import FileAccessError, OptionError

_MAGIC = b"RSINDEX\x03"
_HEADER = struct.Struct("<8sQQIQ")
_BLOCK_OFFSETS = 1 << 13
_DEFLATE_RATIO = 1032  # the maximum expansion of a deflate stream (RFC 1951)
_MAX_TABLE_BYTES = 1 << 26  # plus 8 per byte of the shard; limits compressed shards
_HEADERS_AT_ONCE = 1 << 16
_TICK_NS, _COARSE_TICK_NS = 10**8, 2 * 10**9  # of clocks of file systems, with a margin
_FIRST_BYTES = 1 << 20  # of an index over a network: most are shorter

KEEP_FROM_BYTES = 1 << 20
"""Indexes of smaller foreign shards are not saved: building one takes a millisecond."""


class ShardIndex(msgspec.Struct, frozen=True):
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


def max_bytes(size_bytes: int, compression: Compression) -> int:
    """The maximum number of bytes of frames in a file of a given size."""
    if compression == "none":
        return size_bytes
    return min(_DEFLATE_RATIO * size_bytes, MAX_DECOMPRESSED_BYTES)


def index_locations(
    shard: PlaceLike, version: str = "", suffix: str = ".index"
) -> tuple[Location, Location]:
    """The possible locations of an index: next to the shard, and in the user's cache."""
    location = as_location(shard)
    identity = f"{location.identity}\0{version}" if version else location.identity

    import hashlib

    name = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return (
        location.parent / INTERNAL_FOLDER / f"{location.name}{suffix}",
        as_folder(user_cache_folder()) / INDEX_FOLDER / f"{name}{suffix}",
    )


def load_index(
    shard: PlaceLike,
    info: ObjectInfo | None = None,
    *,
    is_next_to_it: bool = True,
    is_cached: bool = True,
) -> tuple[ShardIndex, Location] | None:
    """Load the index of a shard, with the location of its file; None if there is no valid one."""
    location = as_location(shard)
    others = []
    for head in _heads(location, info, is_next_to_it, is_cached):
        if (index := head.load()) is not None:
            if head.is_current:
                return index, head.location
            others.append((index, head))
    for index, head in others:
        with suppress(FileAccessError):
            if _fits(location, index):
                if version_of(location, head.info):
                    save_pieces(index_pieces(location, index, head.info), index_locations(location))
                return index, head.location
    return None


def saved_record_count(shard: Location) -> int | None:
    """The number of records of a local shard according to its index, of which only the head is
    read; None if there is none that is known to be of its present version.
    """
    return next((head.record_count for head in _heads(shard) if head.is_current), None)


def version_of(shard: Location, info: ObjectInfo, *, is_own: bool = False) -> int:
    """Return a number for what a shard contains now, to keep with what is computed from it.

    Of a local file, it is the time of its last change; 0 if that is so recent that another change
    could have the same time. Over a network, it is of the ETag; 0 if there is none.

    Args:
        is_own: whether this process wrote the file, and no other could have changed it since.
    """
    store = shard.store
    if not store.has_identity(info.version):
        return 0
    version = store.version_number(info.version)
    tick = _TICK_NS if version % 10**9 else _COARSE_TICK_NS
    return version if is_own or abs(time.time_ns() - version) > tick else 0


def is_version(version: int, shard: Location, info: ObjectInfo) -> bool:
    """Whether a number that was kept is of what the shard contains now, without reading it."""
    return version != 0 and version == version_of(shard, info, is_own=True)


def _fits(shard: Location, index: ShardIndex) -> bool:
    """Whether each frame of a local shard begins where its index has it."""
    if index.compression != "none":
        return False  # to read it takes as long as to build the index again
    begins, lengths = index.offsets[:-1], np.diff(index.offsets)
    headers = np.empty((min(len(begins), _HEADERS_AT_ONCE), HEADER_BYTES), np.uint8)
    places = np.arange(len(headers)) * HEADER_BYTES
    with shard.open_read() as file:
        for start in range(0, len(begins), _HEADERS_AT_ONCE):
            own = begins[start : start + _HEADERS_AT_ONCE]
            count = len(own)
            if not file.read_pieces(own, own + HEADER_BYTES, places[:count], headers.reshape(-1)):
                return False
            found, _ = lengths_of_headers(headers[:count], int(index.offsets[-1] - own[0]))
            if not np.array_equal(found + FRAME_BYTES, lengths[start : start + count]):
                return False
    return True


def _heads(
    shard: Location,
    info: ObjectInfo | None = None,
    is_next_to_it: bool = True,
    is_cached: bool = True,
) -> Iterator[_Head]:
    with suppress(FileAccessError):
        info = shard.info() if info is None else info
    if info is None:
        return
    near, cached = index_locations(shard, info.version if shard.store.is_remote else "")
    locations = [near] * is_next_to_it + [cached] * is_cached
    if shard.store.is_remote:  # the cache comes first: it takes no request
        locations.reverse()
    for location in locations:
        with suppress(FileAccessError):
            head = _read_head(location, shard, info)
            if head is None:
                continue
            check_folder(location)
            yield head


class _Head(NamedTuple):
    """The beginning of an index file, which was verified.

    is_current: whether it is known to be of the present version of the shard.
    data: the bytes of the file that were read.
    """

    location: Location
    compression: Compression
    record_count: int
    info: ObjectInfo
    is_current: bool
    data: bytes

    def load(self) -> ShardIndex | None:
        """Read the whole index; None if the file is damaged or cannot be read."""
        start = _table_start(self.record_count)
        data = self.data
        stop = start + 8 * (self.record_count + 1)
        if len(data) < stop:
            with suppress(FileAccessError):
                data += self.location.read(len(data), stop)
        if len(data) != stop:
            return None
        # a copy, as the table may begin at any multiple of 4: NumPy is slow with unaligned arrays
        offsets = np.frombuffer(data, "<i8", offset=start).astype(np.int64)
        stored = np.frombuffer(data[_HEADER.size : start - 4], "<u4")
        end = int(offsets[-1])
        ends_well = end == self.info.size_bytes
        if self.compression != "none":
            ends_well = end <= max_bytes(self.info.size_bytes, self.compression)
        if (
            offsets[0] == 0
            and ends_well
            and _checksums(offsets) == stored.tolist()
            and _are_frames(offsets)
        ):
            return ShardIndex(offsets, self.compression)
        return None


def index_pieces(
    shard: PlaceLike, index: ShardIndex, info: ObjectInfo | None = None, *, is_own: bool = False
) -> tuple[bytes | memoryview, ...]:
    """The content of an index file for a shard; `is_own` as in `version_of`."""
    location = as_location(shard)
    info = location.info() if info is None else info
    version = version_of(location, info, is_own=is_own)
    compression = COMPRESSIONS.index(index.compression)
    head = _HEADER.pack(_MAGIC, info.size_bytes, version, compression, index.record_count)
    head += np.array(_checksums(index.offsets), "<u4").tobytes()
    table = np.ascontiguousarray(index.offsets, "<i8").view(np.uint8)
    return head, struct.pack("<I", crc32c(head)), as_view(table)


def save_index(
    shard: PlaceLike, index: ShardIndex, info: ObjectInfo | None = None, *, is_own: bool = False
) -> Location | None:
    """Save an index; return its location, or None if none is writable."""
    location = as_location(shard)
    version = info.version if info is not None and location.store.is_remote else ""
    pieces = index_pieces(location, index, info, is_own=is_own)
    return save_pieces(pieces, index_locations(location, version))


def cache_index(shard: Location, index: ShardIndex, info: ObjectInfo) -> Location | None:
    """Save the index of a version of a shard over a network, in the user's cache."""
    pieces = index_pieces(shard, index, info)
    return save_pieces(pieces, index_locations(shard, info.version)[1:])


def save_pieces(
    pieces: tuple[bytes | memoryview, ...], locations: Iterable[Location]
) -> Location | None:
    """Write a file at the first of some locations that is writable; None if there is none."""
    for location in locations:
        # an option error: the hidden folder is a link, which the author of the shard may have made
        with suppress(FileAccessError, OptionError):
            if location.parent.name == INTERNAL_FOLDER:
                location.put(pieces)
                return location
            for folder in _cache_folders():
                make_private_folder(folder)
            location.put(pieces)
            make_private(str(location))
            return location
    return None


def check_folder(location: Location) -> None:
    """Raise an error if a file is in the user's cache and others could have written it."""
    if location.parent.name != INTERNAL_FOLDER:
        for folder in _cache_folders():
            check_private(folder)


def _cache_folders() -> tuple[str, str]:
    folder = user_cache_folder()
    return folder, f"{folder}/{INDEX_FOLDER}"


def _table_start(record_count: int) -> int:
    return _HEADER.size + 4 * (record_count // _BLOCK_OFFSETS + 1) + 4


def _read_head(location: Location, shard: Location, info: ObjectInfo) -> _Head | None:
    """Read the head of an index file; None if anything is wrong, because it can be rebuilt.

    The file is untrusted: the author of the shard may have made it with matching checksums. Its
    length is checked before memory is allocated.
    """
    is_remote = location.store.is_remote
    file_bytes = None if is_remote else location.size()  # raises for a pipe, which would block
    data = location.read(0, _FIRST_BYTES if is_remote else _HEADER.size)
    if len(data) < _HEADER.size or data[:8] != _MAGIC:
        return None
    _, size, version, compression, count = _HEADER.unpack_from(data)
    if compression >= len(COMPRESSIONS) or size != info.size_bytes:
        return None
    name = COMPRESSIONS[compression]
    table_start, table_bytes = _table_start(count), 8 * (count + 1)
    total = table_start + table_bytes
    if min(total, _FIRST_BYTES) != len(data) if file_bytes is None else total != file_bytes:
        return None
    if count > max_bytes(size, name) // FRAME_BYTES or table_bytes > _MAX_TABLE_BYTES + 8 * size:
        return None
    if len(data) < table_start:
        data += location.read(len(data), table_start)
    if crc32c(data[: table_start - 4]) != int.from_bytes(
        data[table_start - 4 : table_start], "little"
    ):
        return None
    if shard.store.is_remote:
        return _Head(location, name, count, info, is_current=True, data=data)
    if size and detect_compression(shard.read(0, HEAD_BYTES)) != name:
        return None
    is_current = is_version(version, shard, info)
    return _Head(location, name, count, info, is_current, data)


def _checksums(offsets: Int64Array) -> list[int]:
    table = np.ascontiguousarray(offsets, "<i8")
    return [
        crc32c(table[start : start + _BLOCK_OFFSETS].view(np.uint8))
        for start in range(0, len(table), _BLOCK_OFFSETS)
    ]


def _are_frames(offsets: Int64Array) -> bool:
    """Whether the offsets leave room for each frame; checked in parts that fit the cache."""
    for start in range(0, len(offsets) - 1, _BLOCK_OFFSETS):
        part = offsets[start : start + _BLOCK_OFFSETS + 1]
        if (part[1:] <= part[:-1]).any():
            return False  # differences of descending offsets could overflow
        if (np.diff(part) < FRAME_BYTES).any():
            return False
    return True
