"""Shards are begun ahead over a network: the same records, and no request too many."""

from __future__ import annotations

import os
import threading
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.stores import Location

from ..raising import raises
from ..stores.delayed import DelayedStore
from ..stores.rounds import RoundStore

SHARDS = 40


@pytest.fixture
def dataset(numbered: ModuleType) -> Any:
    place = numbered.packed(Location(RoundStore(0.002), "data"), {"train": [3] * SHARDS})
    dataset = rs.open(place)
    _store(dataset).reset()
    return dataset


def _store(dataset: Any) -> Any:
    return dataset.shards[0].location.store


def _ids(examples: Any) -> list[int]:
    return [int(example["id"][0]) for example in examples]


def test_all_records_in_order(dataset: Any) -> None:
    assert _ids(dataset) == list(range(3 * SHARDS))
    assert len({one.key for one in _store(dataset).sent}) == SHARDS
    assert _store(dataset).most_at_once > 4
    assert _store(dataset).most_at_once <= DelayedStore.concurrency


@pytest.mark.parametrize(("used", "most"), [(1, 1), (3, 1), (4, 2), (7, 4), (10, 8)])
def test_the_beginning_needs_few_reads(dataset: Any, used: int, most: int) -> None:
    records = iter(dataset)
    assert _ids(next(records) for _ in range(used)) == list(range(used))
    records.close()
    assert len({one.key for one in _store(dataset).sent}) <= most


def test_an_abandoned_iteration_ends_its_threads(dataset: Any) -> None:
    records = iter(dataset)
    for _ in range(20):
        next(records)
    records.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("recordsmith-shard")]


def test_damage_is_reported_after_the_records_before_it(dataset: Any) -> None:
    location = dataset.shards[20].location
    data = bytearray(location.read())
    data[-1] ^= 1
    objects = location.store.objects
    objects[location.key] = bytes(data), objects[location.key][1]  # the version stays
    found = []
    with raises(rs.CorruptDataError, path=str(location), record=2):
        found.extend(int(example["id"][0]) for example in rs.open(location.parent))
    assert found == list(range(62))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_an_iteration_goes_on_in_a_forked_process(dataset: Any) -> None:
    records = iter(dataset)
    for _ in range(20):
        next(records)
    child = os.fork()
    if not child:
        try:
            assert _ids(records) == list(range(20, 3 * SHARDS))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert _ids(records) == list(range(20, 3 * SHARDS))
