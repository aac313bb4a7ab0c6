"""The digest of a dataset changes with its records, and positions are those of `rs.open`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.dataset import RecordPositions

from ..reading import write_records


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": number} for number in range(23)]
    rs.pack(rs.Rows(rows), tmp_path / "out", splits={"train": 0.7, "test": 0.3}, shards=3)
    return tmp_path / "out"


def digest(path: Path) -> str:
    return RecordPositions.of(rs.open(path)).digest


def test_positions_are_those_of_the_opened_dataset(folder: Path) -> None:
    whole = rs.open(folder)
    positions = RecordPositions.of(whole)
    assert len(positions) == len(whole) == 23
    expected = 0
    for shard in whole.shards:
        for row in range(shard.record_count):
            assert positions.find(shard.location, row) == (expected, shard.split)
            expected += 1
    ids = [record["id"] for record in whole]
    for part in (rs.open(folder, "test"), rs.open(folder, "train[2:9]"), whole[3:20:4]):
        assert RecordPositions.of(part).digest == positions.digest
        numbers = RecordPositions.of(part).in_dataset(part)
        assert [ids[number] for number in numbers] == [record["id"] for record in part]
    assert positions.find("elsewhere.tfrecord", 0) == (None, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda path, out: rs.reshard(path, out, shards=2),
        lambda path, out: rs.reshard(path, out, without=[4]),
        lambda path, out: rs.reshard(path, out, shuffle=True),
        lambda path, out: rs.edit(path, out, add={"new": 1}),
        lambda path, out: rs.edit(path, out, recode={"id": {7: 70, "*": "*"}}),
        lambda path, out: (
            shutil.copytree(path, out),
            rs.append(
                write_records(path.parent / "more.tfrecord", [{"id": 99}]), out, split="train"
            ),
        ),
    ],
)
def test_the_digest_changes_with_the_records(
    folder: Path, tmp_path: Path, change: Callable[[Path, Path], object]
) -> None:
    change(folder, tmp_path / "changed")
    assert digest(tmp_path / "changed") != digest(folder)


def test_the_digest_stays_where_the_records_do(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere" / "copy")
    rs.reshard(folder, tmp_path / "same", shards=3)
    before = digest(folder)
    rs.index(folder)
    assert digest(tmp_path / "elsewhere" / "copy") == digest(tmp_path / "same") == before
    assert digest(folder) == before


def test_without_a_manifest_names_and_sizes_count(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, count in (("a", 3), ("b", 2)):
        write_records(tmp_path / "in" / f"{name}.tfrecord", [{"id": 1}] * count)
    before = digest(tmp_path / "in")
    positions = RecordPositions.of(rs.open(tmp_path / "in"))
    assert positions.find(tmp_path / "in" / "b.tfrecord", 1) == (4, "b")
    (tmp_path / "in" / "b.tfrecord").unlink()
    write_records(tmp_path / "in" / "b.tfrecord", [{"id": 1}] * 3)
    assert digest(tmp_path / "in") != before
    assert len(RecordPositions.of(rs.open(tmp_path / "in"))) == 6
