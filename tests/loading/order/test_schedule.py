"""Workers, ends and states of epochs; `tests/loading/test_orders.py` has ranks and resuming."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.loading import BlockShuffle, EpochProgress
from recordsmith.loading.order.rank_share import LastBatch, RankShare
from recordsmith.loading.order.schedule import Schedule, Step
from recordsmith.loading.order.shuffle import DatasetOrder

COUNTS = st.integers(1, 60)
SIZES = st.integers(1, 6)
EPOCHS = st.integers(1, 3)


def _schedule(
    count: int,
    batch_size: int = 4,
    rank: int = 0,
    world_size: int = 1,
    *,
    last_batch: LastBatch = "keep",
    shuffle: bool | BlockShuffle = True,
    epochs: int | None = 1,
    worker: int = 0,
    worker_count: int = 1,
) -> Schedule:
    share = RankShare(count, batch_size, rank, world_size, last_batch, worker, worker_count)
    return Schedule(DatasetOrder(count, shuffle=shuffle, seed=3), share, epochs)


def _told(steps: Iterator[Step]) -> list[Any]:
    """Steps in a form that can be compared."""
    return [
        (step.epoch, step.places.tolist(), step.positions.tolist(), step.after) for step in steps
    ]


@given(COUNTS, SIZES, st.integers(1, 5), EPOCHS, st.data())
def test_workers_in_turn_are_the_rank_without_workers(
    count: int, batch_size: int, worker_count: int, epochs: int, data: Any
) -> None:
    alone = _schedule(count, batch_size, epochs=epochs)
    _, start = alone.resumed(
        alone.state(EpochProgress(0, read=data.draw(st.integers(0, count - 1)), begun=0))
    )
    schedules = [
        _schedule(count, batch_size, epochs=epochs, worker=worker, worker_count=worker_count)
        for worker in range(worker_count)
    ]
    workers = [_told(schedule.steps(start)) for schedule in schedules]
    assert [schedule.length(start) for schedule in schedules] == list(map(len, workers))
    in_turn = [step for turn in itertools.zip_longest(*workers) for step in turn if step]
    assert in_turn == _told(alone.steps(start))


@given(COUNTS, SIZES, SIZES, st.sampled_from(["keep", "drop", "pad"]), EPOCHS, st.data())
def test_the_place_after_any_number_of_steps(
    count: int, batch_size: int, world_size: int, last_batch: LastBatch, epochs: int, data: Any
) -> None:
    """Over several iterations, begun anywhere."""
    assume(last_batch != "drop" or count >= batch_size * world_size)
    schedule = _schedule(count, batch_size, 0, world_size, last_batch=last_batch, epochs=epochs)
    epoch, begun = data.draw(st.integers(0, epochs - 1)) + 7, 7
    start = progress = EpochProgress(epoch, data.draw(st.integers(0, count - 1)), begun)
    step_count = 0
    for _ in range(3):
        for step in schedule.steps(progress):
            step_count += 1
            assert schedule.after(start, step_count) == step.after
        assert schedule.end(progress) == EpochProgress(progress.begun + epochs, 0, begun + epochs)
        progress = EpochProgress(begun + epochs, 0, begun + epochs)
        begun += epochs
        assert schedule.later(start, begun // epochs - 7 // epochs) == progress
    assert schedule.after(start, 0) == start


@pytest.mark.parametrize("count", [3, 11])
def test_for_ever_goes_on(count: int) -> None:
    schedule = _schedule(count, epochs=None)
    steps = list(itertools.islice(schedule.steps(EpochProgress()), 10))
    in_epoch = -(-count // 4)
    assert [step.epoch for step in steps] == [at // in_epoch for at in range(10)]
    with pytest.raises(TypeError, match="no length"):
        schedule.length(EpochProgress())


@pytest.mark.parametrize("epochs", [None, 2])
def test_a_rest_that_is_dropped_leads_to_the_next_epoch(epochs: int | None) -> None:
    """Another number of ranks may leave less than a step."""
    schedule = _schedule(10, 4, last_batch="drop", epochs=epochs)
    steps = list(itertools.islice(schedule.steps(EpochProgress(0, read=9)), 2))
    assert [(step.epoch, step.places.tolist()) for step in steps] == [
        (1, [0, 1, 2, 3]),
        (1, [4, 5, 6, 7]),
    ]


def test_where_epochs_and_iterations_end() -> None:
    steps = list(_schedule(10, 5, epochs=2).steps(EpochProgress()))
    assert [step.after for step in steps] == [
        EpochProgress(0, 5, begun=0),
        EpochProgress(1, 0, begun=0),
        EpochProgress(1, 5, begun=0),
        EpochProgress(2, 0, begun=2),  # the next iteration begins
    ]
    state = _schedule(10, 5, epochs=2).state(steps[-1].after)
    resumed = _schedule(10, 5, epochs=2)
    assert [step.epoch for step in resumed.steps(resumed.resumed(state)[1])] == [2, 2, 3, 3]


def _state(**changes: Any) -> dict[str, Any]:
    schedule = _schedule(10)
    return {**schedule.state(EpochProgress(3, 8, 2)), **changes}


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (None, "None"),
        ([], "[]"),
        ({}, "{}"),
        (_state(version=2), "{'version': 2"),
        (_state(version=True), "{'version': True"),
        (_state(epoch=-1), "[-1, 8, 2]"),
        (_state(epoch=None), "[None, 8, 2]"),
        (_state(read=1.0), "[3, 1.0, 2]"),
        (_state(begun=True), "[3, 8, True]"),
        (_state(begun=4), "[3, 8, 4]"),
        (_state(read=11), "[3, 11, 2]"),
        (_state(order=None), "None"),
        (_state(order={}), "None"),
        (_state(order={**_state()["order"], "seed": 4}), "4"),
        (_state(order={**_state()["order"], "shuffle": False}), "False"),
        (_state(order={**_state()["order"], "shuffle": 1}), "1"),
        (_state(order={**_state()["order"], "more": 1}), "1"),
    ],
)
def test_invalid_states(state: Any, value: str) -> None:
    with pytest.raises(rs.OptionError) as caught:
        _schedule(10, epochs=2).resumed(state)
    assert caught.value.option == "state"
    assert str(caught.value.value).startswith(value)
    assert _schedule(10, epochs=2).resumed(_state())[1] == EpochProgress(3, 8, 2)


def test_a_state_of_more_epochs_is_refused() -> None:
    with pytest.raises(rs.OptionError) as caught:
        _schedule(10, epochs=1).resumed(_state())
    assert (caught.value.option, caught.value.value) == ("epochs", "1")
    assert _schedule(10, epochs=None).resumed(_state())[1] == EpochProgress(3, 8, 2)


def test_shares_of_many_records_need_no_memory_for_them() -> None:
    share = RankShare(10**15, 2, rank=5, world_size=7)
    last = share.step_count() - 1
    # 14 go into 10**15 with a rest of 6, of which rank 5 has the last
    assert [places.tolist() for places in share.places(0, range(last - 1, last + 1))] == [
        [10**15 - 15, 10**15 - 8],
        [10**15 - 1],
    ]
