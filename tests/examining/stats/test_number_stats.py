"""Statistics of numbers: against plain Python and NumPy."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.examining.stats import number_stats
from recordsmith.examining.stats.number_stats import QUANTILES, NumberSurvey

int64s = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
float32s = st.floats(width=32) | st.integers(-3, 3).map(float)


def survey_of(pieces: Any, dtype: Any) -> NumberSurvey:
    """Every second piece is added, the others are merged."""
    survey = NumberSurvey(dtype)
    for number, piece in enumerate(pieces):
        part = survey if number % 2 == 0 else NumberSurvey(dtype)
        part.add(np.array(piece, dtype))
        if part is not survey:
            survey.merge(part)
    return survey


@given(st.lists(st.lists(int64s, max_size=20), min_size=1, max_size=5))
def test_int64_exactly(pieces: list[list[int]]) -> None:
    every = sorted(v for piece in pieces for v in piece)
    found = survey_of(pieces, np.int64).finish()
    assert found.count == len(every)
    if not every:
        assert found.min is found.max is found.mean is found.std is None
        return
    assert (found.min, found.max) == (every[0], every[-1])
    assert found.mean == float(Fraction(sum(every), len(every)))
    assert found.std == pytest.approx(statistics.pstdev(every), rel=1e-9, abs=1e-9)
    assert found.zero == every.count(0)
    assert found.negative == sum(v < 0 for v in every)
    counts = Counter(every)
    assert (found.distinct, found.distinct_error, found.top_error) == (len(counts), 0.0, 0)
    expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    assert list(found.top) == expected[:10]
    for share, value in found.quantiles.items():
        assert value == every[math.ceil(share * len(every)) - 1]
    assert found.rank_error == 0.0


@given(st.lists(st.lists(float32s, max_size=20), min_size=1, max_size=5))
def test_floats(pieces: list[list[float]]) -> None:
    every = np.array([v for piece in pieces for v in piece], np.float32)
    finite = np.sort(every[np.isfinite(every)]).astype(np.float64)
    found = survey_of(pieces, np.float32).finish()
    assert found.count == len(every)
    assert found.nan == np.isnan(every).sum()
    assert found.infinite == np.isinf(every).sum()
    if not len(finite):
        assert found.min is None
        assert found.quantiles == {}
        return
    assert (found.min, found.max) == (finite[0], finite[-1])
    scale = np.abs(finite).max()
    assert found.mean == pytest.approx(finite.mean(), rel=1e-9, abs=1e-12 * scale)
    assert found.std == pytest.approx(finite.std(), rel=1e-6, abs=1e-12 * scale)
    assert found.distinct == len(set(finite.tolist()))  # 0.0 and -0.0 are one
    assert (found.zero, found.negative) == ((finite == 0).sum(), (finite < 0).sum())
    assert found.quantiles == {
        share: np.quantile(finite, share, method="inverted_cdf") for share in QUANTILES
    }


@given(st.lists(int64s | st.integers(0, 100), min_size=1), st.booleans())
def test_histogram_counts_every_number_in_its_bin(values: list[int], as_floats: bool) -> None:
    dtype = np.float32 if as_floats else np.int64
    array = np.array(values, np.int64).astype(dtype)
    found = survey_of([array], dtype).finish()
    edges, numbers = list(found.edges), [number.item() for number in array]
    assert edges[0] == found.min
    assert all(low < high for low, high in pairwise(edges)) or len(edges) == 2
    counts = [sum(low <= v < high for v in numbers) for low, high in pairwise(edges[:-1])]
    assert list(found.histogram) == [*counts, len(numbers) - sum(counts)]
    assert edges[-2] <= found.max <= edges[-1]
    if not as_floats and found.max - found.min < 20:
        assert edges == list(range(found.min, found.max + 2))


@pytest.mark.parametrize("exact", [1, 100_000])
def test_minus_zero_is_zero(monkeypatch: pytest.MonkeyPatch, exact: int) -> None:
    monkeypatch.setattr(number_stats, "EXACT_DISTINCT", exact)  # 1: it is hashed by its bits
    whole = NumberSurvey(np.float32)
    for _ in range(2):
        survey = NumberSurvey(np.float32)
        survey.add(np.array([-0.0, 0.0, -0.0, 1.0], np.float32))
        whole.merge(survey)
    found = whole.finish()
    assert [math.copysign(1, value) for value, _ in found.top] == [1, 1]
    assert (found.top, found.zero, found.negative) == (((0, 6), (1, 2)), 6, 0)
    assert math.copysign(1, found.min or 0.0) == 1


def test_large_numbers_close_together_keep_their_digits() -> None:
    survey = NumberSurvey(np.int64)
    for start in range(0, 30_000, 10_000):
        survey.add(2**62 + np.arange(start, start + 10_000))
    found = survey.finish()
    assert found.mean == 2**62 + 14_999.5
    assert found.std == pytest.approx(math.sqrt((30_000**2 - 1) / 12), rel=1e-12)


def test_float32_is_summed_in_float64() -> None:
    survey = NumberSurvey(np.float32)
    for _ in range(20):
        survey.add(np.full(100_000, 16_777_216, np.float32))  # adding 1 to it changes nothing
        survey.add(np.ones(100_000, np.float32))
    assert survey.finish().mean == 16_777_217 / 2
    survey.add(np.full(9, np.finfo(np.float32).max))
    assert survey.finish().max == np.finfo(np.float32).max


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_more_values_than_are_counted_one_by_one(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    usual = rng.permutation(200_000).astype(dtype)
    values = np.concatenate([usual, np.repeat(np.array([7, 9], dtype), [30_000, 20_000])])
    rng.shuffle(values)
    whole = NumberSurvey(dtype)
    for piece in np.array_split(values, 3):
        part = NumberSurvey(dtype)
        for block in np.array_split(piece, 20):
            part.add(block)
        whole.merge(part)
    found = whole.finish()
    assert 0 < found.distinct_error < 0.015
    assert abs(found.distinct - 200_000) <= found.distinct_error * 200_000
    assert [value for value, _ in found.top[:2]] == [7, 9]
    for (_, count), true in zip(found.top[:2], (30_001, 20_001), strict=True):
        assert count <= true <= count + found.top_error
    assert 0 < found.rank_error < 0.01
    ordered = np.sort(values)
    for share, value in found.quantiles.items():
        low, high = np.searchsorted(ordered, [value, np.nextafter(value, np.inf)])
        off = found.rank_error * len(values) + 1
        assert low - off <= share * len(values) <= high + off
    assert sum(found.histogram) == len(values)
    assert (found.min, found.max) == (0, 199_999)


@mock.patch.object(number_stats, "EXACT_DISTINCT", 6)
@given(st.lists(st.lists(st.integers(0, 30), max_size=30), min_size=2, max_size=6))
def test_merging_counts_and_sketches(pieces: list[list[int]]) -> None:
    every = Counter(v for piece in pieces for v in piece)
    whole = NumberSurvey()
    for piece in pieces:
        part = NumberSurvey()
        part.add(np.array(piece, np.int64))
        whole.merge(part)
    found = whole.finish()
    assert (found.distinct_error == 0) == (len(every) <= 6)
    assert found.distinct_error > 0 or found.distinct == len(every)
    assert dict(whole.top(99)[0]) == every  # neither this sketch nor that of quantiles is full
    values = sorted(every.elements())
    for share, value in found.quantiles.items():
        assert value == values[math.ceil(share * len(values)) - 1]
    assert sum(found.histogram) == len(values)
