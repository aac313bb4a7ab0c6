"""`Store`: the operations of a place for objects."""

from __future__ import annotations

import errno
import io
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from recordsmith.errors import FileAccessError, MissingFileError, OptionError, option
from recordsmith.stores.parallel_reads import ReadAhead, read_in_parallel
from recordsmith.stores.ranges import REQUEST_BYTES, Range

if TYPE_CHECKING:
    import mmap

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from recordsmith.buffers import Int64Array
    from recordsmith.stores.folder_writer import FolderWriter

NO_OBJECT = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
"""What the error of an object that does not exist has as its errno."""

Data: TypeAlias = bytes | Iterable[bytes | memoryview]
"""The content of an object: bytes, or pieces end to end."""


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
    at all, and one call of `read` returns bytes of one version.
    """

    is_writable = True
    can_rename = False
    """Whether finished objects can wait under another name, until all of them are there."""

    can_list = True
    """Whether one request lists many objects with their sizes: no web server does."""

    concurrency = 1
    """How many reads at the same time are faster than one after another: 1 unless each read is a
    request over a network."""

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
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> memoryview:
        """Return bytes as `read`, without copying them where the store can do so."""
        return memoryview(self.read(key, start, stop, version))

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        """Yield the index and the bytes of each range, in the order in which they arrive.

        Where reads are requests, ranges that are near each other are read together, long ones in
        parts, and `concurrency` requests are under way at the same time.

        Raises:
            FileAccessError: as `read`, at the first range that fails.
        """
        if not self.is_remote:
            for index, wanted in enumerate(ranges):
                yield index, self.read_view(*wanted)
        else:
            yield from read_in_parallel(self, ranges)

    def open_read(self, key: str, info: ObjectInfo | None = None) -> ObjectReader:
        """Open an object for reading, in order and anywhere.

        Args:
            info: of the version to read, if it is known; this saves a request.

        Raises:
            FileAccessError: it does not exist or cannot be read.
        """
        return RangeReader(self, self.info(key) if info is None else info)

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
        found = set()
        for path, size_bytes, version in self.list(prefix):
            name, slash, _ = path.removeprefix(prefix).partition("/")
            if slash:
                found.add(FolderEntry(name, "folder"))
            else:
                number = self.version_number(version)
                found.add(FolderEntry(name, "object", size_bytes, number, version=version))
        return iter(sorted(found))

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
            found: Iterable[ObjectInfo] = (
                ObjectInfo(folder + slash + entry.name, entry.size_bytes, entry.version)
                for entry in entries
            )
        else:
            found = self.list(prefix)
        parts = pattern.split("/")
        return sorted(info for info in found if _matches(info.key.split("/"), parts))

    def is_folder(self, key: str) -> bool:
        """Return whether there are objects below a key, or could be: the root is a folder."""
        return not key or any(True for _ in self.list(f"{key}/"))

    # -- writing -----------------------------------------------------------------------------------

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
        matches = version_of(self, key) == version
        if matches:
            self.delete(key)
        return matches

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
        check_writable(self, name)
        if self.is_folder(key):
            raise OptionError(f"{name} is a folder", value=name, expected="the name of a file")
        if not overwrite and self.exists(key):
            raise exists_error(name)

    def write_folder(
        self,
        key: str,
        note: Mapping[str, Any],
        *,
        overwrite: bool,
        keeping: Mapping[str, str],
        report: Callable[[str], None],
    ) -> AbstractContextManager[FolderWriter]:
        """Write a new folder; it is complete when its note appears, at the end of the block.

        If the block raises, everything that was written is removed. Where the store can rename,
        nothing is visible before the end, and a folder that is replaced stays until then.
        Elsewhere, an earlier folder is removed with the first object, and a killed process leaves
        objects without a note; `overwrite` removes these.

        Args:
            note: describes the content; the names directly in the folder are added as `entries`.
            overwrite: replace the entries of an earlier note, and all objects in the way.
            keeping: objects that must not be replaced: identity -> name for messages.
            report: called with problems of the folder.

        Raises:
            OptionError: it is an object, is not empty without `overwrite`, or contains objects to
                keep; or the store is read-only.
            FileAccessError: it cannot be written, or another process writes it.
        """
        from recordsmith.stores.folder_writer import direct_folder
        from recordsmith.stores.location import Location

        check_writable(self, self.name_of(key))
        return direct_folder(Location(self, key), note, overwrite=overwrite, keeping=keeping)

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


class ObjectReader(io.RawIOBase):
    """An open object: a file that is read in order, and its bytes anywhere.

    Reading in order is for one thread; `read_at`, `read_pieces` and `read_headers` are thread-safe
    and do not move the position.
    """

    size_bytes: int
    """The size of the object; a file that grows has its current size."""

    def read_at(self, start: int, stop: int) -> bytes:
        """Return the bytes start:stop, fewer if the object ends before."""
        raise NotImplementedError

    def read_pieces(
        self,
        begins: Int64Array,
        ends: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> bool:
        """Read pieces to a buffer; return whether all of them exist.

        Args:
            begins, ends: int64, (count,): the pieces are the bytes [begins[i], ends[i]).
            places: int64, (count,): they go to out[places[i]:].
            out: uint8, large enough for all.
        """
        raise NotImplementedError

    def read_headers(self, start: int, stop: int, gap: int, out: npt.NDArray[np.uint8]) -> int:
        """Read headers, each of which states in its first 8 bytes where the next one begins.

        Args:
            start: where the first header begins.
            stop: no header ends after it.
            gap: between the header and the next one are `gap` bytes, and the number of bytes that
                the header states (uint64, little-endian).
            out: uint8, (most, size): the headers.

        Returns:
            The number of headers that were read.
        """
        most, size = out.shape
        for number in range(most):
            header = self.read_at(start, start + size) if start + size <= stop else b""
            if len(header) < size:
                return number
            out[number] = memoryview(header)
            start += size + gap + int.from_bytes(header[:8], "little")
        return int(most)

    def read_head(self, count: int) -> bytes:
        """Return the first bytes, and stay where the reader is.

        Over a network, the same request gets bytes for the reads that follow.
        """
        return self.read_at(0, count)

    def read_uncached(self, start: int, stop: int) -> bytes | None:
        """Return bytes as the device has them now, past all caches; None if that is impossible."""
        return self.read_at(start, stop)

    def is_cached(self, place: int) -> bool | None:
        """Return whether a byte is in memory, without reading it; None if unknown."""
        return None

    def drop_cached(self) -> None:
        """Drop what is cached of the object, as far as that is possible."""

    def map(self) -> mmap.mmap | None:
        """Return a memory map of the object, where there are such maps."""
        return None

    def readable(self) -> bool:
        return True


_HEAD_BYTES = 1 << 20


class RangeReader(ObjectReader):
    """Reads one version of an object by ranges."""

    _ahead: ReadAhead | None = None
    _head = b""

    def __init__(self, store: Store, info: ObjectInfo) -> None:
        self._store = store
        self._key, self.size_bytes, self._version = info
        self._at = 0
        self._ahead = ReadAhead(self._view, self.size_bytes) if store.is_remote else None

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size_bytes}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "the position is negative")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        stop = self._at + len(view)
        if self._at >= len(self._head):
            self._head = b""
        if self._head:
            data: bytes | memoryview = memoryview(self._head)[self._at : stop]
        elif self._ahead is None:
            data = self.read_at(self._at, stop)
        else:
            data = self._ahead.read(self._at, stop)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        data = self.read_at(self._at, self.size_bytes)
        self._at += len(data)
        return data

    def read_at(self, start: int, stop: int) -> bytes:
        stop = min(stop, self.size_bytes)
        if start >= stop:
            return b""
        if stop - start <= REQUEST_BYTES or self._ahead is None:
            return self._read(start, stop)
        wanted = Range(self._key, start, stop, self._version)
        return bytes(next(data for _, data in self._store.read_many([wanted])))

    def read_head(self, count: int) -> bytes:
        if self._ahead is None:
            return self.read_at(0, count)
        self._head = self.read_at(0, max(count, _HEAD_BYTES))
        return self._head[:count]

    def _read(self, start: int, stop: int) -> bytes:
        return self._store.read(self._key, start, stop, self._version)

    def _view(self, start: int, stop: int) -> memoryview:
        return self._store.read_view(self._key, start, stop, self._version)

    def close(self) -> None:
        if self._ahead is not None and not self.closed:
            self._ahead.close()
        super().close()

    def read_pieces(
        self,
        begins: Int64Array,
        ends: Int64Array,
        places: Int64Array,
        out: npt.NDArray[np.uint8],
    ) -> bool:
        if len(ends) and ends.max() > self.size_bytes:
            return False
        view = memoryview(out)  # type: ignore[arg-type] # for Python 3.11 and older
        wanted = (
            Range(self._key, start, stop, self._version)
            for start, stop in zip(begins.tolist(), ends.tolist(), strict=True)
        )
        for index, data in self._store.read_many(wanted):
            place = int(places[index])
            view[place : place + len(data)] = data
        return True


class ObjectWriter(io.RawIOBase, ABC):
    """A new object, which appears at the end of a `with` block."""

    check: Callable[[], bool] | None = None
    """Called before the object appears, where the store cannot rename; raises if it must not.

    The version that is replaced is the one before the call. If it has the same bytes and the call
    returns True, it may stay, so that its readers are not disturbed.
    """

    def writable(self) -> bool:
        return True

    @abstractmethod
    def write(self, data: Any) -> int:
        """Write all bytes of a buffer; return their number."""

    @abstractmethod
    def tell(self) -> int:
        """Return the number of bytes written."""

    @abstractmethod
    def seal(self) -> str:
        """Store everything durably; return the key under which it can be read now.

        That is the final key where the store cannot rename.
        """

    @abstractmethod
    def publish(self) -> None:
        """Seal the object and give it its final name.

        Raises:
            OptionError: it is a folder; or exists and must not be replaced.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove what was written, if the object has no final name yet. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.publish()
        finally:
            self.discard()


class WholeWriter(ObjectWriter):
    """Collects an object in memory, for a store that writes it in one call."""

    def __init__(
        self, store: Store, key: str, put: Callable[[bytes], object], *, overwrite: bool
    ) -> None:
        """`put`: writes the object, replacing an older one."""
        self._store = store
        self._key = check_key(key)
        self._put = put
        self._overwrite = overwrite
        self._file = io.BytesIO()
        self._is_sealed = self._is_published = False

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def seal(self) -> str:
        if not self._is_sealed:
            data = self._file.getvalue()
            if self.check is not None:
                put_checked(self._store, self._key, data, self.check)
            elif self._overwrite:
                self._put(data)
            elif not self._store.put_if_absent(self._key, data):
                raise exists_error(self._store.name_of(self._key))
            self._is_sealed = True
        return self._key

    def publish(self) -> None:
        self.seal()
        self._is_published = True

    def discard(self) -> None:
        if self._is_sealed and not self._is_published:
            self._is_sealed = False
            if self.check is None:
                self._store.delete(self._key)
            else:
                delete_checked(self._store, self._key, self.check)


def put_checked(store: Store, key: str, data: bytes, check: Callable[[], bool]) -> None:
    """Write an object for `ObjectWriter.check`."""
    is_done = False
    while not is_done:
        version = version_of(store, key)
        may_stay = check()
        if version is None:
            is_done = store.put_if_absent(key, data)
        else:
            is_done = may_stay and _is_equal(store, key, data, version)
            is_done = is_done or store.put_if_match(key, data, version)


def delete_checked(store: Store, key: str, check: Callable[[], bool]) -> None:
    """Delete an object, unless it changes after a check."""
    while (version := version_of(store, key)) is not None:
        check()
        if store.delete_if_match(key, version):
            return


def version_of(store: Store, key: str) -> str | None:
    """Return the version of an object, None if it does not exist."""
    try:
        return store.info(key).version
    except MissingFileError:
        return None


def _is_equal(store: Store, key: str, data: bytes, version: str) -> bool:
    try:
        return store.size(key) == len(data) and store.read(key, version=version) == data
    except FileAccessError:  # replaced or deleted meanwhile
        return False


_PIECE_BYTES = 1 << 22


def _matches(names: list[str], patterns: list[str]) -> bool:
    """Return whether the parts of a key match a pattern; `*` does not match hidden names."""
    if not names or not patterns:
        return not names and not patterns
    is_shown = names[0][0] != "." or patterns[0][0] == "."
    if patterns[0] == "**":
        return _matches(names, patterns[1:]) or (is_shown and _matches(names[1:], patterns))
    return is_shown and fnmatchcase(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def pieces_of(data: Data) -> Iterable[bytes | memoryview]:
    """Return the pieces of the content of an object."""
    return (data,) if isinstance(data, bytes) else data


def check_key(key: str) -> str:
    """Return a key that stays inside its store.

    Raises:
        OptionError: it is empty, absolute, has empty parts, `.` or `..`, or zero bytes.
    """
    # most keys show at once that no part is empty or starts with a dot
    is_odd = key[:1] in ("", ".", "/") or key[-1] == "/" or "//" in key or "/." in key
    if (is_odd and not {"", ".", ".."}.isdisjoint(key.split("/"))) or "\0" in key:
        raise OptionError(
            f"{key!r:.200} is not a valid key",
            value=key,
            expected="names separated by '/', without '.' and '..'",
        )
    return key


def check_writable(store: Store, name: str) -> None:
    """Check that a store can be written.

    Raises:
        OptionError: it is read-only.
    """
    if not store.is_writable:
        raise OptionError(f"{name} is in a store that is read-only", value=name)


def check_range(start: int, stop: int | None) -> None:
    """Validate the bounds of a range.

    Raises:
        ValueError: a bound is negative, or they are in the wrong order.
    """
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(f"invalid range {start}:{stop}")


def check_version(name: str, found: str, wanted: str | None) -> None:
    """Check the version of an object that is read.

    Raises:
        FileAccessError: it is not the wanted one.
    """
    if wanted is not None and found != wanted:
        raise FileAccessError(
            errno.ESTALE, "it was replaced while it was read", name, remedy="Open it again."
        )


def missing_error(name: str) -> MissingFileError:
    """Return the error for an object that does not exist, in a store without an errno."""
    return MissingFileError(errno.ENOENT, "no such file or folder", name)


def exists_error(path: object) -> OptionError:
    """Return the error for an output that exists and must not be replaced."""
    return OptionError(
        f"{path} already exists",
        option="overwrite",
        remedy=f"Choose another name, or pass {option('overwrite', True)}.",
    )


def folder_error(path: object) -> OptionError:
    """Return the error for a folder where a job must write a file."""
    return OptionError(
        f"{path} is a folder, but the job writes a file of this name",
        remedy="Move or rename the folder.",
    )


def busy_error(folder: object) -> FileAccessError:
    """Return the error for a folder that another process has locked."""
    return FileAccessError(
        errno.EBUSY, "another process is writing to it", str(folder), operation="write"
    )


def no_lock_notice(folder: object) -> str:
    """Return the notice for a job that runs without a lock."""
    return (
        f"{folder} could not be locked: its file system does not support locks. Do not run a "
        "second job in it at the same time"
    )
