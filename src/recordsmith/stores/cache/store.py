"""`CachedStore`: a store behind a network, of which a local folder keeps what was read."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from recordsmith.errors import FileAccessError
from recordsmith.stores.cache.block_cache import BlockCache, open_cache
from recordsmith.stores.checks import check_range, check_version
from recordsmith.stores.local.cache_file import ObjectId
from recordsmith.stores.object_reader import ObjectReader, RangeReader
from recordsmith.stores.object_writer import ObjectWriter
from recordsmith.stores.parallel_reads import Range
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store

if TYPE_CHECKING:
    pass

_DIRECT_BYTES = 1 << 20
"""Shorter ranges of unknown versions are not cached: asking for the version takes as long."""

_ROUND_BYTES = 128 << 20
_ROUND_RANGES = 4096
"""So much is read in one round."""

_KNOWN_VERSIONS = 1 << 16


class CachedStore(Store):
    """Reads from another store, and keeps blocks of its objects in a local folder.

    Several processes and stores may share the folder. A version of an object is cached under its
    name and version, so an object that is replaced is read again. Reading a given version that is
    cached makes no request; sizes, versions and listings always do. Writing goes to the other
    store.

    Args:
        store: the other store.
        folder: the cache folder; `~` is the user's home.
        most_bytes: the limit of the folder on disk, for all processes; None keeps the limit of an
            existing cache, and limits a new one to half of the free space.

    Raises:
        OptionError: the folder contains other files, or the limit is too small.
    """

    keeps_reads = True

    def __init__(self, store: Store, folder: str, most_bytes: int | None = None) -> None:
        self._set(store, open_cache(folder, most_bytes))

    def _set(self, store: Store, cache: BlockCache) -> None:
        self.store = store
        self._cache = cache
        self.concurrency = store.concurrency
        self.is_writable, self.can_list = store.is_writable, store.can_list
        self.can_rename = store.can_rename
        self._ids: dict[tuple[str, str], ObjectId] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    @property
    def folder(self) -> str:
        """The cache folder."""
        return self._cache.folder

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the open folder, which another process opens again."""
        file = self._cache.file
        most_bytes = None if file is None else file.most_bytes
        return _reopened, (self.store, self.folder, most_bytes, dict(self._sizes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CachedStore):
            return NotImplemented
        return (self.store, self.folder) == (other.store, other.folder)

    def __hash__(self) -> int:
        return hash((self.store, self.folder))

    def flush(self, seconds: float = 60.0) -> bool:
        """Wait until everything that was read is in the folder; return whether it is."""
        return self._cache.flush(seconds)

    def _around(self, store: Store) -> CachedStore:
        """Return another store with the same cache."""
        return _cached(store, self._cache)

    # -- reading -----------------------------------------------------------------------------------

    def info(self, key: str) -> ObjectInfo:
        found = self.store.info(key)
        self._note(found)
        return found

    def _note(self, found: ObjectInfo) -> None:
        if len(self._sizes) >= _KNOWN_VERSIONS:
            self._sizes.clear()
        self._sizes[found.key, found.version] = found.size_bytes

    def _id(self, key: str, version: str) -> ObjectId:
        found = self._ids.get((key, version))
        if found is None:
            if len(self._ids) >= _KNOWN_VERSIONS:
                self._ids.clear()
            found = self._ids[key, version] = self._cache.id_of(self.store.identity(key), version)
        return found

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        wanted = self._known_range(Range(key, start, stop, version))
        lookup = self._look_up(wanted)
        if lookup is None:
            return self.store.read(*wanted)
        if lookup.fetch is None:
            return lookup.data
        try:
            return self._completed(lookup, self.store.read(*lookup.fetch))
        except FileAccessError as error:
            if error.errno != errno.ESTALE or version is not None:
                raise
        return self.store.read(key, start, stop)  # it was replaced just now

    def _known_range(self, wanted: Range) -> Range:
        """Return a range with its end and version, unless reading it at once is quicker."""
        key, start, stop, version = wanted
        check_range(start, stop)
        if stop is not None and (version or stop - start <= _DIRECT_BYTES):
            return wanted
        found = self.info(key)
        check_version(self.name_of(key), found.version, version)
        stop = found.size_bytes if stop is None else min(stop, found.size_bytes)
        return Range(key, start, max(start, stop), found.version)

    def _look_up(self, wanted: Range) -> _Lookup | None:
        """Read a range from the cache; None if it cannot be cached."""
        key, start, stop, version = wanted
        file = self._cache.file
        if not version or stop is None or file is None or not self.has_identity(version):
            return None
        of = self._id(key, version)
        size = self._sizes.get((key, version))
        if size is not None and stop > size:
            stop = max(start, size)
        if self._cache.refuses(of, start, stop):
            return None
        data, first, last = file.read(of, start, stop)
        if first < 0:
            return _Lookup(wanted, of, data, 0, 0, None, None)
        begin, end, parts = self._cache.round_out(of, first, last)
        end = end if size is None else min(end, size)
        return _Lookup(wanted, of, data, first, last, Range(key, begin, end, version), parts)

    def _completed(self, lookup: _Lookup, fetched: bytes | memoryview) -> bytes:
        """Return the bytes of a range, with what was missing in the cache; cache that."""
        assert lookup.fetch is not None
        key, start, stop, version = lookup.wanted
        assert version is not None
        begin = lookup.fetch.start
        self._keep(lookup.of, key, version, begin, fetched, lookup.parts)
        if begin == start == lookup.first and lookup.last == stop:
            return bytes(fetched[: stop - start])
        with memoryview(fetched) as view:
            missing = bytes(view[lookup.first - begin : lookup.last - begin])
        after = lookup.data[lookup.last - start :]
        if after and len(missing) < lookup.last - lookup.first:  # the store ends before the cache
            return self.store.read(*lookup.wanted)
        return b"".join((lookup.data[: lookup.first - start], missing, after))

    def _keep(
        self,
        of: ObjectId,
        key: str,
        version: str,
        begin: int,
        fetched: bytes | memoryview,
        parts: frozenset[int] | None,
    ) -> None:
        """Write what was read to the cache, in the background."""
        is_end = self._sizes.get((key, version)) == begin + len(fetched)
        self._cache.write_later(of, begin, fetched, is_end=is_end, parts=parts)

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        """Yield ranges as `Store.read_many`: what is not cached, in one round for many."""
        of_round: list[tuple[int, Range, _Lookup | None]] = []
        size_bytes = 0
        for index, (key, start, stop, version) in enumerate(ranges):
            check_range(start, stop)
            size = self._sizes.get((key, version)) if stop is None and version else None
            wanted = Range(key, start, stop if size is None else max(start, size), version)
            lookup = self._look_up(wanted)
            of_round.append((index, wanted, lookup))
            size_bytes += 0 if lookup is None else len(lookup.data)
            if size_bytes >= _ROUND_BYTES or len(of_round) >= _ROUND_RANGES:
                yield from self._read_round(of_round)
                of_round, size_bytes = [], 0
        yield from self._read_round(of_round)

    def _read_round(
        self, of_round: Sequence[tuple[int, Range, _Lookup | None]]
    ) -> Iterator[tuple[int, memoryview]]:
        asked: list[tuple[int, _Lookup | None]] = []
        fetches: list[Range] = []
        for index, wanted, lookup in of_round:
            if lookup is None or lookup.fetch is not None:
                asked.append((index, lookup))
                fetches.append(wanted if lookup is None or lookup.fetch is None else lookup.fetch)
        arriving = iter(self.store.read_many(fetches)) if fetches else iter(())
        first = next(arriving, None)  # the requests are under way
        for index, _, lookup in of_round:
            if lookup is not None and lookup.fetch is None:
                yield index, memoryview(lookup.data)
        while first is not None:
            number, fetched = first
            index, lookup = asked[number]
            if lookup is not None:
                fetched = memoryview(self._completed(lookup, fetched))
            yield index, fetched
            first = next(arriving, None)

    def open_read(self, key: str, info: ObjectInfo | None = None) -> ObjectReader:
        found = self.info(key) if info is None else info
        self._note(found)
        if self.has_identity(found.version):
            return CachedReader(self, found)
        return self.store.open_read(key, found)

    def read_again(self, key: str, version: str, start: int, stop: int) -> bytes:
        """Read from the store what may be cached, and replace that in the cache."""
        of = self._id(key, version)
        begin, end, parts = self._cache.round_out(of, start, stop)
        fetched = self.store.read(key, begin, end, version)
        self._keep(of, key, version, begin, fetched, parts)
        return bytes(fetched[start - begin : stop - begin])

    # -- everything else is of the other store -----------------------------------------------------

    def name_of(self, key: str) -> str:
        return self.store.name_of(key)

    def identity(self, key: str) -> str:
        return self.store.identity(key)

    def absolute(self, key: str) -> tuple[Store, str]:
        store, absolute = self.store.absolute(key)
        return self if store is self.store else self._around(store), absolute

    def without_links(self) -> Store:
        store = self.store.without_links()
        return self if store is self.store else self._around(store)

    def has_identity(self, version: str) -> bool:
        return self.store.has_identity(version)

    def version_number(self, version: str) -> int:
        return self.store.version_number(version)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for found in self.store.list(prefix):
            self._note(found)
            yield found

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        for entry in self.store.list_entries(key):
            if entry.version:
                self._note(ObjectInfo(prefix + entry.name, entry.size_bytes, entry.version))
            yield entry

    def glob(self, pattern: str) -> Sequence[tuple[Store, str]]:
        return [
            (self if store is self.store else self._around(store), key)
            for store, key in self.store.glob(pattern)
        ]

    def is_folder(self, key: str) -> bool:
        return self.store.is_folder(key)

    def open_write(self, key: str, **options: Any) -> ObjectWriter:
        return self.store.open_write(key, **options)

    def put(self, *arguments: Any) -> None:
        self.store.put(*arguments)

    def put_if_absent(self, *arguments: Any) -> bool:
        return self.store.put_if_absent(*arguments)

    def put_if_match(self, *arguments: Any) -> bool:
        return self.store.put_if_match(*arguments)

    def delete(self, key: str) -> None:
        self.store.delete(key)

    def delete_if_match(self, key: str, version: str) -> bool:
        return self.store.delete_if_match(key, version)

    def copy(self, old: str, new: str, check: Callable[[], bool] | None = None) -> None:
        self.store.copy(old, new, check)

    def move(self, old: str, new: str) -> None:
        self.store.move(old, new)

    def check_target(self, key: str, *, overwrite: bool) -> None:
        self.store.check_target(key, overwrite=overwrite)

    def make_folder(self, key: str = "") -> None:
        self.store.make_folder(key)

    def remove_empty_folder(self, key: str = "") -> None:
        self.store.remove_empty_folder(key)

    def sync(self, key: str = "") -> None:
        self.store.sync(key)

    def locked(self, key: str, *, is_shared: bool = False) -> AbstractContextManager[bool]:
        return self.store.locked(key, is_shared=is_shared)

    def remove_leftovers(self, *arguments: Any) -> None:
        self.store.remove_leftovers(*arguments)


class _Lookup(NamedTuple):
    """What the cache has of a range.

    data: its bytes; those in first:last of the object are missing.
    fetch: the range to read from the store; None if nothing is missing.
    parts: see `BlockCache.round_out`.
    """

    wanted: Range
    of: ObjectId
    data: bytes
    first: int
    last: int
    fetch: Range | None
    parts: frozenset[int] | None


class CachedReader(RangeReader):
    """Reads one version of an object through the cache."""

    _store: CachedStore

    def read_uncached(self, start: int, stop: int) -> bytes | None:
        stop = min(stop, self.size_bytes)
        if start >= stop:
            return b""
        return self._store.read_again(self._key, self._version, start, stop)


def cached_store(store: Store, folder: str, most_bytes: int) -> CachedStore:
    """Return a `CachedStore`, the same for the same store and folder."""
    return _cached(store, open_cache(folder, most_bytes))


@lru_cache(256)
def _cached(store: Store, cache: BlockCache) -> CachedStore:
    cached = CachedStore.__new__(CachedStore)
    cached._set(store, cache)  # noqa: SLF001
    return cached


def _reopened(
    store: Store, folder: str, most_bytes: int | None, sizes: dict[tuple[str, str], int]
) -> CachedStore:
    """Unpickle a cached store, whose folder keeps the limit that it has by now."""
    cached = _cached(store, open_cache(folder, most_bytes, keeps_limit=True))
    cached._sizes.update(sizes)  # noqa: SLF001
    return cached
