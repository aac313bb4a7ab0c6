"""Serialised tensors have the values that TensorFlow reads; what it refuses is refused."""

from __future__ import annotations

import runpy
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reading import write_records

import recordsmith as rs
from recordsmith.format.example.serialized_tensor import TENSOR_DTYPES, describe_tensor, read_tensor
from recordsmith.support.errors import CorruptDataError

SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (2, 3), (0, 3), (2, 1, 2)]
LISTS = {
    "float32": "float_val", "float64": "double_val", "string": "string_val", "int64": "int64_val",
    "bool": "bool_val", "uint32": "uint32_val", "uint64": "uint64_val", "float16": "half_val",
    "bfloat16": "half_val", "complex64": "scomplex_val", "complex128": "dcomplex_val",
}  # fmt: skip
PARTS = {"float16": "uint16", "bfloat16": "uint16", "complex64": "float32", "complex128": "float64"}


def values_of(tf: Any, dtype: str, shape: tuple[int, ...], generator: Any) -> Any:
    """Random values; of numbers, any bits."""
    size = int(np.prod(shape))
    if dtype == "string":
        values = np.empty(size, object)
        values[:] = [generator.bytes(length) for length in generator.integers(0, 5, size)]
        return values.reshape(shape)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    kind = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
    return np.frombuffer(generator.bytes(size * kind.itemsize), kind).reshape(shape)


def listed(tf: Any, array: Any, dtype: str) -> bytes:
    """A tensor whose values are not bytes, but a list, as `tf.make_tensor_proto` makes of some."""
    proto = tf.make_tensor_proto(0.0)
    proto.Clear()
    proto.dtype = tf.as_dtype(dtype).as_datatype_enum
    proto.tensor_shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
    values = array.reshape(-1).view(PARTS[dtype]) if dtype in PARTS else array.reshape(-1)
    getattr(proto, LISTS.get(dtype, "int_val")).extend(values.tolist())
    return proto.SerializeToString()  # type: ignore[no-any-return]


def check(tf: Any, data: bytes) -> str:
    """A tensor has TensorFlow's values; its dtype."""
    tensor = read_tensor(data)
    values: Any = tensor.values()
    expected = tf.io.parse_tensor(data, tensor.dtype).numpy()
    assert tensor.shape == np.shape(expected)
    if tensor.dtype == "string":
        assert values == np.ravel(np.asarray(expected, object)).tolist()
    else:
        assert values.tobytes() == np.asarray(expected, values.dtype).tobytes(), data.hex()
    return tensor.dtype


@pytest.mark.parametrize("dtype", TENSOR_DTYPES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_all_dtypes(tf: Any, dtype: str) -> None:
    generator = np.random.default_rng(0)
    for shape in SHAPES:
        array = values_of(tf, dtype, shape, generator)
        for data in (tf.io.serialize_tensor(array).numpy(), listed(tf, array, dtype)):
            assert describe_tensor(data) == f"serialised tensor {dtype} {list(shape)}"
            assert check(tf, data) == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64", "bool"])
def test_the_page_writes_what_tensorflow_writes(tf: Any, dtype: str) -> None:
    page = Path(__file__).parents[2] / "docs/how-to/serialized-tensors.md"
    code = page.read_text("utf-8").split("```python\n")[1].partition("\nrandom = ")[0]
    known: dict[str, Any] = {}
    exec(code, known)
    assert dtype in known["TYPES"]
    for shape in [*SHAPES, (300, 2)]:
        array = values_of(tf, dtype, shape, np.random.default_rng(0))
        data = known["serialize_tensor"](array)
        parsed = tf.io.parse_tensor(data, dtype).numpy()
        assert (parsed.shape, parsed.tobytes()) == (shape, array.tobytes())
        assert not array.size or data == tf.io.serialize_tensor(array).numpy()


@pytest.mark.parametrize("count", [1500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_ones_are_read_as_tensorflow_does_or_refused(tf: Any, count: int) -> None:
    generator = np.random.default_rng(count)
    seeds = [
        data
        for dtype in TENSOR_DTYPES
        for array in (values_of(tf, dtype, shape, generator) for shape in SHAPES)
        for data in (tf.io.serialize_tensor(array).numpy(), listed(tf, array, dtype))
    ]
    equal = 0
    for _ in range(count):
        data = bytearray(seeds[generator.integers(len(seeds))])
        for _ in range(generator.integers(3)):
            at = int(generator.integers(len(data) + 1))
            stop = at + int(generator.integers(3))
            data[at:stop] = generator.integers(0, 40, generator.integers(3), np.uint8).tobytes()
        with suppress(CorruptDataError):
            check(tf, bytes(data))
            equal += 1
    assert count / 4 < equal < count * 0.9


@pytest.mark.parametrize(
    ("dtype", "sides", "values"),
    [
        ("int16", b"\x12\x02\x08\x03", b"\x3a\x02\x01\x02\x38\x7f"),
        ("float32", b"\x12\x02\x08\x02", b"\x2d\0\0\x80\x3f" * 2),
        ("complex128", b"", b"\x61abcdefgh\x61ABCDEFGH"),
        ("bool", b"\x12\x02\x08\x02", b"\x58\x00\x58\x02"),
        ("uint64", b"", b"\x88\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
)
def test_lists_that_are_not_packed(tf: Any, dtype: str, sides: bytes, values: bytes) -> None:
    data = bytes([8, tf.as_dtype(dtype).as_datatype_enum, 18, len(sides)]) + sides + values
    assert check(tf, data) == dtype


def test_the_program_for_tensorflow_parses_them(tf: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = [
        {
            "fixed": generator.normal(size=(2, 3)),
            "ragged": generator.integers(0, 9, (row, 2), np.uint8),
            "text": np.array([b"a", b"b" * row], object),
        }
        for row in range(4)
    ]
    encoded = [{key: tf.io.serialize_tensor(row[key]).numpy() for key in row} for row in rows]
    records = [{**row, "two": list(row.values())[:2]} for row in encoded]
    path = write_records(tmp_path / "tensors.tfrecord", records)
    program = tmp_path / "program.py"
    program.write_text(rs.reader_code(path, "tf"), "utf-8")
    dataset = runpy.run_path(str(program))["dataset"]
    assert dataset.element_spec["fixed"] == tf.TensorSpec((2, 3), tf.float64)
    assert dataset.element_spec["ragged"] == tf.TensorSpec((None, 2), tf.uint8)
    for found, row in zip(dataset.as_numpy_iterator(), rows, strict=True):
        for key, values in row.items():
            assert found[key].tolist() == values.tolist()
        assert found["two"].shape == (2,)
