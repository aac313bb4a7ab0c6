"""Batches of a dataset, in order, for training.

    loader = Loader(dataset, {"label": Scalar("image/class/label")}, batch_size=32, shuffle=True)
    for batch in loader: ...

What is read when is arithmetic (`order`, `shares`, `schedule`); what a batch holds is made by
`batches`; threads work ahead in `engine`. A loader's state is where its last batch ended.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import starmap
from typing import Any

from recordsmith.dataset import Dataset
from recordsmith.errors import CorruptDataError, OptionError
from recordsmith.loading.batches import Batch, BatchMaker, Changes, Filter, Made, Map
from recordsmith.loading.buckets import Buckets
from recordsmith.loading.buffer import Buffer
from recordsmith.loading.engine import Engine
from recordsmith.loading.features import Feature
from recordsmith.loading.mix import Mix
from recordsmith.loading.order import Blocks
from recordsmith.loading.ordering import order_of, reader_of
from recordsmith.loading.requests import resolve_for_all
from recordsmith.loading.schedule import Progress, Schedule
from recordsmith.loading.shares import Ends, Share
from recordsmith.loading.stats import Stopwatch

_GLANCE_COUNT = 64  # records that are looked at where the schema is not known


class Loader:
    """Batches of a dataset: dicts of arrays whose first axis counts the examples.

    Each iteration takes `epochs` epochs, with an order of its own for each, and goes on counting
    where the last one ended; one that was broken off is left, and the next epoch begins.
    """

    def __init__(
        self,
        dataset: Dataset | Mix,
        features: Mapping[str, Feature],
        *,
        batch_size: int,
        shuffle: bool | Blocks | Buffer = False,
        buckets: Buckets | None = None,
        seed: int = 0,
        epochs: int | None = 1,
        rank: int = 0,
        world_size: int = 1,
        ends: Ends = "keep",
        threads: int | None = None,
        prefetch: int = 2,
        filter: Filter | None = None,  # noqa: A002 - what it is called everywhere
        map_examples: Map | None = None,
        map_batches: Map | None = None,
        skip_errors: int = 0,
    ) -> None:
        """Nothing is read yet but what shows that the features are there.

        Args:
            dataset: one, or a Mix of several.
            features: what a batch holds, by name.
            batch_size: examples in a batch of one rank.
            shuffle: True for a random order of all records; Blocks to read neighbours together;
                Buffer for compressed shards, which can only be read from their beginning.
            buckets: brings records of like size together, so that little is padded.
            seed: of the order and of everything else that is random.
            epochs: how many times each iteration reads the dataset; None for ever.
            rank, world_size: which process of a training job this is, of how many.
            ends: what becomes of the last step of an epoch: `keep` a smaller batch, `drop` it, or
                `pad` it with the first records of the epoch.
            threads: how many decode; None for one a processor, 0 for none but the caller's.
            prefetch: batches that are made ahead.
            filter: example -> whether it is kept; it sees what is not pixels. A batch has fewer
                rows where it refuses some.
            map_examples: (example, generator) -> example, once its pixels are decoded.
            map_batches: (batch, generator) -> batch.
            skip_errors: how many bad records are skipped before one more stops the iteration.

        Raises:
            OptionError: options contradict each other or the dataset.
        """
        share = Share(len(dataset), batch_size, rank, world_size, ends)
        order = order_of(
            dataset, shuffle=shuffle, seed=seed, buckets=buckets, step_size=share.step_size
        )
        self._schedule = Schedule(order, share, epochs)
        for name, feature in features.items():
            feature.check(name, features)
        datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
        glances = [one.glance(_GLANCE_COUNT) for one in datasets]
        self._stopwatch = Stopwatch()
        self._reader = reader_of(dataset, order)
        self._maker = BatchMaker(
            dataset,
            features,
            resolve_for_all(features, glances, may_skip=skip_errors > 0),
            seed=seed,
            changes=Changes(filter, map_examples, map_batches),
            may_skip=skip_errors > 0,
            stopwatch=self._stopwatch,
        )
        self._thread_count = _thread_count(threads)
        self._prefetch = prefetch
        self._skip_errors = skip_errors
        self._skipped: dict[tuple[str | None, int | None], CorruptDataError] = {}
        self._progress = Progress()
        self._is_resumed = False
        self._iterations: weakref.WeakSet[Iteration] = weakref.WeakSet()

    def __iter__(self) -> Iteration:
        progress = self._progress
        if not self._is_resumed:
            epoch = progress.epoch + progress.is_inside
            progress = Progress(epoch, begun=epoch)
        self._is_resumed = False
        steps = self._schedule.steps(progress)
        jobs: Iterator[Batch] = map(self._maker.batch, steps)
        if self._reader is not None:
            jobs = starmap(self._maker.batch, self._reader.read(steps))
        engine = Engine(jobs, threads=self._thread_count, prefetch=self._prefetch)
        iteration = Iteration(engine, self._hand_out)
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

    def _hand_out(self, made: Made) -> dict[str, Any]:
        for fault in made.faults:
            self._skipped[fault.path, fault.position] = fault
            if len(self._skipped) > self._skip_errors:
                raise fault
        self._progress = made.after
        return made.batch


class Iteration:
    """One pass over a loader's batches: an iterator that can be closed."""

    def __init__(self, engine: Engine[Made], hand_out: Callable[[Made], dict[str, Any]]) -> None:
        self._engine = engine
        self._hand_out = hand_out

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        try:
            return self._hand_out(next(self._engine))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the threads that work for it. There are no more batches afterwards."""
        self._engine.close()


def _thread_count(threads: int | None) -> int:
    if threads is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if not isinstance(threads, int) or threads < 0:
        raise OptionError(
            f"threads is {threads!r}; expected 0 or more, or None for one a processor"
        )
    return threads
