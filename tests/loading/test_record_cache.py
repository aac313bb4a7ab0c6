"""What the cache of records takes in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np

from recordsmith.loading.record_cache import RecordCache


def test_small_records_take_no_more_than_the_limit() -> None:
    cache = RecordCache(1 << 20)
    tracemalloc.start()
    try:
        for record in range(20_000):
            for _ in range(2):  # so that records are worth keeping
                if cache.get(record, 8) is None:
                    cache.keep(record, np.full(1, record))
        assert tracemalloc.get_traced_memory()[0] < 1.25 * (1 << 20)
    finally:
        tracemalloc.stop()
    kept = cache.get(19_999, 8)
    assert kept is not None
    assert kept.tolist() == [19_999]
    assert cache.get(0, 8) is None
