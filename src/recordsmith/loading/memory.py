"""Allocates the arrays of batches: new ones, or the memory of earlier batches again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Allocate: TypeAlias = Callable[[str, tuple[int, ...], Any], npt.NDArray[Any]]
"""Called as `allocate(name, shape, dtype)`; returns an uninitialized array."""

_ALIGNMENT = 64


def empty(name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:  # noqa: ARG001
    """Allocate an array, aligned to 64 bytes so that JAX and TensorFlow need not copy it."""
    byte_count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(byte_count + _ALIGNMENT - 1, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: npt.NDArray[Any] = memory[start : start + byte_count].view(dtype).reshape(shape)
    return array


class ReusedMemory:
    """The memory of the batches of one iteration.

    It has places for one batch more than may be in use or begun, so a batch is valid until the
    second batch after it is requested.
    """

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
