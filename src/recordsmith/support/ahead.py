"""Runs calls in a pool before their results are needed, and yields them in the order of the items.

The caller limits how many calls begin ahead: by their number, by bytes, or by how far it has read.
Four others run ahead in ways of their own, and say why: `stores/parallel_reads`,
`loading/batches/ahead_reader`, `loading/batches/job_runner` and `engines/cluster`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from recordsmith.support.threads import wait_for

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_NO_ITEM: Any = object()


def begin_ahead(
    pool: Executor,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    has_room: Callable[[Sized], bool],
) -> Generator[tuple[_Item, Future[_Result]]]:
    """Yield each item, in order, with the future of its call.

    Ends when no item is left, or no call has begun and there is no room for one. When the generator
    is closed, calls that have not begun are cancelled.

    Args:
        has_room: whether another call may begin; called with those that have begun.
    """
    process = os.getpid()
    rest = iter(items)
    begun: deque[tuple[_Item, Future[_Result]]] = deque()
    try:
        while True:
            while has_room(begun) and (item := next(rest, _NO_ITEM)) is not _NO_ITEM:
                begun.append((item, pool.submit(function, item)))
            if not begun:
                return
            yield begun.popleft()
    finally:
        if os.getpid() == process:  # else forked: a thread may have held the lock of a future
            for _, future in begun:
                future.cancel()


def map_ahead(
    pool: Executor, function: Callable[[_Item], _Result], items: Iterable[_Item], ahead: int
) -> Generator[_Result]:
    """Yield the results of calls in order, with at most `ahead` in progress.

    When the generator is closed, calls that have not begun are cancelled.
    """
    for _, future in begin_ahead(pool, function, items, lambda begun: len(begun) < ahead):
        yield wait_for(future)
