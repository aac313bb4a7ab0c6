"""Are these files in the system's memory already? Asked at some places, without reading from disk.

A disk is measured only where they are not; nobody should take one for the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from recordsmith.dataset import Shard
from recordsmith.files import open_file

_PLACE_COUNT = 64


def cached_share(shards: Sequence[Shard]) -> float | None:
    """Which part of the files is in memory, from 0 to 1; None where the system does not say."""
    if not hasattr(os, "RWF_NOWAIT"):
        return None
    sizes = [shard.size_bytes for shard in shards]
    step = max(1, sum(sizes) // _PLACE_COUNT)
    found, asked, place = 0, 0, 0
    for shard, size in zip(shards, sizes, strict=True):
        if place >= size:
            place -= size
            continue
        with open_file(shard.path) as file:
            for offset in range(place, size, step):
                asked += 1
                try:
                    found += os.preadv(file.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT) > 0
                except BlockingIOError:
                    pass
                except OSError:  # a file system that cannot tell
                    return None
            place = (place - size) % step
    return found / asked if asked else None
