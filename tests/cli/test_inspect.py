from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.exporting.readers import READERS


def test_tables(run, packed: Path) -> None:
    outcome = run("inspect", packed)
    assert outcome.code == 0
    lines = [line.split() for line in outcome.out.splitlines()]
    assert outcome.out.startswith("9 Examples in 4 shards")
    assert ["train", "6", "2"] in [line[:3] for line in lines]
    assert ["validation", "3", "2"] in [line[:3] for line in lines]
    assert ["image/encoded", "bytes", "(image)", "1", "all"] in [line[:5] for line in lines]
    assert "2 classes: 0 cat, 1 dog" in outcome.out


def test_ragged_and_sparse_features(run, tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "x.tfrecord") as writer:
        writer.write_example({"a": [1, 2, 3]})
        writer.write_example({"a": [1], "b\x1b[2J": 0.5})
    outcome = run("inspect", tmp_path / "x.tfrecord")
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["a", "int64", "1", "to", "3", "all"] in [line[:6] for line in lines]
    assert ["b\\x1b[2J", "float", "1", "1"] in [line[:4] for line in lines]
    assert "\x1b" not in outcome.out


def test_many_files_without_split_names(run, numbered, tmp_path: Path) -> None:
    """They are listed as files, and only the first ones."""
    for number in range(12):
        numbered.write_shard(tmp_path / f"part-{number:02d}.tfrecord", [number])
    heading, *rows = run("inspect", tmp_path).out.splitlines()[2:14]
    assert heading.split()[:4] == ["file", "records", "shards", "size"]
    assert [row.split()[0] for row in rows[:10]] == [f"part-{number:02d}" for number in range(10)]
    assert rows[10].startswith("  … and 2 more ")
    equal = run("diff", tmp_path, tmp_path).out
    assert "part-02 1 and 9 more" in equal
    (tmp_path / "part-00.tfrecord").rename(tmp_path / "test.tfrecord")
    assert "\nsplit " in run("inspect", tmp_path).out


@pytest.mark.parametrize("reader", READERS)
def test_reader_code(run, packed: Path, reader: Any) -> None:
    outcome = run("inspect", packed, "--split", "train", "--reader", reader)
    assert outcome.code == 0
    assert outcome.out == rs.reader_code(str(packed), reader, "train")


def test_invalid_readers(run, packed: Path) -> None:
    outcome = run("inspect", packed, "--reader", "keras")
    assert outcome.code == 2
    assert "keras" in outcome.err
    assert run("inspect", packed, "--reader", "tf", "--json").code == 2
