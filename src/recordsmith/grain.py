"""A dataset as a source for grain, and a loader as a grain dataset.

    grain.MapDataset.source(examples(dataset, features)).shuffle(seed=0).batch(32)
    batches(loader).mp_prefetch(grain.MultiprocessingOptions(num_workers=2))

With `examples`, grain chooses the order and reads at positions. With `batches`, the loader's order,
split and resume are used, and grain's checkpoints contain its state.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TypeAlias

from recordsmith.dataset import Dataset
from recordsmith.format.example import BytesArray, RaggedArray
from recordsmith.loading import Examples, Features, Loader, Maps, RaggedParts, Rank, check_loader
from recordsmith.support.errors import OptionError, needs_extra, option
from recordsmith.support.number_options import is_same

with needs_extra("grain"):
    import grain

Batch: TypeAlias = dict[str, Any]


def examples(
    dataset: Dataset,
    features: Features | None = None,
    *,
    seed: int = 0,
    map_examples: Maps | None = None,
) -> GrainSource:
    """Return a source of examples for `grain.MapDataset.source` and `grain.DataLoader`.

    Args:
        dataset: an uncompressed dataset.
        features: as in `Loader`.
        seed, map_examples: as in `recordsmith.Examples`. Random values of an example are the same
            in all epochs, as grain requires; otherwise use grain's `random_map`, or `batches`.

    Raises:
        OptionError: options conflict with each other or with the dataset, or it is compressed.

    Example:
        examples = recordsmith.grain.examples(dataset, {"image": rs.Image(size=32)})
        print(grain.MapDataset.source(examples).shuffle(seed=1).batch(8)[0]["image"].shape)
    """
    return GrainSource(Examples(dataset, features, seed=seed, map_examples=map_examples))


def batches(loader: Loader, *, any_rank: bool = False) -> GrainBatches:
    """Return the batches of a loader as a `grain.IterDataset`.

    Each iteration begins at the current state of the loader, without changing it, and has its
    `epochs`. Iterators save and restore their place with `get_state` and `set_state`. Under
    `mp_prefetch` the processes read the batches in turn, in the same order.

    Args:
        any_rank: allow a loader with another rank than this process, such as when several ranks
            read the same records.

    Raises:
        OptionError: the loader has the rank of another process, or is for one of several workers.

    Example:
        for batch in recordsmith.grain.batches(loader):
            print(batch["image"].shape)  # (8, 32, 32, 3)
    """
    how = "Loader(..., **this_rank()), after jax.distributed.initialize()"
    check_loader(loader, None if any_rank else this_rank(), how)
    return GrainBatches(loader.for_worker(0, 1))


def convert(batch: Mapping[str, Any]) -> Batch:
    """Convert a batch to plain ndarrays, which grain can send between processes.

    Byte strings become an array of bytes objects, ragged entries `RaggedParts`; others stay.

    Example:
        for batch in map(recordsmith.grain.convert, loader):
            print(batch["label"].shape)  # (8,)
    """
    return {name: _convert(entry) for name, entry in batch.items()}


def this_rank() -> Rank:
    """Return rank and world_size of this process: `Loader(..., **this_rank())`.

    Uses JAX if `jax.distributed` is initialized, else rank 0 of 1.

    Example:
        loader = rs.Loader(dataset, batch_size=8, shuffle=True, **recordsmith.grain.this_rank())
    """
    jax = sys.modules.get("jax")  # if it is not imported, it is not initialized
    if jax is None or not _is_distributed(jax):
        return Rank(rank=0, world_size=1)
    return Rank(rank=jax.process_index(), world_size=jax.process_count())


def _is_distributed(jax: Any) -> bool:
    """Whether JAX is distributed; does not list devices, which would occupy them."""
    ask = getattr(jax.distributed, "is_initialized", None)
    return bool(jax.process_count() > 1 if ask is None else ask())


class GrainSource:
    """A `grain.sources.RandomAccessDataSource`. Created by `examples`.

    Safe to read from several threads; can be pickled.
    """

    def __init__(self, examples: Examples) -> None:
        self._examples = examples

    def __len__(self) -> int:
        return len(self._examples)

    def __getitem__(self, index: int) -> Batch:
        """Return the example at a position.

        Raises:
            IndexError: the position is out of range.
            CorruptDataError: the record is damaged, or does not match the features.
        """
        return convert(self._examples[index])

    def __repr__(self) -> str:
        """Return a description that grain's DataLoader compares with that of a checkpoint."""
        return repr(self._examples)


class GrainBatches(grain.IterDataset):
    """The batches of a loader. Created by `batches`."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader
        self._worker, self._worker_count = 0, 1

    def __str__(self) -> str:
        return f"recordsmith.grain.batches({self._loader!r})"

    def __iter__(self) -> GrainIteration:
        return GrainIteration(self._loader, self._worker, self._worker_count)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Select batches `start`, `start + step`, and so on; grain calls it in each process."""
        if sequential_slice:
            raise OptionError(
                "grain's processes read the batches of a loader in turn",
                option="sequential_slice",
                value=sequential_slice,
                remedy=f"Leave {option('sequential_slice')} out.",
            )
        self._worker, self._worker_count = sl.start, sl.step


class GrainIteration(grain.DatasetIterator):
    """One pass over the batches: an iterator of grain."""

    def __init__(self, loader: Loader, worker: int, worker_count: int) -> None:
        super().__init__()
        self._loader = loader.for_worker(0, 1)  # a copy, because its state is changed
        self._own = self._loader  # that of this worker
        self._is_closed = False
        self._worker, self._worker_count = worker, worker_count
        self._begin(self._loader.state_dict(), 0)

    def _begin(self, state: Mapping[str, Any], taken_count: int, has_ended: bool = False) -> None:
        """Resume after some batches of this worker, counted from a place."""
        self._loader.load_state_dict(state)
        self._own.close()
        self._place, self._taken_count, self._has_ended = state, taken_count, has_ended
        self._own = self._loader.for_worker(
            self._worker, self._worker_count, skipped_count=taken_count
        )
        self._running = iter(self._own)

    def __str__(self) -> str:
        return f"recordsmith.grain.batches({self._loader!r})"

    def __next__(self) -> Batch:
        if self._is_closed:
            raise OptionError("this iterator is closed", remedy="Begin another one with iter().")
        if self._has_ended:
            raise StopIteration
        batch = next(self._running)
        self._taken_count += 1
        return convert(batch)

    def get_state(self) -> dict[str, Any]:
        """Return the state: a small, JSON-able dict.

        Without grain's processes it is valid for any number of ranks and batch size; with them, it
        holds how many batches each has read.
        """
        state = {"worker": self._worker, "worker_count": self._worker_count}
        if self._worker_count > 1:
            return {"loader": self._place, "taken": self._taken_count, "has_ended": False, **state}
        place = self._own.state_dict()
        has_ended = self._has_ended or place["begun"] != self._place["begun"]
        return {"loader": place, "taken": 0, "has_ended": has_ended, **state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state.

        Raises:
            OptionError: the state is invalid, of another loader, or of another number of
                processes.
        """
        names = {"loader", "taken", "has_ended", "worker", "worker_count"}
        if not isinstance(state, Mapping) or set(state) != names:
            raise OptionError(option="state", value=state, expected="a state from get_state()")
        own, found = (self._worker, self._worker_count), (state["worker"], state["worker_count"])
        if state["taken"] and not is_same(found, own):
            raise OptionError(
                f"the state is from process {found[0]} of {found[1]}, but this is process {own[0]} "
                f"of {own[1]}",
                option="state",
                value=found,
                remedy="Use the same number of processes.",
            )
        taken_count, has_ended = state["taken"], state["has_ended"]
        if type(taken_count) is not int or taken_count < 0 or not isinstance(has_ended, bool):
            raise OptionError(
                f"the state has taken {taken_count!r:.40} and has_ended {has_ended!r:.40}",
                option="state",
                value=taken_count,
                expected="a number of batches, and True or False",
            )
        self._begin(state["loader"], taken_count, has_ended)

    def close(self) -> None:
        """Stop its threads. It returns no more batches."""
        self._is_closed = True
        self._own.close()


def _convert(entry: Any) -> Any:
    if isinstance(entry, BytesArray):
        return entry.to_numpy()
    if isinstance(entry, RaggedArray):
        return RaggedParts(_convert(entry.values), entry.row_splits)
    return entry
