"""`MultipartWriter`: writes an object in one request, or in parts if it is large."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

from recordsmith.stores.store import Store, WholeWriter, exists_error

PART_BYTES = 8 << 20
"""The size of a part, and up to which an object is written in one request. S3 takes 10,000 parts,
so an object can have 80 GB."""

_PARTS_AT_ONCE = 2


class MultipartWriter(WholeWriter):
    """Writes a small object in one request that can have conditions, a large one in parts.

    A large object appears when its last part is there. Its condition is checked just before, since
    the protocol has none for parts. If the process is killed, the store keeps hidden parts, until
    the bucket's lifecycle rules remove them.
    """

    def __init__(
        self, store: Store, key: str, put: Callable[..., object], *, overwrite: bool
    ) -> None:
        """`put`: writes an object from its key and bytes, or an iterator of pieces."""
        super().__init__(store, key, lambda data: put(key, data), overwrite=overwrite)
        self._put_pieces = put
        self._upload: _Upload | None = None

    def write(self, data: Any) -> int:
        count = super().write(data)
        if self._file.tell() >= PART_BYTES:
            if self._upload is None:
                self._upload = _Upload(self._put_pieces, self._key)
            self._upload.write(self._file.getvalue())
            self._file.seek(0)
            self._file.truncate()
        return count

    def tell(self) -> int:
        return self._file.tell() + (0 if self._upload is None else self._upload.byte_count)

    def seal(self) -> str:
        if self._upload is None or self._is_sealed:
            return super().seal()
        self._upload.write(self._file.getvalue())
        if self.check is not None:
            self.check()
        elif not self._overwrite and self._store.exists(self._key):
            raise exists_error(self._store.name_of(self._key))
        self._upload.complete()
        self._is_sealed = True
        return self._key

    def discard(self) -> None:
        if self._upload is not None and not self._is_sealed:
            self._upload.abort()
        super().discard()


class _AbortedError(Exception):
    """Ends an upload whose object is not wanted."""


class _Upload:
    """An upload in a thread of its own, which the pieces are passed to."""

    def __init__(self, put: Callable[..., object], key: str) -> None:
        self.byte_count = 0
        self._pieces: Queue[bytes | _AbortedError | None] = Queue(1)
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(put, key), name="recordsmith-upload", daemon=True
        )
        self._thread.start()

    def write(self, data: bytes) -> None:
        self.byte_count += len(data)
        self._pass(data)

    def complete(self) -> None:
        self._pass(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def abort(self) -> None:
        self._pass(_AbortedError())
        self._thread.join()

    def _pass(self, piece: bytes | _AbortedError | None) -> None:
        if self._error is None:
            self._pieces.put(piece)
        elif not isinstance(piece, _AbortedError):
            raise self._error

    def _run(self, put: Callable[..., object], key: str) -> None:
        try:
            put(
                key,
                self._taken(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_PARTS_AT_ONCE,
            )
        except BaseException as error:  # noqa: BLE001 - raised by `write` and `complete`
            self._error = error
            while not self._pieces.empty():  # a writer that waits goes on
                self._pieces.get_nowait()

    def _taken(self) -> Iterator[bytes]:
        while (piece := self._pieces.get()) is not None:
            if isinstance(piece, _AbortedError):
                raise piece
            yield piece
