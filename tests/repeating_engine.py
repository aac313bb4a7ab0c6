"""An engine of this process that pickles as others do, and what tests of engines share."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from recordsmith.engines import processes
from recordsmith.engines.processes import Processes
from recordsmith.stores import Location
from recordsmith.support.errors import RecordsmithError
from recordsmith.support.tasks import Outcome, Task


class RepeatingEngine:
    """Runs each task twice, the last task first.

    before: called with each task before it runs; returns another one to run, or None.
    after: called with each outcome; returns another one, or None.
    """

    def __init__(
        self,
        before: Callable[[Task], Any] = lambda _: None,
        after: Callable[[Outcome], Any] = lambda _: None,
    ) -> None:
        self._before = before
        self._after = after

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        for task in reversed([*tasks]):
            for _ in range(2):
                received = pickle.loads(pickle.dumps(task))
                outcome = function(self._before(received) or received)
                received = pickle.loads(pickle.dumps(outcome))
                yield self._after(received) or received


class KilledProcesses(Processes):
    """Two processes, one of which is killed when the first task is done.

    killed: the number of killed processes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(2)
        self.killed = 0
        self._started: list[Any] = []
        usual = processes._Running._start

        def start(running: Any) -> Any:
            self._started.append(usual(running))
            return self._started[-1]

        monkeypatch.setattr(processes._Running, "_start", start)

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        for outcome in super().map(function, tasks):
            if not self.killed:
                self._started[-1].kill()
                self._started[-1].wait()
                self.killed += 1
            yield outcome


def plain(value: Any) -> Any:
    """The fields of a report, of everything in it and of its errors, to compare reports."""
    if isinstance(value, RecordsmithError):
        return type(value), value.args, plain(vars(value))
    if isinstance(value, Location):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), plain(vars(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(plain, value)]
    return value
