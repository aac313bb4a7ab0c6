"""Reads samples before they are needed, many at the same time, where each read is a request."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from recordsmith.sources.source import Content, Note, Sample, SampleReader
from recordsmith.stores import Location
from recordsmith.support.threads import stoppable_pool, wait_for

if TYPE_CHECKING:
    from typing_extensions import Self

_AHEAD_BYTES = 64 << 20
"""The most that all users of a `SamplesAhead` together read ahead, plus one sample each."""

Read: TypeAlias = Callable[[Note], Content]
"""Returns the content of a sample; raises what its reader raises."""


class SampleToRead(NamedTuple):
    """A sample, and how to read it; over a network, that has begun."""

    sample: Sample
    read: Read


class SamplesAhead:
    """Reads the samples of a reader in the order in which they are needed. A context manager.

    Local files are read when they are needed, in the thread that needs them.
    """

    def __init__(self, reader: SampleReader, users: int) -> None:
        """`users`: how many threads may call `each` at the same time."""
        self._reader = reader
        self._concurrency = concurrency_of(reader)
        self._max_bytes = _AHEAD_BYTES // users
        self._pool: ThreadPoolExecutor | None = None
        self._stopping = threading.Event()

    def __enter__(self) -> Self:
        if self._concurrency > 1:
            self._pool = stoppable_pool(self._concurrency, self._stopping)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._stopping.set()
            self._pool.shutdown(cancel_futures=True)

    def each(self, samples: Iterable[Sample]) -> Generator[SampleToRead]:
        """Yield samples in order. Close the generator if not all of them are needed."""
        if self._pool is None:
            for sample in samples:
                yield SampleToRead(sample, partial(self._reader.read, sample))
            return
        waiting: deque[tuple[SampleToRead, Future[Content]]] = deque()
        byte_count = 0
        try:
            for sample in samples:
                byte_count += sample.size_bytes
                waiting.append(self._begun(self._pool, sample))
                while waiting and (
                    len(waiting) > 2 * self._concurrency or byte_count > self._max_bytes
                ):
                    item, _ = waiting.popleft()
                    byte_count -= item.sample.size_bytes
                    yield item
            while waiting:
                yield waiting.popleft()[0]
        finally:
            for _, future in waiting:
                future.cancel()

    def _begun(
        self, pool: ThreadPoolExecutor, sample: Sample
    ) -> tuple[SampleToRead, Future[Content]]:
        """Read a sample in another thread; what it notes or raises is kept until it is needed."""
        notes: list[tuple[str, str]] = []
        future = pool.submit(
            self._reader.read, sample, lambda what, where: notes.append((what, where))
        )

        def read(note: Note) -> Content:
            try:
                return wait_for(future)
            finally:
                for what, where in notes:
                    note(what, where)

        return SampleToRead(sample, read), future


def concurrency_of(reader: object) -> int:
    """Return how many samples a reader should read at the same time; 1 for local files."""
    concurrency = 1
    for value in vars(reader).values() if hasattr(reader, "__dict__") else ():
        if isinstance(value, Location):
            concurrency = max(concurrency, value.store.concurrency)
        elif value is not reader and hasattr(value, "read") and hasattr(value, "kinds"):
            concurrency = max(concurrency, concurrency_of(value))  # of a reader around another one
    return concurrency
