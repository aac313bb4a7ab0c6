"""Records over a network: one parallel round, verified, with the same result as from a disk."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.dataset import Faults, ShardWriter, records_of
from recordsmith.dataset.frames import walk
from recordsmith.stores import Location, Range

from .. import numbered_examples as numbered
from ..raising import raises
from ..stores.delayed import DelayedStore
from ..stores.rounds import RoundStore

COUNTS = (7, 0, 12, 1, 20)
SHARDS = 40
LENGTHS = (0, 900, 30_000, 5)


def _written(folder: Any) -> rs.Dataset:
    number = 0
    for at, count in enumerate(COUNTS):
        with ShardWriter(folder / f"train-{at:05}-of-00005.tfrecord") as writer:
            for _ in range(count):
                data = bytes([number]) * LENGTHS[number % 4]
                writer.write_example({"id": number, "data": data})
                number += 1
    return rs.open(folder)


def _remote(local: rs.Dataset) -> SimpleNamespace:
    """The same shards over a network; their indexes are loaded, and counting begins."""
    store = RoundStore()
    for shard in local.shards:
        store.set(f"d/{shard.location.name}", shard.location.read())
    dataset = rs.open(Location(store, "d"))
    records_of(dataset).record_sizes(range(len(dataset)))
    store.reset()
    return SimpleNamespace(store=store, dataset=dataset, local=local)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return _written(tmp_path_factory.mktemp("local"))


@pytest.fixture
def remote(local: rs.Dataset) -> SimpleNamespace:
    return _remote(local)


@given(st.lists(st.integers(-40, 39), min_size=2, max_size=60))
def test_any_records_are_read_in_one_round(local: rs.Dataset, positions: list[int]) -> None:
    remote = _remote(local)
    assert remote.dataset.read_records(positions).tolist() == local.read_records(positions).tolist()
    assert (len(remote.store.rounds), remote.store.singles) == (1, [])


def test_neighbours_are_one_range(remote: SimpleNamespace) -> None:
    remote.dataset.read_records(range(39, -1, -1))
    (ranges,) = remote.store.rounds
    sizes = {key: len(data) for key, (data, _) in remote.store.objects.items() if data}
    assert {(one.key, one.start, one.stop) for one in ranges} == {
        (f"d/{shard.location.name}", 0, sizes[f"d/{shard.location.name}"])
        for shard in remote.dataset.shards
        if shard.record_count
    }


@pytest.mark.parametrize(
    "chosen",
    [
        lambda one: one.shuffle(3),
        lambda one: one[::-1],
        lambda one: one.filter("id > 3 and id < 30").shuffle(1),
        lambda one: one[[5, 5, 39, 0]],
    ],
)
def test_selections_in_order(remote: SimpleNamespace, chosen: Callable[[rs.Dataset], Any]) -> None:
    assert [*chosen(remote.dataset).records()] == [*chosen(remote.local).records()]


def test_a_mix_reads_its_datasets_in_one_round(remote: SimpleNamespace) -> None:
    mixes = [rs.Mix([(one[:20], 0.5), (one[20:], 0.5)]) for one in (remote.dataset, remote.local)]
    remote.store.reset()
    positions = np.arange(39, -1, -3)
    found, expected = (mix.records.read_records(positions).tolist() for mix in mixes)
    assert found == expected
    assert len(remote.store.rounds) == 1


def test_indexes_are_loaded_at_the_same_time(local: rs.Dataset) -> None:
    store = RoundStore(0.02)
    for number in range(store.concurrency):
        store.set(f"{number:03}.tfrecord", local.shards[2].location.read())
    dataset = rs.open([Location(store, key) for key in store.objects])
    assert len(dataset) == 12 * store.concurrency
    assert store.most_at_once > store.concurrency // 2


@pytest.mark.parametrize(("length", "count"), [(110_000, 40), (900_000, 10), (3_000_000, 5)])
def test_lengths_without_an_index(tmp_path: Path, length: int, count: int) -> None:
    """Records are streamed, of large ones only the headers are read."""
    with ShardWriter(tmp_path / "one.tfrecord") as writer:
        for number in range(count):
            writer.write(bytes([number]) * (length + number))
    store = RoundStore()
    sent = 0

    def change(_: Range, data: bytes) -> bytes:
        nonlocal sent
        sent += len(data)
        return data

    store.change = change
    store.set("one.tfrecord", (tmp_path / "one.tfrecord").read_bytes())
    with Location(store, "one.tfrecord").open_read() as file:
        lengths, is_whole = walk(file, is_remote=True)
    assert (lengths.tolist(), is_whole) == ([length + number for number in range(count)], True)
    size = len(store.objects["one.tfrecord"][0])
    assert sent <= (size / 2 if length > 2 << 20 else 1.5 * size)


# -- what arrives is wrong -------------------------------------------------------------------------


def _lying(positions: Sequence[int], dataset: rs.Dataset, times: int) -> Any:
    """Turn a bit of some records in the first `times` answers that have them."""
    where = [records_of(dataset).locate_record(position) for position in positions]
    told: Counter[int] = Counter()

    def change(wanted: Range, data: bytes) -> bytes:
        changed = bytearray(data)
        for number, (path, _, offset) in enumerate(where):
            at = offset + 14 - wanted.start
            if path.endswith(wanted.key) and 0 <= at < len(data) and told[number] < times:
                told[number] += 1
                changed[at] ^= 8
        return bytes(changed)

    return change


def test_a_record_is_read_again_before_it_counts_as_damaged(remote: SimpleNamespace) -> None:
    positions = [5, 39, 0, 13, 8]
    expected = remote.local.read_records(positions).tolist()
    remote.store.change = _lying([39, 8], remote.dataset, 1)
    assert remote.dataset.read_records(positions).tolist() == expected
    assert (len(remote.store.rounds), len(remote.store.singles)) == (1, 2)
    remote.store.change = _lying([13], remote.dataset, 1)
    assert remote.dataset.read_records([13]).tolist() == remote.local.read_records([13]).tolist()


@pytest.mark.parametrize("positions", [[5, 39, 0, 13, 8], [13]])
def test_a_damaged_record_has_its_place(remote: SimpleNamespace, positions: list[int]) -> None:
    remote.store.change = _lying([13], remote.dataset, 99)
    shard = remote.dataset.shards[2]
    with raises(rs.CorruptDataError, path=shard.location, record=6, defect=rs.Defect.PAYLOAD_CRC):
        remote.dataset.read_records(positions)
    assert len(remote.store.singles) + len(remote.store.rounds) == 2


def test_all_damaged_records_are_found_and_the_others_read(remote: SimpleNamespace) -> None:
    positions = np.array([13, 5, 39, 0, 8])
    remote.store.change = _lying([13, 0], remote.dataset, 99)
    faults: Faults = {}
    found = records_of(remote.dataset).read_records(positions, faults=faults).tolist()
    expected = remote.local.read_records(positions).tolist()
    assert sorted(faults) == [0, 3]
    assert [found[row] for row in (1, 2, 4)] == [expected[row] for row in (1, 2, 4)]


@pytest.mark.parametrize("cut", [slice(0), slice(11), slice(-1)])
def test_less_than_requested(remote: SimpleNamespace, cut: slice) -> None:
    remote.store.change = lambda _, data: data[cut]
    with pytest.raises(rs.CorruptDataError):
        remote.dataset.read_records([3, 20])


def test_damage_ends_a_selection_after_the_records_before_it(remote: SimpleNamespace) -> None:
    shuffled = remote.dataset.shuffle(5)
    expected = [*remote.local.shuffle(5).records()]
    remote.store.change = _lying([13], remote.dataset, 999)
    read = []
    with pytest.raises(rs.CorruptDataError):
        read.extend(shuffled.records())
    assert read == expected[: expected.index(remote.local.read_records([13]).tolist()[0])]


# -- shards in order are begun ahead ---------------------------------------------------------------


@pytest.fixture
def ahead() -> Any:
    place = numbered.packed(Location(RoundStore(0.002), "data"), {"train": [3] * SHARDS})
    dataset = rs.open(place)
    _store(dataset).reset()
    return dataset


def _store(dataset: Any) -> Any:
    return dataset.shards[0].location.store


def test_all_records_in_order(ahead: Any) -> None:
    assert numbered.ids_of(ahead) == list(range(3 * SHARDS))
    assert len({one.key for one in _store(ahead).sent}) == SHARDS
    assert _store(ahead).most_at_once > 4
    assert _store(ahead).most_at_once <= DelayedStore.concurrency


@pytest.mark.parametrize(("used", "most"), [(1, 1), (3, 1), (4, 2), (7, 4), (10, 8)])
def test_the_beginning_needs_few_reads(ahead: Any, used: int, most: int) -> None:
    records = iter(ahead)
    assert numbered.ids_of(next(records) for _ in range(used)) == list(range(used))
    records.close()
    assert len({one.key for one in _store(ahead).sent}) <= most


def test_an_abandoned_iteration_ends_its_threads(ahead: Any) -> None:
    records = iter(ahead)
    for _ in range(20):
        next(records)
    records.close()
    assert not [one for one in threading.enumerate() if one.name.startswith("recordsmith-shard")]


def test_damage_is_reported_after_the_records_before_it(ahead: Any) -> None:
    location = ahead.shards[20].location
    data = bytearray(location.read())
    data[-1] ^= 1
    objects = location.store.objects
    objects[location.key] = bytes(data), objects[location.key][1]  # the version stays
    found = []
    with raises(rs.CorruptDataError, path=str(location), record=2):
        found.extend(int(example["id"][0]) for example in rs.open(location.parent))
    assert found == list(range(62))


@pytest.mark.posix
def test_an_iteration_goes_on_in_a_forked_process(ahead: Any) -> None:
    records = iter(ahead)
    for _ in range(20):
        next(records)
    child = os.fork()
    if not child:
        try:
            assert numbered.ids_of(records) == list(range(20, 3 * SHARDS))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert numbered.ids_of(records) == list(range(20, 3 * SHARDS))
