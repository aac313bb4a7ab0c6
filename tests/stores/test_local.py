"""Local files: errors of the system, links, pipes, locks, and file systems that lack something."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith import stores
from recordsmith.dataset import Shard, ShardWriter
from recordsmith.dataset.shard_index import index_locations, index_pieces
from recordsmith.stores import Location, as_folder
from recordsmith.stores.local import reader as local_reader
from recordsmith.stores.local.locks import locked
from recordsmith.stores.local.reader import LocalReader
from recordsmith.stores.local.store import LocalStore
from recordsmith.stores.local.writer import temporary_name
from recordsmith.support.errors import FileAccessError, OptionError, accessing
from recordsmith.writing.building.publishing import locked_folder

from ..places import new_folder
from ..raising import raises

pytestmark = pytest.mark.posix
fcntl = pytest.importorskip("fcntl")


def test_errors_have_path_operation_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    cases = {
        tmp_path / "missing": (errno.ENOENT, "no such file"),
        tmp_path / "file" / "below": (errno.ENOTDIR, "part of the path is a file"),
        tmp_path / "loop": (errno.ELOOP, "loop"),
        tmp_path / ("x" * 300): (errno.ENAMETOOLONG, "too long"),
        tmp_path: (errno.EISDIR, "it is a folder"),
    }
    for path, (number, words) in cases.items():
        with raises(FileAccessError, errno=number, path=path, operation="read") as caught:
            stores.as_location(path).open_read()
        assert words in caught.value.reason


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES]
)
def test_errors_of_writing_have_a_reason(number: int) -> None:
    fields = {"errno": number, "path": "place", "operation": "write"}
    with raises(FileAccessError, **fields) as caught, accessing("place", "write"):
        raise OSError(number, "")
    assert len(caught.value.reason.split()) >= 2


def test_exclusive_refuses_a_second_lock_and_releases_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(KeyError), locked(tmp_path, tmp_path):
        with raises(FileAccessError, errno=errno.EBUSY, path=tmp_path):
            locked(tmp_path, tmp_path).__enter__()
        raise KeyError("the job failed")
    with locked(tmp_path, tmp_path):
        pass


def test_shared_locks(tmp_path: Path) -> None:
    with locked(tmp_path, tmp_path, is_shared=True):
        with locked(tmp_path, tmp_path, is_shared=True):
            pass
        with raises(FileAccessError, errno=errno.EBUSY):
            locked(tmp_path, tmp_path).__enter__()
    with locked(tmp_path, tmp_path), raises(FileAccessError, errno=errno.EBUSY):
        locked(tmp_path, tmp_path, is_shared=True).__enter__()


def test_exclusive_ends_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from recordsmith.stores.local.locks import locked\n"
        "with locked(Path(sys.argv[1]), ''): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(lock)], check=False)
    assert done.returncode < 0
    with locked(lock, lock):
        pass


def test_cache_folder_follows_the_desktop_standard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert _cache(tmp_path) == tmp_path / "cache"
    for empty in (True, False):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", "") if empty else monkeypatch.delenv("XDG_CACHE_HOME")
        assert _cache(tmp_path) == tmp_path / "home" / ".cache"


def _cache(folder: Path) -> Path:
    _, cached = index_locations(folder / "x.tfrecord")
    return Path(cached).parents[2]


def test_a_document_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"x" * 1000)
    assert stores.read_document(path, 1000) == b"x" * 1000
    assert stores.read_document(path) == path.read_bytes()
    fields = {"errno": errno.EFBIG, "path": path, "operation": "read"}
    with raises(FileAccessError, **fields):
        stores.read_document(path, 999)
    os.truncate(path, 1 << 33)  # refused by its size, before reading
    with raises(FileAccessError, **fields):
        stores.read_document(path)


def test_a_pipe_that_ends_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for written, most in ((b"old,new\n" * 9, 100), (b"y" * 5000, 100)):
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(stores.read_document, pipe, most)
            with open(pipe, "wb", buffering=0) as file:
                file.write(written)
        if len(written) <= most:
            assert reading.result() == written
        else:
            with raises(FileAccessError, errno=errno.EFBIG):
                reading.result()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_endless_files_are_refused() -> None:
    with raises(FileAccessError, errno=errno.EFBIG):
        stores.read_document("/dev/zero", 1 << 20)
    with raises(FileAccessError, path="/dev/zero", operation="read", errno=errno.EINVAL):
        stores.as_location("/dev/zero").read()


# -- files that are created ------------------------------------------------------------------------


def test_nothing_is_created_through_a_link_or_over_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_bytes(b"x")
    (tmp_path / "link").symlink_to("precious")
    (tmp_path / "dangling").symlink_to("missing")
    (tmp_path / "hard").hardlink_to(tmp_path / "precious")
    for name in ("precious", "link", "dangling", "hard"):
        with monkeypatch.context() as patched:
            taken = tmp_path / name
            patched.setattr("recordsmith.stores.local.writer.temporary_name", lambda _, t=taken: t)
            with raises(FileAccessError, errno=errno.EEXIST, path=tmp_path / "new"):
                stores.write_atomically(tmp_path / "new", b"new")
    assert (tmp_path / "precious").read_bytes() == b"x"
    assert not (tmp_path / "missing").exists()
    for name in ("link", "dangling", "hard"):
        stores.write_atomically(tmp_path / name, b"new")
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "precious").read_bytes() == b"x"
    assert temporary_name(tmp_path / "x") != temporary_name(tmp_path / "x")


def test_leftovers_of_an_export_are_removed_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis").touch()
    leftover = tmp_path / "out" / ".export.partial"
    (leftover / "tree" / "below").mkdir(parents=True)
    for place in (leftover / "link", leftover / "tree" / "below" / "link"):
        place.symlink_to(tmp_path / "precious")
    with new_folder(as_folder(tmp_path / "out")):
        assert sorted(os.listdir(leftover)) == ["lock", "new"]
    assert os.listdir(tmp_path / "out") == [stores.EXPORT_NOTE]
    assert os.listdir(tmp_path / "precious") == ["thesis"]


def test_a_writer_of_a_killed_job_replaces_nothing(tmp_path: Path) -> None:
    """It found its job at work when it began; the next one has files of the same names."""
    out = as_folder(tmp_path / "out")
    with ExitStack() as stack:
        with suppress(KeyError), new_folder(out) as folder:
            late = stack.enter_context(stores.shared_folder(folder.share(["a"])))
            raise KeyError
        with new_folder(out) as folder:
            document = folder.share(["a"])
            late.open("a").write(b"late")
            with stores.shared_folder(document) as shared:
                shared.open("a").write(b"a")
                shared.close("a")
            with raises(FileAccessError, errno=errno.ESTALE):
                late.close("a")
    assert (tmp_path / "out" / "a").read_bytes() == b"a"
    assert sorted(os.listdir(tmp_path / "out")) == [stores.EXPORT_NOTE, "a"]


@pytest.mark.parametrize(
    ("what", "verb"),
    [
        (lambda path: stores.as_location(path).open_read().close(), "read"),
        (lambda path: list(Shard(path, "").blocks()), "read"),
        (lambda path: Shard(path, "").index, "read"),
        (lambda path: Shard(path, "").read(0), "read"),
        (lambda path: index_pieces(path, Shard(path, "").walk()), "read"),
        (lambda path: rs.salvage(path, path.parent / "out" / "x", threads=1), "read"),
        (lambda path: stores.write_atomically(path, b"x"), "write"),
        (lambda path: ShardWriter(path, overwrite=True).close(), "write"),
    ],
)
def test_errors_of_closing_have_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: Callable[[Path], Any], verb: str
) -> None:
    """Network file systems report an exceeded quota only when a file is closed."""
    path = tmp_path / "in" / "a.tfrecord"
    path.parent.mkdir()
    with ShardWriter(path) as writer:
        writer.write(b"payload")

    close = os.close

    def refuse(descriptor: int) -> None:
        close(descriptor)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    class Refusing(io.FileIO):
        def close(self) -> None:
            if not self.closed:
                super().close()
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    bases = LocalReader.__bases__
    LocalReader.__bases__ = (bases[0], Refusing)
    if verb == "write":
        monkeypatch.setattr(os, "close", refuse)
    try:
        with raises(FileAccessError, errno=errno.EDQUOT, path=path, operation=verb):
            what(path)
    finally:
        monkeypatch.undo()
        LocalReader.__bases__ = bases


def _remove_leftovers(paths: list[Path]) -> None:
    for path in paths:
        stores.as_folder(path.parent).store.remove_leftovers("", [path.name])


def test_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "x.idx", tmp_path / "b" / "y.idx", tmp_path / "missing" / "z"]
    for path in paths[:2]:
        path.parent.mkdir()
        path.touch()
    (tmp_path / "precious").touch()
    left = [temporary_name(path) for path in paths[:2] for _ in range(2)]
    others = [
        temporary_name(tmp_path / "a" / "other"),
        tmp_path / "a" / ".x.idx.partial",
        tmp_path / "a" / ".x.idx.0123.partial",
    ]
    planted = temporary_name(paths[0])
    planted.symlink_to(tmp_path / "precious")
    for path in (*left, *others):
        path.touch()
    before = {*paths[0].parent.iterdir()}
    with LocalStore(paths[0].parent).open_write("x.idx"):
        (temporary,) = {*paths[0].parent.iterdir()} - before
        _remove_leftovers(paths)
        assert temporary.exists()
        assert not any(path.exists() for path in left)
        assert all(path.exists() for path in (*others, *paths[:2], tmp_path / "precious"))


def test_a_temporary_file_that_another_process_removed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its creation and its lock, another process may remove it."""
    lock, calls = fcntl.flock, 0

    def late(descriptor: int, kind: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            for entry in os.scandir(tmp_path):
                os.unlink(entry)
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    stores.write_atomically(tmp_path / "x", b"data")
    assert (tmp_path / "x").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["x"]
    assert calls == 2


# -- locks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["file", "folder"])
def test_a_lock_of_a_removed_file_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """The job that held it has just ended; a third job may hold the new file already."""
    lock, calls = fcntl.flock, 0

    def late(descriptor: int, kind: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            os.unlink(tmp_path / "out" / "lock")
            if gone == "folder":
                os.rmdir(tmp_path / "out")
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path / "out", tmp_path / "out"):
        assert os.listdir(tmp_path / "out") == ["lock"]
        with raises(FileAccessError, errno=errno.EBUSY):
            locked(tmp_path / "out", tmp_path / "out").__enter__()
    assert calls == 3


def test_a_refused_job_leaves_the_folder_to_the_running_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked_folder(stores.as_folder(out)):
        for _ in range(2):
            with raises(FileAccessError, errno=errno.EBUSY):
                locked_folder(stores.as_folder(out)).__enter__()
            assert os.listdir(out / ".recordsmith") == ["lock"]
    assert not out.exists()


@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe"])
def test_only_a_regular_file_is_a_lock(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("precious")
        if kind == "link":
            (tmp_path / "precious").touch()
    with pytest.raises(OptionError, match="lock"):
        locked(tmp_path, tmp_path).__enter__()
    assert (tmp_path / "precious").exists() == (kind == "link")


@pytest.mark.parametrize(
    "number", [errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS, errno.EBADF, errno.EPERM]
)
def test_a_file_system_without_locks_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbered: Any, number: int
) -> None:
    numbered.packed(tmp_path / "in", {"train": [3]})

    def refuse(_descriptor: int, _kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for job in (rs.reshard, rs.salvage):
        report = job(tmp_path / "in", tmp_path / job.__name__)
        assert sum("locks" in notice for notice in report.notices) == 1
        assert rs.verify(tmp_path / job.__name__).is_good
    report = rs.export(tmp_path / "in", tmp_path / "parquet", "parquet")
    assert sum("locks" in problem for problem in report.problems) == 1
    numbered.write_shard(tmp_path / "train.tfrecord", [7])
    out = tmp_path / "reshard"
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with raises(OptionError, option="lock", match="lock=False"):
        rs.append(tmp_path / "train.tfrecord", out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    report = rs.append(tmp_path / "train.tfrecord", out, lock=False)
    assert sum("locks" in notice for notice in report.notices) == 1
    assert len(rs.open(out)) == 4
    monkeypatch.undo()
    report = rs.append(tmp_path / "train.tfrecord", out, again=True)
    assert not any("locked" in notice for notice in report.notices)


# -- files as objects ------------------------------------------------------------------------------


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
        lambda key: new_folder(Location(store, key), overwrite=True).__enter__(),
        store.delete,
    ):
        for key in ("folder/precious", "folder/new", "folder/root/file"):
            with pytest.raises(OptionError):
                write(key)
    with pytest.raises(OptionError):
        new_folder(Location(store, "folder"), overwrite=True).__enter__()
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
        with raises(FileAccessError, errno=number, path=tmp_path / key):
            store.info(key)
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
    with raises(OptionError, option="overwrite"), store.open_write("x", overwrite=False) as file:
        file.write(b"late")


def test_a_file_system_without_locks_cannot_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.put("x", b"old")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with raises(FileAccessError, errno=errno.ENOLCK):
        store.put_if_match("x", b"new", store.info("x").version)
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
        with raises(FileAccessError, errno=number, operation="write"):
            call()
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
    out = tmp_path / "out"
    with raises(FileAccessError, errno=errno.EACCES, path=out), new_folder(as_folder(out)):
        pytest.fail("it was opened")


def test_systems_without_posix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows: no `pread` and no kernel for it, no flags against links, no owners."""
    for number in range(2):
        with rs.ShardWriter(tmp_path / f"train-0000{number}-of-00002.tfrecord") as writer:
            for value in range(300):
                writer.write_example({"x": [value], "text": [b"a" * value]})
    expected = rs.open(tmp_path).read_columns(["x"])["x"].tolist()
    for name in ("pread", "preadv", "geteuid", "posix_fadvise", "O_DIRECT", "RWF_NOWAIT"):
        monkeypatch.delattr(os, name)
    monkeypatch.setattr(local_reader, "kernel", None)
    monkeypatch.setattr(local_reader, "NO_LINKS", 0)
    dataset = rs.open(tmp_path)
    order = dataset.shuffle(seed=1)
    assert sorted(example["x"][0] for example in order) == sorted(expected)
    assert len(order[7]["text"][0]) == order[7]["x"][0]
    assert rs.verify(tmp_path).is_good
    loader = rs.Loader(dataset, ["x"], batch_size=50, shuffle=True)
    assert sorted(np.concatenate([batch["x"] for batch in loader])) == sorted(expected)
    (tmp_path / "link").symlink_to("train-00000-of-00002.tfrecord")
    with pytest.raises(OSError, match="symbolic link"):
        local_reader.open_regular(tmp_path / "link", os.O_RDONLY)
    monkeypatch.setattr(os, "sep", "\\")
    with pytest.raises(rs.OptionError):
        LocalStore(tmp_path).info("a\\b")
