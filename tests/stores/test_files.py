"""Local files: system errors become FileAccessError; files appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith import stores
from recordsmith.building import locked_folder
from recordsmith.dataset import Shard, ShardWriter
from recordsmith.dataset.shard_index import index_locations, index_pieces
from recordsmith.errors import FileAccessError, OptionError, accessing
from recordsmith.stores import LocalStore, as_folder, write_folder
from recordsmith.stores.local.locks import locked
from recordsmith.stores.local.reader import LocalReader
from recordsmith.stores.local.writer import temporary_name

from ..raising import raises


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
        with pytest.raises(FileAccessError) as caught:
            stores.as_location(path).open_read()
        error = caught.value
        assert (error.errno, error.path, error.operation) == (number, str(path), "read")
        assert words in error.reason
        assert str(error).startswith(f"cannot read {path}: ")


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES]
)
def test_errors_of_writing_have_a_reason(number: int) -> None:
    with pytest.raises(FileAccessError) as caught, accessing("place", "write"):
        raise OSError(number, "")
    error = caught.value
    assert (error.errno, error.path, error.operation) == (number, "place", "write")
    assert len(error.reason.split()) >= 2


def test_exclusive_refuses_a_second_lock_and_releases_at_the_end(tmp_path: Path) -> None:
    lock = tmp_path / "out"
    lock.mkdir()

    def fail_with_the_lock() -> None:
        with locked(lock, lock):
            with pytest.raises(FileAccessError) as caught:
                locked(lock, lock).__enter__()
            error = caught.value
            assert (error.errno, error.path) == (errno.EBUSY, str(tmp_path / "out"))
            raise KeyError("the job failed")

    with pytest.raises(KeyError):
        fail_with_the_lock()
    with locked(lock, lock):
        pass


def test_shared_locks(tmp_path: Path) -> None:
    with locked(tmp_path, tmp_path, is_shared=True):
        with locked(tmp_path, tmp_path, is_shared=True):
            pass
        with pytest.raises(FileAccessError) as caught:
            locked(tmp_path, tmp_path).__enter__()
        assert caught.value.errno == errno.EBUSY
    with locked(tmp_path, tmp_path), pytest.raises(FileAccessError) as caught:
        locked(tmp_path, tmp_path, is_shared=True).__enter__()
    assert caught.value.errno == errno.EBUSY


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
    with pytest.raises(FileAccessError) as caught:
        stores.read_document(path, 999)
    assert (caught.value.errno, caught.value.path) == (errno.EFBIG, str(path))
    with open(path, "r+b") as file:
        file.truncate(1 << 33)  # refused by its size, before reading
    with raises(
        FileAccessError,
        path=tmp_path / "document",
        operation="read",
        errno=errno.EFBIG,
    ):
        stores.read_document(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
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
            with pytest.raises(FileAccessError) as caught:
                reading.result()
            assert caught.value.errno == errno.EFBIG


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_endless_files_are_refused() -> None:
    with pytest.raises(FileAccessError) as caught:
        stores.read_document("/dev/zero", 1 << 20)
    assert caught.value.errno == errno.EFBIG
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
            with pytest.raises(FileAccessError) as caught:
                stores.write_atomically(tmp_path / "new", b"new")
        assert (caught.value.errno, caught.value.path) == (errno.EEXIST, str(tmp_path / "new"))
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
    with write_folder(
        as_folder(tmp_path / "out"), {}, overwrite=False, keeping={}, report=pytest.fail
    ):
        assert sorted(os.listdir(leftover)) == ["lock", "new"]
    assert os.listdir(tmp_path / "out") == [stores.EXPORT_NOTE]
    assert os.listdir(tmp_path / "precious") == ["thesis"]


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
        with pytest.raises(FileAccessError) as caught:
            what(path)
    finally:
        monkeypatch.undo()
        LocalReader.__bases__ = bases
    assert (caught.value.errno, caught.value.filename) == (errno.EDQUOT, str(path))
    assert f"cannot {verb} {path}" in str(caught.value)


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
        with pytest.raises(FileAccessError) as caught:
            locked(tmp_path / "out", tmp_path / "out").__enter__()
        assert caught.value.errno == errno.EBUSY
    assert calls == 3


def test_a_refused_job_leaves_the_folder_to_the_running_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with locked_folder(stores.as_folder(out)):
        for _ in range(2):
            with pytest.raises(FileAccessError) as caught, locked_folder(stores.as_folder(out)):
                pass
            assert caught.value.errno == errno.EBUSY
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
