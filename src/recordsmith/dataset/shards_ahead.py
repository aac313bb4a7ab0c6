"""Reads shards in order, and begins the next ones meanwhile where reading takes requests."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import Generic, Protocol, TypeVar

from recordsmith.stores import Location
from recordsmith.threads import stoppable_pool, wait_for
from recordsmith.wire import RecordBlock
from recordsmith.work import thread_count


class _Shard(Protocol):
    @property
    def location(self) -> Location: ...

    def blocks(self) -> Iterator[RecordBlock]: ...


AnyShard = TypeVar("AnyShard", bound=_Shard)


def blocks_of(shards: Sequence[AnyShard]) -> Iterator[tuple[AnyShard, RecordBlock]]:
    """Yield the blocks of shards in order, each with its shard.

    Over a network, the first blocks of the next shards are read meanwhile: of twice as many after
    each shard that was read to its end, so that reading only the beginning costs no more.
    """
    if len(shards) < 3 or not shards[0].location.store.is_remote:
        for shard in shards:
            for block in shard.blocks():
                yield shard, block
        return
    yield from _read_ahead(shards)


def reading_threads(threads: int | None, shards: Sequence[_Shard]) -> int:
    """Return the number of threads in which a job reads shards: see `thread_count`.

    Over a network, most of them wait, so that there are as many as requests at the same time.
    """
    stores = {id(shard.location.store): shard.location.store for shard in shards}.values()
    most = max((store.concurrency for store in stores), default=1)
    return max(thread_count(None), most) if threads is None else thread_count(threads)


def _read_ahead(shards: Sequence[AnyShard]) -> Generator[tuple[AnyShard, RecordBlock]]:
    most = shards[0].location.store.concurrency
    process = os.getpid()
    stopping = threading.Event()
    pool = stoppable_pool(most, stopping)
    rest = iter(shards)
    begun = deque([_Begun(next(rest))])
    ahead = 1
    try:
        while begun:
            yield from begun.popleft().blocks()
            if os.getpid() != process:  # forked: the threads exist in the parent only
                begun = deque(map(_Begun, [*(waiting.shard for waiting in begun), *rest]))
            else:
                begun += [_Begun(shard, pool) for shard in islice(rest, ahead - len(begun))]
                ahead = min(most, 2 * ahead)
    finally:
        if os.getpid() == process:
            stopping.set()
            pool.shutdown(cancel_futures=True)
            for waiting in begun:
                waiting.close()


class _Begun(Generic[AnyShard]):
    """A shard whose first block is read, in a thread if there is a pool."""

    def __init__(self, shard: AnyShard, pool: ThreadPoolExecutor | None = None) -> None:
        self.shard = shard
        self._blocks = shard.blocks()
        self._first: Future[list[RecordBlock]] | None = None
        if pool is not None:
            self._first = pool.submit(lambda: list(islice(self._blocks, 1)))

    def blocks(self) -> Iterator[tuple[AnyShard, RecordBlock]]:
        first = [] if self._first is None else wait_for(self._first)
        for block in chain(first, self._blocks):
            yield self.shard, block

    def close(self) -> None:
        """Close the file."""
        getattr(self._blocks, "close", bool)()
