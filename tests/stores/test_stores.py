"""The stores keep the contract: files, memory, and one with the delay of a network."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores import (
    LocalStore,
    MemoryStore,
    ObjectInfo,
    ObjectWriter,
    Range,
    Store,
    check_key,
)
from recordsmith.stores.store import (
    Data,
    WholeWriter,
    check_range,
    check_version,
    missing_error,
)

from ..raising import raises
from .contract import StoreContract


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path)

    def fill(self, store: Store, keys: Collection[str]) -> None:
        """Without waiting for the disk 10,000 times."""
        for key in keys:
            path = Path(store.name_of(key))
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(key.encode()[:3])


class TestLocalStoreWithoutLinks(TestLocalStore):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path, follows_links=False)


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class DelayedStore(Store):
    """All that a new store needs: a dict whose reads take a while, as in a network."""

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


class TestDelayedStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return DelayedStore()


class CountingStore(DelayedStore):
    """Counts how many reads run at the same time."""

    reading = most_reading = 0

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        with self.lock:
            self.reading += 1
            self.most_reading = max(self.reading, self.most_reading)
        try:
            return super().read(key, start, stop, version)
        finally:
            with self.lock:
                self.reading -= 1


def test_many_ranges_are_read_at_the_same_time() -> None:
    store = CountingStore(0.02)
    store.put("x", b"abc")
    ranges = iter([Range("x")] * 200)
    reading = store.read_many(ranges)
    assert next(reading)[1] == b"abc"
    left = [*ranges]
    assert len(left) == 200 - 2 * store.concurrency  # taken only when results are
    assert len([*reading]) == 2 * store.concurrency - 1
    assert 1 < store.most_reading <= store.concurrency


def test_ranges_arrive_when_they_are_there() -> None:
    class UnevenStore(DelayedStore):
        def read(
            self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
        ) -> bytes:
            if key == "slow":
                assert is_first_read.wait(60)
            return super().read(key, start, stop, version)

    is_first_read = threading.Event()
    store = UnevenStore()
    for key in ("slow", "fast"):
        store.put(key, key.encode())
    found = store.read_many([Range("slow"), Range("fast")])
    assert next(found) == (1, b"fast")
    is_first_read.set()
    assert [*found] == [(0, b"slow")]


def write_folder(store: Store, *names: str) -> None:
    with store.write_folder("f", {}, overwrite=False, keeping={}, report=pytest.fail) as folder:
        for name in names:
            folder.open(name).write(b"mine")
            folder.close(name)


def test_a_folder_whose_note_cannot_be_written_is_deleted() -> None:
    class FullStore(MemoryStore):
        def put(self, key: str, data: Data) -> None:
            raise FileAccessError(errno.ENOSPC, f"full: {data!r:.9}", key)

    store = FullStore()
    with pytest.raises(FileAccessError):
        write_folder(store, "a", "b/c")
    assert [*store.list()] == []


def test_a_folder_that_another_process_writes_as_well() -> None:
    """The object of the other one stays; those of this one do not."""

    class SharedStore(MemoryStore):
        def open_write(self, key: str, **options: Any) -> ObjectWriter:
            if key == "f/b":
                self.put_if_absent(key, b"theirs")
            return super().open_write(key, **options)

    store = SharedStore()
    with raises(OptionError, option="overwrite"):
        write_folder(store, "a", "b", "c")
    assert {info.key: store.read(info.key) for info in store.list()} == {"f/b": b"theirs"}
