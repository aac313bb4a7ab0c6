from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import recordsmith as rs

from ..places import flip


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
    assert "…" in lines
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


def test_records_before_a_defect_are_printed(run, packed: Path) -> None:
    shard = packed / "train-00000-of-00002.tfrecord"
    flip(shard, -20)
    outcome = run("head", shard)
    assert outcome.code == 1
    assert "record 1" in outcome.out
    assert "payload-crc-mismatch" in outcome.err
    assert "record 2" in outcome.err
