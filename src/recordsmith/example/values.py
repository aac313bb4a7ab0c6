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

from recordsmith.buffers import BytesLike, Int64Array
from recordsmith.errors import OptionError
from recordsmith.example.kernel import payloads

_NARROWED_BYTES = 16  # compared over all values at once; what is longer, one by one after that


class BytesArray:
    """An array of byte strings over one buffer.

    buffer: uint8, (bytes,): all values, end to end.
    offsets: int64, (value_count + 1,): value i is buffer[offsets[i]:offsets[i + 1]].
    shape: as of an ndarray; values are counted in C order.

    An index of the first axis gives bytes, or a BytesArray where more axes are left; a slice, a
    boolean mask or an array of integers selects along the first axis. The memory is shared.
    Compared with bytes, a str, or a BytesArray of the same shape it gives an array of bools.
    """

    __slots__ = ("_numbers", "buffer", "offsets")

    def __init__(
        self, buffer: BytesLike, offsets: Int64Array, numbers: Int64Array | None = None
    ) -> None:
        """`numbers`: which value stands where; all in order, if not told."""
        if numbers is None:
            buffer = np.frombuffer(buffer, np.uint8)
            offsets = _ascending("offsets", offsets, len(buffer))
            numbers = np.arange(len(offsets) - 1)
        self.buffer: npt.NDArray[np.uint8] = buffer  # type: ignore[assignment]
        self.offsets = offsets
        self._numbers = numbers

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesArray:
        """Make one of str, which become UTF-8, and bytes, bytearray or memoryview.

        Raises:
            OptionError: a value is something else.
        """
        pieces: list[Any] = values if isinstance(values, list) else list(values)
        if set(map(type, pieces)) != {bytes}:
            pieces = [_as_bytes(piece, place) for place, piece in enumerate(pieces)]
        joined = bytearray().join(pieces)
        return cls(joined, _offsets(np.fromiter(map(len, pieces), np.int64, len(pieces))))

    @property
    def shape(self) -> tuple[int, ...]:
        return self._numbers.shape

    @property
    def lengths(self) -> Int64Array:
        """int64, shape of this array: the length of each value in bytes."""
        return self.offsets[self._numbers + 1] - self.offsets[self._numbers]

    def hashes(self) -> npt.NDArray[np.uint64]:
        """uint64, shape of this array: the XXH64 of each value."""
        starts = np.ascontiguousarray(self.offsets[self._numbers.ravel()])
        return hash_spans(self.buffer, starts, self.lengths.ravel()).reshape(self.shape)

    def reshape(self, *shape: int) -> BytesArray:
        """The same values in another shape."""
        return BytesArray(self.buffer, self.offsets, self._numbers.reshape(*shape))

    def packed(self) -> BytesArray:
        """The same values, one-dimensional, with a buffer that holds them and nothing else.

        The memory is shared where they are neighbours.
        """
        numbers = self._numbers.ravel()
        first = int(numbers[0]) if len(numbers) else 0
        if np.array_equal(numbers, np.arange(first, first + len(numbers))):
            offsets = self.offsets[first : first + len(numbers) + 1]
            return BytesArray(self.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])
        joined = bytearray().join(self.views())
        return BytesArray(joined, _offsets(self.lengths.ravel()))

    def tolist(self) -> list[Any]:
        """Nested lists of bytes, as deep as the shape."""
        return self.to_numpy().tolist()  # type: ignore[no-any-return]

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """An ndarray of bytes objects with this array's shape."""
        array = np.empty(self._numbers.size, object)
        for place, view in enumerate(self.views()):
            array[place] = bytes(view)
        return array.reshape(self.shape)

    def views(self) -> Iterator[memoryview]:
        """The memory of each value, in C order, without copying it."""
        numbers, memory = self._numbers.ravel(), memoryview(self.buffer)  # type: ignore[arg-type]
        starts, stops = self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist()
        for start, stop in zip(starts, stops, strict=True):
            yield memory[start:stop]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """As `to_numpy`: NumPy's own bytes would lose zeros at the end of a value."""
        if copy is False:
            raise ValueError("a BytesArray becomes an ndarray by copying only")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (str, bytes)):
            return self._equal_to(bytes(_as_bytes(other, 0)))
        if isinstance(other, BytesArray):
            if self.shape != other.shape:
                raise OptionError(f"shapes {self.shape} and {other.shape} cannot be compared")
            equal = (a == b for a, b in zip(self.views(), other.views(), strict=True))
        else:
            return NotImplemented
        return np.fromiter(equal, bool, self._numbers.size).reshape(self.shape)

    def _equal_to(self, wanted: bytes) -> npt.NDArray[np.bool_]:
        """Which values these bytes are: byte after byte, over those that may still be it."""
        numbers = self._numbers.ravel()
        equal: npt.NDArray[np.bool_] = self.offsets[numbers + 1] - self.offsets[numbers] == len(
            wanted
        )
        candidates = np.flatnonzero(equal)
        starts = self.offsets[numbers[candidates]]
        for place, byte in enumerate(wanted[:_NARROWED_BYTES]):
            alike = self.buffer[starts + place] == byte
            starts, candidates = starts[alike], candidates[alike]
        if len(wanted) > _NARROWED_BYTES:
            memory = memoryview(self.buffer)  # type: ignore[arg-type]
            alike = np.fromiter(
                (memory[at : at + len(wanted)] == wanted for at in starts.tolist()), bool
            )
            candidates = candidates[alike]
        equal[:] = False
        equal[candidates] = True
        return equal.reshape(self.shape)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ~equal

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        chosen = self._numbers[index]
        if isinstance(chosen, np.ndarray):
            return BytesArray(self.buffer, self.offsets, chosen)
        return self.buffer[self.offsets[chosen] : self.offsets[chosen + 1]].tobytes()

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"BytesArray(shape={self.shape}, {_count(int(self.lengths.sum()), 'byte')})"


class RaggedArray:
    """Rows of unequal length.

    An index gives the values of a row; a slice, a boolean mask or an array of integers selects
    rows. The memory of numbers is shared by a slice with step 1, that of bytes always.

    values: int64 or float32 ndarray, or BytesArray, (value_count,): all rows, end to end.
    row_splits: int64, (row_count + 1,), from 0 to value_count: row i is
        values[row_splits[i]:row_splits[i + 1]].
    """

    __slots__ = ("row_splits", "values")

    def __init__(self, values: npt.NDArray[Any] | BytesArray, row_splits: Int64Array) -> None:
        if not isinstance(values, (np.ndarray, BytesArray)):
            raise OptionError(
                f"values is a {type(values).__name__}; expected an ndarray or a BytesArray"
            )
        if len(values.shape) != 1:
            raise OptionError(f"values has shape {values.shape}; expected one axis: all rows")
        self.values = values
        self.row_splits = _ascending("row_splits", row_splits, len(values))
        if self.row_splits[0] != 0 or self.row_splits[-1] != len(values):
            raise OptionError(
                f"row_splits go from {self.row_splits[0]} to {self.row_splits[-1]}; expected 0 to "
                f"{len(values)}, the number of values"
            )

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
    def __getitem__(self, index: slice | npt.NDArray[Any] | list[int]) -> RaggedArray: ...
    def __getitem__(self, index: Any) -> npt.NDArray[Any] | BytesArray | RaggedArray:
        if isinstance(index, (np.ndarray, list)):
            return self._chosen(np.asarray(index, None if len(index) else np.int64))
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self._chosen(np.arange(start, stop, step))
            splits = self.row_splits[start : max(start, stop) + 1]
            return RaggedArray(self.values[splits[0] : splits[-1]], splits - splits[0])
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        index %= len(self)
        return self.values[self.row_splits[index] : self.row_splits[index + 1]]

    def _chosen(self, index: npt.NDArray[Any]) -> RaggedArray:
        """Rows in any order, as NumPy selects along an axis."""
        rows = np.arange(len(self))[index]
        if rows.ndim != 1:
            raise IndexError(
                f"rows are chosen by an array of shape {index.shape}; expected one axis"
            )
        row_splits = _offsets(self.lengths[rows])
        shifts = self.row_splits[rows] - row_splits[:-1]  # by how far each row moves
        places = np.arange(row_splits[-1]) + np.repeat(shifts, np.diff(row_splits))
        return RaggedArray(self.values[places], row_splits)

    def __iter__(self) -> Iterator[npt.NDArray[Any] | BytesArray]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"RaggedArray({_count(len(self), 'row')}, {_count(len(self.values), 'value')})"


Column: TypeAlias = npt.NDArray[Any] | BytesArray | RaggedArray


def hash_spans(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> npt.NDArray[np.uint64]:
    """uint64, (count,): the XXH64 of each buffer[starts[i]:starts[i] + lengths[i]]."""
    hashes = np.empty(len(starts), np.uint64)
    payloads.hash_spans(buffer, starts, lengths, hashes)
    return hashes


def _as_bytes(value: Any, place: int) -> bytes | bytearray | memoryview:
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise OptionError(f"value {place} has surrogates, which are no text") from None
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, memoryview):
        return value.tobytes()
    raise OptionError(f"value {place} is {value!r:.50}; expected bytes or str")


def _offsets(lengths: Int64Array) -> Int64Array:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _ascending(name: str, numbers: Any, limit: int) -> Int64Array:
    """`numbers` as int64, which begin at or after 0, never fall, and end within `limit`."""
    array = np.asarray(numbers)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise OptionError(
            f"{name} is an array of {array.dtype}, shape {array.shape}; expected integers, one "
            "more than there are rows"
        )
    array = np.ascontiguousarray(array, np.int64)
    if array[0] < 0 or array[-1] > limit or (array[1:] < array[:-1]).any():
        raise OptionError(f"{name} fall, or do not lie within 0 and {limit}")
    return array


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
