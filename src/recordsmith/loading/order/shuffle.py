"""The order in which an epoch reads a dataset, computed with integer arithmetic and no buffer.

An epoch has a place for each record, counted from 0; the order maps places to positions. Any part
of it can be computed alone, on any machine, so ranks, workers and resumed jobs agree without
communication.

A shuffle is global, except with `BlockShuffle`: it reads runs of neighbouring records together,
which suits disks and networks, and mixes only blocks within a window.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.loading.number_options import record_count_number, seed_number
from recordsmith.loading.order.link import Link, measure_link
from recordsmith.permutation import Permutations


def window_numbers(places: Int64Array, size: int, shift: int = 0) -> Int64Array:
    """Return the window of each place: int64, (n,). The first window ends at place `shift`."""
    return (places + (size - shift)) // size


def mixed_in_windows(
    places: Int64Array, count: int, size: int, *key: int | str, shift: int = 0
) -> Int64Array:
    """Return the place that comes at each place after shuffling within windows.

    Args:
        places: int64, (n,), from 0 to count - 1.
        size: places in a window; the last one may have fewer.
        key: the seed, and what distinguishes this order from others of the same seed.
        shift: the end of the first window, from 0 to size - 1; 0 for a full window.

    Returns:
        int64, (n,).
    """
    windows = window_numbers(places, size, shift)
    begins = windows * size - (size - shift)
    ends = np.minimum(begins + size, count)
    np.maximum(begins, 0, out=begins)
    lengths = ends - begins
    mixed = np.empty_like(places)
    for length in np.unique(lengths).tolist():  # one or two, and one for the first window
        chosen = np.flatnonzero(lengths == length)
        orders = Permutations(length, *key)
        within = places[chosen] - begins[chosen]
        mixed[chosen] = begins[chosen] + orders.numbers(windows[chosen], within)
    return mixed


_MAX_PLACES = 2**60  # an int64, also if it is doubled
_WINDOW_BYTES = 12 << 20  # of BlockShuffle over a network: the loader reads several windows ahead
_FEWEST_BLOCKS = 16  # in a window


class PositionOrder(ABC):
    """Maps the places of an epoch to positions in the dataset.

    Attributes:
        count: how many places an epoch has.
    """

    count: int

    @abstractmethod
    def positions(self, epoch: int, places: Int64Array) -> Int64Array:
        """Return the positions at some places.

        Args:
            epoch: counted from 0.
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """

    def runs(self, epoch: int, places: Int64Array) -> Int64Array | None:  # noqa: ARG002
        """Return the run of each place, if the records of a run are best read together.

        Returns:
            int64, (n,), ascending with the places; None if there are no runs.
        """
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
    """

    size: int = 1024
    window: int = 16

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, record_count_number(name, value))

    @classmethod
    def for_dataset(cls, dataset: Dataset) -> BlockShuffle:
        """Return sizes for a dataset over a network, from a measurement with about 8 requests.

        A block is read in about twice the time of its first byte, and the blocks of a window are
        read together. Two measurements can differ, but all ranks and resumed jobs need the same
        sizes: write the result into your program. `recordsmith bench URL` prints it as well.

        Warns:
            RuntimeWarning: the dataset is smaller than 16 MiB, too small to measure; returns the
                default sizes.

        Raises:
            FileAccessError: a shard cannot be read.

        Example:
            print(rs.BlockShuffle.for_dataset(dataset))
        """
        link = measure_link(dataset)
        if link is not None and not link.is_measurable:
            warnings.warn(
                "the dataset is too small to measure the network: use shuffle=True",
                RuntimeWarning,
                stacklevel=2,
            )
        return cls() if link is None else cls.for_link(link)

    @classmethod
    def for_link(cls, link: Link) -> BlockShuffle:
        """Return sizes for records over a measured network; the default if it is not measurable."""
        if not link.is_measurable:
            return cls()
        latency_bytes = link.latency_seconds * link.request_bytes_per_second
        block_bytes = min(latency_bytes, _WINDOW_BYTES / _FEWEST_BLOCKS)
        record_bytes = max(1.0, link.record_bytes)
        size = max(1, round(block_bytes / record_bytes))
        return cls(size, max(_FEWEST_BLOCKS, int(_WINDOW_BYTES / (size * record_bytes))))


class DatasetOrder(PositionOrder):
    """An order of `count` positions, different in each epoch if shuffled."""

    def __init__(self, count: int, *, shuffle: bool | BlockShuffle = False, seed: int = 0) -> None:
        """"""
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
