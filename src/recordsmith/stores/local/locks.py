"""Locks of files and folders against other processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

from recordsmith.stores.checks import busy_error
from recordsmith.stores.local.reader import NO_LINKS, open_regular
from recordsmith.support.errors import FileAccessError, OptionError, accessing

LOCK_NAME = "lock"
"""In a hidden folder: locked by the running job."""

LOCK_TRIES = 100
"""How often a file is opened again that another process removes before it is locked."""


@contextmanager
def locked(folder: Path, named: object, *, is_shared: bool = False) -> Iterator[bool]:
    """Lock a hidden folder, so that no other process does the same job there.

    Makes the folder, and removes it at the end if it is empty. The lock ends with the process; a
    killed process may leave the lock file, which is harmless.

    Yields:
        Whether the folder is locked: False if the file system does not support locks.
    """
    path = folder / LOCK_NAME
    descriptor, is_locked = _hold(path, named, shared=is_shared)
    try:
        yield is_locked
    finally:
        if not is_shared:  # still locked: a waiting process sees that it is gone
            with suppress(OSError):
                os.unlink(path)
                os.rmdir(folder)
        with suppress(OSError):  # nothing was written
            os.close(descriptor)


def _hold(path: Path, named: object, *, shared: bool) -> tuple[int, bool]:
    """Open and lock a file, again if another process removes it in between."""
    for tries_left in reversed(range(LOCK_TRIES)):
        try:
            if path.parent.is_symlink():
                raise link_error(path.parent)
            with accessing(path.parent, "make folder"):
                path.parent.mkdir(parents=True, exist_ok=True)
            with accessing(path, "write"):
                descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | NO_LINKS)
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
            if not is_locked or is_at(path, descriptor):
                return descriptor, is_locked
        except BlockingIOError:
            os.close(descriptor)
            break
        os.close(descriptor)  # it locks a file that was removed
    raise busy_error(named)


def lock_file(descriptor: int, *, shared: bool, wait: bool = False) -> bool:
    """Lock an open file; return False if the file system does not support locks."""
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


def is_at(path: Path, descriptor: int) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def link_error(path: object) -> OptionError:
    """Return the error for a link to a folder, through which a job might remove other files."""
    return OptionError(
        f"{path} is a symbolic link, but recordsmith writes and removes files in it",
        remedy="Remove the link, or choose another folder.",
    )
