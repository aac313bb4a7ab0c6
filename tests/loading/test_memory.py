"""Memory of batches: used again, but only when no array uses it."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from recordsmith.loading.memory import RecycledMemory

MIB = 1 << 20


@pytest.fixture
def traced() -> Any:
    """Returns how many MiB Python and NumPy hold more than at the start."""
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    yield lambda: round((tracemalloc.get_traced_memory()[0] - start) / MIB)
    tracemalloc.stop()


def _made(memory: RecycledMemory, byte_count: int, name: str = "image") -> Any:
    return memory.empty(name, (byte_count // 4, 2), np.uint16)


def test_threads_share_memory_without_sharing_arrays() -> None:
    memory = RecycledMemory(4)

    def fill(number: int) -> bool:
        arrays = []
        for turn in range(200):
            array = memory.empty("image", (64 + turn % 3, 8), np.uint16)
            array[...] = number * 1000 + turn
            arrays = [*arrays[-2:], (array, number * 1000 + turn)]
            if not all((kept == value).all() for kept, value in arrays):
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fill, range(32)))


def test_memory_returns_with_the_last_view() -> None:
    memory = RecycledMemory(2)
    array = _made(memory, MIB)
    address, view = array.ctypes.data, array[5:, :1].T
    view[...] = 3
    del array
    assert _made(memory, MIB).ctypes.data != address
    assert (view == 3).all()
    del view
    assert _made(memory, MIB, "mask").ctypes.data != address
    assert _made(memory, MIB).ctypes.data == address


def test_unused_memory_ends_with_the_iteration(traced: Any) -> None:
    memory = RecycledMemory(4)
    arrays = [_made(memory, MIB) for _ in range(4)]
    last = arrays.pop()
    del arrays
    assert traced() == 4
    del memory
    assert traced() == 1
    last[...] = 1
    del last
    assert traced() == 0
