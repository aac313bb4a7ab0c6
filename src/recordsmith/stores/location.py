"""`Location`: an object, or a prefix of keys, in a store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from recordsmith.errors import OptionError
from recordsmith.files import PathLike, as_path
from recordsmith.stores.local import LocalStore
from recordsmith.stores.memory import MEMORY_SCHEME, MemoryStore
from recordsmith.stores.store import Data, ObjectInfo, Store, check_key

_MEMORY = MemoryStore()


@dataclass(frozen=True)
class Location:
    """A key in a store. `str` shows it as users write it: a path or URL."""

    store: Store
    key: str

    def __str__(self) -> str:
        return self.store.name_of(self.key)

    def __truediv__(self, key: str) -> Location:
        return Location(self.store, f"{self.key}/{check_key(key)}" if self.key else check_key(key))

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of the name with its dot, or an empty text."""
        return os.path.splitext(self.name)[1]

    def with_name(self, name: str) -> Location:
        """Return the location with another name next to this one."""
        head, slash, _ = self.key.rpartition("/")
        return Location(self.store, check_key(f"{head}{slash}{name}"))

    def with_suffix(self, suffix: str) -> Location:
        """Return the location with another suffix."""
        return self.with_name(os.path.splitext(self.name)[0] + suffix)

    # -- the operations of the store ---------------------------------------------------------------

    def info(self) -> ObjectInfo:
        """Return size and version of the object."""
        return self.store.info(self.key)

    def exists(self) -> bool:
        """Return whether there is an object."""
        return self.store.exists(self.key)

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes start:stop of the object, fewer if it ends before."""
        return self.store.read(self.key, start, stop)

    def list(self) -> Iterator[Location]:
        """Yield the objects below this location, in any order."""
        for info in self.store.list(f"{self.key}/" if self.key else ""):
            yield Location(self.store, info.key)

    def open_write(self) -> AbstractContextManager[BinaryIO]:
        """Open the object for writing; it appears whole at the end of the block."""
        return self.store.open_write(self.key)

    def put(self, data: Data) -> None:
        """Write the object; it appears whole or not at all."""
        self.store.put(self.key, data)

    def put_if_absent(self, data: Data) -> bool:
        """Write the object unless it exists; return whether it was written."""
        return self.store.put_if_absent(self.key, data)

    def put_if_match(self, data: Data, version: str) -> bool:
        """Replace the object if it still has a version; return whether it was replaced."""
        return self.store.put_if_match(self.key, data, version)

    def delete(self) -> None:
        """Delete the object, if it exists."""
        self.store.delete(self.key)


PlaceLike: TypeAlias = PathLike | Location
"""A path, a URL, or a location."""


def as_location(place: object) -> Location:
    """Convert a path or URL to the location of an object.

    The folder of a path becomes the root of the store, so links in it are the user's own.

    Raises:
        OptionError: it is not a path, is empty, has no name, or has an unsupported scheme.
    """
    if isinstance(place, Location):
        return place
    if isinstance(place, str) and place.startswith(MEMORY_SCHEME):
        return Location(_MEMORY, check_key(place.removeprefix(MEMORY_SCHEME)))
    path = str(as_path(place))
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        raise OptionError(f"{path} is a folder", value=path, expected="the name of a file")
    return Location(LocalStore(folder), name)
