"""Loaders over selections of a dataset: order, ranks, workers, resuming, states of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs

from ..places import new_place

COUNTS = [20, 0, 31, 9]
Select = Callable[[rs.Dataset], rs.Dataset]

SELECTIONS: dict[str, Select] = {
    "slice": lambda data: data[5:50],
    "step": lambda data: data[3::4],
    "take": lambda data: data.take(23),
    "mask": lambda data: data[np.arange(len(data)) % 5 != 2],
    "filter": lambda data: data.filter("id >= 7 and id < 41"),
    "filter of a slice": lambda data: data[10:].filter("id < 44")[::2],
    "split_by": lambda data: data.split_by({"a": 0.7, "b": 0.3}, seed=3)["a"],
    "reversed": lambda data: data[::-1],
    "positions": lambda data: data[[44, 3, 3, 59, 0, 21]],
    "shuffle": lambda data: data.shuffle(1),
    "shuffled part": lambda data: data.shuffle(1)[10:40].filter("id != 20"),
    "none": lambda data: data[7:7],
}


@pytest.fixture(scope="module", params=["files", "memory"])
def dataset(
    request: pytest.FixtureRequest, numbered: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[rs.Dataset]:
    with new_place(request.param, tmp_path_factory.mktemp("plain")) as place:
        yield rs.open(numbered.write(place, COUNTS))


def ids_of(batches: Any) -> list[int]:
    return [number for batch in batches for number in batch["id"].tolist()]


def listed(dataset: rs.Dataset) -> list[int]:
    return [int(example["id"][0]) for example in dataset]


def loader_of(dataset: rs.Dataset, **options: Any) -> rs.Loader:
    return rs.Loader(dataset, {"id": "id"}, **{"batch_size": 4, "threads": 0, **options})


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_loader_reads_the_selection_in_its_order(dataset: rs.Dataset, name: str) -> None:
    part = SELECTIONS[name](dataset)
    assert ids_of(loader_of(part, threads=2)) == listed(part)
    for shuffle in (True, rs.BlockShuffle(4, 2)):
        shuffled = ids_of(loader_of(part, shuffle=shuffle, seed=1))
        assert sorted(shuffled) == sorted(listed(part))
    bucketed = ids_of(loader_of(part, buckets=rs.BucketBySize(by=np.arange(len(part)))))
    assert sorted(bucketed) == sorted(listed(part))


def test_compressed_shards_are_refused(dataset: rs.Dataset, tmp_path: Path) -> None:
    rs.edit(dataset.shards[0].location.parent, tmp_path / "out", add={"x": 1}, compression="gzip")
    with raises(rs.OptionError, option="dataset", match="recordsmith reshard"):
        loader_of(rs.open(tmp_path / "out"))


def test_a_state_of_another_selection_is_refused(dataset: rs.Dataset) -> None:
    parts = [
        dataset, dataset[:30], dataset[1:31], dataset[:60:2], dataset.shuffle(1)[:30],
        dataset.shuffle(2)[:30], dataset[np.arange(60) % 2 == 1], dataset.filter("id < 30"),
        dataset.shuffle(1), dataset.shuffle(2), dataset[30:],
    ]  # fmt: skip
    states = [loader_of(part).state_dict() for part in parts]
    for one, part in enumerate(parts):
        for other, state in enumerate(states):
            if one == other:
                loader_of(part).load_state_dict(state)
                continue
            with raises(rs.OptionError, option="state"):
                loader_of(part).load_state_dict(state)


def test_a_mix_of_selections(dataset: rs.Dataset) -> None:
    parts = [dataset.filter("id < 20"), dataset.shuffle(1)[:40]]
    loader = loader_of(rs.Mix([(parts[0], 1), (parts[1], 2)]))
    assert sorted(ids_of(loader)) == sorted(listed(parts[0]) + listed(parts[1]))
    other = loader_of(rs.Mix([(dataset[:20], 1), (dataset.shuffle(2)[:40], 2)]))
    with pytest.raises(rs.OptionError):
        other.load_state_dict(loader.state_dict())
