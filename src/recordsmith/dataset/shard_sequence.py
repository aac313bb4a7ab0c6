"""The records of some shards as one sequence, read at any positions."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.dataset.frames import FrameRows, RemoteFrames, gather_together
from recordsmith.dataset.layers import joined_block
from recordsmith.dataset.shard import Shard
from recordsmith.format.example import BytesArray
from recordsmith.format.wire import FRAME_BYTES, HEADER_BYTES, RecordBlock
from recordsmith.support.buffers import (
    AllocateBytes,
    Int64Array,
    as_view,
    empty_bytes,
    offsets_from_lengths,
)
from recordsmith.support.errors import DataError
from recordsmith.support.threads import renew_in_children
from recordsmith.support.work import WorkerPool, thread_count

_MAX_OPEN_SHARDS = 256
"""File descriptors are limited."""

_MAX_MAPPED_BYTES = 256 << 20
"""Touched pages of a map count as memory in use."""

PLACES_AT_ONCE = 8192
_GROUP_BYTES = 4 << 20  # of scattered records that are read together
_GROUPS_AHEAD = 4  # groups that are read at the same time over a network


class OpenShards:
    """Which shards of a dataset and its slices stay open, and which are mapped. Thread-safe.

    The least recently used shards are closed. Shards of small records are mapped up to a limit.
    """

    def __init__(self) -> None:
        self._mapped_bytes: OrderedDict[Shard, int] = OrderedDict()
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Replace the lock with a new, unlocked one."""
        self._lock = threading.Lock()

    def use(self, shard: Shard) -> None:
        """Call before a record of this shard is read by position."""
        with self._lock:
            if shard in self._mapped_bytes:
                self._mapped_bytes.move_to_end(shard)
                return
        if shard.is_remote:
            return  # neither open nor mapped
        size = shard.size_bytes if shard.maps_well else 0  # may build its index
        with self._lock:
            if sum(self._mapped_bytes.values()) + size > _MAX_MAPPED_BYTES:
                size = 0
            if size:
                shard.allow_map()
            self._mapped_bytes.setdefault(shard, size)
            if len(self._mapped_bytes) > _MAX_OPEN_SHARDS:
                self._mapped_bytes.popitem(last=False)[0].close()


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

    def __init__(self, shards: Sequence[Shard], opened: OpenShards | None = None) -> None:
        """`opened`: of another sequence with these shards."""
        self.shards = tuple(shards)
        self.has_remote = any(shard.is_remote for shard in self.shards)
        self._starts: list[int] | None = None
        self._starts_array: Int64Array | None = None  # the same as an array
        self.opened = opened or OpenShards()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "opened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.opened = OpenShards()

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
        """The position of the first record of each shard, and the end.

        Unknown numbers of records are counted in threads; raises CorruptDataError for the first
        shard with damaged frames.
        """
        if self._starts is None:
            unknown = [shard for shard in self.shards if shard.known_record_count is None]
            _call_in_threads(lambda shard: shard.record_count, unknown)
            counts = [shard.record_count for shard in self.shards]
            self._starts = list(itertools.accumulate(counts, initial=0))
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
            return [ShardGroup(self.shards[0], slice(None), positions, self.opened)]
        of_shard = self.shard_numbers(positions)
        assert self._starts_array is not None
        numbers = positions - self._starts_array[of_shard]
        grouped = of_shard.argsort(kind="stable")
        cuts = np.flatnonzero(np.diff(of_shard[grouped])) + 1
        return [
            ShardGroup(self.shards[of_shard[members[0]]], members, numbers[members], self.opened)
            for members in np.split(grouped, cuts)
        ]

    def find(self, position: int) -> tuple[Shard, int]:
        number = bisect.bisect_right(self.starts, position) - 1
        return self.shards[number], position - self.starts[number]

    def read(self, position: int) -> tuple[Shard, int, memoryview]:
        """Return the shard of a position, the number in it, and the payload."""
        shard, number = self.find(position)
        for file in (shard, *shard.layers):
            self.opened.use(file)
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
    again, alone, before it counts as damaged: a proxy may have returned other bytes. `faults`
    receives the errors of damaged records, whose bytes are undefined; None raises the first one.
    """
    remote: list[tuple[ShardGroup, RemoteFrames, FrameRows]] = []
    failed: list[tuple[ShardGroup, FrameRows, int]] = []
    for group, own_places in _by_file(groups, places):
        shard = group.shard
        try:
            rows = shard.frame_rows(group.numbers, own_places)
        except DataError as error:
            if faults is None:
                raise
            faults |= dict.fromkeys(_members(group, places), error.with_traceback(None))
            continue
        group.opened.use(shard)
        reader = shard.open_frames()
        if isinstance(reader, RemoteFrames):
            remote.append((group, reader, rows))
            continue
        done = reader.gather(rows, out, whole=whole)
        if done < len(group.numbers):
            failed += [(group, rows, row) for row in range(done, len(group.numbers))]
    if remote:
        requests = [(reader, rows) for _, reader, rows in remote]
        for number, row in gather_together(requests, out, whole=whole):
            group, _, rows = remote[number]
            failed.append((group, rows, row))
    for group, rows, row in failed:
        size = int(rows.ends[row] - rows.begins[row]) - FRAME_BYTES
        place = int(rows.places[row])
        try:
            group.shard.copy_again(int(group.numbers[row]), size, place, out, whole=whole)
        except DataError as error:
            if faults is None:
                raise
            # without the traceback, which would keep the buffer alive
            faults[_members(group, places)[row]] = error.with_traceback(None)


def _by_file(
    groups: Sequence[ShardGroup], places: Int64Array
) -> Iterator[tuple[ShardGroup, Int64Array]]:
    """Yield the groups of each file, also of layers, and where its parts of the payloads go."""
    for group in groups:
        own, shard = places[group.members], group.shard
        yield group, own
        for layer in shard.layers:
            own = own + shard.own_sizes(group.numbers)
            shard = layer
            yield group._replace(shard=layer), own


def _members(group: ShardGroup, places: Int64Array) -> list[int]:
    return np.arange(len(places))[group.members].tolist()  # type: ignore[no-any-return]


def _call_in_threads(function: Callable[[Shard], Any], shards: Sequence[Shard]) -> None:
    """Call a function for each shard; if several fail, raise the error of the first.

    Shards over a network have as many threads as their store takes requests at the same time.
    """
    if len(shards) > 1:
        concurrency = max(shard.location.store.concurrency for shard in shards)
        workers = WorkerPool(max(thread_count(None), min(len(shards), concurrency)), None)
        for _ in workers.in_order(function, shards, ahead=2 * workers.threads):
            pass


def payload_sizes(count: int, groups: Sequence[ShardGroup]) -> Int64Array:
    """Return the payload sizes of a request of `count` positions: int64, (count,)."""
    sizes = np.empty(count, np.int64)
    unread = [group.shard for group in groups if not group.shard.is_prepared]
    _call_in_threads(Shard.prepare, unread)
    for shard, members, numbers, _ in groups:
        sizes[members] = shard.sizes(numbers)
    return sizes


def gather_payloads(
    records: ShardSequence,
    positions: Int64Array,
    allocate: AllocateBytes = empty_bytes,
    faults: Faults | None = None,
    *,
    whole: bool = False,
) -> BytesArray:
    """Read the payloads, or whole frames, at many positions; `faults` as in `gather`."""
    groups = records.group(positions)
    sizes = payload_sizes(len(positions), groups)
    offsets = offsets_from_lengths(sizes + FRAME_BYTES if whole else sizes)
    data = allocate(int(offsets[-1]))
    gather(groups, offsets[:-1], data, whole=whole, faults=faults)
    return BytesArray(data, offsets)


def scattered_blocks(
    records: ShardSequence,
    positions: Int64Array,
    group_bytes: int | None = None,
    at_once: int = PLACES_AT_ONCE,
) -> Iterator[tuple[RecordBlock, Int64Array]]:
    """Yield records at any positions of plain shards with their positions, in fast pieces.

    Over a network, the next groups of records are read meanwhile. Raises CorruptDataError for a
    damaged record, after all records before it.
    """
    groups = _cut_by_size(records, positions, group_bytes or _GROUP_BYTES, at_once)
    read = partial(_read_together, records)
    if records.has_remote:
        pieces = WorkerPool(_GROUPS_AHEAD, None).in_order(read, groups, ahead=_GROUPS_AHEAD)
    else:
        pieces = (read(group) for group in groups)
    with closing(pieces):
        for block, own, fault in pieces:
            yield block, own
            if fault is not None:
                raise fault


def _cut_by_size(
    records: ShardSequence, positions: Int64Array, group_bytes: int, at_once: int
) -> Iterator[Int64Array]:
    for start in range(0, len(positions), at_once):
        chosen = positions[start : start + at_once]
        stops = np.cumsum(payload_sizes(len(chosen), records.group(chosen)))
        begin = 0
        while begin < len(chosen):
            before = int(stops[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(stops, before + group_bytes, side="right")))
            yield chosen[begin:end]
            begin = end


def _read_together(
    records: ShardSequence, positions: Int64Array
) -> tuple[RecordBlock, Int64Array, DataError | None]:
    """Return the frames up to the first damaged one, and its error."""
    faults: Faults = {}
    has_layers = any(shard.layers for shard in records.shards)
    frames = gather_payloads(records, positions, faults=faults, whole=not has_layers)
    first = min(faults, default=len(positions))
    offsets = frames.offsets[: first + 1]
    if has_layers:
        joined = joined_block(as_view(frames.buffer), np.diff(offsets), 0)
        return joined, positions[:first], faults.get(first)
    starts, lengths = offsets[:-1] + HEADER_BYTES, np.diff(offsets) - FRAME_BYTES
    block = RecordBlock(as_view(frames.buffer), starts, lengths, 0, 0)
    return block, positions[:first], faults.get(first)


def reading_threads(threads: int | None, shards: Sequence[Shard]) -> int:
    """Return the number of threads in which a job reads shards: see `thread_count`.

    Over a network, most of them wait, so that there are as many as requests at the same time.
    """
    stores = {id(shard.location.store): shard.location.store for shard in shards}.values()
    most = max((store.concurrency for store in stores), default=1)
    return max(thread_count(None), most) if threads is None else thread_count(threads)
