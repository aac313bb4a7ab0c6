"""A loader's batches on their way to the devices, ahead of the loop.

They are put there in the loop's own thread: JAX copies while the device computes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from recordsmith.errors import OptionError
from recordsmith.jax.conversion import convert
from recordsmith.jax.shardings import Shardings, Split, splits_of, this_rank
from recordsmith.loading import Loader
from recordsmith.loading.options import whole_number
from recordsmith.loading.suitable import check_loader, check_rank

Batch: TypeAlias = dict[str, Any]


def batches(
    loader: Loader, sharding: Shardings = None, *, prefetch: int = 2, any_rank: bool = False
) -> Batches:
    """The batches of a loader, converted, on their way to the devices ahead of the loop.

    Args:
        sharding: how the rows are spread over devices: one for all entries of numbers, or a dict
            with one for each entry that is spread. Where it reaches over several processes, their
            batches become one array. None for the default device.
        prefetch: how many batches are put on devices ahead of the one that is asked for; they
            take memory there.
        any_rank: the loader may have another rank and world_size than this process: for processes
            that shall read the same.

    Raises:
        OptionError: the loader reads the records of another rank; batches cannot be divided by
            the devices; the loader uses memory again.
    """
    check_loader(
        loader,
        reuse="a JAX array on the CPU is the memory of the batch itself, and another device may "
        "still copy from it",
    )
    ahead_count = whole_number("prefetch", prefetch, 0)
    splits = splits_of(sharding)
    if not any_rank:
        how = "Loader(..., **this_rank(sharding))" if splits else "Loader(..., **this_rank())"
        check_rank(loader, this_rank(sharding), f"{how}, after jax.distributed.initialize()")
    made = Batches(loader, sharding, splits, ahead_count)
    made.check_rows()
    return made


class Batches:
    """The batches of a loader as JAX arrays. Each iteration is one of the loader.

    `len`, `state_dict` and `load_state_dict` speak of the batch that was handed out last, not of
    those that are put ahead of it.
    """

    def __init__(
        self, loader: Loader, sharding: Shardings, splits: list[Split], prefetch: int
    ) -> None:
        self._loader = loader
        self._sharding = sharding
        self._splits = splits
        self._prefetch = prefetch
        self._place: _Place | None = None

    def __repr__(self) -> str:
        return f"recordsmith.jax.batches({self._loader!r})"

    def __iter__(self) -> Iteration:
        """An iteration, which begins when its first batch is asked for."""
        return Iteration(self, self._sharding, self._prefetch)

    def __len__(self) -> int:
        """How many batches the next iteration gives.

        Raises:
            TypeError: it goes on for ever.
        """
        return len(self._loader)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, as `Loader.state_dict` tells it."""
        place, state = self._place, self._loader.state_dict()
        return place.of_loop if place is not None and place.of_loader == state else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another loop was, as `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)
        self._place = None

    # -- for its iterations ------------------------------------------------------------------------

    def begin(self) -> Iterator[Batch]:
        """An iteration of the loader."""
        of_loop, of_loader = self.state_dict(), self._loader.state_dict()
        if of_loop != of_loader:
            # The last iteration was broken off. The loader is further than the loop was, perhaps in
            # another epoch; the next one is that after the loop's.
            epoch = of_loop["epoch"] + (of_loop["read"] > 0)
            self.load_state_dict({**of_loop, "epoch": epoch, "read": 0, "begun": epoch})
        self.check_rows()
        self.tell(self._loader.state_dict())
        return iter(self._loader)

    def place(self) -> dict[str, Any]:
        """Where the loader is."""
        return self._loader.state_dict()

    def tell(self, of_loop: dict[str, Any]) -> None:
        """The loop has come to where the loader was then."""
        self._place = _Place(of_loop, self._loader.state_dict())

    def check_rows(self) -> None:
        """Whether the devices can share the rows of all batches.

        Raises:
            OptionError: they cannot.
        """
        loader = self._loader
        for split in self._splits:
            if loader.batch_size % split.part_count:
                raise OptionError(
                    f"{split.part_count} devices of this process share the rows of a batch, of "
                    f"which there are {loader.batch_size}: say a batch_size that is a multiple of "
                    f"{split.part_count}"
                )
            reason = loader.shorter_batches
            if reason is not None and (split.part_count > 1 or split.world_size > 1):
                raise OptionError(
                    f"{split.words}, so all batches need {loader.batch_size} rows, but {reason}"
                )


class _Place(NamedTuple):
    """Where the loop is, told when the loader was where it is now."""

    of_loop: dict[str, Any]
    of_loader: dict[str, Any]


class _Ahead(NamedTuple):
    """A batch that is on its way to the devices, and where the loader was after it."""

    batch: Batch
    place: dict[str, Any]


class Iteration:
    """One pass over the batches: an iterator that can be closed."""

    def __init__(self, batches: Batches, sharding: Shardings, prefetch: int) -> None:
        self._batches = batches
        self._sharding = sharding
        self._prefetch = prefetch
        self._source: Any = None
        self._ahead: deque[_Ahead] = deque()
        self._asked_count = 0
        self._end: Exception | None = None  # what comes after the batches that are put ahead
        self._is_closed = False

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        if self._is_closed:
            raise StopIteration
        if self._source is None:
            self._source, self._process = self._batches.begin(), os.getpid()
        if os.getpid() != self._process:
            raise OptionError(
                "this iteration was begun in another process, which goes on with it: begin one of "
                "your own with iter(), in a process that was spawned, as JAX does not bear forks"
            )
        self._asked_count += 1
        # the first batch waits for no other, and the loop runs while those ahead of it are made
        wanted = min(self._asked_count, self._prefetch + 1)
        while len(self._ahead) < wanted and self._end is None:
            self._put()
        if not self._ahead:
            end = self._end
            self.close()
            assert end is not None
            if isinstance(end, StopIteration):
                self._batches.tell(self._batches.place())
            raise end
        batch, place = self._ahead.popleft()
        self._batches.tell(place)
        return batch

    def _put(self) -> None:
        """Send one more batch to the devices."""
        try:
            batch = convert(next(self._source), self._sharding)
        except Exception as error:  # noqa: BLE001 - it is raised after the batches before it
            self._end = error
        else:
            self._ahead.append(_Ahead(batch, self._batches.place()))

    def close(self) -> None:
        """End it, and the threads that work for it. There are no more batches afterwards."""
        self._is_closed = True
        self._ahead.clear()
        self._end = None  # an error keeps what it was raised in
        if self._source is not None:
            self._source.close()
