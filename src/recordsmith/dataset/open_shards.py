"""Which shards of a dataset stay open, and which may be mapped?

Those that were not used for longest are closed; of small records the first ones are mapped, as far
as there is room for them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from recordsmith.dataset.forks import renew_in_children
from recordsmith.dataset.shard import Shard

_OPEN_SHARDS = 256
"""How many shards stay open: file descriptors are few."""

_MAPPED_BYTES = 256 << 20
"""How large all maps together may become: what was touched of them counts as memory in use."""


class OpenShards:
    """Those that a dataset and its slices have open together. Safe to use from several threads."""

    def __init__(self) -> None:
        self._mapped_bytes: OrderedDict[Shard, int] = OrderedDict()
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Have a lock that nobody holds."""
        self._lock = threading.Lock()

    def use(self, shard: Shard) -> None:
        """Before a record of this shard is read by its position."""
        with self._lock:
            if shard in self._mapped_bytes:
                self._mapped_bytes.move_to_end(shard)
                return
        size = shard.size_bytes if shard.maps_well else 0  # this may build its index
        with self._lock:
            if sum(self._mapped_bytes.values()) + size > _MAPPED_BYTES:
                size = 0
            if size:
                shard.allow_map()
            self._mapped_bytes.setdefault(shard, size)
            if len(self._mapped_bytes) > _OPEN_SHARDS:
                self._mapped_bytes.popitem(last=False)[0].close()
