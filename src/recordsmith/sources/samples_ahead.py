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
from recordsmith.threads import stoppable_pool, wait_for

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
        self._most_bytes = _AHEAD_BYTES // users
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
        waiting: deque[tuple[Sample, Future[_WasRead]]] = deque()
        byte_count = 0
        try:
            for sample in samples:
                byte_count += sample.size_bytes
                waiting.append((sample, self._pool.submit(_read, self._reader, sample)))
                while len(waiting) > 2 * self._concurrency or byte_count > self._most_bytes:
                    byte_count -= waiting[0][0].size_bytes
                    yield _made(*waiting.popleft())
                    if not waiting:
                        break
            while waiting:
                yield _made(*waiting.popleft())
        finally:
            for _, future in waiting:
                future.cancel()


def concurrency_of(reader: object) -> int:
    """Return how many samples a reader should read at the same time; 1 for local files."""
    found = 1
    for value in vars(reader).values() if hasattr(reader, "__dict__") else ():
        if isinstance(value, Location):
            found = max(found, value.store.concurrency)
        elif value is not reader and hasattr(value, "read") and hasattr(value, "kinds"):
            found = max(found, concurrency_of(value))  # of a reader around another one
    return found


class _WasRead(NamedTuple):
    """What a reader returned or raised, and what it noted."""

    content: Content
    error: Exception | None
    notes: list[tuple[str, str]]


def _read(reader: SampleReader, sample: Sample) -> _WasRead:
    notes: list[tuple[str, str]] = []
    try:
        content = reader.read(sample, lambda what, where: notes.append((what, where)))
    except Exception as error:  # noqa: BLE001 - raised when the sample is needed
        return _WasRead(b"", error, notes)
    return _WasRead(content, None, notes)


def _made(sample: Sample, future: Future[_WasRead]) -> SampleToRead:
    def read(note: Note) -> Content:
        content, error, notes = wait_for(future)
        for what, where in notes:
            note(what, where)
        if error is not None:
            raise error
        return content

    return SampleToRead(sample, read)
