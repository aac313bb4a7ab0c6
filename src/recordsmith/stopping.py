"""Threads that stop while they wait for a server or for another thread."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDoneError
from typing import TypeVar

_Result = TypeVar("_Result")

_CHECK_SECONDS = 0.1
"""No wait is without an end: a signal just before it would be noticed only after it."""

_thread = threading.local()


class Stopped(Exception):  # noqa: N818 - not an error: another task has failed
    """The job is stopping before this task is done."""


def stoppable_pool(
    threads: int, stopping: threading.Event, name: str = "recordsmith"
) -> ThreadPoolExecutor:
    """Return a pool whose threads stop waiting when an event is set.

    A pool waits for its threads, as does Python at its end: a server that does not respond would
    keep them for minutes.
    """
    return ThreadPoolExecutor(threads, name, initializer=_stop_with, initargs=(stopping,))


def _stop_with(stopping: threading.Event) -> None:
    _thread.stopping = stopping


def can_stop() -> bool:
    """Return whether a wait in this thread may end early: by Ctrl-C, or as its job stops."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main or hasattr(_thread, "stopping")


def check_stopping() -> None:
    """Raise Stopped if the job of this thread is stopping."""
    stopping: threading.Event | None = getattr(_thread, "stopping", None)
    if stopping is not None and stopping.is_set():
        raise Stopped


def wait_for(future: Future[_Result], seconds: float = math.inf) -> _Result:
    """Return the result of a future.

    Raises:
        Stopped: the job of this thread is stopping. The future is cancelled, or its result unused.
        concurrent.futures.TimeoutError: it takes longer than `seconds`.
    """
    latest = time.monotonic() + seconds
    stopping: threading.Event | None = getattr(_thread, "stopping", None)
    while True:
        if stopping is not None and stopping.is_set() and not future.done():
            future.cancel()
            raise Stopped
        try:
            return future.result(_CHECK_SECONDS)
        except NotDoneError:
            if future.done():  # meanwhile, or this is its own error
                return future.result()
            if time.monotonic() >= latest:
                raise
