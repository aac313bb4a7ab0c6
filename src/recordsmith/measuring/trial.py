"""One way to load a dataset: how fast is it, for some time?

A new loader is made each time, and would go on for ever. What passes before its threads have
something to work on does not count: the first batch, and as many more as are made ahead of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from recordsmith.loading import Loader, LoaderStats
from recordsmith.measuring.report import Measured

_FIRST_BATCHES = 3
_TOLD_EVERY_SECONDS = 0.25
_WARM_UP_SHARE = 0.5  # of the time, where batches take long


def load_for(
    seconds: float, make_loader: Callable[[], Loader], tell: Callable[[Measured], None]
) -> tuple[Measured, dict[str, None]]:
    """Load for some time; a first batch and one that is measured at least.

    Args:
        make_loader: makes one that goes on for ever.
        tell: told now and then what was measured so far.

    Returns:
        What was measured; and in words what was wrong with records that were skipped.
    """
    begun = time.perf_counter()
    with make_loader() as loader:
        batches = iter(loader)
        for _ in range(_FIRST_BATCHES):
            next(batches)
            if time.perf_counter() - begun > _WARM_UP_SHARE * seconds:
                break
        before, counted_from = loader.stats(), time.perf_counter()
        told_at = counted_from
        while True:
            next(batches)
            now = time.perf_counter()
            if now - begun >= seconds:
                break
            if now - told_at >= _TOLD_EVERY_SECONDS:
                told_at = now
                tell(_between(before, loader.stats(), now - counted_from))
        measured = _between(before, loader.stats(), now - counted_from)
        return measured, dict.fromkeys(map(str, loader.skipped))


def _between(before: LoaderStats, after: LoaderStats, seconds: float) -> Measured:
    return Measured(
        seconds=seconds,
        batch_count=after.batch_count - before.batch_count,
        record_count=after.record_count - before.record_count,
        byte_count=after.byte_count - before.byte_count,
        reading_seconds=after.reading_seconds - before.reading_seconds,
        decoding_seconds=after.decoding_seconds - before.decoding_seconds,
        idle_seconds=after.idle_seconds - before.idle_seconds,
        waited_seconds=after.waited_seconds - before.waited_seconds,
    )
