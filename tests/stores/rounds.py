"""`RoundStore`: counts parallel rounds and ranges, and changes what is read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from recordsmith.stores import ObjectInfo, Range

from .delayed import DelayedStore


class RoundStore(DelayedStore):
    """A store over a network whose reads can be counted, changed and held up.

    Attributes:
        rounds: the ranges of each call of `read_many`.
        singles: the ranges that were read alone.
        sent: all ranges that were requested.
        infos: how often versions were requested.
        most_at_once: how many reads there were at the same time.
        change: called with the range and its bytes; returns what is sent instead.
        may_read: reads wait until it is set.
    """

    def __init__(self, delay_seconds: float = 0.0) -> None:
        super().__init__(delay_seconds)
        self.rounds: list[list[Range]] = []
        self.singles: list[Range] = []
        self.sent: list[Range] = []
        self.most_at_once = self._at_once = self.infos = 0
        self.change: Callable[[Range, bytes], bytes] = lambda _, data: data
        self.may_read = threading.Event()
        self.may_read.set()

    def reset(self) -> None:
        """Count from 0."""
        self.rounds, self.singles, self.sent, self.most_at_once = [], [], [], 0

    def requests(self) -> int:
        """Return the number of ranges that were requested since the last call."""
        count, self.sent = len(self.sent), []
        return count

    def info(self, key: str) -> ObjectInfo:
        self.infos += 1
        return super().info(key)

    def read(
        self, key: str, start: int = 0, stop: int | None = None, version: str | None = None
    ) -> bytes:
        wanted = Range(key, start, stop, version)
        with self.lock:
            self.singles.append(wanted)
        return self._sent(wanted)

    def read_view(
        self,
        key: str,
        start: int = 0,
        stop: int | None = None,
        version: str | None = None,
        allocate: Callable[[], memoryview] | None = None,  # noqa: ARG002
    ) -> memoryview:
        return memoryview(self._sent(Range(key, start, stop, version)))

    def read_many(self, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
        of_round: list[Range] = []
        with self.lock:
            self.rounds.append(of_round)
        yield from super().read_many(_noted(ranges, of_round))

    def _sent(self, wanted: Range) -> bytes:
        with self.lock:
            self.sent.append(wanted)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            self.may_read.wait()
            return self.change(wanted, super().read(*wanted))
        finally:
            with self.lock:
                self._at_once -= 1


def _noted(ranges: Iterable[Range], notes: list[Range]) -> Iterator[Range]:
    """Yield ranges, and append each to a list when it is taken."""
    for one in ranges:
        notes.append(one)
        yield one
