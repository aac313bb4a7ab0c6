"""Loaders of datasets over a network promise what all loaders do, and read ahead of the steps."""

from __future__ import annotations

import gc
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raising import raises
from tests.stores.rounds import RoundStore

import recordsmith as rs
from recordsmith.dataset import records_of
from recordsmith.loading.batches import ahead_reader
from recordsmith.stores import Location, Range

pytestmark = pytest.mark.usefixtures("_nothing_stays")
COUNTS = (9, 0, 14, 1, 17)  # 41
LENGTHS = (0, 3000, 200)
SHUFFLES = [
    False, True, rs.BlockShuffle(1, 1), rs.BlockShuffle(3, 2), rs.BlockShuffle(1000, 16),
]  # fmt: skip


def _remote(local: rs.Dataset, delay_seconds: float = 0.0) -> rs.Dataset:
    store = RoundStore(delay_seconds)
    for shard in local.shards:
        store.set(f"d/{shard.location.name}", shard.location.read())
    dataset = rs.open([Location(store, key) for key in store.objects])
    assert len(dataset) == len(local)
    store.reset()
    return dataset


def _store(dataset: rs.Dataset) -> Any:
    return dataset.shards[0].location.store


@pytest.fixture(scope="module")
def local(small: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    return small.write_shards(tmp_path_factory.mktemp("local"), COUNTS, lengths=LENGTHS)  # type: ignore[no-any-return]


@pytest.fixture
def remote(local: rs.Dataset) -> rs.Dataset:
    return _remote(local)


@pytest.fixture(params=["whole", "tiny"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All records fit into one round, or few."""
    if request.param == "tiny":
        for name, value in (("AHEAD_BYTES", 9000), ("_ROUND_BYTES", 3000), ("_RUN_BYTES", 5000)):
            monkeypatch.setattr(ahead_reader, name, value)


# -- order, split, resume --------------------------------------------------------------------------


@given(
    shuffle=st.sampled_from(SHUFFLES),
    batch_size=st.integers(1, 50),
    world_size=st.integers(1, 45),
    worker_count=st.integers(1, 3),
    threads=st.sampled_from([0, 3]),
    prefetch=st.integers(0, 4),
    cut=st.sampled_from([slice(None), slice(3, 30), slice(9, 9), slice(None, None, -2)]),
    limit=st.integers(1, 20_000),
    done=st.integers(0, 9),
)
@settings(max_examples=60)
def test_batches_are_those_of_a_local_copy(
    small: Any,
    local: rs.Dataset,
    shuffle: Any,
    batch_size: int,
    world_size: int,
    worker_count: int,
    threads: int,
    prefetch: int,
    cut: slice,
    limit: int,
    done: int,
) -> None:
    """Also of a loader that resumes after some batches."""
    remote = _remote(local)
    options = {
        "batch_size": batch_size, "world_size": world_size, "rank": world_size // 2,
        "worker_count": worker_count, "worker": worker_count - 1, "shuffle": shuffle, "epochs": 2,
    }  # fmt: skip
    expected = small.ids(small.loader(local[cut], **options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead_reader, "AHEAD_BYTES", limit)
        patch.setattr(ahead_reader, "_ROUND_BYTES", limit // 4)
        loader = small.loader(remote[cut], threads=threads, prefetch=prefetch, **options)
        begun = small.ids(itertools.islice(loader, min(done, len(expected))))
        assert begun == expected[:done]
        if done < len(expected):
            rest = small.loader(remote[cut], threads=threads, prefetch=prefetch, **options)
            rest.load_state_dict(json.loads(json.dumps(loader.state_dict())))
            assert small.ids(rest) == expected[done:]


def test_a_filtered_dataset_and_a_mix(small: Any, local: rs.Dataset, remote: rs.Dataset) -> None:
    for make in (
        lambda one: one.filter("id > 5 and id < 33"),
        lambda one: rs.Mix([(one[:20], 0.4), (one[20:], 0.6)]),
    ):
        for shuffle in (True, rs.BlockShuffle(2, 3)):
            options = {"batch_size": 4, "shuffle": shuffle, "epochs": 2}
            expected = small.ids(small.loader(make(local), **options))
            assert small.ids(small.loader(make(remote), **options)) == expected


# -- rounds and memory -----------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_batch_is_one_round(
    small: Any, remote: rs.Dataset, monkeypatch: pytest.MonkeyPatch, shuffle: bool
) -> None:
    monkeypatch.setattr(ahead_reader, "_ROUND_BYTES", 1)
    loader = small.loader(remote, batch_size=5, shuffle=shuffle)
    _store(remote).reset()
    assert len(small.ids(loader)) == 9
    assert len(_store(remote).rounds) == 9


def test_each_window_of_blocks_is_one_round_of_whole_blocks(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead_reader, "_ROUND_BYTES", 1)
    monkeypatch.setattr("recordsmith.dataset.frames._GAP_BYTES", 0)
    remote = _remote(small.write_shards(tmp_path, [240], lengths=(100,)))
    loader = small.loader(remote, batch_size=7, shuffle=rs.BlockShuffle(5, 4))
    _store(remote).reset()
    small.ids(loader)
    counts = sorted(map(len, _store(remote).rounds))  # they begin in threads, in any order
    assert len(counts) == 13
    assert counts[-3] <= 4  # all but those of the first window, of which one step is read first


def test_the_next_window_is_read_while_one_is_used(
    small: Any, numbered: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = _remote(small.write_shards(tmp_path, [240], lengths=(100,)))
    window = int(records_of(remote).record_sizes(range(20)).sum())
    for name in ("AHEAD_BYTES", "_RUN_BYTES"):
        monkeypatch.setattr(ahead_reader, name, window + window // 2)
    monkeypatch.setattr(ahead_reader, "_ROUND_BYTES", 1)
    store = _store(remote)
    store.reset()
    loader = small.loader(remote, batch_size=7, shuffle=rs.BlockShuffle(5, 4), threads=0)
    iteration = iter(loader)
    next(iteration)
    numbered.wait_until(lambda: len(store.rounds) == 3)  # the first window is two of them
    time.sleep(0.05)
    assert len(store.rounds) == 3
    iteration.close()


@pytest.mark.parametrize("threads", [0, 2])
def test_no_more_is_read_ahead_than_the_limit(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    limit, record = 40_000, 2050
    monkeypatch.setattr(ahead_reader, "AHEAD_BYTES", limit)
    monkeypatch.setattr(ahead_reader, "_ROUND_BYTES", 1)
    remote = _remote(small.write_shards(tmp_path, [400], lengths=(2000,)))
    loader = small.loader(remote, batch_size=5, shuffle=True, threads=threads, prefetch=1)
    store = _store(remote)
    store.reset()
    most = 0
    for number, batch in enumerate(loader, 1):
        assert len(batch["id"]) == 5
        read = sum(len(ranges) for ranges in store.rounds)  # merged ranges count as one
        most = max(most, read - 5 * number)
    assert most <= limit / record + 5 * (1 + 1 + 1 + 1)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("threads", [0, 2])
def test_an_error_arrives_at_its_step(small: Any, local: rs.Dataset, threads: int) -> None:
    remote = _remote(local)
    expected = small.ids(small.loader(local, batch_size=4))
    loader = small.loader(remote, batch_size=4, threads=threads)
    store = _store(remote)
    last = remote.shards[4].location

    def change(wanted: Range, data: bytes) -> bytes:
        if wanted.key == last.key:
            raise rs.FileAccessError(5, "the link is down", str(last))
        return data

    store.change = change
    found = []
    with raises(rs.FileAccessError, errno=5):
        for batch in loader:
            found.append(batch["id"].tolist())  # noqa: PERF401 - those before the error count
    assert found == expected[:6]  # the last shard begins in the seventh


@pytest.mark.usefixtures("_sizes")
def test_a_replaced_object_stops_the_loader(small: Any, remote: rs.Dataset) -> None:
    batches = iter(small.loader(remote, batch_size=4, shuffle=True, epochs=None, threads=2))
    next(batches)
    key = remote.shards[4].location.key
    _store(remote).set(key, _store(remote).objects[key][0])
    with raises(rs.FileAccessError, errno=116):
        for _ in itertools.islice(batches, 1000):
            pass


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_damaged_records_are_skipped_or_raised(
    small: Any, remote: rs.Dataset, shuffle: Any
) -> None:
    key = remote.shards[2].location.key

    def change(wanted: Range, data: bytes) -> bytes:
        if wanted.key != key or len(data) < 40:
            return data
        return data[:20] + bytes([data[20] ^ 1]) + data[21:]

    _store(remote).change = change
    options = {"batch_size": 4, "shuffle": shuffle, "threads": 2}
    # every answer has a damaged first record, so all that are read alone are damaged
    loader = small.loader(remote, skip_errors=41, **options)
    read = [number for batch in small.ids(loader) for number in batch]
    lost = {error.record for error in loader.skipped}
    assert sorted(read) == [number for number in range(41) if number - 9 not in lost]
    assert {error.path for error in loader.skipped} == {str(remote.shards[2].location)}
    with pytest.raises(rs.CorruptDataError):
        small.ids(small.loader(remote, **options))


# -- threads ---------------------------------------------------------------------------------------


@pytest.fixture
def held_up(small: Any, remote: rs.Dataset) -> Iterator[SimpleNamespace]:
    """A loader whose second batch does not arrive."""
    store = _store(remote)
    loader = small.loader(remote, batch_size=4, shuffle=True, threads=2, prefetch=1)
    yield SimpleNamespace(loader=loader, store=store)
    store.may_read.set()


@pytest.mark.parametrize("threads", [0, 2])
def test_an_abandoned_iteration_is_collected(
    small: Any, numbered: Any, remote: rs.Dataset, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(ahead_reader, "AHEAD_BYTES", 5000)  # threads wait for room
    loader = small.loader(remote, batch_size=4, shuffle=True, threads=threads, epochs=None)
    iteration = iter(loader)
    next(iteration)
    assert numbered.own_threads()
    del iteration
    gc.collect()
    numbered.wait_until(lambda: not numbered.own_threads())


def test_closing_while_a_batch_is_awaited(held_up: SimpleNamespace) -> None:
    held_up.store.may_read.clear()
    iteration = iter(held_up.loader)
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(iteration))
    waiting.start()
    threading.Timer(0.2, held_up.store.may_read.set).start()
    iteration.close()
    waiting.join(10)
    assert not waiting.is_alive()


def test_reading_that_was_waited_for_is_counted(small: Any, local: rs.Dataset) -> None:
    loader = small.loader(_remote(local, 0.02), batch_size=41, shuffle=True)
    small.ids(loader)
    assert loader.stats().reading_seconds >= 0.02
