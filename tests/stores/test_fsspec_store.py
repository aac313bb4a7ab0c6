"""`FsspecStore` over file systems with habits of their own."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores.remote import FsspecStore, PassedOptions
from recordsmith.stores.remote.fsspec_store import _info

from ..raising import raises

memory: Any = pytest.importorskip("fsspec.implementations.memory")


class ListingFiles(memory.MemoryFileSystem):  # type: ignore[misc]
    """Keeps what it listed, as the file systems of many servers do."""

    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        path = self._strip_protocol(path)
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True)
        found = self.dircache[path]
        return found if detail else [info["name"] for info in found]

    def info(self, path: str, **_: Any) -> Any:
        path = self._strip_protocol(path)
        listed = self.dircache.get(self._parent(path), [])
        return next((info for info in listed if info["name"] == path), None) or super().info(path)

    def invalidate_cache(self, path: str | None = None) -> None:
        """As FTP and dbfs: the listing of the folder of a path stays."""
        if path is None:
            self.dircache.clear()
        else:
            self.dircache.pop(path, None)


@pytest.fixture
def files() -> Iterator[ListingFiles]:
    files = ListingFiles(use_listings_cache=True)
    files.makedirs("/d", exist_ok=True)
    yield files
    ListingFiles.store.clear()
    ListingFiles.pseudo_dirs[:] = [""]
    files.dircache.clear()


@pytest.mark.parametrize("size", [1000, 1001])
def test_a_replaced_object_is_noticed_in_spite_of_old_listings(
    files: ListingFiles, size: int
) -> None:
    store = FsspecStore(files, "/d")
    store.put("x", b"a" * 1000)
    (listed,) = store.list_entries()
    files.pipe_file("/d/x", b"b" * size)  # as another program does
    with raises(FileAccessError, errno=errno.ESTALE):
        store.read("x", 500, 1000, listed.version)
    assert store.read("x") == b"b" * size
    assert store.info("x").size_bytes == size
    store.put("s/y", b"")
    assert {info.key for info in store.list()} == {"x", "s/y"}
    files.pipe_file("/d/z", b"")
    files.pipe_file("/d/s/z", b"")
    assert {entry.name for entry in store.list_entries()} == {"x", "z", "s"}
    assert {info.key for info in store.list()} == {"x", "z", "s/y", "s/z"}


@pytest.mark.parametrize(
    ("failing", "expected"), [((), b"new"), ((2,), b"old"), ((3,), b"old"), ((1, 3), b"old")]
)
def test_a_failed_rename_keeps_what_was_there(
    files: ListingFiles,
    monkeypatch: pytest.MonkeyPatch,
    failing: tuple[int, ...],
    expected: bytes,
) -> None:
    """As where a file must not be in the way; some of the moves fail for another reason."""
    store = FsspecStore(files, "/d")
    store.put("x", b"old")
    move, calls = ListingFiles.mv, itertools.count(1)

    def mv(self: Any, old: str, new: str) -> None:
        if next(calls) in failing:
            raise OSError(errno.ETIMEDOUT, "")
        if new in self.store:
            raise OSError(errno.EEXIST, "")
        move(self, old, new)

    monkeypatch.setattr(ListingFiles, "mv", mv)
    with raises(FileAccessError) if failing else nullcontext():
        store.put("x", b"new")
    assert store.read("x") == expected
    assert [entry.name for entry in store.list_entries()] == ["x"]
    assert [*files.find("/d")] == ["/d/x"]


@pytest.mark.parametrize(
    "fields",
    [
        {"blob_id": "a1"},
        {"xet_hash": "a1"},
        {"modificationTime": 1700000000000},
        {"modify": "20240101000000"},
        {"mtime": 1.5},
    ],
)
def test_versions_of_other_file_systems(fields: dict[str, Any]) -> None:
    other = {name: f"{value}9" for name, value in fields.items()}
    one, two = (_info("x", {"size": 5, **found}).version for found in (fields, other))
    assert one != two
    assert FsspecStore(memory.MemoryFileSystem()).has_identity(one)


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent(
    files: ListingFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FsspecStore, "_is_serial", True)
    store = FsspecStore(files, "/d")
    store.put("x", b"abc")
    is_held, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with store._lock:
            is_held.set()
            is_done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if store.read("x") == b"abc" and store.put_if_absent("y", b"") else 1)
    status = os.waitpid(child, 0)[1]
    is_done.set()
    thread.join()
    assert status == 0


def test_a_file_is_no_folder(files: ListingFiles) -> None:
    store = FsspecStore(files, "/d")
    store.put("records", b"")
    assert [*store.list_entries("records")] == []


@pytest.mark.parametrize("url", ["hdfs://host/a/train-?.tfrecord", "sftp://h/a?b"])
def test_marks_that_file_systems_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def url_to_fs(url: str, **_: Any) -> tuple[Any, str]:
        return memory.MemoryFileSystem(), fsspec.utils.infer_storage_options(url)["path"]

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    with raises(OptionError, value=url):
        FsspecStore.from_url(url, PassedOptions.of(url, {}))
