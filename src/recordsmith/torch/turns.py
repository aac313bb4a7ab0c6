"""Where do the worker processes of a DataLoader begin to read?

All workers of one iteration must begin at one place, and the next iteration where that one ends.
But torch does not notify the main process that an iteration begins, and the workers are fresh
copies each time. So they keep a list in memory that the main process and its workers share: the
first worker of an iteration writes down where it begins, the others find it there and join.

Workers of one iteration have the seed in common that torch draws for it. But workers that persist
keep theirs, and users may make torch draw the same one each time. Then it is another iteration if a
worker of this number has joined already, or if those who have joined are no more.

Nothing is ever changed or taken out of the list, so a worker that is killed leaves no harm; if it
has the lock, that ends with it.
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

_SIDE_BY_SIDE = 16
"""How many simultaneous iterations can be distinguished."""


@dataclass(frozen=True)
class TurnEntry:
    """A worker process that begins an iteration.

    main: the process id of the one that has begun the workers. It comes first in a line.
    load_count: how many states the stream in the main process had loaded by then.
    origin: where the loader of the main process would begin.
    seed, worker_count: of the workers of this iteration; those that persist keep their seed.
    worker, process: which worker this is, and its process id.
    number: of the iteration, counted up in each main process.
    begin: where the iteration begins; None if this is no worker.
    """

    main: int
    load_count: int
    origin: State
    seed: int = 0
    worker_count: int = 0
    worker: int = 0
    process: int = 0
    number: int = 0
    begin: State | None = None

    def has_base(self, other: TurnEntry) -> bool:
        """Whether both count from one place."""
        return (self.load_count, self.origin) == (other.load_count, other.origin)

    def may_join(self, other: TurnEntry) -> bool:
        """Whether both may be workers of one iteration."""
        own = (self.seed, self.worker_count)
        return self.has_base(other) and own == (other.seed, other.worker_count)


def of_worker(load_count: int, origin: State, info: Any) -> TurnEntry:
    """The entry of this worker process, still without a begin.

    `info`: what `torch.utils.data.get_worker_info` answers.
    """
    main = multiprocessing.parent_process()
    return TurnEntry(
        main=os.getppid() if main is None or main.pid is None else main.pid,
        load_count=load_count,
        origin=origin,
        seed=info.seed - info.id,
        worker_count=info.num_workers,
        worker=info.id,
        process=os.getpid(),
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

    def join(self, entry: TurnEntry, later: Callable[[State], State]) -> State:
        """Where the iteration of a worker begins: as those say who have joined it, or after the
        last one.

        Args:
            entry: if it has a begin, that is what counts for this iteration from now on.
            later: where an iteration begins that comes after the one that begins at a place.

        Raises:
            OptionError: the main process has loaded a state since this worker began.
        """
        with self._locked():
            entries = self._entries(entry.main)
            if any(other.load_count > entry.load_count for other in entries):
                raise OptionError(
                    "load_state_dict was called after the workers of this DataLoader had started",
                    option="state",
                    remedy="Call it before, or create a new DataLoader.",
                )
            mate = _mate(entries, entry)
            number = mate.number if mate else _last_number(entries) + 1
            begin = entry.begin or (mate.begin if mate else _next(entries, entry, later))
            self._add(replace(entry, number=number, begin=begin))
        assert begin is not None
        return begin

    def next(self, entry: TurnEntry, later: Callable[[State], State]) -> State:
        """Where the next iteration of the main process would begin."""
        return _next(self._entries(entry.main), entry, later)

    def has_any(self, entry: TurnEntry) -> bool:
        """Whether workers have begun an iteration from where the main process is."""
        return _last(self._entries(entry.main), entry) is not None

    def note_loaded(self, entry: TurnEntry) -> None:
        """The main process has loaded a state: workers that have begun before do not know it."""
        with self._locked():
            self._add(replace(entry, number=_last_number(self._entries(entry.main))))

    def _entries(self, main: int) -> list[TurnEntry]:
        """What counts of a main process, the newest first."""
        entries: list[TurnEntry] = []
        text = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        for line in reversed(text.splitlines()):
            if line.startswith(b'{"main": %d,' % main):
                entry = TurnEntry(**json.loads(line))
                if entries and entry.number + _SIDE_BY_SIDE <= entries[0].number:
                    break
                entries.append(entry)
        return entries

    def _add(self, entry: TurnEntry) -> None:
        line = json.dumps(asdict(entry)).encode() + b"\n"
        os.pwrite(self._descriptor, line, os.fstat(self._descriptor).st_size)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


def _mate(entries: list[TurnEntry], entry: TurnEntry) -> TurnEntry | None:
    """One that has joined the iteration that this one must join."""
    alike = [other for other in entries if other.begin is not None and other.may_join(entry)]
    for number in sorted({other.number for other in alike}, reverse=True):
        mates = [other for other in alike if other.number == number]
        is_new = all(other.worker != entry.worker for other in mates)
        if is_new and any(_is_alive(other.process) for other in mates):
            return mates[0]
    return None


def _last(entries: list[TurnEntry], entry: TurnEntry) -> TurnEntry | None:
    """Of the last iteration that counts from where this one does."""
    begun = [other for other in entries if other.begin is not None and other.has_base(entry)]
    return max(begun, key=lambda other: other.number, default=None)


def _last_number(entries: list[TurnEntry]) -> int:
    return max((other.number for other in entries), default=0)


def _next(entries: list[TurnEntry], entry: TurnEntry, later: Callable[[State], State]) -> State:
    last = _last(entries, entry)
    return entry.origin if last is None or last.begin is None else later(last.begin)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _spawned(descriptor: Any) -> Turns:
    return Turns(descriptor.detach())


def _anonymous_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("recordsmith-turns")
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor
