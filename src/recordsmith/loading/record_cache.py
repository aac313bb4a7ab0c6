"""Keeps long records, so that examples with parts of them that come soon do not read them again.

Copies are made only while they are of use: of parts at random in a large dataset, hardly any
would be read again in time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy.typing as npt

from recordsmith.support.threads import renew_in_children

_WORTH = 0.3  # the least share of records that must be found again
_FIRST_SHARE = 0.4
_AVERAGED = 64  # requests
_ENTRY_BYTES = 400  # of a record in memory, beyond its content


class RecordCache:
    """The payloads or values that were used last, up to a number of bytes. Thread-safe.

    A copy or a pickle of it begins empty.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.renew_lock()
        renew_in_children(self)

    def __reduce__(self) -> Any:
        return RecordCache, (self.max_bytes,)

    def renew_lock(self) -> None:
        """Begin empty, with an unlocked lock."""
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, npt.NDArray[Any]] = OrderedDict()
        self._byte_count = 0
        self._used: OrderedDict[int, int] = OrderedDict()  # sizes of what would be kept
        self._used_bytes = 0
        # of the last requests, if all were kept: few of the first ones can be found
        self._found_share = _FIRST_SHARE

    def get(self, record: int, size: int) -> npt.NDArray[Any] | None:
        """Return what is kept of a record, or None; `size` in bytes."""
        size += _ENTRY_BYTES
        with self._lock:
            was_used = self._used.pop(record, None) is not None
            self._used[record] = size
            self._used_bytes += 0 if was_used else size
            while self._used_bytes > self.max_bytes:
                self._used_bytes -= self._used.popitem(last=False)[1]
            self._found_share += (was_used - self._found_share) / _AVERAGED
            if self._found_share < _WORTH:
                self._kept.clear()
                self._byte_count = 0
            kept = self._kept.get(record)
            if kept is not None:
                self._kept.move_to_end(record)
            return kept

    def keep(self, record: int, values: npt.NDArray[Any]) -> None:
        """Keep a copy of a payload or of values, and forget those not used for longest."""
        if values.nbytes + _ENTRY_BYTES > self.max_bytes or self._found_share < _WORTH:
            return
        copied = values.copy()
        with self._lock:
            if record in self._kept:
                return
            self._kept[record] = copied
            self._byte_count += copied.nbytes + _ENTRY_BYTES
            while self._byte_count > self.max_bytes:
                self._byte_count -= self._kept.popitem(last=False)[1].nbytes + _ENTRY_BYTES
