"""Workers of one iteration begin at one place, in whatever order they start (without processes)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import recordsmith as rs

pytest.importorskip("torch")
iterations = pytest.importorskip("recordsmith.torch.workers")

ORIGIN = {"epoch": 0}


def later(state: dict[str, Any]) -> dict[str, Any]:
    return {"epoch": state["epoch"] + 1}


def origin(main: int = 7, load_count: int = 0, state: dict[str, Any] = ORIGIN) -> Any:
    return iterations.Origin(main, load_count, state)


def worker(number: int, counts_from: Any = None, **changed: Any) -> Any:
    """One of two workers of this process, which lives."""
    start = {"seed": 5, "worker_count": 2, "process": os.getpid(), **changed}
    return iterations.Start(counts_from or origin(), worker=number, **start)


@pytest.fixture
def join() -> Any:
    """Adds a worker to iterations of its own, and returns the epoch where it begins."""
    own = iterations.WorkerIterations()

    def join(number: int, *counts_from: Any, **changed: Any) -> int:
        epoch: int = own.join(worker(number, *counts_from, **changed), later)["epoch"]
        return epoch

    join.own = own  # type: ignore[attr-defined]
    return join


@pytest.fixture
def dead() -> int:
    """The process id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_workers_join_and_the_next_iteration_follows(join: Any) -> None:
    assert [join(1), join(0)] == [0, 0]
    assert [join(0, seed=6), join(1, seed=6)] == [1, 1]
    assert [join(number, seed=8, worker_count=3) for number in (2, 0)] == [2, 2]
    assert [join(1, seed=8), join(0, seed=8)] == [3, 3]  # other workers than the three


def test_persistent_workers_keep_their_seed(join: Any) -> None:
    for epoch in range(40):
        assert [join(epoch % 2), join(1 - epoch % 2)] == [epoch, epoch]


def test_simultaneous_iterations(join: Any) -> None:
    assert [join(0, seed=100 + seed) for seed in range(16)] == list(range(16))
    order = [0, 15, 7, *range(1, 7), *range(8, 15)]
    assert [join(1, seed=100 + seed) for seed in order] == order
    assert [join(0), join(0), join(1)] == [16, 17, 16]


def test_the_same_seed_after_workers_that_have_ended(join: Any, dead: int) -> None:
    assert join(0, process=dead) == 0  # worker 1 was killed before
    assert [join(1), join(0)] == [1, 1]


def test_a_slow_worker_joins_after_the_others_have_ended(join: Any, dead: int) -> None:
    of_first, of_second = {"process": dead, "first_process": 1}, {"first_process": 3}
    assert [join(0, **of_first), join(1, **of_first)] == [0, 0]
    assert [join(1, **of_second), join(0, **of_second)] == [1, 1]
    assert [join(0, first_process=5), join(0, first_process=7)] == [2, 3]
    assert [join(1, first_process=7), join(1, first_process=5)] == [3, 2]


def test_a_slow_worker_joins_the_iterations_in_order(join: Any) -> None:
    assert [join(0), join(0), join(1), join(1)] == [0, 1, 0, 1]


def test_each_main_process_counts_for_itself(join: Any) -> None:
    assert [join(number, origin(main)) for main in (7, 70, 8) for number in (0, 1)] == [0] * 6
    assert [join(1, origin(main)) for main in (70, 7)] == [1, 1]


def test_counting_begins_where_the_main_process_is(join: Any) -> None:
    assert [join(0), join(1), join(0)] == [0, 0, 1]
    assert join(1, origin(state={"epoch": 5})) == 5
    loaded = origin(load_count=1)
    join.own.add_load(loaded)
    assert not join.own.has_any(loaded)
    assert join.own.next(loaded, later) == ORIGIN
    with pytest.raises(rs.OptionError) as caught:
        join(1)  # it began before that
    assert caught.value.option == "state"
    assert [join(0, loaded), join(1, loaded), join(0, loaded)] == [0, 0, 1]
    assert join.own.has_any(loaded)
    assert join.own.next(loaded, later) == {"epoch": 2}


def test_a_worker_may_bring_the_begin(join: Any) -> None:
    assert [join(0, begin={"epoch": 4}), join(1, begin={"epoch": 4})] == [4, 4]
    assert [join(1), join(0)] == [5, 5]
