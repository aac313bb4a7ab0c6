"""The buffer types that the codecs accept and return."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

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
    each = np.asarray(lengths, np.int64)
    offsets = np.zeros(len(each) + 1, np.int64)
    np.cumsum(each, out=offsets[1:])
    return offsets


def array_to_json(array: npt.NDArray[Any] | np.generic) -> dict[str, Any]:
    """Return an array, or a number of NumPy, as plain JSON values."""
    array = np.asarray(array)
    data = array.tobytes()
    packed = zlib.compress(data, 1)
    is_packed = len(packed) < len(data)
    text = base64.b64encode(packed if is_packed else data).decode()
    return {"array": text, "packed": is_packed, "dtype": array.dtype.str, "shape": array.shape}


def array_from_json(document: Mapping[str, Any]) -> Any:
    """Restore an array, or a number of NumPy, from `array_to_json`."""
    data = base64.b64decode(document["array"])
    if document["packed"]:
        data = zlib.decompress(data)
    array = np.frombuffer(data, document["dtype"]).reshape(document["shape"])
    return array.copy() if array.shape else array[()]
