from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs

from ..images import make_folder


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


def test_invalid_commands(run, packed: Path, more: Path, tmp_path: Path) -> None:
    outcome = run("append", more, tmp_path / "none")
    assert outcome.code == 2
    assert str(tmp_path / "none") in outcome.err
    outcome = run("append", tmp_path / "none.tfrecord", packed)
    assert outcome.code == 2
    more.write_bytes(more.read_bytes()[:-1])
    assert run("append", more, packed, "--split", "train").code == 1
    assert len(rs.open(packed)) == 9


@pytest.fixture
def flowers(run, tmp_path: Path) -> Path:
    """A packed dataset of three classes, with other keys and smaller images."""
    make_folder(tmp_path / "old", {"daisy": 2, "rose": 2, "tulip": 2})
    options = (
        "--keys",
        "image/class/label=y,image/encoded=img",
        "--store",
        "png",
        "--shorter-side",
        3,
    )
    outcome = run("pack", tmp_path / "old", tmp_path / "out", *options, "--compression", "gzip")
    assert outcome.code == 0
    return tmp_path / "out"


def test_packed_like_the_dataset(run, flowers: Path, tmp_path: Path) -> None:
    new = make_folder(tmp_path / "new", {"rose": 3, "tulip": 1})
    outcome = run("append", new, flowers)
    assert outcome.code == 2
    assert str(new) in outcome.err
    assert run("pack", new, tmp_path / "packed", "--like", flowers).code == 0
    document = run("append", tmp_path / "packed", flowers, "--split", "test", "--json").document
    assert document["appended"] == 4
    added = rs.open(flowers, split="test")
    assert added.class_names == ("daisy", "rose", "tulip")
    assert sorted((e["y"][0], e["image/class/text"][0]) for e in added) == [
        *[(1, b"rose")] * 3,
        (2, b"tulip"),
    ]
    assert {min(e["image/height"][0], e["image/width"][0]) for e in added} == {3}
    assert run("verify", flowers, "--deep").code == 0
