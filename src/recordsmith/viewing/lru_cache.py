"""A cache of bounded size."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """The values that were used last: one, or more up to a total size. Thread-safe."""

    def __init__(
        self,
        max_size: int,
        size_of: Callable[[_Value], int] = lambda _: 1,
        drop: Callable[[_Value], object] = lambda _: None,
    ) -> None:
        """`drop` is called with values that are removed."""
        self._max_size, self._size_of, self._drop = max_size, size_of, drop
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: _Key) -> _Value | None:
        """Return a value; None if it is not kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get_or_make(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """Return a value, which is made and kept if it is new."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
                self._size += self._size_of(self._values[key])
            self._values.move_to_end(key)
            while self._size > self._max_size and len(self._values) > 1:
                self._remove_oldest()
            return self._values[key]

    def clear(self) -> None:
        with self._lock:
            while self._values:
                self._remove_oldest()

    def _remove_oldest(self) -> None:
        _, value = self._values.popitem(last=False)
        self._size -= self._size_of(value)
        self._drop(value)
