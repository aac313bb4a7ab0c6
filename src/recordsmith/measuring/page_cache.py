"""Estimate which share of files is in the page cache, without reading from disk.

Only reading files that are not cached measures the disk.
"""

from __future__ import annotations

from collections.abc import Sequence

from recordsmith.dataset import Shard

_PLACE_COUNT = 64


def cached_share(shards: Sequence[Shard]) -> float | None:
    """The share of the files in memory, from 0 to 1; None if it cannot be determined."""
    sizes = [shard.size_bytes for shard in shards]
    step = max(1, sum(sizes) // _PLACE_COUNT)
    found, probed, place = 0, 0, 0
    for shard, size in zip(shards, sizes, strict=True):
        if place >= size:
            place -= size
            continue
        with shard.location.open_read() as file:
            for offset in range(place, size, step):
                is_cached = file.is_cached(offset)
                if is_cached is None:
                    return None
                found += is_cached
                probed += 1
            place = (place - size) % step
    return found / probed if probed else None
