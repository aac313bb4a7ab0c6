"""Tasks in threads: order, errors, and calls of progress."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.support.work import Stopped, WorkerPool, thread_count


@pytest.mark.parametrize("threads", [0, -1, True, 1.0, "2"])
def test_invalid_numbers_of_threads_are_refused(threads: Any) -> None:
    with pytest.raises(rs.OptionError) as caught:
        thread_count(threads)
    error = caught.value
    assert (error.option, error.value) == ("threads", repr(threads))
    assert error.expected == "a positive integer"


def test_only_the_default_number_of_threads_is_limited() -> None:
    assert 1 <= thread_count(None, most=1) == 1
    assert thread_count(None) >= thread_count(None, most=8) >= 1
    assert thread_count(50, most=8) == 50


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not tell")
def test_the_default_is_one_thread_for_each_usable_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container may have only some of the machine's processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7, 60})
    assert thread_count(None) == 3
    assert thread_count(None, most=2) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_in_the_order_of_the_items(threads: int) -> None:
    later = threading.Event()

    def answer(item: int) -> int:
        if threads > 1 and item == 0:
            later.wait(60)  # the first is done last
        if item == 2:
            later.set()
        return item * item

    expected = [item * item for item in range(6)]
    assert WorkerPool(threads, None).each(answer, range(6)) == expected
    later.clear()
    assert list(WorkerPool(threads, None).in_order(answer, range(6), ahead=3)) == expected


def test_at_most_ahead_items_are_in_progress() -> None:
    taken = []

    def items() -> Any:
        for item in range(20):
            taken.append(item)
            yield item

    with closing(WorkerPool(2, None).in_order(lambda item: item, items(), ahead=4)) as answers:
        assert next(answers) == 0
        assert len(taken) == 4
        assert next(answers) == 1
        assert len(taken) == 5


def test_an_error_stops_the_others_and_is_raised() -> None:
    workers = WorkerPool(2, None)
    begun = threading.Event()
    ended = []

    def fail_or_wait(item: int) -> None:
        if item == 1:
            begun.wait(60)
            raise ValueError("this one")
        begun.set()
        try:
            while True:
                workers.check()
        except Stopped:
            ended.append(item)
            raise

    with pytest.raises(ValueError, match="this one"):
        workers.each(fail_or_wait, range(50))
    assert sorted(ended) in ([0], [0, 2])  # at most one more may have begun


def test_the_first_error_in_order_is_raised() -> None:
    second = threading.Event()

    def fail(item: int) -> None:
        if item == 0:
            second.wait(60)
        second.set()
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(WorkerPool(2, None).in_order(fail, range(2), ahead=3))


def test_progress_never_passes_the_total_and_ends_there() -> None:
    calls: list[tuple[int, int]] = []
    workers = WorkerPool(1, lambda done, total: calls.append((done, total)), total=10)
    for count in (4, 0, 9):
        workers.advance(count)
    assert calls == [(4, 10), (10, 10)]
    calls.clear()
    workers = WorkerPool(1, lambda done, total: calls.append((done, total)), total=10)
    workers.advance(3)
    workers.finish()
    assert calls == [(3, 10), (10, 10)]
