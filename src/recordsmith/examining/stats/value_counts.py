"""Counts numbers: exactly while there are few different ones, otherwise with sketches.

Up to EXACT_DISTINCT different values, counts, top values and quantiles are exact. Beyond that,
three sketches take over. Accepts only finite numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.pending import Pending
from recordsmith.examining.stats.sketches import (
    DistinctHashes,
    FrequentKeys,
    Keys,
    Quantiles,
    add_counted,
    count_sorted,
    hash_keys,
    most_frequent,
)

EXACT_DISTINCT = 100_000
"""How many different values of a feature are counted exactly."""

FREQUENT_COUNTERS = 4096
QUANTILE_LENGTH = 4096
_PENDING = 1 << 15


class ValueCounts:
    """Counts finite numbers of one dtype: int64 or float32."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        self._keys: Keys = np.empty(0, dtype)
        self._counts: Int64Array = np.empty(0, np.int64)
        self._sketches: tuple[DistinctHashes, FrequentKeys, Quantiles] | None = None
        self._pending: Pending[Keys] = Pending(_PENDING)

    def add(self, values: Keys) -> None:
        """Add values in any order. Do not change the array afterwards."""
        if self._pending.add(values):
            self._settle()

    def add_repeated(self, value: float, count: int) -> None:
        """Add one value `count` times."""
        self._add_counted(np.array([value], self._dtype), np.array([count]))

    def merge(self, other: ValueCounts) -> None:
        """Add everything that another survey collected."""
        self._settle()
        other._settle()
        if other._sketches is None:
            self._add_counted(other._keys, other._counts)
            return
        sketches = self._sketches or self._begin_sketches()
        for mine, others in zip(sketches, other._sketches, strict=True):
            mine.merge(others)  # type: ignore[attr-defined]

    def _settle(self) -> None:
        values = self._pending.take()
        if values is not None:
            self._add_counted(*count_sorted(np.sort(values)))

    def _add_counted(self, keys: Keys, counts: Int64Array) -> None:
        if self._sketches is not None:
            distinct, frequent, quantiles = self._sketches
            distinct.add(hash_keys(keys))
            frequent.add(keys, counts)
            quantiles.add_counted(keys, counts)
            return
        self._keys, self._counts = add_counted(self._keys, self._counts, keys, counts)
        if len(self._keys) > EXACT_DISTINCT:
            self._begin_sketches()

    def _begin_sketches(self) -> tuple[DistinctHashes, FrequentKeys, Quantiles]:
        self._sketches = (
            DistinctHashes(EXACT_DISTINCT),
            FrequentKeys(FREQUENT_COUNTERS, self._dtype),
            Quantiles(QUANTILE_LENGTH, self._dtype),
        )
        self._add_counted(self._keys, self._counts)
        self._keys, self._counts = self._keys[:0], self._counts[:0]
        return self._sketches

    def distinct(self) -> tuple[int, float]:
        """Return the number of different values, and its relative error."""
        self._settle()
        if self._sketches is None:
            return len(self._keys), 0.0
        return self._sketches[0].count, self._sketches[0].error

    def top(self, most: int) -> tuple[list[tuple[Any, int]], int]:
        """Return the most frequent values with their counts, and by how much these may be too low.

        Any other value occurs at most as often as the last one, or, without a counter, at most as
        often as the error.
        """
        self._settle()
        keys, counts, error = self._keys, self._counts, 0
        if self._sketches is not None:
            frequent = self._sketches[1]
            keys, counts, error = frequent.keys, frequent.counts, frequent.error
        places = most_frequent(counts, most)
        return list(zip(keys[places].tolist(), counts[places].tolist(), strict=True)), error

    def weighted(self) -> tuple[Keys, Int64Array, int]:
        """Return distinct values in order, their weights, and the error in ranks."""
        self._settle()
        if self._sketches is None:
            return self._keys, self._counts, 0
        quantiles = self._sketches[2]
        return *quantiles.weighted(), quantiles.rank_error
