from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs


@pytest.fixture
def more(tmp_path: Path, packed: Path) -> Path:
    """A shard with the first two records of the dataset."""
    with rs.ShardWriter(tmp_path / "more.tfrecord") as writer:
        for record in rs.open(packed)[:2].records():
            writer.write(record)
    return tmp_path / "more.tfrecord"


def test_append(run, packed: Path, more: Path) -> None:
    outcome = run("append", more, packed, "--split", "train")
    assert outcome.code == 0
    assert outcome.out.splitlines()[:2] == [
        f"appended 2 records to {packed}",
        "  train: 8 records",
    ]
    assert "  2 shards renumbered" in outcome.out
    assert "notices:" in outcome.out
    assert "no class names" in outcome.out
    assert len(rs.open(packed)) == 11
    assert run("verify", packed).code == 0
    again = run("append", more, packed, "--split", "train")
    assert again.out.startswith("nothing to do: ")
    assert "--again" in again.out
    assert len(rs.open(packed)) == 11
    document = run("append", more, packed, "--split", "train", "--again", "--json").document
    assert document["appended"] == 2
    assert document["records"] == 13
    assert document["is_new"] is True
    assert document["splits"]["train"] == 10
