"""Serialised tensors, as `tf.io.serialize_tensor` writes them, made without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "string": 7, "int64": 9, "bool": 10}


def varint(number: int) -> bytes:
    head = bytearray()
    while number > 127:
        head.append(number & 127 | 128)
        number >>= 7
    return bytes([*head, number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def header(dtype: int, sides: Sequence[int]) -> bytes:
    shape = b"".join(field(2, b"\x08" + varint(side) if side else b"") for side in sides)
    return b"\x08" + varint(dtype) + field(2, shape)


def serialized(values: Any, dtype: str | None = None) -> bytes:
    """A tensor of numbers, or with `dtype="string"` of byte strings."""
    if dtype == "string":
        array = np.asarray(values, object)
        strings = b"".join(field(8, value) for value in array.reshape(-1))
        return header(7, array.shape) + strings
    array = np.asarray(values, dtype)
    content = field(4, array.tobytes()) if array.size else b""
    return header(NUMBERS[array.dtype.name], array.shape) + content
