"""Measure one way to load a dataset for some time.

Each measurement uses a new, endless loader. The warm-up is not counted: the first batch, and those
that are prefetched with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from recordsmith.errors import DataError
from recordsmith.loading import Loader, LoaderStats
from recordsmith.measuring.bench_report import Measured

_FIRST_BATCHES = 3
_UPDATE_SECONDS = 0.25
_WARM_UP_SHARE = 0.5  # maximum share of the time, if batches are slow


def load_for(
    seconds: float, make_loader: Callable[[], Loader], update: Callable[[Measured], None]
) -> tuple[Measured, dict[str, DataError]]:
    """Load for some time, with at least one warm-up batch and one measured batch.

    Args:
        make_loader: creates an endless loader.
        update: called regularly with the measurement so far.

    Returns:
        The measurement, and the errors of skipped records by message.
    """
    begun = time.perf_counter()
    with make_loader() as loader:
        batches = iter(loader)
        for _ in range(_FIRST_BATCHES):
            next(batches)
            if time.perf_counter() - begun > _WARM_UP_SHARE * seconds:
                break
        before, counted_from = loader.stats(), time.perf_counter()
        updated_at, cpu_from = counted_from, time.process_time()

        def measured(now: float) -> Measured:
            cpu_seconds = time.process_time() - cpu_from
            return _between(before, loader.stats(), now - counted_from, cpu_seconds)

        while True:
            next(batches)
            now = time.perf_counter()
            if now - begun >= seconds:
                break
            if now - updated_at >= _UPDATE_SECONDS:
                updated_at = now
                update(measured(now))
        return measured(now), {str(error): error for error in loader.skipped}


def _between(
    before: LoaderStats, after: LoaderStats, seconds: float, cpu_seconds: float
) -> Measured:
    return Measured(
        seconds=seconds,
        batch_count=after.batch_count - before.batch_count,
        record_count=after.record_count - before.record_count,
        byte_count=after.byte_count - before.byte_count,
        reading_seconds=after.reading_seconds - before.reading_seconds,
        decoding_seconds=after.decoding_seconds - before.decoding_seconds,
        idle_seconds=after.idle_seconds - before.idle_seconds,
        waited_seconds=after.waited_seconds - before.waited_seconds,
        cpu_seconds=cpu_seconds,
        image_pixel_count=after.image_pixel_count - before.image_pixel_count,
        decoded_pixel_count=after.decoded_pixel_count - before.decoded_pixel_count,
    )
