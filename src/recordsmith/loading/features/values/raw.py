"""Arrays of one shape that are stored as bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.example import BytesArray, Column
from recordsmith.loading.features.feature import ColumnRequest, ValueFeature


@dataclass(frozen=True)
class Raw(ValueFeature):
    """Arrays stored as bytes, as `ndarray.tobytes` returns them: (batch, *shape).

    Attributes:
        key: the key of the feature in the records; its value is one byte string.
        shape: of the array of a record, in C order.
        dtype: of its numbers, such as "uint8" or "float32"; little-endian unless it is explicitly
            big-endian, such as ">f4".
    """

    key: str
    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        try:
            is_number = np.dtype(self.dtype).kind in "biufc"
        except TypeError:
            is_number = False
        if not is_number or self.dtype is None:
            raise OptionError(
                option="dtype", value=self.dtype, expected="a numeric dtype such as 'float32'"
            )
        if not isinstance(self.shape, tuple) or not all(
            isinstance(side, (int, np.integer)) and side >= 0 for side in self.shape
        ):
            raise OptionError(
                option="shape", value=self.shape, expected="a tuple of lengths such as () or (3, 4)"
            )

    def requests(self) -> dict[str, ColumnRequest]:
        return {self.key: ColumnRequest(("bytes",), ())}

    def values(
        self, name: str, columns: Mapping[str, Column], positions: Int64Array
    ) -> dict[str, Column]:
        column = columns[self.key]
        assert isinstance(column, BytesArray)
        stored = np.dtype(self.dtype)
        if stored.byteorder != ">":
            stored = stored.newbyteorder("<")
        size = math.prod(self.shape) * stored.itemsize
        lengths = column.lengths
        if (lengths != size).any():
            row = int(np.argmax(lengths != size))
            raise CorruptDataError(
                Defect.FEATURE_SHAPE,
                f"feature {self.key!r} has the wrong size",
                found=_bytes(int(lengths[row])),
                expected=f"{_bytes(size)} for shape {self.shape} of {np.dtype(self.dtype).name}",
                feature=self.key,
                record=row,
            )
        numbers = _in_place(column.packed().buffer, stored).reshape(len(column), *self.shape)
        return {name: numbers}


def _in_place(memory: npt.NDArray[np.uint8], stored: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the numbers in native byte order, without a copy if possible."""
    if stored.kind == "b":
        return memory.astype(np.bool_)
    if memory.ctypes.data % stored.alignment:  # unaligned arrays break C code
        memory = memory.copy()
    native: npt.NDArray[Any] = memory.view(stored).astype(stored.newbyteorder("="), copy=False)
    return native


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
