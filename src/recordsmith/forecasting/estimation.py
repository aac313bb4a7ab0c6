"""Estimate a total over all samples from a random sample, with an interval.

The size of every sample is known from its listing. The headers of many more images are read than
images are encoded: their pixels and JPEG quality. A linear regression on these (the two-phase
regression estimator of survey sampling: Cochran, Sampling Techniques, chapter 12) has a small part
of the error of the mean, because larger files with more pixels also take more bytes in other
formats. Images that keep their bytes, JPEGs and
others have regressions of their own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]
IntegerArray: TypeAlias = npt.NDArray[np.int64]

_CONFIDENCE = 0.99
"""Of the quantile: more than the 95 % that are stated, because sizes are skewed and the normal
distribution is an approximation. `tests/forecasting` counts how often intervals are right."""
_MODELS: Sequence[Sequence[int]] = ((0,), (1,), (0, 1), (0, 1, 2), (0, 1, 2, 3, 4))
"""Which columns of `_columns` a regression uses."""
_SAMPLES_PER_COLUMN = 12
_FEWEST_IN_GROUP = 20
_CLEAR_GAIN = 0.9
"""A larger model is used only if it reduces the squared error to this share."""
_ROUNDING = 1e-4
"""The smallest error, as a share: lengths of names and numbers are not part of the regression."""
_HEADERS_PER_SAMPLE = 20


class Estimate(NamedTuple):
    """An estimated total, and an interval that contains the true one for 95 of 100 seeds."""

    value: float
    low: float
    high: float


class Choice(NamedTuple):
    """Which samples to encode, and which to read the headers of.

    certain: the numbers of the samples that are so large that they are always encoded.
    others: the numbers of all other samples.
    chosen: places in `others`, in random order; the first `random_count` are encoded.
    """

    certain: IntegerArray
    others: IntegerArray
    chosen: IntegerArray
    random_count: int

    @property
    def encoded(self) -> IntegerArray:
        """The numbers of the samples to encode: the certain ones first."""
        return np.concatenate((self.certain, self.others[self.chosen[: self.random_count]]))

    @property
    def with_headers(self) -> IntegerArray:
        """The numbers of the other samples whose headers to read."""
        return self.others[self.chosen[self.random_count :]]


def choose_samples(sizes: Numbers, count: int, header_bytes: int, seed: int) -> Choice:
    """Choose a random sample.

    A sample that has more than its share of all bytes, one part in `count`, is always encoded:
    otherwise a few large files would decide whether the estimate is right.

    Args:
        sizes: of all samples, in bytes.
        count: how many samples to encode.
        header_bytes: about how many bytes to read in all.
    """
    if count >= len(sizes):
        everything = np.arange(len(sizes))
        return Choice(everything[:0], everything, everything, len(sizes))
    by_size = np.argsort(-sizes, kind="stable")[: count // 2]
    certain = np.sort(by_size[sizes[by_size] * count > sizes.sum()])
    others = np.setdiff1d(np.arange(len(sizes)), certain, assume_unique=True)
    random_count = count - len(certain)
    most = min(len(others), _HEADERS_PER_SAMPLE * count)
    chosen = np.array(random.Random(seed).sample(range(len(others)), most), np.int64)  # noqa: S311
    affordable = int(np.searchsorted(np.cumsum(sizes[others[chosen]]), header_bytes))
    return Choice(certain, others, chosen[: max(random_count, affordable)], random_count)


@dataclass(frozen=True)
class KnownSamples:
    """What is known without encoding.

    sizes: of all samples, in bytes.
    chosen: the numbers of some samples, in random order; the first ones of them are encoded.
    pixels: how many pixel values each chosen sample has, by its header; 0 without an image.
    coarseness: the logarithm of the sum of a JPEG's quantization table; 0 for other images.
    """

    sizes: Numbers
    chosen: IntegerArray
    pixels: Numbers
    coarseness: Numbers

    def estimate_total(
        self, values: Numbers, *, groups: IntegerArray | None = None, scale: Numbers | None = None
    ) -> Estimate:
        """Estimate the sum over all samples of a number of bytes.

        Args:
            values: of the first chosen samples.
            groups: a number for each chosen sample; each group has a regression of its own.
            scale: the factor by which the pixels of each chosen image change; None for 1.
        """
        count, total_count = len(values), len(self.sizes)
        known = float(values.sum())
        if count == total_count or not count:
            return Estimate(known, known, known)
        sizes = self.sizes[self.chosen]
        columns = self._columns(sizes, np.ones(len(sizes)) if scale is None else scale)
        if groups is None:
            groups = np.zeros(len(sizes), np.int64)
        predicted = np.zeros(len(sizes))
        parts = []  # (variance, degrees of freedom) of each group
        for members in _large_groups(groups, count):
            encoded = members[members < count]
            fit = _best_fit(columns[encoded], values[encoded])
            predicted[members] = fit.predict(columns[members])
            share = len(members) / len(sizes)
            variance = share**2 * (1 / len(encoded) - 1 / len(members)) * fit.variance
            parts.append((variance, max(1, len(encoded) - 1 - fit.column_count)))
        # the chosen samples are smaller or larger than the average of all
        by_size = _Fit(sizes[:, None], predicted)
        excess = float(sizes.mean()) - float(self.sizes.mean())
        value = total_count * (float(predicted.mean()) - excess * by_size.last_slope)
        remaining = _Fit(sizes[:count, None], values).variance
        parts.append((remaining * (1 / len(sizes) - 1 / total_count), count - 2))
        error = total_count * _half_interval(parts) + _ROUNDING * abs(value)
        return Estimate(max(value, known), max(value - error, known), max(value + error, known))

    def _columns(self, sizes: Numbers, scale: Numbers) -> Numbers:
        """What the bytes of a record may be proportional to."""
        scaled, pixels = sizes * scale, self.pixels * scale
        by_quality = self.coarseness * scaled, self.coarseness * pixels
        return np.column_stack(
            (scaled, pixels, by_quality[0], np.sqrt(scaled * pixels), by_quality[1])
        )


def _large_groups(groups: IntegerArray, count: int) -> list[IntegerArray]:
    """The places of each group's members; groups with few of the first `count` are merged."""
    labels, numbers = np.unique(groups, return_inverse=True)
    encoded = np.bincount(numbers[:count], minlength=len(labels))
    order = np.argsort(-encoded, kind="stable")
    merged = np.arange(len(labels))
    merged[encoded < _FEWEST_IN_GROUP] = order[0]
    of_sample = merged[numbers]
    return [np.flatnonzero(of_sample == label) for label in np.unique(merged)]


class _Fit:
    """A linear regression with an intercept; constant columns do not count.

    variance: of its errors, each predicted by a regression without that sample.
    """

    def __init__(self, columns: Numbers, values: Numbers, used: Sequence[int] = (0,)) -> None:
        self._means = columns.mean(axis=0)
        self._scales = np.maximum(columns.std(axis=0), 1e-9)
        is_constant = columns.std(axis=0) <= 1e-9 * np.maximum(np.abs(self._means), 1)
        self._used = [column for column in used if not is_constant[column]]
        self.column_count = len(self._used)
        terms = self._terms(columns)
        basis, sizes, rotation = np.linalg.svd(terms, full_matrices=False)
        is_independent = sizes > 1e-7 * sizes[0]
        basis = basis[:, is_independent]
        projected = (basis.T @ values) / sizes[is_independent]
        self._weights: Any = rotation[is_independent].T @ projected
        leverage = np.minimum((basis**2).sum(axis=1), 0.99)
        errors = (values - terms @ self._weights) / (1 - leverage)
        self.variance = float((errors**2).sum()) / max(1, len(values) - 1)

    @property
    def last_slope(self) -> float:
        """The slope of the last column."""
        return float(self._weights[-1] / self._scales[self._used[-1]]) if self._used else 0.0

    def predict(self, columns: Numbers) -> Numbers:
        predicted: Numbers = self._terms(columns) @ self._weights
        return predicted

    def _terms(self, columns: Numbers) -> Numbers:
        scaled = ((columns - self._means) / self._scales)[:, self._used]
        return np.column_stack((np.ones(len(columns)), scaled))


def _best_fit(columns: Numbers, values: Numbers) -> _Fit:
    """The regression with the smallest errors, without columns that hardly help."""
    best = _Fit(columns, values, ())
    for used in _MODELS:
        fit = _Fit(columns, values, used)
        is_small = len(values) >= _SAMPLES_PER_COLUMN * fit.column_count
        if is_small and fit.variance < _CLEAR_GAIN * best.variance:
            best = fit
    return best


def _half_interval(parts: Sequence[tuple[float, int]]) -> float:
    """Half the interval of a sum, from the variance and degrees of freedom of its parts.

    By the approximation of Welch and Satterthwaite.
    """
    variance = sum(part for part, _ in parts)
    if not variance:
        return 0.0
    freedom = variance**2 / sum(part**2 / max(1, own) for part, own in parts)
    return math.sqrt(variance) * _quantile(freedom)


def _quantile(freedom: float) -> float:
    """Student's t for a two-sided interval: the expansion of Cornish and Fisher."""
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    n = max(1.0, freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
