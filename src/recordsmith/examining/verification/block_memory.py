"""Reusable memory for blocks of a file, one buffer per thread.

Buffers use one huge page where the system provides it: scattered 4 KiB pages evict each other from
the cache, and reading and checking takes two thirds of the time with a huge page. Small files use a
small buffer, because making a huge page takes longer than reading them.
"""

from __future__ import annotations

import mmap
import threading
from contextlib import suppress

import numpy as np

_LARGE_PAGE_BYTES = 2 << 20
_SMALL_BYTES = 64 << 10
_local = threading.local()


def block_memory(size: int) -> memoryview:
    """Return this thread's buffer of at least `size` bytes, at most 2 MiB."""
    name = "small" if size <= _SMALL_BYTES else "large"
    memory: memoryview | None = getattr(_local, name, None)
    if memory is None:
        memory = memoryview(bytearray(_SMALL_BYTES)) if name == "small" else _large_page()
        setattr(_local, name, memory)
    return memory


def _large_page() -> memoryview:
    """Return 2 MiB aligned to a huge page."""
    memory = mmap.mmap(-1, 2 * _LARGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # not supported here
            memory.madvise(mmap.MADV_HUGEPAGE)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    start = -address % _LARGE_PAGE_BYTES
    return memoryview(memory)[start : start + _LARGE_PAGE_BYTES]
