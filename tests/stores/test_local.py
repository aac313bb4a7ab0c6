"""Files as objects: links, pipes, locks, file systems without hard links, and failures."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores import (
    LocalStore,
    Location,
    as_folder,
    write_folder,
)

from ..raising import raises


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A root with planted links, and a file that they lead to."""
    (tmp_path / "precious").write_bytes(b"thesis")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to("../precious")
    (root / "folder").symlink_to("..")
    (root / "broken").symlink_to("../new")
    return root


@pytest.mark.parametrize("follows_links", [True, False])
def test_nothing_is_written_or_deleted_through_links(outside: Path, follows_links: bool) -> None:
    store = LocalStore(outside, follows_links)
    for write in (
        lambda key: store.put(key, b"new"),
        lambda key: store.put_if_absent(key, b"new"),
        lambda key: store.put_if_match(key, b"new", ""),
        lambda key: write_folder(
            Location(store, key), {}, overwrite=True, keeping={}, report=pytest.fail
        ),
        store.delete,
    ):
        for key in ("folder/precious", "folder/new", "folder/root/file"):
            with pytest.raises(OptionError):
                write(key)
    with pytest.raises(OptionError):
        write_folder(Location(store, "folder"), {}, overwrite=True, keeping={}, report=pytest.fail)
    for key in ("file", "broken"):
        with raises(OptionError, option="overwrite"):
            store.check_target(key, overwrite=False)
        store.check_target(key, overwrite=True)
        assert not store.put_if_absent(key, b"new")
        store.put(key, b"new")
        assert not (outside / key).is_symlink()
    (outside / "link").symlink_to("../precious")
    store.delete("link")
    assert not (outside / "link").is_symlink()
    assert sorted(os.listdir(outside.parent)) == ["precious", "root"]
    assert (outside.parent / "precious").read_bytes() == b"thesis"


def test_links_are_read_only_where_they_are_followed(outside: Path) -> None:
    following, strict = LocalStore(outside), LocalStore(outside, follows_links=False)
    assert following.read("file") == following.read("folder/precious") == b"thesis"
    assert {info.key: info.size_bytes for info in following.list()} == {"file": 6}
    assert [*strict.list()] == []
    for key in ("file", "folder/precious", "broken"):
        with pytest.raises((FileAccessError, OptionError)):
            strict.read(key)
        with pytest.raises((FileAccessError, OptionError)):
            strict.info(key)
    version = following.info("file").version
    assert following.put_if_match("file", b"new", version)  # the link is replaced, not followed
    assert (outside.parent / "precious").read_bytes() == b"thesis"


def test_only_regular_files_are_objects(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "folder" / "pipe")
    assert [*store.list()] == [*store.list("folder/")] == []
    for key, number in (("folder", errno.EISDIR), ("pipe", errno.EINVAL)):
        with pytest.raises(FileAccessError) as caught:
            store.info(key)
        assert (caught.value.errno, caught.value.path) == (number, str(tmp_path / key))
        assert not store.put_if_absent(key, b"x")
    with pytest.raises(OptionError):
        store.put("folder", b"x")
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_what_is_neither_object_nor_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").write_bytes(b"12345")
    os.mkfifo(tmp_path / "a" / "pipe")
    for name, target in (("gone", "nowhere"), ("self", "self"), ("to-b", "b"), ("to-file", "file")):
        (tmp_path / "a" / name).symlink_to(target)
    (tmp_path / "a" / "to-pipe").symlink_to("pipe")
    found = {
        entry.name: (entry.kind, entry.is_link) for entry in LocalStore(tmp_path).list_entries("a")
    }
    assert found == {
        "b": ("folder", False),
        "file": ("object", False),
        "gone": ("broken", True),
        "pipe": ("special", False),
        "self": ("broken", True),
        "to-b": ("folder", True),
        "to-file": ("object", False),
        "to-pipe": ("special", False),
    }
    with pytest.raises(FileNotFoundError):
        LocalStore(tmp_path).list_entries("missing")
    assert {info.key for info in LocalStore(tmp_path).list("a/")} == {"a/file", "a/to-file"}


def test_version_numbers_are_times(tmp_path: Path) -> None:
    """The same after a copy that keeps times, and at every mount."""
    path = tmp_path / "x"
    path.write_bytes(b"x")
    store = LocalStore(tmp_path)
    assert store.version_number(store.info("x").version) == path.stat().st_mtime_ns


def test_a_root_that_is_missing(tmp_path: Path) -> None:
    """It is listed as empty, and not made: the user may have mistyped it."""
    store = LocalStore(tmp_path / "missing")
    assert [*store.list()] == [*store.list("a/b")] == []
    for key in ("x", "a/x"):
        for call in (
            lambda key: store.put(key, b""),
            lambda key: store.check_target(key, overwrite=True),
        ):
            fields = {"errno": errno.ENOENT, "operation": "write", "path": store.name_of(key)}
            with raises(FileAccessError, **fields):
                call(key)
    assert os.listdir(tmp_path) == []


def test_files_of_unfinished_writers_are_not_objects(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.open_write("x"):
        (name,) = os.listdir(tmp_path)
        assert [*store.list()] == []
    (tmp_path / name).touch()  # of a killed process
    assert [info.key for info in store.list()] == ["x"]


def test_one_writer_finds_it_absent_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    store = LocalStore(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        won = [*pool.map(lambda number: store.put_if_absent("x", b"%d" % number), range(40))]
    assert sum(won) == 1
    assert store.read("x") == b"%d" % won.index(True)
    assert os.listdir(tmp_path) == ["x"]
    with pytest.raises(OptionError) as caught, store.open_write("x", overwrite=False) as file:
        file.write(b"late")
    assert caught.value.option == "overwrite"


def test_a_file_system_without_locks_cannot_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.put("x", b"old")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(FileAccessError) as caught:
        store.put_if_match("x", b"new", store.info("x").version)
    assert caught.value.errno == errno.ENOLCK
    assert store.read("x") == b"old"


@pytest.mark.parametrize(
    ("step", "number"), [("fsync", errno.EIO), ("replace", errno.ENOSPC), ("link", errno.ENOSPC)]
)
def test_a_write_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    store = LocalStore(tmp_path)
    store.put("old", b"old")
    version = store.info("old").version

    def fail(*_: object) -> None:
        raise OSError(number, "")

    calls: list[Callable[[], Any]] = [lambda: store.put_if_absent("new", b"new")]
    if step != "link":
        calls = [lambda: store.put("old", b"1"), lambda: store.put_if_match("old", b"2", version)]
    monkeypatch.setattr(os, step, fail)
    for call in calls:
        with pytest.raises(FileAccessError) as caught:
            call()
        assert (caught.value.errno, caught.value.operation) == (number, "write")
    monkeypatch.undo()
    assert [info.key for info in store.list()] == ["old"]
    assert store.read("old") == b"old"
    assert os.listdir(tmp_path) == ["old"]


def test_descriptors_are_closed(tmp_path: Path, outside: Path) -> None:
    store = LocalStore(outside)
    store.put("x", b"x")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        store.read("x")
        store.put_if_match("x", b"y", "another version")
        store.put_if_absent("x", b"y")
        next(store.list())
        with pytest.raises(FileAccessError):
            store.read("missing")
        with pytest.raises(KeyError), store.open_write("x"):
            raise KeyError
        with pytest.raises(FileAccessError):
            LocalStore(outside, follows_links=False).read("file")
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("is_left", [False, True])
def test_a_folder_that_cannot_be_listed_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_left: bool
) -> None:
    (tmp_path / "out").mkdir()
    if is_left:  # of a killed job
        (tmp_path / "out" / ".export.partial").mkdir()

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "listdir", refuse)
    writing = write_folder(
        as_folder(tmp_path / "out"), {}, overwrite=False, keeping={}, report=pytest.fail
    )
    with raises(FileAccessError, errno=errno.EACCES, path=tmp_path / "out"), writing:
        pytest.fail("it was opened")
