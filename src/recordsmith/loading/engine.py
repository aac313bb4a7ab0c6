"""Jobs made ready by threads, handed out in their order.

A job is made in three parts: it begins, its rows are filled by whoever is free, it is finished. All
threads work on the oldest job first; the next is begun when there is nothing left to take of those
before. Only so many jobs are begun ahead of the one that is asked for, which bounds the memory.

The threads hold no reference to the `Engine`, so that an engine nobody uses any more is collected
and its threads end. They end also when it is closed, when a job fails, and when the program ends.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from recordsmith.errors import OptionError

Made_co = TypeVar("Made_co", covariant=True)
_ROWS_AT_ONCE = 8
_LOOK_UP_SECONDS = 1.0  # how long a thread may sleep after its engine was collected
_EXIT_SECONDS = 5.0  # how long the end of the program waits for a user's function


class Job(Protocol[Made_co]):
    """Something to be made."""

    def begin(self) -> int:
        """Prepare it; answers how many rows are to be filled."""

    def fill(self, start: int, stop: int) -> None:
        """Fill some rows. Called by several threads, for different rows."""

    def finish(self) -> Made_co:
        """What was made, when all rows are filled."""


class Engine(Generic[Made_co]):
    """Makes jobs ready and hands out what they made, in order."""

    def __init__(self, jobs: Iterator[Job[Made_co]], *, threads: int, prefetch: int) -> None:
        """Nothing is done before the first result is asked for.

        Args:
            jobs: drawn one after the other, but from any thread.
            threads: how many work; 0: who asks does the work.
            prefetch: how many jobs may be begun, or done, ahead of the one that is asked for.
        """
        self._shared = _Shared(jobs, threads, prefetch)
        self._has_started = threads == 0
        self._process = os.getpid()
        weakref.finalize(self, self._shared.abandon)

    def __iter__(self) -> Iterator[Made_co]:
        return self

    def __next__(self) -> Made_co:
        """What the next job made.

        Raises:
            Whatever the job raised; the engine is closed then.
            OptionError: the engine was begun in another process.
        """
        if os.getpid() != self._process:
            raise OptionError(
                "this iteration was begun in another process, whose threads are not here: begin "
                "one of your own with iter(loader)"
            )
        if not self._has_started:
            self._has_started = True
            self._shared.start()
        try:
            return self._shared.next()  # type: ignore[no-any-return]
        except BaseException:  # the end, a failed job, Ctrl-C
            self.close()
            raise

    def close(self) -> None:
        """End the threads and wait for them; nothing is made afterwards. May be called twice."""
        self._shared.stop()

    @property
    def waited_seconds(self) -> float:
        """How long results were waited for."""
        return self._shared.waited_seconds

    @property
    def idle_seconds(self) -> float:
        """How long threads had nothing to do, added up over all of them."""
        return self._shared.idle_seconds


@dataclass
class _Running:
    """A job that is being made."""

    job: Job[Any] | None
    next_row: int = 0
    row_count: int = 0
    open_parts: int = 1  # beginning is one, each piece of rows is one
    made: Any = None
    error: BaseException | None = None
    is_done: bool = False


class _Shared:
    """What the threads and the one who asks have in common; all of it under one lock."""

    def __init__(self, jobs: Iterator[Job[Any]], threads: int, prefetch: int) -> None:
        self._jobs = jobs
        self._thread_count = threads
        self._most_begun = prefetch + 1
        self._running: deque[_Running] = deque()
        self._is_drawing = False
        self._has_drawn_all = False
        self._has_stopped = False
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # there is something to do
        self._ready = threading.Condition(self._lock)  # the oldest job is done
        self._threads: list[threading.Thread] = []
        self.waited_seconds = 0.0
        self.idle_seconds = 0.0

    # -- for the one who asks ----------------------------------------------------------------------

    def start(self) -> None:
        _live.add(self)
        for number in range(self._thread_count):
            thread = threading.Thread(
                target=_serve, args=(self,), name=f"recordsmith-{number}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def next(self) -> Any:
        if self._thread_count == 0:
            return self._make_here()
        with self._lock:
            while not (self._running and self._running[0].is_done):
                if self._has_stopped or (self._has_drawn_all and not self._running):
                    raise StopIteration
                begun = time.perf_counter()
                self._ready.wait()
                self.waited_seconds += time.perf_counter() - begun
            running = self._running.popleft()
            self._work.notify()
        if running.error is not None:
            raise running.error
        return running.made

    def stop(self, join_seconds: float | None = None) -> None:
        if os.getpid() != self._process:
            return  # a forked child: the threads, and who held the lock, are not here
        with self._lock:
            self._has_stopped = True
            self._running.clear()
            self._work.notify_all()
            self._ready.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(join_seconds)
        self._threads.clear()
        self._jobs = iter(())
        _live.discard(self)

    def abandon(self) -> None:
        """Let the threads end, from a garbage collection: that may come while this very thread
        holds the lock, so nothing is waited for.
        """
        self._has_stopped = True
        if os.getpid() == self._process and self._lock.acquire(blocking=False):
            self._work.notify_all()
            self._lock.release()

    def _make_here(self) -> Any:
        if self._has_stopped:
            raise StopIteration
        job = next(self._jobs)
        job.fill(0, job.begin())
        return job.finish()

    # -- for the threads ---------------------------------------------------------------------------

    def take(self) -> Callable[[], None] | None:
        """Something to do; None when there will be nothing more."""
        with self._lock:
            while not self._has_stopped:
                task = self._choose()
                if task is not None:
                    return task
                if self._has_drawn_all and all(running.is_done for running in self._running):
                    return None
                begun = time.perf_counter()
                self._work.wait(_LOOK_UP_SECONDS)
                self.idle_seconds += time.perf_counter() - begun
        return None

    def _choose(self) -> Callable[[], None] | None:
        for running in self._running:
            if running.next_row < running.row_count:
                start = running.next_row
                stop = min(running.row_count, start + self._piece(running.row_count))
                running.next_row = stop
                running.open_parts += 1
                return lambda: self._fill(running, start, stop)
        if len(self._running) < self._most_begun and not (self._has_drawn_all or self._is_drawing):
            self._is_drawing = True
            return self._begin
        return None

    def _piece(self, row_count: int) -> int:
        """Few enough rows that all threads have some, many enough that taking them costs little."""
        return max(1, min(_ROWS_AT_ONCE, row_count // (2 * self._thread_count)))

    def _begin(self) -> None:
        running = _Running(None)
        try:
            running.job = next(self._jobs)
        except StopIteration:
            with self._lock:
                self._is_drawing = False
                self._has_drawn_all = True
                self._work.notify_all()
                self._ready.notify_all()
            return
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            running.error = error
        with self._lock:
            self._is_drawing = False
            self._running.append(running)
            self._work.notify()
        row_count = 0
        if running.error is None:
            try:
                row_count = running.job.begin()  # type: ignore[union-attr]
            except BaseException as error:  # noqa: BLE001
                running.error = error
        with self._lock:
            running.row_count = row_count
            self._work.notify_all()
        self._close_part(running)

    def _fill(self, running: _Running, start: int, stop: int) -> None:
        try:
            running.job.fill(start, stop)  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001
            with self._lock:
                running.error = running.error or error
                running.next_row = running.row_count  # the others need not be filled
        self._close_part(running)

    def _close_part(self, running: _Running) -> None:
        """A part is done; whoever does the last one finishes the job."""
        with self._lock:
            running.open_parts -= 1
            if running.open_parts or (
                running.next_row < running.row_count and running.error is None
            ):
                return
        if running.error is None:
            try:
                running.made = running.job.finish()  # type: ignore[union-attr]
            except BaseException as error:  # noqa: BLE001
                running.error = error
        with self._lock:
            running.job = None
            running.is_done = True
            if running.error is not None:
                self._has_drawn_all = True  # nothing after it will be asked for
                self._work.notify_all()
            self._ready.notify_all()


def _serve(shared: _Shared) -> None:
    while True:
        task = shared.take()
        if task is None:
            return
        task()
        del task  # it holds the job, and its arrays, while this thread waits


_live: weakref.WeakSet[_Shared] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Threads inside a decoder must not outlive the interpreter."""
    for shared in list(_live):
        shared.stop(_EXIT_SECONDS)
