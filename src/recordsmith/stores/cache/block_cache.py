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

from recordsmith.stores.local.block_files import BLOCK_BYTES, PAGE_BYTES, BlockFiles, ObjectId
from recordsmith.support.errors import FileAccessError
from recordsmith.support.threads import renew_in_children

_QUEUE_BYTES = 64 << 20
_KNOWN_VERSIONS = 1 << 17
_FULL_SECONDS = 60.0
"""So long nothing is stored after there was no room: looking for some reads the whole folder."""

_IDLE_SECONDS = 5.0
_EXIT_SECONDS = 2.0


class _Pages(NamedTuple):
    """Neighbouring pages of one block, to be written."""

    object_id: ObjectId
    start: int
    data: bytes


class BlockCache:
    """A cache folder. Thread-safe, also after a fork.

    Pages are written in the background. If they cannot be written, a warning is shown once, and
    nothing more is cached by this process.
    """

    def __init__(self, folder: str, max_bytes: int | None, *, keeps_limit: bool) -> None:
        """Open it, as `BlockFiles`."""
        self.folder = folder
        self._versions: dict[str, str] = {}
        self._is_off = False
        self.files: BlockFiles | None = None
        """The files with the blocks; None if they cannot be read."""
        self.renew_lock()
        self.set_limit(max_bytes, keeps_limit=keeps_limit)
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Forget the thread and what it was to write."""
        self._full_until = 0.0
        self._queue: deque[_Pages] = deque()
        self._queued_bytes = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        if self.files is not None:
            self.files.renew_lock()

    def set_limit(self, max_bytes: int | None, *, keeps_limit: bool = False) -> None:
        """Open the folder, and change its limit."""
        if self.files is not None and (keeps_limit or max_bytes in (None, self.files.max_bytes)):
            return
        try:
            self.files = BlockFiles(self.folder, max_bytes, keeps_limit=keeps_limit)
        except FileAccessError as error:
            self._turn_off(str(error))
        else:
            self._full_until = 0.0
            if not self.files.is_writable:
                self._turn_off("the folder cannot be written")

    def id_of(self, name: str, version: str) -> ObjectId:
        """Return what the blocks of a version of an object are cached under, and use it."""
        text = name.encode("utf-8", "surrogateescape")
        object_id = ObjectId(_hash(text), _hash(text + b"\0" + version.encode()))
        if len(self._versions) >= _KNOWN_VERSIONS:
            self._versions.clear()
        self._versions[object_id.name] = object_id.version
        return object_id

    def _is_used(self, name: str, version: str) -> bool | None:
        used = self._versions.get(name)
        return None if used is None else used == version

    # -- writing -----------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether nothing is stored now."""
        return self._is_off or self.files is None or time.monotonic() < self._full_until

    def write_later(
        self, object_id: ObjectId, start: int, data: bytes | memoryview, *, is_end: bool
    ) -> None:
        """Store the whole pages of some bytes of an object in the background.

        They are dropped if many wait to be written.

        Args:
            is_end: whether the object is known to end with these bytes.
        """
        position = start + -start % PAGE_BYTES
        stop = start + len(data)
        stop -= 0 if is_end else stop % PAGE_BYTES
        if position >= stop or self.is_full:
            return
        with memoryview(data) as view, self._changed:
            while position < stop:
                end = min(stop, position - position % BLOCK_BYTES + BLOCK_BYTES)
                if self._queued_bytes + end - position > _QUEUE_BYTES:
                    break
                pages = bytes(view[position - start : end - start])
                self._queue.append(_Pages(object_id, position, pages))
                self._queued_bytes += len(pages)
                position = end
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

    def write_next(self) -> bool:
        """Wait for pages and write them; return False if there are none for a while."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._queue), timeout=_IDLE_SECONDS):
                self._thread = None
                return False
            object_id, start, data = self._queue.popleft()
            self._queued_bytes -= len(data)
            self._is_writing = True
        try:
            self._write(object_id, start, data)
        finally:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
        return True

    def _write(self, object_id: ObjectId, start: int, data: bytes) -> None:
        if self.files is None or self.is_full:
            return
        number, first = start // BLOCK_BYTES, start % BLOCK_BYTES // PAGE_BYTES
        view = memoryview(data)
        pages = [
            (first + place // PAGE_BYTES, view[place : place + PAGE_BYTES])
            for place in range(0, len(data), PAGE_BYTES)
        ]
        try:
            if not self.files.write(object_id, number, pages, self._is_used):
                self._full_until = time.monotonic() + _FULL_SECONDS
        except OSError as error:
            self._turn_off(f"cannot write {self.folder}: {error.strerror or error}")

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
    """Write pages until there are none for a while: the body of the thread."""
    while (cache := reference()) is not None:
        try:
            if not cache.write_next():
                return
        except RuntimeWarning:  # the user's filter makes errors of warnings
            continue
        finally:
            del cache  # the thread must not keep its cache alive


class _OpenCaches:
    """The cache folders that this process has open, one `BlockCache` for each."""

    def __init__(self) -> None:
        self._by_path: weakref.WeakValueDictionary[str, BlockCache] = weakref.WeakValueDictionary()
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        self._lock = threading.Lock()

    def open(self, folder: str, max_bytes: int | None, *, keeps_limit: bool = False) -> BlockCache:
        path = os.path.abspath(os.path.expanduser(folder))
        with self._lock:
            cache = self._by_path.get(path)
            if cache is None:
                cache = self._by_path[path] = BlockCache(path, max_bytes, keeps_limit=keeps_limit)
            else:
                cache.set_limit(max_bytes, keeps_limit=keeps_limit)
        return cache

    def flush(self) -> None:
        for cache in list(self._by_path.values()):
            cache.flush(_EXIT_SECONDS)


open_caches = _OpenCaches()
atexit.register(open_caches.flush)
open_cache = open_caches.open


def _hash(text: bytes) -> str:
    return blake2b(text, digest_size=8).hexdigest()
