"""`DelayedStore`: all that a new store needs, in one file."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count

from recordsmith.stores import ObjectInfo, ObjectWriter, Store, check_key
from recordsmith.stores.checks import check_range, check_version, missing_error
from recordsmith.stores.object_writer import Data, WholeWriter


class DelayedStore(Store):
    """A dict whose reads take a while, as in a network."""

    concurrency = 16

    def __init__(self, delay_seconds: float = 0.001) -> None:
        self.objects: dict[str, tuple[bytes, str]] = {}
        self.delay_seconds = delay_seconds
        self.versions = count()
        self.lock = threading.RLock()

    def name_of(self, key: str) -> str:
        return f"delayed://{key}"

    def info(self, key: str) -> ObjectInfo:
        if check_key(key) not in self.objects:
            raise missing_error(self.name_of(key))
        data, version = self.objects[key]
        return ObjectInfo(key, len(data), version)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        check_range(start, stop)
        check_version(self.name_of(key), self.info(key).version, version)
        time.sleep(self.delay_seconds)
        return self.objects[key][0][start:stop]

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        yield from [self.info(key) for key in [*self.objects] if key.startswith(prefix)]

    def open_write(
        self,
        key: str,
        *,
        overwrite: bool = True,
        is_durable: bool = True,  # noqa: ARG002
    ) -> ObjectWriter:
        return WholeWriter(self, key, lambda data: self.set(key, data), overwrite=overwrite)

    def set(self, key: str, data: bytes) -> None:
        with self.lock:
            self.objects[key] = data, str(next(self.versions))

    def put_if_absent(self, key: str, data: Data) -> bool:
        with self.lock:
            is_new = not self.exists(key)
            if is_new:
                self.put(key, data)
            return is_new

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        with self.lock:
            matches = self.exists(key) and self.info(key).version == version
            if matches:
                self.put(key, data)
            return matches

    def delete(self, key: str) -> None:
        with self.lock:
            self.objects.pop(check_key(key), None)
