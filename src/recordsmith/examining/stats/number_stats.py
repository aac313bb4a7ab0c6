"""Statistics of numbers: range, mean, standard deviation, quantiles, top values, NaN.

Range, counts and mean are exact: int64 sums use Python integers, float sums float64. The standard
deviation is combined from blocks around the mean of each (Chan, Golub and LeVeque, 1979), so that
large numbers close together keep their precision. Up to EXACT_DISTINCT different values, the other
figures are exact as well. Beyond that, three sketches take over.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.sketches import (
    DistinctHashes,
    FrequentKeys,
    Keys,
    Pending,
    Quantiles,
    count_sorted,
    hash_keys,
)
from recordsmith.summaries import Report

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TOP_VALUES = 10

EXACT_DISTINCT = 100_000
"""How many different values of a feature are counted exactly."""

FREQUENT_COUNTERS = 4096
QUANTILE_LENGTH = 4096
_BINS = 20
_PENDING = 1 << 15


class ValueCount(NamedTuple):
    """A number, and how often it occurs."""

    value: float
    count: int  # type: ignore[assignment] # hides tuple.count


@dataclass(frozen=True, repr=False)
class NumberStats(Report):
    """Statistics of numbers; NaN and infinite numbers are only counted.

    count: number of all numbers.
    nan, infinite, zero, negative: number of such numbers; infinite of either sign; negative without
        minus infinity.
    min, max, mean, std: None without finite numbers. std divides by their count.
    distinct: number of different finite numbers.
    distinct_error: relative error of `distinct`; 0.0 if exact.
    top: the most frequent numbers with their counts.
    top_error: by how much these counts may be too low.
    quantiles: quantiles by share; 0.5 is the median.
    rank_error: error of quantiles as a share of the numbers; 0.0 if exact.
    edges, histogram: edges of bins of equal width, and the count in each bin: edges[i] <= number <
        edges[i + 1]; the last bin includes its upper edge.
    """

    count: int
    nan: int = 0
    infinite: int = 0
    zero: int = 0
    negative: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    distinct: int = 0
    distinct_error: float = 0.0
    top: tuple[ValueCount, ...] = ()
    top_error: int = 0
    quantiles: Mapping[float, float] = field(default_factory=dict)
    rank_error: float = 0.0
    edges: tuple[float, ...] = ()
    histogram: tuple[int, ...] = ()


class NumberSurvey:
    """Collects statistics of numbers of one dtype."""

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        """`dtype`: int64 or float32."""
        self._dtype = np.dtype(dtype)
        self._is_integer = self._dtype.kind == "i"
        self._counts: Any = Counter(count=0)  # the counts of NumberStats by name
        self._finite: int = 0
        self._min: Any = None
        self._max: Any = None
        self._sum: Any = 0  # an int or a float
        self._squares = 0.0  # of the distances from the mean
        self._exact = FrequentKeys(sys.maxsize, dtype)
        self._sketches: tuple[DistinctHashes, FrequentKeys, Quantiles] | None = None
        self._pending: Pending[Keys] = Pending(_PENDING)

    def add(self, values: Keys) -> None:
        """Add numbers of the dtype. Do not change the array afterwards."""
        if self._pending.add(values):
            self._settle()

    def _settle(self) -> None:
        values = self._pending.take()
        if values is None:
            return
        self._counts["count"] += len(values)
        if not self._is_integer:
            values = self._only_finite(values)
        if not len(values):
            return
        if values.min() == values.max():  # sizes of lists are often equal
            keys, counts = values[:1], np.array([len(values)])
        else:
            values.sort()
            keys, counts = count_sorted(values)
        self._add_finite(keys, counts)

    def add_repeated(self, value: float, count: int) -> None:
        """Add a finite number `count` times; nothing if it is not positive."""
        if count > 0:
            self._counts["count"] += count
            self._add_finite(np.array([value], self._dtype), np.array([count]))

    def _add_finite(self, keys: Keys, counts: Int64Array) -> None:
        self._add_moments(keys, counts, int(counts.sum()))
        at = int(np.searchsorted(keys, 0))
        self._counts["negative"] += int(counts[:at].sum())
        if at < len(keys) and keys[at] == 0:
            self._counts["zero"] += int(counts[at])
        self._add_counted(keys, counts)

    def _only_finite(self, values: Keys) -> Keys:
        is_finite = np.isfinite(values)
        if not is_finite.all():
            nan = int(np.count_nonzero(np.isnan(values)))
            values = values[is_finite]
            self._counts.update(nan=nan, infinite=len(is_finite) - nan - len(values))
        return values + np.float32(0)  # minus zero is zero

    def _add_moments(self, keys: Keys, counts: Int64Array, count: int) -> None:
        low, high = keys[0].item(), keys[-1].item()
        total: Any
        if self._is_integer:  # distances from the minimum always fit 64 bits
            above = (keys - keys[0]).view(np.uint64)
            total = low * count + _exact_sum(above, counts)
            distances = above.astype(np.float64)
        else:
            distances = keys.astype(np.float64)
            total = float((distances * counts).sum())
        distances -= (distances * counts).sum() / count
        np.square(distances, out=distances)  # not a dot product: BLAS would start threads
        self._combine(count, low, high, total, float((distances * counts).sum()))

    def _combine(self, count: int, low: Any, high: Any, total: Any, squares: float) -> None:
        if self._finite:
            if self._is_integer:
                across = total * self._finite - self._sum * count
                step = across / (self._finite * count)
            else:
                step = total / count - self._sum / self._finite
            squares += step * step * (self._finite * count / (self._finite + count))
        self._squares += squares
        self._finite += count
        self._sum += total
        self._min = low if self._min is None else min(low, self._min)
        self._max = high if self._max is None else max(high, self._max)

    def _add_counted(self, keys: Keys, counts: Int64Array) -> None:
        if self._sketches is not None:
            distinct, frequent, quantiles = self._sketches
            distinct.add(hash_keys(keys))
            frequent.add(keys, counts)
            quantiles.add_counted(keys, counts)
            return
        self._exact.add(keys, counts)
        if len(self._exact.keys) > EXACT_DISTINCT:
            self._begin_sketches()

    def _begin_sketches(self) -> tuple[DistinctHashes, FrequentKeys, Quantiles]:
        self._sketches = (
            DistinctHashes(EXACT_DISTINCT),
            FrequentKeys(FREQUENT_COUNTERS, self._dtype),
            Quantiles(QUANTILE_LENGTH, self._dtype),
        )
        self._add_counted(self._exact.keys, self._exact.counts)
        self._exact = FrequentKeys(0, self._dtype)
        return self._sketches

    def merge(self, other: NumberSurvey) -> None:
        """Add everything that another survey of the same dtype collected."""
        self._settle()
        other._settle()
        self._counts.update(other._counts)
        if other._finite:
            self._combine(other._finite, other._min, other._max, other._sum, other._squares)
        if other._sketches is None:
            self._add_counted(other._exact.keys, other._exact.counts)
            return
        sketches = self._sketches or self._begin_sketches()
        for mine, others in zip(sketches, other._sketches, strict=True):
            mine.merge(others)  # type: ignore[attr-defined]

    def top(self, most: int) -> tuple[tuple[ValueCount, ...], int]:
        """Return the most frequent finite numbers, and by how much their counts may be too low.

        Any other number occurs at most as often as the last one, or, without a counter, at most as
        often as the error.
        """
        self._settle()
        frequent = self._exact if self._sketches is None else self._sketches[1]
        keys, counts = frequent.top(most)
        return tuple(map(ValueCount, keys.tolist(), counts.tolist())), frequent.error

    def finish(self) -> NumberStats:
        """Return the statistics of everything added so far."""
        self._settle()
        if not self._finite:
            return NumberStats(**self._counts)
        keys, weights = self._exact.keys, self._exact.counts
        distinct, distinct_error, rank_error = len(keys), 0.0, 0
        if self._sketches is not None:
            hashes, _, sketch = self._sketches
            distinct, distinct_error = hashes.count, hashes.error
            keys, weights = sketch.weighted()
            rank_error = sketch.rank_error
        top, top_error = self.top(TOP_VALUES)
        ranks = np.cumsum(weights)
        edges, histogram = _histogram(keys, weights, self._min, self._max)
        return NumberStats(
            **self._counts,
            min=self._min,
            max=self._max,
            mean=self._sum / self._finite,
            std=math.sqrt(self._squares / self._finite),
            distinct=distinct,
            distinct_error=distinct_error,
            top=top,
            top_error=top_error,
            quantiles={
                share: keys[np.searchsorted(ranks, math.ceil(share * self._finite))].item()
                for share in QUANTILES
            },
            rank_error=rank_error / self._finite,
            edges=edges,
            histogram=histogram,
        )


def _exact_sum(values: npt.NDArray[np.uint64], counts: Int64Array) -> int:
    """Sum counted numbers as a Python int, in halves, which add up within 64 bits."""
    often = counts.view(np.uint64)
    high, low = values >> np.uint64(32), values & np.uint64(0xFFFFFFFF)
    return (int((high * often).sum()) << 32) + int((low * often).sum())


def _histogram(
    keys: Keys, weights: Int64Array, low: Any, high: Any
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Make bins of equal width; for integers with whole steps, one per value if there are few."""
    edges: list[Any]
    if keys.dtype.kind == "i":
        step = -(-(high - low + 1) // _BINS)
        edges = list(range(low, high + step, step))
        if edges[-1] <= high or len(edges) == 1:
            edges.append(edges[-1] + step)
        inner = [edge for edge in edges[1:-1] if edge <= high]
        edges = [low, *inner, edges[len(inner) + 1]]
        borders: Any = np.array(inner, np.int64)
    elif low == high:
        edges, borders = [low, high], np.empty(0)
    else:
        edges = [low + (high - low) * (i / _BINS) for i in range(_BINS)] + [high]
        borders = np.array(edges[1:-1])
    places = np.searchsorted(borders, keys, side="right")
    counts = np.zeros(len(edges) - 1, np.int64)
    np.add.at(counts, places, weights)
    return tuple(edges), tuple(counts.tolist())
