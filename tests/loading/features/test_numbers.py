"""Scalar, Tensor, Ragged and Padded: numbers as they are stored, or in another type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.loading.features.numbers import as_dtype

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


@given(
    number=st.integers(-(2**63), 2**63 - 1) | st.sampled_from([127, 128, -128, -129, 2**31]),
    dtype=st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"]),
)  # fmt: skip
def test_integers_fit_or_are_an_error(number: int, dtype: str) -> None:
    limits = np.iinfo(dtype)
    column = np.array([0, number], np.int64)
    if limits.min <= number <= limits.max:
        assert as_dtype("k", column, dtype).tolist() == [0, number]
        assert as_dtype("k", column, dtype).dtype == dtype
        return
    with pytest.raises(CorruptDataError, match=f"'k' has the number {number}, which {dtype}") as e:
        as_dtype("k", column, dtype)
    assert (e.value.defect, e.value.position) == (Defect.FEATURE_VALUE, 1)


@given(
    number=st.floats(width=32) | st.sampled_from([127.5, 128.0, -128.5, -129.0, 255.9, 2.0**63]),
    dtype=st.sampled_from(["int8", "uint8", "int32", "int64", "uint64"]),
)
def test_floats_lose_what_is_behind_the_point(number: float, dtype: str) -> None:
    limits = np.iinfo(dtype)
    column = np.array([[0.0, 0.0], [0.0, number]], np.float32)
    if np.isfinite(number) and limits.min <= int(number) <= limits.max:
        assert as_dtype("k", column, dtype).tolist() == [[0, 0], [0, int(number)]]
        return
    with pytest.raises(CorruptDataError) as caught:
        as_dtype("k", column, dtype)
    assert caught.value.position == 1


def test_half_floats_do_not_become_infinite() -> None:
    column = np.array([1.0, np.inf, np.nan, 65504.0], np.float32)
    assert as_dtype("k", column, "float16").tolist()[:2] == [1.0, np.inf]
    for numbers in (np.array([0.0, 1e5], np.float32), np.array([1, -70_000])):
        with pytest.raises(CorruptDataError, match="which float16 cannot hold"):
            as_dtype("k", numbers, "float16")


def test_the_same_memory_where_nothing_changes() -> None:
    column = np.array([1, 2])
    assert as_dtype("k", column, None) is column
    assert np.shares_memory(as_dtype("k", column, "int64"), column)


@pytest.mark.parametrize("dtype", ["no such type", "str", "S3", object, "datetime64[s]", 5])
def test_types_that_are_none_of_numbers(dtype: Any) -> None:
    for make in (rs.Scalar, rs.Ragged, rs.Padded):
        with pytest.raises(OptionError, match="dtype is"):
            make("k", dtype=dtype)
    with pytest.raises(OptionError, match="dtype is"):
        rs.Tensor("k", (2,), dtype=dtype)


# -- of unequal length ---------------------------------------------------------------------------


@given(rows=int_rows)
def test_rows_of_unequal_length(batch: Any, rows: list[list[int]]) -> None:
    x = batch(rs.Ragged("k"), rows if any(rows) else [[1], *rows])["x"]
    assert isinstance(x, rs.RaggedArray)
    assert x.tolist() == (rows if any(rows) else [[1], *rows])


def test_ragged_in_another_type(batch: Any) -> None:
    x = batch(rs.Ragged("k", dtype="float32"), ROWS)["x"]
    assert x.values.dtype == np.float32
    assert x.tolist() == ROWS
    for row in ([300], [300, 2], [2, 300], [2, 300, 400]):
        with pytest.raises(CorruptDataError, match="number 300, which uint8") as caught:
            batch(rs.Ragged("k", dtype="uint8"), [[1], [], row, [4]])
        assert caught.value.position == 2


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
        with pytest.raises(CorruptDataError, match=f"expected at most {width}") as caught:
            batch(feature, rows)
        assert (caught.value.defect, caught.value.position) == (Defect.FEATURE_SHAPE, too_long[0])
        return
    made = batch(feature, rows)
    assert made["x"].shape == (len(rows), width)
    assert made["x"].dtype == made["x_lengths"].dtype == np.int64
    assert made["x"].tolist() == [
        row[:width] + [fill] * (width - len(row)) for row in rows
    ]  # fmt: skip
    assert made["x_lengths"].tolist() == [min(len(row), width) for row in rows]


def test_padded_in_another_type(batch: Any) -> None:
    made = batch(rs.Padded("k", fill=np.nan, dtype="float32"), ROWS)
    assert made["x"].dtype == np.float32
    assert np.isnan(made["x"][1]).all()
    assert made["x"][3, :2].tolist() == [5, 9]
    made = batch(rs.Padded("k", fill=255, dtype="uint8"), ROWS)
    assert made["x"].dtype == np.uint8
    assert made["x"][2].tolist() == [1, 255, 255]


def test_a_fill_that_the_numbers_cannot_be(batch: Any) -> None:
    with pytest.raises(OptionError, match=r"'k' is int64, expected float"):
        batch(rs.Padded("k", fill=0.5), ROWS)
    made = batch(rs.Padded("k", fill=0.5), [[1.5], []])
    assert made["x"].tolist() == [[1.5], [0.5]]
    for fill, dtype in ((0.5, "int64"), (300, "uint8"), (-1, "uint16"), ("0", None),
                        (1e6, "float16"), (None, None)):  # fmt: skip
        with pytest.raises(OptionError, match="fill is"):
            rs.Padded("k", fill=fill, dtype=dtype)  # type: ignore[arg-type]


def test_room_that_is_none() -> None:
    for length in (-1, 2.5, "3", True):
        with pytest.raises(OptionError, match="length is"):
            rs.Padded("k", length)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="too_long is 'drop'; expected one of 'error', 'cut'"):
        rs.Padded("k", 3, too_long="drop")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no length to cut to"):
        rs.Padded("k", too_long="cut")


def test_no_rows(no_rows: Any) -> None:
    assert no_rows(rs.Scalar("k"), "int64")["x"].shape == (0,)
    assert no_rows(rs.Tensor("k", (2, 3), dtype="uint8"), "int64")["x"].shape == (0, 2, 3)
    assert no_rows(rs.Ragged("k", dtype="uint8"), "float")["x"].tolist() == []
    assert no_rows(rs.Padded("k"), "int64")["x"].shape == (0, 0)
    assert no_rows(rs.Padded("k", 4), "float")["x"].shape == (0, 4)


def test_position_is_a_copy() -> None:
    positions = np.array([5, 3])
    made = rs.Position().values("x", {}, positions)["x"]
    positions[:] = 0
    assert made.tolist() == [5, 3]
    assert rs.Position().requests() == {}


# -- as TensorFlow has them ----------------------------------------------------------------------


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
