"""Run the tasks of a job in threads, with shared progress and cancellation.

When one task fails or the user interrupts, the others stop at their next `advance` or `check`, or
while they wait for a server, and pending tasks never start.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias, TypeVar

from recordsmith.support.ahead import map_ahead
from recordsmith.support.errors import OptionError
from recordsmith.support.threads import Stopped, stoppable_pool

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total), from any thread, one call at a time."""

_WAIT_SECONDS = 0.5

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def processor_count() -> int:
    """Return how many processors this process may use, or the machine has if that is unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None, *, most: int | None = None) -> int:
    """Return the number of threads: `threads`, or one for each processor."""
    if threads is None:
        processors = processor_count()
        return processors if most is None else min(processors, most)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise OptionError(option="threads", value=threads, expected="a positive integer")
    return threads


class WorkerPool:
    """The thread pool of a job, with its progress and cancellation."""

    def __init__(self, threads: int, progress: Progress | None, total: int = 0) -> None:
        self.threads = threads
        self.total = total  # in the unit of `advance`; may be corrected during the job
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def check(self) -> None:
        """Raise Stopped if the job is stopping."""
        if self._stopping.is_set():
            raise Stopped

    def advance(self, count: int) -> None:
        """Add to the progress; raise Stopped if the job is stopping."""
        self.check()
        if self._progress is None or not count:
            return
        with self._lock:
            self._done += count
            self._progress(min(self._done, self.total), self.total)

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Call the function with each item; return the results in order, or raise the error."""
        with self._pool() as pool:
            futures = [pool.submit(self._begin, function, item) for item in items]
            pending = set(futures)
            while pending:  # in steps, as a signal just before a wait is noticed only after it
                done, pending = wait(pending, _WAIT_SECONDS, FIRST_EXCEPTION)
                if any(future.exception() is not None for future in done):
                    break
            for future in futures:
                if future.done():
                    future.result()
            return [future.result() for future in futures]

    def in_order(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item], *, ahead: int
    ) -> Generator[_Result]:
        """Yield the results in order, with at most `ahead` items in progress.

        Raises the first error in the order of the items. A caller that may not consume all results
        must close the generator. With `ahead=1`, no item overlaps another: all run in the caller's
        thread.
        """
        if ahead == 1:
            yield from (self._begin(function, item) for item in items)
            return
        with self._pool() as pool:
            yield from map_ahead(pool, partial(self._begin, function), items, ahead)

    def finish(self) -> None:
        """Advance the progress to the total."""
        self.advance(self.total - self._done)

    def pool(self) -> ThreadPoolExecutor:
        """Return a pool of as many threads, which stop waiting when the job stops."""
        return stoppable_pool(self.threads, self._stopping)

    def _begin(self, function: Callable[[_Item], _Result], item: _Item) -> _Result:
        self.check()
        return function(item)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        with self.pool() as pool:
            try:
                yield pool
            except BaseException:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
                raise


@contextmanager
def holding_signals() -> Iterator[None]:
    """Hold Ctrl-C, and SIGTERM where it is handled, until the block ends: for short steps.

    Does nothing in other threads than the main one, where Python handles no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: dict[int, None] = {}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda held, _: received.update({held: None}))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for held in received:
            signal.raise_signal(held)
