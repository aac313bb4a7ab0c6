"""Divides the places of an epoch among ranks, workers and steps.

In each step all ranks together read `batch_size * world_size` neighbouring places, dealt out in
turn, or a batch to each. What they have read is always the beginning of the epoch, so its length is
enough to resume, even with another number of ranks, without repeating or losing a record. Every
rank has the same number of steps.

Workers are processes that feed one rank in turn: worker 1 of 3 has the steps 1, 4, 7 and so on,
counted from the start of the iteration, through all of its epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.number_options import count_number, whole_number

LastBatch = Literal["keep", "drop", "pad"]
"""How an incomplete last step of an epoch is handled. keep: divided evenly among the ranks, so
batches are smaller, or empty if there are fewer records than ranks. drop: left out. pad: completed
with the first records of the epoch."""


@dataclass(frozen=True)
class RankShare:
    """The part of an epoch that one rank, or one of its workers, reads.

    count: places in an epoch.
    rank, world_size: the rank of this process and the number of ranks.
    worker, worker_count: the worker of this rank and the number of workers.
    has_whole_batches: whether a rank reads the neighbouring places of a batch, not each
        `world_size`-th place of the step.
    """

    count: int
    batch_size: int
    rank: int = 0
    world_size: int = 1
    last_batch: LastBatch = "keep"
    worker: int = 0
    worker_count: int = 1
    has_whole_batches: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "world_size", "worker_count"):
            self._set(name, count_number(name, getattr(self, name)))
        self._set("rank", whole_number("rank", self.rank, 0, self.world_size - 1))
        self._set("worker", whole_number("worker", self.worker, 0, self.worker_count - 1))
        if not (isinstance(self.last_batch, str) and self.last_batch in get_args(LastBatch)):
            raise OptionError(
                option="last_batch", value=self.last_batch, expected="'keep', 'drop' or 'pad'"
            )
        if self.last_batch == "drop" and 0 < self.count < self.step_size:
            raise OptionError(
                f"{option('last_batch', 'drop')} leaves no batch: an epoch has {self.count} "
                f"records, fewer than the {self.step_size} that all ranks read in a step",
                option="last_batch",
                value=self.last_batch,
                remedy=f"Use a smaller {option('batch_size')}, or {option('last_batch', 'keep')}.",
            )
        batch_count = self.count // self.batch_size
        if self.has_whole_batches and self.last_batch == "keep" and batch_count % self.world_size:
            raise OptionError(
                f"{option('last_batch', 'keep')} leaves ranks without a last batch: an epoch has "
                f"{batch_count} batches for {self.world_size} ranks",
                option="last_batch",
                value=self.last_batch,
                remedy=f"Use {option('last_batch', 'drop')} or {option('last_batch', 'pad')}, or "
                "another length.",
            )

    def _set(self, name: str, value: int) -> None:
        object.__setattr__(self, name, value)  # the only way in a frozen dataclass

    @property
    def step_size(self) -> int:
        """How many places all ranks together read in a step."""
        return self.batch_size * self.world_size

    def step_count(self, read: int = 0) -> int:
        """Return how many steps each rank has left after `read` places of the epoch."""
        left = self.count - read
        return left // self.step_size if self.last_batch == "drop" else -(-left // self.step_size)

    def own(self, step_count: int, passed: int = 0) -> range:
        """Return which of the next steps are this worker's; `passed` steps came before them."""
        return range((self.worker - passed) % self.worker_count, step_count, self.worker_count)

    def places(self, read: int, steps: range) -> list[Int64Array]:
        """Return the places that this rank reads in each of some ascending steps: int64 arrays.

        `read`: how many places of the epoch were read before step 0.
        """
        firsts = np.arange(steps.start, steps.stop, steps.step, dtype=np.int64) * self.step_size
        row_count, first, stride = self.batch_size, self.rank, self.world_size
        if self.has_whole_batches:
            first, stride = first * row_count, 1
        elif self.last_batch != "pad":  # a batch may be larger than the epoch
            row_count = min(row_count, -(-self.count // self.world_size))
        in_step = np.arange(row_count, dtype=np.int64) * stride
        table = (firsts + (read + first))[:, np.newaxis] + in_step
        if self.last_batch == "pad":
            return list(table % self.count)
        places = list(table)
        places[-1:] = [last[last < self.count] for last in places[-1:]]
        return places
