"""Bytes, Text and Raw: what is stored as byte strings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loading.features.conftest import made
from tests.raising import raises
from tests.reading import only_batch, written

import recordsmith as rs
from recordsmith.support.errors import CorruptDataError, Defect, OptionError

DTYPES = ["uint8", "int8", "bool", "uint16", "int32", "int64", "float16", "float32", "float64",
          "complex64"]  # fmt: skip


def _rows(arrays: Any) -> list[bytes]:
    return [arrays[row : row + 1].tobytes() for row in range(len(arrays))]


def test_bytes_as_they_are(batch: Any) -> None:
    x = batch(rs.Bytes("k"), [b"a\0", b"", b"ccc"])["x"]
    assert isinstance(x, rs.BytesArray)
    assert x.tolist() == [b"a\0", b"", b"ccc"]
    x = batch(rs.Bytes("k", (2,)), [[b"a", b"b"], [b"", b"d"]])["x"]
    assert x.tolist() == [[b"a", b"b"], [b"", b"d"]]
    x = batch(rs.Bytes("k", "ragged"), [[b"a", b"b"], [], [b"c"]])["x"]
    assert isinstance(x, rs.RaggedArray)
    assert x.tolist() == [[b"a", b"b"], [], [b"c"]]
    assert batch(rs.Bytes("other", default="ö"), [b"a"])["x"].tolist() == ["ö".encode()]


texts = st.text(max_size=5)


@given(values=st.lists(texts, min_size=1, max_size=6))
def test_texts(batch: Any, values: list[str]) -> None:
    x = batch(rs.Text("k"), values)["x"]
    assert (x.dtype, x.shape) == (object, (len(values),))
    assert x.tolist() == values
    assert all(type(value) is str for value in x)
    x = batch(rs.Text("k", (1, 1)), values)["x"]
    assert x.tolist() == [[[value]] for value in values]


@given(rows=st.lists(st.lists(texts, max_size=3), min_size=1, max_size=5))
def test_rows_of_texts(batch: Any, rows: list[list[str]]) -> None:
    rows = [["a"], *rows]
    x = batch(rs.Text("k", "ragged"), rows)["x"]
    assert (x.dtype, x.shape) == (object, (len(rows),))
    assert x.tolist() == rows


def test_one_of_several(tmp_path: Path) -> None:
    """Each value of a row about as often as the others, others in each epoch, by the seed alone."""
    counts = [1 + row % 4 for row in range(12)]
    rows = [{"k": [f"{row} {n}" for n in range(count)]} for row, count in enumerate(counts)]
    features = {"one": rs.Text("k", choose="random"), "all": rs.Text("k", "ragged"),
                "bytes": rs.Bytes("k", choose="random")}  # fmt: skip

    def epochs(seed: int) -> list[list[str]]:
        loader = rs.Loader(dataset, features, batch_size=12, seed=seed, epochs=400)
        batches = list(loader)
        for batch in batches:
            assert all(one in own for one, own in zip(batch["one"], batch["all"], strict=True))
            assert batch["bytes"].tolist() == [one.encode() for one in batch["one"]]
        return [batch["one"].tolist() for batch in batches]

    dataset = written(tmp_path, rows)
    drawn = epochs(1)
    assert drawn == epochs(1) != epochs(2)
    for row, count in enumerate(counts):
        often = np.bincount([int(epoch[row].split()[1]) for epoch in drawn], minlength=count)
        assert len(often) == count
        assert (abs(often - 400 / count) < 60).all()


@pytest.mark.parametrize("record", [{"k": []}, {}], ids=["empty", "absent"])
def test_one_of_none(tmp_path: Path, record: Any) -> None:
    dataset = written(tmp_path, [{"k": ["a"]}, record])
    with raises(OptionError, option="default"):
        rs.Loader(dataset, {"x": rs.Text("k", choose="random")}, batch_size=2)
    feature = rs.Text("k", choose="random", default="-")
    assert only_batch(dataset, {"x": feature})["x"].tolist() == ["a", "-"]
    for options in ({"shape": (2,)}, {"shape": "ragged"}):
        with raises(OptionError, option="shape", value=options["shape"]):
            rs.Text("k", choose="random", **options)
    with raises(OptionError, option="choose", value="all"):
        rs.Bytes("k", choose="all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "values", "row"),
    [
        ((), [b"a", "ö".encode(), b"b\xff"], 2),
        ((2,), [[b"a", b"b"], [b"c", b"b\xff"], [b"\xfe", b""]], 1),
        ("ragged", [[b"a", b"b"], [], [b"c", b"d", b"b\xff"]], 2),
    ],
)
def test_bytes_that_are_no_text(batch: Any, shape: Any, values: Any, row: int) -> None:
    with raises(CorruptDataError, defect=Defect.FEATURE_VALUE, record=row):
        batch(rs.Text("k", shape), values)
    assert "�" in str(batch(rs.Text("k", shape, errors="replace"), values)["x"].tolist())
    kept = batch(rs.Text("k", shape, errors="surrogateescape"), values)["x"]
    assert "b\\udcff" in str(kept.tolist())


@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    count=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_raw_arrays(batch: Any, dtype: str, shape: tuple[int, ...], count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    arrays = (generator.random((count, *shape)) * 100).astype(dtype)
    little = np.dtype(dtype).newbyteorder("<")
    x = batch(rs.Raw("k", shape, dtype), _rows(arrays.astype(little)))["x"]
    assert x.dtype == np.dtype(dtype)
    assert x.dtype.isnative
    np.testing.assert_array_equal(x, arrays)
    big = np.dtype(dtype).newbyteorder(">")
    feature = rs.Raw("k", shape, big.str)
    x = batch(feature, _rows(arrays.astype(big)))["x"]
    assert x.dtype == np.dtype(dtype)
    assert x.dtype.isnative
    np.testing.assert_array_equal(x, arrays)


def test_raw_is_a_view_where_values_lie_end_to_end() -> None:
    feature = rs.Raw("k", (2,), "float32")
    memory = np.arange(8, dtype=np.float32)
    column = rs.BytesArray(memory, np.arange(0, 33, 8))
    x = made(feature, {"k": column}, np.arange(4))["x"]
    assert np.shares_memory(x, memory)
    assert x.tolist() == memory.reshape(4, 2).tolist()
    chosen = made(feature, {"k": column[np.array([3, 1])]}, np.arange(2))["x"]
    assert chosen.tolist() == [[6, 7], [2, 3]]
    behind_a_byte = np.frombuffer(b"\0" + memory.tobytes(), np.uint8)
    column = rs.BytesArray(behind_a_byte, np.arange(1, 34, 8))
    x = made(feature, {"k": column}, np.arange(4))["x"]
    assert x.flags.aligned
    assert x.tolist() == memory.reshape(4, 2).tolist()


@pytest.mark.parametrize(("value", "found"), [(bytes(15), "15 bytes"), (b"", "0 bytes"),
                                              (b"x", "1 byte")])  # fmt: skip
def test_raw_of_another_size(batch: Any, value: bytes, found: str) -> None:
    with pytest.raises(CorruptDataError) as caught:
        batch(rs.Raw("k", (2, 2), "float32"), [bytes(16), value, bytes(3)])
    assert (caught.value.defect, caught.value.record) == (Defect.FEATURE_SHAPE, 1)
    assert caught.value.found == found
    assert re.fullmatch(r"16 bytes .*\(2, 2\) .*float32", caught.value.expected)


@pytest.mark.parametrize(
    ("dtype", "default"), [("uint8", 7), (">f4", np.nan), ("bool", True), ("float32", 0)]
)
def test_raw_with_a_default(tmp_path: Path, dtype: str, default: Any) -> None:
    """For records without bytes, and for one of several byte strings."""
    numbers = np.random.default_rng(0).integers(0, 2, (3, 2, 4)).astype(dtype)
    pairs = [[part.tobytes() for part in row] for row in numbers]
    pairs[1][1] = b""
    records: list[Any] = [{"one": pair[0], "two": pair} for pair in pairs]
    dataset = written(tmp_path, [*records, {}, {"one": b"", "two": [b"", b""]}])
    features = {
        "one": rs.Raw("one", (4,), dtype, default=default),
        "two": rs.Raw("two", (2, 4), dtype, default=default),
    }
    batch = next(iter(rs.Loader(dataset, features, batch_size=5)))
    full = np.full((2, 2, 4), default, numbers.dtype)
    np.testing.assert_array_equal(batch["one"], np.concatenate([numbers[:, 0], full[:, 0]]))
    numbers[1, 1] = default
    np.testing.assert_array_equal(batch["two"], np.concatenate([numbers, full]))


@pytest.mark.parametrize(
    ("shape", "dtype", "size", "layouts"),
    [
        ((28, 28), "uint8", 3072, "uint8 (32, 32, 3) or float32 (768,) or int64 (384,)"),
        ((28, 28), "uint8", 784 * 4,
         "float32 (28, 28) or int32 (28, 28) or uint8 (112, 28)"),
        ((64, 64, 3), "uint8", 32 * 64 * 3, "uint8 (32, 64, 3) or float32 (1536,) or int64 (768,)"),
        ((64, 64, 3), "uint8", 4096, "uint8 (64, 64) or float32 (1024,) or int64 (512,)"),
        ((768,), "float32", 1536, "uint16 (768,) or float16 (768,) or float32 (384,)"),
        ((768,), ">f8", 20, "float32 (5,)"),
        ((), "float64", 4, "float32 () or int32 () or float32 (1,)"),
        ((0, 3), "uint8", 7, ""),
        ((4,), "float32", 2**20 + 1, ""),
    ],
)  # fmt: skip
def test_layouts_that_fit(
    batch: Any, shape: tuple[int, ...], dtype: str, size: int, layouts: str
) -> None:
    with pytest.raises(CorruptDataError) as caught:
        batch(rs.Raw("k", shape, dtype), [bytes(size)])
    assert caught.value.remedy == (f"The bytes fit {layouts}." if layouts else "")


@pytest.mark.parametrize("dtype", ["uint8", ">u2", "float32", "bool"])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 0), (2, 3, 1)])
def test_raw_of_several_byte_strings(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Of which those without bytes are 0."""
    numbers = np.random.default_rng(0).integers(0, 2, (4, *shape)).astype(dtype)
    values = [[row[at : at + 1].tobytes() for at in (0, 1)] for row in numbers]
    values[1][0], numbers[1, 0] = b"", 0
    dataset = written(tmp_path, [{"k": row} for row in values])
    batch = rs.Examples(dataset, {"x": rs.Raw("k", shape, dtype)}).batch(range(4))
    np.testing.assert_array_equal(batch["x"], numbers)
    assert batch["x"].dtype == np.dtype(dtype).newbyteorder("=")
    with raises(rs.OptionError, option="shape", value=(3,)):
        rs.Loader(dataset, {"x": rs.Raw("k", (3, *shape[1:]), dtype)}, batch_size=2)
    if len(shape) == 2 and shape[1]:
        values[2][1] = b"xx"
        dataset = written(tmp_path, [{"k": row} for row in values])
        with raises(CorruptDataError, record=2, defect=Defect.FEATURE_SHAPE, found="2 bytes"):
            rs.Examples(dataset, {"x": rs.Raw("k", shape, dtype)}).batch([2])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (bytes(32), "float64"),
        (bytes(8), "uint16"),
        (bytes(15), ""),
        (bytes([8, 1, 18, 8, 18, 2, 8, 2, 18, 2, 8, 2, 34, 16]) + bytes(16), "rs.Serialized"),
    ],
)
def test_what_raw_values_of_another_size_are(batch: Any, value: bytes, words: str) -> None:
    with pytest.raises(CorruptDataError) as caught:
        batch(rs.Raw("k", (2, 2), "float32"), [value])
    remedy = caught.value.remedy.partition("Pass skip_errors")[0]
    assert words in remedy
    assert bool(remedy.strip()) == bool(words)
    assert ("tensor float32 [2, 2]" in caught.value.found) == ("Serialized" in words)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "int64", "float32", "float64"])
def test_raw_as_tensorflow_reads_it(tf: Any, batch: Any, dtype: str) -> None:
    generator = np.random.default_rng(1)
    values = [generator.bytes(6 * np.dtype(dtype).itemsize) for _ in range(3)]
    expected = tf.io.decode_raw(values, tf.as_dtype(dtype)).numpy().reshape(3, 2, 3)
    np.testing.assert_array_equal(batch(rs.Raw("k", (2, 3), dtype), values)["x"], expected)
    expected = tf.io.decode_raw(values, tf.as_dtype(dtype), little_endian=False).numpy()
    big = np.dtype(dtype).newbyteorder(">").str
    np.testing.assert_array_equal(batch(rs.Raw("k", (6,), big), values)["x"], expected)
