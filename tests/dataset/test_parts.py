"""Parts of a dataset: together they are the dataset, and each is read on its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import Shard, View, joined_shards, parts_of
from recordsmith.support.errors import Defect

from ..raising import raises

pa = pytest.importorskip("pyarrow")

COUNTS = (40, 0, 7, 25)

SELECTIONS: dict[str, Callable[[rs.Dataset], rs.Dataset]] = {
    "all": lambda dataset: dataset,
    "a slice": lambda dataset: dataset[3:60],
    "every third": lambda dataset: dataset[5:70:3],
    "a filter": lambda dataset: dataset.filter("label == 2"),
    "positions": lambda dataset: dataset.select([1, 1, 8, 39, 40, 71]),
    "none": lambda dataset: dataset[:0],
    "columns": lambda dataset: dataset.select_columns(["label"]),
}


@pytest.fixture(params=["none", "gzip"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    numbers = iter(range(sum(COUNTS)))
    for shard, count in enumerate(COUNTS):
        suffix = ".gz" if request.param == "gzip" else ""
        name = f"train-{shard:05d}-of-{len(COUNTS):05d}.tfrecord{suffix}"
        with rs.ShardWriter(tmp_path / name, compression=request.param) as writer:
            for number in (next(numbers) for _ in range(count)):
                example: dict[str, Any] = {"id": number, "label": number % 3}
                if number % 5 == 0 and number > 40:  # the first shards lack it
                    example["rare"] = [float(number)] * (number % 2)
                writer.write_example(example, {"rare": "float"})
    return tmp_path


@pytest.mark.parametrize("part_bytes", [1, 300, "1kB", "1GiB"])
@pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)
def test_parts_are_the_dataset(
    folder: Path, select: Callable[[rs.Dataset], rs.Dataset], part_bytes: int | str
) -> None:
    dataset = select(rs.open(folder))
    whole = dataset.to_arrow().read_all()
    parts = parts_of(dataset, part_bytes)
    tables = [pickle.loads(pickle.dumps(part)).to_arrow().read_all() for part in parts]
    assert sum(map(len, tables)) == len(dataset) == sum(map(len, parts))
    if tables:
        assert {table.schema for table in tables} == {whole.schema}
        assert pa.concat_tables(tables).to_pylist() == whole.to_pylist()


def test_large_plain_shards_are_cut_evenly(folder: Path) -> None:
    dataset = rs.open(folder)
    sizes = [shard.size_bytes for shard in dataset.shards]
    parts = parts_of(dataset, 300)
    for shard, size in zip(dataset.shards, sizes, strict=True):
        place = shard.location.identity
        found = [len(part) for part in parts if part.shards[0].location.identity == place]
        is_cut = shard.compression == "none" and shard.record_count
        assert len(found) == (-(-size // 300) if is_cut else 1)
        assert max(found) - min(found) <= 1


def _no_index(shard: Shard) -> None:
    pytest.fail("it reads the whole shard for an index")


def test_a_part_needs_neither_index_nor_current_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    dataset = rs.open(folder.name)
    data = pickle.dumps(parts_of(dataset, 300))
    expected = dataset.to_arrow().read_all().to_pylist()
    monkeypatch.setattr(Shard, "_build_index", _no_index)
    monkeypatch.chdir("/")
    tables = [part.to_arrow(where="id >= 0").read_all() for part in pickle.loads(data)]
    assert pa.concat_tables(tables).to_pylist() == expected


def test_whole_shards_are_not_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shard, "_build_index", _no_index)
    assert len(parts_of(rs.open(folder))) == len(COUNTS)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("where", ["label == 1", "id < 0", "rare >= 0.0", "id in (3, 64)"])
@pytest.mark.parametrize("select", SELECTIONS.values(), ids=SELECTIONS)
def test_where_is_a_filter_in_the_same_pass(
    folder: Path, select: Callable[[rs.Dataset], rs.Dataset], where: str, threads: int
) -> None:
    opened = rs.open(folder)
    _ = opened.schema  # of all records, also for a selection
    dataset = select(opened)
    table = dataset.to_arrow(["id"], where=where, threads=threads).read_all()
    assert table == dataset.filter(where).to_arrow(["id"]).read_all()


def test_damage_after_a_condition_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "rows.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(10):
            writer.write_example({"id": number, "value": [1.0] if number < 8 else ["text"]})
    schema = rs.open(path)[:8].schema
    dataset = rs.Dataset(View(joined_shards([Shard(path, "")]), schema, schema))
    with raises(rs.CorruptDataError, path=path, record=9, defect=Defect.FEATURE_KIND):
        dataset.to_arrow(where="id in (2, 9)").read_all()


@pytest.mark.parametrize("part_bytes", [0, -1, True, "much", 1.5])
def test_bad_sizes(folder: Path, part_bytes: Any) -> None:
    with raises(rs.OptionError, option="part_bytes", value=part_bytes):
        parts_of(rs.open(folder), part_bytes)


def test_a_shuffled_dataset_has_no_parts(folder: Path) -> None:
    with raises(rs.OptionError, option="dataset"):
        parts_of(rs.open(folder).shuffle(1))
