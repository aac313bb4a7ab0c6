"""The order in which an epoch reads a dataset, computed with integer arithmetic and no buffer.

An epoch has a place for each record, counted from 0; the order maps places to positions. Any part
of it can be computed alone, on any machine, so ranks, workers and resumed jobs agree without
communication.

A shuffle is global, except with `BlockShuffle`: it reads runs of neighbouring records together,
which suits disks and networks, and mixes only blocks within a window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError
from recordsmith.support.number_options import record_count_number, seed_number
from recordsmith.support.permutation import Permutations


def mixed_in_windows(places: Int64Array, count: int, size: int, *key: int | str) -> Int64Array:
    """Return the place that comes at each place after shuffling within windows: int64, (n,).

    `key`: the seed, and what distinguishes this order from others of the same seed.
    """
    windows = places // size
    begins = windows * size
    lengths = np.minimum(begins + size, count) - begins
    mixed = np.empty_like(places)
    for length in np.unique(lengths).tolist():  # one, and one for a shorter last window
        chosen = np.flatnonzero(lengths == length)
        orders = Permutations(length, *key)
        within = places[chosen] - begins[chosen]
        mixed[chosen] = begins[chosen] + orders.numbers(windows[chosen] + 1, within)
    return mixed


_MAX_PLACES = 2**60  # an int64, also if it is doubled


class PositionOrder(ABC):
    """Maps the places of an epoch to positions in the dataset.

    Attributes:
        count: how many places an epoch has.
    """

    count: int

    @abstractmethod
    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        """Return the positions at some places, from 0 to count - 1, of an epoch: int64, (n,)."""

    def runs(self, epoch: int, places: Int64Array) -> Int64Array | None:  # noqa: ARG002
        """Return the run of each place, ascending, if its records are best read together."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return a JSON-able description; equal descriptions mean equal orders."""

    def adopt(self, description: Mapping[str, Any]) -> PositionOrder:  # noqa: ARG002
        """Return this order with the defaults that a state describes."""
        return self


@dataclass(frozen=True)
class BlockShuffle:
    """Shuffle blocks of neighbouring records, for storage where seeks are expensive.

    Attributes:
        size: records in a block; they are read one after the other.
        window: how many blocks are mixed with each other. Records of blocks that are further
            apart are never mixed.

    Example:
        shuffle = rs.BlockShuffle(size=16, window=4)
        loader = rs.Loader(dataset, ["image/class/label"], batch_size=8, shuffle=shuffle)
    """

    size: int = 1024
    window: int = 16

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, record_count_number(name, value))


class DatasetOrder(PositionOrder):
    """An order of `count` positions, different in each epoch if shuffled."""

    def __init__(self, count: int, *, shuffle: bool | BlockShuffle = False, seed: int = 0) -> None:
        """`count`: how many positions an epoch has."""
        if not isinstance(shuffle, (bool, BlockShuffle)):
            raise OptionError(
                option="shuffle", value=shuffle, expected="True, False or a BlockShuffle"
            )
        self.count = count
        self._shuffle = shuffle
        self._seed = seed_number(seed)
        whole_blocks = count // shuffle.size if isinstance(shuffle, BlockShuffle) else 0
        self._records = Permutations(count, self._seed, "records")
        self._blocks = Permutations(whole_blocks, self._seed, "blocks")

    def describe(self) -> dict[str, Any]:
        shuffle = self._shuffle if isinstance(self._shuffle, bool) else asdict(self._shuffle)
        return {"record_count": self.count, "shuffle": shuffle, "seed": self._seed}

    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        if isinstance(self._shuffle, BlockShuffle):
            return self._in_blocks(epoch, places, self._shuffle)
        return self._records.numbers(epoch, places) if self._shuffle else places

    def runs(self, epoch: int, places: Int64Array) -> Int64Array | None:  # noqa: ARG002
        shuffle = self._shuffle
        if not isinstance(shuffle, BlockShuffle):
            return None
        return places // min(shuffle.size * shuffle.window, _MAX_PLACES)

    def _in_blocks(self, epoch: int, places: Int64Array, blocks: BlockShuffle) -> Int64Array:
        """Shuffle the blocks, and the records within each run of `window` blocks.

        A shorter last block stays at the end, so that a division finds the block of each place.
        """
        window = min(blocks.size * blocks.window, _MAX_PLACES)
        mixed = mixed_in_windows(places, self.count, window, self._seed, "window", epoch)
        block = mixed // blocks.size
        moved = np.flatnonzero(block < self._blocks.count)
        block[moved] = self._blocks.numbers(epoch, block[moved])
        return block * blocks.size + mixed % blocks.size
