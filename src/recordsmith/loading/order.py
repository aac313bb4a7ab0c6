"""Which records does a rank read in an epoch, and in which order? Integer arithmetic, no buffer.

An epoch is one order of all positions, the same for all ranks. It is dealt out like cards: of each
round of `world_size` neighbours in the order, every rank takes one. So whatever the ranks have read
together is always the beginning of the order, and a job may go on with another number of ranks:
nothing is read twice in an epoch, and nothing left out.

A shuffle is global unless `Blocks` are asked for: then runs of neighbouring records are read
together, which disks and networks like, and only blocks within a window are mixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError
from recordsmith.loading.permutation import Permutation

Ends = Literal["keep", "drop", "pad"]
"""What ranks do at the end of an epoch whose records do not share out evenly: some have one more
than others (keep); all leave out what is too much (drop); some read a record twice (pad)."""


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
    """The positions of one rank, epoch by epoch."""

    def __init__(
        self,
        count: int,
        *,
        shuffle: bool | Blocks = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        ends: Ends = "keep",
    ) -> None:
        """Choose the order of `count` positions.

        Raises:
            OptionError: there is no such rank, or `ends` is none of keep, drop, pad.
        """
        if not isinstance(world_size, int) or world_size < 1:
            raise OptionError(f"world_size is {world_size!r}; expected at least 1")
        if not isinstance(rank, int) or not 0 <= rank < world_size:
            raise OptionError(f"rank is {rank!r}; expected 0 to {world_size - 1}")
        if ends not in ("keep", "drop", "pad"):
            raise OptionError(f"ends is {ends!r}; expected keep, drop or pad")
        self.count = count
        self.rank = rank
        self.world_size = world_size
        self._shuffle = shuffle
        self._seed = seed
        self._ends = ends

    def length(self, start: int = 0) -> int:
        """How many positions this rank reads of an epoch of which `start` are read already."""
        left = self.count - start
        if self._ends == "drop":
            return left // self.world_size
        if self._ends == "pad":
            return -(-left // self.world_size)
        return max(0, -(-(left - self.rank) // self.world_size))

    def positions(self, epoch: int, first: int, last: int, start: int = 0) -> Int64Array:
        """The positions that this rank reads as number `first` up to, not including, `last`.

        Args:
            epoch: counted from 0.
            start: how many of this epoch all ranks together had read when this count began.

        Returns:
            int64, (last - first,).
        """
        places = start + self.rank + np.arange(first, last, dtype=np.int64) * self.world_size
        if self._ends == "pad" and self.count:
            places %= self.count  # the first of the epoch once more
        return self._at(epoch, places)

    def _at(self, epoch: int, places: Int64Array) -> Int64Array:
        """The positions at some places of the order of an epoch."""
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
