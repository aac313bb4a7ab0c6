"""Reuses the arrays of earlier batches.

A ring has one place more than the batches that may be in use or in the making, so a batch is valid
until the second batch after it is requested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.loading.features.contract import Allocate, empty


class Ring:
    """The memory of the batches of one iteration."""

    def __init__(self, prefetch: int) -> None:
        """`prefetch`: how many batches may be begun ahead of the one requested."""
        self._places: list[dict[str, npt.NDArray[np.uint8]]] = [{} for _ in range(prefetch + 2)]

    def allocator(self, number: int) -> Allocate:
        """Return the allocator for batch `number` of the iteration, counted from 0."""
        place = self._places[number % len(self._places)]
        given: set[str] = set()

        def allocate(name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
            byte_count = math.prod(shape) * np.dtype(dtype).itemsize
            if name in given:  # a second array of that name
                return empty(name, shape, dtype)
            given.add(name)
            if name not in place or len(place[name]) < byte_count:
                place[name] = empty(name, (byte_count,), np.uint8)
            array: npt.NDArray[Any] = place[name][:byte_count].view(dtype).reshape(shape)
            return array

        return allocate
