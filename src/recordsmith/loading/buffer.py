"""A shuffle for shards that can only be read in order, as through a buffer that is filled and
emptied; but what would be in the buffer is arithmetic, so that split and resume stay exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import ShardSpan
from recordsmith.loading.options import record_count_number, seed_number
from recordsmith.loading.order import PositionOrder
from recordsmith.loading.windows import mixed_in_windows, window_numbers
from recordsmith.permutation import Permutations


@dataclass(frozen=True)
class Buffer:
    """A shuffle that reads shards from their beginning to their end, as compressed ones must be.

    size: how many neighbouring records are mixed with each other. Those that a rank reads of so
        many records, and of the next so many, are in its memory at the same time.

    In each epoch the shards come one after the other in a random order, the records in them are cut
    into runs of `size`, at other places each time, and the records of each run are mixed. What is
    given up: records of a shard that are further apart than `size` never change places, so a shard
    whose records are sorted, by class for example, is read by class. Every rank decompresses
    everything, and keeps its own share.
    """

    size: int = 10_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", record_count_number("the size of the buffer", self.size))


class BufferOrder(PositionOrder):
    """The order of a dataset's positions, as a buffer mixes them."""

    def __init__(self, spans: Sequence[ShardSpan], buffer: Buffer, *, seed: int) -> None:
        """`spans`: where the shards lie in the dataset."""
        self._firsts = np.array([span.first for span in spans], np.int64)
        self._lengths = np.array([len(span.numbers) for span in spans], np.int64)
        self.count = int(self._lengths.sum())
        self._size = buffer.size
        self._seed = seed_number(seed)
        self._shards = Permutations(len(spans), self._seed, "shards")
        self._shifts = Permutations(buffer.size, self._seed, "shifts")

    def describe(self) -> dict[str, Any]:
        lengths = self._lengths.astype("<i8").tobytes()
        return {
            "record_count": self.count,
            "shuffle": {"buffer": self._size},
            "seed": self._seed,
            "shards": hashlib.blake2b(lengths, digest_size=8).hexdigest(),
        }

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        if self.count == 0:
            return places
        mixed = mixed_in_windows(
            places, self.count, self._size, self._seed, "buffer", epoch, shift=self._shift(epoch)
        )
        order = self._shards.numbers(epoch, np.arange(len(self._firsts)))
        starts = np.array([0, *accumulate(self._lengths[order].tolist())], np.int64)
        shard = np.searchsorted(starts, mixed, side="right") - 1
        return self._firsts[order][shard] + mixed - starts[shard]

    def runs(self, epoch: int, places: Int64Array) -> Int64Array:
        """The number of each place's run: int64, (n,). A run is read before the next begins."""
        return window_numbers(places, self._size, self._shift(epoch))

    def _shift(self, epoch: int) -> int:
        return int(self._shifts.numbers(epoch, np.zeros(1, np.int64))[0])
