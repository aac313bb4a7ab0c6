"""Batches of a dataset, in order, for training.

    loader = Loader(dataset, {"label": Scalar("image/class/label")}, batch_size=32, shuffle=True)
    for batch in loader: ...

What is read when is arithmetic (`order`, `shares`, `schedule`); what a batch holds is made by
`batches`; threads work ahead in `engine`. A loader's state is where its last batch ended.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from recordsmith.dataset import Dataset
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.loading.batches import Batch, BatchMaker, Made
from recordsmith.loading.buckets import Buckets
from recordsmith.loading.buffer import Buffer
from recordsmith.loading.declaring import declare_features
from recordsmith.loading.engine import Engine
from recordsmith.loading.features import Feature
from recordsmith.loading.features.contract import empty
from recordsmith.loading.functions import Changes, Filter, Map, is_calling
from recordsmith.loading.mix import Mix
from recordsmith.loading.options import seed_number, whole_number
from recordsmith.loading.order import Blocks
from recordsmith.loading.ordering import order_of, reader_of
from recordsmith.loading.requests import merged_glance, resolve_for_all
from recordsmith.loading.reuse import Ring
from recordsmith.loading.schedule import Progress, Schedule, Step
from recordsmith.loading.sequential import HeldRecords
from recordsmith.loading.shares import Ends, Share
from recordsmith.loading.stats import LoaderStats, Tally

_GLANCE_COUNT = 64  # records that are looked at where the schema is not known


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
        self._thread_count = _thread_count(threads)
        if not isinstance(dataset, (Dataset, Mix)):
            raise OptionError(
                f"the dataset is {dataset!r:.60}; expected what recordsmith.open() answers, or a "
                "Mix of several"
            )
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
        datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
        glances = [one.glance(_GLANCE_COUNT) for one in datasets]
        schema, is_complete = merged_glance(glances)
        declared = declare_features(features, schema, is_complete=is_complete)
        self._maker = BatchMaker(
            dataset,
            declared,
            resolve_for_all(declared, glances, may_skip=self._skip_errors > 0),
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
        self._progress = Progress()
        self._is_resumed = False
        self._tally = Tally()
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
        iteration = Iteration(self._begin, self._hand_out)
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
            processor_count=_processor_count(),
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
        self._progress = self._schedule.progress(state)
        self._is_resumed = True

    # -- for its iterations ------------------------------------------------------------------------

    def _begin(self) -> tuple[Engine[Made], Tally]:
        """The work of an iteration that begins now."""
        if is_calling(self._maker):
            raise OptionError(
                "a function that was given to this loader iterates over it, which would never end: "
                "make another loader for that"
            )
        progress = self._progress
        if not self._is_resumed:
            epoch = progress.epoch + progress.is_inside
            progress = Progress(epoch, begun=epoch)
        self._is_resumed = False
        jobs = self._jobs(progress)
        self._tally = Tally()
        return Engine(jobs, threads=self._thread_count, prefetch=self._prefetch), self._tally

    def _hand_out(self, made: Made) -> dict[str, Any]:
        """The batch, if not too many records were left out of it."""
        for position, fault in made.faults:
            if len(self._skipped) == self._skip_errors and position not in self._skipped:
                raise fault
            self._skipped.setdefault(position, fault)
        self._progress = made.after
        return made.batch

    def _jobs(self, progress: Progress) -> Iterator[Batch]:
        steps = self._schedule.steps(progress)
        held: Iterable[tuple[Step, HeldRecords | None]] = ((step, None) for step in steps)
        if self._reader is not None:
            held = self._reader.read(steps)
        ring = Ring(self._prefetch) if self._reuses else None
        for at, (step, records) in enumerate(held):
            allocate = empty if ring is None else ring.allocator(at)
            yield self._maker.batch(step, allocate, records)


class Iteration:
    """One pass over a loader's batches: an iterator that can be closed."""

    def __init__(
        self,
        begin: Callable[[], tuple[Engine[Made], Tally]],
        hand_out: Callable[[Made], dict[str, Any]],
    ) -> None:
        self._begin = begin
        self._hand_out = hand_out
        self._engine: Engine[Made] | None = None
        self._has_ended = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        asked_at = time.perf_counter()
        if self._has_ended:
            raise StopIteration
        if self._engine is None:
            self._engine, self._tally = self._begin()
        self._tally.ask(asked_at)
        try:
            made = next(self._engine)
            batch = self._hand_out(made)
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


def _processor_count() -> int:
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def _thread_count(threads: int | None) -> int:
    return _processor_count() if threads is None else whole_number("threads", threads, 0)
