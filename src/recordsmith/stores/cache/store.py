"""`CachedStore`: a store wrapper with a local disk cache."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from recordsmith.stores.cache.block_cache import BlockCache, open_cache
from recordsmith.stores.checks import check_range, check_version
from recordsmith.stores.local.block_files import PAGE_BYTES, ObjectId
from recordsmith.stores.object_reader import ObjectReader, RangeReader
from recordsmith.stores.parallel_reads import Range
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store, WrappedStore
from recordsmith.support.errors import FileAccessError

_DIRECT_BYTES = 1 << 20
"""Shorter ranges of unknown versions are not cached: asking for the version takes as long."""

_ROUND_BYTES = 128 << 20
_ROUND_RANGES = 4096
"""So much is read in one round."""

_KNOWN_VERSIONS = 1 << 16


class CachedStore(WrappedStore):
    """Reads from another store, and keeps pages of its objects in a local folder.

    Several processes and stores may share the folder. A version of an object is cached under its
    name and version, so an object that is replaced is read again. Reading a given version that is
    cached makes no request; sizes, versions and listings always do. Writing goes to the other
    store.

    Args:
        store: the other store.
        folder: the cache folder, or the cache that is open in it; `~` is the user's home.
        max_bytes: the limit of the folder on disk, for all processes; None keeps the limit of an
            existing cache, and limits a new one to half of the free space.

    Raises:
        OptionError: the folder contains other files, or the limit is too small.
    """

    keeps_reads = True

    def __init__(
        self, store: Store, folder: str | BlockCache, max_bytes: int | None = None
    ) -> None:
        super().__init__(store)
        self._cache = folder if isinstance(folder, BlockCache) else open_cache(folder, max_bytes)
        self._ids: dict[tuple[str, str], ObjectId | None] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    @property
    def folder(self) -> str:
        """The cache folder."""
        return self._cache.folder

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the open folder, which another process opens again."""
        files = self._cache.files
        max_bytes = None if files is None else files.max_bytes or None
        return _reopened, (self.store, self.folder, max_bytes), dict(self._sizes)

    def __setstate__(self, sizes: dict[tuple[str, str], int]) -> None:
        self._sizes.update(sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CachedStore):
            return NotImplemented
        return (self.store, self.folder) == (other.store, other.folder)

    def __hash__(self) -> int:
        return hash((self.store, self.folder))

    def flush(self, seconds: float = 60.0) -> bool:
        """Wait until everything that was read is in the folder; return whether it is."""
        return self._cache.flush(seconds)

    def around(self, store: Store) -> CachedStore:
        return _cached(store, self._cache)

    # -- what is known of objects ------------------------------------------------------------------

    def info(self, key: str) -> ObjectInfo:
        info = self.store.info(key)
        self._note_size(info)
        return info

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        for info in self.store.list(prefix):
            self._note_size(info)
            yield info

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        prefix = f"{key}/" if key else ""
        for entry in self.store.list_entries(key):
            if entry.version:
                self._note_size(ObjectInfo(prefix + entry.name, entry.size_bytes, entry.version))
            yield entry

    def _note_size(self, info: ObjectInfo) -> None:
        if len(self._sizes) >= _KNOWN_VERSIONS:
            self._sizes.clear()
        self._sizes[info.key, info.version] = info.size_bytes

    def _id(self, key: str, version: str) -> ObjectId | None:
        """Return what a version is cached under; None if it does not change with the object."""
        if len(self._ids) >= _KNOWN_VERSIONS:
            self._ids.clear()
        object_id = None
        if self.has_identity(version):
            object_id = self._cache.id_of(self.store.identity(key), version)
        self._ids[key, version] = object_id
        return object_id

    # -- reading -----------------------------------------------------------------------------------

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        lookup = self._look_up(self._known_range(Range(key, start, stop, version)))
        if lookup.fetch is None:
            return lookup.data
        try:
            return self._complete(lookup, self.store.read(*lookup.fetch))
        except FileAccessError as error:
            if error.errno != errno.ESTALE or version is not None:
                raise
        return self.store.read(key, start, stop)  # it was replaced just now

    def _known_range(self, requested: Range) -> Range:
        """Return a range with its end and version, unless reading it at once is quicker."""
        key, start, stop, version = requested
        check_range(start, stop)
        if stop is not None and (version or stop - start <= _DIRECT_BYTES):
            return requested
        info = self.info(key)
        check_version(self.name_of(key), info.version, version)
        stop = info.size_bytes if stop is None else min(stop, info.size_bytes)
        return Range(key, start, max(start, stop), info.version)

    def _look_up(self, requested: Range) -> _Lookup:
        """Read a range from the cache."""
        key, start, stop, version = requested
        files = self._cache.files
        object_id = None
        if version and stop is not None and files is not None:
            place = key, version
            object_id = self._ids[place] if place in self._ids else self._id(key, version)
        if object_id is None or files is None or stop is None:
            return _Lookup(requested, None, b"", 0, 0, requested)
        size = self._sizes.get((key, version or ""))
        if size is not None and stop > size:
            stop = max(start, size)
        data, first, last = files.read(object_id, start, stop)
        if first < 0:
            return _Lookup(requested, object_id, data, 0, 0, None)
        return _Lookup(
            requested, object_id, data, first, last, self._rounded(requested, first, last)
        )

    def _rounded(self, requested: Range, first: int, last: int) -> Range:
        """Widen a range to whole pages, if they will be stored."""
        key, _, _, version = requested
        if not self._cache.is_full and last > first:
            size = self._sizes.get((key, version or ""))
            first -= first % PAGE_BYTES
            last += -last % PAGE_BYTES
            last = last if size is None else min(last, size)
        return Range(key, first, last, version)

    def _complete(self, lookup: _Lookup, fetched: bytes | memoryview) -> bytes:
        """Return the bytes of a range, with what was missing in the cache; cache that."""
        assert lookup.fetch is not None
        key, start, stop, version = lookup.requested
        if lookup.object_id is None or stop is None:
            return bytes(fetched)
        begin = lookup.fetch.start
        self._keep(lookup.object_id, lookup.fetch, fetched)
        if begin == start == lookup.first and lookup.last == stop:
            return bytes(fetched[: stop - start])
        with memoryview(fetched) as view:
            missing = bytes(view[lookup.first - begin : lookup.last - begin])
        after = lookup.data[lookup.last - start :]
        if after and len(missing) < lookup.last - lookup.first:  # the store ends before the cache
            return self.store.read(key, start, stop, version)
        return b"".join((lookup.data[: lookup.first - start], missing, after))

    def _keep(self, object_id: ObjectId, fetch: Range, fetched: bytes | memoryview) -> None:
        """Write what was read to the cache, in the background."""
        end = fetch.start + len(fetched)
        is_end = self._sizes.get((fetch.key, fetch.version or "")) == end
        self._cache.write_later(object_id, fetch.start, fetched, is_end=is_end)

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        """Yield ranges as `Store.read_many`: what is not cached, in one round for many."""
        lookups: list[tuple[int, _Lookup]] = []
        size_bytes = 0
        for index, (key, start, stop, version) in enumerate(ranges):
            check_range(start, stop)
            size = self._sizes.get((key, version)) if stop is None and version else None
            end = stop if size is None else max(start, size)
            lookups.append((index, self._look_up(Range(key, start, end, version))))
            size_bytes += len(lookups[-1][1].data)
            if size_bytes >= _ROUND_BYTES or len(lookups) >= _ROUND_RANGES:
                yield from self._read_round(lookups)
                lookups, size_bytes = [], 0
        yield from self._read_round(lookups)

    def _read_round(
        self, lookups: Sequence[tuple[int, _Lookup]]
    ) -> Iterator[tuple[int, memoryview]]:
        misses = [(index, lookup) for index, lookup in lookups if lookup.fetch is not None]
        fetches = [lookup.fetch for _, lookup in misses if lookup.fetch is not None]
        arriving = iter(self.store.read_many(fetches)) if fetches else iter(())
        arrived = next(arriving, None)  # the requests are under way
        for index, lookup in lookups:
            if lookup.fetch is None:
                yield index, memoryview(lookup.data)
        while arrived is not None:
            number, fetched = arrived
            index, lookup = misses[number]
            if lookup.object_id is not None:
                fetched = memoryview(self._complete(lookup, fetched))
            yield index, fetched
            arrived = next(arriving, None)

    def open_read(self, key: str, info: ObjectInfo | None = None) -> ObjectReader:
        info = self.info(key) if info is None else info
        self._note_size(info)
        if self.has_identity(info.version):
            return CachedReader(self, info)
        return self.store.open_read(key, info)

    def read_again(self, key: str, version: str, start: int, stop: int) -> bytes:
        """Read from the store what may be cached, and replace that in the cache."""
        fetch = self._rounded(Range(key, start, stop, version), start, stop)
        fetched = self.store.read(*fetch)
        object_id = self._id(key, version)
        if object_id is not None:
            self._keep(object_id, fetch, fetched)
        return bytes(fetched[start - fetch.start : stop - fetch.start])


class _Lookup(NamedTuple):
    """What the cache has of a range.

    object_id: None if it cannot be cached.
    data: its bytes; those in first:last of the object are missing.
    fetch: the range to read from the store; None if nothing is missing.
    """

    requested: Range
    object_id: ObjectId | None
    data: bytes
    first: int
    last: int
    fetch: Range | None


class CachedReader(RangeReader):
    """Reads one version of an object through the cache."""

    _store: CachedStore

    def read_uncached(self, start: int, stop: int) -> bytes | None:
        stop = min(stop, self.size_bytes)
        if start >= stop:
            return b""
        return self._store.read_again(self._key, self._version, start, stop)


def cached_store(store: Store, folder: str, max_bytes: int) -> CachedStore:
    """Return a `CachedStore`, the same for the same store and folder."""
    return _cached(store, open_cache(folder, max_bytes))


_cached = lru_cache(256)(CachedStore)


def _reopened(store: Store, folder: str, max_bytes: int | None) -> CachedStore:
    """Unpickle a cached store, whose folder keeps the limit that it has by now."""
    return _cached(store, open_cache(folder, max_bytes, keeps_limit=True))
