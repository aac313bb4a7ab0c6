"""In which order are the records of a dataset read in an epoch? Integer arithmetic, no buffer.

An epoch has a place for each record, from 0; the order says which position stands at a place. Any
part of it can be asked for alone, on any machine, so that ranks, workers and resumed jobs agree
without speaking to each other, at any size of dataset.

A shuffle is global unless `Blocks` are asked for: then runs of neighbouring records are read
together, which disks and networks like, and only blocks within a window are mixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.options import record_count_number, seed_number
from recordsmith.loading.windows import mixed_in_windows
from recordsmith.permutation import Permutations


class PositionOrder(ABC):
    """Which position stands at which place of an epoch.

    count: how many places an epoch has.
    """

    count: int

    @abstractmethod
    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        """The positions at some places.

        Args:
            epoch: counted from 0.
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What must be equal for two orders to be the same; JSON-able."""

    def adopt(self, description: Mapping[str, Any]) -> PositionOrder:  # noqa: ARG002
        """This order, with what nobody asked for as a state describes it."""
        return self


@dataclass(frozen=True)
class Blocks:
    """A shuffle that reads neighbouring records together.

    size: records in a block; they are read one after the other.
    window: how many blocks are mixed with each other. Records of blocks that are further apart in
        the order of the blocks never change places: that is given up.
    """

    size: int = 1024
    window: int = 16

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, record_count_number(f"the {name} of blocks", value))


class Order(PositionOrder):
    """The order of `count` positions, anew for each epoch."""

    def __init__(self, count: int, *, shuffle: bool | Blocks = False, seed: int = 0) -> None:
        """
        Raises:
            OptionError: `shuffle` is something else, or the seed is no whole number.
        """
        if not isinstance(shuffle, (bool, Blocks)):
            raise OptionError(f"shuffle is {shuffle!r:.60}; expected True, False or Blocks")
        self.count = count
        self._shuffle = shuffle
        self._seed = seed_number(seed)
        whole_blocks = count // shuffle.size if isinstance(shuffle, Blocks) else 0
        self._records = Permutations(count, self._seed, "records")
        self._blocks = Permutations(whole_blocks, self._seed, "blocks")

    def describe(self) -> dict[str, Any]:
        shuffle = self._shuffle if isinstance(self._shuffle, bool) else asdict(self._shuffle)
        return {"record_count": self.count, "shuffle": shuffle, "seed": self._seed}

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        if isinstance(self._shuffle, Blocks):
            return self._in_blocks(epoch, places, self._shuffle)
        return self._records.numbers(epoch, places) if self._shuffle else places

    def _in_blocks(self, epoch: int, places: Int64Array, blocks: Blocks) -> Int64Array:
        """Blocks in a random order; within each run of `window` blocks, records in a random order.

        The last block may be short. It keeps its place at the end, so that all others are whole and
        a place tells its block without counting.
        """
        window = min(blocks.size * blocks.window, 2**60)  # an int64, also if it is doubled
        mixed = mixed_in_windows(places, self.count, window, self._seed, "window", epoch)
        block = mixed // blocks.size
        moved = np.flatnonzero(block < self._blocks.count)
        block[moved] = self._blocks.numbers(epoch, block[moved])
        return block * blocks.size + mixed % blocks.size
