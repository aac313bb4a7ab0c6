"""`LocalWriter`: a new file, under a temporary name until it is complete."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from recordsmith.stores.checks import busy_error, exists_error, folder_error
from recordsmith.stores.local.locks import LOCK_TRIES, is_at, lock_file
from recordsmith.stores.local.reader import NO_LINKS, opened
from recordsmith.stores.object_writer import ObjectWriter
from recordsmith.support.errors import accessing

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial", re.DOTALL)
_WITHOUT_LINKS = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))
"""What `os.link` reports on file systems without hard links."""


class LocalWriter(ObjectWriter):
    """Writes a hidden file next to its final name, locked until it has that name."""

    def __init__(self, path: Path, key: str, *, overwrite: bool, is_durable: bool) -> None:
        self._file = self._lock = -1
        self._temporary: Path | None = None
        self._path = path
        self._folder_key = key[: len(key) - len(path.name)]
        self._overwrite = overwrite
        self._is_durable = is_durable
        self._size_bytes = 0
        self._temporary, self._file = _create_temporary(path)
        self._lock = os.dup(self._file)  # keeps the lock when the file is closed

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = 0
        with accessing(self._path, "write"):
            while written < len(view):
                written += os.write(self._file, view[written:])
        self._size_bytes += written
        return written

    def tell(self) -> int:
        return self._size_bytes

    def seal(self) -> str:
        assert self._temporary is not None, "it has its final name"
        if self._file != -1:
            with accessing(self._path, "write"):
                if self._is_durable:
                    os.fsync(self._file)
                self._close()
        return self._folder_key + self._temporary.name

    def publish(self) -> None:
        if not self._overwrite:
            if not self.publish_if_absent():
                raise exists_error(self._path)
            return
        self.seal()
        assert self._temporary is not None
        if self.check is not None:
            self.check()
        rename(self._temporary, self._path)
        self._temporary = None

    def publish_if_absent(self) -> bool:
        """Seal the file and give it its final name, unless that is taken."""
        self.seal()
        assert self._temporary is not None
        has_name = _rename_if_absent(self._temporary, self._path)
        if has_name:
            self._temporary = None
        return has_name

    def discard(self) -> None:
        with suppress(OSError):
            self._close()
        if self._temporary is not None:
            with suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None
        if self._lock != -1:
            with suppress(OSError):  # everything is written
                os.close(self._lock)
            self._lock = -1

    def _close(self) -> None:
        """Close the file; some network file systems report only here that the disk is full."""
        descriptor, self._file = self._file, -1
        if descriptor != -1:
            os.close(descriptor)

    def __del__(self) -> None:
        # at the end of the interpreter the functions that it needs may be gone
        if self._temporary is not None or self._file != -1 or self._lock != -1:
            self.discard()


def temporary_name(path: Path) -> Path:
    """Return an unpredictable hidden name next to a path."""
    return path.with_name(f".{path.name}.{os.urandom(8).hex()}.partial")


def is_temporary_name(name: str) -> bool:
    """Return whether a file has a name like those of `temporary_name`."""
    return name[0] == "." and _TEMPORARY.fullmatch(name) is not None


def _create_temporary(path: Path) -> tuple[Path, int]:
    """Create a file next to a path, locked where the file system supports it."""
    for _ in range(LOCK_TRIES):
        temporary = temporary_name(path)
        with accessing(path, "write"):
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if not lock_file(file, shared=False, wait=True) or is_at(temporary, file):
            return temporary, file
        os.close(file)  # `remove_leftovers` removed it before it was locked
    raise busy_error(path.parent)


def rename(old: Path, new: Path) -> None:
    """Give a file another name, and replace a file or link of that name."""
    with accessing(new, "write"):
        try:
            os.replace(old, new)
        except IsADirectoryError:
            raise folder_error(new) from None


def _rename_if_absent(old: Path, new: Path) -> bool:
    """Give a file another name unless it is taken; return whether it was renamed."""
    with accessing(new, "write"):
        try:
            os.link(old, new)  # unlike a rename, this never replaces anything
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _WITHOUT_LINKS:
                raise
        else:
            os.unlink(old)
            return True
        try:  # the process that creates the empty file may replace it
            os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            return False
        os.replace(old, new)
        return True


def remove_leftovers(folder: Path, names: Collection[str] | None) -> None:
    """Remove the temporary files of killed processes that were writing files in a folder.

    A file that another process is still writing is locked and stays, as do files that cannot be
    removed.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            match = _TEMPORARY.fullmatch(name)
            if match and (names is None or match[1] in names):
                _remove_unlocked(folder / name, needs_lock=names is not None)


def _remove_unlocked(path: Path, *, needs_lock: bool) -> None:
    """Remove a file that no process has locked; without locks, only if they are not needed."""
    with suppress(OSError), opened(path, os.O_RDWR | NO_LINKS) as descriptor:
        is_locked = lock_file(descriptor, shared=False)
        if (is_locked or not needs_lock) and is_at(path, descriptor):
            os.unlink(path)
