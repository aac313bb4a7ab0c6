"""`Store`: what a place for objects must be able to do."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, TypeAlias

from recordsmith.errors import FileAccessError, MissingFileError, OptionError

Data: TypeAlias = bytes | Iterable[bytes | memoryview]
"""The content of an object: bytes, or pieces end to end."""


class ObjectInfo(NamedTuple):
    """What a store knows about an object without reading it.

    version: changes whenever the object is written again.
    """

    key: str
    size_bytes: int
    version: str


class Range(NamedTuple):
    """Some bytes of an object; `stop` None means its end."""

    key: str
    start: int = 0
    stop: int | None = None


class Store(ABC):
    """Objects by key. Thread-safe.

    A key has parts separated by `/`, none of them empty, `.` or `..`. Objects appear whole or not
    at all, and one call of `read` returns bytes of one version.
    """

    is_writable = True
    is_listable = True
    concurrency = 1
    """How many reads at the same time are faster than one after another."""

    @abstractmethod
    def name_of(self, key: str) -> str:
        """Return the name of an object for messages: a path or URL."""

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
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
            return False
        return True

    @abstractmethod
    def read(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes start:stop of an object, fewer if it ends before.

        Raises:
            FileAccessError: it does not exist or cannot be read.
        """

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, bytes]]:
        """Yield the index and the bytes of each range, in the order in which they arrive.

        At most twice `concurrency` ranges are taken ahead of the results.

        Raises:
            FileAccessError: as `read`, at the first range that fails.
        """
        if self.concurrency == 1:
            for index, wanted in enumerate(ranges):
                yield index, self.read(*wanted)
            return
        pool = ThreadPoolExecutor(self.concurrency)
        waiting: dict[Future[bytes], int] = {}
        try:
            for index, wanted in enumerate(ranges):
                waiting[pool.submit(self.read, *wanted)] = index
                if len(waiting) >= 2 * self.concurrency:
                    yield from _arrived(waiting)
            while waiting:
                yield from _arrived(waiting)
        finally:
            pool.shutdown(cancel_futures=True)

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose keys start with a text, in any order.

        Raises:
            FileAccessError: they cannot be listed.
        """

    @abstractmethod
    def open_write(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Open a new object for writing. It appears at the end of the block, whole and stored
        durably, and replaces an older one; if the block raises, nothing changes.

        Raises:
            FileAccessError: it cannot be written.
        """

    def put(self, key: str, data: Data) -> None:
        """Write an object; it appears whole or not at all."""
        with self.open_write(key) as file:
            file.writelines(pieces_of(data))

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


def _arrived(waiting: dict[Future[bytes], int]) -> Iterator[tuple[int, bytes]]:
    """Wait for some of the reads, remove them and yield their results."""
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()


def pieces_of(data: Data) -> Iterable[bytes | memoryview]:
    """Return the pieces of the content of an object."""
    return (data,) if isinstance(data, bytes) else data


def check_key(key: str) -> str:
    """Return a key that stays inside its store.

    Raises:
        OptionError: it is empty, absolute, has empty parts, `.` or `..`, or zero bytes.
    """
    if not {"", ".", ".."}.isdisjoint(key.split("/")) or "\0" in key:
        raise OptionError(
            f"{key!r:.200} is not a valid key",
            value=key,
            expected="names separated by '/', without '.' and '..'",
        )
    return key


def check_range(start: int, stop: int | None) -> None:
    """Validate the bounds of a range.

    Raises:
        ValueError: a bound is negative, or they are in the wrong order.
    """
    if start < 0 or (stop is not None and stop < start):
        raise ValueError(f"invalid range {start}:{stop}")


def missing_error(name: str) -> MissingFileError:
    """Return the error for an object that does not exist, in a store without an errno."""
    return MissingFileError(errno.ENOENT, "no such file or folder", name)
