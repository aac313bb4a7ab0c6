"""`recordsmith stats`."""

from __future__ import annotations

import re
from pathlib import Path

import recordsmith as rs


def test_stats_as_tables(run, packed: Path) -> None:
    outcome = run("stats", packed)
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert outcome.out.startswith("9 records in 4 shards")
    assert ["image/encoded", "bytes", "all", "1"] in [line[:4] for line in lines]
    assert ["image/width", "40"] in [line[:2] for line in lines]
    assert re.search(r"5 jpeg, 4 png; 9 .* 3 channels", outcome.out)
    assert ["0", "cat"] in [line[:2] for line in lines]
    assert max(map(len, outcome.out.splitlines())) <= 110


def test_stats_document(run, packed: Path) -> None:
    document = run("stats", packed, "--json", "--split", "train").document
    assert document == rs.stats(packed, "train").to_json()
    assert document["records"] == 6


def test_stats_of_odd_records(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example(
            {"a\x1b[2J": ["\x1b[31m"] * 2, "f": float("nan"), "k" * 99: [2**63 - 1]}
        )
        writer.write_example({"f": [], "a\x1b[2J": [b"\xff" * 400] * 3})
        writer.write(rs.encode_sequence_example({"c": 1}, {"l": [[1.5], [2.5, 3]]}))
        writer.write(b"\x01other")
    outcome = run("stats", tmp_path / "x.tfrecord")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "a\\x1b[2J" in outcome.out
    assert "1 NaN" in outcome.out or "not-finite: f" in outcome.out
    assert "2 steps of 1 to 2" in outcome.out
