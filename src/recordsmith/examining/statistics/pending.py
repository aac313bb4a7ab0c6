"""Small arrays that wait until there are enough of them for one call of NumPy to be worth it."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

_Array = TypeVar("_Array", bound=npt.NDArray[Any])


class Pending(Generic[_Array]):
    """Arrays of one dtype that are not taken in yet. They are kept: do not change them."""

    def __init__(self, enough: int) -> None:
        """`enough`: from how many values on they shall be taken."""
        self._enough = enough
        self._arrays: list[_Array] = []
        self._count = 0

    def add(self, values: _Array) -> bool:
        """Have one more array wait; answers whether there are enough now."""
        self._arrays.append(values)
        self._count += len(values)
        return self._count >= self._enough

    def take(self) -> _Array | None:
        """All values in one array, in their order; None if there are none. They wait no longer."""
        arrays, count = self._arrays, self._count
        self._arrays, self._count = [], 0
        return np.concatenate(arrays) if count else None  # type: ignore[return-value]
