"""Reads several ranges at the same time, where each read is a request over a network."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from recordsmith.stores.ranges import REQUEST_BYTES, Range, Request, requests_for

if TYPE_CHECKING:
    from recordsmith.stores.store import Store

Result = TypeVar("Result")

_THREAD_COUNT = 64
_RANGES_AT_ONCE = 4096  # that are sorted and merged together
_AHEAD_BYTES = 26 << 20
"""The most that all readers of a process read ahead together; each may read one request ahead."""

_FIRST_AHEAD_BYTES = 2 * REQUEST_BYTES


def read_in_parallel(store: Store, ranges: Iterable[Range]) -> Iterator[tuple[int, memoryview]]:
    """Yield the index and the bytes of each range, as `Store.read_many`."""
    numbered = iter(enumerate(ranges))
    groups = iter(lambda: list(islice(numbered, _RANGES_AT_ONCE)), [])
    requests = chain.from_iterable(map(requests_for, groups))
    waiting: dict[Future[memoryview], Request] = {}
    pieces: dict[int, dict[int, memoryview]] = {}  # of long ranges, by index and start
    try:
        for request in requests:
            waiting[read_later(store.read_view, *request.wanted)] = request
            if len(waiting) >= store.concurrency:
                yield from _arrived(waiting, pieces)
        while waiting:
            yield from _arrived(waiting, pieces)
    finally:
        for future in waiting:
            future.cancel()


def _arrived(
    waiting: dict[Future[memoryview], Request], pieces: dict[int, dict[int, memoryview]]
) -> Iterator[tuple[int, memoryview]]:
    """Wait for some of the requests, remove them and yield the ranges that are complete."""
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        (_, begin, end, _), parts = waiting.pop(future)
        data = future.result()
        for index, (_, start, stop, _) in parts:
            if (start, stop) == (begin, end):
                yield index, data
            elif stop is not None and end is not None and stop - start > end - begin:
                of_range = pieces.setdefault(index, {})
                of_range[begin] = data
                if len(of_range) == -(-(stop - start) // REQUEST_BYTES):
                    del pieces[index]
                    yield index, memoryview(b"".join(of_range[at] for at in sorted(of_range)))
            else:
                yield index, data[start - begin : None if stop is None else stop - begin]


class ReadAhead:
    """Reads an object in order, and ahead of its reader once that has read on for a while.

    A reader may step back a little, as to the beginning of a record that a block cut off.
    """

    def __init__(self, read: Callable[[int, int], memoryview], size_bytes: int) -> None:
        """`read`: returns the bytes start:stop."""
        self._read = read
        self._size_bytes = size_bytes
        self._recent: deque[tuple[int, memoryview]] = deque(maxlen=2)  # with their starts
        self._window = 0
        self._pieces: deque[_Piece] = deque()
        _readers.add(self)

    @property
    def byte_count(self) -> int:
        """How much is read ahead."""
        return sum(stop - start for start, stop, _ in list(self._pieces))

    def read(self, start: int, stop: int) -> memoryview:
        """Return some of the bytes start:stop, at least one unless the object ends before."""
        stop = min(stop, self._size_bytes)
        if start >= stop:
            return memoryview(b"")
        for begin, data in self._recent:
            if begin <= start < begin + len(data):
                return data[start - begin : stop - begin]
        if self._recent and start == self._recent[-1][0] + len(self._recent[-1][1]):
            data = self._next(start)
        else:
            self.close()
            self._recent.clear()
            data = self._read(start, stop)
        self._recent.append((start, data))
        return data[: stop - start]

    def _next(self, start: int) -> memoryview:
        """Return the next piece, and read more ahead."""
        self._window = max(_FIRST_AHEAD_BYTES, 2 * self._window)
        if not self._pieces:
            self._fill(start)
        piece = self._pieces.popleft()
        self._fill(piece.stop)
        return piece.data.result()

    def close(self) -> None:
        """Cancel what is read ahead."""
        while self._pieces:
            self._pieces.popleft().data.cancel()
        self._window = 0

    def _fill(self, start: int) -> None:
        """Read ahead from the last piece that is read ahead, or from `start`."""
        start = self._pieces[-1].stop if self._pieces else start
        of_others = sum(reader.byte_count for reader in list(_readers) if reader is not self)
        self._window = min(self._window, max(REQUEST_BYTES, _AHEAD_BYTES - of_others))
        while start < self._size_bytes and self.byte_count + REQUEST_BYTES <= self._window:
            stop = min(start + REQUEST_BYTES, self._size_bytes)
            self._pieces.append(_Piece(start, stop, read_later(self._read, start, stop)))
            start = stop


class _Piece(NamedTuple):
    start: int
    stop: int
    data: Future[memoryview]


_readers: weakref.WeakSet[ReadAhead] = weakref.WeakSet()
_pool: tuple[int, ThreadPoolExecutor] | None = None
_lock = threading.Lock()


def read_later(read: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Call a function that reads in a thread of this process."""
    global _pool  # noqa: PLW0603 - one for each process
    with _lock:
        if _pool is None or _pool[0] != os.getpid():  # threads are not forked
            _pool = os.getpid(), ThreadPoolExecutor(_THREAD_COUNT, "recordsmith-read")
        return _pool[1].submit(read, *arguments)


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
