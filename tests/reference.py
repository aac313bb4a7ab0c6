"""The formats once more, as plainly as possible, for the tests to compare with.

Nothing here comes from recordsmith: frames and CRC-32C are pure Python, the messages are protobuf's
own classes, built in a descriptor pool apart so that they cannot collide with TensorFlow's. The
conftest of each folder loads this file and hands it to the tests as the fixture `reference`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any

# ---- frames ------------------------------------------------------------------------------------

CASTAGNOLI = 0x82F63B78
"""The polynomial of CRC-32C, bits reversed."""


def _table_entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (CASTAGNOLI if value & 1 else 0)
    return value


_TABLE = [_table_entry(value) for value in range(256)]


def crc32c(data: bytes, value: int = 0) -> int:
    value ^= 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> bytes:
    """The checksum as a frame stores it: turned right by 15 bits, plus a constant."""
    crc = crc32c(data)
    turned = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return struct.pack("<I", (turned + 0xA282EAD8) & 0xFFFFFFFF)


def header(length: int) -> bytes:
    """A frame's first twelve bytes, for a payload of any length."""
    size = struct.pack("<Q", length)
    return size + masked_crc32c(size)


def frame(payload: bytes) -> bytes:
    return header(len(payload)) + payload + masked_crc32c(payload)


def frames(payloads: Iterable[bytes]) -> bytes:
    return b"".join(map(frame, payloads))


# ---- protobuf on the wire ----------------------------------------------------------------------

VARINT, FIXED64, DELIMITED, GROUP_START, GROUP_END, FIXED32 = range(6)


def varint(value: int, width: int = 1) -> bytes:
    """`value` (negative ones as 64 bits), in at least `width` bytes."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value >= 128 or len(encoded) + 1 < width:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def delimited(field: int, content: bytes) -> bytes:
    return tag(field, DELIMITED) + varint(len(content)) + content


def entry(key: bytes, value: bytes) -> bytes:
    """A map entry, as the field 1 that holds it."""
    return delimited(1, delimited(1, key) + delimited(2, value))


def example(*entries: bytes) -> bytes:
    return delimited(1, b"".join(entries))


# ---- the messages, by protobuf -----------------------------------------------------------------


@cache
def messages() -> SimpleNamespace:
    """The classes Example, SequenceExample, ExampleListWithContext, Event and their parts."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field_type = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "bytes": field_type.TYPE_BYTES,
        "string": field_type.TYPE_STRING,
        "float": field_type.TYPE_FLOAT,
        "double": field_type.TYPE_DOUBLE,
        "int64": field_type.TYPE_INT64,
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="recordsmith_tests.proto", package="recordsmith_tests", syntax="proto3"
    )

    def set_field(field: Any, number: int, name: str, kind: str, repeated: bool) -> None:
        field.name, field.number = name, number
        field.label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
        if kind in scalars:
            field.type = scalars[kind]
        else:
            field.type, field.type_name = field_type.TYPE_MESSAGE, f".recordsmith_tests.{kind}"

    def message(name: str, *fields: str, oneof: str = "") -> None:
        """A message of fields such as "repeated bytes value=1"; `oneof` is the name of them all."""
        described = file.message_type.add(name=name)
        if oneof:
            described.oneof_decl.add(name=oneof)
        for text in fields:
            declaration, _, number = text.partition("=")
            *label, kind, field_name = declaration.split()
            if kind.startswith("map:"):
                entry_name = f"{field_name.title().replace('_', '')}Entry"
                inner = described.nested_type.add(name=entry_name)
                inner.options.map_entry = True
                set_field(inner.field.add(), 1, "key", "string", False)
                set_field(inner.field.add(), 2, "value", kind[4:], False)
                kind, label = f"{name}.{entry_name}", ["repeated"]
            field = described.field.add()
            set_field(field, int(number), field_name, kind, bool(label))
            if oneof:
                field.oneof_index = 0

    message("BytesList", "repeated bytes value=1")
    message("FloatList", "repeated float value=1")
    message("Int64List", "repeated int64 value=1")
    message(
        "Feature",
        "BytesList bytes_list=1",
        "FloatList float_list=2",
        "Int64List int64_list=3",
        oneof="kind",
    )
    message("Features", "map:Feature feature=1")
    message("Example", "Features features=1")
    message("FeatureList", "repeated Feature feature=1")
    message("FeatureLists", "map:FeatureList feature_list=1")
    message("SequenceExample", "Features context=1", "FeatureLists feature_lists=2")
    message("ExampleListWithContext", "repeated Example examples=1", "Example context=2")
    # the same with all that maps hide: how often an entry has a key, and what it has besides
    message("OpenEntry", "repeated bytes key=1", "repeated Feature value=2")
    message("OpenFeatures", "repeated OpenEntry feature=1")
    message("OpenExample", "repeated OpenFeatures features=1")
    message("OpenListEntry", "repeated bytes key=1", "repeated FeatureList value=2")
    message("OpenFeatureLists", "repeated OpenListEntry feature_list=1")
    message(
        "OpenSequenceExample",
        "repeated OpenFeatures context=1",
        "repeated OpenFeatureLists feature_lists=2",
    )
    message(
        "OpenExampleListWithContext",
        "repeated OpenExample examples=1",
        "repeated OpenExample context=2",
    )
    message("SummaryValue", "string tag=1", "float simple_value=2")
    message("Summary", "repeated SummaryValue value=1")
    message(
        "Event",
        "double wall_time=1",
        "int64 step=2",
        "string file_version=3",
        "bytes graph_def=4",
        "Summary summary=5",
        "bytes meta_graph_def=9",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return SimpleNamespace(
        **{
            described.name: message_factory.GetMessageClass(
                pool.FindMessageTypeByName(f"recordsmith_tests.{described.name}")
            )
            for described in file.message_type
        }
    )


def parse(name: str, data: bytes) -> Any:
    """The message, or None where protobuf refuses."""
    from google.protobuf.message import DecodeError

    try:
        return getattr(messages(), name).FromString(data)
    except DecodeError:
        return None


def has_entries_aside(map_message: Any) -> bool:
    """Whether protobuf keeps map entries apart, as bytes that it does not know.

    Its upb implementation does so with entries that hold an unknown field; its implementation in
    plain Python takes them for entries like others.
    """
    from google.protobuf.unknown_fields import UnknownFieldSet

    return any(
        (field.field_number, field.wire_type) == (1, DELIMITED)
        for field in UnknownFieldSet(map_message)
    )


# ---- values, in a form that can be compared ----------------------------------------------------


def plain_feature(feature: Any) -> Any:
    """(kind, values) of a Feature; floats as text, so that NaN equals NaN and -0 differs from 0."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return []
    values = list(getattr(feature, kind).value)
    if kind == "float_list":
        return "float", list(map(repr, values))
    return ("int64", values) if kind == "int64_list" else values


def plain_features(features: Any) -> dict[str, Any]:
    return {key: plain_feature(feature) for key, feature in features.feature.items()}


def plain_lists(lists: Any) -> dict[str, Any]:
    return {
        key: [plain_feature(step) for step in steps.feature]
        for key, steps in lists.feature_list.items()
    }


def plain_value(value: Any) -> Any:
    """The same of what recordsmith decoded: an array, or a list of bytes."""
    if isinstance(value, list):
        return value
    if value.dtype.name == "float32":
        return "float", list(map(repr, value.tolist()))
    return value.dtype.name, value.tolist()


def plain(features: dict[str, Any]) -> dict[str, Any]:
    """The same of a whole decoded dict."""
    return {key: plain_value(value) for key, value in features.items()}
