"""Several pieces of work at once: all are done, or the first failure ends them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from recordsmith.files import Progress

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Stopped(Exception):  # noqa: N818 - no error: another piece of work has failed
    """The job is ending; this piece of work is not finished."""


class Work:
    """What all threads of a job share: how far it is, and whether it ends early."""

    def __init__(self, threads: int, progress: Progress | None) -> None:
        self._threads = threads
        self._progress = progress
        self.total = 0  # in whatever `advance` is told; may be mended when more is known
        self._done = 0
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def advance(self, count: int) -> None:
        """So much more is done; raises Stopped if the job is ending."""
        if self._stopping.is_set():
            raise Stopped
        with self._lock:
            self._done += count
            if self._progress is not None:
                self._progress(self._done, max(self.total, self._done))

    def each(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """What the function answers for each item, in their order; the first failure is raised."""
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                for future in futures:
                    if future.done() and not future.cancelled():
                        future.result()
            except BaseException:
                self._stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]
