"""Batches of a dataset, in order, for training.

    loader = Loader(dataset, {"label": Scalar("image/class/label")}, batch_size=32, shuffle=True)
    for batch in loader: ...

What is read when is arithmetic (`order`, `shares`, `schedule`); what a batch holds is made by
`batches`; threads work ahead in `engine`. A loader's state is where its last batch ended.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.loading.batches import Batch, Made
from recordsmith.loading.buckets import Buckets
from recordsmith.loading.buffer import Buffer
from recordsmith.loading.engine import Engine
from recordsmith.loading.features import Feature
from recordsmith.loading.features.contract import empty
from recordsmith.loading.functions import Changes, Filter, Map, is_calling
from recordsmith.loading.making import batch_maker, check_dataset
from recordsmith.loading.mix import Mix
from recordsmith.loading.options import seed_number, whole_number
from recordsmith.loading.order import Blocks
from recordsmith.loading.ordering import order_of, reader_of
from recordsmith.loading.reuse import Ring
from recordsmith.loading.schedule import Progress, Schedule, Step
from recordsmith.loading.sequential import HeldRecords
from recordsmith.loading.shares import Ends, Share
from recordsmith.loading.specs import EntrySpec, specs_of
from recordsmith.loading.stats import LoaderStats, Tally
from recordsmith.work import processor_count


class Loader:
    """Batches of a dataset: dicts of arrays whose first axis counts the examples.

    Each iteration takes `epochs` epochs, with an order of its own for each, and goes on counting
    where the last one ended; one that was broken off is left, and the next epoch begins. It may
    travel to another process by pickle, if the functions that it was given can.
    """

    def __init__(
        self,
        dataset: Dataset | Mix,
        features: Mapping[str, Feature | str] | None = None,
        *,
        batch_size: int,
        shuffle: bool | Blocks | Buffer = False,
        buckets: Buckets | None = None,
        seed: int = 0,
        epochs: int | None = 1,
        rank: int = 0,
        world_size: int = 1,
        worker: int = 0,
        worker_count: int = 1,
        ends: Ends = "keep",
        threads: int | None = None,
        prefetch: int = 2,
        filter: Filter | None = None,  # noqa: A002 - what it is called everywhere
        map_examples: Map | None = None,
        map_batches: Map | None = None,
        skip_errors: int = 0,
        reuse_batches: bool = False,
    ) -> None:
        """Nothing is read yet but what shows that the features are there.

        Args:
            dataset: one, or a Mix of several.
            features: what a batch holds, by name; a key alone means what the schema says of it.
                None for every feature of the schema that has a kind; pictures are bytes then.
            batch_size: examples in a batch of one rank.
            shuffle: True for a random order of all records; Blocks to read neighbours together;
                Buffer for compressed shards, which can only be read from their beginning.
            buckets: brings records of like size together, so that little is padded.
            seed: of the order and of everything else that is random.
            epochs: how many times each iteration reads the dataset; None for ever.
            rank, world_size: which process of a training job this is, of how many.
            worker, worker_count: which of several processes that feed this rank this is, of how
                many; they take its steps in turn.
            ends: what becomes of the last step of an epoch: `keep` a smaller batch, `drop` it, or
                `pad` it with the first records of the epoch.
            threads: how many decode; None for one a processor, 0 for none but the caller's.
            prefetch: how many batches are made ahead of the one that is asked for.
            filter: example -> whether it is kept; it sees the features that are neither pictures
                nor masks nor boxes. A batch has fewer rows where it refuses some.
            map_examples: (example, generator) -> example, once its pixels are decoded. An entry
                must have one shape and dtype in all examples; those of unequal length stay so if
                they were before. Entries that are handed back as they came are not copied.
            map_batches: (batch, generator) -> batch. Neither map is called for a batch without
                rows: that one has the entries of the features.
            skip_errors: how many bad records are skipped before one more stops the iteration. A
                record counts once, in however many epochs it is read.
            reuse_batches: use the memory of pixels again. A batch is intact until the next but one
                is asked for; copy what you want to keep for longer.

        Raises:
            OptionError: options contradict each other or the dataset.
        """
        self._seed = seed_number(seed)
        self._prefetch = whole_number("prefetch", prefetch, 0)
        self._skip_errors = whole_number("skip_errors", skip_errors, 0)
        self._is_thread_count_said = threads is not None
        self._thread_count = _thread_count(threads)
        check_dataset(dataset)
        if not isinstance(shuffle, (bool, Blocks, Buffer)):
            raise OptionError(f"shuffle is {shuffle!r:.60}; expected True, False, Blocks or Buffer")
        if not isinstance(reuse_batches, bool):
            raise OptionError(f"reuse_batches is {reuse_batches!r:.60}; expected True or False")
        changes = Changes(filter, map_examples, map_batches)
        share = Share(len(dataset), batch_size, rank, world_size, ends, worker, worker_count)
        order = order_of(
            dataset, shuffle=shuffle, seed=self._seed, buckets=buckets, step_size=share.step_size
        )
        self._schedule = Schedule(order, share, epochs)
        self._reader = reader_of(dataset, order)
        self._maker = batch_maker(
            dataset,
            features,
            seed=self._seed,
            changes=changes,
            may_skip=self._skip_errors > 0,
        )
        if reuse_batches and not self._maker.has_pixels:
            raise OptionError(
                "reuse_batches uses the memory of pixels again, but no feature has pixels: leave "
                "it out"
            )
        self._reuses = reuse_batches
        self._skipped: dict[int, CorruptDataError] = {}  # by position in the dataset
        self._origin = self._progress = Progress()
        self._is_resumed = False
        self._steps_skipped_count = 0
        self._tally = Tally()
        self._begun_count = 0
        self._iterations: weakref.WeakSet[Iteration] = weakref.WeakSet()

    def __getstate__(self) -> dict[str, Any]:
        """It travels to another process without its iterations."""
        return {**vars(self), "_tally": Tally(), "_iterations": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._iterations = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"Loader({', '.join(self._maker.names)}; epoch {self.epoch})"

    def __iter__(self) -> Iteration:
        """An iteration, which begins when its first batch is asked for."""
        iteration = Iteration(self._begin, self._hand_out, self._end)
        self._iterations.add(iteration)
        return iteration

    def __len__(self) -> int:
        """How many batches the next iteration gives.

        Raises:
            TypeError: it goes on for ever.
        """
        return self._schedule.length(self._progress if self._is_resumed else Progress())

    def __enter__(self) -> Loader:  # noqa: PYI034 - Self is for Python 3.11 and later
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all iterations and their threads."""
        for iteration in list(self._iterations):
            iteration.close()

    @property
    def batch_size(self) -> int:
        """How many examples a batch has, if no function or fault leaves any out."""
        return self._schedule.share.batch_size

    @property
    def rank(self) -> int:
        """Which process of a training job this is, counted from 0."""
        return self._schedule.share.rank

    @property
    def world_size(self) -> int:
        """How many processes the training job has."""
        return self._schedule.share.world_size

    @property
    def shorter_batches(self) -> str | None:
        """Why some of the next batches, here or on other ranks, may have fewer rows than
        `batch_size`, and what to do; None if none may, but for what `map_batches` does.
        """
        share, changes = self._schedule.share, self._maker.changes
        if changes.filter is not None:
            return "filter leaves rows out: select records before they are packed, or by a slice"
        if self._skip_errors:
            return "skip_errors leaves rows out: without it, a damaged record stops the iteration"
        read = self._progress.read if self._is_resumed else 0
        is_even = share.count % share.step_size == 0 == (share.count - read) % share.step_size
        if share.ends == "keep" and not is_even:
            return (
                f"the last step of an epoch has {share.count % share.step_size or 'fewer'} of the "
                f"{share.step_size} records of a step: say ends='drop' or ends='pad'"
            )
        return None

    @property
    def reuses_batches(self) -> bool:
        """Whether the memory of pixels is used again."""
        return self._reuses

    @property
    def goes_on(self) -> bool:
        """Whether the next iteration is the rest of one that was interrupted, as a state told."""
        is_at_begin = self._progress == Progress(self._progress.begun, begun=self._progress.begun)
        return self._is_resumed and not is_at_begin

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of, counted from 0."""
        return self._progress.epoch

    @property
    def skipped(self) -> list[CorruptDataError]:
        """What was wrong with the records that were skipped, each once."""
        return list(self._skipped.values())

    def stats(self) -> LoaderStats:
        """What the running iteration, or the last one, did so far, and what held it up."""
        known = LoaderStats(
            thread_count=self._thread_count,
            processor_count=processor_count(),
            has_pixels=self._maker.has_pixels,
        )
        return self._tally.stats(known)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, after the last batch that it handed out: small and JSON-able."""
        return self._schedule.state(self._progress)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another loader was: the next iteration gives what it would have given.

        The number of ranks and the batch size may be others than there; what ranks have read
        together is neither read again in that epoch nor left out.

        Raises:
            OptionError: the state is of another dataset or order.
        """
        self._origin = self._progress = self._schedule.progress(state)
        self._is_resumed = True

    def state_after(self, batch_count: int) -> dict[str, Any]:
        """Where this loader is when a training loop has had so many batches.

        For loops that something reads ahead of: worker processes, a queue, a copy to a device. The
        loader itself is where that is, which `state_dict` says.

        Args:
            batch_count: since the loader was made, or since its `load_state_dict`; over all
                iterations, of which none was broken off.
        """
        count = whole_number("batch_count", batch_count, 0)
        return self._schedule.state(self._schedule.after(self._origin, count))

    def spec(self) -> dict[str, EntrySpec]:
        """What the entries of a batch are, by name: their sort, dtype and shape.

        The first axis is the batch size only where all batches have it. Where maps change batches,
        the first one is made to see what they answer, and other axes are as they are there.
        """
        changes = self._maker.changes
        batch = self._without_rows()
        if changes.map_examples is not None or changes.map_batches is not None:
            with self._copy(_thread_count=0) as copy:
                batch = next((made for made in copy if len(next(iter(made.values())))), batch)
        may_differ = self._schedule.share.ends == "keep" or self._skip_errors or changes.map_batches
        is_filtered = changes.filter is not None
        batch_size = None if may_differ or is_filtered else self.batch_size
        return specs_of(batch, batch_size, self._maker.ragged_texts)

    def _without_rows(self) -> dict[str, Any]:
        nothing = np.empty(0, np.int64)
        return self._maker.make(Step(0, nothing, nothing, Progress())).batch

    def _copy(self, **changed: Any) -> Loader:
        """A loader like this one, but for what is changed; its iterations are its own."""
        copy = Loader.__new__(Loader)
        copy.__setstate__({**self.__getstate__(), "_skipped": dict(self._skipped), **changed})
        return copy

    def for_worker(
        self, worker: int, worker_count: int, *, iteration: int = 0, skipped_count: int = 0
    ) -> Loader:
        """A copy for one of several processes that feed this rank: they take its steps in turn.

        All of them together give what this loader's next iterations would. Threads are shared out,
        if their number was not said; memory is not used again, as batches wait in queues there.

        Args:
            worker, worker_count: which of them it is, of how many.
            iteration: which of the next iterations it begins with, counted from 0.
            skipped_count: how many of its batches are left out at the beginning.
        """
        share, thread_count = self._schedule.share, self._thread_count
        if share.worker_count > 1:
            raise OptionError(
                f"this loader is made for worker {share.worker} of {share.worker_count} already: "
                "make it without worker and worker_count, or take no processes beside it"
            )
        if not self._is_thread_count_said:
            thread_count = max(1, thread_count // worker_count)
        begin = self._schedule.later(self._next_progress(), iteration)
        return self._copy(
            _schedule=self._schedule.for_worker(worker, worker_count),
            _thread_count=thread_count,
            _reuses=False,
            _origin=begin,
            _progress=begin,
            _is_resumed=True,
            _steps_skipped_count=skipped_count,
        )

    # -- for its iterations ------------------------------------------------------------------------

    def _begin(self) -> Begun:
        """The work of an iteration that begins now."""
        if is_calling(self._maker):
            raise OptionError(
                "a function that was given to this loader iterates over it, which would never end: "
                "make another loader for that"
            )
        before = self._progress, self._is_resumed, self._steps_skipped_count
        progress, skipped_count = self._next_progress(), self._steps_skipped_count
        self._is_resumed, self._steps_skipped_count = False, 0
        self._begun_count += 1
        take_back = partial(self._take_back, self._begun_count, before)
        jobs = self._jobs(self._schedule.steps(progress, skipped_count))
        self._tally = Tally()
        engine = Engine(jobs, threads=self._thread_count, prefetch=self._prefetch)
        return Begun(engine, self._tally, self._schedule.end(progress), take_back)

    def _take_back(self, number: int, before: tuple[Progress, bool, int]) -> None:
        """Be where it was before an iteration, the last one that was begun."""
        if number == self._begun_count:
            self._progress, self._is_resumed, self._steps_skipped_count = before

    def _next_progress(self) -> Progress:
        """Where the next iteration begins."""
        if self._is_resumed:
            return self._progress
        epoch = self._progress.epoch + self._progress.is_inside
        return Progress(epoch, begun=epoch)

    def _end(self, after: Progress | None) -> None:
        """All batches of an iteration are handed out. A worker may have had none, or not the last
        one; the next iteration begins where that of the others does.
        """
        if after is not None:
            self._progress = after

    def _hand_out(self, made: Made) -> dict[str, Any]:
        """The batch, if not too many records were left out of it."""
        for position, fault in made.faults:
            if len(self._skipped) == self._skip_errors and position not in self._skipped:
                raise fault
            self._skipped.setdefault(position, fault)
        self._progress = made.after
        return made.batch

    def _jobs(self, steps: Iterator[Step]) -> Iterator[Batch]:
        held: Iterable[tuple[Step, HeldRecords | None]] = ((step, None) for step in steps)
        if self._reader is not None:
            held = self._reader.read(steps)
        ring = Ring(self._prefetch) if self._reuses else None
        for at, (step, records) in enumerate(held):
            allocate = empty if ring is None else ring.allocator(at)
            yield self._maker.batch(step, allocate, records)


class Begun(NamedTuple):
    """What an iteration works with: who makes its batches, who counts, where it will end, and what
    undoes it.
    """

    engine: Engine[Made]
    tally: Tally
    end: Progress | None
    take_back: Callable[[], None]


class Iteration:
    """One pass over a loader's batches: an iterator that can be closed."""

    def __init__(
        self,
        begin: Callable[[], Begun],
        hand_out: Callable[[Made], dict[str, Any]],
        end: Callable[[Progress | None], None],
    ) -> None:
        self._begin = begin
        self._hand_out = hand_out
        self._end = end
        self._engine: Engine[Made] | None = None
        self._has_ended = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        asked_at = time.perf_counter()
        if self._has_ended:
            raise StopIteration
        if self._engine is None:
            self._engine, self._tally, self._ends_at, self._undo = self._begin()
        self._tally.ask(asked_at)
        try:
            made = next(self._engine)
            batch = self._hand_out(made)
        except StopIteration:
            if not self._has_ended:  # nobody has closed it meanwhile
                self._end(self._ends_at)
            self.close()
            raise
        except BaseException:
            self.close()
            raise
        self._tally.answer(
            asked_at, time.perf_counter(), made.spent, len(made.faults), self._engine.idle_seconds
        )
        return batch

    def __reduce__(self) -> Any:
        raise OptionError(
            "an iteration cannot be pickled, as threads work for it: pickle the loader, or take "
            "its state_dict()"
        )

    def close(self) -> None:
        """End the threads that work for it. There are no more batches afterwards."""
        self._has_ended = True
        if self._engine is not None:
            self._engine.close()

    def take_back(self) -> None:
        """Close it as if it had never begun: the loader's next iteration gives the same batches.

        For frameworks that look at some batches before they train. It is only closed if another
        iteration was begun after it.
        """
        self.close()
        if self._engine is not None:
            self._undo()


def _thread_count(threads: int | None) -> int:
    return processor_count() if threads is None else whole_number("threads", threads, 0)
