"""Statistics of numbers: exact counts, range and mean; the distribution from a sample."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from recordsmith.checking.statistics.sampling import Builder, Hashes, ValueSample
from recordsmith.support.summaries import Report

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
TOP_VALUES = 10
_BINS = 20
_ADDED_AT_ONCE = 1 << 12
_FLOAT_UNIT = 172  # each float32 is a multiple of 2**-172, and its mantissa times 2**24 an integer


class ValueCount(NamedTuple):
    """A number, and how often it occurs."""

    value: float
    count: int  # type: ignore[assignment] # hides tuple.count


@dataclass(frozen=True, repr=False)
class NumberSample(Report):
    """The distribution of finite numbers, in a sample of at most SAMPLE_SIZE of them.

    size: how many numbers are in the sample; all figures are exact if these are all.
    std: standard deviation, with their number as divisor.
    distinct: how many different finite numbers it has; the numbers outside may have more.
    top: the most frequent numbers.
    quantiles: by share; 0.5 is the median.
    edges, histogram: edges of bins of equal width from `min` to `max`, and the count in each bin:
        edges[i] <= number < edges[i + 1]; the last bin includes its upper edge.
    """

    size: int
    std: float
    distinct: int
    top: tuple[ValueCount, ...]
    quantiles: Mapping[float, float]
    edges: tuple[float, ...]
    histogram: tuple[int, ...]

    @property
    def median(self) -> float:
        return self.quantiles[0.5]


@dataclass(frozen=True, repr=False)
class NumberStats(Report):
    """Statistics of numbers. NaN and infinite numbers are counted, and are in no other figure.

    count: number of all numbers.
    nan, infinite, zero, negative: number of such numbers; infinite of either sign; negative without
        minus infinity.
    min, max, mean: exact; None without finite numbers.
    sample: the distribution of a sample; None without finite numbers.
    """

    count: int
    nan: int = 0
    infinite: int = 0
    zero: int = 0
    negative: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    sample: NumberSample | None = field(default=None)

    @property
    def finite(self) -> int:
        """The number of finite numbers."""
        return self.count - self.nan - self.infinite


class NumberBuilder(Builder):
    """Collects numbers, which are int64 or float32."""

    def __init__(self) -> None:
        self._counts: Any = Counter(count=0)  # the counts of NumberStats by name
        self._sum = 0  # exact: of integers, or of floats in units of 2**-_FLOAT_UNIT
        self._sample = ValueSample()
        self._min: float | None = None
        self._max: float | None = None
        self._pending: list[tuple[npt.NDArray[Any], Hashes]] = []
        self._pending_count = 0

    def add(self, values: npt.NDArray[Any], hashes: Hashes) -> None:
        """Add numbers with the hashes of their positions; these arrays must not change."""
        self._pending.append((values, hashes))
        self._pending_count += len(values)
        if self._pending_count >= _ADDED_AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        if not self._pending_count:
            return
        values, hashes = map(np.concatenate, zip(*self._pending, strict=True))
        self._pending, self._pending_count = [], 0
        self._counts["count"] += len(values)
        if values.dtype.kind == "f":
            is_finite = np.isfinite(values)
            if not is_finite.all():
                nan = int(np.count_nonzero(np.isnan(values)))
                values, hashes = values[is_finite], hashes[is_finite]
                self._counts.update(nan=nan, infinite=len(is_finite) - nan - len(values))
            values = values + np.float32(0)  # minus zero is zero
        if not len(values):
            return
        self._extend(values.min().item(), values.max().item())
        zero, negative = np.count_nonzero(values == 0), np.count_nonzero(values < 0)
        self._counts.update(zero=int(zero), negative=int(negative))
        self._sum += _exact_sum(values)
        chosen = self._sample.choose(hashes)
        self._sample.add(hashes[chosen], values[chosen])

    def _extend(self, low: float, high: float) -> None:
        self._min = low if self._min is None else min(self._min, low)
        self._max = high if self._max is None else max(self._max, high)

    def merge(self, other: NumberBuilder) -> None:
        self._settle()
        other._settle()
        self._counts.update(other._counts)
        self._sum += other._sum
        self._sample.merge(other._sample)
        if other._min is not None and other._max is not None:
            self._extend(other._min, other._max)

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return vars(self)

    def finish(self) -> NumberStats:
        self._settle()
        counted = NumberStats(**self._counts)
        if self._min is None or self._max is None:
            return counted
        values = np.sort(self._sample.values())
        unit = 1 << _FLOAT_UNIT if values.dtype.kind == "f" else 1
        is_first = np.append(True, values[1:] != values[:-1])
        starts = np.flatnonzero(is_first)
        counts = np.diff(starts, append=len(values))
        often = np.argsort(-counts, kind="stable")[:TOP_VALUES]
        top = zip(values[starts[often]].tolist(), counts[often].tolist(), strict=True)
        ranks = [math.ceil(share * len(values)) - 1 for share in QUANTILES]
        edges, histogram = _histogram(values, self._min, self._max)
        return NumberStats(
            **self._counts,
            min=self._min,
            max=self._max,
            mean=self._sum / (counted.finite * unit),
            sample=NumberSample(
                size=len(values),
                std=_std(values),
                distinct=len(starts),
                top=tuple(ValueCount(*pair) for pair in top),
                quantiles=dict(zip(QUANTILES, values[ranks].tolist(), strict=True)),
                edges=edges,
                histogram=histogram,
            ),
        )


def _exact_sum(values: npt.NDArray[Any]) -> int:
    """Sum integers, or floats in units of 2**-_FLOAT_UNIT, without rounding."""
    if values.dtype.kind == "i":  # in halves, which add up within 64 bits
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())
    mantissas, exponents = np.frexp(values)
    sums = np.bincount(exponents + (_FLOAT_UNIT - 24), weights=mantissas * np.float32(2**24))
    return sum(int(part) << place for place, part in enumerate(sums.tolist()) if part)


def _std(values: npt.NDArray[Any]) -> float:
    """Return the standard deviation of sorted values; large ones may be close together."""
    above: Any = values.astype(np.float64)
    if values.dtype.kind == "i":  # distances from the minimum always fit 64 bits
        above = (values - values[0]).view(np.uint64).astype(np.float64)
    return float(above.std())


def _histogram(
    values: npt.NDArray[Any], low: Any, high: Any
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Make bins of equal width; for integers with whole steps, one per value if there are few."""
    if values.dtype.kind == "i":
        step = -(-(high - low + 1) // _BINS)
        edges = [*range(low, high + 1, step)]
        edges.append(edges[-1] + step)
    else:
        count = _BINS if low < high else 1
        edges = [low + (high - low) * (number / count) for number in range(count)] + [high]
    borders = np.array(edges[1:-1], values.dtype if values.dtype.kind == "i" else np.float64)
    places = np.searchsorted(borders, values, side="right")
    return tuple(edges), tuple(np.bincount(places, minlength=len(edges) - 1).tolist())
