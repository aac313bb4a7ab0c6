"""A small least-recently-used cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


_MOST_VALUES = 64  # some hold an open file


class LruCache(Generic[_Value]):
    """A cache of values by number with a limited total size. Thread-safe.

    The latest value is always kept. Two threads may create the same value; the first one is kept.
    """

    def __init__(self, size_of: Callable[[int, _Value], int], most: int) -> None:
        """`size_of`: called with a number and its value; `most`: the largest total size."""
        self._pool_size_bytes = size_of
        self._most = most
        self._size = 0
        self._values: OrderedDict[int, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, number: int, make: Callable[[int], _Value]) -> _Value:
        """Return the value of a number; `make` creates it if necessary."""
        with self._lock:
            if number in self._values:
                self._values.move_to_end(number)
                return self._values[number]
        created = make(number)
        with self._lock:
            if number not in self._values:
                self._values[number] = created
                self._size += self._pool_size_bytes(number, created)
            value = self._values[number]
            self._values.move_to_end(number)
            while len(self._values) > 1 and (
                self._size > self._most or len(self._values) > _MOST_VALUES
            ):
                self._size -= self._pool_size_bytes(*self._values.popitem(last=False))
            return value
