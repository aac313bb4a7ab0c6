"""Reads tensors that `tf.io.serialize_tensor` of TensorFlow wrote: TensorProto messages.

Reading is strict: the fields are those of the dtype, each once, and there are exactly as many
values as the shape has. TensorFlow also repeats the last value for a larger shape, by which a few
bytes would become any amount of memory; such tensors are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.format.example.spans import read_varint
from recordsmith.support.buffers import BytesLike, as_view
from recordsmith.support.errors import CorruptDataError, Defect


class _TensorType(NamedTuple):
    """A dtype of TensorFlow.

    size: bytes of a value in `tensor_content`.
    field: of a list of values.
    listed: the dtype of numbers in the list; None for varints.
    """

    name: str
    size: int
    field: int
    listed: str | None = None


_TYPES = {  # by number of tensorflow.DataType
    1: _TensorType("float32", 4, 5, "<f4"),
    2: _TensorType("float64", 8, 6, "<f8"),
    3: _TensorType("int32", 4, 7),
    4: _TensorType("uint8", 1, 7),
    5: _TensorType("int16", 2, 7),
    6: _TensorType("int8", 1, 7),
    7: _TensorType("string", 0, 8),
    8: _TensorType("complex64", 8, 9, "<c8"),
    9: _TensorType("int64", 8, 10),
    10: _TensorType("bool", 1, 11),
    14: _TensorType("bfloat16", 2, 13),
    17: _TensorType("uint16", 2, 7),
    18: _TensorType("complex128", 16, 12, "<c16"),
    19: _TensorType("float16", 2, 13),
    22: _TensorType("uint32", 4, 16),
    23: _TensorType("uint64", 8, 17),
}
_OTHER_TYPES = {
    11: "qint8", 12: "quint8", 13: "qint32", 15: "qint16", 16: "quint16", 20: "resource",
    21: "variant", 24: "float8_e5m2", 25: "float8_e4m3fn", 29: "int4", 30: "uint4",
}  # fmt: skip
TENSOR_DTYPES = tuple(known.name for known in _TYPES.values())
"""Names of the dtypes that are read: those of NumPy, bfloat16 of ml_dtypes, and string."""

_DTYPE, _SHAPE, _VERSION, _CONTENT, _STRINGS = 1, 2, 3, 4, 8  # fields of TensorProto
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5  # wire types
_LISTED = {"<f4": (_FIXED32, 4), "<c8": (_FIXED32, 4), "<f8": (_FIXED64, 8), "<c16": (_FIXED64, 8)}
_REPEATED_REMEDY = "TensorFlow repeats the last value; write all with tf.io.serialize_tensor."
_MAX_TAG = 5  # bytes of a tag, and of a length
_MAX_VALUES = 1 << 40  # no message holds as many; an empty tensor may state any side
_MAX_SIDES = 32  # of an ndarray, in any version of NumPy

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
        dtype = None if number is None else _TYPES[number].name
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

    shape: of which none is unknown.
    content: where the values begin that are stored as bytes and end the message; otherwise None.
    has_content, pieces: whether and which bytes are values, or else encoded lists of values.
    """

    dtype: str
    shape: tuple[int, ...]
    content: int | None
    stored: _TensorType
    has_content: bool
    pieces: list[bytes]

    def __str__(self) -> str:
        return f"{self.dtype} {shape_text(self.shape)}"

    def values(self) -> npt.NDArray[Any] | list[bytes]:
        """Return the values in C order: of its dtype, (count,), or a list of strings."""
        if self.dtype == "string":
            return self.pieces
        joined = b"".join(self.pieces)
        if self.has_content or not joined:
            return numbers_of(np.frombuffer(joined, np.uint8), self.dtype)
        if self.stored.listed is not None:
            listed = np.dtype(self.stored.listed)
            return np.frombuffer(joined, listed).astype(listed.newbyteorder("="), copy=False)
        values = _varints(joined)
        is_float = self.stored.field == 13  # float16 and bfloat16 are listed as their bits
        stored = np.dtype("uint16" if is_float else self.dtype)
        if stored.kind == "b":
            truths: npt.NDArray[Any] = values != 0
            return truths
        signed = values.view(np.int64)
        numbers = (values if stored.name == "uint64" else signed).astype(stored)
        if not (numbers.astype(np.int64) == signed).all():
            raise _malformed("a value that its dtype cannot hold")
        wanted: npt.NDArray[Any] = numbers.view(tensor_type(self.dtype)) if is_float else numbers
        return wanted


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
    try:
        return _read(view, len(view) if size is None else size)
    except (IndexError, UnicodeDecodeError):
        raise _malformed("a length or a number that runs past the end") from None


def _read(view: memoryview, size: int) -> SerializedTensor:
    seen: set[int] = set()
    known: _TensorType | None = None
    shape: tuple[int, ...] = ()
    lists: list[tuple[int, int, int, int]] = []
    for field, wire, start, stop in _fields(view, size):
        if not 1 <= field <= _VERSION:
            lists.append((field, wire, start, stop))
            continue
        if field in seen or wire != (_DELIMITED if field == _SHAPE else _VARINT):
            raise _malformed(f"field {field} twice or in another wire type")
        seen.add(field)
        if field == _DTYPE:
            known = _type_of(read_varint(view, start)[0])
        elif field == _SHAPE:
            shape = _shape(view[start:stop], stop - start)
    if known is None:
        raise _malformed("no dtype")
    has_content = any(field == _CONTENT for field, *_ in lists)
    if has_content and len(lists) > 1:
        raise _malformed("values twice")
    count = 0
    for field, wire, start, stop in lists:
        count += _value_count(known, field, wire, view[start:stop], stop - start)
    if not has_content and known.listed is not None:
        count, rest = divmod(count, known.size)
        if rest:
            raise _malformed("half a complex number")
    expected = math.prod(shape)
    if count != expected:
        raise CorruptDataError(
            Defect.FEATURE_SHAPE,
            "the serialised tensor has another number of values than its shape",
            found=f"{count} values",
            expected=f"{expected} for {known.name} {shape_text(shape)}",
            remedy=_REPEATED_REMEDY if count < expected and not has_content else "",
        )
    content = lists[0][2] if has_content and lists[0][3] == size else None
    pieces = [bytes(view[start:stop]) for _, _, start, stop in lists]
    return SerializedTensor(known.name, shape, content, known, has_content, pieces)


def _fields(view: memoryview, size: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, wire type, and start and stop of the value of each field."""
    at = 0
    while at < size:
        tag, begin = read_varint(view, at)
        field, wire = tag >> 3, tag & 7
        is_long, at = begin - at > _MAX_TAG, begin
        if wire == _VARINT:
            stop = read_varint(view, at)[1]
        elif wire == _DELIMITED:
            length, begin = read_varint(view, at)
            stop, is_long, at = begin + length, is_long or begin - at > _MAX_TAG, begin
        elif wire in (_FIXED32, _FIXED64):
            stop = at + (4 if wire == _FIXED32 else 8)
        else:
            raise _malformed(f"the wire type {wire}")
        if stop > size or is_long:
            raise IndexError
        yield field, wire, at, stop
        at = stop


def _type_of(number: int) -> _TensorType:
    known = _TYPES.get(number)
    if known is None:
        raise CorruptDataError(
            Defect.FEATURE_VALUE,
            "the serialised tensor has an unsupported dtype",
            found=_OTHER_TYPES.get(number, f"dtype number {number}"),
            expected=", ".join(TENSOR_DTYPES),
            remedy="Read the bytes with rs.Bytes.",
        )
    return known


def _shape(view: memoryview, size: int) -> tuple[int, ...]:
    sides: list[int] = []
    for field, wire, start, stop in _fields(view, size):
        if field != 2 or wire != _DELIMITED:
            raise _malformed("an unknown number of sides" if field == 3 else "a malformed shape")
        side, names = 0, 0
        for of_side, side_wire, at, end in _fields(view[start:stop], stop - start):
            if (of_side, side_wire) == (1, _VARINT):
                side = read_varint(view, start + at)[0]
            elif (of_side, side_wire) == (2, _DELIMITED):
                str(view[start + at : start + end], "utf-8")  # the name of a side
                names += 1
            else:
                raise _malformed("a malformed shape")
        sides.append(side)
        if len(sides) > _MAX_SIDES or math.prod(side or 1 for side in sides) > _MAX_VALUES:
            raise _malformed("a side of unknown length, or more sides or values than there can be")
    return tuple(sides)


def _value_count(known: _TensorType, field: int, wire: int, values: memoryview, size: int) -> int:
    """Return how many values a field has, packed or not: of lists of floats, how many bytes."""
    if field == _CONTENT and known.size:
        count, rest = divmod(size, known.size)
        is_good = wire == _DELIMITED and not rest
    elif field != known.field:
        raise _malformed(f"field {field}, which {known.name} does not have")
    elif known.name == "string":
        count, is_good = 1, wire == _DELIMITED
    elif known.listed is None:
        count = int(np.count_nonzero(np.frombuffer(values, np.uint8) < 128))
        is_good = wire in (_VARINT, _DELIMITED) and (not values or values[-1] < 128)
    else:
        unpacked, width = _LISTED[known.listed]
        count, is_good = size, wire in (unpacked, _DELIMITED) and not size % width
    if not is_good:
        raise _malformed(f"a malformed list of {known.name}")
    return count


def _varints(data: bytes) -> npt.NDArray[np.uint64]:
    """Return varints that are end to end, of which the last is complete."""
    numbers = np.frombuffer(data, np.uint8)
    starts = np.append(0, np.flatnonzero(numbers < 128)[:-1] + 1)
    lengths = np.diff(np.append(starts, len(numbers)))
    places = np.arange(len(numbers)) - np.repeat(starts, lengths)
    if (lengths > 10).any():
        raise _malformed("a number of more than ten bytes")
    bits = (numbers & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, starts)


def _malformed(what: str) -> CorruptDataError:
    return CorruptDataError(
        Defect.FEATURE_VALUE,
        "the bytes are not a serialised tensor",
        found=what,
        expected="a TensorProto of tf.io.serialize_tensor",
    )


def schema_of_tensor(begins: BytesLike, size: int | None = None) -> TensorSchema | None:
    """Return dtype and shape of a serialised tensor; None for other bytes.

    Args:
        begins: the bytes, or the first of them; of a list of values all are needed.
        size: how many bytes there are; None for the length of `begins`.
    """
    try:
        tensor = read_tensor(begins, size)
    except CorruptDataError:
        return None
    return TensorSchema(tensor.dtype, tensor.shape)


def describe_tensor(value: BytesLike) -> str | None:
    """Return "serialised tensor float32 [3, 4]" if bytes are such a tensor; None otherwise."""
    known = schema_of_tensor(value)
    return None if known is None else f"serialised tensor {known}"
