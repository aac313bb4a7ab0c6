"""The types of memory that the codecs take and give."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BytesLike: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Int64Array: TypeAlias = npt.NDArray[np.int64]


def as_view(data: BytesLike) -> memoryview:
    """`data` without copying it."""
    return memoryview(data)  # type: ignore[arg-type]  # ndarray: known as a buffer from 3.12 on
