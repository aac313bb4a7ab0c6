"""Which fields does any protobuf message have? Read without knowing what it is.

The wire format tells numbers and lengths exactly. What a value with a length means it does not
tell: text, a message, packed numbers or bytes, so that is guessed, in this order, by rules that are
stated at each guess. A message is read strictly: to its last byte, or it is none.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.buffers import BytesLike, as_view
from recordsmith.errors import CorruptDataError, Defect, OptionError

WireType: TypeAlias = Literal["varint", "fixed64", "delimited", "group", "fixed32"]
FieldContent: TypeAlias = Literal["number", "text", "message", "numbers", "bytes"]

MAX_FIELDS = 100_000
"""So many fields are looked at, those of messages within messages included."""

MAX_DEPTH = 32
"""Messages within messages; what lies deeper stays bytes."""

_GROUP_DEPTH = 100  # as protobuf: deeper nesting is refused
_VARINT, _FIXED64, _DELIMITED, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_WIRE_TYPES: dict[int, WireType] = {
    _VARINT: "varint",
    _FIXED64: "fixed64",
    _DELIMITED: "delimited",
    _GROUP_START: "group",
    _FIXED32: "fixed32",
}
_LAST_NUMBER = (1 << 29) - 1
_PACKED_LIMIT = 1 << 14  # of two bytes each; larger ones cannot be told from other bytes


@dataclass(frozen=True, slots=True)
class RawField:
    """One field of a message whose type is not known.

    number: as in the .proto file.
    wire_type: varint, fixed64, delimited, group or fixed32.
    offset: of its first byte in the payload.
    content: number, text, message, numbers or bytes; of what is delimited, this is a guess.
    value: an int without sign; str; the fields of a message or group; packed numbers as ints or
        floats; bytes.
    """

    number: int
    wire_type: WireType
    offset: int
    content: FieldContent
    value: int | str | bytes | tuple[RawField, ...] | tuple[int, ...] | tuple[float, ...]

    @property
    def signed(self) -> int | None:
        """A number as int32, int64, sfixed32 or sfixed64 read it; None where it is no number."""
        if not isinstance(self.value, int):
            return None
        bits = 32 if self.wire_type == "fixed32" else 64
        return self.value - (1 << bits) if self.value >> (bits - 1) else self.value

    @property
    def as_float(self) -> float | None:
        """Four or eight bytes as float or double read them; None where there are none."""
        if not isinstance(self.value, int) or self.wire_type == "varint":
            return None
        if self.wire_type == "fixed32":
            return float(struct.unpack("<f", struct.pack("<I", self.value))[0])
        return float(struct.unpack("<d", struct.pack("<Q", self.value))[0])


class FieldSpan(NamedTuple):
    """Where a field lies: its tag at `offset`, its value (inside length or group) start:stop."""

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
        max_fields: how many fields are looked at; messages in it that would be more stay bytes.
        max_depth: how deep messages within messages are looked for; what is deeper stays bytes.

    Returns:
        The fields in the order of the bytes.

    Raises:
        CorruptDataError: malformed-message; it says at which byte of the payload, and why.
        OptionError: the message itself has more than `max_fields` fields.
    """
    data = bytes(as_view(payload))
    budget = _Budget(max_fields)
    try:
        return _fields(data, 0, len(data), budget, max_depth)
    except _SpentError:
        raise OptionError(
            f"the payload has more than {max_fields:,} fields; raise max_fields to see all of them"
        ) from None
    except MalformedError as error:
        raise CorruptDataError(
            Defect.MALFORMED_MESSAGE,
            f"the payload is no protobuf message: {error.reason} at byte {error.at} of its "
            f"{len(data)}. It may be text, a picture or numbers of another format; read it as "
            "bytes.",
        ) from None


class MalformedError(Exception):
    """Not the wire format: why, and at which byte."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


def walk_fields(data: bytes, start: int, stop: int) -> Iterator[FieldSpan]:
    """The fields of a message in data[start:stop], one level deep.

    Raises:
        MalformedError: after the fields before it.
    """
    at = start
    while at < stop:
        field = _field(data, at, stop, 0)
        if field.wire_type == _GROUP_END:
            raise MalformedError(at, "a group ends that did not begin")
        yield field
        at = _end_of(data, field)


def varint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """The number that begins at a byte, and where the next one begins.

    Raises:
        MalformedError: it does not end within ten bytes, or before `stop`.
    """
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
        raise MalformedError(at, f"field number {number}, which cannot be,")
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
        raise MalformedError(at, f"wire type {wire_type}, which does not exist,")
    if depth >= _GROUP_DEPTH:
        raise MalformedError(at, f"more than {_GROUP_DEPTH} groups in each other")
    inner = start
    while inner < stop:
        field = _field(data, inner, stop, depth + 1)
        if field.wire_type == _GROUP_END:
            if field.number != number:
                raise MalformedError(inner, f"the end of group {field.number} in group {number}")
            return FieldSpan(number, wire_type, at, start, inner)
        inner = _end_of(data, field)
    raise MalformedError(at, "a group without an end")


def _within(at: int, end: int, stop: int) -> int:
    if end > stop:
        raise MalformedError(at, f"a value that ends {end - stop:,} bytes past the end")
    return end


def _end_of(data: bytes, field: FieldSpan) -> int:
    """Behind a field: behind its value, or behind the tag that ends its group."""
    if field.wire_type == _GROUP_START:
        return varint(data, field.stop, len(data))[1]
    return field.stop


class _SpentError(Exception):
    """More fields than are looked at."""


class _Budget:
    """How many fields may still be made."""

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int) -> None:
        if count > self.left:
            raise _SpentError
        self.left -= count


def _fields(
    data: bytes, start: int, stop: int, budget: _Budget, depth: int
) -> tuple[RawField, ...]:
    spans = []
    for span in walk_fields(data, start, stop):
        spans.append(span)
        if len(spans) > budget.left:
            raise _SpentError
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
    # a line break or a tab is also the tag of field 1, with which most messages begin
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
    """The fields, if it is a message to its last byte and there is room for it."""
    if depth <= 0:
        return None
    try:
        return _fields(data, start, stop, budget, depth - 1)
    except (MalformedError, _SpentError):
        return None


def as_text(content: bytes) -> str | None:
    """UTF-8 of printable characters, tabs and line breaks; None if it is something else."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    plain = text.translate({9: None, 10: None, 13: None})
    return text if plain.isprintable() else None


def _packed(content: bytes) -> tuple[int, ...] | tuple[float, ...] | None:
    """Two or more numbers of sizes that people use, such as those of an embedding."""
    for code, size in (("f", 4), ("d", 8)):
        count = len(content) // size
        if count >= 2 and len(content) % size == 0 and len(content) <= MAX_FIELDS * size:
            floats: tuple[float, ...] = struct.unpack(f"<{count}{code}", content)
            if all(_is_usual(value) for value in floats) and any(floats):
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
        if value >= _PACKED_LIMIT or (after - at == 2 and value < 128):  # longer than it need be
            return None
        integers.append(value)
        at = after
    return tuple(integers)


def _is_usual(value: float) -> bool:
    return value == 0 or (math.isfinite(value) and 1e-6 < abs(value) < 1e9)
