"""What was needed lately and may be needed again: the oldest is forgotten when it gets too much."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


_MOST_VALUES = 64  # as some hold an open file


class Recent(Generic[_Value]):
    """Values by number, few and of a limited size together; the latest is always there. Safe to use
    from several threads, which wait for each other's values instead of making them twice.
    """

    def __init__(self, size_of: Callable[[int, _Value], int], most: int) -> None:
        """`size_of`: of a number and its value; `most`: how large all may be."""
        self._size_of = size_of
        self._most = most
        self._size = 0
        self._values: OrderedDict[int, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, number: int, make: Callable[[int], _Value]) -> _Value:
        """The value of a number, made if it is not there."""
        with self._lock:
            if number not in self._values:
                self._values[number] = value = make(number)
                self._size += self._size_of(number, value)
            self._values.move_to_end(number)
            while len(self._values) > 1 and (
                self._size > self._most or len(self._values) > _MOST_VALUES
            ):
                self._size -= self._size_of(*self._values.popitem(last=False))
            return self._values[number]
