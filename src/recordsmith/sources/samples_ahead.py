"""Reads samples before they are needed, many at the same time, where each read is a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Self, TypeAlias

from recordsmith.sources.samples import Content, Note, Sample, SampleReader
from recordsmith.stores import Location
from recordsmith.support.ahead import begin_ahead
from recordsmith.support.threads import stoppable_pool, wait_for

_AHEAD_BYTES = 64 << 20
"""The most that all users of a `SamplesAhead` together read ahead, plus one sample each."""

Read: TypeAlias = Callable[[Note], Content]
"""Returns the content of a sample; raises what its reader raises."""


_Notes: TypeAlias = list[tuple[str, str]]


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
        begun_bytes = 0

        def has_room(begun: Sized) -> bool:
            return len(begun) <= 2 * self._concurrency and begun_bytes <= self._max_bytes

        def with_notes() -> Iterator[tuple[Sample, _Notes]]:
            nonlocal begun_bytes
            for sample in samples:
                begun_bytes += sample.size_bytes
                yield sample, []

        for (sample, notes), future in begin_ahead(self._pool, self._read, with_notes(), has_room):
            begun_bytes -= sample.size_bytes
            yield SampleToRead(sample, partial(_result, future, notes))

    def _read(self, sample_and_notes: tuple[Sample, _Notes]) -> Content:
        sample, notes = sample_and_notes
        return self._reader.read(sample, lambda what, where: notes.append((what, where)))


def _result(future: Future[Content], notes: _Notes, note: Note) -> Content:
    """Return or raise what another thread has read, and pass on what it noted."""
    try:
        return wait_for(future)
    finally:
        for what, where in notes:
            note(what, where)


def concurrency_of(reader: object) -> int:
    """Return how many samples a reader should read at the same time; 1 for local files."""
    concurrency = 1
    for value in vars(reader).values() if hasattr(reader, "__dict__") else ():
        if isinstance(value, Location):
            concurrency = max(concurrency, value.store.concurrency)
        elif value is not reader and hasattr(value, "read") and hasattr(value, "kinds"):
            concurrency = max(concurrency, concurrency_of(value))  # of a reader around another one
    return concurrency
