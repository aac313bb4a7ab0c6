"""Measures how fast a dataset over a network can be read, with a few requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import Dataset, Shard, records_of
from recordsmith.stores import Range, Store

_LARGE_BYTES = 2 << 20
_SMALL_READS = 4
_SHARDS = 8
_FEWEST_BYTES = 16 << 20  # of a dataset; a smaller one is read before a rate can be measured


@dataclass(frozen=True)
class Link:
    """The network between a loader and its dataset, as a few requests measured it.

    Attributes:
        latency_seconds: from a request to its first byte.
        request_bytes_per_second: of a single large request, after that.
        bytes_per_second: of as many requests at the same time as the store takes.
        record_bytes: the mean size of a record.
        dataset_bytes: the size of all shards, about.
    """

    latency_seconds: float
    request_bytes_per_second: float
    bytes_per_second: float
    record_bytes: float
    dataset_bytes: int

    @property
    def is_measurable(self) -> bool:
        """Whether the dataset is large enough for rates to mean anything."""
        return self.dataset_bytes >= _FEWEST_BYTES


def measure_link(dataset: Dataset) -> Link | None:
    """Measure the network with requests for parts of the shards; None if all are local."""
    remote = [one for one in records_of(dataset).used_shards() if one.is_remote]
    if not remote:
        return None
    shards = remote[:: -(-len(remote) // _SHARDS)]
    sizes = [shard.info().size_bytes for shard in shards]
    size = max(sizes)
    location = shards[sizes.index(size)].location
    large = min(_LARGE_BYTES, size)
    location.read(0, 1)  # opens the connection
    latency = min(
        _seconds(location.read, size * number // _SMALL_READS, size * number // _SMALL_READS + 1)
        for number in range(_SMALL_READS)
    )
    begins = (0, size - large)
    transfer = min(_seconds(location.read, begin, begin + large) for begin in begins) - latency
    ranges = _large_ranges(location.store, shards, sizes)
    whole = _seconds(lambda: sum(1 for _ in location.store.read_many(ranges)))
    return Link(
        latency,
        large / max(transfer, 1e-6),
        sum((one.stop or 0) - one.start for one in ranges) / whole,
        sum(sizes) / max(1, sum(shard.record_count for shard in shards)),
        sum(sizes) * len(remote) // len(shards),
    )


def _large_ranges(store: Store, shards: list[Shard], sizes: list[int]) -> list[Range]:
    """Return ranges of the shards of a store, as many as it reads at the same time."""
    places = [
        (shard.location.key, start, min(start + _LARGE_BYTES, size))
        for shard, size in zip(shards, sizes, strict=True)
        if shard.location.store == store
        for start in range(0, size, _LARGE_BYTES)
    ]
    count = store.concurrency
    return [Range(*place) for place in places[:: max(1, len(places) // count)][:count]]


def _seconds(read: Callable[..., Any], *arguments: int) -> float:
    begun = time.perf_counter()
    read(*arguments)
    return time.perf_counter() - begun
