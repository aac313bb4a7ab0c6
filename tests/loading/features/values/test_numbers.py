"""Scalar, Tensor, Ragged and Padded: numbers as they are stored, or in another type."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loading.features.conftest import made
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.loading.features.numbers import as_dtype
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

ROWS = [[3, 1, 4], [], [1], [5, 9]]
int_rows = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), min_size=1, max_size=6)


def test_numbers_of_a_fixed_shape(batch: Any) -> None:
    x = batch(rs.Scalar("k"), [3, -4, 2**62])["x"]
    assert (x.dtype, x.tolist()) == (np.int64, [3, -4, 2**62])
    x = batch(rs.Scalar("k", dtype="int8"), [3, -128])["x"]
    assert (x.dtype, x.tolist()) == (np.int8, [3, -128])
    x = batch(rs.Tensor("k", (2, 3)), np.arange(12, dtype=np.float32).reshape(2, 6) / 4)["x"]
    assert x.dtype == np.float32
    assert x.tolist() == (np.arange(12).reshape(2, 2, 3) / 4).tolist()
    assert batch(rs.Tensor("k", (1,)), [7, 8])["x"].tolist() == [[7], [8]]


def test_a_default_stands_in(batch: Any) -> None:
    assert batch(rs.Scalar("other", default=-1), [0, 0])["x"].tolist() == [-1, -1]
    x = batch(rs.Scalar("other", default=0.5), [0, 0])["x"]
    assert (x.dtype, x.tolist()) == (np.float32, [0.5, 0.5])
    x = batch(rs.Tensor("other", (2,), default=[1, 2]), [0])["x"]
    assert x.tolist() == [[1, 2]]


def loaded(folder: Path, feature: Any, values: list[Any]) -> Any:
    """Like `batch`, of records of which those with None lack the feature."""
    dataset = written(folder, ({} if value is None else {"k": value} for value in values))
    return next(iter(rs.Loader(dataset, {"x": feature}, batch_size=len(values))))


@pytest.mark.parametrize("values", [[3, 2**40, -(2**63)], [0.5, 2.0, -1.5]])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8"])
def test_a_fraction_stands_in_for_integers(tmp_path: Path, values: list[Any], dtype: str) -> None:
    for feature, shape in (
        (rs.Scalar("k", dtype=dtype, default=math.nan), ()),
        (rs.Tensor("k", (1,), dtype=dtype, default=[0.25]), (1,)),
        (rs.Tensor("k", (1, 1), dtype=dtype, default=math.inf), (1, 1)),
    ):
        x = loaded(tmp_path, feature, [[value] for value in values] + [None])["x"]
        assert x.dtype == np.dtype(dtype)
        expected = np.array([*values, np.ravel(feature.default)[0]]).reshape(4, *shape)
        np.testing.assert_array_equal(x, expected)
    with pytest.raises(CorruptDataError):
        loaded(tmp_path, rs.Scalar("k", dtype="float32", default=0.5), [2**63 - 1, None])
    for bad in (rs.Scalar("k", default=0.5), rs.Tensor("k", (1,), dtype=dtype, default=[0.5, 1])):
        with raises(OptionError, option="default"):
            loaded(tmp_path, bad, [1, None])


def test_a_default_for_any_number_of_values(tmp_path: Path) -> None:
    rows: list[Any] = [[2**63 - 1], None, np.zeros(0, np.int64), [-(2**63), 2**53 + 1]]
    x = loaded(tmp_path, rs.Ragged("k", default=[7, 8]), rows)["x"]
    assert x.tolist() == [rows[0], [7, 8], [], rows[3]]
    made = loaded(tmp_path, rs.Padded("k", default=7, fill=-1), rows)
    assert made["x"].tolist() == [[2**63 - 1, -1], [7, -1], [-1, -1], rows[3]]
    assert made["x_lengths"].tolist() == [1, 1, 0, 2]
    for feature in (rs.Ragged, rs.Padded):
        with raises(OptionError, option="default"):
            feature("k", dtype="uint8", default=[0, 256])


_EDGES = [2**bits + more for bits in (0, 7, 8, 11, 15, 24, 31, 53, 62) for more in (-1, 0, 1, 2)]
_INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(_EDGES + [-n for n in _EDGES])
_FLOAT32 = st.floats(width=32) | st.sampled_from(
    [float(np.float32(n)) for n in (*_EDGES, 255.9)]
    + [0.25, -0.0, -128.5, -(2.0**63), 65504.0, 65520.0]
)
_FLOATS = {"bfloat16": (8, 128), "float16": (11, 16), "float32": (24, 128), "float64": (53, 1024)}
_DTYPES = [
    *("bool", *_FLOATS),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
]


def converted(number: float, dtype: str) -> float | None:
    """What a number is in another type, in plain Python; None if it cannot be one."""
    if dtype == "bool":
        return number if number in (0, 1) else None
    if dtype not in _FLOATS:
        bits = int(dtype.strip("uint"))
        low, high = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return int(number) if low <= number < high and number == int(number) else None
    digits, exponents = _FLOATS[dtype]
    if isinstance(number, int):  # what is left without the zeros at the end must have few digits
        odd = abs(number) // (number & -number) if number else 0
        return number if odd < 2**digits and abs(number) < 2**exponents else None
    if not math.isfinite(number) or dtype in ("float32", "float64"):
        return number
    if dtype == "float16":
        try:
            return struct.unpack("<e", struct.pack("<e", number))[0]  # type: ignore[no-any-return]
        except OverflowError:
            return None
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    bits += 0x7FFF + (bits >> 16 & 1)  # to the nearest, or the even one of two
    found = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]
    return None if math.isinf(found) else found


@given(
    numbers=st.lists(_INT64, min_size=1, max_size=3) | st.lists(_FLOAT32, min_size=1, max_size=3),
    dtype=st.sampled_from(_DTYPES),
    is_ragged=st.booleans(),
)
def test_numbers_are_equal_in_another_type_or_an_error(
    numbers: list[float], dtype: str, *, is_ragged: bool
) -> None:
    """All pairs of types. Floats may lose digits in narrower floats."""
    pytest.importorskip("ml_dtypes")
    values = np.array(numbers, np.int64 if isinstance(numbers[0], int) else np.float32)
    column: Any = values
    if is_ragged:
        column = rs.RaggedArray(values, np.arange(len(values) + 1))
    expected = [converted(number, dtype) for number in numbers]
    if None in expected:
        with pytest.raises(CorruptDataError) as caught:
            as_dtype("k", column, dtype)
        found = caught.value
        assert (found.defect, found.record) == (Defect.FEATURE_VALUE, expected.index(None))
        return
    made = as_dtype("k", column, dtype)
    made = made.values if is_ragged else made
    assert made.dtype.name == dtype
    np.testing.assert_array_equal(made.astype(np.float64), np.array(expected, np.float64))
    if dtype[-2:] == "64":
        assert [str(n) for n in made.tolist()] == [str(type(made[0].item())(n)) for n in expected]


@pytest.mark.parametrize("dtype", ["int32", ">i4", "float16", ">f2", "bool", "uint64"])
def test_features_with_numbers_that_would_change(batch: Any, dtype: str) -> None:
    """At every place where a feature takes a dtype."""
    bad = {"i": 0.5, "f": 1e6, "b": 0.25, "u": -1.0}[np.dtype(dtype).kind]
    for feature in (rs.Scalar, rs.Ragged, rs.Padded):
        with raises(CorruptDataError, defect=Defect.FEATURE_VALUE, record=2):
            batch(feature("k", dtype=dtype), [[0.0], [1.0], [bad]])
    with pytest.raises(CorruptDataError):
        batch(rs.Tensor("k", (1,), dtype=dtype), [[1.0], [bad]])
    for make in (lambda: rs.Scalar("k", dtype=dtype, default=bad),
                 lambda: rs.Tensor("k", (2,), dtype=dtype, default=[0, bad]),
                 lambda: rs.Padded("k", dtype=dtype, fill=bad)):  # fmt: skip
        with pytest.raises(OptionError):
            make()


def test_the_same_memory_where_nothing_changes() -> None:
    column = np.array([1, 2])
    assert as_dtype("k", column, None) is column
    assert np.shares_memory(as_dtype("k", column, "int64"), column)


@given(
    rows=int_rows,
    length=st.none() | st.integers(0, 6),
    fill=st.sampled_from([0, -1, 7]),
    cuts=st.booleans(),
)
def test_padded(
    batch: Any, rows: list[list[int]], length: int | None, fill: int, *, cuts: bool
) -> None:
    """Against a loop over the rows."""
    rows = rows if any(rows) else [[1], *rows]
    is_cut = cuts and length is not None
    feature = rs.Padded("k", length, fill=fill, too_long="cut" if is_cut else "error")
    width = max(map(len, rows)) if length is None else length
    too_long = [row for row, values in enumerate(rows) if len(values) > width]
    if too_long and not is_cut:
        with raises(CorruptDataError, defect=Defect.FEATURE_SHAPE, record=too_long[0]):
            batch(feature, rows)
        return
    made = batch(feature, rows)
    assert made["x"].shape == (len(rows), width)
    assert made["x"].dtype == made["x_lengths"].dtype == np.int64
    assert made["x"].tolist() == [
        row[:width] + [fill] * (width - len(row)) for row in rows
    ]  # fmt: skip
    assert made["x_lengths"].tolist() == [min(len(row), width) for row in rows]


def test_a_fill_that_the_numbers_cannot_be(batch: Any) -> None:
    with raises(OptionError, option="features"):
        batch(rs.Padded("k", fill=0.5), ROWS)
    for fill in (2**53 + 1, 2**63 - 1):
        assert batch(rs.Padded("k", fill=fill), [[1], []])["x"].tolist() == [[1], [fill]]
        with pytest.raises(OptionError):
            batch(rs.Padded("k", fill=fill), [[1.5], []])
    made = batch(rs.Padded("k", fill=0.5), [[1.5], []])
    assert made["x"].tolist() == [[1.5], [0.5]]


def test_position_is_a_copy() -> None:
    positions = np.array([5, 3])
    column = made(rs.Position(), {}, positions)["x"]
    positions[:] = 0
    assert column.tolist() == [5, 3]
    assert rs.Position().requests() == {}


def test_as_tensorflow_reads_them(tf: Any, batch: Any) -> None:
    rows = [[0.5, 2.0], [], [1.5], [4.0, 5.0, 6.0]]
    serialized = [rs.encode_example({"k": np.array(row, np.float32)}) for row in rows]
    ragged = tf.io.parse_example(serialized, {"k": tf.io.RaggedFeature(tf.float32)})["k"]
    made = batch(rs.Ragged("k"), rows)["x"]
    np.testing.assert_array_equal(made.values, ragged.values.numpy())
    np.testing.assert_array_equal(made.row_splits, ragged.row_splits.numpy())
    sparse = tf.io.parse_example(serialized, {"k": tf.io.VarLenFeature(tf.float32)})["k"]
    made = batch(rs.Padded("k", fill=-1), rows)
    np.testing.assert_array_equal(made["x"], tf.sparse.to_dense(sparse, -1.0).numpy())
    made = batch(rs.Padded("k", 2, too_long="cut"), rows)
    np.testing.assert_array_equal(made["x"], ragged.to_tensor(shape=(None, 2)).numpy())
    np.testing.assert_array_equal(
        batch(rs.Padded("k", 5, fill=9), rows)["x"], ragged.to_tensor(9.0, shape=(None, 5)).numpy()
    )
