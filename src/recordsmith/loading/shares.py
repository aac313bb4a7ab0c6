"""Which places of an epoch belong to which step of which rank?

All ranks together take `batch_size * world_size` neighbouring places in each step, and deal them
out like cards. So whatever the ranks have read is always the beginning of the epoch: how much of it
is all that a job needs to go on, also with another number of ranks, and nothing is read twice or
left out. Every rank takes the same number of steps.

A worker is one of several processes that feed one rank in turn: worker 1 of 3 takes the steps 1, 4,
7 and so on of its rank, counted from where the iteration began, through all of its epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.options import count_number, whole_number

Ends = Literal["keep", "drop", "pad"]
"""What becomes of the last step of an epoch, when less is left than all ranks take in a step: it is
shared out as evenly as can be, so that batches are smaller, and empty on some ranks if there are
fewer records than ranks (keep); it is left out (drop); it is filled up with the first records of
the epoch, once more (pad)."""


@dataclass(frozen=True)
class Share:
    """What one rank, or one of its workers, reads of an epoch.

    count: places in an epoch.
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
            self._set(name, count_number(name, getattr(self, name)))
        self._set("rank", whole_number("rank", self.rank, 0, self.world_size - 1))
        self._set("worker", whole_number("worker", self.worker, 0, self.worker_count - 1))
        if not (isinstance(self.ends, str) and self.ends in get_args(Ends)):
            raise OptionError(f"ends is {self.ends!r}; expected keep, drop or pad")
        if self.ends == "drop" and 0 < self.count < self.step_size:
            raise OptionError(
                f"all ranks together take {self.step_size} records in a step, but an epoch has "
                f"{self.count}: with ends='drop' there would be no batch at all"
            )

    def _set(self, name: str, value: int) -> None:
        object.__setattr__(self, name, value)  # the only way in a frozen dataclass

    @property
    def step_size(self) -> int:
        """How many places all ranks take together in a step."""
        return self.batch_size * self.world_size

    def step_count(self, read: int = 0) -> int:
        """How many steps each rank takes, when so many places of the epoch are read already."""
        left = self.count - read
        return left // self.step_size if self.ends == "drop" else -(-left // self.step_size)

    def own(self, step_count: int, passed: int = 0) -> range:
        """Which of the next steps of its rank are this worker's; `passed` are those before them."""
        return range((self.worker - passed) % self.worker_count, step_count, self.worker_count)

    def places(self, read: int, steps: range) -> list[Int64Array]:
        """The places that this rank reads in each of some steps.

        Args:
            read: how many places of the epoch were read before step 0.
            steps: ascending, all of them less than `step_count(read)`.

        Returns:
            Arrays of int64, (batch_size,); the last one may have fewer.
        """
        firsts = np.arange(steps.start, steps.stop, steps.step, dtype=np.int64) * self.step_size
        row_count = self.batch_size
        if self.ends != "pad":  # a batch may be larger than the epoch
            row_count = min(row_count, -(-self.count // self.world_size))
        in_step = np.arange(row_count, dtype=np.int64) * self.world_size
        table = (firsts + (read + self.rank))[:, np.newaxis] + in_step
        if self.ends == "pad":
            return list(table % self.count)
        places = list(table)
        places[-1:] = [last[last < self.count] for last in places[-1:]]
        return places
