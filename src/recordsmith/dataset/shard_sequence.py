"""The records of some shards as one sequence, in which a record has a position."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.dataset.frames import gather_together
from recordsmith.dataset.open_shards import OpenShards
from recordsmith.dataset.shard import Shard
from recordsmith.errors import DataError
from recordsmith.wire import FRAME_BYTES
from recordsmith.work import Work, thread_count


class ShardGroup(NamedTuple):
    """The positions of a request that lie in one shard.

    members: int64, (n,): their indexes in the request; or a slice.
    numbers: int64, (n,): their record numbers in the shard.
    opened: to note that the shard is used.
    """

    shard: Shard
    members: Int64Array | slice
    numbers: Int64Array
    opened: OpenShards


Faults: TypeAlias = dict[int, DataError]
"""The errors of damaged records, by their index in a request."""


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
            return [ShardGroup(self.shards[0], slice(None), positions, self._open)]
        of_shard = self.shard_numbers(positions)
        assert self._starts_array is not None
        numbers = positions - self._starts_array[of_shard]
        grouped = of_shard.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(of_shard[grouped])) + 1
        return [
            ShardGroup(self.shards[of_shard[members[0]]], members, numbers[members], self._open)
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
    groups: Sequence[ShardGroup],
    places: Int64Array,
    out: npt.NDArray[np.uint8],
    *,
    whole: bool = False,
    faults: Faults | None = None,
) -> None:
    """Copy payloads, or whole frames, to out[places[i]:].

    Records over a network are read in one parallel round. One that fails verification is read
    again, alone, before it counts as damaged: a proxy may have returned other bytes.

    Args:
        faults: receives the errors of damaged records, whose bytes are undefined; None to raise
            the first one.

    Raises:
        OptionError, DataError, FileAccessError: as `Shard.gather`.
    """
    remote: list[ShardGroup] = []
    for group in groups:
        if group.shard.is_remote:
            remote.append(group)
            continue
        group.opened.use(group.shard)
        try:
            group.shard.gather(group.numbers, places[group.members], out, whole=whole)
        except DataError:
            if faults is None:
                raise
            _gather_singly(group, places, out, faults, whole=whole)
    requests = [
        group.shard.remote_request(group.numbers, places[group.members]) for group in remote
    ]
    for at, row in gather_together(requests, out, whole=whole):
        group, (_, begins, ends, own_places) = remote[at], requests[at]
        number, size = int(group.numbers[row]), int(ends[row] - begins[row]) - FRAME_BYTES
        try:
            group.shard.copy_again(number, size, int(own_places[row]), out, whole=whole)
        except DataError as error:
            if faults is None:
                raise
            faults[_members(group, places)[row]] = error.with_traceback(None)


def _gather_singly(
    group: ShardGroup,
    places: Int64Array,
    out: npt.NDArray[np.uint8],
    faults: Faults,
    *,
    whole: bool,
) -> None:
    """Copy the records of a shard one by one, and collect the errors."""
    for row, member in enumerate(_members(group, places)):
        try:
            group.shard.gather(
                group.numbers[row : row + 1], places[member : member + 1], out, whole=whole
            )
        except DataError as error:
            faults[member] = error.with_traceback(None)  # it would keep the buffer alive


def _members(group: ShardGroup, places: Int64Array) -> list[int]:
    return np.arange(len(places))[group.members].tolist()  # type: ignore[no-any-return]


def record_counts(shards: Sequence[Shard]) -> list[int]:
    """Return the number of records of each shard; unknown ones are counted in threads.

    Raises:
        CorruptDataError: the first shard with damaged frames.
    """
    unknown = [shard for shard in shards if shard.known_record_count is None]
    _call_in_threads(lambda shard: shard.record_count, unknown)
    return [shard.record_count for shard in shards]


def _call_in_threads(function: Callable[[Shard], Any], shards: Sequence[Shard]) -> None:
    """Call a function for each shard; if several fail, raise the error of the first.

    Shards over a network have as many threads as their store takes requests at the same time.
    """
    if len(shards) > 1:
        concurrency = max(shard.location.store.concurrency for shard in shards)
        work = Work(max(thread_count(None), min(len(shards), concurrency)), None)
        for _ in work.in_order(function, shards, ahead=2 * work.threads):
            pass


def payload_sizes(count: int, groups: Sequence[ShardGroup]) -> Int64Array:
    """Return the payload sizes of a request of `count` positions: int64, (count,)."""
    sizes = np.empty(count, np.int64)
    unread = [group.shard for group in groups if not group.shard.is_prepared]
    _call_in_threads(Shard.prepare, unread)
    for shard, members, numbers, _ in groups:
        sizes[members] = shard.sizes(numbers)
    return sizes
