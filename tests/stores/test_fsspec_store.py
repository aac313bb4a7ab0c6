"""`FsspecStore` over file systems with habits of their own."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import recordsmith as rs
from recordsmith.stores import Location
from recordsmith.stores.network.fsspec_store import FsspecStore, object_info
from recordsmith.stores.network.store_options import PassedOptions
from recordsmith.support.errors import FileAccessError, OptionError

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
    files.pipe_file("/d/x", b"a" * 1000)
    (listed,) = store.list_entries()
    files.pipe_file("/d/x", b"b" * size)  # as another program does
    with raises(FileAccessError, errno=errno.ESTALE):
        store.read("x", 500, 1000, listed.version)
    assert store.read("x") == b"b" * size
    assert store.info("x").size_bytes == size
    files.pipe_file("/d/s/y", b"")
    assert {info.key for info in store.list()} == {"x", "s/y"}
    files.pipe_file("/d/z", b"")
    files.pipe_file("/d/s/z", b"")
    assert {entry.name for entry in store.list_entries()} == {"x", "z", "s"}
    assert {info.key for info in store.list()} == {"x", "z", "s/y", "s/z"}


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
    one, two = (object_info("x", {"size": 5, **found}).version for found in (fields, other))
    assert one != two
    assert FsspecStore(memory.MemoryFileSystem()).has_identity(one)


def test_a_file_is_no_folder(files: ListingFiles) -> None:
    store = FsspecStore(files, "/d")
    files.pipe_file("/d/records", b"")
    assert [*store.list_entries("records")] == []


@pytest.mark.parametrize("url", ["hdfs://host/a/train-?.tfrecord", "sftp://h/a?b"])
def test_marks_that_file_systems_cut_off(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def url_to_fs(url: str, **_: Any) -> tuple[Any, str]:
        return memory.MemoryFileSystem(), fsspec.utils.infer_storage_options(url)["path"]

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    with raises(OptionError, value=url):
        FsspecStore.from_url(url, PassedOptions.of(url, {}))


def test_it_is_read_only(files: ListingFiles) -> None:
    """These file systems have no conditional writes."""
    store = FsspecStore(files, "/d")
    for write in (
        lambda: store.put("x", b""),
        lambda: store.put_if_absent("x", b""),
        lambda: store.put_if_match("x", b"", "1"),
        lambda: store.delete("x"),
        lambda: rs.pack(rs.Rows([{"id": 1}]), Location(store, "out")),
    ):
        with raises(OptionError, match="read-only", remedy="Write to a local folder or a bucket."):
            write()
    assert [*store.list()] == []
