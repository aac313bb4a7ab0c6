"""The two kinds of column that NumPy has no array for: lists of unequal length, and bytes.

Both are flat memory plus offsets, in the layout that Arrow and TensorFlow's RaggedTensor use.
Python objects are made only for what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array


class BytesArray:
    """An array of byte strings over one buffer.

    buffer: uint8, (bytes,): all values, end to end.
    offsets: int64, (value_count + 1,): value i is buffer[offsets[i]:offsets[i + 1]].
    shape: as of an ndarray; values are counted in C order.

    An index of the first axis gives bytes, or a BytesArray where more axes are left; a slice, a
    boolean mask or an array of integers selects along the first axis. The memory is shared.
    """

    __slots__ = ("_numbers", "buffer", "offsets")

    def __init__(
        self,
        buffer: npt.NDArray[np.uint8],
        offsets: Int64Array,
        numbers: Int64Array | None = None,
    ) -> None:
        self.buffer = buffer
        self.offsets = offsets
        # which value stands where; its shape is the shape of this array
        self._numbers = np.arange(len(offsets) - 1) if numbers is None else numbers

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesArray:
        """Make one of Python objects; str becomes UTF-8."""
        pieces = [
            value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
            for value in values
        ]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        return cls(np.frombuffer(bytearray(b"".join(pieces)), np.uint8), offsets)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._numbers.shape

    @property
    def lengths(self) -> Int64Array:
        """int64, shape of this array: the length of each value in bytes."""
        return self.offsets[self._numbers + 1] - self.offsets[self._numbers]

    def reshape(self, *shape: int) -> BytesArray:
        """The same values in another shape."""
        return BytesArray(self.buffer, self.offsets, self._numbers.reshape(*shape))

    def packed(self) -> BytesArray:
        """The same values, one-dimensional, with a buffer that holds them and nothing else."""
        numbers = self._numbers.ravel()
        if len(numbers) == len(self.offsets) - 1 and np.array_equal(
            numbers, np.arange(len(numbers))
        ):
            return BytesArray(self.buffer, self.offsets)
        return BytesArray.from_values(self._value(number) for number in numbers.tolist())

    def tolist(self) -> list[Any]:
        """Nested lists of bytes, as deep as the shape."""
        return self.to_numpy().tolist()  # type: ignore[no-any-return]

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """An ndarray of bytes objects with this array's shape."""
        array = np.empty(self._numbers.size, object)
        for place, number in enumerate(self._numbers.ravel().tolist()):
            array[place] = self._value(number)
        return array.reshape(self.shape)

    def _value(self, number: int) -> bytes:
        return self.buffer[self.offsets[number] : self.offsets[number + 1]].tobytes()

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        chosen = self._numbers[index]
        if isinstance(chosen, np.ndarray):
            return BytesArray(self.buffer, self.offsets, chosen)
        return self._value(int(chosen))

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"BytesArray(shape={self.shape}, {len(self.buffer)} bytes)"


class Ragged:
    """Rows of unequal length.

    values: int64 or float32 ndarray, or BytesArray, (value_count,): all rows, end to end.
    row_splits: int64, (row_count + 1,): row i is values[row_splits[i]:row_splits[i + 1]].
    """

    __slots__ = ("row_splits", "values")

    def __init__(self, values: npt.NDArray[Any] | BytesArray, row_splits: Int64Array) -> None:
        self.values = values
        self.row_splits = row_splits

    @property
    def lengths(self) -> Int64Array:
        """int64, (row_count,): how many values each row has."""
        return np.diff(self.row_splits)

    def tolist(self) -> list[list[Any]]:
        """A list of values for each row."""
        values = self.values.tolist()
        return [values[start:stop] for start, stop in pairwise(self.row_splits.tolist())]

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    @overload
    def __getitem__(self, index: int) -> npt.NDArray[Any] | BytesArray: ...
    @overload
    def __getitem__(self, index: slice) -> Ragged: ...
    def __getitem__(self, index: int | slice) -> npt.NDArray[Any] | BytesArray | Ragged:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise IndexError("rows of unequal length can only be sliced with step 1")
            splits = self.row_splits[start : max(start, stop) + 1]
            return Ragged(self.values[splits[0] : splits[-1]], splits - splits[0])
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        index %= len(self)
        return self.values[self.row_splits[index] : self.row_splits[index + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[Any] | BytesArray]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {len(self.values)} values)"


Column: TypeAlias = npt.NDArray[Any] | BytesArray | Ragged
