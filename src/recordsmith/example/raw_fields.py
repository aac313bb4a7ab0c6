"""Read the fields of any protobuf message without its descriptor.

The wire format has numbers and lengths, but not whether a length-delimited value is text, a
message, packed numbers or bytes. That is guessed, in this order. Only bytes that can be read to the
last one are a message.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import CorruptDataError, Defect, OptionError, option

WireType: TypeAlias = Literal["varint", "fixed64", "delimited", "group", "fixed32"]
FieldContent: TypeAlias = Literal["number", "text", "message", "numbers", "bytes"]

MAX_FIELDS = 100_000
"""The maximum number of fields, including those of nested messages."""

MAX_DEPTH = 32
"""The maximum nesting of messages; deeper ones stay bytes."""

_GROUP_DEPTH = 100  # as in protobuf, which refuses deeper nesting
_VARINT, _FIXED64, _DELIMITED, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_WIRE_TYPES: dict[int, WireType] = {
    _VARINT: "varint",
    _FIXED64: "fixed64",
    _DELIMITED: "delimited",
    _GROUP_START: "group",
    _FIXED32: "fixed32",
}
_LAST_NUMBER = (1 << 29) - 1
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PACKED_LIMIT = 1 << 14  # of two bytes each; larger ones look like other bytes


@dataclass(frozen=True, slots=True)
class RawField:
    """One field of a message of unknown type.

    number: as in the .proto file.
    wire_type: varint, fixed64, delimited, group or fixed32.
    offset: its first byte in the payload.
    content: number, text, message, numbers or bytes; a guess for delimited fields.
    value: an unsigned int; str; the fields of a message or group; packed numbers as ints or floats;
        bytes.
    """

    number: int
    wire_type: WireType
    offset: int
    content: FieldContent
    value: int | str | bytes | tuple[RawField, ...] | tuple[int, ...] | tuple[float, ...]

    @property
    def signed(self) -> int | None:
        """The value as int32, int64, sfixed32 or sfixed64; None if it is not a number."""
        if not isinstance(self.value, int):
            return None
        bits = 32 if self.wire_type == "fixed32" else 64
        return self.value - (1 << bits) if self.value >> (bits - 1) else self.value

    @property
    def as_float(self) -> float | None:
        """The value as float or double; None if it does not have four or eight bytes."""
        if not isinstance(self.value, int) or self.wire_type == "varint":
            return None
        if self.wire_type == "fixed32":
            return float(struct.unpack("<f", struct.pack("<I", self.value))[0])
        return float(struct.unpack("<d", struct.pack("<Q", self.value))[0])


class FieldSpan(NamedTuple):
    """The position of a field: its tag at `offset`, its value (without length) at start:stop."""

    number: int
    wire_type: int
    offset: int
    start: int
    stop: int


def decode_fields(
    payload: BytesLike, *, max_fields: int = MAX_FIELDS, max_depth: int = MAX_DEPTH
) -> tuple[RawField, ...]:
    """Read the fields of any protobuf message, without its descriptor.

    Args:
        payload: the message.
        max_fields: the maximum number of fields; nested messages beyond it stay bytes.
        max_depth: the maximum nesting of messages; deeper ones stay bytes.

    Returns:
        The fields in the order of the bytes.

    Raises:
        CorruptDataError: malformed-message, with the byte of the payload and the reason.
        OptionError: the message itself has more than `max_fields` fields.
    """
    data = bytes(as_view(payload))
    budget = _Budget(max_fields)
    try:
        return _fields(data, 0, len(data), budget, max_depth)
    except _LimitReachedError:
        raise OptionError(
            f"the payload has more than {max_fields:,} fields",
            option="max_fields",
            value=max_fields,
            remedy=f"Raise {option('max_fields')}.",
        ) from None
    except MalformedError as error:
        raise CorruptDataError(
            Defect.MALFORMED_MESSAGE,
            f"the payload is not a protobuf message: {error.reason} at byte {error.at} of "
            f"{len(data)}",
            remedy="Read it as bytes: it may be text, an image or another format.",
        ) from None


class MalformedError(Exception):
    """The bytes are not in wire format, for a reason and at a byte."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


def iter_fields(data: bytes, start: int, stop: int) -> Iterator[FieldSpan]:
    """Yield the fields of a message in data[start:stop], without nested ones."""
    at = start
    while at < stop:
        field = _field(data, at, stop, 0)
        if field.wire_type == _GROUP_END:
            raise MalformedError(at, "the end of a group without a start")
        yield field
        at = _field_end(data, field)


def varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """Read a varint; return its value and its end."""
    value = 0
    for place in range(10):
        if at + place >= stop:
            raise MalformedError(at, "a number runs past the end")
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value & (1 << 64) - 1, at + place + 1
    raise MalformedError(at, "a number of more than ten bytes")


def _field(data: bytes, at: int, stop: int, depth: int) -> FieldSpan:
    tag, start = varint(data, at, stop)
    number, wire_type = tag >> 3, tag & 7
    if start - at > 5 or not 1 <= number <= _LAST_NUMBER:
        raise MalformedError(at, f"the invalid field number {number}")
    if wire_type == _VARINT:
        return FieldSpan(number, wire_type, at, start, varint(data, start, stop)[1])
    if wire_type == _DELIMITED:
        size, start = varint(data, start, stop)
        return FieldSpan(number, wire_type, at, start, _within(at, start + size, stop))
    if wire_type == _FIXED64:
        return FieldSpan(number, wire_type, at, start, _within(at, start + 8, stop))
    if wire_type == _FIXED32:
        return FieldSpan(number, wire_type, at, start, _within(at, start + 4, stop))
    if wire_type == _GROUP_END:
        return FieldSpan(number, wire_type, at, start, start)
    if wire_type != _GROUP_START:
        raise MalformedError(at, f"the invalid wire type {wire_type}")
    if depth >= _GROUP_DEPTH:
        raise MalformedError(at, f"more than {_GROUP_DEPTH} nested groups")
    inner = start
    while inner < stop:
        field = _field(data, inner, stop, depth + 1)
        if field.wire_type == _GROUP_END:
            if field.number != number:
                raise MalformedError(inner, f"the end of group {field.number} in group {number}")
            return FieldSpan(number, wire_type, at, start, inner)
        inner = _field_end(data, field)
    raise MalformedError(at, "a group without an end")


def _within(at: int, end: int, stop: int) -> int:
    if end > stop:
        raise MalformedError(at, f"a value that ends {end - stop:,} bytes past the end")
    return end


def _field_end(data: bytes, field: FieldSpan) -> int:
    """Return the end of a field: of its value, or of the tag that ends its group."""
    if field.wire_type == _GROUP_START:
        return varint(data, field.stop, len(data))[1]
    return field.stop


class _LimitReachedError(Exception):
    """There are more fields than the limit."""


class _Budget:
    """The number of fields that may still be read."""

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int) -> None:
        if count > self.left:
            raise _LimitReachedError
        self.left -= count


def _fields(
    data: bytes, start: int, stop: int, budget: _Budget, depth: int
) -> tuple[RawField, ...]:
    spans = []
    for span in iter_fields(data, start, stop):
        spans.append(span)
        if len(spans) > budget.left:
            raise _LimitReachedError
    budget.take(len(spans))
    return tuple(_decoded(data, span, budget, depth) for span in spans)


def _decoded(data: bytes, span: FieldSpan, budget: _Budget, depth: int) -> RawField:
    number, wire_type, offset, start, stop = span
    name = _WIRE_TYPES[wire_type]
    if wire_type == _VARINT:
        return RawField(number, name, offset, "number", varint(data, start, stop)[0])
    if wire_type in (_FIXED32, _FIXED64):
        return RawField(number, name, offset, "number", int.from_bytes(data[start:stop], "little"))
    if wire_type == _GROUP_START:
        fields = _message(data, start, stop, budget, depth)
        if fields is not None:
            return RawField(number, name, offset, "message", fields)
        return RawField(number, name, offset, "bytes", data[start:stop])
    content = data[start:stop]
    text = as_text(content)
    # a line break or a tab is also a tag of field 1, which begins most messages
    if text and text[0] >= " ":
        return RawField(number, name, offset, "text", text)
    fields = _message(data, start, stop, budget, depth) if content else None
    if fields is not None:
        return RawField(number, name, offset, "message", fields)
    if text:
        return RawField(number, name, offset, "text", text)
    numbers = _packed(content)
    if numbers is not None:
        return RawField(number, name, offset, "numbers", numbers)
    return RawField(number, name, offset, "bytes", content)


def _message(
    data: bytes, start: int, stop: int, budget: _Budget, depth: int
) -> tuple[RawField, ...] | None:
    """Return the fields, if all bytes are a message and the limits allow it."""
    if depth <= 0:
        return None
    try:
        return _fields(data, start, stop, budget, depth - 1)
    except (MalformedError, _LimitReachedError):
        return None


def as_text(content: bytes) -> str | None:
    """Decode text, as in `FeatureSchema.content`: UTF-8 without control characters; else None."""
    try:
        return None if _CONTROL.search(content) else content.decode()
    except UnicodeDecodeError:
        return None


def _packed(content: bytes) -> tuple[int, ...] | tuple[float, ...] | None:
    """Decode two or more numbers of usual size, such as an embedding; None for other bytes."""
    for code, size in (("f", 4), ("d", 8)):
        count = len(content) // size
        if count >= 2 and len(content) % size == 0 and len(content) <= MAX_FIELDS * size:
            floats: tuple[float, ...] = struct.unpack(f"<{count}{code}", content)
            if all(_is_plausible(value) for value in floats) and any(floats):
                return floats
    if not 2 <= len(content) <= MAX_FIELDS:
        return None
    integers = []
    at = 0
    while at < len(content):
        try:
            value, after = varint(content, at, min(at + 2, len(content)))
        except MalformedError:
            return None
        if value >= _PACKED_LIMIT or (after - at == 2 and value < 128):  # not the shortest encoding
            return None
        integers.append(value)
        at = after
    return tuple(integers)


def _is_plausible(value: float) -> bool:
    return value == 0 or (math.isfinite(value) and 1e-6 < abs(value) < 1e9)
