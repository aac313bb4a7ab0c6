"""`WholeWriter`: writes an object of a store in one call."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from recordsmith.stores.checks import check_key, exists_error
from recordsmith.stores.object_writer import ObjectWriter
from recordsmith.stores.store import Store


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
                self._store.put_checked(self._key, data, self.check)
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
                self._store.delete_checked(self._key, self.check)
