"""Workers of one iteration begin at one place, in whichever order they start.

Run without processes, so that every order can be tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import recordsmith as rs

pytest.importorskip("torch")
turns = pytest.importorskip("recordsmith.torch.turns")

ORIGIN = {"epoch": 0}


def later(state: dict[str, Any]) -> dict[str, Any]:
    return {"epoch": state["epoch"] + 1}


def worker(number: int, **changed: Any) -> Any:
    """One of two workers of this process, which lives."""
    entry = {"main": 7, "load_count": 0, "origin": ORIGIN, "seed": 5, "worker_count": 2}
    return turns.TurnEntry(**{**entry, "worker": number, "process": os.getpid(), **changed})


@pytest.fixture
def join() -> Any:
    """Joins a list of its own; answers the epoch."""
    own = turns.Turns()

    def join(number: int, **changed: Any) -> int:
        epoch: int = own.join(worker(number, **changed), later)["epoch"]
        return epoch

    join.list = own  # type: ignore[attr-defined]
    return join


@pytest.fixture
def dead() -> int:
    """The process id of one that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_workers_join_and_the_next_iteration_follows(join: Any) -> None:
    assert [join(1), join(0)] == [0, 0]
    assert [join(0, seed=6), join(1, seed=6)] == [1, 1]
    assert [join(number, seed=8, worker_count=3) for number in (2, 0)] == [2, 2]
    assert [join(1, seed=8), join(0, seed=8)] == [3, 3]  # other workers than the three


def test_workers_that_persist_keep_their_seed(join: Any) -> None:
    for epoch in range(40):
        assert [join(epoch % 2), join(1 - epoch % 2)] == [epoch, epoch]


def test_iterations_go_on_side_by_side(join: Any) -> None:
    assert [join(0, seed=100 + seed) for seed in range(16)] == list(range(16))
    order = [0, 15, 7, *range(1, 7), *range(8, 15)]
    assert [join(1, seed=100 + seed) for seed in order] == order
    assert [join(0), join(0), join(1)] == [16, 17, 17]


def test_the_same_seed_after_workers_that_are_no_more(join: Any, dead: int) -> None:
    assert join(0, process=dead) == 0  # worker 1 was killed before
    assert [join(1), join(0)] == [1, 1]


def test_each_main_process_counts_for_itself(join: Any) -> None:
    assert [join(number, main=main) for main in (7, 70, 8) for number in (0, 1)] == [0] * 6
    assert [join(1, main=main) for main in (70, 7)] == [1, 1]


def test_counting_begins_where_the_main_process_is(join: Any) -> None:
    assert [join(0), join(1), join(0)] == [0, 0, 1]
    assert join(1, origin={"epoch": 5}) == 5
    loaded = {"load_count": 1, "seed": 6}
    join.list.note_loaded(worker(0, load_count=1))
    assert not join.list.has_any(worker(0, load_count=1))
    assert join.list.next(worker(0, load_count=1), later) == ORIGIN
    with pytest.raises(rs.OptionError, match="load_state_dict was called after"):
        join(1)  # it began before that
    assert [join(0, **loaded), join(1, **loaded), join(0, **loaded)] == [0, 0, 1]
    assert join.list.has_any(worker(0, load_count=1))
    assert join.list.next(worker(0, load_count=1), later) == {"epoch": 2}


def test_what_a_worker_was_told_counts(join: Any) -> None:
    assert [join(0, begin={"epoch": 4}), join(1, begin={"epoch": 4})] == [4, 4]
    assert [join(1), join(0)] == [5, 5]
