"""Convert a user's column to an ndarray, a BytesArray or a RaggedArray.

Lists are checked value by value and passed to NumPy only if all values are numbers: NumPy would pad
bytes, cut their trailing zeros, and convert numbers to text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.example.codec import as_array, as_values
from recordsmith.example.values import BytesArray, Column, RaggedArray

_BYTES = (str, bytes, bytearray, memoryview)
_INTEGERS = (int, np.integer, np.bool_)
_NUMBERS = (*_INTEGERS, float, np.floating)
_ROWS = (list, tuple, np.ndarray, BytesArray)
_LIMIT = 2**63


def as_column(column: Any) -> Column:
    """Convert an array of any library, or a sequence with a value or a list for each row.

    Lists of unequal length become a RaggedArray.
    """
    if isinstance(column, (BytesArray, RaggedArray)):
        return column
    if hasattr(column, "__array__"):
        array = as_array(column)
        if array.ndim == 0:
            raise TypeError("the column is a single value; expected one for each row")
        return _from_objects(array) if array.dtype.kind in "OSU" else array
    if isinstance(column, _BYTES) or not isinstance(column, Sequence):
        raise TypeError(
            f"the column is a {type(column).__name__}; expected an array, or a list with a value "
            "for each row"
        )
    return _from_sequence(column, np.arange(len(column)))


def _from_objects(array: npt.NDArray[Any]) -> Column:
    """Convert an array of str, bytes or lists."""
    values = array.ravel().tolist()
    types = set(map(type, values))
    if all(issubclass(kind, _BYTES) for kind in types):
        return BytesArray.from_values(values).reshape(*array.shape)
    rows = np.arange(array.size) // max(1, array.size // len(array))
    if array.ndim == 1 and all(issubclass(kind, _ROWS) for kind in types):
        return _from_rows(values, rows)
    raise _mismatch_error(values, rows, _BYTES)


def _from_sequence(values: Sequence[Any], rows: Int64Array) -> Column:
    """Convert values; `rows` is the row of the column for each of them."""
    types = set(map(type, values))
    if not types:
        return np.empty(0, np.float32)
    if all(issubclass(kind, _ROWS) for kind in types):
        return _from_rows(values, rows)
    if all(issubclass(kind, _BYTES) for kind in types):
        return BytesArray.from_values(values)
    if all(issubclass(kind, _INTEGERS) for kind in types):
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            place = next(i for i, value in enumerate(values) if not -_LIMIT <= int(value) < _LIMIT)
            raise OverflowError(
                f"{values[place]} in row {rows[place]} does not fit int64"
            ) from None
    if all(issubclass(kind, _NUMBERS) for kind in types):
        return np.fromiter(values, np.float64, len(values))
    known = (kinds for kinds in (_ROWS, _BYTES, _NUMBERS) if isinstance(values[0], kinds))
    raise _mismatch_error(values, rows, next(known, ()))


def _from_rows(lists: Sequence[Any], rows: Int64Array) -> Column:
    """Convert a list or an array for each row: to more axes, or a RaggedArray."""
    flat: Any
    if all(isinstance(values, np.ndarray) and values.dtype.kind in "iufb" for values in lists):
        shapes = [values.shape for values in lists]
        flat = np.concatenate([as_values(values, None) for values in lists])
    else:
        lists = [values if isinstance(values, list) else _as_list(values) for values in lists]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        flat = _from_sequence(list(chain.from_iterable(lists)), np.repeat(rows, lengths))
        inner = () if isinstance(flat, RaggedArray) else flat.shape[1:]
        shapes = [(length, *inner) for length in lengths.tolist()]
    if len(set(shapes)) == 1 and not isinstance(flat, RaggedArray):
        return flat.reshape(len(lists), *shapes[0])  # type: ignore[no-any-return]
    if isinstance(flat, RaggedArray) or any(len(shape) != 1 for shape in shapes):
        raise ValueError("nested lists differ in length; only the outer lists, the rows, can")
    return RaggedArray(flat, np.cumsum([0, *(length for (length,) in shapes)]))


def _as_list(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim == 0:
        return [values.item()]
    return list(values) if isinstance(values, tuple) else values.tolist()


def _mismatch_error(values: Sequence[Any], rows: Int64Array, kinds: tuple[type, ...]) -> TypeError:
    """Return the error for the first value that is not one of `kinds`."""
    place = next(i for i, value in enumerate(values) if not isinstance(value, kinds))
    value, first = values[place], values[0]
    others = f", others are {type(first).__name__}" if place else ""
    return TypeError(
        f"row {rows[place]} contains {value!r:.60} ({type(value).__name__}){others}; expected only "
        "ints and floats, or only str and bytes, or lists of these"
    )
