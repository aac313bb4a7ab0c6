"""Local files: open, list, replace atomically. What the operating system refuses becomes words.

Whoever reads or writes a path does it inside `accessing`, or through the functions here. Nothing
here knows records.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from recordsmith.errors import (
    FileAccessError,
    ForbiddenFileError,
    MissingFileError,
    OptionError,
)

PathLike: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), from any thread, one call at a time."""

INTERNAL_FOLDER = ".recordsmith"
"""Beside the shards: indexes, and shards that are not finished yet. Globs pass it by."""

EXPORT_NOTE = ".export.json"
"""In the folder of an export: what it consists of."""

OWN_NAMES = frozenset((INTERNAL_FOLDER, EXPORT_NOTE))

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
        raise access_error(error, path, verb) from error


def access_error(error: OSError, path: PathLike, verb: str = "read") -> FileAccessError:
    """What the operating system said about a path, in words."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    kind = FileAccessError
    if isinstance(error, FileNotFoundError):
        kind = MissingFileError
    elif isinstance(error, PermissionError):
        kind = ForbiddenFileError
    name = os.fspath(path)
    return kind(error.errno, f"cannot {verb} {name}: {reason}", name)


def as_path(path: object) -> Path:
    """A path that a caller gave.

    Raises:
        OptionError: it is none, is empty, or is a URL.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"{path!r} is a {type(path).__name__}; expected a path")
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise OptionError(f"{name!r} cannot be a path")
    scheme = name.partition("://")[0]
    if scheme != name and scheme.isalnum():
        raise OptionError(f"{name} is a URL; this version reads and writes local paths only")
    return Path(path)


def open_file(path: PathLike) -> BinaryIO:
    """Open a file for reading, unbuffered: the readers above have buffers of their own.

    Raises:
        FileAccessError: it is missing, forbidden, or no file.
    """
    with accessing(path):
        return open(path, "rb", buffering=0)


def open_regular(path: PathLike) -> BinaryIO:
    """Open a file for reading, if it is a regular one: a pipe would be waited for.

    Raises:
        FileAccessError: it is missing, forbidden, or no regular file.
    """
    with accessing(path):
        return open(path, "rb", opener=_open_regular)


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


def read_file(path: PathLike) -> bytes:
    """All bytes of a file, with as few system calls as that takes.

    Raises:
        FileAccessError: it cannot be read, or is a device, which may have no end.
    """
    with accessing(path):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(descriptor)
            if stat.S_ISCHR(status.st_mode):
                raise OSError(errno.EINVAL, "it is a device; expected a file")
            size = status.st_size
            data = os.read(descriptor, size + 1)
            if len(data) == size:
                return data
            pieces = [data]  # it is longer than 2 GiB, or grows, or is no regular file
            while pieces[-1]:
                pieces.append(os.read(descriptor, 1 << 24))
            return b"".join(pieces)
        finally:
            os.close(descriptor)


DOCUMENT_BYTES = 1 << 26
"""So long may a small document be that people write: tables of labels, schemas, lists of names."""

NOTE_BYTES = 1 << 28
"""So long may be what recordsmith writes: a manifest of a million shards has half of it."""


def read_document(path: PathLike, most_bytes: int | None = None) -> bytes:
    """All bytes of a small document; a pipe will do, one that never ends will not.

    Args:
        most_bytes: None means DOCUMENT_BYTES.

    Raises:
        FileAccessError: it cannot be read, or is longer: its errno is EFBIG then.
    """
    most = DOCUMENT_BYTES if most_bytes is None else most_bytes
    data: bytes | bytearray = b""
    with open_file(path) as file, accessing(path):
        size = os.fstat(file.fileno()).st_size
        if size <= most:
            data = file.read(size + 1)
            if len(data) != size:  # it grows, or is no regular file
                data = bytearray(data)
                while len(data) <= most and (piece := file.read(1 << 20)):
                    data += piece
    if max(size, len(data)) > most:
        name = os.fspath(path)
        raise FileAccessError(
            errno.EFBIG,
            f"cannot read {name}: it is longer than the {most / (1 << 20):,.3g} MiB that such a "
            "file may have; is it the right one?",
            name,
        )
    return bytes(data)


def read_head(path: PathLike, size: int) -> bytes:
    """The first bytes of a file, fewer if it has no more."""
    with open_file(path) as file, accessing(path):
        return file.read(size)


def size_of(path: PathLike) -> int:
    """The size of a file in bytes."""
    with accessing(path):
        return os.stat(path).st_size


def is_folder(path: PathLike) -> bool:
    """Whether a path leads to a folder, not to a file.

    Raises:
        FileAccessError: there is neither.
    """
    with accessing(path):
        return stat.S_ISDIR(os.stat(path).st_mode)


def list_folder(path: PathLike) -> list[os.DirEntry[str]]:
    """The entries of a folder, sorted by name."""
    with accessing(path), os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def is_special(entry: os.DirEntry[str]) -> bool:
    """Whether it is a pipe, a socket or a device: reading one in a folder may never end."""
    try:
        return not (entry.is_file() or entry.is_dir()) and os.path.exists(entry)
    except OSError:
        return False


def make_folder(path: PathLike) -> None:
    """Make a folder and those above it; one that is there already is fine."""
    with accessing(path, "make folder"):
        os.makedirs(path, exist_ok=True)


def make_internal_folder(folder: Path) -> Path:
    """The hidden folder of a dataset, made if it is not there.

    Raises:
        OptionError: it is a link, and what is written and removed in it may be anybody's.
    """
    internal = folder / INTERNAL_FOLDER
    if internal.is_symlink():
        raise OptionError(
            f"{internal} is a link, but files are written and removed there; remove the link, or "
            "choose another folder"
        )
    make_folder(internal)
    return internal


def temporary_name(path: Path) -> Path:
    """A hidden name beside a path that nobody else uses."""
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")


def write_synced(path: PathLike, data: bytes) -> None:
    """Write a small file and have it on the disk before going on."""
    with accessing(path, "write"):
        _write_synced(path, data)


def _write_synced(path: PathLike, data: bytes | Iterable[bytes | memoryview]) -> None:
    with open(path, "wb") as file:
        file.writelines((data,) if isinstance(data, bytes) else data)
        file.flush()
        os.fsync(file.fileno())


def write_atomically(
    path: PathLike, data: bytes | Iterable[bytes | memoryview], *, overwrite: bool = True
) -> None:
    """Write a file, of bytes or of pieces end to end: whole under its name, or not at all.

    Safe when several processes write the same file at once: one of them wins.

    Raises:
        OptionError: without `overwrite`, if there is a file of that name.
    """
    temporary = temporary_name(Path(path))
    try:
        with accessing(path, "write"):
            _write_synced(temporary, data)
        publish(temporary, path, overwrite=overwrite)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def check_target(path: PathLike, *, overwrite: bool) -> None:
    """Before long work for a file: may it be written there?

    Raises:
        OptionError: there is one, which is not to be replaced, or a folder.
        FileAccessError: there is no such folder.
    """
    file = as_path(path)
    if file.is_dir():
        raise OptionError(f"{file} is a folder; expected the name of a file")
    if os.path.lexists(file) and not overwrite:
        raise _exists(file)
    with accessing(file, "write"):
        os.stat(file.parent)


def _exists(path: PathLike) -> OptionError:
    return OptionError(
        f"{os.fspath(path)} exists already; choose another name, or say overwrite=True"
    )


def publish(temporary: PathLike, path: PathLike, *, overwrite: bool = True) -> None:
    """Give a finished file its final name.

    Raises:
        OptionError: without `overwrite`, if there is a file of that name.
    """
    with accessing(path, "write"):
        if overwrite:
            os.replace(temporary, path)
            return
        try:
            os.link(temporary, path)  # unlike a rename, this never replaces anything
        except FileExistsError:
            raise _exists(path) from None
        except OSError:  # a file system without links
            os.replace(temporary, path)
            return
        os.unlink(temporary)


@contextmanager
def exclusive(folder: PathLike, *, among_equals: bool = False) -> Iterator[None]:
    """Hold a lock on a folder, so that no other process does the same job in it.

    With `among_equals` several may hold it who all say so; whoever does not waits for none of them.

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
    kind = fcntl.LOCK_SH if among_equals else fcntl.LOCK_EX
    with accessing(folder):
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            name = os.fspath(folder)
            raise FileAccessError(
                errno.EBUSY, f"cannot write {name}: another process is writing into it", name
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
