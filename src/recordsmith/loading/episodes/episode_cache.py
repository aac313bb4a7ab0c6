"""Keeps the payloads of episodes, so that windows that are near each other read them once.

Copies are made only while they are of use: of windows at random in a large dataset, hardly any
would be read again in time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from recordsmith.threads import renew_in_children

Payload = npt.NDArray[np.uint8]

_WORTH = 0.3  # the least share of episodes that must be found again
_FIRST_SHARE = 0.4
_AVERAGED = 64  # requests


class EpisodeCache:
    """The payloads that were used last, up to a number of bytes. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Begin empty, with an unlocked lock."""
        self._lock = threading.Lock()
        self._payloads: OrderedDict[int, Payload] = OrderedDict()
        self._byte_count = 0
        self._used: OrderedDict[int, int] = OrderedDict()  # sizes of what would be kept
        self._used_bytes = 0
        # of the last requests, if all were kept: few of the first ones can be found
        self._found_share = _FIRST_SHARE

    def get(self, episode: int, size: int) -> Payload | None:
        """Return the payload of an episode if it is kept; `size` in bytes."""
        with self._lock:
            was_used = self._used.pop(episode, None) is not None
            self._used[episode] = size
            self._used_bytes += 0 if was_used else size
            while self._used_bytes > self.max_bytes:
                self._used_bytes -= self._used.popitem(last=False)[1]
            self._found_share += (was_used - self._found_share) / _AVERAGED
            if self._found_share < _WORTH:
                self._payloads.clear()
                self._byte_count = 0
            payload = self._payloads.get(episode)
            if payload is not None:
                self._payloads.move_to_end(episode)
            return payload

    def keep(self, episode: int, payload: Payload) -> None:
        """Keep a copy of a payload, and forget those that were not used for longest."""
        if len(payload) > self.max_bytes or self._found_share < _WORTH:
            return
        copied = payload.copy()
        with self._lock:
            if episode in self._payloads:
                return
            self._payloads[episode] = copied
            self._byte_count += len(copied)
            while self._byte_count > self.max_bytes:
                _, oldest = self._payloads.popitem(last=False)
                self._byte_count -= len(oldest)
