"""In which order are the records of a dataset read in an epoch? Integer arithmetic, no buffer.

An epoch has a place for each record, from 0; the order says which position stands at a place. Any
part of it can be asked for alone, on any machine, so that ranks, workers and resumed jobs agree
without speaking to each other, at any size of dataset.

A shuffle is global unless `Blocks` are asked for: then runs of neighbouring records are read
together, which disks and networks like, and only blocks within a window are mixed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.permutation import Permutation


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
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"the {name} of blocks is {value!r}; expected at least 1")


class Order:
    """The order of `count` positions, anew for each epoch."""

    def __init__(self, count: int, *, shuffle: bool | Blocks = False, seed: int = 0) -> None:
        self.count = count
        self._shuffle = shuffle
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        """What must be equal for two orders to be the same; JSON-able."""
        shuffle = self._shuffle if isinstance(self._shuffle, bool) else asdict(self._shuffle)
        return {"record_count": self.count, "shuffle": shuffle, "seed": self._seed}

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        """The positions at some places.

        Args:
            epoch: counted from 0.
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """
        if self._shuffle is False:
            return places
        if self._shuffle is True:
            return Permutation(self.count, self._seed, epoch)[places]
        return self._in_blocks(epoch, places, self._shuffle)

    def _in_blocks(self, epoch: int, places: Int64Array, blocks: Blocks) -> Int64Array:
        """Blocks in a random order; within each run of `window` blocks, records in a random order.

        The last block may be short. It keeps its place at the end, so that all others are whole and
        a place tells its block without counting.
        """
        whole = self.count // blocks.size
        in_window = blocks.size * blocks.window
        block_order = Permutation(whole, self._seed, epoch) if whole else None
        positions = np.empty_like(places)
        for window in np.unique(places // in_window).tolist():
            chosen = places // in_window == window
            begin = window * in_window
            length = min(in_window, self.count - begin)
            mixed = Permutation(length, self._seed, epoch + (window + 1) * 2**32)
            at = begin + mixed[places[chosen] - begin]
            block = at // blocks.size
            moved = block < whole
            if block_order is not None and moved.any():
                block[moved] = block_order[block[moved]]
            positions[chosen] = block * blocks.size + at % blocks.size
        return positions
