"""`BlockCache`: a cache folder as this process uses it."""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
import weakref
from collections import deque
from hashlib import blake2b
from typing import NamedTuple

from recordsmith.errors import FileAccessError
from recordsmith.stores.local.cache_file import (
    BLOCK_BYTES,
    PART_BYTES,
    CacheFile,
    ObjectId,
)

_QUEUE_BYTES = 64 << 20
_FEW_PARTS = 4
_KNOWN_VERSIONS = 1 << 17
_REFUSED_SECONDS = 30 * 60
_NOTED_PARTS = 1 << 22  # the number of a part, so that a claimed size takes no memory
_NUMBERED_BYTES = PART_BYTES << 32  # parts are numbered in 32 bits
_CHECK_SECONDS = 5.0
_EXIT_SECONDS = 2.0


class _Blocks(NamedTuple):
    """Blocks of one part of an object, to be written."""

    of: ObjectId
    part: int
    first: int
    data: bytes


class BlockCache:
    """A cache folder. Thread-safe, also after a fork.

    Blocks are written in the background. If they cannot be written, a warning is shown once, and
    nothing more is cached by this process.
    """

    def __init__(self, folder: str, most_bytes: int | None, *, keeps_limit: bool) -> None:
        """Open it, as `CacheFile`."""
        self.folder = folder
        self._most_bytes = most_bytes
        self._versions: dict[int, int] = {}
        self._reset()
        self._open(keeps_limit=keeps_limit)
        _caches.add(self)

    def _reset(self) -> None:
        """Forget threads, locks and the open file, which belong to the process before a fork."""
        self._is_open = False
        self._file: CacheFile | None = None
        self._is_off = False
        self._refused: dict[ObjectId, bytearray] = {}  # by part: whether there was no room for it
        self._refused_since = 0.0
        self._queue: deque[_Blocks] = deque()
        self._queued_bytes = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def _open(self, *, keeps_limit: bool) -> None:
        try:
            self._file = CacheFile(self.folder, self._most_bytes, keeps_limit=keeps_limit)
        except FileAccessError as error:
            self._turn_off(str(error))
        else:
            if not self._file.is_writable:
                self._turn_off("the folder cannot be written")
        self._is_open = True

    @property
    def file(self) -> CacheFile | None:
        """The file with the blocks; None if it cannot be read."""
        if not self._is_open:
            with self._changed:
                if not self._is_open:
                    self._open(keeps_limit=True)
        return self._file

    def set_limit(self, most_bytes: int) -> None:
        """Change the limit of the folder."""
        if self._file is not None and self._file.has_limit(most_bytes):
            return
        self._most_bytes = most_bytes
        with self._changed:
            self._open(keeps_limit=False)
            self._refused = {}

    def id_of(self, name: str, version: str) -> ObjectId:
        """Return what the blocks of a version of an object are cached under, and use it."""
        text = name.encode("utf-8", "surrogateescape")
        of = ObjectId(_hash(text), _hash(text + b"\0" + version.encode()))
        if len(self._versions) >= _KNOWN_VERSIONS:
            self._versions.clear()
        self._versions[of.name] = of.version
        return of

    def _is_used(self, name: int, version: int) -> bool | None:
        used = self._versions.get(name)
        return None if used is None else used == version

    # -- writing -----------------------------------------------------------------------------------

    def refuses(self, of: ObjectId, start: int, stop: int) -> bool:
        """Return whether a range cannot be cached: there was no room for it a while ago.

        To look for it again would cost more than a cache far smaller than its data saves.
        """
        if stop > _NUMBERED_BYTES:
            return True
        refused = self._refused.get(of)
        if refused is None or stop <= start:
            return False
        if abs(time.time() - self._refused_since) > _REFUSED_SECONDS:
            self._refused = {}
            return False
        first, last = start // PART_BYTES, (stop - 1) // PART_BYTES
        if last - first >= _FEW_PARTS:
            return False
        return refused[first : last + 1].count(1) == last + 1 - first

    def _refuse(self, of: ObjectId, part: int) -> None:
        """Note that there was no room for a part."""
        if part >= _NOTED_PARTS:
            return
        if not self._refused:
            self._refused_since = time.time()
        elif len(self._refused) >= _KNOWN_VERSIONS:
            self._refused = {}
        refused = self._refused.setdefault(of, bytearray())
        if part >= len(refused):
            refused.extend(bytes(part + 1 - len(refused)))
        refused[part] = 1

    def round_out(
        self, of: ObjectId, start: int, stop: int
    ) -> tuple[int, int, frozenset[int] | None]:
        """Widen a range to whole blocks at the ends that will be stored.

        A block is stored when all of it was read, and is read only once if it is.

        Returns:
            The range, and which of its parts will be stored; None if all may be.
        """
        file = self.file
        if file is None or self._is_off or stop <= start or stop > _NUMBERED_BYTES:
            return start, stop, frozenset()
        first, last = start // PART_BYTES, (stop - 1) // PART_BYTES
        if last - first < _FEW_PARTS:
            wanted = range(first, last + 1)
            parts = frozenset(part for part in wanted if file.admits(of, part, self._is_used))
            for part in wanted:
                if part not in parts:
                    self._refuse(of, part)
        else:
            parts = None
        if parts is None or first in parts:
            start -= start % BLOCK_BYTES
        if parts is None or last in parts:
            stop += -stop % BLOCK_BYTES
        return start, stop, parts

    def write_later(
        self,
        of: ObjectId,
        start: int,
        data: bytes | memoryview,
        *,
        is_end: bool,
        parts: frozenset[int] | None = None,
    ) -> None:
        """Store the whole blocks of some bytes of an object in the background.

        They are dropped if many wait to be written.

        Args:
            is_end: whether the object is known to end with these bytes.
            parts: only these parts; None for all.
        """
        at = start + -start % BLOCK_BYTES
        stop = start + len(data)
        stop -= 0 if is_end else stop % BLOCK_BYTES
        if at >= stop or self._is_off or self.file is None:
            return
        with memoryview(data) as view, self._changed:
            while at < stop:
                part = at // PART_BYTES
                end = min(stop, (part + 1) * PART_BYTES)
                if parts is None or part in parts:
                    if self._queued_bytes + end - at > _QUEUE_BYTES:
                        break
                    blocks = bytes(view[at - start : end - start])
                    first = at % PART_BYTES // BLOCK_BYTES
                    self._queue.append(_Blocks(of, part, first, blocks))
                    self._queued_bytes += end - at
                at = end
            if self._queue and self._thread is None:
                self._thread = threading.Thread(
                    target=_write, args=(weakref.ref(self),), name="recordsmith-cache", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written; return whether it is."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._queue and not self._is_writing, timeout=seconds
            )

    def _next(self) -> _Blocks | None:
        """Wait for blocks to write; None if there are none for a while."""
        with self._changed:
            if self._is_writing:
                self._is_writing = False
                self._changed.notify_all()
            if not self._changed.wait_for(lambda: bool(self._queue), timeout=_CHECK_SECONDS):
                self._thread = None
                return None
            blocks = self._queue.popleft()
            self._queued_bytes -= len(blocks.data)
            self._is_writing = True
            return blocks

    def _store(self, blocks: _Blocks) -> None:
        file = self.file
        if file is None or self._is_off:
            return
        of, part, first, data = blocks
        try:
            file.write(of, part, first, memoryview(data), self._is_used)
        except OSError as error:
            self._turn_off(f"cannot write {self.folder}: {error.strerror or error}")

    def _check(self) -> None:
        file = self.file
        if file is not None:
            try:
                file.check_exists()
            except OSError as error:
                self._turn_off(f"{self.folder}: {error.strerror or error}")

    def _turn_off(self, reason: str) -> None:
        """Stop writing; what is cached is still read."""
        if not self._is_off:
            self._is_off = True
            warnings.warn(
                f"nothing more is cached: {reason}. Data is read from its store",
                RuntimeWarning,
                stacklevel=2,
            )


def _write(reference: weakref.ref[BlockCache]) -> None:
    """Write blocks until there are none for a while: the body of the thread."""
    checked = time.monotonic()
    while (cache := reference()) is not None:
        blocks = cache._next()  # noqa: SLF001 - the thread must not keep its cache alive
        if blocks is None:
            return
        try:
            cache._store(blocks)  # noqa: SLF001
            if time.monotonic() > checked + _CHECK_SECONDS:
                cache._check()  # noqa: SLF001
                checked = time.monotonic()
        except RuntimeWarning:  # the user's filter makes errors of warnings
            continue
        finally:
            del cache


_opened: weakref.WeakValueDictionary[str, BlockCache] = weakref.WeakValueDictionary()
_caches: weakref.WeakSet[BlockCache] = weakref.WeakSet()
_lock = threading.Lock()


def open_cache(folder: str, most_bytes: int | None, *, keeps_limit: bool = False) -> BlockCache:
    """Open a cache folder; there is one `BlockCache` for it in a process.

    Raises:
        OptionError: as `CacheFile`.
    """
    path = os.path.abspath(os.path.expanduser(folder))
    with _lock:
        cache = _opened.get(path)
        if cache is None:
            cache = _opened[path] = BlockCache(path, most_bytes, keeps_limit=keeps_limit)
        elif most_bytes is not None and not keeps_limit:
            cache.set_limit(most_bytes)
    return cache


def _hash(text: bytes) -> int:
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def _flush_all() -> None:
    for cache in list(_caches):
        cache.flush(_EXIT_SECONDS)


def _reset_all() -> None:
    global _lock  # noqa: PLW0603 - a thread of the parent may hold it
    _lock = threading.Lock()
    for cache in list(_caches):
        cache._reset()  # noqa: SLF001


atexit.register(_flush_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
