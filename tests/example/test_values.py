"""BytesArray and Ragged: what NumPy has no array for, indexed like one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.example import BytesArray, Ragged

VALUES = [b"a", b"", b"ccc", "ö".encode(), b"\x00e\x00", b"ff"]

byte_lists = st.lists(st.binary(max_size=6), max_size=10)
ragged_rows = st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=8)


def object_array(values: list[bytes], *shape: int) -> Any:
    """The same in NumPy, to compare with."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape or (len(values),))


def ragged(rows: list[list[int]]) -> Ragged:
    values = np.array([value for row in rows for value in row], np.int64)
    return Ragged(values, np.cumsum([0, *map(len, rows)]))


@given(values=byte_lists)
def test_bytes_come_back(values: list[bytes]) -> None:
    array = BytesArray.from_values(values)
    assert array.tolist() == list(array) == values
    assert array.shape == (len(values),)
    assert len(array) == len(values)
    assert array.lengths.tolist() == list(map(len, values))
    assert array.to_numpy().tolist() == values
    assert array.packed().tolist() == values


def test_text_becomes_utf8() -> None:
    assert BytesArray.from_values(["ö", b"x", "\udcff"]).tolist() == ["ö".encode(), b"x", b"\xff"]


@given(values=byte_lists, data=st.data())
def test_indexed_as_numpy_does(values: list[bytes], data: Any) -> None:
    array, expected = BytesArray.from_values(values), object_array(values)
    bound = st.integers(-12, 12) | st.none()
    index = slice(data.draw(bound), data.draw(bound), data.draw(st.sampled_from([None, 1, 2, -1])))
    assert array[index].tolist() == expected[index].tolist()
    assert array[index].packed().tolist() == expected[index].tolist()
    mask = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool
    )
    assert array[mask].tolist() == expected[mask].tolist()
    assert array[mask].packed().tolist() == expected[mask].tolist()
    if values:
        chosen = np.array(data.draw(st.lists(st.integers(-len(values), len(values) - 1))), int)
        assert array[chosen].tolist() == expected[chosen].tolist()
        assert array[chosen].lengths.tolist() == [len(v) for v in expected[chosen]]
        place = data.draw(st.integers(-len(values), len(values) - 1))
        assert array[place] == expected[place]
        assert isinstance(array[place], bytes)


def test_more_axes() -> None:
    array, expected = BytesArray.from_values(VALUES).reshape(2, 3), object_array(VALUES, 2, 3)
    assert array.shape == (2, 3)
    assert len(array) == 2
    assert array.tolist() == expected.tolist()
    assert array[1].tolist() == expected[1].tolist()
    assert array[1, 2] == expected[1, 2]
    assert array[:, 1:].tolist() == expected[:, 1:].tolist()
    assert array[:, 1:].packed().tolist() == expected[:, 1:].ravel().tolist()
    assert array.lengths.tolist() == [[1, 0, 3], [2, 3, 2]]
    assert array.reshape(-1).tolist() == VALUES
    assert repr(array) == "BytesArray(shape=(2, 3), 11 bytes)"


def test_packed_holds_the_values_and_nothing_else() -> None:
    part = BytesArray.from_values(VALUES)[np.array([5, 0, 0])]
    packed = part.packed()
    assert packed.buffer.tobytes() == b"ffaa"
    assert packed.offsets.tolist() == [0, 2, 3, 4]


def test_memory_is_shared() -> None:
    array = BytesArray.from_values([b"abc", b"def"])
    part = array[1:]
    array.buffer[3] = ord("X")
    assert part.tolist() == [b"Xef"]


@pytest.mark.parametrize("index", [6, -7, 100])
def test_bytes_outside(index: int) -> None:
    with pytest.raises(IndexError):
        BytesArray.from_values(VALUES)[index]


@given(rows=ragged_rows, data=st.data())
def test_rows_of_unequal_length(rows: list[list[int]], data: Any) -> None:
    array = ragged(rows)
    assert array.tolist() == rows
    assert [row.tolist() for row in array] == rows
    assert len(array) == len(rows)
    assert array.lengths.tolist() == list(map(len, rows))
    bound = st.integers(-10, 10) | st.none()
    part = array[data.draw(bound) : data.draw(bound)]
    assert isinstance(part, Ragged)
    assert part.row_splits[0] == 0
    for index in range(-len(rows), len(rows)):
        assert array[index].tolist() == rows[index]


@given(rows=ragged_rows, start=st.integers(-10, 10), stop=st.integers(-10, 10))
def test_slices_of_rows(rows: list[list[int]], start: int, stop: int) -> None:
    assert ragged(rows)[start:stop].tolist() == rows[start:stop]
    assert ragged(rows)[start:][:stop].tolist() == rows[start:][:stop]


def test_rows_of_bytes() -> None:
    array = Ragged(BytesArray.from_values(VALUES), np.array([0, 2, 2, 6]))
    assert array.tolist() == [VALUES[:2], [], VALUES[2:]]
    assert array[1:].tolist() == [[], VALUES[2:]]
    assert array[-1].tolist() == VALUES[2:]
    assert repr(array) == "Ragged(3 rows, 6 values)"


def test_rows_outside() -> None:
    array = ragged([[1], [2, 3]])
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"row {index} of 2"):
            array[index]
    with pytest.raises(IndexError, match="step"):
        array[::2]
