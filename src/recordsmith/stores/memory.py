"""`MemoryStore`: objects in the memory of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from recordsmith.stores.checks import check_key, check_range, check_version, missing_error
from recordsmith.stores.object_writer import Data, ObjectWriter, pieces_of
from recordsmith.stores.store import ObjectInfo, Store
from recordsmith.stores.whole_writer import WholeWriter
from recordsmith.support.errors import OptionError

MEMORY_SCHEME = "memory://"
_stores: WeakValueDictionary[int, MemoryStore] = WeakValueDictionary()


class MemoryStore(Store):
    """Keeps objects as bytes in this process. Other processes do not see them."""

    def __init__(self) -> None:
        self._objects: dict[str, tuple[bytes, str]] = {}
        self._versions = count()
        self._lock = threading.RLock()
        _stores[id(self)] = self

    @classmethod
    def from_url(cls, url: str, passed: Any) -> tuple[Store, str]:
        if passed.options:
            raise OptionError(
                f"{MEMORY_SCHEME} has no options", option="store_options", expected="none"
            )
        key = url.partition("://")[2].rstrip("/")
        return _SHARED, check_key(key) if key else ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a reference: other processes do not have the objects."""
        return _unpickle, (id(self),)

    def name_of(self, key: str) -> str:
        return MEMORY_SCHEME + key

    def _get(self, key: str) -> tuple[bytes, str]:
        stored = self._objects.get(check_key(key))
        if stored is None:
            raise missing_error(self.name_of(key))
        return stored

    def info(self, key: str) -> ObjectInfo:
        data, version = self._get(key)
        return ObjectInfo(key, len(data), version)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        check_range(start, stop)
        data, current = self._get(key)
        check_version(self.name_of(key), current, version)
        return data[start:stop]

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._lock:
            stored = [*self._objects.items()]
        for key, (data, version) in stored:
            if key.startswith(prefix):
                yield ObjectInfo(key, len(data), version)

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        return WholeWriter(self, key, lambda data: self._set(key, data), overwrite=overwrite)

    def _set(self, key: str, data: bytes) -> None:
        with self._lock:
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
            matches = self._has_version(key, version)
            if matches:
                self._set(key, whole)
        return matches

    def delete_if_match(self, key: str, version: str) -> bool:
        with self._lock:
            matches = self._has_version(key, version)
            if matches:
                self.delete(key)
        return matches

    def _has_version(self, key: str, version: str) -> bool:
        stored = self._objects.get(check_key(key))
        return stored is not None and stored[1] == version

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(check_key(key), None)


_SHARED = MemoryStore()
"""That of all URLs."""


def _unpickle(number: int) -> MemoryStore:
    try:
        return _stores[number]
    except KeyError:
        raise OptionError(
            f"objects in {MEMORY_SCHEME} exist only in the process that wrote them",
            remedy="Write them to a folder to read them in other processes.",
        ) from None
