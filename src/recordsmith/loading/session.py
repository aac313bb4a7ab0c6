"""Where a loader is in its epochs, and the iterations that move it.

The place moves when a loop receives a batch, so the state is that of the loop, whatever reads ahead
of it. Only the iteration begun last moves it. Worker processes have sessions of their own.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from recordsmith.loading.batches.batch import BatchResult
from recordsmith.loading.batches.job_runner import Runner
from recordsmith.loading.batches.key_watch import KeyWatch
from recordsmith.loading.batches.production import Production
from recordsmith.loading.loader_stats import Tally
from recordsmith.loading.order.schedule import EpochProgress, LoopState, Schedule, Step
from recordsmith.support.errors import DataError, OptionError

if TYPE_CHECKING:
    from recordsmith.loading.worker_iterations import Origin, WorkerIterations


class Pass(msgspec.Struct, eq=False):
    """One pass through the schedule.

    before: the place of the session before it.
    end: the progress after it; None if it is endless.
    moves_session: whether its batches do; not after a later pass or a loaded state.
    """

    steps: Iterator[Step]
    before: LoopState
    end: EpochProgress | None
    tally: Tally
    moves_session: bool = True


class LoaderSession:
    """Owns the place, the state and the iterations of a loader: `Loader.session`."""

    def __init__(
        self, schedule: Schedule, *, missing_rows: str = "", place: LoopState | None = None
    ) -> None:
        """`missing_rows`: why batches may have fewer rows than the schedule says; a remedy."""
        self.schedule = schedule
        self.place = place or LoopState()
        self._load_count = 0
        self._missing_rows = missing_rows
        self._origin = self.place.progress
        self._pass: Pass | None = None
        self._iterations: weakref.WeakSet[Iteration] = weakref.WeakSet()
        self._workers: WorkerIterations | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pass": None, "_iterations": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._iterations = weakref.WeakSet()

    def at(self, place: LoopState, schedule: Schedule | None = None) -> LoaderSession:
        """Return another session, which begins at a place."""
        schedule = schedule or self.schedule
        return LoaderSession(schedule, missing_rows=self._missing_rows, place=place)

    def __len__(self) -> int:
        """Return the number of batches of the next iteration."""
        place = self.place
        return self.schedule.length(place.progress if place.is_resumed else EpochProgress())

    @property
    def tally(self) -> Tally:
        """The counts and times of the current or last iteration."""
        return self._pass.tally if self._pass is not None else Tally()

    @property
    def is_resuming(self) -> bool:
        """Whether the next iteration is the rest of one that a loaded state interrupted."""
        progress = self.place.progress
        return self.place.is_resumed and (progress.epoch, progress.read) != (progress.begun, 0)

    @property
    def shorter_batches(self) -> str:
        """Why some batches, on any rank, may have fewer rows than `batch_size`, and what to do.

        Empty if all batches have as many; changes by `map_batches` are not considered.
        """
        share, read = self.schedule.share, self.place.progress.read if self.place.is_resumed else 0
        is_even = share.count % share.step_size == 0 == (share.count - read) % share.step_size
        if self._missing_rows or share.last_batch != "keep" or is_even:
            return self._missing_rows
        return (
            f"the last step of an epoch has {share.count % share.step_size or 'fewer'} of the "
            f"{share.step_size} records of a step; pass last_batch='drop' or last_batch='pad'"
        )

    # -- state -------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state of the place, unless workers read the loader."""
        self.check_read_here()
        return self.schedule.state(self.place.progress)

    def later_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state in which the iteration begins that follows one from `state`."""
        schedule, progress = self.schedule.resumed(state)
        return schedule.state(schedule.later(progress, 1))

    def state_after(self, batch_count: int) -> dict[str, Any]:
        """Return the state so many batches after the loader was created, or its state loaded."""
        return self.schedule.state(self.schedule.after(self._origin, batch_count))

    def load(self, state: Mapping[str, Any]) -> None:
        """Begin the next iteration in a state; running ones no longer move the session."""
        self.schedule, self._origin = self.schedule.resumed(state)
        self.place = LoopState(self._origin, is_resumed=True)
        self._load_count += 1
        self._end_moves()
        if self._workers is not None:
            self._workers.add_load(self.origin())

    def resumed(self, state: Mapping[str, Any]) -> LoaderSession:
        """Return another session, which begins in a state."""
        schedule, progress = self.schedule.resumed(state)
        return self.at(LoopState(progress, is_resumed=True), schedule)

    # -- iterations --------------------------------------------------------------------------------

    def iterate(self, production: Production) -> Iteration:
        """Return an iteration. It begins when its first batch is requested."""
        iteration = Iteration(self, production)
        self._iterations.add(iteration)
        return iteration

    def close(self) -> None:
        """End all iterations and their threads."""
        for iteration in list(self._iterations):
            iteration.close()

    def begin(self) -> Pass:
        """Begin a pass, which moves the session from now on."""
        self.check_read_here()
        progress, before = self.place.next_progress, self.place
        self.place = LoopState(before.progress)
        self._end_moves()
        steps = self.schedule.steps(progress, before.skipped_count)
        self._pass = Pass(steps, before, self.schedule.end(progress), Tally())
        return self._pass

    def move(self, begun: Pass, place: LoopState) -> None:
        """Move to a place, if no later pass or loaded state counts."""
        if begun.moves_session:
            self.place = place

    def _end_moves(self) -> None:
        if self._pass is not None:
            self._pass.moves_session = False

    # -- worker processes --------------------------------------------------------------------------

    def origin(self) -> Origin:
        """Return what the iterations of workers count from that this process starts now."""
        from recordsmith.loading.worker_iterations import Origin

        state = self.schedule.state(self.place.next_progress)
        return Origin(os.getpid(), self._load_count, state)

    def workers(self) -> WorkerIterations:
        """Return what the worker processes that read this loader share with this process."""
        if self._workers is None:
            from recordsmith.loading.worker_iterations import WorkerIterations

            self._workers = WorkerIterations()
        return self._workers

    def check_read_here(self) -> None:
        """Raise OptionError if workers have read, so that the place is unknown in this process."""
        if self._workers is not None:
            self._workers.check_read_here(self.origin())


class Iteration:
    """One pass over the batches of a loader: an iterator that can be closed.

    end: the progress at its end, when that is reached.
    """

    def __init__(self, session: LoaderSession, production: Production) -> None:
        self._session = session
        self._production = production
        self._pass: Pass | None = None
        self._runner: Runner[BatchResult] | None = None
        self._watch: KeyWatch | None = None
        self._has_ended = False
        self.end: EpochProgress | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        try:
            made = self._fetch()
        except StopIteration:
            self.deliver(self.end)  # a worker may not have had the last batch
            raise
        self.deliver(made.after)
        return made.batch

    def ahead(self) -> Generator[tuple[dict[str, Any], EpochProgress]]:
        """Yield batches before a loop receives them, each with what to pass to `deliver` then."""
        while True:
            try:
                made = self._fetch()
            except StopIteration:
                return
            yield made.batch, made.after

    def deliver(self, after: EpochProgress | None) -> None:
        """Move the loader behind a batch, which its loop receives now, or to the `end`."""
        if after is not None and self._pass is not None:
            self._session.move(self._pass, LoopState(after))

    def _fetch(self) -> BatchResult:
        asked_at = time.perf_counter()
        if self._has_ended:
            raise StopIteration
        if self._pass is None or self._runner is None:
            maker = self._production.maker
            self._production.check_not_inside()
            self._pass = self._session.begin()
            self._runner = self._production.run(self._pass.steps, self._session.schedule.order)
            if maker.watched:
                self._watch = KeyWatch(maker.watched, self._production.whole_count)
        self._pass.tally.request(asked_at)
        try:
            made = next(self._runner)
            self._production.skip(made.faults)
            if self._watch is not None:
                self._watch.add(made)
        except StopIteration:
            was_closed = self._has_ended  # by another thread
            self.close()
            if not was_closed:
                self.end = self._pass.end
                if self._watch is not None:
                    self._watch.end_epoch()
            raise
        except BaseException as error:
            self.close()
            if isinstance(error, DataError):
                error.advise_to_show()
            raise
        idle_seconds = self._runner.idle_seconds
        self._pass.tally.deliver(
            asked_at, time.perf_counter(), made.cost, len(made.faults), idle_seconds
        )
        return made

    def __reduce__(self) -> Any:
        raise OptionError(
            "an iteration has threads and cannot be pickled",
            remedy="Pickle the loader, or use its state_dict().",
        )

    def close(self) -> None:
        """Stop its threads. It returns no more batches."""
        self._has_ended = True
        if self._runner is not None:
            self._runner.close()

    def undo(self) -> None:
        """Close it and reset the loader: the next iteration returns the same batches.

        For frameworks that read some batches before they train. If another iteration was begun
        after this one, it is only closed.
        """
        self.close()
        if self._pass is not None:
            self._session.move(self._pass, self._pass.before)
            self._pass.moves_session = False
