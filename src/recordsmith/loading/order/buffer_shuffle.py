"""Shuffles shards that support only sequential reads, as a shuffle buffer does. The order is
computed, not drawn while reading, so split and resume stay exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.loading.number_options import record_count_number, seed_number
from recordsmith.loading.order.shuffle import PositionOrder, mixed_in_windows, window_numbers
from recordsmith.permutation import Permutations


@dataclass(frozen=True)
class BufferShuffle:
    """Shuffle shards that are read from start to end, such as compressed ones.

    In each epoch the shards are read in a random order. Their records are cut into runs of `size`,
    at different places in each epoch, and each run is shuffled. Records of a shard that are further
    apart than `size` are never mixed, so a shard that is sorted by class is read by class. Every
    rank decompresses all shards and keeps its share.

    Attributes:
        size: how many neighbouring records are shuffled together. A rank keeps its records of two
            such runs in memory.
    """

    size: int = 10_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", record_count_number("size", self.size))


class BufferOrder(PositionOrder):
    """The positions of a dataset, in the order of a shuffle buffer."""

    def __init__(self, lengths: Sequence[int], buffer: BufferShuffle, *, seed: int) -> None:
        """`lengths`: how many records of each shard there are, in order."""
        self._lengths = np.array(lengths, np.int64)
        self._firsts = np.cumsum(self._lengths) - self._lengths
        self.count = int(self._lengths.sum())
        self._size = buffer.size
        self._seed = seed_number(seed)
        self._shards = Permutations(len(lengths), self._seed, "shards")
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
        """Return the run of each place: int64, (n,). Runs are read one after the other."""
        return window_numbers(places, self._size, self._shift(epoch))

    def _shift(self, epoch: int) -> int:
        return int(self._shifts.numbers(epoch, np.zeros(1, np.int64))[0])
