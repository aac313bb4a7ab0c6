"""Convert `.npy` files to values and shape, without pickle and with checked headers."""

from __future__ import annotations

import io
import math
import threading
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

# NumPy parses headers as Python source, and Python before 3.11.8 fails at random ("recursion depth
# mismatch") where several threads do so at once
_PARSING = threading.Lock()


def npy_features(data: bytes, name: str) -> dict[str, Any]:
    """The flat values of an array as a feature, and its shape as `<name>/shape`.

    Raises:
        ValueError: the data is not an array of numbers.
    """
    stream = io.BytesIO(data)
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
    if dtype.kind not in "iufb":
        raise ValueError(f"the array has type {dtype}; expected integers, floats or bools")
    rest = memoryview(data)[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise ValueError(
            f"the header announces {math.prod(shape)} values of {dtype}, but {len(rest)} bytes "
            "follow"
        )
    values = np.frombuffer(rest, dtype)
    if is_fortran:
        values = values.reshape(shape, order="F").ravel()
    if dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{values.max()} does not fit int64")
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32 if dtype.kind == "f" else np.int64)
    if dtype.kind == "f" and np.isinf(stored).sum() != np.isinf(values).sum():
        raise ValueError("a value does not fit a 32-bit float")
    return {name: stored, f"{name}/shape": list(shape)}
