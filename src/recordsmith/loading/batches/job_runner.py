"""Runs jobs in threads and returns their results in order.

A job has three parts: begin, fill its rows, finish. All threads work on the oldest job first and
begin the next one when it has no more rows to take. A limit on jobs begun ahead bounds the memory.

The threads hold no reference to the `JobRunner`, so that an unused runner is collected and its
threads end. They also end when the runner is closed, when a job fails, and when the program ends.
Callers wait in a `SimpleQueue`: Ctrl-C can interrupt it safely, and a garbage collection can fill
it whatever it has interrupted.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from recordsmith.support.errors import OptionError, option
from recordsmith.support.threads import join_thread

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)
_ROWS_AT_ONCE = 8
_PATIENCE_SECONDS = 3.0
"""How long to wait for a thread to end. A user's function may take longer, or never return; such a
thread ends with the function or the program."""


class Job(Protocol[Made_co]):
    """A unit of work."""

    def begin(self) -> int:
        """Prepare the job; return how many rows to fill."""

    def fill(self, start: int, stop: int) -> None:
        """Fill some rows, in order. Several threads call it for different rows."""

    def finish(self) -> Made_co:
        """Return the result, when all rows are filled."""


class Call(Generic[Made]):
    """A job without rows: one call of a function."""

    def __init__(self, function: Callable[[], Made]) -> None:
        self._function = function

    def begin(self) -> int:
        self._made = self._function()
        return 0

    def fill(self, start: int, stop: int) -> None:
        """Do nothing: there are no rows."""

    def finish(self) -> Made:
        return self._made


class Upstream(Protocol):
    """What the jobs of a runner wait for, which a runner ends before its threads."""

    def close(self) -> None:
        """End all waiting, now and later. Called repeatedly, and from any thread."""

    def abandon(self) -> None:
        """End all waiting without a lock, which this thread may hold during a collection."""


def run_jobs(
    jobs: Iterator[Job[Made]],
    *,
    threads: int,
    prefetch: int,
    upstream: Upstream | None = None,
) -> Runner[Made]:
    """Run jobs when their results are requested, and `prefetch` ahead; without threads, here.

    `upstream`: what the next job may wait for, such as another runner.
    """
    if threads:
        return JobRunner(jobs, threads=threads, prefetch=prefetch, upstream=upstream)
    return CallerRunner(jobs, upstream)


class CallerRunner(Generic[Made]):
    """Runs each job in the thread that requests its result."""

    idle_seconds = 0.0

    def __init__(self, jobs: Iterator[Job[Made]], upstream: Upstream | None) -> None:
        self._jobs = jobs
        self._upstream = upstream
        self._process = os.getpid()

    def __iter__(self) -> Iterator[Made]:
        return self

    def __next__(self) -> Made:
        """Return the result of the next job."""
        _check_process(self._process)
        try:
            job = next(self._jobs, None)
            if job is not None:
                job.fill(0, job.begin())
                return job.finish()
        except BaseException as error:
            self.close()
            if isinstance(error, StopIteration):  # it would end the caller's loop silently
                raise RuntimeError("a job raised StopIteration") from error  # noqa: TRY004
            raise
        raise StopIteration

    def close(self) -> None:
        """Make no more results."""
        self._jobs = iter(())
        if self._upstream is not None and os.getpid() == self._process:
            self._upstream.close()


class JobRunner(Generic[Made_co]):
    """Runs jobs in threads and returns their results in order.

    Not `begin_ahead`: several threads fill the rows of one job, and an unused runner is collected.
    """

    def __init__(
        self,
        jobs: Iterator[Job[Made_co]],
        *,
        threads: int,
        prefetch: int,
        upstream: Upstream | None = None,
    ) -> None:
        """Create a runner, as `run_jobs`. It starts when the first result is requested."""
        self._shared = _Shared(jobs, threads, prefetch, upstream)
        self._process = os.getpid()
        weakref.finalize(self, self._shared.abandon)

    def __iter__(self) -> Iterator[Made_co]:
        return self

    def __next__(self) -> Made_co:
        _check_process(self._process)
        try:
            return self._shared.next()  # type: ignore[no-any-return]
        except BaseException:  # the end, a failed job, Ctrl-C
            self.close()
            raise

    def close(self) -> None:
        """Stop the threads and wait for them, but only briefly for a user's function.

        May be called repeatedly, and from any thread.
        """
        self._shared.stop()

    def abandon(self) -> None:
        """Let the threads end, without waiting for them and without a lock."""
        self._shared.abandon()

    @property
    def idle_seconds(self) -> float:
        """How long threads were idle, summed over all of them."""
        return self._shared.idle_seconds


Runner: TypeAlias = "CallerRunner[Made] | JobRunner[Made]"


def _check_process(process: int) -> None:
    if os.getpid() != process:
        raise OptionError(
            "this iteration and its threads belong to another process",
            remedy="Begin one in this process with iter(loader).",
        )


class _Running(msgspec.Struct, eq=False):
    """A running job."""

    job: Job[Any] | None = None
    next_row: int = 0
    row_count: int = 0
    open_parts: int = 1  # beginning is one, each piece of rows is one
    made: Any = None
    error: BaseException | None = None
    error_row: int = 0  # where the piece that failed began
    is_done: bool = False

    def fail(self, error: BaseException, row: int = 0) -> None:
        """Record an error. Rows are taken in order, so the first one is known at the end."""
        if self.error is None or row < self.error_row:
            self.error, self.error_row = error, row
        self.next_row = self.row_count  # the others need not be filled


_END = _Running()


class _Shared:
    """What the threads and the caller share; changes are made under one lock."""

    def __init__(
        self,
        jobs: Iterator[Job[Any]],
        threads: int,
        prefetch: int,
        upstream: Upstream | None,
    ) -> None:
        self._jobs = jobs
        self._upstream = upstream
        self._thread_count = threads
        self._prefetch = prefetch
        self._asked_count = 0
        self._drawn_count = 0
        self._running: deque[_Running] = deque()
        self._is_drawing = False
        self._has_drawn_all = False
        self._has_started = False
        self._has_stopped = False
        self._process = os.getpid()
        self._lock = threading.RLock()  # a collection inside it may close the runner
        self._done: SimpleQueue[_Running] = SimpleQueue()  # in the order of the jobs
        self._wakes: SimpleQueue[None] = SimpleQueue()  # one item for each thread to wake
        self._idle_count = 0  # threads that wait, less those that will be woken
        self._threads: list[threading.Thread] = []
        self.idle_seconds = 0.0

    # -- for the caller ----------------------------------------------------------------------------

    def next(self) -> Any:
        with self._lock:
            if self._has_stopped:
                raise StopIteration
            starts, self._has_started = not self._has_started, True
            self._asked_count += 1
            self._wake(1)
        if starts:
            self._start()
        running = self._done.get()
        if running is _END:
            self._done.put(_END)  # for other callers
            raise StopIteration
        if running.error is not None:
            _raise(running)
        return running.made

    def _start(self) -> None:
        _live.add(self)
        for number in range(self._thread_count):
            thread = threading.Thread(
                target=_serve, args=(self,), name=f"recordsmith-{number}", daemon=True
            )
            self._threads.append(thread)
            try:
                thread.start()
            except RuntimeError as error:
                raise OptionError(
                    f"the system started only {number} of {self._thread_count} threads ({error})",
                    option="threads",
                    value=self._thread_count,
                    remedy=f"Pass fewer threads, or {option('threads', 0)}.",
                ) from error

    def stop(self, deadline: float | None = None) -> None:
        if os.getpid() != self._process:
            return  # a forked child has no threads, and the lock may stay locked
        with self._lock:
            self._has_stopped = True
            self._running.clear()
            while True:  # discard unused results
                try:
                    self._done.get_nowait()
                except Empty:
                    break
            self._done.put(_END)
        self._wake_all()
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.close()
        threads = list(self._threads)
        if threading.current_thread() not in threads:  # threads would wait for each other
            deadline = deadline or time.monotonic() + _PATIENCE_SECONDS
            for thread in threads:
                join_thread(thread, deadline)
        self._jobs = iter(())
        _live.discard(self)

    def abandon(self) -> None:
        """Stop the threads without the lock, which this thread may hold during a collection."""
        self._has_stopped = True
        if os.getpid() == self._process:
            self._wake_all()
            self._done.put(_END)  # for the threads of a runner that waits for this one
            upstream = self._upstream
            if upstream is not None:
                upstream.abandon()

    # -- for the threads ---------------------------------------------------------------------------

    def take(self) -> Callable[[], None] | None:
        waited = 0.0
        while True:
            with self._lock:
                self.idle_seconds += waited
                if self._has_stopped:
                    return None
                task = self._choose()
                if task is not None:
                    return task
                if self._has_drawn_all and not self._running:
                    return None
                self._idle_count += 1
            begun = time.perf_counter()
            self._wakes.get()
            waited = time.perf_counter() - begun

    def fail(self, error: BaseException) -> None:
        """Report an error of the runner itself, such as lack of memory."""
        self._done.put(_Running(error=error))

    def _wake(self, count: int) -> None:
        """Wake some of the waiting threads. Under the lock."""
        count = min(count, self._idle_count)
        self._idle_count -= count
        for _ in range(count):
            self._wakes.put(None)

    def _wake_all(self) -> None:
        for _ in range(self._thread_count):
            self._wakes.put(None)

    def _choose(self) -> Callable[[], None] | None:
        for running in self._running:
            if running.next_row < running.row_count:
                start = running.next_row
                stop = min(running.row_count, start + self._piece(running.row_count))
                running.next_row = stop
                running.open_parts += 1
                return lambda: self._fill(running, start, stop)
        may_draw = self._drawn_count < self._asked_count + self._prefetch
        if may_draw and not (self._has_drawn_all or self._is_drawing):
            self._is_drawing = True
            return self._begin
        return None

    def _piece(self, row_count: int) -> int:
        """Return how many rows a thread takes: few enough to occupy all threads."""
        return max(1, min(_ROWS_AT_ONCE, row_count // (2 * self._thread_count)))

    def _begin(self) -> None:
        running = _Running()
        is_drawn = True
        try:
            running.job = next(self._jobs)
        except StopIteration:
            is_drawn = False
        except BaseException as error:  # noqa: BLE001 - raised where the result is requested
            running.fail(error)
        with self._lock:
            self._is_drawing = False
            if is_drawn:
                self._drawn_count += 1
                self._running.append(running)
            if not is_drawn or running.error is not None:
                self._has_drawn_all = True
            self._hand_over()
            self._wake(1)  # to draw the next one
        if not is_drawn:
            return
        row_count = 0
        if running.error is None:
            try:
                row_count = running.job.begin()  # type: ignore[union-attr]
            except BaseException as error:  # noqa: BLE001
                running.fail(error)
        with self._lock:
            running.row_count = row_count
            self._wake(-(-row_count // self._piece(row_count)))
        self._close_part(running)

    def _fill(self, running: _Running, start: int, stop: int) -> None:
        try:
            running.job.fill(start, stop)  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001
            with self._lock:
                running.fail(error, start)
        self._close_part(running)

    def _close_part(self, running: _Running) -> None:
        """Count a part as done; the last one finishes the job."""
        with self._lock:
            running.open_parts -= 1
            if running.open_parts or running.next_row < running.row_count:
                return
        if running.error is None:
            try:
                running.made = running.job.finish()  # type: ignore[union-attr]
            except BaseException as error:  # noqa: BLE001
                running.fail(error)
        with self._lock:
            running.job = None
            running.is_done = True
            if running.error is not None:
                self._has_drawn_all = True  # the runner is closed after it
            self._hand_over()

    def _hand_over(self) -> None:
        """Deliver finished jobs in order. Under the lock."""
        if self._has_stopped:
            return
        while self._running and self._running[0].is_done:
            self._done.put(self._running.popleft())
        if self._has_drawn_all and not (self._running or self._is_drawing):
            self._done.put(_END)
            self._wake(self._thread_count)  # to end


def _raise(running: _Running) -> Any:
    """Raise the error of a job, without keeping it alive."""
    error, running.error = running.error, None
    try:
        if isinstance(error, StopIteration):  # it would end the caller's loop silently
            raise RuntimeError("a job raised StopIteration") from error  # noqa: TRY004
        raise error  # type: ignore[misc]
    finally:
        del error


def _serve(shared: _Shared) -> None:
    try:
        while True:
            task = shared.take()
            if task is None:
                return
            task()
            del task  # frees the job and its arrays while this thread waits
    except BaseException as error:  # noqa: BLE001 - otherwise the caller would wait forever
        shared.fail(error)


_live: weakref.WeakSet[_Shared] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Threads inside a decoder must not outlive the interpreter."""
    live = list(_live)
    for shared in live:
        shared.abandon()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    for shared in live:
        shared.stop(deadline)
