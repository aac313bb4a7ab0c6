"""What engines of clusters share: few tasks at a time, and a check that a cluster responds."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar
from urllib.parse import urlsplit

from recordsmith.support.errors import OptionError
from recordsmith.support.tasks import Outcome, Task

_SECONDS = 10  # a machine of the same network takes milliseconds; libraries try for minutes

_Future = TypeVar("_Future")


def run_ahead(
    tasks: Iterable[Task],
    limit: Callable[[], int],
    submit: Callable[[Task], _Future],
    wait: Callable[[Collection[_Future]], Iterable[_Future]],
    outcome: Callable[[_Future, Task], Outcome],
    cancel: Callable[[Collection[_Future]], object],
) -> Iterator[Outcome]:
    """Yield the outcome of each task as it completes, with only so many submitted at a time.

    Not `begin_ahead`: the futures are those of other libraries, and come as they complete.

    Args:
        limit: returns how many may be submitted now.
        submit: begins a task.
        wait: waits until some are done; returns these.
        outcome: returns the outcome of one that is done, or raises an error for its task.
        cancel: called at the end with those that are not done.
    """
    rest = iter(tasks)
    running: dict[_Future, Task] = {}
    try:
        while True:
            most = limit()
            while len(running) < most and (task := next(rest, None)) is not None:
                running[submit(task)] = task
            if not running:
                return
            for future in wait(running.keys()):
                yield outcome(future, running.pop(future))
    finally:
        cancel(running.keys())


def check_reachable(engine: str, address: str) -> None:
    """Check that a program accepts connections at an address."""
    reasons = [_why_not(host) for host in address.rpartition("://")[2].split(",")]
    if all(reasons):
        raise OptionError(
            f"no cluster responds: {'; '.join(map(str, reasons))}",
            option="engine",
            value=f"{engine}:{address}",
            expected=f"a host and a port, as in {engine}:10.0.0.1:1234",
        )


def _why_not(address: str) -> str | None:
    """Return why nothing can connect to `host:port`; None if it can."""
    try:
        parts = urlsplit(f"//{address}")
        if not parts.hostname or not parts.port:
            return f"{address} lacks a host or a port"
        socket.create_connection((parts.hostname, parts.port), _SECONDS).close()
    except (OSError, ValueError) as error:
        return f"{address}: {error}"
    return None
