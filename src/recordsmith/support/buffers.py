"""The buffer types that the codecs accept and return."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BytesLike: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Int64Array: TypeAlias = npt.NDArray[np.int64]
AllocateBytes: TypeAlias = Callable[[int], npt.NDArray[np.uint8]]
"""Called with a number of bytes; returns an uninitialized uint8 array."""


def empty_bytes(byte_count: int) -> npt.NDArray[np.uint8]:
    """Allocate an uninitialized array."""
    return np.empty(byte_count, np.uint8)


def as_view(data: BytesLike) -> memoryview:
    """Return a view of `data`, without copying."""
    return memoryview(data)  # type: ignore[arg-type]  # ndarray: typed as a buffer from Python 3.12 on


def offsets_from_lengths(lengths: npt.ArrayLike) -> Int64Array:
    """Return where each of some pieces begins that lie end to end, and the end of the last.

    Args:
        lengths: integers, (n,).

    Returns:
        int64, (n + 1,), from 0.
    """
    counts = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
