"""Where do the worker processes of a DataLoader begin to read?

All workers of one iteration must begin at one place, and the next iteration where that one ends.
But torch tells nobody in the main process that an iteration begins, and the workers are fresh
copies each time. So they keep a list in memory that the main process and its workers share: the
first worker of an iteration writes down where it begins, the others find it there.

What workers of one iteration have in common is an `Entry` of the list. Nothing is ever changed or
taken out, so that one who is killed leaves no harm, and the lock ends with the process that has it.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import context, reduction
from typing import Any, TypeAlias

from recordsmith.errors import OptionError

State: TypeAlias = dict[str, Any]
"""Where a loader is, as its `state_dict` says."""


@dataclass(frozen=True)
class Entry:
    """An iteration that worker processes of a DataLoader make together.

    main: the process id of the one that has begun the workers.
    load_count: how many states the stream in the main process had loaded by then.
    origin: where the loader of the main process would begin.
    seed: what torch drew for the workers; by the user's will it may be the same each time.
    worker_count: how many workers there are.
    process: the number of the first worker among the main process's children. The others come after
        it one by one, but for children that another thread begins meanwhile.
    lap: the how manyeth iteration of these workers it is; more than 1 if they persist.
    begin: where it begins.
    """

    main: int
    load_count: int
    origin: State
    seed: int = 0
    worker_count: int = 0
    process: int = 0
    lap: int = 0
    begin: State | None = None

    def has_base(self, other: Entry) -> bool:
        """Whether both count from one place in the main process."""
        return (self.main, self.load_count, self.origin) == (
            other.main, other.load_count, other.origin,
        )  # fmt: skip

    def is_same(self, other: Entry) -> bool:
        """Whether both are one iteration."""
        return (
            self.has_base(other)
            and (self.seed, self.worker_count, self.lap)
            == (other.seed, other.worker_count, other.lap)
            and abs(self.process - other.process) < self.worker_count
        )


def of_worker(load_count: int, origin: State, info: Any, lap: int) -> Entry:
    """The entry of the iteration that this worker process begins, without its begin.

    `info`: what `torch.utils.data.get_worker_info` answers.
    """
    main = multiprocessing.parent_process()
    numbers = multiprocessing.current_process()._identity  # noqa: SLF001 - no other name tells it
    return Entry(
        main=main.pid if main is not None and main.pid is not None else os.getppid(),
        load_count=load_count,
        origin=origin,
        seed=info.seed - info.id,
        worker_count=info.num_workers,
        process=(numbers[-1] if numbers else 0) - info.id,
        lap=lap,
    )


class Turns:
    """The list. It travels along when a process is spawned; any other copy begins an empty one."""

    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: of the file that is the list."""
        self._descriptor = _anonymous_file() if descriptor is None else descriptor
        weakref.finalize(self, os.close, self._descriptor)

    def __reduce__(self) -> Any:
        if context.get_spawning_popen() is None:
            return Turns, ()
        return _spawned, (reduction.DupFd(self._descriptor),)

    def join(self, entry: Entry, later: Callable[[State], State]) -> State:
        """Where an iteration begins: as those say who have joined it, or after the last one.

        Args:
            entry: if it has a begin, it is that one which counts from now on.
            later: where an iteration begins that comes after the one that begins at a place.

        Raises:
            OptionError: the main process has loaded a state since this worker began.
        """
        with self._locked():
            entries = self._entries()
            if any(
                other.main == entry.main and other.load_count > entry.load_count
                for other in entries
            ):
                raise OptionError(
                    "load_state_dict was called after the workers of this DataLoader had begun, so "
                    "they do not know the state: call it before, or make a new DataLoader"
                )
            begin = next((other.begin for other in reversed(entries) if other.is_same(entry)), None)
            if entry.begin is not None and entry.begin != begin:
                begin = None
            if begin is None:
                begin = entry.begin or self._next(entries, entry, later)
                self._add(replace(entry, begin=begin))
        return begin

    def next(self, entry: Entry, later: Callable[[State], State]) -> State:
        """Where an iteration would begin."""
        return self._next(self._entries(), entry, later)

    def has_any(self, entry: Entry) -> bool:
        """Whether workers have begun an iteration from that base."""
        return any(other.begin is not None and other.has_base(entry) for other in self._entries())

    def note_loaded(self, entry: Entry) -> None:
        """The main process has loaded a state: workers that have begun before do not know it."""
        with self._locked():
            self._add(entry)

    @staticmethod
    def _next(entries: list[Entry], entry: Entry, later: Callable[[State], State]) -> State:
        for other in reversed(entries):
            if other.has_base(entry) and other.begin is not None:
                return later(other.begin)
        return entry.origin

    def _entries(self) -> list[Entry]:
        text = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        return [Entry(**json.loads(line)) for line in text.splitlines()]

    def _add(self, entry: Entry) -> None:
        line = json.dumps(asdict(entry)).encode() + b"\n"
        os.pwrite(self._descriptor, line, os.fstat(self._descriptor).st_size)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


def _spawned(descriptor: Any) -> Turns:
    return Turns(descriptor.detach())


def _anonymous_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("recordsmith")
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor
