"""Several pieces of work at once, in threads: how far they are together, and how they end together.

Every job over many shards goes through here. When one piece fails, or the user wants to stop, the
others end at their next `advance` or `check`, and what has not begun never begins.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

from recordsmith.errors import OptionError
from recordsmith.files import Progress

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def processor_count() -> int:
    """How many processors this process may use, where the system tells; else how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(threads: int | None, *, most: int | None = None) -> int:
    """How many threads work: as many as is said, or one for each processor.

    Args:
        most: so many at most, if nothing is said.

    Raises:
        OptionError: it is no number of threads.
    """
    if threads is None:
        processors = processor_count()
        return processors if most is None else min(processors, most)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise OptionError(f"threads is {threads!r}; expected a number, at least 1")
    return threads


class Stopped(Exception):  # noqa: N818 - no error: another piece of work has failed
    """The job is ending; this piece of work is not finished."""


class Work:
    """What all threads of a job share: how far it is, and whether it ends early."""

    def __init__(self, threads: int, progress: Progress | None, total: int = 0) -> None:
        self.threads = threads
        self.total = total  # in whatever `advance` is told; may be mended when more is known
        self._progress = progress
        self._done = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def check(self) -> None:
        """Raises Stopped if the job is ending."""
        if self._stopping.is_set():
            raise Stopped

    def advance(self, count: int) -> None:
        """So much more is done; raises Stopped if the job is ending."""
        self.check()
        if self._progress is None or not count:
            return
        with self._lock:
            self._done += count
            self._progress(min(self._done, self.total), self.total)

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """What the function answers for each item, in their order; the first failure is raised."""
        with self._pool() as pool:
            futures = [pool.submit(self._begin, function, item) for item in items]
            wait(futures, return_when=FIRST_EXCEPTION)
            for future in futures:
                if future.done():
                    future.result()
            return [future.result() for future in futures]

    def in_order(
        self, function: Callable[[_Item], _Result], items: Iterable[_Item], *, ahead: int
    ) -> Generator[_Result]:
        """The same, one answer after the other, with at most `ahead` items on the way.

        Of several failures the first in the order of the items is raised. Whoever may not take all
        answers closes this.
        """
        with self._pool() as pool:
            waiting: deque[Future[_Result]] = deque()
            for item in items:
                waiting.append(pool.submit(self._begin, function, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def finish(self) -> None:
        """All is done: what was not counted on the way is counted now."""
        self.advance(self.total - self._done)

    def _begin(self, function: Callable[[_Item], _Result], item: _Item) -> _Result:
        self.check()
        return function(item)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                yield pool
            except BaseException:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
