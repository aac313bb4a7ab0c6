"""Estimate a total over all samples from a random sample, with an interval.

The size of every sample is known from its listing. The headers of many more images are read than
images are encoded: their pixels and JPEG quality. A linear regression on these (the two-phase
regression estimator of survey sampling: Cochran, Sampling Techniques, chapter 12) has a small part
of the error of the mean, because larger files with more pixels also take more bytes in other
formats.
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
BoolArray: TypeAlias = npt.NDArray[np.bool_]

_CONFIDENCE = 0.98
"""Of the quantile: more than the 95 % that are stated, because sizes are skewed and the normal
distribution is an approximation. `tests/forecasting` counts how often intervals are right."""
_MODELS: Sequence[Sequence[int]] = (
    *((0, 1), (0, 1, 2), (0, 1, 3), (0, 1, 2, 3), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5, 6)),
)
"""Which columns of `_columns` a regression uses."""
_SAMPLES_PER_COLUMN = 12
_CLEAR_GAIN = 0.9
"""A larger model is used only if it reduces the squared error to this share."""
_ROUNDING = 1e-9
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
        self, values: Numbers, *, is_kept: BoolArray | None = None, scale: Numbers | None = None
    ) -> Estimate:
        """Estimate the sum over all samples of a number of bytes.

        Args:
            values: of the first chosen samples.
            is_kept: whether each chosen image keeps its bytes; None if no image does.
            scale: the factor by which the pixels of each chosen image are reduced; None for 1.
        """
        count, total_count = len(values), len(self.sizes)
        known = float(values.sum())
        if count == total_count or not count:
            return Estimate(known, known, known)
        sizes = self.sizes[self.chosen]
        columns = self._columns(sizes, is_kept, np.ones(len(sizes)) if scale is None else scale)
        fit = _best_fit(columns[:count], values)
        by_size = _Fit(sizes[:count, None], values) if fit.column_count else fit
        predicted = fit.predict(columns)
        # the chosen samples are smaller or larger than the average of all
        excess = float(sizes.mean()) - float(self.sizes.mean())
        mean = float(predicted.mean()) - excess * _Fit(sizes[:, None], predicted).last_slope
        variance = (1 / count - 1 / len(columns)) * fit.variance
        variance += (1 / len(columns) - 1 / total_count) * by_size.variance
        value = total_count * mean
        error = total_count * math.sqrt(variance) * _quantile(count - 1 - fit.column_count)
        error += _ROUNDING * abs(value)
        return Estimate(max(value, known), max(value - error, known), max(value + error, known))

    def _columns(self, sizes: Numbers, is_kept: BoolArray | None, scale: Numbers) -> Numbers:
        """What the bytes of a record may be proportional to.

        The first two columns are constant unless some images keep their bytes and others do not.
        """
        kept = np.zeros(len(sizes)) if is_kept is None else is_kept.astype(float)
        scaled, pixels = sizes * scale * (1 - kept), self.pixels * scale * (1 - kept)
        by_quality = self.coarseness * scaled, self.coarseness * pixels
        both = np.sqrt(scaled * pixels)
        return np.column_stack(
            (sizes * kept, kept, scaled, pixels, by_quality[0], both, by_quality[1])
        )


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


def _quantile(freedom: int) -> float:
    """Student's t for a two-sided interval: the expansion of Cornish and Fisher."""
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    n = max(1, freedom)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
