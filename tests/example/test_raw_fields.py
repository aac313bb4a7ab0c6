"""Raw fields, compared with protobuf's parser, which keeps unknown fields."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.example import RawField, decode_fields
from recordsmith.example.raw_fields import MAX_DEPTH, as_text


def kept_by_protobuf(payload: bytes) -> list[Any] | None:
    """(number, wire type, value) of each field, by a message that declares none; None if it is
    refused.
    """
    from google.protobuf import empty_pb2
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    def plain(fields: Any) -> list[Any]:
        return [
            (
                field.field_number,
                field.wire_type,
                field.data if isinstance(field.data, (int, bytes)) else plain(field.data),
            )
            for field in fields
        ]

    try:
        return plain(UnknownFieldSet(empty_pb2.Empty.FromString(payload)))
    except DecodeError:
        return None


def found(fields: tuple[RawField, ...], payload: bytes) -> list[Any]:
    """The same of what recordsmith found; delimited values are looked up in the payload."""
    numbers = {"varint": 0, "fixed64": 1, "delimited": 2, "group": 3, "fixed32": 5}
    told: list[Any] = []
    for field in fields:
        value: Any = field.value
        if field.wire_type == "group":
            value = found(value, payload)
        elif field.wire_type == "delimited":
            at = field.offset
            while payload[at] >= 128:  # the tag
                at += 1
            size, shift, at = 0, 0, at + 1
            while True:
                size |= (payload[at] & 127) << shift
                shift, at = shift + 7, at + 1
                if payload[at - 1] < 128:
                    break
            value = payload[at : at + size]
        told.append((field.number, numbers[field.wire_type], value))
    return told


def attempt(payload: bytes) -> tuple[tuple[RawField, ...], rs.CorruptDataError | None]:
    """The fields, or none and the error."""
    try:
        return decode_fields(payload), None
    except rs.CorruptDataError as error:
        return (), error


@pytest.fixture(scope="session")
def messages(reference: Any) -> Any:
    """A strategy of messages without a schema: all wire types, groups, messages in messages."""
    r = reference
    numbers = st.integers(1, 40) | st.just(2**29 - 1)
    varints = st.builds(r.varint, st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300),
                        st.integers(1, 10))  # fmt: skip
    simple = st.one_of(
        st.builds(lambda n, v: r.tag(n, r.VARINT) + v, numbers, varints),
        st.builds(lambda n, v: r.tag(n, r.FIXED64) + v, numbers, st.binary(min_size=8, max_size=8)),
        st.builds(lambda n, v: r.tag(n, r.FIXED32) + v, numbers, st.binary(min_size=4, max_size=4)),
        st.builds(r.delimited, numbers, st.binary(max_size=9)),
        st.builds(r.delimited, numbers, st.text(max_size=9).map(str.encode)),
    )

    def within(inner: Any) -> Any:
        several = st.lists(inner, max_size=3).map(b"".join)
        return st.one_of(
            st.builds(r.delimited, numbers, several),
            st.builds(
                lambda n, v: r.tag(n, r.GROUP_START) + v + r.tag(n, r.GROUP_END), numbers, several
            ),
        )

    return st.lists(st.recursive(simple, within, max_leaves=6), max_size=5).map(b"".join)


@given(data=st.data())
@settings(max_examples=150)
def test_finds_what_protobuf_keeps(messages: Any, data: Any) -> None:
    payload = data.draw(messages)
    assert found(decode_fields(payload), payload) == kept_by_protobuf(payload)
    assert decode_fields(memoryview(payload)) == decode_fields(payload)


@given(data=st.data())
@settings(max_examples=250)
def test_refuses_what_protobuf_refuses(messages: Any, data: Any) -> None:
    payload = bytearray(data.draw(messages))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload)))
        if data.draw(st.booleans()):
            payload[at : at + 1] = bytes([data.draw(st.integers(0, 255))])
        else:
            del payload[at : at + data.draw(st.integers(1, 5))]
    fields, error = attempt(bytes(payload))
    kept = kept_by_protobuf(bytes(payload))
    # protobuf's parser accepts field number 0, unlike its specification
    if error is None or "field number 0" not in error.detail:
        assert (found(fields, bytes(payload)) if error is None else None) == kept


@given(st.binary(max_size=200))
def test_any_bytes_give_fields_or_the_defect(payload: bytes) -> None:
    fields, error = attempt(payload)
    if error is None:
        assert found(fields, payload) == kept_by_protobuf(payload)
    else:
        assert error.defect is rs.Defect.MALFORMED_MESSAGE
        assert f"of {len(payload)}" in error.detail


def only(payload: bytes) -> RawField:
    (field,) = decode_fields(payload)
    return field


def test_what_is_guessed_of_values(reference: Any) -> None:
    """Common contents of messages."""
    r = reference

    def guess(content: bytes) -> tuple[str, Any]:
        field = only(r.delimited(7, content))
        assert (field.number, field.wire_type, field.offset) == (7, "delimited", 0)
        return field.content, field.value

    assert guess(b"train/0.jpg") == ("text", "train/0.jpg")
    assert guess("größe\n".encode()) == ("text", "größe\n")
    assert guess(b"") == ("bytes", b"")
    assert guess(b"\xff\xd8\xff\xe0\0\x10JFIF") == ("bytes", b"\xff\xd8\xff\xe0\0\x10JFIF")
    floats = (0.25, -1.5, 3.0, 0.0)
    assert guess(struct.pack("<4f", *floats)) == ("numbers", floats)
    doubles = (1.0, 0.1, -7.5)
    assert guess(struct.pack("<3d", *doubles)) == ("numbers", doubles)
    packed = b"".join(map(r.varint, [1, 2, 300, 16383]))
    assert guess(packed) == ("numbers", (1, 2, 300, 16383))
    content, fields = guess(r.delimited(1, b"name") + r.tag(2, r.VARINT) + b"\x05")
    assert content == "message"
    assert [(field.number, field.value) for field in fields] == [(1, "name"), (2, 5)]
    assert [field.offset for field in fields] == [2, 8]  # in the whole payload
    # a line break is the tag of field 1: what holds together as a message is one
    assert guess(b"\n\x0dthirteen here")[0] == "message"
    assert guess(b"\nno message")[0] == "text"


def test_numbers_in_all_their_readings(reference: Any) -> None:
    r = reference
    minus_two = only(r.tag(3, r.VARINT) + r.varint(-2))
    assert (minus_two.value, minus_two.signed, minus_two.as_float) == (2**64 - 2, -2, None)
    small = only(r.tag(3, r.FIXED32) + struct.pack("<f", -1.5))
    assert (small.as_float, small.signed) == (-1.5, struct.unpack("<i", struct.pack("<f", -1.5))[0])
    assert only(r.tag(3, r.FIXED64) + struct.pack("<d", 0.1)).as_float == 0.1
    assert only(r.delimited(3, b"text")).signed is None


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"\x08", "a number runs past the end at byte 1 of 1"),
        (b"\x08\x01\x12\x05abc", "a value that ends 2 bytes past the end at byte 2 of 7"),
        (b"\x00\x01", "invalid field number 0 at byte 0"),
        (b"\x0e\x01", "invalid wire type 6 at byte 0"),
        (b"\x0b\x08\x01", "a group without an end at byte 0"),
        (b"\x0b\x14", "the end of group 2 in group 1 at byte 1"),
        (b"\x08\x01\x0c", "the end of a group without a start at byte 2"),
        (b"\x08" + b"\xff" * 11, "a number of more than ten bytes at byte 1"),
        (b"\x0b" * 150 + b"\x0c" * 150, "more than 100 nested groups at byte 100"),
    ],
)
def test_errors_have_the_reason_and_the_byte(payload: bytes, words: str) -> None:
    with pytest.raises(rs.CorruptDataError) as caught:
        decode_fields(payload)
    assert caught.value.defect is rs.Defect.MALFORMED_MESSAGE
    assert words in caught.value.detail


def test_nesting_and_numbers_of_fields_are_limited(reference: Any) -> None:
    r = reference
    payload = r.tag(1, r.VARINT) + b"\1"
    for _ in range(500):
        payload = r.delimited(1, payload)
    depth, field = 0, only(payload)
    while field.content == "message":
        depth, (field,) = depth + 1, field.value  # type: ignore[assignment]
    assert depth == MAX_DEPTH
    many = (r.tag(1, r.VARINT) + b"\1") * 1000
    with pytest.raises(rs.OptionError) as caught:
        decode_fields(many, max_fields=999)
    assert (caught.value.option, caught.value.value) == ("max_fields", "999")
    assert len(decode_fields(many, max_fields=1000)) == 1000
    assert only(r.delimited(1, many)).content == "message"
    (inner,) = decode_fields(r.delimited(1, many), max_fields=1000)
    assert inner.content != "message"  # one field and a thousand are too many


def test_text_is_what_can_be_printed() -> None:
    assert as_text("zoë\t\r\n".encode()) == "zoë\t\r\n"
    assert as_text(b"\x1b[2J") is None
    assert as_text(b"\xff") is None


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("a\u00a0b\u200d\u0085".encode(), "text"),
        (b"a\tb\r\n", "text"),
        (b"ab\x7f", "raw"),
        (b"ab\x1b", "raw"),
        (b"ab\xff", "raw"),
    ],
)
def test_text_is_what_schemas_call_text(value: bytes, content: str, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"x": value})
    assert rs.open(tmp_path / "a.tfrecord").schema.features["x"].content == content
    (field,) = decode_fields(bytes([10, len(value)]) + value)
    assert (field.content == "text") == (content == "text")
