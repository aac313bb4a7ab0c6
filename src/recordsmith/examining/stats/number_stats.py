"""Statistics of numbers: range, mean, standard deviation, quantiles, top values, NaN.

Range, counts and mean are exact: int64 sums use Python integers, float sums float64. The standard
deviation is combined from blocks around the mean of each (Chan, Golub and LeVeque, 1979), so that
large numbers close together keep their precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.pending import Pending
from recordsmith.examining.stats.sketches import Keys
from recordsmith.examining.stats.value_counts import ValueCounts

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TOP_VALUES = 10
_BINS = 20
_PENDING = 1 << 12


@dataclass(frozen=True)
class NumberStats:
    """Statistics of numbers; NaN and infinite numbers are only counted.

    count: number of all numbers.
    nan, infinite, zero, negative: number of such numbers; infinite of either sign; negative without
        minus infinity.
    min, max, mean, std: None without finite numbers. std divides by their count.
    distinct: number of different numbers.
    distinct_error: relative error of `distinct`; 0.0 if exact.
    top: the most frequent numbers with their counts.
    top_error: by how much these counts may be too low.
    quantiles: pairs of share and quantile.
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
    top: tuple[tuple[float, int], ...] = ()
    top_error: int = 0
    quantiles: tuple[tuple[float, float], ...] = ()
    rank_error: float = 0.0
    edges: tuple[float, ...] = ()
    histogram: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return {
            "count": self.count,
            "nan": self.nan,
            "infinite": self.infinite,
            "zero": self.zero,
            "negative": self.negative,
            "min": self.min,
            "max": self.max,
            "mean": self.mean,
            "std": self.std,
            "distinct": self.distinct,
            "distinct_error": self.distinct_error,
            "top": [{"value": value, "count": count} for value, count in self.top],
            "top_error": self.top_error,
            "quantiles": {f"{share:g}": value for share, value in self.quantiles},
            "rank_error": self.rank_error,
            "edges": list(self.edges),
            "histogram": list(self.histogram),
        }


class NumberSurvey:
    """Collects statistics of numbers of one dtype."""

    def __init__(self, dtype: npt.DTypeLike = np.int64) -> None:
        """`dtype`: int64 or float32."""
        self._is_integer = np.dtype(dtype).kind == "i"
        self._values = ValueCounts(dtype)
        self.count = self._nan = self._infinite = self._zero = self._negative = 0
        self._finite: int = 0
        self._min: Any = None
        self._max: Any = None
        self._sum: Any = 0  # an int or a float
        self._squares = 0.0  # of the distances from the mean
        self._pending: Pending[Keys] = Pending(_PENDING)

    def add(self, values: Keys) -> None:
        """Add numbers of the dtype. Do not change the array afterwards."""
        if self._pending.add(values):
            self._settle()

    def _settle(self) -> None:
        values = self._pending.take()
        if values is not None:
            self._add(values)

    def _add(self, values: Keys) -> None:
        self.count += len(values)
        if not self._is_integer:
            values = self._without_odd(values)
        if not len(values):
            return
        low, high = values.min(), values.max()
        total: Any
        if low == high:
            self._add_repeated(low.item(), len(values))
            return
        if self._is_integer:  # distances from the minimum always fit 64 bits
            above = (values - low).view(np.uint64)
            total = int(low) * len(values) + _exact_sum(above)
            distances = above.astype(np.float64)
        else:
            distances = values.astype(np.float64)
            total = float(distances.sum())
        distances -= distances.mean()
        np.square(distances, out=distances)  # not a dot product: BLAS would start threads
        self._combine(len(values), low.item(), high.item(), total, float(distances.sum()))
        if low <= 0:
            self._zero += len(values) - int(np.count_nonzero(values))
            self._negative += int(np.count_nonzero(values < 0))
        self._values.add(values)

    def _add_repeated(self, value: Any, count: int) -> None:
        self._combine(count, value, value, value * count, 0.0)
        self._zero += count * (value == 0)
        self._negative += count * (value < 0)
        self._values.add_repeated(value, count)

    def _without_odd(self, values: Keys) -> Keys:
        is_finite = np.isfinite(values)
        if not is_finite.all():
            nan = int(np.count_nonzero(np.isnan(values)))
            self._nan += nan
            values = values[is_finite]
            self._infinite += len(is_finite) - nan - len(values)
        return values + np.float32(0)  # minus zero is zero

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

    @property
    def values(self) -> ValueCounts:
        """The counts of finite numbers."""
        self._settle()
        return self._values

    def merge(self, other: NumberSurvey) -> None:
        """Add all that another one saw, of the same dtype."""
        self._settle()
        other._settle()
        self.count += other.count
        self._nan += other._nan
        self._infinite += other._infinite
        self._zero += other._zero
        self._negative += other._negative
        if other._finite:
            self._combine(other._finite, other._min, other._max, other._sum, other._squares)
        self._values.merge(other._values)

    def finish(self) -> NumberStats:
        """Return the statistics of everything added so far."""
        self._settle()
        if not self._finite:
            return NumberStats(self.count, self._nan, self._infinite)
        keys, weights, rank_error = self._values.weighted()
        distinct, distinct_error = self._values.distinct()
        top, top_error = self._values.top(TOP_VALUES)
        ranks = np.cumsum(weights)
        quantiles = tuple(
            (share, keys[np.searchsorted(ranks, math.ceil(share * self._finite))].item())
            for share in QUANTILES
        )
        edges, histogram = _histogram(keys, weights, self._min, self._max)
        return NumberStats(
            count=self.count,
            nan=self._nan,
            infinite=self._infinite,
            zero=self._zero,
            negative=self._negative,
            min=self._min,
            max=self._max,
            mean=self._sum / self._finite,
            std=math.sqrt(self._squares / self._finite),
            distinct=distinct,
            distinct_error=distinct_error,
            top=tuple(top),
            top_error=top_error,
            quantiles=quantiles,
            rank_error=rank_error / self._finite,
            edges=edges,
            histogram=histogram,
        )


def _exact_sum(values: npt.NDArray[np.uint64]) -> int:
    """Sum as a Python int: the halves of 2**31 numbers add up within 64 bits."""
    half = np.uint64(32)
    total = 0
    for start in range(0, len(values), 1 << 31):
        part = values[start : start + (1 << 31)]
        high, low = part >> half, part & np.uint64(0xFFFFFFFF)
        total += (int(high.sum()) << 32) + int(low.sum())
    return total


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
