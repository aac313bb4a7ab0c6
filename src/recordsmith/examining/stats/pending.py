"""Collects small arrays until they are large enough to process together."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class Pending(Generic[_Array]):
    """Arrays of one dtype that wait to be processed. Do not change them afterwards."""

    def __init__(self, enough: int) -> None:
        """`enough`: how many values to collect before processing them."""
        self._enough = enough
        self._arrays: list[_Array] = []
        self._count = 0

    def add(self, values: _Array) -> bool:
        """Add an array; return whether there are enough values now."""
        self._arrays.append(values)
        self._count += len(values)
        return self._count >= self._enough

    def take(self) -> _Array | None:
        """Remove and return all values as one array, in order; None if empty."""
        arrays, count = self._arrays, self._count
        self._arrays, self._count = [], 0
        return np.concatenate(arrays) if count else None  # type: ignore[return-value]
