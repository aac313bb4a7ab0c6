"""Local files: what the system refuses becomes words, and files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recordsmith import files
from recordsmith.errors import FileAccessError, OptionError


def test_refusals_name_path_verb_and_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    cases = {
        tmp_path / "missing": (errno.ENOENT, "no such file"),
        tmp_path / "file" / "below": (errno.ENOTDIR, "a part of the path is a file"),
        tmp_path / "loop": (errno.ELOOP, "circle"),
        tmp_path / ("x" * 300): (errno.ENAMETOOLONG, "too long"),
        tmp_path: (errno.EISDIR, "it is a folder"),
    }
    for path, (number, words) in cases.items():
        with pytest.raises(FileAccessError, match=words) as caught:
            files.open_file(path)
        assert caught.value.errno == number
        assert f"cannot read {path}" in str(caught.value)


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.EACCES]
)
def test_refusals_of_writing_are_words(number: int) -> None:
    with pytest.raises(FileAccessError) as caught, files.accessing("place", "write"):
        raise OSError(number, "")
    assert caught.value.errno == number
    reason = str(caught.value).partition("cannot write place: ")[2]
    assert len(reason.split()) >= 3


def test_unknown_refusals_keep_the_words_of_the_system() -> None:
    with pytest.raises(FileAccessError, match="something new"), files.accessing("place"):
        raise OSError(9999, "something new")
    with pytest.raises(FileAccessError, match="only words"), files.accessing("place"):
        raise OSError("only words")


def test_refusals_are_told_once() -> None:
    with (
        pytest.raises(FileAccessError) as caught,
        files.accessing("outer", "write"),
        files.accessing("inner"),
    ):
        raise OSError(errno.ENOENT, "")
    assert "inner" in str(caught.value)
    assert "outer" not in str(caught.value)


def test_other_errors_pass() -> None:
    with pytest.raises(KeyError), files.accessing("place"):
        raise KeyError("another")


def test_read_head_and_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    assert files.read_head(path, 4) == b"abcd"
    assert files.read_head(str(path), 100) == b"abcdef"
    assert files.size_of(path) == 6
    with pytest.raises(FileAccessError):
        files.size_of(tmp_path / "missing")


def test_list_folder_is_sorted_and_holds_every_name(tmp_path: Path) -> None:
    names = ["b", "a", ".hidden", "é", "B", "a b", os.fsdecode(b"\xff")]
    for name in names:
        (tmp_path / name).touch()
    assert [entry.name for entry in files.list_folder(tmp_path)] == sorted(names)
    with pytest.raises(FileAccessError):
        files.list_folder(tmp_path / "missing")


def test_make_folder(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "a" / "b")
    files.make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileAccessError, match="cannot make folder"):
        files.make_folder(tmp_path / "file")


def test_write_atomically_replaces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write_atomically(path, b"first")
    files.write_atomically(str(path), b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_write_atomically_leaves_the_old_file_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    path = tmp_path / "file"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(FileAccessError, match="no space is left"):
        files.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_write_atomically_by_many_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [bytes([number]) * 10_000 for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: files.write_atomically(path, text), texts))
    assert path.read_bytes() in texts
    assert os.listdir(tmp_path) == ["file"]


def test_publish_and_remove(tmp_path: Path) -> None:
    (tmp_path / "temporary").write_bytes(b"data")
    files.publish(tmp_path / "temporary", tmp_path / "final")
    assert os.listdir(tmp_path) == ["final"]
    with pytest.raises(FileAccessError):
        files.publish(tmp_path / "temporary", tmp_path / "final")
    files.remove(tmp_path / "final")
    files.remove(tmp_path / "final")
    assert os.listdir(tmp_path) == []


def test_exclusive_refuses_a_second_and_lets_go_at_the_end(tmp_path: Path) -> None:
    lock = tmp_path / "out"
    lock.mkdir()

    def fail_with_the_lock() -> None:
        with files.exclusive(lock):
            with pytest.raises(FileAccessError, match="another process") as caught:
                files.exclusive(lock).__enter__()
            assert str(tmp_path / "out") in str(caught.value)
            raise KeyError("the job failed")

    with pytest.raises(KeyError):
        fail_with_the_lock()
    with files.exclusive(lock):
        pass


def test_exclusive_among_equals(tmp_path: Path) -> None:
    with files.exclusive(tmp_path, among_equals=True):
        with files.exclusive(tmp_path, among_equals=True):
            pass
        with pytest.raises(FileAccessError, match="another process"):
            files.exclusive(tmp_path).__enter__()
    with (
        files.exclusive(tmp_path),
        pytest.raises(FileAccessError, match="another process"),
    ):
        files.exclusive(tmp_path, among_equals=True).__enter__()


def test_exclusive_ends_with_its_process(tmp_path: Path) -> None:
    lock = tmp_path
    script = (
        "import os, signal, sys; from recordsmith import files\n"
        "with files.exclusive(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(lock)], check=False)
    assert done.returncode < 0
    with files.exclusive(lock):
        pass


def test_exclusive_says_where_it_cannot_lock(tmp_path: Path) -> None:
    lock = tmp_path / "missing"
    with pytest.raises(FileAccessError, match="missing"):
        files.exclusive(lock).__enter__()


def test_sync_folder_never_fails(tmp_path: Path) -> None:
    files.sync_folder(tmp_path)
    files.sync_folder(tmp_path / "missing")


def test_cache_folder_follows_the_desktop_standard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert files.cache_folder().parent == tmp_path / "cache"
    for empty in (True, False):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", "") if empty else monkeypatch.delenv("XDG_CACHE_HOME")
        assert files.cache_folder().parent == tmp_path / "home" / ".cache"


def test_what_cannot_be_written_is_called_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "plan.json"
    with pytest.raises(FileAccessError) as caught:
        files.write_atomically(path, b"x")
    assert str(caught.value).startswith(f"cannot write {path}: ")


def test_nothing_is_replaced_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    files.write_atomically(path, b"1", overwrite=False)
    with pytest.raises(OptionError, match="exists already"):
        files.write_atomically(path, b"2", overwrite=False)
    files.write_atomically(path, b"3")
    assert path.read_bytes() == b"3"
    assert list(tmp_path.iterdir()) == [path]


def test_a_target_is_looked_at_before_the_work(tmp_path: Path) -> None:
    path = tmp_path / "x"
    files.check_target(path, overwrite=False)
    path.write_bytes(b"")
    files.check_target(path, overwrite=True)
    with pytest.raises(OptionError, match="exists already; choose another name, or say overwrite"):
        files.check_target(path, overwrite=False)
    with pytest.raises(FileAccessError, match=r"cannot write .*missing"):
        files.check_target(tmp_path / "missing" / "x", overwrite=True)
    for overwrite in (False, True):
        with pytest.raises(OptionError, match="is a folder; expected the name of a file"):
            files.check_target(tmp_path, overwrite=overwrite)


def test_a_document_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"x" * 1000)
    assert files.read_document(path, 1000) == b"x" * 1000
    assert files.read_document(path) == files.read_file(path)
    with pytest.raises(FileAccessError, match="longer than") as caught:
        files.read_document(path, 999)
    assert caught.value.errno == errno.EFBIG
    assert str(path) in str(caught.value)
    with open(path, "r+b") as file:
        file.truncate(1 << 33)  # refused by its size, without reading it
    with pytest.raises(FileAccessError, match="64 MiB"):
        files.read_document(path)


def test_a_document_takes_its_size_in_memory_once(tmp_path: Path) -> None:
    path, size = tmp_path / "document", 8 << 20
    path.write_bytes(bytes(size))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        data = files.read_document(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(data) == size
    assert peak - before < 1.5 * size


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_a_document_if_it_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for written, most in ((b"old,new\n" * 9, 100), (b"y" * 5000, 100)):
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(files.read_document, pipe, most)
            with open(pipe, "wb", buffering=0) as file:
                file.write(written)
        if len(written) <= most:
            assert reading.result() == written
        else:
            with pytest.raises(FileAccessError, match="longer than"):
                reading.result()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no such device here")
def test_what_never_ends_is_refused() -> None:
    with pytest.raises(FileAccessError, match="longer than"):
        files.read_document("/dev/zero", 1 << 20)
    with pytest.raises(FileAccessError, match="it is a device"):
        files.read_file("/dev/zero")
