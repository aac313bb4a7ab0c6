"""Reads many ranges at the same time, and ahead of a reader, where reads are requests."""

from __future__ import annotations

import errno
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby, islice
from queue import Empty, SimpleQueue
from typing import NamedTuple

from recordsmith.support.errors import FileAccessError
from recordsmith.support.threads import (
    check_stopping,
    renew_in_children,
    request_pool,
    submit_request,
    wait_for,
)

REQUEST_BYTES = 2 << 20
"""The most that one request reads: its transfer takes as long as the way to the server and back,
and those that are under way at the same time fit into memory."""

GAP_BYTES = 128 << 10
"""Ranges with fewer bytes between them are read together: the bytes cost less than a request."""

_RANGES_AT_ONCE = 4096  # that are sorted and merged together
_AHEAD_BYTES = 24 << 20
"""The most that all readers of a process read ahead together; each may read one request ahead."""

_WAKING_SECONDS = 0.02
_WAKING_BYTES = REQUEST_BYTES
_FULL_BYTES = 4 * REQUEST_BYTES  # of responses that wait for the reader
_MAX_MISSING_BYTES = 64 << 20
"""A range that ends so far behind the end of its object is an error: each part is a request."""

_PIECE_BYTES = 1 << 20
"""What one request reads ahead: with larger ones, more must be under way for the same rate, as none
of it can be used before its last byte is there. Smaller ones cost more CPU time (measured)."""

_FIRST_AHEAD_BYTES = 4 * _PIECE_BYTES


class Range(NamedTuple):
    """Some bytes of an object, of a version or of any; `stop` None means its end."""

    key: str
    start: int = 0
    stop: int | None = None
    version: str | None = None


class Request(NamedTuple):
    """A range that is read at once.

    parts: the ranges that it is for, with their indexes: they lie in it, or it in the only one.
    """

    to_read: Range
    parts: list[tuple[int, Range]]


def requests_for(ranges: Iterable[tuple[int, Range]]) -> Iterator[Request]:
    """Yield requests that read some ranges, each with an index.

    A longer range than REQUEST_BYTES is split, unless its end is unknown.
    """
    for (key, _), of_object in groupby(
        sorted(ranges, key=_sort_key), lambda item: _sort_key(item)[:2]
    ):
        parts: list[tuple[int, Range]] = []
        begin = end = 0
        for index, requested in of_object:
            start, stop, version = requested[1:]
            if stop is None:
                yield Request(requested, [(index, requested)])
                continue
            if stop - start > REQUEST_BYTES:
                for at in range(start, stop, REQUEST_BYTES):
                    piece = Range(key, at, min(at + REQUEST_BYTES, stop), version)
                    yield Request(piece, [(index, requested)])
                continue
            is_near = start <= end + GAP_BYTES and max(end, stop) - begin <= REQUEST_BYTES
            if parts and not is_near:
                yield Request(Range(key, begin, end, parts[0][1].version), parts)
                parts = []
            if not parts:
                begin = end = start
            parts.append((index, requested))
            end = max(end, stop)
        if parts:
            yield Request(Range(key, begin, end, parts[0][1].version), parts)


def _sort_key(item: tuple[int, Range]) -> tuple[str, str, int]:
    _, (key, start, _, version) = item
    return key, version or "", start


def read_in_parallel(
    read: Callable[..., memoryview], concurrency: int, ranges: Iterable[Range]
) -> Iterator[tuple[int, memoryview]]:
    """Yield the index and the bytes of each range, as `Store.read_many`.

    `read`: `Store.read_view`.
    """
    numbered = iter(enumerate(ranges))
    for group in iter(lambda: list(islice(numbered, _RANGES_AT_ONCE)), []):
        responses = _Responses(read, concurrency, requests_for(group))
        pieces: dict[int, dict[int, memoryview]] = {}  # of long ranges, by index and start
        try:
            for request, data in responses:
                yield from _parts_of(request, data, pieces)
        finally:
            responses.close()


class _Responses:
    """The responses to requests, in the order in which they arrive.

    Each thread makes one request after the other, and the reader is woken for several responses: to
    be woken for each costs as much as half a request (measured). A thread goes when much waits for
    the reader, which begins others when it comes back. Not `begin_ahead`: no response waits for
    a slower one before it.
    """

    def __init__(
        self, read: Callable[..., memoryview], concurrency: int, requests: Iterable[Request]
    ) -> None:
        self._read_view = read
        self._concurrency = concurrency
        self._requests = iter(requests)  # of a range that is as long as its server claims
        self._waiting: deque[Request] = deque()  # the next of them
        self._open_count = 0  # taken, and not yet returned
        self._lock = threading.Lock()
        self._fill()
        self._ready: list[tuple[Request, memoryview | BaseException]] = []
        self._ready_bytes = 0
        self._thread_count = 0
        self._awaited = 0  # responses that wake the reader; 0 if it does not wait
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def __iter__(self) -> Iterator[tuple[Request, memoryview | BaseException]]:
        while self._waiting or self._open_count:
            ready = self._begin_more()
            if not ready:
                check_stopping()
                with suppress(Empty):
                    self._wakes.get(timeout=_WAKING_SECONDS)
            yield from ready

    def close(self) -> None:
        with self._lock:
            self._requests = iter(())
            self._waiting.clear()

    def _fill(self) -> None:
        """Keep as many requests waiting as are made at the same time. Under the lock."""
        missing = self._concurrency - len(self._waiting)
        self._waiting.extend(islice(self._requests, max(0, missing)))

    def _take(self) -> Request | None:
        """Return the next request for a thread; None if there is none, so that it goes."""
        with self._lock:
            if not self._waiting:
                self._thread_count -= 1
                return None
            request = self._waiting.popleft()
            self._open_count += 1
            self._fill()
            return request

    def _begin_more(self) -> list[tuple[Request, memoryview | BaseException]]:
        """Return what has arrived, and begin threads for what waits."""
        most = self._concurrency
        with self._lock:
            ready, self._ready, self._ready_bytes = self._ready, [], 0
            count = max(0, min(most, len(self._waiting)) - self._thread_count)
            self._thread_count += count
            self._open_count -= len(ready)
            left = self._open_count + len(self._waiting)
            self._awaited = 0 if ready else min(left, max(1, most // 2))
        for _ in range(count):
            request_pool.submit(_Responses._read, self)
        return ready

    def _read(self) -> None:
        """Make requests until none is left, or much waits for the reader."""
        is_full = False
        while not is_full and (request := self._take()) is not None:
            response: memoryview | BaseException
            try:
                response = self._read_view(*request.to_read)
                size = len(response)
            except BaseException as error:  # noqa: BLE001 - raised where it is used
                response, size = error, _WAKING_BYTES
            is_full = self._add(request, response, size)

    def _add(self, request: Request, response: memoryview | BaseException, size: int) -> bool:
        """Add a response; return whether so much waits for the reader that this thread goes."""
        with self._lock:
            self._ready.append((request, response))
            self._ready_bytes += size
            count = len(self._ready)
            if self._awaited and (count >= self._awaited or self._ready_bytes >= _WAKING_BYTES):
                self._awaited = 0
                self._wakes.put(None)
            is_full = count >= self._concurrency or self._ready_bytes >= _FULL_BYTES
            self._thread_count -= is_full  # now, so that the reader begins another one
            return is_full


def _parts_of(
    request: Request, data: memoryview | BaseException, pieces: dict[int, dict[int, memoryview]]
) -> Iterator[tuple[int, memoryview]]:
    """Yield the ranges that are complete with the response to a request."""
    if isinstance(data, BaseException):
        raise data
    (key, begin, end, _), parts = request
    for index, (_, start, stop, _) in parts:
        if (start, stop) == (begin, end):
            yield index, data
        elif stop is not None and end is not None and stop - start > end - begin:
            of_range = pieces.setdefault(index, {})
            of_range[begin] = data
            if not data and begin - start >= _MAX_MISSING_BYTES:
                raise FileAccessError(
                    errno.EIO, f"it ends before byte {begin:,}, against its size", key
                )
            if len(of_range) == -(-(stop - start) // REQUEST_BYTES):
                del pieces[index]
                yield index, memoryview(b"".join(of_range[at] for at in sorted(of_range)))
        else:
            yield index, data[start - begin : None if stop is None else stop - begin]


class ReadAhead:
    """Reads an object in order, and ahead of its reader once that has read on for a while.

    A reader may step back a little, as to the beginning of a record that a block cut off. Not
    `begin_ahead`: all readers of a process share one limit, and memory is used again.
    """

    def __init__(self, read: Callable[..., memoryview], size_bytes: int) -> None:
        """`read`: called as `read(start, stop, allocate)`, as `Store.read_view`."""
        self._read = read
        self._size_bytes = size_bytes
        self._recent: deque[tuple[int, memoryview]] = deque()  # with their starts
        self._window = 0
        self._pieces: deque[_Piece] = deque()
        self._unused: list[_Memory] = []
        _readers.add(self)
        renew_in_children(self)

    @property
    def byte_count(self) -> int:
        """How much is read ahead."""
        return sum(stop - start for start, stop, _ in list(self._pieces))

    def read(self, start: int, stop: int) -> memoryview:
        """Return some of the bytes start:stop, at least one unless the object ends before.

        They are valid until the next call.
        """
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
            data = self._read(start, stop)
        self._recent.append((start, data))
        if len(self._recent) > _RECENT_COUNT and isinstance(
            memory := self._recent.popleft()[1].obj, _Memory
        ):
            self._unused.append(memory)
        return data[: stop - start]

    def begin_with(self, data: bytes) -> None:
        """Take the first bytes of the object, which were read otherwise."""
        self.close()
        self._recent.append((0, memoryview(data)))

    def _next(self, start: int) -> memoryview:
        """Return the next piece, and read more ahead."""
        self._window = max(_FIRST_AHEAD_BYTES, 2 * self._window)
        if not self._pieces:
            self._fill(start)
        piece = self._pieces.popleft()
        self._fill(piece.stop)
        try:
            data = wait_for(piece.data)
        except BaseException:
            self.close()  # the next read starts over
            raise
        if len(data) < piece.stop - piece.start:
            self._cancel()  # what is read ahead does not follow on it
        return data

    def close(self) -> None:
        """Cancel what is read ahead, and forget what was read."""
        self._cancel()
        self._recent.clear()
        self._unused.clear()

    def _cancel(self) -> None:
        while self._pieces:
            self._pieces.popleft().data.cancel()
        self._window = 0

    def renew_lock(self) -> None:
        """Forget what a thread of the parent reads."""
        self._pieces.clear()
        self.close()

    def _fill(self, start: int) -> None:
        """Read ahead from the last piece that is read ahead, or from `start`."""
        start = self._pieces[-1].stop if self._pieces else start
        of_others = sum(reader.byte_count for reader in list(_readers) if reader is not self)
        self._window = min(self._window, max(_PIECE_BYTES, _AHEAD_BYTES - of_others))
        while start < self._size_bytes and self.byte_count + _PIECE_BYTES <= self._window:
            stop = min(start + _PIECE_BYTES, self._size_bytes)
            data = submit_request(self._read, start, stop, self._allocate)
            self._pieces.append(_Piece(start, stop, data))
            start = stop

    def _allocate(self) -> memoryview:
        """Return memory for a piece, in a thread that reads.

        Memory that such a thread has freed would stay with it.
        """
        with suppress(IndexError):
            return memoryview(self._unused.pop())
        return memoryview(_Memory(_PIECE_BYTES))


class _Piece(NamedTuple):
    start: int
    stop: int
    data: Future[memoryview]


class _Memory(bytearray):
    """Memory of a piece, which the next one uses again."""


_RECENT_COUNT = 2

_readers: weakref.WeakSet[ReadAhead] = weakref.WeakSet()
