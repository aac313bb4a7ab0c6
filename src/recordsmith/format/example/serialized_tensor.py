"""Reads tensors that `tf.io.serialize_tensor` of TensorFlow wrote: TensorProto messages.

Reading is strict: the fields are those of the dtype, each once, and there are exactly as many
values as the shape has. TensorFlow also repeats the last value for a larger shape, by which a few
bytes would become any amount of memory; such tensors are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.format.example.kernel import payloads
from recordsmith.format.example.spans import field_spans, payload_views, whole
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import CorruptDataError, Defect

_TYPES = {  # by number of tensorflow.DataType, as in tensor.h
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string",
    8: "complex64", 9: "int64", 10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128",
    19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
_OTHER_TYPES = {
    11: "qint8", 12: "quint8", 13: "qint32", 15: "qint16", 16: "quint16", 20: "resource",
    21: "variant", 24: "float8_e5m2", 25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
TENSOR_DTYPES = tuple(_TYPES.values())
"""Names of the dtypes that are read: those of NumPy, bfloat16 of ml_dtypes, and string."""

_GOOD, _MALFORMED, _DTYPE = 0, 1, 2  # codes of tensor.h
_STRINGS = 8  # the field

Sides: TypeAlias = tuple[int | None, ...]


class TensorSchema(msgspec.Struct, frozen=True):
    """What the serialised tensors of a feature have in common.

    dtype: such as "float32", or "string"; None if they differ.
    shape: None for a side that differs; None if their numbers of sides differ or are above 6.
    """

    dtype: str | None
    shape: Sides | None

    @classmethod
    def of_counts(cls, number: int | None, sides: Sequence[int | None] | None) -> TensorSchema:
        """Make it from what a survey counted: the number of the dtype, and sides."""
        dtype = None if number is None else _TYPES[number]
        return cls(dtype, None if sides is None else tuple(sides))

    def merged(self, other: TensorSchema) -> TensorSchema:
        dtype = self.dtype if self.dtype == other.dtype else None
        return TensorSchema(dtype, merged_shape(self.shape, other.shape))

    def is_of(self, rule: TensorSchema | None) -> bool:
        """Whether the tensors have dtype and shape of a rule, whose None allows any."""
        return rule is None or (
            rule.dtype in (None, self.dtype)
            and (rule.shape is None or merged_shape(rule.shape, self.shape) == rule.shape)
        )

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" {shape_text(self.shape)}"
        return f"{self.dtype or 'of several dtypes'}{shape}"


def merged_shape(
    one: Sequence[int | None] | None, other: Sequence[int | None] | None
) -> Sides | None:
    """Return the sides that two shapes share; None if one is unknown or they have not as many."""
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(
        side if side == another else None for side, another in zip(one, other, strict=True)
    )


def shape_text(shape: Sides) -> str:
    """Return a shape as `[3, ?]`."""
    return f"[{', '.join('?' if side is None else str(side) for side in shape)}]"


class SerializedTensor(msgspec.Struct, frozen=True):
    """A tensor whose values are counted, but not yet decoded.

    start: where the values begin, in its bytes.
    has_content: whether they are stored as bytes, up to the end, or as a list.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    has_content: bool
    data: memoryview

    def values(self) -> npt.NDArray[Any] | list[bytes]:
        """Return the values in C order: of its dtype, (count,), or a list of strings.

        Raises:
            CorruptDataError: one is no value of the dtype.
        """
        rest = self.data[self.start :]
        if self.dtype == "string":
            spans = field_spans(rest, *whole(rest), _STRINGS)
            return [bytes(view) for view in payload_views(rest, spans.starts, spans.lengths)]
        if self.has_content:
            return numbers_of(np.frombuffer(rest, np.uint8), self.dtype)
        dtype = tensor_type(self.dtype)
        are_bits = self.dtype in ("float16", "bfloat16")
        is_plain = dtype.kind in "fc" and not are_bits
        values = np.empty(math.prod(self.shape), dtype if is_plain else np.uint64)
        payloads.read_tensor(self.data, 0, values.view(np.uint8))
        if is_plain:
            return values
        if dtype.kind == "b":
            return values.astype(np.bool_)
        stored = np.dtype(np.uint16) if are_bits else dtype
        numbers = values.astype(stored)
        if not (numbers.astype(np.uint64) == values).all():  # negative numbers have 64 bits
            raise _malformed("a value that its dtype cannot hold")
        return numbers.view(dtype)


def tensor_type(dtype: str) -> np.dtype[Any]:
    """Return the dtype of NumPy; TypeError for bfloat16 without the package ml_dtypes."""
    if dtype == "bfloat16":
        with suppress(ImportError):
            import_module("ml_dtypes")  # makes the name known to NumPy
    return np.dtype(dtype)


def numbers_of(content: npt.NDArray[np.uint8], dtype: str) -> npt.NDArray[Any]:
    """Return the numbers of `tensor_content`, uint8, in native byte order."""
    stored = tensor_type(dtype)
    if stored.kind == "b":
        if content.max(initial=0) > 1:
            raise _malformed("a bool that is neither 0 nor 1")
        return content.view(np.bool_)
    if stored.kind != "V":  # bfloat16 has no byte order
        stored = stored.newbyteorder("<")
    numbers: npt.NDArray[Any] = content.view(stored)
    return numbers.astype(tensor_type(dtype), copy=False)


def read_tensor(data: BytesLike, size: int | None = None) -> SerializedTensor:
    """Read a TensorProto, of which values are counted, but not decoded.

    Args:
        data: the bytes, or the first of them.
        size: how many bytes there are; None for the length of `data`. If there are more than
            `data`, the values cannot be decoded.

    Raises:
        CorruptDataError: the bytes are no TensorProto, or one with a dtype that NumPy lacks, an
            unknown shape, or another number of values than its shape has.
    """
    view = as_view(data)
    missing = 0 if size is None else size - len(view)
    code, number, shape, count, start, has_content = payloads.read_tensor(view, missing)
    if code == _MALFORMED:
        raise _malformed(f"{len(view) + missing} bytes that begin with {view[:12].hex(' ')}")
    if code == _DTYPE:
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            "the serialised tensor has an unsupported dtype",
            found=_OTHER_TYPES.get(number, f"dtype number {number}"),
            expected=", ".join(TENSOR_DTYPES),
            remedy="Read the bytes with rs.Bytes.",
        )
    dtype = _TYPES[number]
    if code != _GOOD:
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            "the serialised tensor has another number of values than its shape",
            found=f"{count} values",
            expected=f"{math.prod(shape)} for {dtype} {shape_text(shape)}",
            remedy="TensorFlow repeats the last value; write all with tf.io.serialize_tensor."
            if count < math.prod(shape) and not has_content
            else "",
        )
    return SerializedTensor(dtype, shape, start, has_content, view)


def _malformed(found: str) -> CorruptDataError:
    return CorruptDataError(
        Defect.FEATURE_VALUE,
        "the bytes are not a serialised tensor",
        found=found,
        expected="a TensorProto of tf.io.serialize_tensor, of a known shape",
    )


def schema_of_tensor(begins: BytesLike, size: int | None = None) -> TensorSchema | None:
    """Return dtype and shape of a serialised tensor; None for other bytes.

    Args:
        begins: the bytes, or the first of them; of a list of values all are needed.
        size: how many bytes there are; None for the length of `begins`.
    """
    with suppress(CorruptDataError):
        tensor = read_tensor(begins, size)
        return TensorSchema(tensor.dtype, tensor.shape)
    return None


def describe_tensor(value: BytesLike) -> str | None:
    """Return "serialised tensor float32 [3, 4]" if bytes are such a tensor; None otherwise."""
    known = schema_of_tensor(value)
    return None if known is None else f"serialised tensor {known}"
