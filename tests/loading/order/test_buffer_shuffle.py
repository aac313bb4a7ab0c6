"""A buffer mixes neighbours, shard by shard, and every record comes once."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.loading.order.buffer_shuffle import BufferOrder, BufferShuffle

COUNTS = st.lists(st.integers(1, 30), min_size=1, max_size=5)


def _order(counts: list[int], size: int, seed: int = 1) -> BufferOrder:
    return BufferOrder(counts, BufferShuffle(size), seed=seed)


def _runs(order: BufferOrder, epoch: int) -> list[list[int]]:
    """The positions of each run."""
    places = np.arange(order.count)
    positions, runs = order.positions(epoch, places), order.runs(epoch, places)
    assert (np.diff(runs) >= 0).all()
    return [positions[runs == run].tolist() for run in np.unique(runs)]


@given(COUNTS, st.integers(1, 40), st.integers(0, 3), st.data())
def test_every_record_comes_once(counts: list[int], size: int, epoch: int, data: Any) -> None:
    order = _order(counts, size)
    positions = order.positions(epoch, np.arange(order.count))
    assert sorted(positions.tolist()) == list(range(sum(counts)))
    asked = np.array(data.draw(st.lists(st.integers(0, order.count - 1), max_size=6)), np.int64)
    assert order.positions(epoch, asked).tolist() == positions[asked].tolist()


@given(COUNTS, st.integers(1, 40), st.integers(0, 3))
def test_runs_are_neighbours_in_shards_read_from_their_beginnings(
    counts: list[int], size: int, epoch: int
) -> None:
    runs = _runs(_order(counts, size), epoch)
    assert all(len(run) == size for run in runs[1:-1])
    assert all(len(run) <= size for run in runs)
    cuts = list(accumulate(counts))
    shard_of = {position: int(np.searchsorted(cuts, position, "right")) for position in
                range(sum(counts))}  # fmt: skip
    done: dict[int, int] = {}  # how much of each shard earlier runs have read
    last_shard = None
    for run in runs:
        shards = {shard_of[position] for position in run}
        for shard in shards:
            first = cuts[shard] - counts[shard]
            own = sorted(position - first for position in run if shard_of[position] == shard)
            assert own == list(range(done.get(shard, 0), done.get(shard, 0) + len(own)))
            done[shard] = done.get(shard, 0) + len(own)
        unfinished = [shard for shard in shards if done[shard] < counts[shard]]
        assert len(unfinished) <= 1, "a run leaves at most its last shard in the middle"
        assert last_shard is None or last_shard in shards
        last_shard = unfinished[0] if unfinished else None


def test_shards_cuts_and_records_are_mixed_anew_in_each_epoch() -> None:
    order = _order([50] * 6, 20)
    epochs = [_runs(order, epoch) for epoch in range(8)]
    assert len({len(runs[0]) for runs in epochs}) > 3
    first_shards = {runs[1][0] // 50 for runs in epochs}
    assert len(first_shards) > 2
    assert all(run != sorted(run) for runs in epochs for run in runs[1:-1])


def test_descriptions_tell_sizes_shards_and_seeds_apart() -> None:
    orders = [_order([3, 4], 5), _order([3, 4], 6), _order([4, 3], 5), _order([3, 4], 5, seed=2)]
    described = [json.dumps(order.describe()) for order in orders]
    assert len(set(described)) == 4
    assert described[0] == json.dumps(_order([3, 4], 5).describe())


def test_orders_are_the_same_everywhere() -> None:
    """Golden: a resumed job depends on it."""
    assert _order([4, 5], 4).positions(2, np.arange(9)).tolist() == GOLDEN


GOLDEN = [0, 4, 2, 1, 3, 6, 8, 7, 5]


def test_nothing_has_an_order_too() -> None:
    assert _order([], 3).positions(0, np.arange(0)).tolist() == []


@pytest.mark.parametrize("size", [0, -1, 1.5, "1", True])
def test_buffers_that_make_no_sense(size: Any) -> None:
    with pytest.raises(rs.OptionError) as caught:
        BufferShuffle(size)
    assert caught.value.option == "size"
