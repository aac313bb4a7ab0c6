"""`LocalStore`: the files below a folder."""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

from recordsmith.stores.checks import check_key, check_range, check_version, exists_error
from recordsmith.stores.local.locks import link_error, lock_file, locked
from recordsmith.stores.local.reader import NO_LINKS, LocalReader, open_regular, open_without_links
from recordsmith.stores.local.writer import LocalWriter, is_temporary_name, remove_leftovers, rename
from recordsmith.stores.object_writer import Data, pieces_of
from recordsmith.stores.store import EntryKind, FolderEntry, ObjectInfo, Store
from recordsmith.support.errors import (
    FileAccessError,
    MissingFileError,
    OptionError,
    access_error,
    accessing,
)

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class LocalStore(Store):
    """The files below a folder, which must exist before something is written.

    Folders are not objects: they are created when needed, and stay. Nothing is written or deleted
    through symbolic links below the root, and no links to folders are listed.

    Args:
        follows_links: whether links below the root are followed when reading. recordsmith never
            writes links, so pass False to read only what it wrote.
    """

    root: str | os.PathLike[str]
    follows_links: bool = True
    _head: str = field(init=False, repr=False, compare=False)  # joining takes a microsecond
    can_rename = True

    def __post_init__(self) -> None:
        root = os.fspath(self.root)
        root = "" if root == os.curdir else root  # as users write paths
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "_head", os.path.join(root, ""))

    def name_of(self, key: str) -> str:
        return self._head + key if key else os.fspath(self.root) or os.curdir

    def identity(self, key: str) -> str:
        return os.path.realpath(self.name_of(key))

    def absolute(self, key: str) -> tuple[Store, str]:
        path = os.path.abspath(self.name_of(key))
        anchor = os.path.splitdrive(path)[0] + os.sep
        return replace(self, root=anchor), path[len(anchor) :].replace(os.sep, "/")

    def without_links(self) -> LocalStore:
        return replace(self, follows_links=False)

    def _path(self, key: str) -> str:
        path = self._head + _checked(key)
        if not self.follows_links and self._linked_folder(key) is not None:
            raise FileAccessError(errno.EINVAL, "part of its path is a symbolic link", path)
        return path

    def _target(self, key: str) -> Path:
        """The path of a key for writing; makes its folders."""
        path = Path(self.root, _checked(key))
        if "/" in key:
            self._check_folders(key)
            with accessing(path, "write"):
                if os.path.isdir(self.root or os.curdir):
                    os.makedirs(path.parent, exist_ok=True)
        return path

    def _check_folders(self, key: str) -> None:
        """Raise if a folder between the root and the object is a link."""
        link = self._linked_folder(key)
        if link is not None:
            raise link_error(link)

    def _linked_folder(self, key: str) -> str | None:
        """The first folder between the root and the object that is a link."""
        path = os.fspath(self.root)
        for part in key.split("/")[:-1]:
            path = os.path.join(path, part)
            if os.path.islink(path):
                return path
        return None

    def info(self, key: str) -> ObjectInfo:
        path = self._path(key)
        with accessing(path):
            status = os.stat(path, follow_symlinks=self.follows_links)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
        return ObjectInfo(key, status.st_size, _version(status))

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        check_range(start, stop)
        path = self._path(key)
        open_file = os.open if self.follows_links else open_without_links
        try:
            descriptor = open_file(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                if version is not None:
                    check_version(path, _version(os.fstat(descriptor)), version)
                return _read(descriptor, start, stop)
            finally:
                os.close(descriptor)
        except FileAccessError:
            raise
        except OSError as error:  # as `accessing`, which takes a microsecond
            raise access_error(error, path) from error

    def open_read(self, key: str, info: ObjectInfo | None = None) -> LocalReader:  # noqa: ARG002
        return LocalReader(self._path(key), follows_links=self.follows_links)

    def version_number(self, version: str) -> int:
        # the time only: some network file systems number their files at each mount
        return int(version.partition("-")[2].rpartition("-")[0], 16) & (2**63 - 1)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        entries = [  # plain tuples, which the garbage collector passes over
            (name, kind, 0, 0, is_link, "")
            if status is None
            else (name, kind, status.st_size, status.st_mtime_ns, False, "")
            for name, kind, status, is_link in self._scan(key)
        ]
        entries.sort(key=itemgetter(0))
        return map(FolderEntry._make, entries)

    def _scan(self, key: str) -> Iterator[tuple[str, EntryKind, os.stat_result | None, bool]]:
        """Yield name and kind of what is in a folder, the status of a file, and if it is a link."""
        follows = self.follows_links
        path = self._path(key) if key else self.root or os.curdir
        with accessing(path), os.scandir(path) as entries:
            for entry in entries:
                if is_temporary_name(entry.name):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=follows):
                        yield entry.name, "folder", None, entry.is_symlink()
                        continue
                    if entry.is_file(follow_symlinks=follows):
                        yield entry.name, "object", entry.stat(follow_symlinks=follows), False
                        continue
                except OSError:  # deleted meanwhile, or a cyclic link
                    pass
                is_broken = entry.is_symlink() and not (follows and os.path.exists(entry))
                yield entry.name, "broken" if is_broken else "special", None, is_broken

    def glob(self, pattern: str) -> Sequence[tuple[Store, str]]:
        names = sorted(glob.glob(self.name_of(pattern), recursive=True))
        parts = map(os.path.split, names)
        return [(replace(self, root=folder), name) for folder, name in parts]

    def is_folder(self, key: str) -> bool:
        return os.path.isdir(self._path(key) if key else self.root or os.curdir)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        folders = [prefix.rpartition("/")[0]]
        while folders:
            folder = folders.pop()
            head = f"{folder}/" if folder else ""
            try:
                for name, kind, status, is_link in self._scan(folder):
                    if not f"{head}{name}".startswith(prefix):
                        continue
                    if kind == "folder" and not is_link:
                        folders.append(head + name)
                    elif status is not None:
                        yield ObjectInfo(head + name, status.st_size, _version(status))
            except FileAccessError as error:  # deleted meanwhile
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise

    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> LocalWriter:
        path = self._target(key)
        return LocalWriter(path, key, overwrite=overwrite, is_durable=is_durable)

    def put_if_absent(self, key: str, data: Data) -> bool:
        if os.path.lexists(self._target(key)):
            return False
        writer = self.open_write(key)
        try:
            for piece in pieces_of(data):
                writer.write(piece)
            return writer.publish_if_absent()
        finally:
            writer.discard()

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        path = self._target(key)
        with accessing(path, "write"):
            try:
                flags = os.O_RDWR if self.follows_links else os.O_RDWR | NO_LINKS
                descriptor = open_regular(path, flags)
            except FileNotFoundError:
                return False
            try:
                # the lock of a version is the file itself: a writer that waited finds another one
                if not lock_file(descriptor, shared=False, wait=True):
                    raise OSError(errno.ENOLCK, "its file system does not support locks")
                matches = self.exists(key) and self.info(key).version == version
                if matches:
                    self.put(key, data)
                return matches
            finally:
                os.close(descriptor)

    def delete(self, key: str) -> None:
        self._check_folders(_checked(key))
        path = os.path.join(self.root, key)
        with accessing(path, "remove"), suppress(FileNotFoundError):
            os.unlink(path)

    def check_target(self, key: str, *, overwrite: bool) -> None:
        path = self.name_of(_checked(key))
        if os.path.isdir(path):
            raise OptionError(f"{path} is a folder", value=path, expected="the name of a file")
        if os.path.lexists(path) and not overwrite:
            raise exists_error(path)
        with accessing(path, "write"):
            os.stat(self.root or os.curdir)

    def path_of_folder(self, key: str) -> Path:
        """Return the path of a folder for writing."""
        if key:
            self._check_folders(f"{_checked(key)}/")
        return Path(self.name_of(key))

    # -- what only file systems have ---------------------------------------------------------------

    def move(self, old: str, new: str) -> None:
        for key in (old, new):
            self._check_folders(_checked(key))
        paths = Path(self.root, old), Path(self.root, new)
        try:
            rename(*paths)
        except MissingFileError:  # rarely: of many files, all but the first have their folder
            rename(paths[0], self._target(new))

    def make_folder(self, key: str = "") -> None:
        path = self.name_of(key)
        with accessing(path, "make folder"):
            os.makedirs(path, exist_ok=True)

    def remove_empty_folder(self, key: str = "") -> None:
        with suppress(OSError):
            os.rmdir(self.name_of(key))

    def sync(self, key: str = "") -> None:
        path = self.name_of(key)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:  # some systems do not support it
            if error.errno in _WRITE_FAILURES:
                raise access_error(error, path, "write") from error

    def locked(self, key: str, *, is_shared: bool = False) -> AbstractContextManager[bool]:
        path = Path(self.name_of(key))
        return locked(path, path.parent, is_shared=is_shared)

    def remove_leftovers(self, key: str, names: Collection[str] | None = None) -> None:
        if self._linked_folder(f"{key}/") is None:
            remove_leftovers(Path(self.name_of(key)), names)


_WRITE_FAILURES = frozenset((errno.EIO, errno.ENOSPC, errno.EDQUOT))


def _version(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _read(descriptor: int, start: int, stop: int | None) -> bytes:
    """Read some of a file or pipe with as few system calls as possible."""
    status = os.fstat(descriptor)
    if stop is None and stat.S_ISCHR(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, not a file")
    if start:
        if not stat.S_ISREG(status.st_mode):
            return _read(descriptor, 0, stop)[start:]
        os.lseek(descriptor, start, os.SEEK_SET)
    left = max(0, status.st_size - start)
    most = left + 1 if stop is None else min(stop - start, left + 1)
    data = os.read(descriptor, most)
    if len(data) == left or (stop is not None and len(data) == stop - start):
        return data
    pieces, count = [data], len(data)  # longer than 2 GiB, growing, or not a regular file
    while pieces[-1]:
        most = _PIECE_BYTES if stop is None else min(_PIECE_BYTES, stop - start - count)
        pieces.append(os.read(descriptor, most))
        count += len(pieces[-1])
    return b"".join(pieces)


def _checked(key: str) -> str:
    """Return a key that is a path in its folder, on Windows as well."""
    if os.sep != "/" and not {os.sep, ":"}.isdisjoint(key):
        raise OptionError(
            f"{key!r:.200} is not a file name on this system",
            value=key,
            expected=f"a name without {os.sep} and :",
        )
    return check_key(key)
