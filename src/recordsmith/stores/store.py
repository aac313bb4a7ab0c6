"""`Store`: the operations of a place for objects."""

from __future__ import annotations

import errno
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, TypeAlias

from recordsmith.stores.checks import exists_error
from recordsmith.stores.object_reader import ObjectReader, RangeReader
from recordsmith.stores.object_writer import Data, ObjectWriter, pieces_of
from recordsmith.stores.parallel_reads import Range, read_in_parallel
from recordsmith.support.errors import FileAccessError, MissingFileError, OptionError

NO_OBJECT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""The errno of errors for objects that do not exist."""

_PIECE_BYTES = 1 << 22


class ObjectInfo(NamedTuple):
    """What a store knows about an object without reading it.

    version: changes whenever the object is written again.
    """

    key: str
    size_bytes: int
    version: str


EntryKind: TypeAlias = Literal["object", "folder", "broken", "special"]


class FolderEntry(NamedTuple):
    """What lies directly below a key.

    kind: an object, a folder, a broken link, or a special file: a pipe, a socket or a device.
    size_bytes, version_number: of an object; see `Store.version_number`.
    is_link: of a folder: whether this is a link to it.
    version: of an object, if the listing of its store has versions; otherwise empty.
    """

    name: str
    kind: EntryKind
    size_bytes: int = 0
    version_number: int = 0
    is_link: bool = False
    version: str = ""


class Store(ABC):
    """Objects by key. Thread-safe.

    A key has parts separated by `/`, none of them empty, `.` or `..`. Objects appear whole or not
    at all, and one call of `read` returns bytes of one version. `location.STORES` has the classes
    by the schemes of their URLs.
    """

    is_writable = True
    can_rename = False
    """Whether finished objects can wait under another name, until all of them are there."""

    can_list = True
    """Whether one request lists many objects with their sizes: no web server does."""

    concurrency = 1
    """How many reads at the same time are faster than one after another: 1 unless each read is a
    request over a network."""

    keeps_reads = False
    """Whether a local disk keeps what is read."""

    @classmethod
    def from_url(cls, url: str, passed: Any) -> tuple[Store, str]:
        """Return the store of a URL, and the key in it; `passed`: `PassedOptions` for the store."""
        raise NotImplementedError  # of stores in the table

    @property
    def is_remote(self) -> bool:
        """Whether reads are requests over a network, which callers count and save."""
        return self.concurrency > 1

    @abstractmethod
    def name_of(self, key: str) -> str:
        """Return the name of an object for messages: a path or URL."""

    def identity(self, key: str) -> str:
        """Return a text that is the same for all names of an object or folder."""
        return self.name_of(key)

    def absolute(self, key: str) -> tuple[Store, str]:
        """Return the same object in the store that contains all places of its kind."""
        return self, key

    def without_links(self) -> Store:
        """Return this store without its links, which somebody else may have prepared."""
        return self

    # -- reading -----------------------------------------------------------------------------------

    @abstractmethod
    def info(self, key: str) -> ObjectInfo:
        """Return size and version of an object.

        Raises:
            FileAccessError: it does not exist or cannot be read.
        """

    def size(self, key: str) -> int:
        """Return the size of an object in bytes."""
        return self.info(key).size_bytes

    def exists(self, key: str) -> bool:
        """Return whether there is an object."""
        try:
            self.info(key)
        except FileAccessError as error:
            if error.errno not in NO_OBJECT:
                raise
            return False
        return True

    @abstractmethod
    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        """Return the bytes start:stop of an object, fewer if it ends before.

        Raises:
            FileAccessError: it does not exist or cannot be read; or is not of this version, with
                errno ESTALE.
        """

    def read_view(
        self,
        key: str,
        start: int = 0,
        stop: int | None = None,
        version: str | None = None,
        allocate: Callable[[], memoryview] | None = None,
    ) -> memoryview:
        """Return bytes as `read`, without copying them where the store can do so.

        Args:
            allocate: returns memory for them, which the store may use.
        """
        return memoryview(self.read(key, start, stop, version))

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        """Yield the index and the bytes of each range, in the order in which they arrive.

        Where reads are requests, ranges that are near each other are read together, long ones in
        parts, and `concurrency` requests are under way at the same time.

        Raises:
            FileAccessError: as `read`, at the first range that fails.
        """
        if not self.is_remote:
            for index, requested in enumerate(ranges):
                yield index, self.read_view(*requested)
        else:
            yield from read_in_parallel(self.read_view, self.concurrency, ranges)

    def open_read(self, key: str, info: ObjectInfo | None = None) -> ObjectReader:
        """Open an object for reading, in order and anywhere.

        Args:
            info: of the version to read, if it is known; this saves a request.

        Raises:
            FileAccessError: it does not exist or cannot be read.
        """
        return RangeReader(self, self.info(key) if info is None else info)

    def find_version(self, key: str) -> str | None:
        """Return the version of an object; None if it does not exist."""
        try:
            return self.info(key).version
        except MissingFileError:
            return None

    def has_identity(self, version: str) -> bool:
        """Return whether a version changes with the object, so that its bytes may be cached."""
        return bool(version)

    def version_number(self, version: str) -> int:
        """Return a number of at most 63 bits that changes with the content of an object.

        It is the same in every process, so that an interrupted job knows what has changed.
        """
        return zlib.crc32(version.encode())

    # -- listing -----------------------------------------------------------------------------------

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with a text, in any order.

        Raises:
            FileAccessError: they cannot be listed.
        """

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        """Yield everything directly below a key, sorted by name.

        Raises:
            FileAccessError: it cannot be listed; or is missing, where folders can be missing.
        """
        prefix = f"{key}/" if key else ""
        entries = set()
        for path, size_bytes, version in self.list(prefix):
            name, slash, _ = path.removeprefix(prefix).partition("/")
            if slash:
                entries.add(FolderEntry(name, "folder"))
            else:
                entries.add(self._entry(name, size_bytes, version))
        return iter(sorted(entries))

    def _entry(self, name: str, size_bytes: int, version: str) -> FolderEntry:
        number = self.version_number(version)
        return FolderEntry(name, "object", size_bytes, number, version=version)

    def glob(self, pattern: str) -> Sequence[tuple[Store, str]]:
        """Return the objects that match a pattern with `*`, `?`, `[...]` and `**`, sorted."""
        return [(self, info.key) for info in self.list_matching(pattern)]

    def list_matching(self, pattern: str) -> Sequence[ObjectInfo]:
        """Return size and version of the objects that match a pattern, sorted.

        Versions may be empty, as in `list_entries`.
        """
        folder, slash, name = pattern.rpartition("/")
        prefix = re.split(r"[*?[]", pattern, maxsplit=1)[0]
        if prefix.startswith(folder + slash) and name != "**":  # directly in the folder
            entries = (entry for entry in self.list_entries(folder) if entry.kind == "object")
            infos: Iterable[ObjectInfo] = (
                ObjectInfo(folder + slash + entry.name, entry.size_bytes, entry.version)
                for entry in entries
            )
        else:
            infos = self.list(prefix)
        parts = pattern.split("/")
        return sorted(info for info in infos if _matches(info.key.split("/"), parts))

    def is_folder(self, key: str) -> bool:
        """Return whether there are objects below a key, or could be: the root is a folder."""
        return not key or any(True for _ in self.list(f"{key}/"))

    # -- writing -----------------------------------------------------------------------------------

    def check_writable(self, name: str) -> None:
        """Raise OptionError if the store is read-only; `name` is what is to be written."""
        if not self.is_writable:
            raise OptionError(
                f"{name} is in a store that is read-only",
                value=name,
                remedy="Write to a local folder or a bucket.",
            )

    @abstractmethod
    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> ObjectWriter:
        """Open a new object for writing. It appears at the end of the `with` block, whole and
        stored durably, and replaces an older one; if the block raises, nothing changes.

        Args:
            is_durable: False if it need not survive a power cut.

        Raises:
            OptionError: at the end of the block, if `overwrite` is False and the object exists.
            FileAccessError: it cannot be written.
        """

    def put(self, key: str, data: Data) -> None:
        """Write an object; it appears whole or not at all."""
        with self.open_write(key) as file:
            for piece in pieces_of(data):
                file.write(piece)

    @abstractmethod
    def put_if_absent(self, key: str, data: Data) -> bool:
        """Write an object unless it exists; return whether it was written.

        Of several writers at the same time, one succeeds.
        """

    @abstractmethod
    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        """Replace an object that still has a version; return whether it was replaced.

        Get the version before reading the object. Of several calls with the same version, at most
        one succeeds.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""

    def delete_if_match(self, key: str, version: str) -> bool:
        """Delete an object that still has a version; return whether it was deleted.

        Stores that cannot do this in one step leave a short window, in which it is replaced.
        """
        matches = self.find_version(key) == version
        if matches:
            self.delete(key)
        return matches

    def put_checked(self, key: str, data: bytes, check: Callable[[], bool]) -> None:
        """Write an object for `ObjectWriter.check`."""
        is_done = False
        while not is_done:
            version = self.find_version(key)
            may_stay = check()
            if version is None:
                is_done = self.put_if_absent(key, data)
            else:
                is_done = may_stay and self._is_equal(key, data, version)
                is_done = is_done or self.put_if_match(key, data, version)

    def _is_equal(self, key: str, data: bytes, version: str) -> bool:
        try:
            return self.size(key) == len(data) and self.read(key, version=version) == data
        except FileAccessError:  # replaced or deleted meanwhile
            return False

    def delete_checked(self, key: str, check: Callable[[], bool]) -> None:
        """Delete an object, unless it changes after a check."""
        while (version := self.find_version(key)) is not None:
            check()
            if self.delete_if_match(key, version):
                return

    def copy(self, old: str, new: str, check: Callable[[], bool] | None = None) -> None:
        """Copy an object, and replace the object there.

        Args:
            check: as `ObjectWriter.check`.
        """
        with self.open_read(old) as source, self.open_write(new) as target:
            target.check = check
            while piece := source.read(_PIECE_BYTES):
                target.write(piece)

    def move(self, old: str, new: str) -> None:
        """Give an object another name, and replace the object there.

        Where the store cannot rename, it is copied: a killed process may leave both.
        """
        self.copy(old, new)
        self.delete(old)

    def check_target(self, key: str, *, overwrite: bool) -> None:
        """Check before a long job that an object may be written.

        Raises:
            OptionError: it is a folder, exists and `overwrite` is False, or the store is read-only.
            FileAccessError: the folder of the store does not exist.
        """
        name = self.name_of(key)
        self.check_writable(name)
        if self.is_folder(key):
            raise OptionError(f"{name} is a folder", value=name, expected="the name of a file")
        if not overwrite and self.exists(key):
            raise exists_error(name)

    # -- what only file systems have ---------------------------------------------------------------

    def make_folder(self, key: str = "") -> None:
        """Make a folder, where folders do not come with their objects."""

    def remove_empty_folder(self, key: str = "") -> None:
        """Remove a folder in which nothing is left, where folders stay without objects."""

    def sync(self, key: str = "") -> None:
        """Make the names in a folder survive a power cut, where writing does not ensure it."""

    def locked(self, key: str, *, is_shared: bool = False) -> AbstractContextManager[bool]:
        """Lock a hidden folder against other processes until the block ends.

        Yields:
            Whether it is locked: False where there are no locks.

        Raises:
            FileAccessError: another process holds the lock, or it cannot be written.
        """
        return nullcontext(False)

    def remove_leftovers(self, key: str, names: Collection[str] | None = None) -> None:
        """Remove what killed processes left that were writing objects in a folder.

        Args:
            names: of the objects; None for all, in a folder in which no other process writes.
        """


def _of_store(name: str) -> Any:
    """Return a method that calls the one of the wrapped store."""

    def method(self: WrappedStore, *arguments: Any, **options: Any) -> Any:
        return getattr(self.store, name)(*arguments, **options)

    return method


class WrappedStore(Store):
    """A store with the objects of another one. `put` goes through `open_write`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.concurrency = store.concurrency
        self.is_writable, self.can_list = store.is_writable, store.can_list
        self.can_rename = store.can_rename

    def around(self, store: Store) -> Store:
        """Wrap another store in the same way."""
        raise NotImplementedError

    def absolute(self, key: str) -> tuple[Store, str]:
        store, absolute = self.store.absolute(key)
        return self if store is self.store else self.around(store), absolute

    def without_links(self) -> Store:
        store = self.store.without_links()
        return self if store is self.store else self.around(store)

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        return self.store.read_many(ranges)

    def glob(self, pattern: str) -> Sequence[tuple[Store, str]]:
        return [
            (self if store is self.store else self.around(store), key)
            for store, key in self.store.glob(pattern)
        ]

    name_of = _of_store("name_of")
    identity = _of_store("identity")
    info = _of_store("info")
    has_identity = _of_store("has_identity")
    version_number = _of_store("version_number")
    read = _of_store("read")
    open_read = _of_store("open_read")
    list = _of_store("list")
    list_entries = _of_store("list_entries")
    is_folder = _of_store("is_folder")
    open_write = _of_store("open_write")
    put_if_absent = _of_store("put_if_absent")
    put_if_match = _of_store("put_if_match")
    delete = _of_store("delete")
    delete_if_match = _of_store("delete_if_match")
    copy = _of_store("copy")
    move = _of_store("move")
    check_target = _of_store("check_target")
    make_folder = _of_store("make_folder")
    remove_empty_folder = _of_store("remove_empty_folder")
    sync = _of_store("sync")
    locked = _of_store("locked")
    remove_leftovers = _of_store("remove_leftovers")


def _matches(names: list[str], patterns: list[str]) -> bool:
    """Return whether the parts of a key match a pattern; `*` does not match hidden names."""
    if not names or not patterns:
        return not names and not patterns
    is_shown = names[0][0] != "." or patterns[0][0] == "."
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or (is_shown and _matches(names[1:], patterns))
    return is_shown and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])
