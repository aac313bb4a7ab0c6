"""Loads the batches of a dataset for training.

Checks the options: a `LoaderSession` knows where the loader is, a `Production` how to make batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from msgspec.structs import replace

from recordsmith.dataset import Dataset, records_of
from recordsmith.image import jpeg_decoder
from recordsmith.loading.batches.batch_maker import make_batch_maker
from recordsmith.loading.batches.production import Production
from recordsmith.loading.batches.user_functions import Filter, Maps, UserFunctions
from recordsmith.loading.entry_spec import EntrySpec, specs_of
from recordsmith.loading.features.declaration import Features
from recordsmith.loading.loader_stats import LoaderStats
from recordsmith.loading.order.inputs import LoaderInput, as_input
from recordsmith.loading.order.rank_share import LastBatch, RankShare
from recordsmith.loading.order.schedule import EpochProgress, LoopState, Schedule, Step
from recordsmith.loading.order.shuffle import BlockShuffle
from recordsmith.loading.session import Iteration, LoaderSession
from recordsmith.support.errors import DataError, OptionError, option
from recordsmith.support.explaining import explain_unknown
from recordsmith.support.number_options import count_number, seed_number, whole_number
from recordsmith.support.work import processor_count

if TYPE_CHECKING:
    from recordsmith.loading.order.buckets import BucketBySize

_NAMES_SHOWN = 8
_EXPLAINED = {
    "batch": "Pass batch_size.",
    "batch_sampler": "Pass buckets=rs.BucketBySize(), shuffle=True, or for some classes in each "
    "batch rs.ByClass(dataset, …).",
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
            dataset: a Dataset, a Mix of several, a Weighted selection of one, batches ByClass,
                Episodes, or Packed rows of tokens.
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
        seed = seed_number(seed)
        prefetch = whole_number("prefetch", prefetch, 0)
        skip_errors = whole_number("skip_errors", skip_errors, 0)
        self._has_default_threads = threads is None
        thread_count = processor_count() if threads is None else whole_number("threads", threads, 0)
        functions = UserFunctions.checked(filter, map_examples, map_batches)
        source = as_input(dataset)
        maker = make_batch_maker(
            source, features, seed=seed, functions=functions, may_skip=skip_errors > 0
        )
        has_batches = source.batch_size is not None
        for name, value, own in (
            ("batch_size", count_number("batch_size", batch_size), source.batch_size),
            ("buckets", buckets, None),
        ):
            if has_batches and value != own:
                expected = f"{own}, as a {type(source).__name__} has batches of its own"
                raise OptionError(option=name, value=value, expected=expected)
        share = RankShare(
            len(source), batch_size, rank, world_size, last_batch, worker, worker_count, has_batches
        )
        order = source.order(shuffle=shuffle, seed=seed)
        if buckets is not None:
            from recordsmith.loading.order.buckets import BucketOrder, check_buckets

            check_buckets(buckets, source.record_count)
            order = BucketOrder(
                order,
                buckets,
                step_size=share.step_size,
                record_sizes=maker.records.record_sizes,
                is_shuffled=shuffle is not False,
                seed=seed,
            )
        chosen = {
            "selection": source.describe(),
            "normalisation": maker.normalisation or None,
            "dataset": source.digest(),
        }
        described = {name: value for name, value in chosen.items() if value is not None}
        decoder = jpeg_decoder() if maker.decodes_images else None
        schedule = Schedule(order, share, epochs, described, decoder)
        missing_rows = "skip_errors removes rows; leave it out" if skip_errors else ""
        if functions.filter is not None:
            missing_rows = "filter removes rows; select records before packing, or with a slice"
        self.session = LoaderSession(schedule, missing_rows=missing_rows)
        reads_all = source.has_each_once and (share.world_size, share.worker_count) == (1, 1)
        reads_all &= all(records_of(one).has_all for one in source.datasets)
        shards = (shard for one in source.datasets for shard in records_of(one).all_shards)
        self._production = Production(
            maker,
            thread_count,
            prefetch,
            reads_ahead=any(shard.is_remote for shard in shards),
            whole_count=source.record_count if reads_all else None,
            skip_errors=skip_errors,
            skipped={},
        )

    def __repr__(self) -> str:
        share, names = self.session.schedule.share, self._production.maker.names
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
        return self.session.iterate(self._production)

    def __len__(self) -> int:
        """Return the number of batches of the next iteration."""
        return len(self.session)

    def __getitem__(self, index: object) -> NoReturn:
        """Raise OptionError: a loader has no items, which torch's DataLoader would ask for."""
        raise OptionError(
            "a Loader makes batches in order and cannot be indexed",
            remedy="Iterate over it. For torch, use DataLoader(recordsmith.torch.batches(loader), "
            "batch_size=None); for single examples use Examples, or recordsmith.torch.examples.",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all iterations and their threads."""
        self.session.close()

    @property
    def batch_size(self) -> int:
        """How many examples a batch has, if none is filtered or skipped."""
        return self.session.schedule.share.batch_size

    @property
    def rank(self) -> int:
        """The rank of this process, counted from 0."""
        return self.session.schedule.share.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.session.schedule.share.world_size

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0."""
        return self.session.place.progress.epoch

    @property
    def skipped(self) -> list[DataError]:
        """The errors of the records that were skipped, each once."""
        return list(self._production.skipped.values())

    def stats(self) -> LoaderStats:
        """Return counts and times of the current or last iteration, and its bottleneck."""
        known = LoaderStats(
            thread_count=self._production.thread_count,
            processor_count=processor_count(),
            has_pixels=self._production.maker.has_pixels,
            is_remote=self._production.reads_ahead,
        )
        return self.session.tally.stats(known)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch returned: a small, JSON-able dict.

        With several iterations at once, the latest counts. After the last batch of an iteration,
        the state is the beginning of the next one.

        Raises:
            OptionError: worker processes of a DataLoader read the loader; use `state_after`.
        """
        return self.session.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state: the next iteration returns the batches that would have come next.

        The number of ranks and the batch size may differ; no record of the epoch is repeated or
        lost.

        Raises:
            OptionError: the state is invalid, or of another dataset or order.
        """
        self.session.load(state)

    def state_after(self, batch_count: int) -> dict[str, Any]:
        """Return the state after a training loop has received `batch_count` batches.

        For loops behind worker processes, a queue or copies to a device, which read ahead of the
        loop; `state_dict` returns the state of the reader.

        Args:
            batch_count: counted since the loader was created, or since `load_state_dict`, over
                complete iterations.
        """
        return self.session.state_after(whole_number("batch_count", batch_count, 0))

    def spec(self) -> dict[str, EntrySpec]:
        """Return the kind, dtype and shape of each entry of a batch.

        The first axis is the batch size if all batches have it, else None. With maps, the first
        batch is made, and other axes are as in that batch.
        """
        maker, functions = self._production.maker, self._production.maker.functions
        nothing = np.empty(0, np.int64)
        batch = maker.make(Step(0, nothing, nothing, EpochProgress())).batch
        if functions.map_examples is not None or functions.map_batches is not None:
            session = self.session.at(self.session.place)
            with self._copy(session, thread_count=0) as loader:
                batch = next((made for made in loader if len(next(iter(made.values())))), batch)
        may_differ = (
            self.session.schedule.share.last_batch == "keep"
            or self._production.skip_errors
            or functions.map_batches
        )
        is_filtered = functions.filter is not None
        batch_size = None if may_differ or is_filtered else self.batch_size
        return specs_of(batch, batch_size, maker.ragged_texts)

    def _copy(self, session: LoaderSession, **changed: Any) -> Loader:
        """Return a copy with this session, and some of its production changed."""
        skipped = dict(self._production.skipped)
        production = replace(self._production, skipped=skipped, **changed)
        loader = object.__new__(type(self))
        vars(loader).update(vars(self), session=session, _production=production)
        return loader

    def __copy__(self) -> Loader:
        return self._copy(self.session.at(self.session.place))

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
        schedule, thread_count = self.session.schedule, self._production.thread_count
        share = schedule.share
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
        begin = schedule.later(self.session.place.next_progress, iteration)
        place = LoopState(begin, is_resumed=True, skipped_count=skipped_count)
        return self._copy(
            self.session.at(place, schedule.for_worker(worker, worker_count)),
            thread_count=thread_count,
            whole_count=self._production.whole_count if worker_count == 1 else None,
        )
