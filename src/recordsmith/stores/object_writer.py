"""`ObjectWriter`: a new object, and conditions under which it appears."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

from recordsmith.stores.checks import check_key, exists_error
from recordsmith.support.errors import FileAccessError, MissingFileError

if TYPE_CHECKING:
    from recordsmith.stores.store import Store

Data: TypeAlias = bytes | Iterable[bytes | memoryview]
"""The content of an object: bytes, or pieces end to end."""


def pieces_of(data: Data) -> Iterable[bytes | memoryview]:
    """Return the pieces of the content of an object."""
    return (data,) if isinstance(data, bytes) else data


class ObjectWriter(io.RawIOBase, ABC):
    """A new object, which appears at the end of a `with` block."""

    check: Callable[[], bool] | None = None
    """Called before the object appears; raises if it must not.

    Where the store cannot rename, the version that is replaced is the one before the call. If it
    has the same bytes and the call returns True, it may stay, so that its readers are not
    disturbed.
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
        """Seal the object and give it its final name."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what was written, if the object has no final name yet. May be called twice."""

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
