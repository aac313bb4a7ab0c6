"""`BlockFiles`: blocks of objects in the files of a cache folder that processes share.

A file has the pages of one block of a version of an object, of which any may be missing. Reading
takes no lock: a page counts if it matches its checksum, whatever a killed process has left. Writing
takes the lock of the folder and reserves its space first, so that the folder keeps its limit.
"""

from __future__ import annotations

import errno
import math
import os
import re
import struct
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeAlias

from recordsmith.stores.local.caches import (
    INDEX_FOLDER,
    PRIVATE_MODE,
    check_private,
    check_private_status,
    make_private_folder,
)
from recordsmith.stores.local.locks import lock_file
from recordsmith.stores.local.reader import NO_LINKS, open_regular, opened
from recordsmith.support.errors import FileAccessError, OptionError, accessing

PAGE_BYTES = 64 << 10
"""What is read and checked together: a random record of 110 KB costs 64 KiB more, on average."""

BLOCK_BYTES = 8 << 20
TAG_NAME = "CACHEDIR.TAG"
STATE_NAME = "state"
BLOCKS_NAME = "blocks"

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of recordsmith: `recordsmith cache --clear` empties it.
"""
_STATE = struct.Struct("<8sqqI")  # magic, limit, reserved bytes, checksum
_STATE_MAGIC = b"RSCACHE\2"
_HEAD = struct.Struct("<8s8s16sQ")  # magic, random, object, number of the block
_HEAD_MAGIC = b"RSBLOCK\1"
_TABLE_AT = 1024  # checksum and size of each page, 0 if it is missing
_DATA_AT = 4096
_NOTED_BYTES = 4096  # what a file system notes of where the pages of a file are
_PAGES = BLOCK_BYTES // PAGE_BYTES
_PAGE = struct.Struct("<II")
_FILE_NAME = re.compile(r"([0-9a-f]{16})([0-9a-f]{16})-([0-9a-f]{1,12})")

_MIN_BYTES = 4 << 20
_OTHER_BYTES = 64 << 10  # the tag, the state, folders
_FREE_SHARE = 2  # of the free space: half is the limit, if none is given
_LOCK_SECONDS = 5.0
_REFRESH_SECONDS = 20 * 60
_UNUSED_SECONDS = 45 * 60
_FORGOTTEN_SECONDS = 24 * 60 * 60
_OPEN_FILES = 128
_KNOWN_FILES = 1 << 15

IsUsed: TypeAlias = Callable[[str, str], "bool | None"]
"""Called with the name and the version of an object; returns whether this process uses this version
of it, None if it does not know the object."""


class ObjectId(NamedTuple):
    """What blocks are cached under: a hash of an object's name, and one of name and version."""

    name: str
    version: str


class CacheStats(NamedTuple):
    """What a cache contains.

    size_bytes: of the cached pages.
    object_count: of versions of objects with at least one page.
    first_used, last_used: when blocks were used, in seconds since 1970; None if there are none.
    """

    size_bytes: int
    object_count: int
    first_used: float | None
    last_used: float | None


class BlockFiles:
    """The blocks of objects in a cache folder. Thread-safe."""

    def __init__(
        self, folder: str, max_bytes: int | None = None, *, keeps_limit: bool = False
    ) -> None:
        """Open a cache folder, or make one.

        Args:
            max_bytes: the limit of the folder on disk from now on; None keeps the limit that it
                has, and gives a new one half of the free space.
            keeps_limit: use `max_bytes` only for a new cache.
        """
        self.folder = folder
        self.is_writable = True
        self._blocks = os.path.join(folder, BLOCKS_NAME)
        self._state = os.path.join(folder, STATE_NAME)
        self._open_files: dict[tuple[ObjectId, int], _Block] = {}
        self._verified: dict[bytes, array[int]] = {}
        self.renew_lock()
        if not hasattr(os, "pwrite"):
            raise OptionError("a cache needs POSIX: Windows has none", option="cache", value=folder)
        if max_bytes is not None and max_bytes < _MIN_BYTES:
            raise OptionError(
                option="cache_bytes", value=max_bytes, expected=f"at least {_MIN_BYTES}"
            )
        check_folder(folder)
        make_private_folder(folder)
        try:
            self._make_files()
        except FileAccessError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self.is_writable = False
        for path in (self._blocks, self._state):
            check_private(path)
        if self.is_writable:
            self._set_limit(max_bytes, keeps_limit=keeps_limit)

    def renew_lock(self) -> None:
        """Replace the lock after a fork; see `threads.renew_in_children`."""
        self._lock = threading.Lock()

    def _make_files(self) -> None:
        """Make what is not there yet, and let only the user open it.

        The tag comes first: by it, another process knows a cache that is being made.
        """
        for path, data in ((os.path.join(self.folder, TAG_NAME), _TAG), (self._state, b"")):
            flags = os.O_RDWR | os.O_CREAT | NO_LINKS
            with accessing(path, "write"), opened(path, flags, PRIVATE_MODE) as file:
                check_private_status(path, os.fstat(file))
                if os.fstat(file).st_size < len(data):
                    os.pwrite(file, data, 0)
                os.fchmod(file, PRIVATE_MODE)
        make_private_folder(self._blocks)

    def _set_limit(self, max_bytes: int | None, *, keeps_limit: bool) -> None:
        with accessing(self._state, "write"), self._locked() as file:
            state = _read_state(file)
            if state is not None and (max_bytes is None or keeps_limit):
                max_bytes = state[0]
            if max_bytes is None:
                space = os.statvfs(self.folder)
                max_bytes = max(space.f_bavail * space.f_frsize // _FREE_SHARE, _MIN_BYTES)
            if state is None or state[1] > max_bytes:
                _write_state(file, max_bytes, self._make_room(max_bytes, 0, None))
            elif state[0] != max_bytes:
                _write_state(file, max_bytes, state[1])

    @property
    def max_bytes(self) -> int:
        """The limit of the folder on disk; 0 if it was deleted."""
        try:
            with opened(self._state, os.O_RDONLY | NO_LINKS) as file:
                state = _read_state(file)
        except OSError:
            return 0
        return 0 if state is None else state[0]

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Lock the folder against other processes; yields the open file of its state.

        Without a lock if the file system does not support them, or a process holds it for long.
        """
        deadline = time.monotonic() + _LOCK_SECONDS
        with opened(self._state, os.O_RDWR | NO_LINKS) as file:
            while time.monotonic() < deadline:
                with suppress(BlockingIOError):
                    lock_file(file, shared=False)
                    break
                time.sleep(0.002)
            yield file

    # -- reading -----------------------------------------------------------------------------------

    def read(self, object_id: ObjectId, start: int, stop: int) -> tuple[bytes, int, int]:
        """Return the bytes start:stop of an object, and which of them are missing.

        Returns:
            The bytes, fewer if the object ends before; then the start and stop of a range in the
            object, outside of which nothing is missing, or -1 twice.
        """
        number = start // BLOCK_BYTES
        block = self._open_files.get((object_id, number))
        if block is not None:
            whole = block.read_verified(start - number * BLOCK_BYTES, stop - number * BLOCK_BYTES)
            if whole is not None:
                return whole, -1, -1
        pieces: list[bytes] = []
        first = last = -1
        position = start
        while position < stop:
            number = position // BLOCK_BYTES
            begin = number * BLOCK_BYTES
            end = min(stop, begin + BLOCK_BYTES)
            block = self._open_block(object_id, number)
            data, is_end = b"", False
            missing: tuple[int, int] | None = (position - begin, end - begin)
            if block is not None:
                data, missing, is_end = block.read(position - begin, end - begin)
            if missing is not None:
                first = begin + missing[0] if first < 0 else first
                last = begin + missing[1]
                data = data.ljust(end - position, b"\0")
            pieces.append(data)
            if is_end:
                break
            position = end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), first, last

    def _open_block(self, object_id: ObjectId, number: int) -> _Block | None:
        """Return an open block; None if it is not cached, or was replaced."""
        key = object_id, number
        block = self._open_files.get(key)
        if block is None or block.is_removed():
            block = self._open_file(object_id, number, os.O_RDWR if self.is_writable else 0)
            with self._lock:
                self._open_files.pop(key, None)
                if block is not None:
                    self._open_files[key] = block
                if len(self._open_files) > _OPEN_FILES:
                    self._open_files.pop(next(iter(self._open_files)))
        if block is not None:
            block.note_use()
        return block

    def _path(self, object_id: ObjectId, number: int) -> str:
        return f"{self._blocks}/{object_id.name}{object_id.version}-{number:x}"

    def _open_file(self, object_id: ObjectId, number: int, flags: int) -> _Block | None:
        path = self._path(object_id, number)
        try:
            file = open_regular(path, flags | NO_LINKS, PRIVATE_MODE)
        except OSError:
            return None
        block = _Block(file, object_id, number)
        try:
            check_private_status(path, os.fstat(file))
        except FileAccessError:
            return None
        if not block.read_head():
            return None
        if len(self._verified) > _KNOWN_FILES:
            self._verified.clear()
        block.sizes = self._verified.setdefault(block.random, block.sizes)
        return block

    # -- writing -----------------------------------------------------------------------------------

    def write(
        self,
        object_id: ObjectId,
        number: int,
        pages: Sequence[tuple[int, bytes | memoryview]],
        is_used: IsUsed,
    ) -> bool:
        """Store pages of a block; return whether there was room for them."""
        with self._locked() as state_file:
            state = _read_state(state_file)
            if state is None:
                raise OSError(errno.EIO, "its state was damaged")
            limit, used = state
            block = self._open_file(object_id, number, os.O_RDWR)
            known = None if block is None else block.table
            needed = _DATA_AT + _NOTED_BYTES if block is None else 0
            needed += sum(PAGE_BYTES for page, _ in pages if known is None or not known[2 * page])
            if used + needed > limit:
                used = self._make_room(limit, needed, is_used)
                if used + needed > limit:
                    _write_state(state_file, limit, used)
                    return False
                block = self._open_file(object_id, number, os.O_RDWR)  # it may be gone
                if block is None:
                    needed = _DATA_AT + _NOTED_BYTES + PAGE_BYTES * len(pages)
            _write_state(state_file, limit, used + needed)
            if block is None:
                path = self._path(object_id, number)
                file = open_regular(path, os.O_RDWR | os.O_CREAT | NO_LINKS, PRIVATE_MODE)
                block = _Block(file, object_id, number)
                check_private_status(path, os.fstat(file))
                block.write_head()
            for page, data in pages:
                block.write_page(page, data)
        return True

    def _make_room(self, limit: int, needed: int, is_used: IsUsed | None) -> int:
        """Remove blocks that were not used for long, until there is room; return what is in use.

        Blocks of replaced versions go first, then those that no process has used for a while.
        Those in use stay: if they replaced each other, an epoch over more than fits would replace
        each block before it is read again.
        """
        now = time.time()
        in_use = disk_bytes(self.folder) + _OTHER_BYTES
        in_use -= disk_bytes(os.path.join(self.folder, INDEX_FOLDER))
        candidates: list[tuple[bool, float, int, str]] = []
        for path, name, version, status in self._files():
            in_use += _NOTED_BYTES
            used = True if is_used is None else is_used(name, version)
            unused = abs(now - status.st_mtime)
            longest = _UNUSED_SECONDS if used is None else _FORGOTTEN_SECONDS
            if is_used is None or used is False or unused > longest:
                size = status.st_blocks * 512 + _NOTED_BYTES
                candidates.append((used is not False, status.st_mtime, size, path))
        for _, _, size, path in sorted(candidates):
            if in_use + needed <= limit - limit // 16:
                break
            with suppress(OSError):
                _remove(path)
                in_use -= size
        return in_use

    def _files(self) -> Iterator[tuple[str, str, str, os.stat_result]]:
        """Yield path, hashes of name and version, and status of each block."""
        with os.scandir(self._blocks) as entries:
            for entry in entries:
                match = _FILE_NAME.fullmatch(entry.name)
                if match and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        yield entry.path, match[1], match[2], entry.stat(follow_symlinks=False)

    # -- about the folder --------------------------------------------------------------------------

    def stats(self) -> CacheStats:
        """Read what the folder contains."""
        objects: set[ObjectId] = set()
        size_bytes = 0
        times: list[float] = []
        for path, name, version, status in self._files():
            object_id, number = ObjectId(name, version), int(path.rpartition("-")[2], 16)
            block = self._open_file(object_id, number, os.O_RDONLY)
            if block is not None:
                size_bytes += sum(block.table[1::2])
                objects.add(object_id)
                times.append(status.st_mtime)
        first, last = (min(times), max(times)) if times else (None, None)
        return CacheStats(size_bytes, len(objects), first, last)

    def clear(self) -> None:
        """Remove all blocks."""
        with accessing(self.folder, "write"), self._locked() as file:
            for path, *_ in list(self._files()):
                _remove(path)
            state = _read_state(file)
            if state is not None:
                _write_state(file, state[0], self._make_room(state[0], 0, None))


class _Block:
    """An open file of a block; it is closed when it is garbage-collected."""

    random = b""

    def __init__(self, file: int, object_id: ObjectId, number: int) -> None:
        self._file = file
        self._key = bytes.fromhex(object_id.name + object_id.version) + number.to_bytes(8, "little")
        self._noted = -math.inf
        self.table: array[int] = array("I", bytes(8 * _PAGES))
        self.sizes: array[int] = array("I", bytes(4 * _PAGES))
        """Of pages that this process has verified, 0 for others."""

    def is_removed(self) -> bool:
        status = os.fstat(self._file)
        return status.st_size == 0 or status.st_nlink == 0

    def note_use(self) -> None:
        now = time.monotonic()
        if now > self._noted + _REFRESH_SECONDS:
            self._noted = now
            with suppress(OSError):
                if abs(time.time() - os.fstat(self._file).st_mtime) > _REFRESH_SECONDS:
                    os.utime(self._file)

    def read_head(self) -> bool:
        """Read the table of pages; return whether this is the file of the block."""
        head = os.pread(self._file, _DATA_AT, 0)
        if len(head) < _TABLE_AT + 8 * _PAGES:
            return False
        magic, self.random, *key = _HEAD.unpack_from(head)
        if magic != _HEAD_MAGIC or key[0] + key[1].to_bytes(8, "little") != self._key:
            return False
        self.table = array("I", head[_TABLE_AT : _TABLE_AT + 8 * _PAGES])
        return True

    def write_head(self) -> None:
        """Begin a new file, without pages."""
        self.random = os.urandom(8)
        number = int.from_bytes(self._key[16:], "little")
        head = _HEAD.pack(_HEAD_MAGIC, self.random, self._key[:16], number)
        os.ftruncate(self._file, 0)
        _write_all(self._file, head.ljust(_DATA_AT, b"\0"), 0)

    def write_page(self, page: int, data: bytes | memoryview) -> None:
        _write_all(self._file, data, _DATA_AT + page * PAGE_BYTES)
        entry = _PAGE.pack(zlib.crc32(data, self._seed(page)), len(data))
        _write_all(self._file, entry, _TABLE_AT + _PAGE.size * page)

    def _seed(self, page: int) -> int:
        """Return the beginning of a checksum, so that no page is taken for another one."""
        return zlib.crc32(self._key + bytes((page,)))

    def read_verified(self, start: int, stop: int) -> bytes | None:
        """Return bytes of the block, unless this takes more than to read them."""
        first, last = start // PAGE_BYTES, (stop - 1) // PAGE_BYTES
        if stop <= start or last >= _PAGES or time.monotonic() > self._noted + _REFRESH_SECONDS:
            return None
        is_whole = first == last or self.sizes[first:last].count(PAGE_BYTES) == last - first
        if not is_whole or stop > last * PAGE_BYTES + self.sizes[last]:
            return None
        data = os.pread(self._file, stop - start, _DATA_AT + start)
        return data if len(data) == stop - start else None

    def read(self, start: int, stop: int) -> tuple[bytes, tuple[int, int] | None, bool]:
        """Return bytes of the block, the range of missing ones, and whether the object ends."""
        first, last = start // PAGE_BYTES, (stop - 1) // PAGE_BYTES
        if 0 in self.sizes[first : last + 1]:
            self.read_head()  # perhaps there are more pages by now
            for page in range(first, last + 1):
                if not self.sizes[page]:
                    self.sizes[page] = self._verified_size(page)
        pages = dict(zip(range(first, last + 1), self.sizes[first : last + 1], strict=True))
        short = next((page for page, size in pages.items() if 0 < size < PAGE_BYTES), None)
        is_end = short is not None
        if short is not None:
            pages = {page: size for page, size in pages.items() if page <= short}
            stop = max(start, min(stop, short * PAGE_BYTES + pages[short]))
        missing = [page for page, size in pages.items() if not size]
        here = [page for page, size in pages.items() if size]
        data = b""
        if here:
            end = min(stop, here[-1] * PAGE_BYTES + pages[here[-1]])
            data = os.pread(self._file, end - start, _DATA_AT + start)
            if len(data) < end - start:  # the block was removed meanwhile
                missing = [*pages]
        if not missing:
            return data, None, is_end
        begin, end = missing[0] * PAGE_BYTES, (missing[-1] + 1) * PAGE_BYTES
        return data, (max(start, begin), min(stop, end)), is_end

    def _verified_size(self, page: int) -> int:
        checksum, size = self.table[2 * page : 2 * page + 2]
        if not 0 < size <= PAGE_BYTES:
            return 0
        data = os.pread(self._file, size, _DATA_AT + page * PAGE_BYTES)
        is_right = len(data) == size and zlib.crc32(data, self._seed(page)) == checksum
        return size if is_right else 0

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._file)


# -- what is in the folder -------------------------------------------------------------------------


def check_folder(folder: str) -> None:
    """Check that a folder is a cache, empty or missing."""
    with accessing(folder):
        try:
            names = set(os.listdir(folder))
        except FileNotFoundError:
            return
        if names <= {INDEX_FOLDER}:
            return
        tag = b"-"
        if TAG_NAME in names:
            path = os.path.join(folder, TAG_NAME)
            with suppress(OSError), opened(path, os.O_RDONLY | NO_LINKS) as file:
                tag = os.pread(file, len(_TAG) + 1, 0)
    is_begun = _TAG.startswith(tag) and names <= {INDEX_FOLDER, TAG_NAME, STATE_NAME, BLOCKS_NAME}
    if tag != _TAG and not is_begun:  # a killed process may leave the beginning
        raise OptionError(
            f"{folder} is not a cache of recordsmith and contains other files",
            option="cache",
            value=folder,
            expected="a new or empty folder",
        )


def disk_bytes(folder: str) -> int:
    """Return the disk space of a folder by blocks in use, without following links."""
    total = 0
    for parent, _, names in os.walk(folder):
        for path in [parent, *(os.path.join(parent, name) for name in names)]:
            with suppress(OSError):
                total += os.lstat(path).st_blocks * 512
    return total


def _remove(path: str) -> None:
    """Remove a block; its space is free at once, although processes have it open."""
    with opened(path, os.O_RDWR | NO_LINKS) as file:
        os.ftruncate(file, 0)
    os.unlink(path)


def _read_state(file: int) -> tuple[int, int] | None:
    """Return the limit and the reserved bytes; None if they are damaged or missing."""
    data = os.pread(file, _STATE.size, 0)
    if len(data) < _STATE.size:
        return None
    magic, limit, used, checksum = _STATE.unpack(data)
    is_valid = magic == _STATE_MAGIC and checksum == zlib.crc32(data[:-4]) and limit > 0
    return (limit, used) if is_valid else None


def _write_state(file: int, limit: int, used: int) -> None:
    data = _STATE.pack(_STATE_MAGIC, limit, used, 0)[:-4]
    _write_all(file, data + struct.pack("<I", zlib.crc32(data)), 0)


def _write_all(file: int, data: bytes | memoryview, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, place)
        view, place = view[count:], place + count
