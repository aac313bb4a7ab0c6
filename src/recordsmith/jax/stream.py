"""Puts a loader's batches on devices ahead of the loop.

Uses the loop's own thread: JAX copies while the device computes.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Generator, Mapping
from typing import Any, TypeAlias

from recordsmith.jax.conversion import convert
from recordsmith.jax.shardings import RowSplit, Shardings, splits_of, this_rank
from recordsmith.loading import EpochProgress, Loader, check_loader
from recordsmith.support.errors import OptionError
from recordsmith.support.number_options import whole_number

Batch: TypeAlias = dict[str, Any]


def batches(
    loader: Loader, sharding: Shardings = None, *, prefetch: int = 2, any_rank: bool = False
) -> JaxBatches:
    """Return the batches of a loader as JAX arrays, put on devices ahead of the loop.

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

    Example:
        for batch in recordsmith.jax.batches(loader):
            print(batch["image"].sharding)
    """
    ahead_count = whole_number("prefetch", prefetch, 0)
    splits = splits_of(sharding)
    how = "Loader(..., **this_rank(sharding))" if splits else "Loader(..., **this_rank())"
    rank = None if any_rank else this_rank(sharding)
    check_loader(loader, rank, f"{how}, after jax.distributed.initialize()")
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

    def __repr__(self) -> str:
        return f"recordsmith.jax.batches({self._loader!r})"

    def __iter__(self) -> Generator[Batch]:
        """Return an iteration, which can be closed. It begins when a batch is requested."""
        self.check_rows()
        iteration = iter(self._loader)
        source = iteration.ahead()
        process = os.getpid()
        ahead: deque[tuple[Batch, EpochProgress]] = deque()
        end: Exception | None = None  # raised after the prefetched batches
        try:
            # the first batch does not wait for others, and the loop runs while later ones are made
            for count in itertools.count(1):
                if os.getpid() != process:
                    raise OptionError(
                        "this iteration belongs to another process",
                        remedy="Begin one in this process with iter(). Spawn the process, because "
                        "JAX does not support forks.",
                    )
                while len(ahead) < min(count, self._prefetch + 1) and end is None:
                    try:
                        batch, after = next(source)
                        ahead.append((convert(batch, self._sharding), after))
                    except Exception as error:  # noqa: BLE001 - raised after those before it
                        end = error
                if not ahead:
                    break
                batch, after = ahead.popleft()
                iteration.deliver(after)
                yield batch
        finally:
            if os.getpid() == process:
                iteration.close()
        if not isinstance(end, StopIteration):
            assert end is not None
            raise end
        iteration.deliver(iteration.end)

    def __len__(self) -> int:
        """Return the number of batches of the next iteration."""
        return len(self._loader)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch returned, as `Loader.state_dict`."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state, as `Loader.load_state_dict`."""
        self._loader.load_state_dict(state)

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
            reason = loader.session.shorter_batches
            if reason and (split.part_count > 1 or split.world_size > 1):
                raise OptionError(
                    f"{split.description}, so all batches need {loader.batch_size} rows, but "
                    f"{reason}",
                    option="sharding",
                )
