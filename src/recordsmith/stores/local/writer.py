"""`LocalWriter`: a new file, under a temporary name until it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from recordsmith.files import (
    accessing,
    create_temporary,
    exists_error,
    publish,
    publish_if_absent,
)
from recordsmith.stores.store import ObjectWriter


class LocalWriter(ObjectWriter):
    """Writes a hidden file next to its final name, locked until it has that name."""

    def __init__(
        self, path: Path, key_of: Callable[[Path], str], *, overwrite: bool, is_durable: bool
    ) -> None:
        """`key_of`: returns the key of a file next to the path."""
        self._lock = -1
        self._temporary: Path | None = None
        self._path = path
        self._key_of = key_of
        self._overwrite = overwrite
        self._is_durable = is_durable
        self._temporary, self._file = create_temporary(path)
        self._lock = os.dup(self._file.fileno())  # keeps the lock when the file is closed

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = 0
        with accessing(self._path, "write"):
            while written < len(view):
                written += self._file.write(view[written:])
        return written

    def tell(self) -> int:
        return self._file.tell()

    def seal(self) -> str:
        assert self._temporary is not None, "it has its final name"
        if not self._file.closed:
            with accessing(self._path, "write"):
                if self._is_durable:
                    os.fsync(self._file.fileno())
                self._file.close()
        return self._key_of(self._temporary)

    def publish(self) -> None:
        if self._overwrite:
            self.seal()
            assert self._temporary is not None
            publish(self._temporary, self._path)
            self._temporary = None
        elif not self.publish_if_absent():
            raise exists_error(self._path)

    def publish_if_absent(self) -> bool:
        """Seal the file and give it its final name, unless that is taken."""
        self.seal()
        assert self._temporary is not None
        has_name = publish_if_absent(self._temporary, self._path)
        if has_name:
            self._temporary = None
        return has_name

    def discard(self) -> None:
        if self._lock != -1:
            with suppress(OSError):
                self._file.close()
            if self._temporary is not None:
                with suppress(OSError):
                    os.unlink(self._temporary)
                self._temporary = None
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        self.discard()
