"""`CountingStore`: counts the requests that a store over a network would make."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from recordsmith.stores import FolderEntry, MemoryStore, ObjectInfo

from .delayed import DelayedStore

PAGE_KEYS = 1000
"""How many keys or folders a page of a listing has, as in S3, GCS and Azure."""


class CountingStore(DelayedStore):
    """A store without folders that counts what it is asked.

    A page of a listing is one request, and a range is one. Each request takes `delay_seconds`, so
    that requests at the same time overlap; `rounds` counts those that had to wait for others.

    Attributes:
        asked: (`info`, `read` or `list`; the key) of each request, in order.
        bytes_read: the bytes that were sent.
        rounds: the length of the longest chain of requests, each after the one before it.
        written: the keys that were written or deleted.
    """

    def __init__(self, delay_seconds: float = 0.0) -> None:
        super().__init__(delay_seconds)
        self.reset()

    def reset(self) -> None:
        """Count from 0."""
        self.asked: list[tuple[str, str]] = []
        self.written: list[str] = []
        self.bytes_read = self.rounds = 0

    @property
    def requests(self) -> int:
        return len(self.asked)

    @property
    def counts(self) -> dict[str, int]:
        """The number of requests of each kind that was used."""
        return dict(Counter(kind for kind, _ in self.asked))

    def before_request(self, kind: str, key: str) -> None:
        """Called before each request; for subclasses."""

    @contextmanager
    def _request(self, kind: str, key: str) -> Iterator[None]:
        self.before_request(kind, key)
        with self.lock:
            self.asked.append((kind, key))
            number = self.rounds + 1
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        try:
            yield
        finally:
            with self.lock:
                self.rounds = max(self.rounds, number)

    def info(self, key: str) -> ObjectInfo:
        with self._request("info", key):
            return super().info(key)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        with self._request("read", key):
            data = MemoryStore.read(self, key, start, stop, version)
        with self.lock:
            self.bytes_read += len(data)
        return data

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        yield from self._pages(prefix, sorted(super().list(prefix)))

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        listed = MemoryStore()
        listed._objects = self.objects
        yield from self._pages(prefix, [*listed.list_entries(key)])

    def _pages(self, prefix: str, listed: list) -> Iterator:
        for start in range(0, max(1, len(listed)), PAGE_KEYS):
            with self._request("list", prefix):
                page = listed[start : start + PAGE_KEYS]
            yield from page

    def _set(self, key: str, data: bytes) -> None:
        self.written.append(key)
        super()._set(key, data)

    def delete(self, key: str) -> None:
        self.written.append(key)
        super().delete(key)
