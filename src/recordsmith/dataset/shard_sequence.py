"""The records of some shards as one sequence, in which a record has a position."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.open_shards import OpenShards
from recordsmith.dataset.shard import Shard
from recordsmith.work import Work, thread_count


class ShardGroup(NamedTuple):
    """The positions of a request that lie in one shard.

    members: int64, (n,): their indexes in the request; or a slice.
    numbers: int64, (n,): their record numbers in the shard.
    """

    shard: Shard
    members: Int64Array | slice
    numbers: Int64Array


class ShardSequence:
    """The records of some shards, one shard after the other. Thread-safe."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = tuple(shards)
        self._starts: list[int] | None = None
        self._starts_array: Int64Array | None = None  # the same as an array
        self._open = OpenShards()

    def __getstate__(self) -> dict[str, Any]:
        """Pickle paths and positions, but no open files."""
        return {**vars(self), "_open": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open = OpenShards()

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def known_record_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        if self._starts is not None:
            return self._starts[-1]
        counts = [shard.known_record_count for shard in self.shards]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    @property
    def starts(self) -> list[int]:
        """The position of the first record of each shard, and the end."""
        if self._starts is None:
            self._starts = list(itertools.accumulate(record_counts(self.shards), initial=0))
        return self._starts

    def shard_numbers(self, positions: Int64Array) -> Int64Array:
        """Return the number of each position's shard: int64, (n,)."""
        if self._starts_array is None:
            self._starts_array = np.array(self.starts, np.int64)
        return np.searchsorted(self._starts_array, positions, side="right") - 1

    def group(self, positions: Int64Array) -> list[ShardGroup]:
        """Group positions, none of them negative, by shard; shards without any are left out."""
        if not positions.size:
            return []
        if len(self.shards) == 1:
            return [ShardGroup(self.shards[0], slice(None), positions)]
        of_shard = self.shard_numbers(positions)
        assert self._starts_array is not None
        numbers = positions - self._starts_array[of_shard]
        grouped = of_shard.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(of_shard[grouped])) + 1
        return [
            ShardGroup(self.shards[of_shard[members[0]]], members, numbers[members])
            for members in np.split(grouped, cuts)
        ]

    def find(self, position: int) -> tuple[Shard, int]:
        """Return the shard of a position, and the number in it."""
        at = bisect.bisect_right(self.starts, position) - 1
        return self.shards[at], position - self.starts[at]

    def read(self, position: int) -> tuple[Shard, int, memoryview]:
        """Return the shard of a position, the number in it, and the payload."""
        shard, number = self.find(position)
        self._open.use(shard)
        return shard, number, shard.read(number)

    def gather(
        self,
        groups: Sequence[ShardGroup],
        places: Int64Array,
        out: npt.NDArray[np.uint8],
        *,
        whole: bool = False,
    ) -> None:
        """Copy payloads, or whole frames, to out[places[i]:]; raises as `Shard.gather`."""
        for shard, members, numbers in groups:
            self._open.use(shard)
            shard.gather(numbers, places[members], out, whole=whole)


def record_counts(shards: Sequence[Shard]) -> list[int]:
    """Return the number of records of each shard; unknown ones are counted in threads.

    Raises:
        CorruptDataError: the first shard with damaged frames.
    """
    unknown = [shard for shard in shards if shard.known_record_count is None]
    _call_in_threads(lambda shard: shard.record_count, unknown)
    return [shard.record_count for shard in shards]


def _call_in_threads(function: Callable[[Shard], Any], shards: Sequence[Shard]) -> None:
    """Call a function for each shard; if several fail, raise the error of the first."""
    if len(shards) > 1:
        work = Work(thread_count(None), None)
        for _ in work.in_order(function, shards, ahead=2 * work.threads):
            pass


def payload_sizes(count: int, groups: Sequence[ShardGroup]) -> Int64Array:
    """Return the payload sizes of a request of `count` positions: int64, (count,)."""
    sizes = np.empty(count, np.int64)
    unread = [group.shard for group in groups if not group.shard.has_index]
    _call_in_threads(lambda shard: shard.index, unread)
    for shard, members, numbers in groups:
        sizes[members] = shard.sizes(numbers)
    return sizes
