"""Where the features of a payload lie, without decoding them: what an edit goes by.

A payload is walked down to its map entries, key by key. Fields that no message here has lie
between them and are passed over. Nothing is said of what features hold: `classify` a payload
first.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from recordsmith.buffers import BytesLike, as_view
from recordsmith.example.payload import malformed_example

_VARINT, _FIXED64, _DELIMITED, _GROUP_START, _GROUP_END, _FIXED32 = range(6)
_FIELD_1 = 1 << 3 | _DELIMITED
_FIELD_2 = 2 << 3 | _DELIMITED
_GROUP_DEPTH = 100


@dataclass(slots=True)
class Entry:
    """One feature, or feature list: spans are in bytes of the payload.

    key: its name, as it is stored.
    start, stop: of the field, with tag and length.
    content: where the content of the field begins.
    key_start, key_stop: of the key's field in it; equal if there is none.
    value_start, value_stop: of the value's field in it; equal if there is none.
    """

    key: bytes
    start: int
    stop: int
    content: int
    key_start: int
    key_stop: int
    value_start: int
    value_stop: int


@dataclass(slots=True)
class Section:
    """A map of features (field 1) or, in a SequenceExample, of feature lists (field 2).

    start, stop: of the field in the payload, with tag and length.
    content: where the content of the field begins.
    """

    field: int
    start: int
    content: int
    stop: int
    entries: list[Entry] = dataclasses.field(default_factory=list)


def sections_of(payload: BytesLike) -> list[Section]:
    """The maps of a payload, in order; a message may have its map in several pieces.

    Raises:
        CorruptDataError: malformed-example.
    """
    data = as_view(payload)
    sections = []
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        if tag not in (_FIELD_1, _FIELD_2):
            at = _skip(data, tag, at, end)
            continue
        length, at = _varint(data, at, end)
        section = Section(tag >> 3, start, at, _within(at + length, end))
        section.entries = _entries(data, at, section.stop)
        sections.append(section)
        at = section.stop
    return sections


def context_payload(payload: BytesLike) -> bytes:
    """The context of a SequenceExample, as an Example.

    Raises:
        CorruptDataError: malformed-example.
    """
    data = as_view(payload)
    sections = (section for section in sections_of(payload) if section.field == 1)
    return b"".join(data[section.start : section.stop] for section in sections)


def delimited(number: int, *content: BytesLike) -> bytes:
    """A field with its tag and length."""
    size = sum(map(len, content))
    return b"".join((bytes((number << 3 | _DELIMITED,)), _encode_varint(size), *content))  # type: ignore[arg-type]


def _entries(data: memoryview, at: int, end: int) -> list[Entry]:
    entries = []
    while at < end:
        start = at
        tag, at = _varint(data, at, end)
        if tag != _FIELD_1:
            at = _skip(data, tag, at, end)
            continue
        length, at = _varint(data, at, end)
        stop = _within(at + length, end)
        entries.append(_entry(data, start, at, stop))
        at = stop
    return entries


def _entry(data: memoryview, start: int, content: int, stop: int) -> Entry:
    entry = Entry(b"", start, stop, content, content, content, stop, stop)
    at = content
    while at < stop:
        begin = at
        tag, at = _varint(data, at, stop)
        if tag not in (_FIELD_1, _FIELD_2):
            at = _skip(data, tag, at, stop)
            continue
        length, at = _varint(data, at, stop)
        inner, at = at, _within(at + length, stop)
        if tag == _FIELD_1:
            entry.key = bytes(data[inner:at])
            entry.key_start, entry.key_stop = begin, at
        else:
            entry.value_start, entry.value_stop = begin, at
    return entry


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    """(value, where it ends)."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise malformed_example()


def _skip(data: memoryview, tag: int, at: int, end: int, depth: int = 0) -> int:
    """Where a field ends that begins after its tag at `at`."""
    match tag & 7:
        case 0:
            return _varint(data, at, end)[1]
        case 1:
            return _within(at + 8, end)
        case 2:
            length, at = _varint(data, at, end)
            return _within(at + length, end)
        case 5:
            return _within(at + 4, end)
        case 3 if depth < _GROUP_DEPTH:
            while True:
                inner, at = _varint(data, at, end)
                if inner & 7 == _GROUP_END and inner >> 3 == tag >> 3:
                    return at
                at = _skip(data, inner, at, end, depth + 1)
    raise malformed_example()


def _within(at: int, end: int) -> int:
    if at > end:
        raise malformed_example()
    return at


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
