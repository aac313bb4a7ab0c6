"""Decides which shards of a dataset stay open and which are memory mapped.

The least recently used shards are closed. Shards of small records are mapped up to a limit.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from recordsmith.dataset.shard import Shard
from recordsmith.stopping import renew_in_children

_OPEN_SHARDS = 256
"""The maximum of open shards, because file descriptors are limited."""

_MAPPED_BYTES = 256 << 20
"""The maximum size of all maps, because touched pages count as memory in use."""


class OpenShards:
    """The open shards of a dataset and its slices. Thread-safe."""

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
            if sum(self._mapped_bytes.values()) + size > _MAPPED_BYTES:
                size = 0
            if size:
                shard.allow_map()
            self._mapped_bytes.setdefault(shard, size)
            if len(self._mapped_bytes) > _OPEN_SHARDS:
                self._mapped_bytes.popitem(last=False)[0].close()
