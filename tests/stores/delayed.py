"""`DelayedStore`: objects in memory, as if behind a network."""

from __future__ import annotations

import time

from recordsmith.stores import MemoryStore


class DelayedStore(MemoryStore):
    """A store whose reads take a while."""

    concurrency = 16

    def __init__(self, delay_seconds: float = 0.001) -> None:
        super().__init__()
        self.lock = self._lock
        self.delay_seconds = delay_seconds

    @property
    def objects(self) -> dict[str, tuple[bytes, str]]:
        """The bytes and the version of each object."""
        return self._objects

    def name_of(self, key: str) -> str:
        return f"delayed://{key}"

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        data = super().read(key, start, stop, version)
        time.sleep(self.delay_seconds)
        return data

    def set(self, key: str, data: bytes) -> None:
        """Write an object as if another process did."""
        self._set(key, data)
