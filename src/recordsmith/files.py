"""Open, create, publish, lock and remove local files; convert OSError to FileAccessError.

All code reads and writes paths inside `accessing` or through the functions here. None of them
writes through a symbolic link, so that a prepared folder cannot redirect a job's files.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

from recordsmith.errors import (
    FileAccessError,
    ForbiddenFileError,
    MissingFileError,
    OptionError,
    option,
)

PathLike: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), from any thread, one call at a time."""

_MOST_COMPARED = 1000
INTERNAL_FOLDER = ".recordsmith"
"""Next to the shards: indexes and unfinished shards. Globs skip it."""

EXPORT_NOTE = ".export.json"
"""In the folder of an export: lists its files."""

LOCK_NAME = "lock"
"""In a hidden folder: locked by the running job."""

_LOCK_TRIES = 100

INTERNAL_NAMES = frozenset((INTERNAL_FOLDER, EXPORT_NOTE))

_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "the disk quota is exceeded",
    errno.EISDIR: "it is a folder, not a file",
    errno.ENOTDIR: "part of the path is a file, not a folder",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on this machine",
    errno.EIO: "the device reported a read or write error",
}
_WITHOUT_LINKS = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))
"""What `os.link` reports on file systems without hard links."""

_REMEDIES = {
    errno.ENOSPC: "Free some space, or choose another disk.",
    errno.EDQUOT: "Free some space, or choose another disk.",
    errno.EMFILE: "Raise the limit with `ulimit -n`.",
    errno.ENFILE: "Close some files, or try again later.",
    errno.EIO: "Check the disk: it may be failing.",
}


@contextmanager
def accessing(path: object, verb: str = "read") -> Iterator[None]:
    """Convert an OSError to a FileAccessError with the path, the operation and the reason."""
    try:
        yield
    except FileAccessError:
        raise
    except OSError as error:
        raise access_error(error, path, verb) from error


def access_error(error: OSError, path: object, verb: str = "read") -> FileAccessError:
    """Return the FileAccessError for an OSError about a path."""
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    kind = FileAccessError
    if isinstance(error, FileNotFoundError):
        kind = MissingFileError
    elif isinstance(error, PermissionError):
        kind = ForbiddenFileError
    name = str(path)
    remedy = _REMEDIES.get(error.errno or 0, "")
    return kind(error.errno, reason, name, operation=verb, remedy=remedy)


def as_path(path: object) -> Path:
    """Convert a caller's argument to a Path.

    Raises:
        OptionError: it is not a path, is empty, or is a URL.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise OptionError(f"{path!r:.80} is a {type(path).__name__}", value=path, expected="a path")
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise OptionError(f"{name!r} is not a valid path", value=name)
    scheme = name.partition("://")[0]
    if scheme != name and scheme.isalnum():
        raise OptionError(f"{name} is a URL", value=name, expected="a local path")
    return path if isinstance(path, Path) else Path(path)


class _LocalFile(io.FileIO):
    """An unbuffered file whose `close` raises FileAccessError with the path.

    Network file systems report a full disk only when a file is closed.
    """

    def __init__(
        self,
        path: PathLike,
        mode: str,
        *,
        opener: Callable[[str, int], int] | None = None,
        named: PathLike | None = None,
    ) -> None:
        super().__init__(os.fspath(path), mode, opener=opener)
        self._named = path if named is None else named
        self._verb = "read" if mode == "rb" else "write"

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            raise access_error(error, self._named, self._verb) from error


def open_regular_descriptor(path: str, flags: int) -> int:
    """Open a regular file and return its descriptor.

    Raises:
        OSError: it is not a regular file; or is a symbolic link, with O_NOFOLLOW.
    """
    if flags & os.O_NOFOLLOW and os.path.islink(path):
        raise OSError(errno.EINVAL, "it is a symbolic link, not a regular file")
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def list_folder(path: PathLike) -> list[os.DirEntry[str]]:
    """List the entries of a folder, sorted by name."""
    with accessing(path), os.scandir(path) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def make_folder(path: PathLike) -> None:
    """Make a folder and its parents, if they do not exist."""
    with accessing(path, "make folder"):
        os.makedirs(path, exist_ok=True)


def make_hidden_folder(path: Path) -> None:
    """Make a hidden folder in which jobs create and remove files, if it does not exist.

    Raises:
        OptionError: it is a symbolic link, so that a job might remove files elsewhere.
        FileAccessError: it cannot be made.
    """
    if path.is_symlink():
        raise OptionError(
            f"{path} is a symbolic link, but recordsmith writes and removes files in it",
            remedy="Remove the link, or choose another folder.",
        )
    make_folder(path)


def temporary_name(path: Path) -> Path:
    """Return an unpredictable hidden name next to a path."""
    return path.with_name(f".{path.name}.{os.urandom(8).hex()}.partial")


_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial", re.DOTALL)


def is_temporary_name(name: str) -> bool:
    """Return whether a file has a name like those of `temporary_name`."""
    return _TEMPORARY.fullmatch(name) is not None


def create(path: PathLike, named: PathLike | None = None) -> BinaryIO:
    """Create a file and open it for writing, unbuffered.

    Args:
        named: the path to show in messages; None means `path`.

    Raises:
        FileAccessError: the system refuses, or the name is taken, even by a broken link.
    """
    with accessing(path if named is None else named, "write"):
        return cast(BinaryIO, _LocalFile(path, "xb", named=named))


def create_temporary(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file next to a path, locked where the file system supports it."""
    for _ in range(_LOCK_TRIES):
        temporary = temporary_name(path)
        file = create(temporary, path)
        if not lock_file(file.fileno(), shared=False, wait=True) or _is_at(
            temporary, file.fileno()
        ):
            return temporary, file
        file.close()  # `remove_leftovers` removed it before it was locked
    raise busy_error(path.parent)


def remove_leftovers(folder: PathLike, names: Collection[str] | None) -> None:
    """Remove the temporary files of killed processes that were writing files in a folder.

    A file that another process is still writing is locked and stays, as do files that cannot be
    removed.

    Args:
        names: of the files that were written; None for all, in a folder in which no other process
            writes.
    """
    with suppress(OSError):
        for entry in list_folder(folder):
            match = _TEMPORARY.fullmatch(entry.name)
            if match and (names is None or match[1] in names):
                _remove_unlocked(entry.path, needs_lock=names is not None)


def _remove_unlocked(path: str, *, needs_lock: bool) -> None:
    """Remove a file that no process has locked; without locks, only if they are not needed."""
    with suppress(OSError):
        descriptor = open_regular_descriptor(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            is_locked = lock_file(descriptor, shared=False)
            if (is_locked or not needs_lock) and _is_at(path, descriptor):
                os.unlink(path)
        finally:
            os.close(descriptor)


def exists_error(path: object) -> OptionError:
    """Return the error for an output that exists and must not be replaced."""
    return OptionError(
        f"{path} already exists",
        option="overwrite",
        remedy=f"Choose another name, or pass {option('overwrite', True)}.",
    )


def publish(temporary: PathLike, path: PathLike, *, overwrite: bool = True) -> None:
    """Rename a finished file to its final name. A link of that name is replaced, not followed.

    Raises:
        OptionError: the path is a folder, or the file exists and `overwrite` is False.
    """
    if not overwrite:
        if not publish_if_absent(temporary, path):
            raise exists_error(path)
        return
    with accessing(path, "write"):
        try:
            os.replace(temporary, path)
        except IsADirectoryError:
            raise folder_error(path) from None


def publish_if_absent(temporary: PathLike, path: PathLike) -> bool:
    """Rename a finished file unless its final name is taken; return whether it was renamed."""
    with accessing(path, "write"):
        try:
            os.link(temporary, path)  # unlike a rename, this never replaces anything
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
        else:
            os.unlink(temporary)
            return True
        try:  # who creates the empty file may replace it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        os.replace(temporary, path)
        return True


@contextmanager
def holding_signals() -> Iterator[None]:
    """Hold Ctrl-C, and SIGTERM where it is handled, until the block ends: for short steps.

    Does nothing in other threads than the main one, where Python handles no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: dict[int, None] = {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda held, _: received.update({held: None}))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for held in received:
            signal.raise_signal(held)


def folder_error(path: object) -> OptionError:
    """Return the error for a folder where a job must write a file."""
    return OptionError(
        f"{path} is a folder, but the job writes a file of this name",
        remedy="Move or rename the folder.",
    )


@contextmanager
def locked(
    folder: PathLike, named: PathLike | None = None, *, is_shared: bool = False
) -> Iterator[bool]:
    """Lock a hidden folder, so that no other process does the same job there.

    Makes the folder, and removes it at the end if it is empty. The lock ends with the process; a
    killed process may leave the lock file, which is harmless.

    Args:
        folder: the hidden folder.
        named: the path to show in messages; None means `folder`.
        is_shared: take a shared lock, which several processes can hold.

    Yields:
        Whether the folder is locked: False if the file system does not support locks.

    Raises:
        FileAccessError: another process holds the lock, or the lock file cannot be written.
        OptionError: the lock file is a link or a folder.
    """
    path = Path(folder) / LOCK_NAME
    descriptor, is_locked = _hold(path, folder if named is None else named, shared=is_shared)
    try:
        yield is_locked
    finally:
        if not is_shared:  # still locked: a waiting process sees that it is gone
            with suppress(OSError):
                os.unlink(path)
                os.rmdir(folder)
        with suppress(OSError):  # nothing was written
            os.close(descriptor)


def _hold(path: Path, named: PathLike, *, shared: bool) -> tuple[int, bool]:
    """Open and lock a file, again if another process removes it in between."""
    for tries_left in reversed(range(_LOCK_TRIES)):
        try:
            make_hidden_folder(path.parent)
            with accessing(path, "write"):
                descriptor = open_regular_descriptor(
                    str(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
                )
        except FileAccessError as error:
            # another process ended there and removes the folder, also between mkdir and isdir
            if error.errno in (errno.ENOENT, errno.EEXIST) and tries_left:
                continue
            if error.errno not in (errno.ELOOP, errno.EISDIR, errno.EINVAL, errno.ENXIO):
                raise
            raise OptionError(
                f"{path} is not a regular file, so it cannot be locked", remedy="Remove it."
            ) from None
        try:
            is_locked = lock_file(descriptor, shared=shared)
            if not is_locked or _is_at(path, descriptor):
                return descriptor, is_locked
        except BlockingIOError:
            os.close(descriptor)
            break
        os.close(descriptor)  # it locks a file that was removed
    raise busy_error(named)


def busy_error(folder: object) -> FileAccessError:
    """Return the error for a folder that another process has locked."""
    return FileAccessError(
        errno.EBUSY, "another process is writing to it", str(folder), operation="write"
    )


def lock_file(descriptor: int, *, shared: bool, wait: bool = False) -> bool:
    """Lock an open file; return False if the file system does not support locks.

    Raises:
        BlockingIOError: another process holds it.
    """
    if fcntl is None:
        return False
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _is_at(path: PathLike, descriptor: int) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def no_lock_notice(folder: object) -> str:
    """Return the notice for a job that runs without a lock."""
    return (
        f"{folder} could not be locked: its file system does not support locks. Do not run a "
        "second job in it at the same time"
    )


def remove(path: PathLike) -> None:
    """Remove a file or a link, if it exists."""
    with accessing(path, "remove"), suppress(FileNotFoundError):
        os.unlink(path)


def remove_tree(path: PathLike) -> None:
    """Remove a file, a folder with its contents, or a link but not its target."""
    with accessing(path, "remove"), suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def sync_folder(path: PathLike) -> None:
    """Make renames in a folder survive a power cut, where the system supports it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def cache_folder() -> Path:
    """Return recordsmith's folder in the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "recordsmith"
