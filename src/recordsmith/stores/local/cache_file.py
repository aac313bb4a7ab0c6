"""`CacheFile`: blocks of objects in one file of a fixed size, shared by processes.

The size of the file is the limit, and new blocks overwrite old ones, so nothing is ever deleted to
make room. Nothing that is read needs a lock: bytes that do not match their checksum are missing,
whatever a killed process or another one that writes the same slot left. See `cache_kernel`.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from recordsmith.errors import FileAccessError, OptionError, accessing
from recordsmith.stores.local import cache_kernel
from recordsmith.stores.local.cache_kernel import (
    BLOCK_BYTES,
    BLOCK_COUNT,
    ENTRY_BYTES,
    GROUP_BYTES,
    HEAD_BYTES,
    PART_BYTES,
    SLOT_COUNT,
)
from recordsmith.stores.local.locks import lock_file
from recordsmith.stores.local.reader import open_regular
from recordsmith.stores.user_cache import INDEX_FOLDER

__all__ = ["BLOCK_BYTES", "PART_BYTES", "CacheFile", "CacheStats", "ObjectId"]

FILE_NAME = "blocks"
TAG_NAME = "CACHEDIR.TAG"

_TAG = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder is a cache of recordsmith: `recordsmith cache --clear` empties it.
"""
_MAGIC = b"RSCACHE\1"
_HEAD = struct.Struct("<8sqqI")
_MODE = 0o600  # of its files: what they contain may be private in its store
_OTHER_BYTES = 64 << 10  # the tag, the folder, and what the file system notes of the file
_GROUP_RESERVE = 8 << 10  # of each group, what the file system notes of where it is
_LOCK_SECONDS = 5.0
_FREE_SHARE = 2  # of the free space: half is the limit, if none is given

_REFRESH_SECONDS = 20 * 60
_UNUSED_SECONDS = 45 * 60
"""Blocks of objects that this process does not use are replaced when unused for so long."""

_FORGOTTEN_SECONDS = 24 * 60 * 60
"""The same for blocks of objects that it used."""

_ADMITTED_SHARE = 32
"""One of so many parts is cached although nothing can be replaced but what is in use."""


class ObjectId(NamedTuple):
    """What blocks are cached under: a hash of an object's name, and one of name and version."""

    name: int
    version: int


class CacheStats(NamedTuple):
    """What a cache file contains.

    size_bytes: of the blocks.
    object_count: of versions of objects with at least one block.
    first_used, last_used: when the blocks were used, in seconds since 1970; None if there are none.
    """

    size_bytes: int
    object_count: int
    first_used: float | None
    last_used: float | None


class CacheFile:
    """The blocks of objects in a cache folder. Thread-safe."""

    def __init__(
        self, folder: str, most_bytes: int | None = None, *, keeps_limit: bool = False
    ) -> None:
        """Open a cache folder, or make one.

        Args:
            most_bytes: the limit of the folder on disk from now on; None keeps the limit that it
                has, and gives a new one half of the free space.
            keeps_limit: use `most_bytes` only for a new cache.

        Raises:
            OptionError: the folder contains other files, or the limit is too small.
            FileAccessError: it cannot be made or read, or another user may have written what is
                in it (see `check_private`).
        """
        self.folder = folder
        self.is_writable = True
        self._path = os.path.join(folder, FILE_NAME)
        if most_bytes is not None:
            group_count(most_bytes)
        check_folder(folder)
        self._file = self._open()
        try:
            check_private(self._path, self._file)
            with self._locked(is_shared=False) as is_locked:
                self._set_up(most_bytes, keeps_limit=keeps_limit, is_locked=is_locked)
        except BaseException:
            self.close()
            raise

    def _open(self) -> int:
        make_private_folder(self.folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        try:
            tag = os.path.join(self.folder, TAG_NAME)
            with accessing(tag, "write"):
                file = open_regular(tag, flags, _MODE)
                try:
                    if os.fstat(file).st_size != len(_TAG):
                        os.pwrite(file, _TAG, 0)
                finally:
                    os.close(file)
            with accessing(self._path, "write"):
                return open_regular(self._path, flags, _MODE)
        except FileAccessError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self.is_writable = False
        with accessing(self._path):
            return open_regular(self._path, os.O_RDONLY | os.O_NOFOLLOW)

    def _set_up(self, most_bytes: int | None, *, keeps_limit: bool, is_locked: bool) -> None:
        """Give the file its size."""
        if not self.is_writable:
            return
        with accessing(self._path, "write"):
            if os.fstat(self._file).st_mode & 0o777 != _MODE:
                os.fchmod(self._file, _MODE)
            found = _read_head(self._file)
            if found is None:
                os.ftruncate(self._file, 0)
            elif most_bytes is None or keeps_limit:
                most_bytes = found[1]
            if most_bytes is None:
                space = os.statvfs(self.folder)
                most_bytes = max(space.f_bavail * space.f_frsize // _FREE_SHARE, _FEWEST_BYTES)
            groups, limit = group_count(most_bytes), most_bytes
            if found != (groups, limit) and (is_locked or found is None):
                head = _HEAD.pack(_MAGIC, groups, limit, 0)[:-4]
                os.pwrite(self._file, head + struct.pack("<I", zlib.crc32(head)), 0)
            elif found is not None:
                groups = found[0]
            size = HEAD_BYTES + groups * GROUP_BYTES
            if os.fstat(self._file).st_size != size:
                os.ftruncate(self._file, size)

    @property
    def most_bytes(self) -> int:
        """The limit of the folder on disk."""
        found = _read_head(self._file)
        return 0 if found is None else found[1]

    def has_limit(self, most_bytes: int) -> bool:
        """Return whether this is the limit of a file that was not deleted."""
        return self.most_bytes == most_bytes and os.fstat(self._file).st_nlink > 0

    @contextmanager
    def _locked(self, *, is_shared: bool) -> Iterator[bool]:
        """Lock the file against other processes; yields whether it is locked.

        False if the file system does not support locks, or a process holds its lock for long.
        """
        deadline = time.monotonic() + _LOCK_SECONDS
        is_locked = False
        while True:
            try:
                is_locked = lock_file(self._file, shared=is_shared)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.002)
        try:
            yield is_locked
        finally:
            if is_locked:
                unlock_file(self._file)

    # -- reading -----------------------------------------------------------------------------------

    def read(self, of: ObjectId, start: int, stop: int) -> tuple[bytes, int, int]:
        """Return the bytes start:stop of an object, and which of them are missing.

        Returns:
            The bytes, fewer if the object ends before; then the start and stop of a range in the
            object, outside of which nothing is missing, or -1 twice.
        """
        return cache_kernel.read(self._file, *of, start, stop, int(time.time()), _REFRESH_SECONDS)

    # -- writing -----------------------------------------------------------------------------------

    def admits(self, of: ObjectId, part: int, is_used: Callable[[int, int], bool | None]) -> bool:
        """Return whether blocks of a part would be stored.

        Args:
            is_used: called with the two hashes of an object that may be replaced: whether this
                process uses this version of it; None if it does not know the object.
        """
        groups = self._groups()
        return self.is_writable and groups > 0 and self._slot_for(of, part, groups, is_used)[1] >= 0

    def write(
        self,
        of: ObjectId,
        part: int,
        first: int,
        data: memoryview,
        is_used: Callable[[int, int], bool | None],
    ) -> bool:
        """Store blocks of a part of an object; return whether there was a slot for them.

        Args:
            first: the number of the first block in the part.
            data: whole blocks; only the last one of the object may be shorter.
            is_used: as of `admits`.

        Raises:
            OSError: they cannot be written: the disk is full, or the file was deleted.
        """
        with self._locked(is_shared=True):
            groups = self._groups()
            if groups <= 0:
                return False
            group, slot, is_new = self._slot_for(of, part, groups, is_used)
            if slot < 0:
                return False
            if is_new:
                _check(cache_kernel.claim(self._file, group, slot, *of, part, int(time.time())))
            _check(cache_kernel.write_blocks(self._file, group, slot, *of, part, first, data))
        return True

    def check_exists(self) -> None:
        """Check that the file was not deleted; if it was, release its space.

        Raises:
            OSError: it was deleted.
        """
        if os.fstat(self._file).st_nlink == 0:
            os.ftruncate(self._file, 0)
            raise OSError(errno.ENOENT, "it was deleted")

    def _groups(self) -> int:
        found = _read_head(self._file)
        return 0 if found is None else found[0]

    def _slot_for(
        self, of: ObjectId, part: int, groups: int, is_used: Callable[[int, int], bool | None]
    ) -> tuple[int, int, bool]:
        """Choose a slot for a part.

        First its own slot, then a free one, then one that is no longer used; and only for some
        parts any other: if all parts replaced others, an epoch over more than fits would replace
        each block before it is read again.

        Returns:
            Its group, its number or -1, and whether it is another part's now.
        """
        free: tuple[int, int] | None = None
        most_free = 0
        others: list[tuple[bool, int, int, int]] = []  # in use, used when, group, slot
        now = int(time.time())
        for group in dict.fromkeys(cache_kernel.places(*of, part, groups)):
            free_slots = []
            for slot, (name, version, number, used) in enumerate(self._entries(group)):
                if (name, version, number) == (*of, part):
                    return group, slot, False
                if used:
                    in_use = _is_in_use(is_used(name, version), now - used)
                    others.append((in_use, used, group, slot))
                else:
                    free_slots.append(slot)
            if len(free_slots) > most_free:  # in the emptier group, so that both fill up
                free, most_free = (group, free_slots[0]), len(free_slots)
        if free is not None:
            return *free, True
        # the same parts in all processes, others tomorrow
        is_admitted = hash((now // _FORGOTTEN_SECONDS, *of, part)) % _ADMITTED_SHARE == 0
        in_use, _, group, slot = min(others, default=(True, 0, -1, -1))
        return (group, slot, True) if is_admitted or not in_use else (-1, -1, False)

    def _entries(self, group: int) -> Iterator[tuple[int, int, int, int]]:
        """The slots of a group: two hashes, the part, and when it was used."""
        table = os.pread(self._file, SLOT_COUNT * ENTRY_BYTES, HEAD_BYTES + group * GROUP_BYTES)
        table = table[: len(table) // ENTRY_BYTES * ENTRY_BYTES]
        return _ENTRY.iter_unpack(table)

    # -- about the file ----------------------------------------------------------------------------

    def stats(self) -> CacheStats:
        """Read what the file contains."""
        import numpy as np

        entry = np.dtype(
            [
                ("name", "<u8"),
                ("version", "<u8"),
                ("part", "<u4"),
                ("used", "<u4"),
                ("blocks", [("crc", "<u4"), ("size", "<u4")], BLOCK_COUNT),
            ]
        )
        objects: set[int] = set()
        size, first, last = 0, 0, 0
        for group in range(self._groups()):
            table = os.pread(self._file, SLOT_COUNT * ENTRY_BYTES, HEAD_BYTES + group * GROUP_BYTES)
            if len(table) < SLOT_COUNT * ENTRY_BYTES:
                break
            found = np.frombuffer(table, entry)
            sizes = found["blocks"]["size"].sum(axis=1, dtype=np.int64)
            found = found[sizes > 0]
            if len(found):
                size += int(sizes.sum())
                objects |= set(found["version"].tolist())
                first = min(first or int(found["used"].min()), int(found["used"].min()))
                last = max(last, int(found["used"].max()))
        return CacheStats(size, len(objects), first or None, last or None)

    def clear(self) -> None:
        """Remove all blocks.

        Raises:
            FileAccessError: the file cannot be written, or another process holds its lock.
        """
        with self._locked(is_shared=False), accessing(self._path, "write"):
            size = os.fstat(self._file).st_size
            os.ftruncate(self._file, min(size, HEAD_BYTES))
            os.ftruncate(self._file, size)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()


_ENTRY = struct.Struct(f"<QQII{8 * BLOCK_COUNT}x")
_FEWEST_BYTES = HEAD_BYTES + _OTHER_BYTES + GROUP_BYTES + _GROUP_RESERVE


def group_count(most_bytes: int) -> int:
    """Return how many groups fit into a limit.

    Raises:
        OptionError: not even one.
    """
    count = (most_bytes - HEAD_BYTES - _OTHER_BYTES) // (GROUP_BYTES + _GROUP_RESERVE)
    if count < 1:
        raise OptionError(
            option="cache_bytes", value=most_bytes, expected=f"at least {_FEWEST_BYTES}"
        )
    return count


def check_private(path: str, file: int | None = None) -> None:
    """Check that no other user can write a folder or file of a cache; this holds for root as well.

    Args:
        file: the descriptor of the file; None for a folder.

    Raises:
        FileAccessError: it belongs to another user, others may write it, it is a symbolic link, or
            a file with several names; or it is missing.
    """
    with accessing(path):
        status = os.lstat(path.rstrip(os.sep) or os.sep) if file is None else os.fstat(file)
    remedy = "Choose another cache folder."
    if stat.S_ISLNK(status.st_mode):
        problem = "it is a symbolic link"
    elif status.st_uid != os.geteuid():
        problem = "it belongs to another user"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = "other users may write it"
        remedy = f"Run `chmod go-w {path}` if no one else did write it, or choose another folder."
    elif file is not None and status.st_nlink > 1:
        problem = "it has more than one name (hard links)"
    else:
        return
    raise FileAccessError(errno.EPERM, problem, path, operation="use as a cache", remedy=remedy)


def make_private_folder(path: str) -> None:
    """Make a folder of a cache unless it exists, and check it with `check_private`."""
    with accessing(path, "make folder"):
        os.makedirs(path, mode=0o700, exist_ok=True)
    check_private(path)


def make_private(path: str) -> None:
    """Let only the user open a file of a cache."""
    with accessing(path, "write"):
        os.chmod(path, _MODE)


def check_folder(folder: str) -> None:
    """Check that a folder is a cache, empty or missing.

    Raises:
        OptionError: it contains something else.
        FileAccessError: it cannot be listed.
    """
    with accessing(folder):
        try:
            names = set(os.listdir(folder))
        except FileNotFoundError:
            return
        if names <= {INDEX_FOLDER}:
            return
        tag = b"-"
        if TAG_NAME in names:
            with suppress(OSError):
                file = open_regular(os.path.join(folder, TAG_NAME), os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    tag = os.pread(file, len(_TAG) + 1, 0)
                finally:
                    os.close(file)
    is_begun = _TAG.startswith(tag) and names <= {INDEX_FOLDER, TAG_NAME, FILE_NAME}
    if tag != _TAG and not is_begun:  # a killed process may leave the beginning
        raise OptionError(
            f"{folder} is not a cache of recordsmith and contains other files",
            option="cache",
            value=folder,
            expected="a new or empty folder",
        )


def has_blocks(folder: str) -> bool:
    """Return whether objects were cached in a folder."""
    return os.path.isfile(os.path.join(folder, FILE_NAME))


def disk_bytes(folder: str) -> int:
    """Return the disk space of a folder by blocks in use, without following links."""
    total = 0
    for parent, _, names in os.walk(folder):
        for path in [parent, *(os.path.join(parent, name) for name in names)]:
            with suppress(OSError):
                total += os.lstat(path).st_blocks * 512
    return total


def unlock_file(file: int) -> None:
    """Release the lock of an open file."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)


def _read_head(file: int) -> tuple[int, int] | None:
    """The number of groups and the limit; None if there is no valid head."""
    head = os.pread(file, _HEAD.size, 0)
    if len(head) < _HEAD.size:
        return None
    magic, groups, most_bytes, checksum = _HEAD.unpack(head)
    if magic != _MAGIC or checksum != zlib.crc32(head[:-4]) or groups < 1:
        return None
    return groups, most_bytes


def _is_in_use(used_here: bool | None, seconds: int) -> bool:
    """Whether blocks that were used some seconds ago must not be replaced."""
    seconds = abs(seconds)  # the clock may have been wrong
    if used_here is None:
        return seconds < _UNUSED_SECONDS
    return used_here and seconds < _FORGOTTEN_SECONDS


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
