"""Recognises tensors that `tf.io.serialize_tensor` of TensorFlow wrote: TensorProto messages."""

from __future__ import annotations

import math

from recordsmith.format.example.spans import read_varint
from recordsmith.support.buffers import BytesLike, as_view

_TYPES = {  # numbers of tensorflow.DataType, with the bytes of a value
    1: ("float32", 4),
    2: ("float64", 8),
    3: ("int32", 4),
    4: ("uint8", 1),
    5: ("int16", 2),
    6: ("int8", 1),
    8: ("complex64", 8),
    9: ("int64", 8),
    10: ("bool", 1),
    14: ("bfloat16", 2),
    17: ("uint16", 2),
    18: ("complex128", 16),
    19: ("float16", 2),
    22: ("uint32", 4),
    23: ("uint64", 8),
}
_TYPE, _SHAPE, _SIDE, _SIZE, _CONTENT = 0x08, 0x12, 0x12, 0x08, 0x22  # tags


def describe_tensor(begins: BytesLike, size: int | None = None) -> str | None:
    """Return "serialised tensor float32 [3, 4]" if bytes are such a tensor; None otherwise.

    Only tensors whose values are stored as bytes count, as their size then proves the rest.

    Args:
        begins: the bytes, or the first of them.
        size: how many bytes there are; None for the length of `begins`.
    """
    data = bytes(as_view(begins)[:256])
    size = len(begins) if size is None else size
    try:
        number, offset = _after(data, 0, _TYPE)
        name, item_bytes = _TYPES[number]
        length, offset = _after(data, offset, _SHAPE)
        stop = offset + length
        sides: list[int] = []
        while offset < stop:
            length, offset = _after(data, offset, _SIDE)
            side, after = _after(data, offset, _SIZE) if length else (0, offset)
            if after != offset + length:
                return None
            sides.append(side)
            offset = after
        length = 0
        if offset < size:
            length, offset = _after(data, offset, _CONTENT)
    except (IndexError, KeyError, ValueError):
        return None
    if length != math.prod(sides) * item_bytes or offset + length != size:
        return None
    return f"serialised tensor {name} {sides}"


def _after(data: bytes, offset: int, tag: int) -> tuple[int, int]:
    """Return the number after a tag, and the place behind it."""
    if data[offset] != tag:
        raise ValueError
    return read_varint(data, offset + 1)
