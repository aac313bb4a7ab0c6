"""Convert `.npy` files to values and shape, without pickle and with checked headers."""

from __future__ import annotations

import io
import math
import threading
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

# NumPy parses headers as Python source, and Python before 3.11.8 fails at random ("recursion depth
# mismatch") where several threads do so at once
_PARSING = threading.Lock()


LARGEST_HEADER = 1 << 20
"""In bytes; NumPy writes 128."""


class NpyHeader(NamedTuple):
    """What a `.npy` file announces.

    offset: where the values begin.
    """

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_npy_header(head: bytes) -> NpyHeader:
    """Read the header of an array from the first bytes of its file."""
    stream = io.BytesIO(head)
    try:
        version = npy_format.read_magic(stream)
        is_old = version == (1, 0)
        read_header = (
            npy_format.read_array_header_1_0 if is_old else npy_format.read_array_header_2_0
        )
        with _PARSING:
            shape, is_fortran, dtype = read_header(stream)
    except Exception as error:  # noqa: BLE001 - the header is Python source, parsed by NumPy
        raise ValueError(f"not a .npy file, or damaged: {error}") from None
    if dtype.kind not in "iufbUS":
        raise ValueError(f"the array has type {dtype}; expected integers, floats or bools")
    return NpyHeader(shape, is_fortran, dtype, stream.tell())


def npy_features(data: bytes, name: str) -> dict[str, Any]:
    """The features of a `.npy` file, as `array_features`."""
    shape, is_fortran, dtype, offset = read_npy_header(data)
    rest = memoryview(data)[offset:]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(
            f"the header announces {math.prod(shape)} values of {dtype}, but {len(rest)} bytes "
            "follow"
        )
    values = np.frombuffer(rest, dtype)
    return array_features(values.reshape(shape, order="F" if is_fortran else "C"), name)


def array_features(array: npt.NDArray[Any], name: str) -> dict[str, Any]:
    """The flat values of an array as a feature, and its shape as `<name>/shape`."""
    if array.dtype.kind not in "iufb":
        raise ValueError(f"the array has type {array.dtype}; expected integers, floats or bools")
    values = array.ravel()
    if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{values.max()} does not fit int64")
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
    if values.dtype.kind == "f" and np.isinf(stored).sum() != np.isinf(values).sum():
        raise ValueError("a value does not fit a 32-bit float")
    return {name: stored, f"{name}/shape": list(array.shape)}
