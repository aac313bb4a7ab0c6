"""Memory for blocks of a file, one for each thread, used again and again.

Blocks lie in one large page of the processor where the system gives such: measured, reading and
checking a file then takes two thirds of the time, as its pages of 4 KiB lie anywhere and drive each
other out of the cache. Small files get little memory, as a large page takes longer to make than
they to read.
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
    """At least `size` bytes, at most 2 MiB; this thread's, until it asks again."""
    name = "small" if size <= _SMALL_BYTES else "large"
    memory: memoryview | None = getattr(_local, name, None)
    if memory is None:
        memory = memoryview(bytearray(_SMALL_BYTES)) if name == "small" else _large_page()
        setattr(_local, name, memory)
    return memory


def _large_page() -> memoryview:
    """2 MiB that begin where a large page can."""
    memory = mmap.mmap(-1, 2 * _LARGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system that has none
            memory.madvise(mmap.MADV_HUGEPAGE)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    start = -address % _LARGE_PAGE_BYTES
    return memoryview(memory)[start : start + _LARGE_PAGE_BYTES]
