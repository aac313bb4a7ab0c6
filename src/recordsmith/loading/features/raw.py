"""Arrays that are stored as the bytes of their numbers, all of one shape."""

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
from recordsmith.loading.features.contract import Request, ValueFeature


@dataclass(frozen=True)
class Raw(ValueFeature):
    """Arrays from the bytes of their numbers, as `ndarray.tobytes` gives them: (batch, *shape).

    key: the feature's name in the records, where it is one byte string.
    shape: of one record's array, whose numbers lie in C order.
    dtype: of its numbers: "uint8", "float32". They are little-endian; ">f4" says that they are not.
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
            raise OptionError(f"dtype is {self.dtype!r}; expected a type of numbers: 'float32'")
        if not isinstance(self.shape, tuple) or not all(
            isinstance(side, (int, np.integer)) and side >= 0 for side in self.shape
        ):
            raise OptionError(f"shape is {self.shape!r}; expected a tuple of lengths: (), (3, 4)")

    def requests(self) -> dict[str, Request]:
        return {self.key: Request(("bytes",), ())}

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
                f"feature {self.key!r} has {_bytes(int(lengths[row]))}, expected {_bytes(size)}: "
                f"shape {self.shape} of {np.dtype(self.dtype).name}",
                position=row,
            )
        numbers = _in_place(column.packed().buffer, stored).reshape(len(column), *self.shape)
        return {name: numbers}


def _in_place(memory: npt.NDArray[np.uint8], stored: np.dtype[Any]) -> npt.NDArray[Any]:
    """The numbers in this machine's order, without a copy where it is that already."""
    if stored.kind == "b":
        return memory.astype(np.bool_)
    if memory.ctypes.data % stored.alignment:  # what C code cannot read
        memory = memory.copy()
    native: npt.NDArray[Any] = memory.view(stored).astype(stored.newbyteorder("="), copy=False)
    return native


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
