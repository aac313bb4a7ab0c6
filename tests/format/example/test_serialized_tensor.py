"""Serialised tensors of TensorFlow are recognised, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from recordsmith.format.example.serialized_tensor import describe_tensor

FLOATS = np.arange(12, dtype=np.float32)


def tensor(dtype: int, sides: list[int], content: bytes) -> bytes:
    """A TensorProto with its values as bytes, as `tf.io.serialize_tensor` writes it."""
    shape = b"".join(bytes([18, 2, 8, side]) if side else b"\x12\x00" for side in sides)
    data = bytes([8, dtype, 18, len(shape)]) + shape
    return data + (bytes([34, len(content)]) + content if content else b"")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (tensor(1, [3, 4], FLOATS.tobytes()), "float32 [3, 4]"),
        (tensor(9, [2], bytes(16)), "int64 [2]"),
        (tensor(14, [5], bytes(10)), "bfloat16 [5]"),
        (tensor(10, [], b"\1"), "bool []"),
        (tensor(4, [0, 3], b""), "uint8 [0, 3]"),
        (tensor(1, [3, 4], FLOATS.tobytes()[:-1]), None),
        (tensor(1, [3, 5], FLOATS.tobytes()), None),
        (tensor(99, [3, 4], FLOATS.tobytes()), None),
        (tensor(1, [3, 4], FLOATS.tobytes()) + b"x", None),
        (FLOATS.tobytes(), None),
        (b"", None),
        (b"\x08" + b"\xff" * 99, None),
        (b"\x08\x01\x12\x08\x12\x02", None),
    ],
)
def test_tensors(data: bytes, expected: str | None) -> None:
    assert describe_tensor(data) == (expected and f"serialised tensor {expected}")
    assert describe_tensor(data[:60], len(data)) == describe_tensor(data)
