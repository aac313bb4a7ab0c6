"""`MultipartWriter`: writes an object in one request, or in parts if it is large."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from recordsmith.stores.checks import exists_error
from recordsmith.stores.whole_writer import WholeWriter
from recordsmith.support.errors import FileAccessError
from recordsmith.support.threads import SHORT_SECONDS, call_with_timeout

PART_BYTES = 8 << 20
"""The size of a part, and up to which an object is written in one request."""

PARTS_AT_ONCE = 2
"""How many parts a writer sends at the same time; it holds one more."""

_ABORT_SECONDS = 10.0

MAX_PARTS = 10_000
"""In an object: the limit of S3 and Google; Azure has 50,000."""


class MultipartWriter(WholeWriter):
    """Writes a small object in one request that can have conditions, a large one in parts.

    A large object appears when its last part is there. Its condition is checked before the last
    three parts, since the library has none for an upload. A writer that fails removes its parts. If
    the process is killed, the store keeps hidden parts until the bucket's lifecycle rules remove
    them.
    """

    _store: Any

    def __init__(
        self,
        store: Any,
        key: str,
        put: Callable[[bytes], object],
        *,
        overwrite: bool,
    ) -> None:
        """`store`: an `ObjectStore`."""
        super().__init__(store, key, put, overwrite=overwrite)
        self._upload: Any = None
        self._byte_count = 0  # of the upload
        self._is_open = False
        self._lock = threading.Lock()  # an interrupted call may still run

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if self._upload is None:
            if self._file.tell() + len(view) <= PART_BYTES:
                return self._file.write(view)
            self._upload, self._is_open = self._store.begin_upload(self._key), True
            self._send(memoryview(self._file.getvalue()))
            self._file.close()
        self._send(view)
        return len(view)

    def _send(self, view: memoryview) -> None:
        self._byte_count += len(view)
        if self._byte_count > MAX_PARTS * PART_BYTES:
            raise FileAccessError(
                errno.EFBIG,
                f"it is larger than {MAX_PARTS * PART_BYTES >> 30:,} GiB, the limit here",
                self._store.name_of(self._key),
                operation="write",
                remedy="Write smaller shards.",
            )
        if not isinstance(view.obj, bytes):  # obstore keeps it until a part is full
            view = memoryview(bytes(view))
        for start in range(0, len(view), PART_BYTES):  # obstore sends all of a piece at once
            piece = view[start : start + PART_BYTES]
            self._call(self._upload.write, piece)

    def tell(self) -> int:
        return self._file.tell() if self._upload is None else self._byte_count

    def seal(self) -> str:
        if self._upload is None or self._is_sealed:
            return super().seal()
        before = self._store.find_version(self._key)
        if self.check is not None:
            self.check()
        elif before is not None and not self._overwrite:
            raise exists_error(self._store.name_of(self._key))
        self._is_open = False
        try:
            self._call(self._upload.close)
            self._is_sealed = True
        except BaseException as error:
            self._is_sealed = self._has_appeared(before)
            if not (self._is_sealed and isinstance(error, FileAccessError)):
                raise
        return self._key

    def _has_appeared(self, before: str | None) -> bool:
        """Return whether the object is there although its completion has failed.

        If the response to that request was lost, the library repeats it, which fails.
        """
        if self.check is not None:
            self.check()
        now = self._store.find_version(self._key)
        is_new = now is not None and now != before
        return is_new and self._store.size(self._key) == self._byte_count

    def discard(self) -> None:
        if self._is_open and not self._is_published:
            self._is_open = False
            end = self._upload.__exit__, KeyboardInterrupt, KeyboardInterrupt(), None
            with suppress(FileAccessError):  # the reason for aborting is of more use
                # not in this thread: if its job is stopping, its calls are not made
                is_busy = self._lock.locked()  # by an interrupted call, which may not return soon
                call_with_timeout(
                    self._call, *end, seconds=SHORT_SECONDS if is_busy else _ABORT_SECONDS
                )
        super().discard()

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a method of the upload, one at a time."""

        def call() -> None:
            with self._lock:
                function(*arguments)

        self._store.write_call(self._key, call)
