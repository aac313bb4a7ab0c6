from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

import recordsmith as rs


def test_number_of_records(run, packed: Path) -> None:
    outcome = run("head", packed, "-n", 2)
    assert outcome.code == 0
    assert "record 1" in outcome.out
    assert "record 2" not in outcome.out
    assert "image, 4" in outcome.out
    assert len(run("head", packed, "--json").document["records"]) == 5
    assert len(run("head", packed, "-n", 100, "--json").document["records"]) == 9
    assert run("head", packed, "-n", 0, "--json").document == {"records": []}


def test_json_gives_the_values(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example(
            {
                "ints": [-1, 2**62],
                "floats": np.array([0.1, math.nan, math.inf, -math.inf], np.float32),
                "text": "Zoë\n",
                "raw": b"\xff\x00\x01",
                "none": [],
            }
        )
    (record,) = run("head", tmp_path / "x.tfrecord", "--json").document["records"]
    assert record["position"] == 0
    assert record["payload"] == "Example"
    assert record["features"] == {
        "floats": {"kind": "float", "values": [0.1, "NaN", "Infinity", "-Infinity"]},
        "ints": {"kind": "int64", "values": [-1, 2**62]},
        "none": {"kind": "empty", "values": []},
        "raw": {"kind": "bytes", "values": [{"size_bytes": 3, "begins": "ff 00 01"}]},
        "text": {"kind": "bytes", "values": ["Zoë\n"]},
    }


def test_text_cannot_move_the_cursor(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({"bad\x1b]0;": "\x1b[31mred", "long": "x" * 1000, "many": range_(500)})
    outcome = run("head", tmp_path / "x.tfrecord")
    assert "\x1b" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) < 120
    assert "500 values" in outcome.out


def range_(count: int) -> list[int]:
    return list(range(count))


def test_sequence_examples(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write(rs.encode_sequence_example({"id": 7}, {"words": [["a", "b"], ["c"]]}))
    outcome = run("head", tmp_path / "x.tfrecord")
    assert "2 steps" in outcome.out
    assert '["a", "b"]' in outcome.out
    (record,) = run("head", tmp_path / "x.tfrecord", "--json").document["records"]
    assert record["payload"] == "SequenceExample"
    assert record["context"] == {"id": {"kind": "int64", "values": [7]}}
    assert [step["values"] for step in record["feature_lists"]["words"]] == [["a", "b"], ["c"]]


def test_ranking_lists(run, tmp_path: Path, reference: Any) -> None:
    message = reference.messages().ExampleListWithContext()
    message.context.features.feature["query"].bytes_list.value.append(b"shoes")
    for number in range(5):
        message.examples.add().features.feature["score"].float_list.value.append(number / 4)
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write(message.SerializeToString())
        del message.examples[:]
        writer.write(message.SerializeToString())
    outcome = run("head", tmp_path / "x.tfrecord")
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert any("5 Examples" in line for line in lines)
    assert 'query  bytes  "shoes"' in lines
    assert lines[lines.index("Example 2") + 1].split() == ["score", "float", "0.5"]
    assert "Example 3" not in lines
    assert "… and 2 more Examples" in lines
    first, second = run("head", tmp_path / "x.tfrecord", "--json").document["records"]
    assert first["payload"] == "ELWC"
    assert first["context"] == {"query": {"kind": "bytes", "values": ["shoes"]}}
    assert [each["score"]["values"] for each in first["examples"]] == [[n / 4] for n in range(5)]
    assert (second["payload"], second["examples"]) == ("ELWC", [])


def test_records_that_are_not_examples(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write(b"\xff\xfe plain bytes")
    outcome = run("head", tmp_path / "x.tfrecord")
    assert outcome.code == 0
    assert "Example: 14 bytes" in outcome.out
    assert "ff fe 20" in outcome.out
    (record,) = run("head", tmp_path / "x.tfrecord", "--json").document["records"]
    assert record["payload"] == "other"
    assert record["begins"].startswith("ff fe 20")


def message(reference: Any) -> bytes:
    """A typical message: a name, numbers, a nested message, an embedding."""
    r = reference
    inner = r.delimited(1, b"left") + r.tag(2, r.VARINT) + r.varint(-7)
    return (
        r.delimited(1, b"\x1b[31mred")
        + r.delimited(2, "größe".encode())
        + r.tag(3, r.FIXED32) + struct.pack("<f", 0.25)
        + r.delimited(4, inner) + r.delimited(4, inner)
        + r.delimited(5, struct.pack("<3f", 0.5, 1.5, -2.0))
        + r.tag(6, r.FIXED64) + struct.pack("<d", math.inf)
    )  # fmt: skip


def test_messages_of_unknown_type(run, reference: Any, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write(message(reference))
        writer.write(b"hello world")
    outcome = run("head", tmp_path / "x.tfrecord")
    assert outcome.code == 0
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert '2  text  "größe"' in lines
    assert lines.count("4  message") == 2
    assert "2  varint  -7" in lines
    assert "5  numbers  [0.5, 1.5, -2]" in lines
    assert any(line.startswith("3  fixed32  0.25") for line in lines)
    assert any(line.endswith('Example: "hello world"') for line in lines)
    assert "\x1b" not in outcome.out
    first, second = run("head", tmp_path / "x.tfrecord", "--json").document["records"]
    assert "fields" not in second
    assert first["payload"] == "other"
    assert [field["number"] for field in first["fields"]] == [1, 2, 3, 4, 4, 5, 6]
    assert first["fields"][1] == {
        "number": 2,
        "wire_type": "delimited",
        "content": "text",
        "value": "größe",
    }
    assert first["fields"][2]["float"] == 0.25
    assert first["fields"][3]["fields"][1]["value"] == -7
    assert first["fields"][5]["value"] == [0.5, 1.5, -2.0]
    assert first["fields"][6]["float"] == "Infinity"


def test_messages_by_their_descriptors(run, reference: Any, tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2

    kinds = descriptor_pb2.FieldDescriptorProto
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="x.proto", package="my.pkg", syntax="proto3")
    side = file.message_type.add(name="Side")
    side.field.add(name="word", number=1, type=kinds.TYPE_STRING, label=1)
    side.field.add(name="shift", number=2, type=kinds.TYPE_INT64, label=1)
    thing = file.message_type.add(name="Thing")
    thing.field.add(name="colour", number=1, type=kinds.TYPE_BYTES, label=1)
    thing.field.add(name="size", number=3, type=kinds.TYPE_FLOAT, label=1)
    thing.field.add(
        name="sides", number=4, type=kinds.TYPE_MESSAGE, label=3, type_name=".my.pkg.Side"
    )
    thing.field.add(name="far", number=6, type=kinds.TYPE_DOUBLE, label=1)
    (tmp_path / "x.pb").write_bytes(files.SerializeToString())
    path = tmp_path / "x.tfrecord"
    with rs.ShardWriter(path) as writer:
        writer.write(message(reference))
        writer.write(b"\xff\xff")
    options = ("--descriptors", tmp_path / "x.pb", "--message")
    outcome = run("head", path, "-n", 1, *options, "my.pkg.Thing")
    assert outcome.code == 0
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert "size  0.25" in lines
    assert "sides[1]" in lines
    assert lines.count('word  "left"') == 2
    document = run("head", path, "-n", 1, *options, "my.pkg.Thing", "--json").document
    (record,) = document["records"]
    assert record["payload"] == "my.pkg.Thing"
    assert record["message"]["sides"] == [{"word": "left", "shift": -7}] * 2
    assert record["message"]["far"] == "Infinity"
    assert record["message"]["2"] == "größe"
    outcome = run("head", path, *options, "my.pkg.Thing")
    assert outcome.code == 1
    assert "record 1: malformed-message" in outcome.err
    outcome = run("head", path, *options, "my.pkg.Think")
    assert outcome.code == 2
    assert "'my.pkg.Thing'" in outcome.err
    assert run("head", path, "--message", "my.pkg.Thing").code == 2


def test_records_before_a_defect_are_printed(run, packed: Path) -> None:
    shard = packed / "train-00000-of-00002.tfrecord"
    data = bytearray(shard.read_bytes())
    data[-20] ^= 1
    shard.write_bytes(data)
    outcome = run("head", shard)
    assert outcome.code == 1
    assert "record 1" in outcome.out
    assert "payload-crc-mismatch" in outcome.err
    assert "record 2" in outcome.err
