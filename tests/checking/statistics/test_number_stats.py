"""Statistics of numbers: exact figures against plain Python, and samples against their rule."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.checking import hash_positions
from recordsmith.checking.statistics import sampling
from recordsmith.checking.statistics.number_stats import QUANTILES, NumberBuilder, NumberStats

int64s = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
float32s = st.floats(width=32) | st.integers(-3, 3).map(float)


def stats_of(pieces: Any, dtype: Any) -> NumberStats:
    """Every second piece is added, the others are merged."""
    builder, position = NumberBuilder(), 0
    for number, piece in enumerate(pieces):
        part = builder if number % 2 == 0 else NumberBuilder()
        hashes = hash_positions(np.arange(position, position + len(piece)))
        part.add(np.array(piece, dtype), hashes)
        position += len(piece)
        if part is not builder:
            builder.merge(part)
    return builder.finish()


@given(st.lists(st.lists(int64s, max_size=20), min_size=1, max_size=5))
def test_int64_exactly(pieces: list[list[int]]) -> None:
    every = sorted(v for piece in pieces for v in piece)
    found = stats_of(pieces, np.int64)
    assert found.count == len(every)
    if not every:
        assert found.min is found.max is found.mean is found.sample is None
        return
    assert (found.min, found.max) == (every[0], every[-1])
    assert found.mean == float(Fraction(sum(every), len(every)))
    assert (found.zero, found.negative) == (every.count(0), sum(v < 0 for v in every))
    sample = found.sample
    assert sample is not None
    assert sample.std == pytest.approx(statistics.pstdev(every), rel=1e-9, abs=1e-9)
    counts = Counter(every)
    assert (sample.size, sample.distinct) == (len(every), len(counts))
    assert list(sample.top) == sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:10]
    for share, value in sample.quantiles.items():
        assert value == every[math.ceil(share * len(every)) - 1]


@given(st.lists(st.lists(float32s, max_size=20), min_size=1, max_size=5))
def test_floats(pieces: list[list[float]]) -> None:
    every = np.array([v for piece in pieces for v in piece], np.float32)
    finite = np.sort(every[np.isfinite(every)]).astype(np.float64)
    found = stats_of(pieces, np.float32)
    assert (found.count, found.finite) == (len(every), len(finite))
    assert (found.nan, found.infinite) == (np.isnan(every).sum(), np.isinf(every).sum())
    if not len(finite):
        assert found.min is found.sample is None
        return
    assert (found.min, found.max) == (finite[0], finite[-1])
    assert found.mean == float(sum(map(Fraction, finite.tolist())) / len(finite))
    sample = found.sample
    assert sample is not None
    scale = np.abs(finite).max()
    assert sample.std == pytest.approx(finite.std(), rel=1e-6, abs=1e-12 * scale)
    assert sample.distinct == len(set(finite.tolist()))  # 0.0 and -0.0 are one
    assert [math.copysign(1, value) for value, _ in sample.top if value == 0] in ([], [1])
    assert (found.zero, found.negative) == ((finite == 0).sum(), (finite < 0).sum())
    assert sample.quantiles == {
        share: np.quantile(finite, share, method="inverted_cdf") for share in QUANTILES
    }


@given(st.lists(int64s | st.integers(0, 100), min_size=1), st.booleans())
def test_histogram_counts_every_number_in_its_bin(values: list[int], as_floats: bool) -> None:
    array = np.array(values, np.int64).astype(np.float32 if as_floats else np.int64)
    found = stats_of([array], array.dtype)
    sample = found.sample
    assert sample is not None
    edges, numbers = list(sample.edges), [number.item() for number in array]
    low, high = min(numbers), max(numbers)
    assert edges[0] == low
    assert all(low < high for low, high in pairwise(edges)) or len(edges) == 2
    counts = [sum(low <= v < high for v in numbers) for low, high in pairwise(edges[:-1])]
    assert list(sample.histogram) == [*counts, len(numbers) - sum(counts)]
    assert edges[-2] <= high <= edges[-1]
    if not as_floats and high - low < 20:
        assert edges == list(range(low, high + 2))


def test_large_numbers_close_together_keep_their_digits() -> None:
    found = stats_of([2**62 + np.arange(9000)], np.int64)
    assert found.mean == 2**62 + 4499.5
    assert found.sample is not None
    assert found.sample.std == pytest.approx(math.sqrt((9000**2 - 1) / 12), rel=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_a_sample_has_the_smallest_hashes(monkeypatch: pytest.MonkeyPatch, order: int) -> None:
    """However values are divided, and in any order of merging."""
    monkeypatch.setattr(sampling, "SAMPLE_SIZE", 100)
    values = np.random.default_rng(0).integers(0, 1000, 5000)
    hashes = hash_positions(np.arange(5000))
    expected = np.sort(values[np.argsort(hashes)[:100]])
    builder = NumberBuilder()
    for piece in np.array_split(np.arange(5000), 17)[::order]:
        part = NumberBuilder()
        for some in np.array_split(piece, 3)[::order]:
            part.add(values[some], hashes[some])
        builder.merge(part)
    found = builder.finish()
    assert found.sample is not None
    assert (found.count, found.min, found.max) == (5000, values.min(), values.max())
    assert found.mean == values.mean()
    assert (found.sample.size, found.sample.median) == (100, expected[49])
    assert sum(found.sample.histogram) == 100


def test_hashes_are_of_positions() -> None:
    """Not of the blocks that values are read in; the values of a record have different ones."""
    places = np.repeat(np.arange(50), np.arange(50) % 4)
    whole = hash_positions(places)
    assert len(np.unique(whole)) == len(places)
    parts = [hash_positions(places[places // 7 == part]) for part in range(8)]
    assert np.array_equal(np.concatenate(parts), whole)
