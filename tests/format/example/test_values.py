"""BytesArray and RaggedArray are indexed like NumPy arrays."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.support.errors import OptionError

VALUES = [b"a", b"", b"ccc", "ö".encode(), b"\x00e\x00", b"ff"]

byte_lists = st.lists(st.binary(max_size=6), max_size=10)
ragged_rows = st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=8)


def object_array(values: list[bytes], *shape: int) -> Any:
    """The same in NumPy, to compare with."""
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape or (len(values),))


def ragged(rows: list[list[int]]) -> RaggedArray:
    values = np.array([value for row in rows for value in row], np.int64)
    return RaggedArray(values, np.cumsum([0, *map(len, rows)]))


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
    assert repr(array[:1, :1]) == "BytesArray(shape=(1, 1), 1 byte)"


def test_packed_has_exactly_the_values() -> None:
    part = BytesArray.from_values(VALUES)[np.array([5, 0, 0])]
    packed = part.packed()
    assert packed.buffer.tobytes() == b"ffaa"
    assert packed.offsets.tolist() == [0, 2, 3, 4]


@given(values=byte_lists, start=st.integers(0, 10), stop=st.integers(0, 10))
def test_neighbours_are_packed_without_copying(values: list[bytes], start: int, stop: int) -> None:
    array = BytesArray.from_values([b"before", *values, b"after"])
    inner = BytesArray(array.buffer, array.offsets[1:-1])  # begins after the buffer, ends before
    for part, expected in ((inner, values), (inner[start:stop], values[start:stop])):
        packed = part.packed()
        assert packed.tolist() == expected
        assert packed.buffer.tobytes() == b"".join(expected)
        assert packed.offsets.tolist() == [0, *accumulate(map(len, expected))]
        assert np.shares_memory(packed.buffer, array.buffer) or not packed.buffer.size


@pytest.mark.parametrize("value", [3, None, 0.5, [b"a"], np.int64(3)])
def test_only_bytes_and_text_are_values(value: Any) -> None:
    with pytest.raises(OptionError, match="value 1") as caught:
        BytesArray.from_values([b"a", value])
    assert (caught.value.value, caught.value.expected) == (repr(value), "bytes or str")


def test_conversion_to_an_ndarray_keeps_zeros() -> None:
    array = BytesArray.from_values([b"a\0", b"\0\0"])
    assert np.asarray(array).dtype == object
    assert np.asarray(array).tolist() == [b"a\0", b"\0\0"]
    assert np.array(array, object).tolist() == [b"a\0", b"\0\0"]
    assert np.asarray(array.reshape(2, 1)).shape == (2, 1)
    assert np.asarray(BytesArray.from_values(["a"]), "S3").tolist() == [b"a"]


@given(values=byte_lists, other=st.binary(max_size=2))
def test_compared_value_by_value(values: list[bytes], other: bytes) -> None:
    array = BytesArray.from_values(values)
    equal = array == other
    assert equal.dtype == bool
    assert equal.tolist() == [value == other for value in values]
    assert (array != other).tolist() == [value != other for value in values]
    assert (array == BytesArray.from_values(values)).all()
    assert (array[::-1] == BytesArray.from_values(values[::-1])).all()


_ROWS = st.lists(st.lists(st.integers(0, 1), max_size=2), max_size=4)


@pytest.mark.parametrize("kind", [int, float, bytes])
@given(rows=_ROWS, other=_ROWS)
def test_rows_are_compared_as_lists(
    kind: Any, rows: list[list[int]], other: list[list[int]]
) -> None:
    arrays = []
    for lists in (rows, other):
        values: Any = [b"%d" % value if kind is bytes else kind(value) for value in chain(*lists)]
        values = BytesArray.from_values(values) if kind is bytes else np.array(values, kind)
        arrays.append(RaggedArray(values, np.cumsum([0, *map(len, lists)])))
    a, b = arrays
    if len(rows) != len(other):
        assert (a == b) is False
        assert (a != b) is True
        return
    expected = [one == another for one, another in zip(rows, other, strict=True)]
    assert ((a == b).dtype, (a == b).tolist()) == (bool, expected)
    assert (a != b).tolist() == [not is_equal for is_equal in expected]
    assert (a == 5) is False
    with pytest.raises(TypeError, match="hash"):
        hash(a)


def test_long_values_are_compared_to_their_end() -> None:
    values = [b"x" * 40, b"x" * 39 + b"y", b"y" + b"x" * 39, b"x" * 41, b"x" * 40]
    array = BytesArray.from_values(values)
    assert (array == b"x" * 40).tolist() == [True, False, False, False, True]
    assert (array[::-2] == b"x" * 40).tolist() == [True, False, True]
    assert (array[1:5].reshape(2, 2) == b"x" * 40).tolist() == [[False, False], [False, True]]


def test_compared_with_other_things() -> None:
    array = BytesArray.from_values(["ö", "o", "o\0", ""]).reshape(2, 2)
    assert (array == "ö").tolist() == [[True, False], [False, False]]
    assert (array == "o").tolist() == [[False, True], [False, False]]
    assert (array == 5) is False
    assert (array != 5) is True
    assert (array == array.reshape(-1)) is False
    assert (array != array.reshape(-1)) is True
    with pytest.raises(TypeError, match="hash"):
        hash(array)


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 1], [2, 1], [], [0.0, 1.0], [[0], [1]]])
def test_offsets_lie_in_the_buffer(offsets: Any) -> None:
    with pytest.raises(OptionError) as caught:
        BytesArray(np.zeros(3, np.uint8), np.array(offsets))
    assert caught.value.option == "offsets"


@given(rows=ragged_rows, data=st.data())
def test_rows_of_unequal_length(rows: list[list[int]], data: Any) -> None:
    array = ragged(rows)
    assert array.tolist() == rows
    assert [row.tolist() for row in array] == rows
    assert len(array) == len(rows)
    assert array.lengths.tolist() == list(map(len, rows))
    bound = st.integers(-10, 10) | st.none()
    part = array[data.draw(bound) : data.draw(bound)]
    assert isinstance(part, RaggedArray)
    assert part.row_splits[0] == 0
    for index in range(-len(rows), len(rows)):
        assert array[index].tolist() == rows[index]


@pytest.mark.parametrize(
    "splits", [[0, 5], [2, 1], [-1, 3], [], [1, 3], [0, 2], [0, 4, 3], [0.0, 3]]
)
def test_splits_go_from_the_first_value_to_the_last(splits: list[Any]) -> None:
    with pytest.raises(OptionError) as caught:
        RaggedArray(np.arange(3), np.array(splits))
    assert caught.value.option == "row_splits"


def test_rows_outside() -> None:
    array = ragged([[1], [2, 3]])
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"row {index} of 2"):
            array[index]
    for rows in ([0, 2], [-3]):
        with pytest.raises(IndexError, match="out of bounds"):
            array[np.array(rows)]
    with pytest.raises(IndexError, match="boolean"):
        array[np.array([True, False, True])]
    with pytest.raises(IndexError, match="integer"):
        array[np.array([0.0])]
    with pytest.raises(IndexError, match=r"\(1, 2\)"):
        array[np.array([[0, 1]])]


@given(rows=ragged_rows, data=st.data())
def test_chosen_rows(rows: list[list[int]], data: Any) -> None:
    """Against a list of rows; the array begins and ends within a longer one."""
    as_bytes = [[b"%d" % value for value in row] for row in rows]
    numbers = ragged([[7, 8], *rows, [9]])[1:-1]
    texts = RaggedArray(BytesArray.from_values([v for row in as_bytes for v in row]),
                        numbers.row_splits)  # fmt: skip
    if rows:
        places = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=12))
        chosen = numbers[np.array(places, np.int64)]
        assert chosen.tolist() == [rows[place] for place in places]
        assert chosen.values.dtype == np.int64
        assert chosen.row_splits.dtype == np.int64
        assert numbers[places].tolist() == chosen.tolist()
        assert texts[np.array(places, np.int64)].tolist() == [as_bytes[place] for place in places]
    is_chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    expected = [row for row, chosen in zip(rows, is_chosen, strict=True) if chosen]
    assert numbers[np.array(is_chosen, bool)].tolist() == expected
    assert texts[np.array(is_chosen, bool)].tolist() == [
        row for row, chosen in zip(as_bytes, is_chosen, strict=True) if chosen
    ]
    bound, step = st.integers(-10, 10) | st.none(), st.sampled_from([None, 1, 2, 3, -1, -2])
    part = slice(data.draw(bound), data.draw(bound), data.draw(step))
    assert numbers[part].tolist() == rows[part]
    assert texts[part].tolist() == as_bytes[part]


def test_hashes_are_xxh64() -> None:
    """Seed 0; the lengths 1, 14 and 222 are of xxhash's own sanity check."""
    sanity = bytearray()
    generator = 2654435761  # as xxhash's own sanity check fills its buffer
    for _ in range(222):
        sanity.append(generator >> 56 & 0xFF)
        generator = generator * 11400714785074694797 & (1 << 64) - 1
    known = {
        b"": 0xEF46DB3751D8E999,
        b"abc": 0x44BC2CF5AD770999,
        b"xxhash": 0x32DD38952C4BC720,
        bytes(sanity[:1]): 0xE934A84ADB052768,
        bytes(sanity[:14]): 0x8282DCC4994E35C8,
        bytes(sanity): 0xB641AE8CB691C174,
    }
    found = BytesArray.from_values(known).hashes()
    assert found.tolist() == list(known.values())
