"""Jobs come in their order from any number of threads; errors reach the caller; nothing stays."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.loading.conftest import own_threads, wait_until

import recordsmith as rs
from recordsmith.loading.batches.job_runner import Runner, run_jobs

THREADS = [0, 1, 2, 8]
DEADLINE_SECONDS = 20.0


class Squares:
    """A job that makes the squares of some rows, and does what a test wants on the way."""

    def __init__(self, number: int, rows: int = 5, at: Callable[..., None] | None = None) -> None:
        self.number = number
        self.squares = [-1] * rows
        self.at = at or (lambda *_: None)

    def begin(self) -> int:
        self.at("begin", self.number)
        return len(self.squares)

    def fill(self, start: int, stop: int) -> None:
        for row in range(start, stop):
            self.at("fill", self.number, row)
            assert self.squares[row] == -1
            self.squares[row] = (self.number + row) ** 2

    def finish(self) -> list[int]:
        self.at("finish", self.number)
        return self.squares


def runner(
    count: int, threads: int, *, rows: int = 5, prefetch: int = 2, at: Any = None
) -> Runner[list[int]]:
    jobs = (Squares(number, rows, at) for number in range(count))
    return run_jobs(jobs, threads=threads, prefetch=prefetch)


def expected(number: int, rows: int = 5) -> list[int]:
    return [(number + row) ** 2 for row in range(rows)]


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test no thread is left; who closes a runner waits for its threads so long as
    the tests do, on a slow machine, too.
    """
    monkeypatch.setattr(
        "recordsmith.loading.batches.job_runner._PATIENCE_SECONDS", DEADLINE_SECONDS
    )
    yield
    wait_until(lambda: not own_threads())


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("prefetch", [0, 1, 5])
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_results_come_in_order(threads: int, prefetch: int, rows: int) -> None:
    made = runner(30, threads, rows=rows, prefetch=prefetch)
    assert list(made) == [expected(number, rows) for number in range(30)]
    assert list(made) == []


def test_all_threads_work_on_one_job() -> None:
    everyone = threading.Barrier(4)

    def at(part: str, number: int, row: int = 0) -> None:
        if part == "fill" and row % 2 == 0:
            everyone.wait(DEADLINE_SECONDS)  # goes on when four threads are here

    assert next(runner(1, 4, rows=16, prefetch=0, at=at)) == expected(0, 16)


@pytest.mark.parametrize(("threads", "prefetch"), [(1, 0), (2, 3), (8, 1)])
def test_no_more_is_begun_than_was_asked_for_and_prefetched(threads: int, prefetch: int) -> None:
    begun: list[int] = []

    def at(part: str, number: int, row: int = 0) -> None:
        if part == "begin":
            begun.append(number)

    made = runner(50, threads, prefetch=prefetch, at=at)
    time.sleep(0.02)
    assert begun == []  # nothing before the first is asked for
    for asked in range(1, 21):
        next(made)
        wait_until(lambda asked=asked: len(begun) == asked + prefetch)  # type: ignore[misc]
        time.sleep(0.002)
        assert len(begun) == asked + prefetch
    made.close()


# -- errors ----------------------------------------------------------------------------------------


class Oops(BaseException):
    """As little as an exception can be."""


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("part", ["begin", "fill", "finish"])
@pytest.mark.parametrize("kind", [ValueError, Oops, SystemExit, KeyboardInterrupt])
def test_errors_come_after_the_results_before_them(
    threads: int, part: str, kind: type[BaseException]
) -> None:
    def breaks_here(at_part: str, number: int, row: int = 0) -> None:
        if at_part == part and number == 4:
            raise kind(f"row {row}")

    made = runner(9, threads, prefetch=3, at=breaks_here)
    assert [next(made) for _ in range(4)] == [expected(number) for number in range(4)]
    with pytest.raises(kind, match="row 0") as caught:
        next(made)
    assert "breaks_here" in [frame.name for frame in traceback.extract_tb(caught.tb)]
    with pytest.raises(StopIteration):
        next(made)
    wait_until(lambda: not own_threads())


@pytest.mark.parametrize("threads", THREADS)
def test_errors_in_drawing(threads: int) -> None:
    def jobs() -> Iterator[Squares]:
        yield Squares(0)
        yield Squares(1)
        raise ZeroDivisionError("no more of them")

    made = run_jobs(jobs(), threads=threads, prefetch=2)
    assert [next(made), next(made)] == [expected(0), expected(1)]
    with pytest.raises(ZeroDivisionError, match="no more"):
        next(made)
    assert list(made) == []


@pytest.mark.parametrize("threads", [0, 2])
def test_a_job_cannot_end_the_loop_without_a_word(threads: int) -> None:
    def at(part: str, number: int, row: int = 0) -> None:
        if number == 1:
            raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(runner(3, threads, at=at))


def test_errors_keep_nothing_alive() -> None:
    class Big:
        pass

    alive: list[Any] = []

    def at(part: str, number: int, row: int = 0) -> None:
        if part == "fill" and row == 2:
            big = Big()
            alive.append(__import__("weakref").ref(big))
            raise ValueError("big")

    gc.disable()
    try:
        for threads in (0, 2):
            made = runner(2, threads, at=at)
            with pytest.raises(ValueError, match="big"):
                next(made)
            del made
        wait_until(lambda: not own_threads())
        assert len(alive) == 2
        assert all(reference() is None for reference in alive)
    finally:
        gc.enable()


def test_a_broken_engine_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    made = runner(5, 2)

    def choose() -> None:
        raise MemoryError

    monkeypatch.setattr(made._shared, "_choose", choose)
    with pytest.raises(MemoryError):
        next(made)


def test_threads_that_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "recordsmith-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(rs.OptionError) as caught:
        next(runner(5, 4))
    assert caught.value.option == "threads"
    assert isinstance(caught.value.__cause__, RuntimeError)


# -- ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 8])
def test_closing_while_another_waits(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordsmith.loading.batches.job_runner._PATIENCE_SECONDS", 0.05)
    goes_on = threading.Event()
    made = runner(9, threads, at=lambda *_: goes_on.wait(DEADLINE_SECONDS))
    seen: list[Any] = []
    asker = threading.Thread(target=lambda: seen.append(next(made, "the end")))
    asker.start()
    wait_until(lambda: len(own_threads()) == threads)
    closer = threading.Thread(target=made.close)
    closer.start()
    asker.join(DEADLINE_SECONDS)
    assert seen == ["the end"]
    goes_on.set()
    closer.join(DEADLINE_SECONDS)


def test_closing_waits_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recordsmith.loading.batches.job_runner._PATIENCE_SECONDS", 0.05)
    goes_on, is_there = threading.Event(), threading.Event()

    def at(part: str, number: int, row: int = 0) -> None:
        if number == 1:
            is_there.set()
            goes_on.wait(DEADLINE_SECONDS)

    made = runner(9, 2, at=at)
    next(made)
    assert is_there.wait(DEADLINE_SECONDS)
    made.close()
    assert own_threads()  # still in the user's function
    goes_on.set()


def test_jobs_may_close_their_engine() -> None:
    made: Any = None
    closed = []

    def at(part: str, number: int, row: int = 0) -> None:
        if number == 2:
            made.close()
            closed.append(part)

    for threads in (0, 1, 8):
        made = runner(9, threads, rows=16, at=at)
        begun = time.monotonic()
        assert len(list(made)) <= 3
        wait_until(lambda: bool(closed))
        waited = time.monotonic() - begun
        assert waited < DEADLINE_SECONDS  # several that close do not wait for each other
        closed.clear()


@pytest.mark.slow
@pytest.mark.parametrize("has_cycle", [False, True])
@pytest.mark.parametrize("taken", [0, 1])
def test_an_engine_nobody_uses_is_collected(has_cycle: bool, taken: int) -> None:
    class Holder:
        pass

    holder: Any = Holder()
    holder.runner = runner(100, 4)
    if has_cycle:
        holder.itself = holder
    for _ in range(taken):
        next(holder.runner)
    del holder
    gc.collect()
    wait_until(lambda: not own_threads())


def test_an_engine_is_collected_by_one_of_its_own_threads() -> None:
    class Holder:
        pass

    collects = threading.Event()

    def at(part: str, number: int, row: int = 0) -> None:
        if number == 2 and collects.wait(DEADLINE_SECONDS):
            gc.collect()

    gc.disable()
    try:
        holder: Any = Holder()
        holder.runner = runner(100, 4, at=at)
        holder.itself = holder
        next(holder.runner)
        del holder
        collects.set()
        wait_until(lambda: not own_threads())
    finally:
        gc.enable()


# -- other programs --------------------------------------------------------------------------------

SQUARES = """
import os, signal, sys, threading, time
from recordsmith.loading.batches.job_runner import JobRunner, run_jobs

class Job:
    def begin(self): return 4
    def fill(self, start, stop):
        time.sleep(SLEEP)
    def finish(self): return 1

def jobs():
    while True:
        yield Job()
"""


def python(script: str, sleep: float = 0.001) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", f"SLEEP = {sleep}\n{SQUARES}{textwrap.dedent(script)}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_program_ends_although_a_function_does_not() -> None:
    done = python(
        """
        import recordsmith.loading.batches.job_runner
        recordsmith.loading.batches.job_runner._PATIENCE_SECONDS = 0.2
        made = JobRunner(jobs(), threads=2, prefetch=3)
        threading.Thread(target=lambda: next(made, None), daemon=True).start()
        time.sleep(0.2)
        """,
        1000,
    )
    assert done.communicate(timeout=60) == ("", "")
    assert done.returncode == 0


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("threads", [0, 2, 8])
@pytest.mark.parametrize("sleep", [0.0005, 0.5])
def test_ctrl_c(threads: int, sleep: float) -> None:
    """At whatever moment it comes: one KeyboardInterrupt, and nothing is left."""
    for moment in (0.0, 0.003, 0.03, 0.2) if sleep < 0.1 else (0.1,):
        done = python(
            f"""
            made = run_jobs(jobs(), threads={threads}, prefetch=3)
            def names():
                return [t.name for t in threading.enumerate() if t.name.startswith("recordsmith")]
            try:
                next(made)
                print("ready")
                while True:
                    next(made)
            except KeyboardInterrupt:
                made.close()
                print("interrupted", names())
            """,
            sleep,
        )
        assert done.stdout is not None
        assert done.stdout.readline() == "ready\n"
        time.sleep(moment)
        done.send_signal(signal.SIGINT)
        assert done.communicate(timeout=60) == ("interrupted []\n", "")
        assert done.returncode == 0
