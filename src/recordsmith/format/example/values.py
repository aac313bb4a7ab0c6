"""Arrays that NumPy lacks: bytes (`BytesArray`) and lists of unequal length (`RaggedArray`).

Both are flat memory plus offsets, as in Arrow and TensorFlow's RaggedTensor. Python objects are
created only for the values that are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel import payloads
from recordsmith.support.buffers import BytesLike, Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError

_NARROWED_BYTES = 16  # compared for all values at once; longer values are then compared one by one


class BytesArray:
    """An array of byte strings over one buffer.

    buffer: uint8, (bytes,): all values, end to end.
    offsets: int64, (value_count + 1,): value i is buffer[offsets[i]:offsets[i + 1]].
    shape: as in ndarray, with values in C order.

    An index of the first axis gives bytes, or a BytesArray if more axes remain; a slice, a boolean
    mask or an array of integers selects along the first axis. The memory is shared.
    `==` with bytes, a str, or a BytesArray of the same shape gives a boolean array; with anything
    else False.

    Example:
        >>> BytesArray.from_values(["a", b"bc"])[1]
        b'bc'
    """

    __slots__ = ("_numbers", "buffer", "offsets")

    def __init__(
        self, buffer: BytesLike, offsets: Int64Array, numbers: Int64Array | None = None
    ) -> None:
        """`numbers`: the index of the value at each position; None means all in order."""
        if numbers is None:
            buffer = np.frombuffer(buffer, np.uint8)
            offsets = _ascending("offsets", offsets, len(buffer))
            numbers = np.arange(len(offsets) - 1)
        self.buffer: npt.NDArray[np.uint8] = buffer  # type: ignore[assignment]
        self.offsets = offsets
        self._numbers = numbers

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesArray:
        """Make an array from bytes, bytearray, memoryview, or str, which becomes UTF-8.

        Raises:
            OptionError: a value has another type.
        """
        pieces: list[Any] = values if isinstance(values, list) else list(values)
        if set(map(type, pieces)) != {bytes}:
            pieces = [_as_bytes(piece, place) for place, piece in enumerate(pieces)]
        joined = bytearray().join(pieces)
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        return cls(joined, offsets_from_lengths(lengths))

    @property
    def shape(self) -> tuple[int, ...]:
        return self._numbers.shape

    @property
    def lengths(self) -> Int64Array:
        """int64, shape of this array: the length of each value in bytes."""
        return self.offsets[self._numbers + 1] - self.offsets[self._numbers]

    def spans(self) -> tuple[Int64Array, Int64Array]:
        """Return where each value begins and ends in the buffer: int64, (value_count,), twice."""
        numbers = self._numbers.ravel()
        return self.offsets[numbers], self.offsets[numbers + 1]

    def copy_padded(self, counts: Int64Array, out: npt.NDArray[np.uint8]) -> None:
        """Copy values of one length to rows, `counts` of them to each, and zeros after them.

        out: (rows, width, length).
        """
        payloads.copy_padded(self.buffer, self.spans()[0], counts, out)

    def hashes(self) -> npt.NDArray[np.uint64]:
        """Return uint64, shape of this array: the XXH64 of each value."""
        starts = np.ascontiguousarray(self.offsets[self._numbers.ravel()])
        return hash_spans(self.buffer, starts, self.lengths.ravel()).reshape(self.shape)

    def reshape(self, *shape: int) -> BytesArray:
        """Return the same values in another shape."""
        return BytesArray(self.buffer, self.offsets, self._numbers.reshape(*shape))

    def cleared(self, places: npt.NDArray[np.bool_]) -> BytesArray:
        """Return the same values, but empty ones at the places that are True; same shape."""
        offsets = np.append(self.offsets, self.offsets[-1])
        return BytesArray(self.buffer, offsets, np.where(places, len(offsets) - 2, self._numbers))

    def packed(self) -> BytesArray:
        """Return the values, one-dimensional, with a buffer of exactly their bytes.

        The memory is shared if they are adjacent.
        """
        numbers = self._numbers.ravel()
        if not len(numbers):
            return BytesArray(b"", np.zeros(1, np.int64))
        first = int(numbers[0])
        if np.array_equal(numbers, np.arange(first, first + len(numbers))):
            offsets = self.offsets[first : first + len(numbers) + 1]
            return BytesArray(self.buffer[offsets[0] : offsets[-1]], offsets - offsets[0])
        joined = bytearray().join(self.views())
        return BytesArray(joined, offsets_from_lengths(self.lengths.ravel()))

    def tolist(self) -> list[Any]:
        """Convert to nested lists of bytes, as deep as the shape."""
        return self.to_numpy().tolist()  # type: ignore[no-any-return]

    def to_numpy(self) -> npt.NDArray[np.object_]:
        """Convert to an ndarray of bytes objects with this array's shape."""
        array = np.empty(self._numbers.size, object)
        for place, view in enumerate(self.views()):
            array[place] = bytes(view)
        return array.reshape(self.shape)

    def views(self) -> Iterator[memoryview]:
        """Yield a view of each value, in C order."""
        numbers, memory = self._numbers.ravel(), memoryview(self.buffer)  # type: ignore[arg-type]
        starts, stops = self.offsets[numbers].tolist(), self.offsets[numbers + 1].tolist()
        for start, stop in zip(starts, stops, strict=True):
            yield memory[start:stop]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Convert like `to_numpy`: NumPy's bytes type would lose trailing zeros."""
        if copy is False:
            raise ValueError("a BytesArray cannot be converted to an ndarray without a copy")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (str, bytes)):
            return self._equal_to(bytes(_as_bytes(other, 0)))
        if isinstance(other, BytesArray) and self.shape == other.shape:
            equal = (a == b for a, b in zip(self.views(), other.views(), strict=True))
        else:
            return NotImplemented
        return np.fromiter(equal, bool, self._numbers.size).reshape(self.shape)

    def _equal_to(self, value: bytes) -> npt.NDArray[np.bool_]:
        """Compare all values with some bytes, byte by byte, narrowing the candidates."""
        numbers = self._numbers.ravel()
        equal: npt.NDArray[np.bool_] = self.lengths.ravel() == len(value)
        candidates = np.flatnonzero(equal)
        starts = self.offsets[numbers[candidates]]
        for place, byte in enumerate(value[:_NARROWED_BYTES]):
            alike = self.buffer[starts + place] == byte
            starts, candidates = starts[alike], candidates[alike]
        if len(value) > _NARROWED_BYTES:
            memory = memoryview(self.buffer)  # type: ignore[arg-type]
            alike = np.fromiter(
                (memory[at : at + len(value)] == value for at in starts.tolist()), bool
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
        if type(index) is int and self._numbers.ndim == 1:
            number = self._numbers.item(index)  # a Python integer, in half the time
            return self.buffer[self.offsets.item(number) : self.offsets.item(number + 1)].tobytes()
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
    """An array of rows of unequal length.

    values: ndarray or BytesArray, (value_count, ...), or a RaggedArray of value_count rows: the
        values of all rows, end to end. Further axes, as those of the steps of a SequenceExample,
        belong to each value.
    row_splits: int64, (row_count + 1,), from 0 to value_count: row i is
        values[row_splits[i]:row_splits[i + 1]].

    An index gives the values of a row; a slice, a boolean mask or an array of integers selects
    rows. A slice with step 1 shares the memory; other selections copy numbers, but not bytes.
    `==` with a RaggedArray with the same number of rows gives a boolean array, one value for each
    row; with anything else False.

    Example:
        >>> RaggedArray(np.array([1, 2, 3]), np.array([0, 1, 3])).tolist()
        [[1], [2, 3]]
    """

    __slots__ = ("row_splits", "values")

    values: Any  # as is said above: its users know which

    def __init__(
        self, values: npt.NDArray[Any] | BytesArray | RaggedArray, row_splits: Int64Array
    ) -> None:
        if not isinstance(values, (np.ndarray, BytesArray, RaggedArray)):
            raise OptionError(
                f"values is a {type(values).__name__}",
                option="values",
                expected="an ndarray, a BytesArray or a RaggedArray",
            )
        if not isinstance(values, RaggedArray) and not values.shape:
            raise OptionError("values has no axis", option="values", expected="an axis of values")
        self.values = values
        self.row_splits = _ascending("row_splits", row_splits, len(values))
        if self.row_splits[0] != 0 or self.row_splits[-1] != len(values):
            raise OptionError(
                f"row_splits runs from {self.row_splits[0]} to {self.row_splits[-1]}",
                option="row_splits",
                expected=f"0 to {len(values)}, the number of values",
            )

    @property
    def lengths(self) -> Int64Array:
        """int64, (row_count,): the number of values of each row."""
        return np.diff(self.row_splits)

    def tolist(self) -> list[list[Any]]:
        """Convert to a list of values for each row."""
        values = self.values.tolist()
        return [values[start:stop] for start, stop in pairwise(self.row_splits.tolist())]

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, RaggedArray) or len(self) != len(other):
            return NotImplemented
        equal = self.lengths == other.lengths
        rows = np.repeat(np.flatnonzero(equal), self.lengths[equal])
        mine, others = self[equal].values, other[equal].values
        if getattr(mine, "shape", ())[1:] != getattr(others, "shape", ())[1:]:
            return self.lengths + other.lengths == 0
        differ = np.asarray(mine != others)
        equal[rows[differ.any(axis=tuple(range(1, differ.ndim)))]] = False
        return equal

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ~equal

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice | npt.NDArray[Any] | list[int]) -> RaggedArray: ...
    def __getitem__(self, index: Any) -> Any:
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
        """Select rows in any order, as NumPy does along an axis."""
        rows = np.arange(len(self))[index]
        if rows.ndim != 1:
            raise IndexError(f"the index of rows has shape {index.shape}; expected one axis")
        row_splits = offsets_from_lengths(self.lengths[rows])
        shifts = self.row_splits[rows] - row_splits[:-1]  # how far each row moves
        places = np.arange(row_splits[-1]) + np.repeat(shifts, np.diff(row_splits))
        return RaggedArray(self.values[places], row_splits)

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"RaggedArray({_count(len(self), 'row')}, {_count(len(self.values), 'value')})"


Column: TypeAlias = npt.NDArray[Any] | BytesArray | RaggedArray


def hash_spans(
    buffer: BytesLike, starts: Int64Array, lengths: Int64Array
) -> npt.NDArray[np.uint64]:
    """Return uint64, (count,): the XXH64 of each buffer[starts[i]:starts[i] + lengths[i]]."""
    hashes = np.empty(len(starts), np.uint64)
    payloads.hash_spans(buffer, starts, lengths, hashes)
    return hashes


def _as_bytes(value: Any, place: int) -> bytes | bytearray | memoryview:
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise OptionError(
                f"value {place} contains surrogates", value=value, expected="Unicode text"
            ) from None
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, memoryview):
        return value.tobytes()
    raise OptionError(f"value {place} is {value!r:.50}", value=value, expected="bytes or str")


def _ascending(name: str, numbers: Any, limit: int) -> Int64Array:
    """Check that numbers ascend within 0 to `limit`, and convert them to int64."""
    array = np.asarray(numbers)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise OptionError(
            f"{name} has dtype {array.dtype} and shape {array.shape}",
            option=name,
            expected="integers, one more than rows",
        )
    array = np.ascontiguousarray(array, np.int64)
    if array[0] < 0 or array[-1] > limit or (array[1:] < array[:-1]).any():
        raise OptionError(
            f"{name} is invalid", option=name, expected=f"ascending from 0 to {limit}"
        )
    return array


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
