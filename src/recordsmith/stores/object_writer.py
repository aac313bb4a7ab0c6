"""`ObjectWriter`: a new object, and conditions under which it appears."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeAlias

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
