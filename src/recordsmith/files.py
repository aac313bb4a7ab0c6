"""Local files: list, open, replace atomically. What the operating system refuses becomes words.

The only module that touches paths for reading or writing data. Nothing here knows records.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from recordsmith.errors import FileAccessError

PathLike: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), from any thread, one call at a time."""

INTERNAL_FOLDER = ".recordsmith"
"""Beside the shards: indexes, and shards that are not finished yet. Globs pass it by."""

_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "permission was denied",
    errno.EPERM: "permission was denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the disk; free some, or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some, or choose another place",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ELOOP: "its symbolic links lead in a circle",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EMFILE: "too many files are open; raise the limit with `ulimit -n`",
    errno.EIO: "the device reported a read or write error; the disk may be failing",
}


@contextmanager
def accessing(path: PathLike, verb: str = "read") -> Iterator[None]:
    """Turn an OSError into a FileAccessError that names the path and says what happened."""
    try:
        yield
    except FileAccessError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        raise FileAccessError(error.errno, f"cannot {verb} {os.fspath(path)}: {reason}") from error


def open_file(path: PathLike) -> BinaryIO:
    """Open a file for reading, unbuffered: the readers above have buffers of their own.

    Raises:
        FileAccessError: it is missing, forbidden, or no file.
    """
    with accessing(path):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "", os.fspath(path))
        return open(path, "rb", buffering=0)


def read_head(path: PathLike, size: int) -> bytes:
    """The first bytes of a file, fewer if it has no more."""
    with open_file(path) as file, accessing(path):
        return file.read(size)


def size_of(path: PathLike) -> int:
    """The size of a file in bytes."""
    with accessing(path):
        return os.stat(path).st_size


def list_folder(path: PathLike) -> list[os.DirEntry[str]]:
    """The entries of a folder, sorted by name."""
    with accessing(path), os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def make_folder(path: PathLike) -> None:
    """Make a folder and those above it; one that is there already is fine."""
    with accessing(path, "make folder"):
        os.makedirs(path, exist_ok=True)


def write_atomically(path: PathLike, data: bytes) -> None:
    """Write a small file: whole under its name, or not at all.

    Safe when several processes write the same file at once: one of them wins.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")
    with accessing(path, "write"):
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def publish(temporary: PathLike, path: PathLike) -> None:
    """Give a finished file its final name."""
    with accessing(path, "write"):
        os.replace(temporary, path)


@contextmanager
def exclusive(path: PathLike) -> Iterator[None]:
    """Hold a lock file, so that no other process does the same job in the same folder.

    The lock ends with the process, however that ends. Where the system has no such locks, nothing
    is locked.

    Raises:
        FileAccessError: another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with accessing(path, "write"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileAccessError(
                errno.EBUSY,
                f"cannot write {Path(path).parent.parent}: another process is packing into it",
            ) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


def remove(path: PathLike) -> None:
    """Remove a file; one that is not there is fine."""
    with accessing(path, "remove"), suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(path: PathLike) -> None:
    """Make renames in a folder last through a power cut, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cache_folder() -> Path:
    """Where files belong that could be made again: the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "recordsmith"
