"""Which places of an epoch belong to which step of which rank?

All ranks together take `batch_size * world_size` neighbouring places in each step, and deal them
out like cards. So whatever the ranks have read is always the beginning of the epoch: how much of it
is all that a job needs to go on, also with another number of ranks, and nothing is read twice or
left out. Every rank takes the same number of steps.

A worker is one of several processes that feed one rank in turn: worker 1 of 3 takes the steps 1, 4,
7 and so on of its rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError

Ends = Literal["keep", "drop", "pad"]
"""What becomes of the last step of an epoch, when less is left than all ranks take in a step: it is
shared out as evenly as can be, so that batches are smaller, and empty on some ranks if there are
fewer records than ranks (keep); it is left out (drop); it is filled up with the first records of
the epoch, once more (pad)."""


@dataclass(frozen=True)
class Share:
    """What one rank, or one of its workers, reads of an epoch.

    count: records in an epoch.
    rank, world_size: which process of a job this is, of how many.
    worker, worker_count: which process of this rank this is, of how many.
    """

    count: int
    batch_size: int
    rank: int = 0
    world_size: int = 1
    ends: Ends = "keep"
    worker: int = 0
    worker_count: int = 1

    def __post_init__(self) -> None:
        for name in ("batch_size", "world_size", "worker_count"):
            _check_whole(name, getattr(self, name), 1)
        for name, whole in (("rank", self.world_size), ("worker", self.worker_count)):
            _check_whole(name, getattr(self, name), 0, whole - 1)
        if self.ends not in get_args(Ends):
            raise OptionError(f"ends is {self.ends!r}; expected keep, drop or pad")

    @property
    def step_size(self) -> int:
        """How many places all ranks take together in a step."""
        return self.batch_size * self.world_size

    def step_count(self, start: int = 0) -> int:
        """How many steps each rank takes, when `start` places of the epoch are read already."""
        left = self.count - start
        return left // self.step_size if self.ends == "drop" else -(-left // self.step_size)

    def steps(self, start: int = 0, first: int = 0) -> range:
        """The steps of this worker, from step `first` of its rank on."""
        skipped = -(-max(0, first - self.worker) // self.worker_count)
        return range(
            self.worker + skipped * self.worker_count, self.step_count(start), self.worker_count
        )

    def places(self, start: int, step: int) -> Int64Array:
        """The places that this rank reads in a step: int64, (batch_size,), or fewer at the end."""
        first = start + step * self.step_size + self.rank
        places = first + np.arange(self.batch_size, dtype=np.int64) * self.world_size
        if self.ends == "pad":
            return places % self.count
        return places[places < self.count]

    def read_after(self, start: int, step: int) -> int:
        """How many places of the epoch all ranks have read when this step is done."""
        return min(self.count, start + (step + 1) * self.step_size)


def _check_whole(name: str, value: object, lowest: int, highest: int | None = None) -> None:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or value < lowest or (highest is not None and value > highest):  # type: ignore[operator]
        expected = f"at least {lowest}" if highest is None else f"{lowest} to {highest}"
        raise OptionError(f"{name} is {value!r}; expected {expected}")
