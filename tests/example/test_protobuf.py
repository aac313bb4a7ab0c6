"""Messages decoded with descriptors have the values of protobuf's classes, by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.example import MessageDecoder

from ..raising import raises


@pytest.fixture(scope="session")
def descriptors() -> bytes:
    """The output of protoc for two files; the second imports the first."""
    from google.protobuf import descriptor_pb2

    field = descriptor_pb2.FieldDescriptorProto
    found = descriptor_pb2.FileDescriptorSet()
    shapes = descriptor_pb2.FileDescriptorProto(
        name="shapes.proto", package="shapes", syntax="proto3"
    )
    point = shapes.message_type.add(name="Point")
    for number, name in enumerate(("x", "y"), 1):
        point.field.add(name=name, number=number, type=field.TYPE_FLOAT, label=1)
    drawing = descriptor_pb2.FileDescriptorProto(
        name="drawing.proto", package="draw.v1", syntax="proto3", dependency=["shapes.proto"]
    )
    colours = drawing.enum_type.add(name="Colour")
    for number, name in enumerate(("NONE", "RED")):
        colours.value.add(name=name, number=number)
    line = drawing.message_type.add(name="Line")
    counts = line.nested_type.add(name="CountsEntry")
    counts.options.map_entry = True
    counts.field.add(name="key", number=1, type=field.TYPE_STRING, label=1)
    counts.field.add(name="value", number=2, type=field.TYPE_INT64, label=1)
    message, enum = field.TYPE_MESSAGE, field.TYPE_ENUM
    line.field.add(name="title", number=1, type=field.TYPE_STRING, label=1)
    line.field.add(name="points", number=2, type=message, label=3, type_name=".shapes.Point")
    line.field.add(name="colour", number=3, type=enum, label=1, type_name=".draw.v1.Colour")
    line.field.add(
        name="counts", number=4, type=message, label=3, type_name=".draw.v1.Line.CountsEntry"
    )
    line.field.add(name="image", number=5, type=field.TYPE_BYTES, label=1)
    line.field.add(name="first", number=6, type=message, label=1, type_name=".shapes.Point")
    line.field.add(name="sizes", number=7, type=field.TYPE_SINT32, label=3)
    line.field.add(name="is_closed", number=8, type=field.TYPE_BOOL, label=1)
    found.file.extend([drawing, shapes])  # also in this order
    return found.SerializeToString()  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def line_payload(descriptors: bytes) -> bytes:
    """A Line, written by protobuf's own class."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in reversed(descriptor_pb2.FileDescriptorSet.FromString(descriptors).file):
        pool.Add(file)  # type: ignore[no-untyped-call]
    kind: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("draw.v1.Line"))  # type: ignore[no-untyped-call]
    line = kind(title="a", colour=1, image=b"\xff\0", sizes=[-1, 2], is_closed=True)
    line.points.add(x=0.5)
    line.points.add(y=-1.0)
    line.counts["n"] = 2**40
    line.first.x = 3.0
    return line.SerializeToString()  # type: ignore[no-any-return]


LINE = {
    "title": "a",
    "points": [{"x": 0.5}, {"y": -1.0}],
    "colour": "RED",
    "counts": {"n": 2**40},
    "image": b"\xff\0",
    "first": {"x": 3.0},
    "sizes": [-1, 2],
    "is_closed": True,
}


def test_fields_have_their_names(descriptors: bytes, line_payload: bytes, tmp_path: Path) -> None:
    file = tmp_path / "draw.pb"
    file.write_bytes(descriptors)
    decoder = MessageDecoder(file, "draw.v1.Line")
    assert decoder.decode(line_payload) == LINE
    assert decoder.decode(memoryview(line_payload)) == LINE
    assert decoder.decode(b"") == {}
    assert set(decoder.message_names) == {"draw.v1.Line", "shapes.Point"}
    assert MessageDecoder(descriptors, "shapes.Point").decode(b"") == {}


def test_undeclared_fields_are_returned_by_number(descriptors: bytes, reference: Any) -> None:
    r = reference
    point = MessageDecoder(descriptors, "shapes.Point")
    payload = (
        r.tag(9, r.VARINT) + b"\5" + r.tag(9, r.VARINT) + b"\6" + r.delimited(10, b"abc")
        + r.tag(11, r.GROUP_START) + r.tag(1, r.VARINT) + b"\7" + r.tag(11, r.GROUP_END)
    )  # fmt: skip
    assert point.decode(payload) == {"9": [5, 6], "10": b"abc", "11": {"1": 7}}
    line = MessageDecoder(descriptors, "draw.v1.Line")
    assert line.decode(r.tag(3, r.VARINT) + b"\x63") == {"colour": 99}  # no name for it


def test_other_payloads_are_defects(descriptors: bytes) -> None:
    decoder = MessageDecoder(descriptors, "draw.v1.Line")
    with pytest.raises(rs.CorruptDataError, match=r"draw\.v1\.Line") as caught:
        decoder.decode(b"\xff\xff")
    assert caught.value.defect is rs.Defect.MALFORMED_MESSAGE


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("draw.v1.Lime", "'draw.v1.Line'"),
        ("Line", "'draw.v1.Line'"),
        ("nothing.at.all.like.it", "shapes.Point, draw.v1.Line"),
    ],
)
def test_unknown_names_get_a_suggestion(descriptors: bytes, name: str, hint: str) -> None:
    with raises(rs.OptionError, option="message", value=name, match=hint):
        MessageDecoder(descriptors, name)


def test_invalid_descriptor_sets_are_refused(descriptors: bytes, tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    lonely = descriptor_pb2.FileDescriptorSet(file=[files.file[0]])
    with pytest.raises(rs.OptionError, match=r"shapes\.proto") as caught:
        MessageDecoder(lonely.SerializeToString(), "draw.v1.Line")
    assert caught.value.option == "descriptors"
    assert "--include_imports" in caught.value.remedy
    source = tmp_path / "draw.proto"
    source.write_text('syntax = "proto3"; message A { int64 b = 1; }')
    for wrong in (b"", b"\xff\xff", source):
        with pytest.raises(rs.OptionError) as caught:
            MessageDecoder(wrong, "A")
        assert caught.value.option == "descriptors"
        assert "--include_imports" in caught.value.remedy
    with pytest.raises(rs.FileAccessError):
        MessageDecoder(tmp_path / "none.pb", "A")
    files.file[1].dependency.append("drawing.proto")
    with raises(rs.OptionError, option="descriptors", match="circular"):
        MessageDecoder(files.SerializeToString(), "A")
    broken = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    broken.file[0].message_type[0].field[1].type_name = ".no.Such"
    with pytest.raises(rs.OptionError):
        MessageDecoder(broken.SerializeToString(), "draw.v1.Line")


@pytest.mark.parametrize(
    ("imports", "words"),
    [
        ({"a": ["a"]}, "circular.*: a"),
        ({"a": ["b"], "b": ["a"]}, "circular.*: (a, b|b, a)"),
        ({"a": ["b"], "b": ["c"], "c": ["b"], "d": []}, "circular.*: (b, c|c, b)"),
        ({"a": ["b"], "b": ["c"]}, "c, which b"),
    ],
)
def test_files_that_cannot_be_put_in_order(
    imports: dict[str, list[str]], words: str, tmp_path: Path
) -> None:
    from google.protobuf import descriptor_pb2

    found = descriptor_pb2.FileDescriptorSet()
    for name, others in imports.items():
        found.file.add(name=name, dependency=others).message_type.add(name=f"M{name}")
    path = tmp_path / "messages.pb"
    path.write_bytes(found.SerializeToString())
    with raises(rs.OptionError, option="descriptors", match=words):
        MessageDecoder(path, "Ma")


def test_a_chain_of_files_may_be_longer_than_calls_may_nest() -> None:
    from google.protobuf import descriptor_pb2

    found = descriptor_pb2.FileDescriptorSet()
    count = 3000
    for number in range(count):
        file = found.file.add(name=f"{number}", package=f"p{number}")
        file.message_type.add(name="M")
        if number + 1 < count:
            file.dependency.append(f"{number + 1}")
    decoder = MessageDecoder(found.SerializeToString(), "p0.M")
    assert len(decoder.message_names) == count


def test_conflicting_sets_do_not_collide(descriptors: bytes, line_payload: bytes) -> None:
    """Each has its own pool, separate from TensorFlow's."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    files.file[0].message_type[0].field[0].name = "heading"
    renamed = MessageDecoder(files.SerializeToString(), "draw.v1.Line")
    usual = MessageDecoder(descriptors, "draw.v1.Line")
    assert renamed.decode(line_payload)["heading"] == usual.decode(line_payload)["title"] == "a"
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindFileByName("drawing.proto")  # type: ignore[no-untyped-call]


def test_without_protobuf_the_extra_is_named(
    descriptors: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with raises(rs.MissingExtraError, extra="protobuf"):
        MessageDecoder(descriptors, "draw.v1.Line")
