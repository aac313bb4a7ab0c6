"""`MemoryStore`: objects in the memory of this process."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import BinaryIO

from recordsmith.stores.store import (
    Data,
    ObjectInfo,
    Store,
    check_key,
    check_range,
    missing_error,
    pieces_of,
)

MEMORY_SCHEME = "memory://"


class MemoryStore(Store):
    """Keeps objects as bytes in this process. Other processes do not see them."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._versions = count()
        self._lock = threading.Lock()

    def name_of(self, key: str) -> str:
        return MEMORY_SCHEME + key

    def _get(self, key: str) -> tuple[bytes, str]:
        found = self._objects.get(check_key(key))
        if found is None:
            raise missing_error(self.name_of(key))
        return found

    def info(self, key: str) -> ObjectInfo:
        data, version = self._get(key)
        return ObjectInfo(key, len(data), version)

    def read(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        check_range(start, stop)
        return self._get(key)[0][start:stop]

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._lock:
            found = [*self._objects.items()]
        for key, (data, version) in found:
            if key.startswith(prefix):
                yield ObjectInfo(key, len(data), version)

    @contextmanager
    def open_write(self, key: str) -> Iterator[BinaryIO]:
        check_key(key)
        file = io.BytesIO()
        yield file
        with self._lock:
            self._set(key, file.getvalue())

    def _set(self, key: str, data: bytes) -> None:
        self._objects[key] = data, str(next(self._versions))

    def put_if_absent(self, key: str, data: Data) -> bool:
        whole = b"".join(pieces_of(data))
        with self._lock:
            is_new = check_key(key) not in self._objects
            if is_new:
                self._set(key, whole)
        return is_new

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        whole = b"".join(pieces_of(data))
        with self._lock:
            found = self._objects.get(check_key(key))
            matches = found is not None and found[1] == version
            if matches:
                self._set(key, whole)
        return matches

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(check_key(key), None)
