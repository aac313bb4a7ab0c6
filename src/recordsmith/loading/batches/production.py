"""How a loader makes the batches of its steps: in which threads, and which records it skips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from recordsmith.loading.batches.batch import BatchJob, BatchMaker, BatchResult
from recordsmith.loading.batches.job_runner import Job, Runner, run_jobs
from recordsmith.loading.batches.user_functions import is_calling
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.inputs import FetchedRecords
from recordsmith.loading.order.schedule import Step
from recordsmith.loading.order.shuffle import PositionOrder
from recordsmith.support.errors import DataError, OptionError


class Production(msgspec.Struct, frozen=True):
    """How a loader makes batches.

    thread_count: 0 for the caller's thread.
    reads_ahead: whether records are read before their steps are made, as over a network.
    whole_count: of the records in the files, if an epoch reads all of them; else None.
    skip_errors: how many damaged records to skip.
    skipped: their errors, by position, or file and number.
    """

    maker: BatchMaker
    thread_count: int
    prefetch: int
    reads_ahead: bool
    whole_count: int | None
    skip_errors: int
    skipped: dict[object, DataError]

    def check_not_inside(self) -> None:
        """Raise OptionError if this thread is inside a function of the user that it calls."""
        if is_calling(self.maker):
            raise OptionError(
                "a filter or map iterates over the loader that calls it",
                remedy="Create another loader for that.",
            )

    def run(self, steps: Iterator[Step], order: PositionOrder) -> Runner[BatchResult]:
        """Return what makes the batches of steps; `order` has the runs that are read together."""
        ahead: AheadReader | None = None
        fetched: Iterable[tuple[Step, FetchedRecords | None]] = ((step, None) for step in steps)
        if self.reads_ahead:
            from recordsmith.loading.batches.ahead_reader import AheadReader

            fetched = ahead = AheadReader(self.maker.records, order, steps)
        jobs = self._jobs(fetched)
        return run_jobs(jobs, threads=self.thread_count, prefetch=self.prefetch, upstream=ahead)

    def _jobs(
        self, fetched: Iterable[tuple[Step, FetchedRecords | None]]
    ) -> Iterator[Job[BatchResult]]:
        memory = RecycledMemory(self.prefetch + 2)  # as many batches as a loop has at once
        for step, records in fetched:
            yield BatchJob(self.maker, step, memory.empty, records)

    def skip(self, faults: Iterable[tuple[object, DataError]]) -> None:
        """Count damaged records as skipped; raise the error of the first that is one too many."""
        for key, fault in faults:
            if len(self.skipped) == self.skip_errors and key not in self.skipped:
                raise fault
            self.skipped.setdefault(key, fault)
