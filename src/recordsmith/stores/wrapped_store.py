"""`WrappedStore`: passes everything on to another store; subclasses change what they need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from recordsmith.stores.object_reader import ObjectReader
from recordsmith.stores.object_writer import Data, ObjectWriter
from recordsmith.stores.parallel_reads import Range
from recordsmith.stores.store import FolderEntry, ObjectInfo, Store


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

    def name_of(self, key: str) -> str:
        return self.store.name_of(key)

    def identity(self, key: str) -> str:
        return self.store.identity(key)

    def absolute(self, key: str) -> tuple[Store, str]:
        store, absolute = self.store.absolute(key)
        return self if store is self.store else self.around(store), absolute

    def without_links(self) -> Store:
        store = self.store.without_links()
        return self if store is self.store else self.around(store)

    def info(self, key: str) -> ObjectInfo:
        return self.store.info(key)

    def has_identity(self, version: str) -> bool:
        return self.store.has_identity(version)

    def version_number(self, version: str) -> int:
        return self.store.version_number(version)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        return self.store.read(key, start, stop, version)

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        return self.store.read_many(ranges)

    def open_read(self, key: str, info: ObjectInfo | None = None) -> ObjectReader:
        return self.store.open_read(key, info)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self.store.list(prefix)

    def list_entries(self, key: str = "") -> Iterator[FolderEntry]:
        return self.store.list_entries(key)

    def glob(self, pattern: str) -> Sequence[tuple[Store, str]]:
        return [
            (self if store is self.store else self.around(store), key)
            for store, key in self.store.glob(pattern)
        ]

    def is_folder(self, key: str) -> bool:
        return self.store.is_folder(key)

    def open_write(
        self, key: str, *, overwrite: bool = True, is_durable: bool = True
    ) -> ObjectWriter:
        return self.store.open_write(key, overwrite=overwrite, is_durable=is_durable)

    def put_if_absent(self, key: str, data: Data) -> bool:
        return self.store.put_if_absent(key, data)

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        return self.store.put_if_match(key, data, version)

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

    def remove_leftovers(self, key: str, names: Collection[str] | None = None) -> None:
        self.store.remove_leftovers(key, names)
