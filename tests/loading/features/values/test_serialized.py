"""Serialized: arrays of serialised tensors, of one shape or of several.

That tensors have TensorFlow's values is tested in tests/interop/test_serialized_tensors.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import only_batch, written
from tests.serialized_tensors import field, header, serialized

import recordsmith as rs

ROWS = 23
GENERATOR = np.random.default_rng(0)
FIXED = GENERATOR.normal(size=(ROWS, 3, 4)).astype(np.float32)
RAGGED = [FIXED[row, : row % 4] for row in range(ROWS)]
ANY = [FIXED[row, : row % 4, : row % 3].reshape(-1, *(1,) * (row % 2)) for row in range(ROWS)]
TEXTS = np.array([[b"", b"\xff" * (row % 200)] for row in range(ROWS)], object)
TRUTHS = FIXED[:, 0] > 0


def record(row: int) -> dict[str, Any]:
    return {
        "fixed": serialized(FIXED[row]),
        "listed": header(1, [3, 4]) + field(5, FIXED[row].tobytes()),
        "ragged": serialized(RAGGED[row]),
        "any": serialized(ANY[row]),
        "texts": serialized(TEXTS[row], "string"),
        "some texts": serialized(TEXTS[row][: row % 3], "string"),
        "truths": serialized(TRUTHS[row]),
        "hostile": header(1, [row << 35, 0]),  # (length, 0): any number of rows in a few bytes
        "empty": serialized(np.zeros((0, 2), np.int64)),
        "two": [serialized(FIXED[row]), serialized(-FIXED[row])],
        "padded": [b"", serialized(FIXED[row])],
        "padded texts": [serialized(TEXTS[row], "string"), b""],
        "image": b"\xff\xd8\xff" + bytes(20),
        "odd": serialized(FIXED[row]) if row % 5 else b"\0",
        "dtypes": serialized(FIXED[row] if row % 5 else FIXED[row].astype(np.float64)),
        "id": row,
    }


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return written(tmp_path_factory.mktemp("tensors"), map(record, range(ROWS)))


def assert_same(found: Any, expected: Any) -> None:
    """Of a batch and its rows: the same values, of the same dtype and shape."""
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        if isinstance(mine, rs.BytesArray):
            assert mine.tolist() == np.asarray(other, object).tolist()
            continue
        np.testing.assert_array_equal(mine, other, strict=True)


@pytest.mark.parametrize(
    ("key", "options", "expected", "is_ragged"),
    [
        ("fixed", {}, FIXED, False),
        ("fixed", {"shape": (3, 4), "dtype": "float32"}, FIXED, False),
        ("fixed", {"shape": (None, 4)}, FIXED, True),
        ("listed", {}, FIXED, False),
        ("ragged", {}, RAGGED, True),
        ("texts", {}, TEXTS, False),
        ("some texts", {}, [row[: at % 3] for at, row in enumerate(TEXTS)], True),
        ("truths", {}, TRUTHS, False),
        ("empty", {}, np.zeros((ROWS, 0, 2), np.int64), False),
        ("two", {}, np.stack([FIXED, -FIXED], 1), False),
        ("padded", {"shape": (3, 4), "dtype": "float32"}, np.stack([0 * FIXED, FIXED], 1), False),
        ("padded texts", {"shape": (2,), "dtype": "string"},
         [[row, [b""] * 2] for row in TEXTS.tolist()], False),
    ],
)  # fmt: skip
def test_tensors(
    dataset: rs.Dataset, key: str, options: Any, expected: Any, *, is_ragged: bool
) -> None:
    loader = rs.Loader(dataset, {"x": rs.Serialized(key, **options)}, batch_size=5)
    batches = list(loader)
    for at, batch in enumerate(batches):
        assert isinstance(batch["x"], rs.RaggedArray) == is_ragged
        assert_same(batch["x"], expected[5 * at : 5 * at + 5])
    one = next(iter(rs.Loader(dataset, {"x": rs.Serialized(key, **options)}, batch_size=1)))["x"]
    if isinstance(one, np.ndarray):  # bytes of values begin anywhere
        assert one.flags.aligned
        assert one.flags.writeable
    if not options:
        assert_same(next(iter(rs.Loader(dataset, [key], batch_size=5)))[key], expected[:5])
    spec = loader.spec()["x"]
    assert (spec.kind, spec.is_ragged) == ("bytes" if "text" in key else "numbers", is_ragged)
    assert spec.dtype is None or spec.dtype == batches[0]["x"][0].dtype
    if key == "ragged":
        assert spec.shape == (None, None, 4)


def test_tensors_of_any_shape(dataset: rs.Dataset) -> None:
    batch = only_batch(dataset, {"x": rs.Serialized("any", "ragged")})
    assert batch["x_shape"].tolist() == [list(array.shape) for array in ANY]
    assert_same(batch["x"], [array.reshape(-1) for array in ANY])


def test_headers_of_equal_length_that_differ(batch: Any) -> None:
    arrays = [FIXED[row].reshape((3, 4) if row % 2 else (4, 3)) for row in range(4)]
    values = [serialized(array) for array in arrays]
    found = batch(rs.Serialized("k", "ragged", "float32"), values)
    assert found["x_shape"].tolist() == [[4, 3], [3, 4]] * 2
    assert_same(found["x"], [array.reshape(-1) for array in arrays])
    with raises(rs.CorruptDataError, record=1, found="float32 [3, 4]"):
        batch(rs.Serialized("k", (4, 3), "float32"), values)
    with raises(rs.CorruptDataError, record=2, feature="k", found="a bool that is neither 0 nor 1"):
        truths = [serialized(True)] * 2 + [serialized(True)[:-1] + b"\2"]
        batch(rs.Serialized("k", (), "bool"), truths)


def test_a_key_alone_is_an_array_if_all_records_have_a_tensor(dataset: rs.Dataset) -> None:
    batch = next(iter(rs.Loader(dataset, None, batch_size=2)))
    kinds = {key for key, entry in batch.items() if isinstance(entry, rs.BytesArray)}
    assert kinds == {"any", "hostile", "padded", "padded texts", "texts", "image", "odd", "dtypes"}
    assert batch["two"].shape == (2, 2, 3, 4)


WRONG: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "shape": [
        *(("fixed", {"shape": shape})
          for shape in ((3, 5), (12,), (None, 5), (3, None), (-1,), "any")),
        ("hostile", {}), ("any", {}), ("two", {"shape": (None, 4)}), ("two", {"shape": "ragged"}),
    ],
    "dtype": [("fixed", {"dtype": "int32"}), ("fixed", {"dtype": "float8_e5m2"}), ("dtypes", {})],
    "features": [
        ("odd", {}), ("odd", {"shape": (3, 4)}), ("id", {}), ("other", {}),
        ("image", {"shape": (3, 4), "dtype": "uint8"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("option", WRONG)
def test_what_the_schema_shows_to_be_wrong(dataset: rs.Dataset, option: str) -> None:
    for key, options in WRONG[option]:
        with raises(rs.OptionError, option=option):
            rs.Loader(dataset, {"x": rs.Serialized(key, **options)}, batch_size=5)


def test_tensors_that_repeat_values_are_refused(tmp_path: Path) -> None:
    """30 bytes, of which TensorFlow makes 4 GB."""
    bomb = header(1, [1 << 15, 1 << 15]) + field(5, bytes(4))
    dataset = written(tmp_path, [{"x": bomb, "n": [1] * 9}] * 2)
    with raises(rs.OptionError, option="features"):
        rs.Loader(dataset, {"x": rs.Serialized("x")}, batch_size=2)
    feature = rs.Serialized("x", (1 << 15, 1 << 15), "float32")
    with raises(rs.CorruptDataError, record=0, found="1 values"):
        only_batch(dataset, {"x": feature})
