"""Puts a loader's batches on devices ahead of the loop.

Uses the loop's own thread: JAX copies while the device computes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from recordsmith.errors import OptionError
from recordsmith.jax.conversion import convert
from recordsmith.jax.shardings import RowSplit, Shardings, splits_of, this_rank
from recordsmith.loading import Loader
from recordsmith.loading.adapters import check_loader, check_rank
from recordsmith.loading.number_options import whole_number

Batch: TypeAlias = dict[str, Any]


def batches(
    loader: Loader, sharding: Shardings = None, *, prefetch: int = 2, any_rank: bool = False
) -> JaxBatches:
    """Return the batches of a loader as JAX arrays, put on devices ahead of the loop.

        for batch in batches(loader, sharding): ...

    Args:
        sharding: how rows are divided among devices: one for all numeric entries, or a dict of one
            for each sharded entry. A sharding across processes makes one array of their batches.
            None for the default device.
        prefetch: how many batches are put on devices ahead; they take memory there.
        any_rank: allow a loader with another rank than this process, such as when several ranks
            read the same records.

    Raises:
        OptionError: the loader has the rank of another process, or batches cannot be divided
            among the devices.
    """
    check_loader(loader)
    ahead_count = whole_number("prefetch", prefetch, 0)
    splits = splits_of(sharding)
    if not any_rank:
        how = "Loader(..., **this_rank(sharding))" if splits else "Loader(..., **this_rank())"
        check_rank(loader, this_rank(sharding), f"{how}, after jax.distributed.initialize()")
    made = JaxBatches(loader, sharding, splits, ahead_count)
    made.check_rows()
    return made


class JaxBatches:
    """The batches of a loader as JAX arrays. Each iteration is one of the loader.

    `len`, `state_dict` and `load_state_dict` refer to the last batch returned, not to those
    prefetched.
    """

    def __init__(
        self, loader: Loader, sharding: Shardings, splits: list[RowSplit], prefetch: int
    ) -> None:
        self._loader = loader
        self._sharding = sharding
        self._splits = splits
        self._prefetch = prefetch
        self._place: _Place | None = None

    def __repr__(self) -> str:
        return f"recordsmith.jax.batches({self._loader!r})"

    def __iter__(self) -> JaxIteration:
        """Return an iteration. It begins when its first batch is requested."""
        return JaxIteration(self, self._sharding, self._prefetch)

    def __len__(self) -> int:
        """Return the number of batches of the next iteration.

        Raises:
            TypeError: the iteration is endless.
        """
        return len(self._loader)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch returned, as `Loader.state_dict`."""
        place, state = self._place, self._loader.state_dict()
        return place.of_loop if place is not None and place.of_loader == state else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state, as `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)
        self._place = None

    # -- for its iterations ------------------------------------------------------------------------

    def begin(self) -> Iterator[Batch]:
        """Begin an iteration of the loader."""
        of_loop, of_loader = self.state_dict(), self._loader.state_dict()
        if of_loop != of_loader:
            # The last iteration was interrupted, and prefetching is ahead of the loop, perhaps in
            # another epoch: begin the epoch after the loop's.
            epoch = of_loop["epoch"] + (of_loop["read"] > 0)
            self.load_state_dict({**of_loop, "epoch": epoch, "read": 0, "begun": epoch})
        self.check_rows()
        self.advance_to(self._loader.state_dict())
        return iter(self._loader)

    def place(self) -> dict[str, Any]:
        """Return the state of the loader."""
        return self._loader.state_dict()

    def advance_to(self, of_loop: dict[str, Any]) -> None:
        """Set the state of the loop."""
        self._place = _Place(of_loop, self._loader.state_dict())

    def check_rows(self) -> None:
        """Check that the devices can share the rows of all batches.

        Raises:
            OptionError: they cannot.
        """
        loader = self._loader
        for split in self._splits:
            if loader.batch_size % split.part_count:
                raise OptionError(
                    f"{split.part_count} devices of this process cannot share the "
                    f"{loader.batch_size} rows of a batch",
                    option="batch_size",
                    value=loader.batch_size,
                    expected=f"a multiple of {split.part_count}",
                )
            reason = loader._shorter_batches  # noqa: SLF001 - for adapters
            if reason is not None and (split.part_count > 1 or split.world_size > 1):
                raise OptionError(
                    f"{split.description}, so all batches need {loader.batch_size} rows, but "
                    f"{reason}",
                    option="sharding",
                )


class _Place(NamedTuple):
    """The state of the loop, and that of the loader at the time."""

    of_loop: dict[str, Any]
    of_loader: dict[str, Any]


class _Ahead(NamedTuple):
    """A prefetched batch, and the state of the loader after it."""

    batch: Batch
    place: dict[str, Any]


class JaxIteration:
    """One pass over the batches: an iterator that can be closed."""

    def __init__(self, batches: JaxBatches, sharding: Shardings, prefetch: int) -> None:
        self._batches = batches
        self._sharding = sharding
        self._prefetch = prefetch
        self._source: Any = None
        self._ahead: deque[_Ahead] = deque()
        self._asked_count = 0
        self._end: Exception | None = None  # raised after the prefetched batches
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
                "this iteration belongs to another process",
                remedy="Begin one in this process with iter(). Spawn the process, because JAX does "
                "not support forks.",
            )
        self._asked_count += 1
        # the first batch does not wait for others, and the loop runs while later ones are made
        wanted = min(self._asked_count, self._prefetch + 1)
        while len(self._ahead) < wanted and self._end is None:
            self._put()
        if not self._ahead:
            end = self._end
            self.close()
            assert end is not None
            if isinstance(end, StopIteration):
                self._batches.advance_to(self._batches.place())
            raise end
        batch, place = self._ahead.popleft()
        self._batches.advance_to(place)
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
        """Stop its threads. It returns no more batches."""
        self._is_closed = True
        self._ahead.clear()
        self._end = None  # an error keeps its frames alive
        if self._source is not None:
            self._source.close()
