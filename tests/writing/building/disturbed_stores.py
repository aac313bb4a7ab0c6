"""Stores in memory that end a job at a change, or let jobs take turns at their calls."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from recordsmith.stores import Location, MemoryStore, ObjectInfo
from recordsmith.stores.object_writer import Data
from recordsmith.support.tasks import Outcome, Task
from recordsmith.writing import ShardResult
from recordsmith.writing.packing import pack_task

from ...places import contents


class InStore:
    """Runs the tasks of a job one by one, in a store that no URL names."""

    def __init__(
        self, folder: Location, after: Callable[[ShardResult], None] | None = None
    ) -> None:
        """`after` is called after each task."""
        self._folder = folder
        self._after = after

    def map(self, function: Callable[[Task], Outcome], tasks: Iterable[Task]) -> Iterator[Outcome]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pack_task, "as_folder", lambda _: self._folder)
            for task in tasks:
                outcome = function(task)
                if self._after is not None:
                    self._after(outcome.result)
                yield outcome


class Killed(BaseException):
    """The process of the job does not exist any more."""


class DisturbedStore(MemoryStore):
    """The objects of another store, as one process sees them."""

    def __init__(
        self, shared: MemoryStore, call: Callable[[str], None], change: Callable[[str], None]
    ) -> None:
        """`call` is called before every call, `change` also before every change."""
        super().__init__()
        self._objects, self._versions, self._lock = shared._objects, shared._versions, shared._lock
        self._shared = shared  # its conditional calls are one change each
        self._call, self._change = call, change

    def info(self, key: str) -> ObjectInfo:
        self._call(key)
        return super().info(key)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        self._call(key)
        return super().read(key, start, stop, version)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self._call(prefix)
        return super().list(prefix)

    def _set(self, key: str, data: bytes) -> None:
        self._change("!" + key)
        super()._set(key, data)

    def put_if_absent(self, key: str, data: Data) -> bool:
        self._change("!" + key)
        return self._shared.put_if_absent(key, data)

    def put_if_match(self, key: str, data: Data, version: str) -> bool:
        self._change("!" + key)
        return self._shared.put_if_match(key, data, version)

    def delete(self, key: str) -> None:
        self._change("!" + key)
        super().delete(key)

    def delete_if_match(self, key: str, version: str) -> bool:
        self._change("!" + key)
        return self._shared.delete_if_match(key, version)


class DyingStore(DisturbedStore):
    """Kills its process before its n-th change: nothing happens any more, also no cleaning up."""

    def __init__(self, shared: MemoryStore, changes: int) -> None:
        super().__init__(shared, self._check, self._count)
        self.left = changes
        self.is_dead = False

    def _check(self, _: str) -> None:
        if self.is_dead:
            raise Killed

    def _count(self, key: str) -> None:
        with self._lock:
            self.is_dead = self.is_dead or self.left == 0
            self.left -= 1
        self._check(key)


class Turns:
    """Runs jobs in threads, one at a time: at each call of a store, chance decides who goes on."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._stay = self._random.choice((0.5, 0.8, 0.95))
        self._condition = threading.Condition()
        self._waiting: list[int] = []
        self._current = 0
        self.trace: list[tuple[int, str]] = []

    def run(self, shared: MemoryStore, jobs: list[Callable[[MemoryStore], Any]]) -> list[Any]:
        """Return the result or the exception of each job."""
        results: list[Any] = [None] * len(jobs)
        self._waiting = list(range(len(jobs)))
        self._current = self._random.choice(self._waiting)

        def run_job(number: int) -> None:
            def call(key: str) -> None:
                self._take_turn(number, key)

            try:
                self._wait(number)
                results[number] = jobs[number](DisturbedStore(shared, call, call))
            except Exception as error:
                results[number] = error
            finally:
                with self._condition:
                    self._waiting.remove(number)
                    if self._waiting:
                        self._current = self._random.choice(self._waiting)
                    self._condition.notify_all()

        threads = [threading.Thread(target=run_job, args=(number,)) for number in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def _take_turn(self, number: int, key: str) -> None:
        with self._condition:
            if self._current == number and self._random.random() > self._stay:
                self._current = self._random.choice(self._waiting)
                self._condition.notify_all()
        self._wait(number)
        self.trace.append((number, key))

    def _wait(self, number: int) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: self._current == number, timeout=60)


def content(store: MemoryStore, folder: str) -> dict[str, bytes]:
    """The objects below a folder."""
    return contents(Location(store, folder))
