"""Lets the worker processes of a DataLoader agree where their iteration begins.

All workers of an iteration begin at one place, and the next iteration where that one ends. Torch
does not notify the main process of an iteration, and gives it fresh copies of the dataset as
workers. So each worker adds a line to a file that it shares with the main process: the first worker
of an iteration with the place where it begins, the others with the same place.

Workers of one iteration share a seed that torch draws. Persistent workers keep theirs, and users
may set the same one again: it is another iteration if this worker has joined it already. Otherwise
it is the same one if their processes were created together: a worker may have read its share and
ended before another one starts. Threads that create processes at the same time mix their numbers,
so one that a worker alive has joined is taken as well. Lines are only added, so a worker that is
killed does no harm, and the system releases its lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import context, current_process, parent_process, reduction
from typing import Any, TypeAlias

from recordsmith.support.errors import OptionError

State: TypeAlias = dict[str, Any]
"""The place of a loader, as its `state_dict` returns it."""


@dataclass(frozen=True)
class Origin:
    """What iterations count from: a main process, its loader's number of loads, and its state."""

    main: int
    load_count: int
    state: State


@dataclass(frozen=True)
class Start:
    """The start of a worker process in an iteration, which has a number in its main process.

    Persistent workers keep their seed. `first_process` is the number of the process of worker 0, as
    multiprocessing counts those that the main process creates.
    """

    origin: Origin
    seed: int
    worker_count: int
    worker: int
    process: int
    begin: State | None = None
    number: int = 0
    first_process: int | None = None

    @classmethod
    def of_worker(cls, origin: Origin, info: Any, begin: State | None) -> Start:
        """Return the start of this worker; `info` as `torch.utils.data.get_worker_info` returns."""
        main = parent_process()
        pid = os.getppid() if main is None or main.pid is None else main.pid
        numbers = current_process()._identity  # noqa: SLF001 - nothing public has them
        return cls(
            origin=replace(origin, main=pid),
            seed=info.seed - info.id,
            worker_count=info.num_workers,
            worker=info.id,
            process=os.getpid(),
            begin=begin,
            first_process=numbers[-1] - info.id if numbers else None,
        )

    def is_of_one_iteration(self, other: Start) -> bool:
        """Whether both may be workers of one iteration."""
        seeds = (self.seed, self.worker_count) == (other.seed, other.worker_count)
        return seeds and self.origin == other.origin


class WorkerIterations:
    """The iterations that the workers of one loader have begun, in a shared file.

    A spawned process shares them; any other copy begins without any.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = _anonymous_file() if descriptor is None else descriptor
        weakref.finalize(self, os.close, self._descriptor)

    def __reduce__(self) -> Any:
        if context.get_spawning_popen() is None:
            return WorkerIterations, ()
        return _in_spawned_process, (reduction.DupFd(self._descriptor),)

    def join(self, start: Start, later: Callable[[State], State]) -> State:
        """Add a worker to its iteration; return where the iteration begins.

        That is where the worker says, if it does. `later` returns where the next iteration begins.
        """
        with self._locked():
            starts = self._starts(start.origin.main)
            if any(other.origin.load_count > start.origin.load_count for other in starts):
                raise OptionError(
                    "load_state_dict was called after the workers of this DataLoader had started",
                    option="state",
                    remedy="Call it before, or create a new DataLoader.",
                )
            other = _worker_of_same_iteration(starts, start)
            number = max((one.number for one in starts), default=0) + 1
            if other is not None:
                number = other.number
            begin = start.begin or (other.begin if other else _next(starts, start.origin, later))
            self._add(replace(start, number=number, begin=begin))
        assert begin is not None
        return begin

    def next(self, origin: Origin, later: Callable[[State], State]) -> State:
        """Return where the next iteration of the main process begins."""
        return _next(self._starts(origin.main), origin, later)

    def check_read_here(self, origin: Origin) -> None:
        """Raise OptionError if workers have read, so that the main process's state is unknown."""
        if _latest(self._starts(origin.main), origin) is not None:
            raise OptionError(
                "worker processes of a DataLoader have read from this loader, so its state is "
                "unknown in this process",
                remedy="Use loader.state_after(n) with the number of batches that your loop has "
                "received; to read in this process, load that state first.",
            )

    def add_load(self, origin: Origin) -> None:
        """Add that the main process has loaded a state, which earlier workers do not know."""
        with self._locked():
            self._add(Start(origin, seed=0, worker_count=0, worker=0, process=0))

    def _starts(self, main: int) -> list[Start]:
        text = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        lines = (json.loads(line) for line in text.splitlines())
        starts = (Start(**{**fields, "origin": Origin(**fields["origin"])}) for fields in lines)
        return [start for start in starts if start.origin.main == main]

    def _add(self, start: Start) -> None:
        line = json.dumps(asdict(start)).encode() + b"\n"
        os.pwrite(self._descriptor, line, os.fstat(self._descriptor).st_size)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


def _worker_of_same_iteration(starts: list[Start], start: Start) -> Start | None:
    """Return a worker of the iteration that this one must join; None for a new iteration."""
    iterations: dict[int, list[Start]] = {}
    for other in starts:
        if other.is_of_one_iteration(start):
            iterations.setdefault(other.number, []).append(other)
    others = [
        workers
        for workers in iterations.values()
        if all(other.worker != start.worker for other in workers)
    ]
    for workers in others:
        if start.first_process is not None and workers[0].first_process == start.first_process:
            return workers[0]
    for workers in others:
        if any(_is_alive(other.process) for other in workers):
            return workers[0]
    return None


def _latest(starts: list[Start], origin: Origin) -> Start | None:
    """Return a worker of the latest iteration that counts from there."""
    begun = [start for start in starts if start.begin is not None and start.origin == origin]
    return max(begun, key=lambda start: start.number, default=None)


def _next(starts: list[Start], origin: Origin, later: Callable[[State], State]) -> State:
    latest = _latest(starts, origin)
    return origin.state if latest is None or latest.begin is None else later(latest.begin)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _in_spawned_process(descriptor: Any) -> WorkerIterations:
    return WorkerIterations(descriptor.detach())


def _anonymous_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("recordsmith-iterations")
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor
