"""Threads: waits that end with their job, daemon threads for requests, and locks after a fork."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDoneError
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

_CHECK_SECONDS = 0.1
"""No wait is without an end: a signal just before it would be noticed only after it."""

_REQUEST_THREADS = 64
_IDLE_SECONDS = 2.0
SHORT_SECONDS = 0.6
"""How long to wait for a server after Ctrl-C."""

_thread = threading.local()

# -- forks -----------------------------------------------------------------------------------------


_owners: weakref.WeakSet[Any] = weakref.WeakSet()


def renew_in_children(owner: Any) -> None:
    """Call `owner.renew_lock` in every process that is forked while the owner exists.

    It replaces the locks with new, unlocked ones, and forgets what only the parent has.
    A thread that holds a lock during a fork does not exist in the child, so the lock would never be
    released there. What a lock guards must be consistent whenever another thread can fork.
    """
    _owners.add(owner)


def _renew_all() -> None:
    for owner in list(_owners):
        owner.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


def join_thread(thread: threading.Thread, deadline: float) -> None:
    """Wait until a thread has ended for the operating system as well, or `time.monotonic()` is
    `deadline`.

    Before Python 3.13, `Thread.join` returns while libraries still clean up after the thread. Their
    locks are held then, and would stay locked in a process that is forked right afterwards.
    """
    if thread.ident is None:  # could not be started
        return
    thread.join(max(0.0, deadline - time.monotonic()))
    while not thread.is_alive() and time.monotonic() < deadline:
        if not os.path.exists(f"/proc/self/task/{thread.native_id}"):  # or not Linux
            break
        time.sleep(0.0001)


# -- waits that end with their job -----------------------------------------------------------------


class Stopped(Exception):  # noqa: N818 - not an error: another task has failed
    """The job is stopping before this task is done."""


def stoppable_pool(threads: int, stopping: threading.Event) -> ThreadPoolExecutor:
    """Return a pool whose threads stop waiting when an event is set.

    A pool waits for its threads, as does Python at its end: a server that does not respond would
    keep them for minutes.
    """
    initargs = _thread, "stopping", stopping
    return ThreadPoolExecutor(threads, "recordsmith", initializer=setattr, initargs=initargs)


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
    """Return the result of a future."""
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


# -- requests --------------------------------------------------------------------------------------


class RequestPool:
    """Daemon threads that make requests, so that a program ends while a server does not respond."""

    def __init__(self) -> None:
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Begin without threads."""
        self._calls: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread_count = self._call_count = 0

    def submit(self, function: Callable[[_Argument], None], argument: _Argument) -> None:
        """Call a function, which raises no error, in one of the threads."""
        with self._lock:
            self._call_count += 1
            is_short = self._thread_count < min(self._call_count, _REQUEST_THREADS)
            self._thread_count += is_short
        if is_short:
            threading.Thread(target=self._run, name="recordsmith-request", daemon=True).start()
        self._calls.put((function, argument))

    def _run(self) -> None:
        while True:
            try:
                function, argument = self._calls.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._thread_count > self._call_count:
                        self._thread_count -= 1
                        return
                continue
            function(argument)
            del function, argument
            with self._lock:
                self._call_count -= 1


request_pool = RequestPool()


def submit_request(request: Callable[..., _Result], *arguments: object) -> Future[_Result]:
    """Call a function that makes requests in a daemon thread."""
    future: Future[_Result] = Future()

    def run(future: Future[_Result]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(request(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised where the result is used
                future.set_exception(error)

    request_pool.submit(run, future)
    return future


def call_with_timeout(
    request: Callable[..., _Result], *arguments: object, seconds: float = SHORT_SECONDS
) -> _Result | None:
    """Call a function that makes requests; return None if it takes too long to wait for.

    For what is done after Ctrl-C or an error, perhaps of a server that does not respond. The
    function continues in its thread while the program runs.
    """
    future = submit_request(request, *arguments)
    try:
        return future.result(seconds)
    except NotDoneError:
        return future.result() if future.done() else None  # meanwhile, or this is its own error
