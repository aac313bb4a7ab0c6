"""Estimate which share of files is in the page cache, without reading from disk.

Only reading files that are not cached measures the disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from recordsmith.dataset import Shard
from recordsmith.files import open_file

_PLACE_COUNT = 64


def cached_share(shards: Sequence[Shard]) -> float | None:
    """The share of the files in memory, from 0 to 1; None if it cannot be determined."""
    if not hasattr(os, "RWF_NOWAIT"):
        return None
    sizes = [shard.size_bytes for shard in shards]
    step = max(1, sum(sizes) // _PLACE_COUNT)
    found, probed, place = 0, 0, 0
    for shard, size in zip(shards, sizes, strict=True):
        if place >= size:
            place -= size
            continue
        with open_file(shard.location) as file:
            for offset in range(place, size, step):
                probed += 1
                try:
                    found += os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT) > 0
                except BlockingIOError:
                    pass
                except OSError:  # unsupported by this file system
                    return None
            place = (place - size) % step
    return found / probed if probed else None
