"""Places of records: numbers while there are many, paths and positions for the reported ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset import AnyShard
from recordsmith.reports import Place

_POSITION_BITS = 40


def place_numbers(shard: int, position: int, count: int) -> Int64Array:
    """Number `count` records of a shard from `position`; numbers ascend with shard and position."""
    first = (shard << _POSITION_BITS) + position
    return np.arange(first, first + count)


class FirstPlace:
    """The number of the first record with the highest rank."""

    def __init__(self) -> None:
        self._best: tuple[int, int] | None = None

    def add(self, place: int, rank: int = 0) -> None:
        """Add a record by its number."""
        self._best = min(self._best or (-rank, place), (-rank, place))

    def merge(self, other: FirstPlace) -> None:
        """Add the record of another one."""
        if other._best is not None:
            self.add(other._best[1], -other._best[0])

    def finish(self, places: Places) -> Place | None:
        """Return the place; None if there is no record."""
        return None if self._best is None else places(self._best[1])


class Places:
    """Turns the numbers of records back into places."""

    def __init__(self, shards: Sequence[AnyShard]) -> None:
        self._shards = shards

    def __call__(self, number: int) -> Place:
        """Return the place of a record number."""
        shard = self._shards[number >> _POSITION_BITS]
        return Place(str(shard.location), shard.number_of(number & ((1 << _POSITION_BITS) - 1)))
