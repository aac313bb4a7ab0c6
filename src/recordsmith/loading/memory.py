"""Allocates the arrays of batches: new ones, or the memory of earlier batches again."""

from __future__ import annotations

import math
import weakref
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Allocate: TypeAlias = Callable[[str, tuple[int, ...], Any], npt.NDArray[Any]]
"""Called as `allocate(name, shape, dtype)`; returns an uninitialized array."""

_ALIGNMENT = 64
_RECYCLED_FROM = 1 << 19  # bytes: the allocator uses smaller blocks again without clearing pages


def empty(name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:  # noqa: ARG001
    """Allocate an array, aligned to 64 bytes so that JAX and TensorFlow need not copy it."""
    byte_count = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(byte_count + _ALIGNMENT - 1, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: npt.NDArray[Any] = memory[start : start + byte_count].view(dtype).reshape(shape)
    return array


class RecycledMemory:
    """The memory of the batches of one iteration.

    An array's memory is used for a new array once the array and all views of it are gone, so that
    the system need not clear pages for each batch. Safe to use from several threads.
    """

    def __init__(self, kept_count: int) -> None:
        """`kept_count`: how many unused blocks to keep for each name."""
        self._unused: defaultdict[str, deque[npt.NDArray[np.uint8]]]
        self._unused = defaultdict(partial(deque, maxlen=kept_count))

    def empty(self, name: str, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Allocate an array as `empty` does, from the unused memory of that name if it fits."""
        byte_count = math.prod(shape) * np.dtype(dtype).itemsize
        if byte_count < _RECYCLED_FROM:
            return empty(name, shape, dtype)
        unused = self._unused[name]
        block = None
        with suppress(IndexError):
            block = unused.pop()
        if block is None or not byte_count <= len(block) <= 2 * byte_count:
            step = 1 << max(0, byte_count.bit_length() - 4)  # sizes differ a little by batch
            block = empty(name, (-(-byte_count // step) * step,), np.uint8)
        lent = np.asarray(_Lent(block, unused))
        array: npt.NDArray[Any] = lent[:byte_count].view(dtype).reshape(shape)
        return array


class _Lent:
    """Memory that arrays share; NumPy keeps this object as long as one of them exists."""

    def __init__(self, block: npt.NDArray[np.uint8], unused: deque[npt.NDArray[np.uint8]]) -> None:
        self.__array_interface__ = block.__array_interface__
        self._block = block
        self._unused = weakref.ref(unused)  # a batch that is kept must not keep the unused ones

    def __del__(self) -> None:
        unused = self._unused()
        if unused is not None:
            unused.append(self._block)
