"""Loads the batches of a dataset for training.

`order` computes which records each batch has, `batches` makes it in threads. The state of a loader
is where its last batch ended.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np

from recordsmith.dataset import Dataset, records_of
from recordsmith.loading.batches.ahead_reader import FetchedRecords
from recordsmith.loading.batches.batch import BatchJob, BatchResult
from recordsmith.loading.batches.batch_maker import make_batch_maker
from recordsmith.loading.batches.job_runner import JobRunner
from recordsmith.loading.batches.key_watch import KeyWatch
from recordsmith.loading.batches.user_functions import Filter, Maps, UserFunctions, is_calling
from recordsmith.loading.entry_spec import EntrySpec, specs_of
from recordsmith.loading.features.declaration import Features
from recordsmith.loading.loader_stats import LoaderStats, Tally
from recordsmith.loading.memory import RecycledMemory
from recordsmith.loading.order.buckets import BucketBySize
from recordsmith.loading.order.inputs import LoaderInput, as_input
from recordsmith.loading.order.rank_share import LastBatch
from recordsmith.loading.order.schedule import EpochProgress, LoaderPlace, Step
from recordsmith.loading.order.shuffle import BlockShuffle
from recordsmith.loading.planning import plan_reading
from recordsmith.support.errors import DataError, OptionError, explain_unknown, option
from recordsmith.support.number_options import seed_number, whole_number
from recordsmith.support.work import processor_count

_NAMES_SHOWN = 8
_EXPLAINED = {
    "batch": "Pass batch_size.",
    "batch_sampler": "Pass buckets=rs.BucketBySize() or shuffle=True.",
    "cache": "Pack smaller images instead; rs.open() has a cache for files of a network.",
    "collate_fn": "Pass map_batches; rs.Padded and rs.Ragged join lists of different lengths.",
    "columns": "Pass features, a list of keys.",
    "device": "Pass it to recordsmith.torch.batches(loader, device=…).",
    "drop_last drop_remainder": "Pass last_batch='drop'.",
    "dtype image_size mean size std": "Pass it to rs.Image, one of the features.",
    "filter_fn predicate": "Pass filter.",
    "generator random_state shuffle_seed worker_init_fn": "Pass seed.",
    "ignore_errors": "Pass skip_errors, how many records to skip.",
    "map map_fn map_func transform transforms": "Pass map_examples, or "
    "map_batches for whole batches.",
    "max_workers n_workers num_parallel_calls num_parallel_reads num_threads num_workers workers": (
        "Pass threads: threads of this process decode, no worker processes are needed."
    ),
    "multiprocessing_context persistent_workers timeout": "Leave it out: threads of this process "
    "decode, no worker processes are needed.",
    "num_epochs repeat": "Pass epochs; None repeats without end.",
    "num_replicas num_shards num_replicas_in_sync process_count": "Pass world_size.",
    "pin_memory": "Pass it to DataLoader(recordsmith.torch.batches(loader), batch_size=None, "
    "pin_memory=True), or copy with recordsmith.torch.batches(loader, device='cuda').",
    "prefetch_buffer_size prefetch_factor": "Pass prefetch, a number of batches.",
    "process_index shard_id shard_index": "Pass rank.",
    "sampler": "Pass shuffle=True, rs.Weighted(dataset, …) or dataset.select(…).",
    "buffer_size shuffle_buffer shuffle_buffer_size shuffle_size": (
        "Pass shuffle=True, which shuffles all records without a buffer."
    ),
    "split": "Pass it to rs.open.",
}
"""What to do instead of the options of torch's DataLoader, of tf.data, grain and others."""

FetchedSteps: TypeAlias = Iterable[tuple[Step, FetchedRecords | None]]


class Loader:
    """Loads batches of a dataset: dicts of arrays whose first axis counts the examples.

        loader = Loader(dataset, {"label": Scalar("image/class/label")}, batch_size=32)
        for batch in loader:
            batch["label"]  # int64, (32,)

    Each iteration reads `epochs` epochs, each in its own order, and continues counting where the
    last one ended. After an interrupted iteration, the next one begins the next epoch. A loader can
    be pickled if its functions can.

    Example:
        loader = rs.Loader(dataset, {"label": "image/class/label"}, batch_size=8, shuffle=True)
        for batch in loader:
            print(batch["label"])  # int64, (8,)
    """

    @explain_unknown(_EXPLAINED)
    def __init__(
        self,
        dataset: Dataset | LoaderInput,
        features: Features | None = None,
        *,
        batch_size: int,
        shuffle: bool | BlockShuffle = False,
        buckets: BucketBySize | None = None,
        seed: int = 0,
        epochs: int | None = 1,
        rank: int = 0,
        world_size: int = 1,
        worker: int = 0,
        worker_count: int = 1,
        last_batch: LastBatch = "keep",
        threads: int | None = None,
        prefetch: int = 2,
        filter: Filter | None = None,
        map_examples: Maps | None = None,
        map_batches: Maps | None = None,
        skip_errors: int = 0,
    ) -> None:
        """Create a loader. Reads only the schema, or the first records where it is unknown.

        A key that these do not have is looked for in up to 16 MiB of the files.

        Args:
            dataset: a Dataset, a Mix of several, a Weighted selection of one, Episodes, or Packed
                rows of tokens.
            features: a list of keys, or a dict of features and keys by name. A key takes its type
                from the schema; an image gets the size of all images. None for every feature of
                the schema that has a kind; images are bytes then.
            batch_size: examples in a batch of one rank.
            shuffle: True shuffles all records; a BlockShuffle reads neighbouring records together.
            buckets: batches records of similar size together, to reduce padding.
            seed: for the order and everything else that is random.
            epochs: how many times each iteration reads the dataset; None for an endless iteration.
            rank, world_size: the rank of this process and the number of ranks.
            worker, worker_count: the worker of this rank and the number of workers; workers read
                the steps of their rank in turn.
            last_batch: `keep` an incomplete last step of an epoch as smaller batches, `drop` it,
                or `pad` it with the first records of the epoch.
            threads: how many threads decode; None for one per processor, 0 for the caller's.
            prefetch: how many batches to prepare in advance.
            filter, map_examples, map_batches: functions of an example or a batch, or of it and a
                `numpy.random.Generator`, which they receive if their second parameter is required
                or is called `generator`. Maps may be lists of functions, called one after the other
                with the same generator.
            filter: keeps the example if true. The example has the features without pixels and
                boxes. Batches have fewer rows where it rejects some.
            map_examples: called after decoding; returns an example. An entry must have the same
                shape and dtype in all examples, except that ragged entries stay ragged. Entries
                returned unchanged are not copied.
            map_batches: returns a batch. For a batch without rows, only `Mixup` and other
                augmentations are called, up to the first other function.
            skip_errors: how many damaged records to skip before the next one stops the iteration.
                A record counts once, in however many epochs it is read.

        Raises:
            OptionError: options conflict with each other or with the dataset, such as a key that no
                record has.
        """
        self._seed = seed_number(seed)
        self._prefetch = whole_number("prefetch", prefetch, 0)
        self._skip_errors = whole_number("skip_errors", skip_errors, 0)
        self._has_default_threads = threads is None
        self._thread_count = _thread_count(threads)
        functions = UserFunctions.checked(filter, map_examples, map_batches)
        source = as_input(dataset)
        self._maker = make_batch_maker(
            source,
            features,
            seed=self._seed,
            functions=functions,
            may_skip=self._skip_errors > 0,
        )
        self._schedule, self._begin_reading_ahead = plan_reading(
            source,
            self._maker.records,
            shuffle=shuffle,
            seed=self._seed,
            buckets=buckets,
            epochs=epochs,
            normalisation=self._maker.normalisation,
            batch_size=batch_size,
            rank=rank,
            world_size=world_size,
            last_batch=last_batch,
            worker=worker,
            worker_count=worker_count,
        )
        share = self._schedule.share
        reads_all = source.has_each_once and (share.world_size, share.worker_count) == (1, 1)
        reads_all &= all(records_of(one).has_all for one in source.datasets)
        self._whole_count = source.record_count if reads_all else None
        self._skipped: dict[object, DataError] = {}  # by position, or file and number
        self._origin = EpochProgress()
        self._place = LoaderPlace()
        self._tally = Tally()
        self._begun_count = 0
        self._load_count = 0
        self._iterations: weakref.WeakSet[Iteration] = weakref.WeakSet()
        self._other_processes: OtherProcesses | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the iterations, which have threads, and the processes that read this loader."""
        left_out = {"_tally": Tally(), "_iterations": None, "_other_processes": None}
        return {**vars(self), **left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._iterations = weakref.WeakSet()

    def __repr__(self) -> str:
        share, names = self._schedule.share, self._maker.names
        shown = [*names[:_NAMES_SHOWN], *([] if len(names) <= _NAMES_SHOWN else ["…"])]
        try:
            steps = f"{len(self)} steps"
        except TypeError:
            steps = "endless"
        return (
            f"Loader({share.count} records: {', '.join(shown)}; batch_size={share.batch_size}, "
            f"{steps}, rank {share.rank} of {share.world_size}, epoch {self.epoch})"
        )

    def __iter__(self) -> Iteration:
        """Return an iteration. It begins when its first batch is requested."""
        iteration = Iteration(self)
        self._iterations.add(iteration)
        return iteration

    def __len__(self) -> int:
        """Return the number of batches of the next iteration."""
        return self._schedule.length(
            self._place.progress if self._place.is_resumed else EpochProgress()
        )

    def __getitem__(self, index: object) -> NoReturn:
        """Raise OptionError: a loader has no items, which torch's DataLoader would ask for."""
        raise OptionError(
            "a Loader makes batches in order and cannot be indexed",
            remedy="Iterate over it. For torch, use DataLoader(recordsmith.torch.batches(loader), "
            "batch_size=None); for single examples use Examples, or recordsmith.torch.examples.",
        )

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
        """How many examples a batch has, if none is filtered or skipped."""
        return self._schedule.share.batch_size

    @property
    def rank(self) -> int:
        """The rank of this process, counted from 0."""
        return self._schedule.share.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self._schedule.share.world_size

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0."""
        return self._place.progress.epoch

    @property
    def skipped(self) -> list[DataError]:
        """The errors of the records that were skipped, each once."""
        return list(self._skipped.values())

    def stats(self) -> LoaderStats:
        """Return counts and times of the current or last iteration, and its bottleneck."""
        known = LoaderStats(
            thread_count=self._thread_count,
            processor_count=processor_count(),
            has_pixels=self._maker.has_pixels,
            is_remote=self._begin_reading_ahead is not None,
        )
        return self._tally.stats(known)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch returned: a small, JSON-able dict.

        With several iterations at once, the latest counts. After the last batch of an iteration,
        the state is the beginning of the next one.

        Raises:
            OptionError: worker processes of a DataLoader read the loader; use `state_after`.
        """
        self._check_read_here()
        return self._schedule.state(self._place.progress)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state: the next iteration returns the batches that would have come next.

        The number of ranks and the batch size may differ; no record of the epoch is repeated or
        lost.

        Raises:
            OptionError: the state is invalid, or of another dataset or order.
        """
        self._origin = self._schedule.progress(state)
        self._place = LoaderPlace(self._origin, is_resumed=True)
        self._begun_count += 1  # running iterations no longer change the state
        self._load_count += 1
        if self._other_processes is not None:
            self._other_processes.note_loaded(self)

    def state_after(self, batch_count: int) -> dict[str, Any]:
        """Return the state after a training loop has received `batch_count` batches.

        For loops behind worker processes, a queue or copies to a device, which read ahead of the
        loop; `state_dict` returns the state of the reader.

        Args:
            batch_count: counted since the loader was created, or since `load_state_dict`, over
                complete iterations.
        """
        count = whole_number("batch_count", batch_count, 0)
        return self._schedule.state(self._schedule.after(self._origin, count))

    def spec(self) -> dict[str, EntrySpec]:
        """Return the kind, dtype and shape of each entry of a batch.

        The first axis is the batch size if all batches have it, else None. With maps, the first
        batch is made, and other axes are as in that batch.
        """
        functions = self._maker.functions
        batch = self._without_rows()
        if functions.map_examples is not None or functions.map_batches is not None:
            with self._copy(_thread_count=0) as copy:
                batch = next((made for made in copy if len(next(iter(made.values())))), batch)
        may_differ = (
            self._schedule.share.last_batch == "keep" or self._skip_errors or functions.map_batches
        )
        is_filtered = functions.filter is not None
        batch_size = None if may_differ or is_filtered else self.batch_size
        return specs_of(batch, batch_size, self._maker.ragged_texts)

    def _without_rows(self) -> dict[str, Any]:
        nothing = np.empty(0, np.int64)
        return self._maker.make(Step(0, nothing, nothing, EpochProgress())).batch

    def _copy(self, **changed: Any) -> Loader:
        """Return a copy with some attributes changed and without iterations."""
        copy = Loader.__new__(Loader)
        copy.__setstate__({**self.__getstate__(), "_skipped": dict(self._skipped), **changed})
        return copy

    def for_worker(
        self, worker: int, worker_count: int, *, iteration: int = 0, skipped_count: int = 0
    ) -> Loader:
        """Return a copy for one of several processes that feed this rank in turn.

        Together they return the batches of this loader's next iterations. A default number of
        threads is divided among them.

        Args:
            worker, worker_count: the worker and the number of workers.
            iteration: the next iteration to begin with, counted from 0.
            skipped_count: how many of the worker's batches to skip at the beginning.

        Raises:
            OptionError: this loader is already for one of several workers.
        """
        share, thread_count = self._schedule.share, self._thread_count
        if share.worker_count > 1:
            raise OptionError(
                f"this loader is already for worker {share.worker} of {share.worker_count}",
                option="worker_count",
                value=share.worker_count,
                remedy=f"Create it without {option('worker')} and {option('worker_count')}, or do "
                "not use worker processes.",
            )
        if self._has_default_threads:
            thread_count = max(1, thread_count // worker_count)
        begin = self._schedule.later(self._place.next_progress, iteration)
        return self._copy(
            _schedule=self._schedule.for_worker(worker, worker_count),
            _whole_count=self._whole_count if worker_count == 1 else None,
            _thread_count=thread_count,
            _origin=begin,
            _place=LoaderPlace(begin, is_resumed=True, skipped_count=skipped_count),
        )

    # -- for adapters ------------------------------------------------------------------------------

    @property
    def _shorter_batches(self) -> str | None:
        """Why some batches, on any rank, may have fewer rows than `batch_size`, and what to do.

        None if all batches have as many; changes by `map_batches` are not considered.
        """
        share, functions = self._schedule.share, self._maker.functions
        if functions.filter is not None:
            return "filter removes rows; select records before packing, or with a slice"
        if self._skip_errors:
            return "skip_errors removes rows; leave it out"
        read = self._place.progress.read if self._place.is_resumed else 0
        is_even = share.count % share.step_size == 0 == (share.count - read) % share.step_size
        if share.last_batch == "keep" and not is_even:
            return (
                f"the last step of an epoch has {share.count % share.step_size or 'fewer'} of the "
                f"{share.step_size} records of a step; pass last_batch='drop' or last_batch='pad'"
            )
        return None

    @property
    def _is_resuming(self) -> bool:
        """Whether the next iteration is the rest of one that a loaded state interrupted."""
        progress = self._place.progress
        is_at_begin = progress == EpochProgress(progress.begun, begun=progress.begun)
        return self._place.is_resumed and not is_at_begin

    # -- for its iterations ------------------------------------------------------------------------

    def _begin(self, iteration: Iteration) -> JobRunner[BatchResult]:
        """Begin an iteration; return what makes its batches."""
        if is_calling(self._maker):
            raise OptionError(
                "a filter or map iterates over the loader that calls it",
                remedy="Create another loader for that.",
            )
        self._check_read_here()
        iteration.before = self._place
        progress = self._place.next_progress
        self._place = LoaderPlace(self._place.progress)
        self._begun_count += 1
        iteration.number = self._begun_count
        iteration.after = self._schedule.end(progress)
        steps = self._schedule.steps(progress, iteration.before.skipped_count)
        ahead = None if self._begin_reading_ahead is None else self._begin_reading_ahead(steps)
        iteration.tally = self._tally = Tally()
        iteration.watch = KeyWatch(self._maker.watched, self._whole_count)
        return JobRunner(
            self._jobs(((step, None) for step in steps) if ahead is None else ahead),
            threads=self._thread_count,
            prefetch=self._prefetch,
            upstream=ahead,
        )

    def _check_read_here(self) -> None:
        if self._other_processes is not None:
            self._other_processes.check_read_here(self)

    def _undo(self, iteration: Iteration) -> None:
        """Restore the state from before an iteration, if it is the latest."""
        if iteration.number == self._begun_count:
            self._place = iteration.before

    def _end(self, iteration: Iteration) -> None:
        """Set the progress after an iteration: a worker may not have had its last batch."""
        if iteration.after is not None and iteration.number == self._begun_count:
            self._place = LoaderPlace(iteration.after)

    def _deliver(self, iteration: Iteration, result: BatchResult) -> dict[str, Any]:
        """Return the batch, unless too many records are skipped."""
        for key, fault in result.faults:
            if len(self._skipped) == self._skip_errors and key not in self._skipped:
                raise fault
            self._skipped.setdefault(key, fault)
        iteration.watch.add(result)
        if iteration.number == self._begun_count:
            self._place = LoaderPlace(result.after)
        return result.batch

    def _jobs(self, fetched: FetchedSteps) -> Iterator[BatchJob]:
        memory = RecycledMemory(self._prefetch + 2)  # as many batches as a loop has at once
        for step, records in fetched:
            yield self._maker.job(step, memory.empty, records)


class OtherProcesses(Protocol):
    """The worker processes that read a loader for its main process, as an adapter sees them."""

    def check_read_here(self, loader: Loader) -> None:
        """Raise OptionError if they have read, so that the loader does not know its state."""

    def note_loaded(self, loader: Loader) -> None:
        """Note that the loader has loaded a state."""


class Iteration:
    """One pass over the batches of a loader: an iterator that can be closed.

    The loader sets the attributes when its first batch is requested.

    number: among the iterations of the loader.
    before, after: the place of the loader before it, and its progress at the end.
    tally: counts and times.
    watch: looks for keys that no record has.
    """

    number: int
    before: LoaderPlace
    after: EpochProgress | None
    tally: Tally
    watch: KeyWatch

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._runner: JobRunner[BatchResult] | None = None
        self._has_ended = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        asked_at = time.perf_counter()
        if self._has_ended:
            raise StopIteration
        if self._runner is None:
            self._runner = self._loader._begin(self)  # noqa: SLF001
        self.tally.request(asked_at)
        try:
            made = next(self._runner)
            batch = self._loader._deliver(self, made)  # noqa: SLF001
        except StopIteration:
            was_closed = self._has_ended  # by another thread
            self.close()
            if not was_closed:
                self._loader._end(self)  # noqa: SLF001
                self.watch.end_epoch()
            raise
        except BaseException as error:
            self.close()
            if isinstance(error, DataError):
                error.advise_to_show()
            raise
        self.tally.deliver(
            asked_at, time.perf_counter(), made.cost, len(made.faults), self._runner.idle_seconds
        )
        return batch

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
        if self._runner is not None:
            self._loader._undo(self)  # noqa: SLF001


def _thread_count(threads: int | None) -> int:
    return processor_count() if threads is None else whole_number("threads", threads, 0)
