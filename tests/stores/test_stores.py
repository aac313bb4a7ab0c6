"""The stores keep the contract: files, memory, and one with the delay of a network."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from recordsmith.stores import EXPORT_NOTE, Location, MemoryStore, ObjectWriter, Range, Store
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.object_writer import Data
from recordsmith.support.errors import FileAccessError, OptionError

from ..places import new_folder
from ..raising import raises
from .contract import StoreContract
from .counting import CountingStore
from .delayed import DelayedStore
from .rounds import RoundStore


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


class TestCountingStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return CountingStore()


def test_many_ranges_are_read_at_the_same_time() -> None:
    store = RoundStore(0.02)
    store.put("x", b"abc")
    ranges = iter([Range("x")] * 10_000)
    reading = store.read_many(ranges)
    assert next(reading)[1] == b"abc"
    assert len([*ranges]) > 5000  # taken only when results are
    reading.close()  # type: ignore[attr-defined]
    assert 1 < store.most_at_once <= store.concurrency


def test_answers_wait_for_the_reader_within_bounds() -> None:
    class CountedStore(DelayedStore):
        count = 0

        def read(self, *wanted: Any) -> bytes:
            with self.lock:
                self.count += 1
            return super().read(*wanted)

    store, most = CountedStore(0), 0
    store.put("x", b"abc")
    reading = store.read_many([Range("x")] * 3000)
    for number in range(3000):
        if number % 500 == 0:
            time.sleep(0.05)  # requests stop while the reader does something else
            most = max(most, store.count - number)
        assert next(reading)[1] == b"abc"
    assert next(reading, None) is None
    assert store.count == 3000
    assert most <= 4 * store.concurrency


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


def write_objects(store: Store, *names: str) -> None:
    with new_folder(Location(store, "f")) as folder:
        for name in names:
            folder.open(name).write(b"mine")
            folder.close(name)


def test_a_folder_whose_note_cannot_be_written_is_deleted() -> None:
    class FullStore(MemoryStore):
        def put(self, key: str, data: Data) -> None:
            raise FileAccessError(errno.ENOSPC, f"full: {data!r:.9}", key)

    store = FullStore()
    with pytest.raises(FileAccessError):
        write_objects(store, "a", "b/c")
    assert [*store.list()] == []


def test_what_is_left_of_an_earlier_folder_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server fails while the objects of the earlier folder are deleted."""
    folder = Location(MemoryStore(), "f")
    for name in ("a", "b"):
        (folder / name).put(b"")
    (folder / EXPORT_NOTE).put(b'{"entries": ["a", "b"]}')
    delete = MemoryStore.delete

    def fail(store: MemoryStore, key: str) -> None:
        if key == "f/b":
            raise FileAccessError(errno.EIO, "failed", key)
        delete(store, key)

    monkeypatch.setattr(MemoryStore, "delete", fail)
    with (
        pytest.raises(FileAccessError, match="failed"),
        new_folder(folder, overwrite=True) as writer,
    ):
        writer.open("c")
    monkeypatch.undo()
    with new_folder(folder, overwrite=True) as writer:
        writer.open("d")
        writer.close("d")
    assert sorted(place.name for place in folder.list()) == [EXPORT_NOTE, "d"]


def test_a_folder_that_another_process_writes_as_well() -> None:
    """The object of the other one stays; those of this one do not."""

    class SharedStore(MemoryStore):
        def open_write(self, key: str, **options: Any) -> ObjectWriter:
            if key == "f/b":
                self.put_if_absent(key, b"theirs")
            return super().open_write(key, **options)

    store = SharedStore()
    with raises(OptionError, option="overwrite"):
        write_objects(store, "a", "b", "c")
    assert {info.key: store.read(info.key) for info in store.list()} == {"f/b": b"theirs"}
