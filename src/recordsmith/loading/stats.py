"""Where does the time of a loader go?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up seconds of threads by what they did, and counts records and bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seconds: dict[str, float] = {}
        self.record_count = 0
        self.byte_count = 0

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Add the time that the block takes."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add(what, time.perf_counter() - begun)

    def add(self, what: str, seconds: float) -> None:
        """Add time that was taken."""
        with self._lock:
            self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    def count(self, record_count: int, byte_count: int) -> None:
        """Count what was read."""
        with self._lock:
            self.record_count += record_count
            self.byte_count += byte_count
