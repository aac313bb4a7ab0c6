"""Sketches: against exact answers, within the errors that they state, however they are merged."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.examining.stats.sketches import (
    DistinctHashes,
    FrequentKeys,
    Quantiles,
    count_sorted,
    find,
    hash_keys,
)

parts = st.lists(st.lists(st.integers(0, 60), max_size=40), min_size=1, max_size=8)


def merged(make: Any, pieces: Any, add: Any) -> Any:
    """All pieces in sketches of their own, merged into the first."""
    sketches = []
    for piece in pieces:
        sketch = make()
        add(sketch, piece)
        sketches.append(sketch)
    for other in sketches[1:]:
        sketches[0].merge(other)
    return sketches[0]


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_finding_and_counting(keys: list[int], wanted: list[int]) -> None:
    values, counts = count_sorted(np.sort(np.array(keys, np.int64)))
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == Counter(keys)
    places, is_known = find(values, np.array(wanted, np.int64))
    assert is_known.tolist() == [key in keys for key in wanted]
    assert places.tolist() == [sum(v < key for v in values.tolist()) for key in wanted]


def test_hashes_of_numbers_do_not_depend_on_machine_or_version() -> None:
    # the finaliser of SplitMix64, seed 0: the first numbers that the generator gives
    first = hash_keys(np.array([0, -0x61C8864680B583EB], np.int64))
    assert [hex(int(h)) for h in first] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4"]
    assert len({int(h) for h in hash_keys(np.arange(9, dtype=np.float32))}) == 9


@given(parts)
def test_distinct_is_exact_while_there_is_room(pieces: list[list[int]]) -> None:
    def add(sketch: DistinctHashes, piece: list[int]) -> None:
        sketch.add(hash_keys(np.array(piece, np.int64)))

    found = merged(lambda: DistinctHashes(61), pieces, add)
    assert (found.count, found.error) == (len({v for piece in pieces for v in piece}), 0.0)


@pytest.mark.parametrize("count", [1001, 5000, 200_000])
def test_distinct_is_estimated_within_its_error(count: int) -> None:
    hashes = hash_keys(np.arange(count))
    whole, parted = DistinctHashes(1000), DistinctHashes(1000)
    whole.add(hashes)
    for piece in np.array_split(np.concatenate([hashes, hashes[::2]])[::-1], 7):
        part = DistinctHashes(1000)
        part.add(piece)
        parted.merge(part)
    assert 0 < whole.error < 0.14
    assert abs(whole.count - count) <= whole.error * count
    assert (parted.count, parted.error) == (whole.count, whole.error)  # whatever the order


@given(parts)
def test_frequent_keys_within_their_error(pieces: list[list[int]]) -> None:
    capacity = 5
    every = Counter(v for piece in pieces for v in piece)

    def add(sketch: FrequentKeys, piece: list[int]) -> None:
        sketch.add(*count_sorted(np.sort(np.array(piece, np.int64))))

    found = merged(lambda: FrequentKeys(capacity, np.int64), pieces, add)
    counters = dict(zip(found.keys.tolist(), found.counts.tolist(), strict=True))
    assert len(counters) <= capacity
    assert found.error <= every.total() / (capacity + 1)
    for key, count in every.items():
        assert counters.get(key, 0) <= count <= counters.get(key, 0) + found.error
    if len(every) <= capacity:
        assert counters == every


@given(st.lists(st.lists(st.integers(-50, 50), max_size=60), min_size=1, max_size=9))
def test_quantiles_within_their_error(pieces: list[list[int]]) -> None:
    def add(sketch: Quantiles, piece: list[int]) -> None:
        values = np.array(piece, np.int64)
        sketch.add(values[::2])
        sketch.add_counted(*count_sorted(np.sort(values[1::2])))

    every = np.sort(np.array([v for piece in pieces for v in piece], np.int64))
    found = merged(lambda: Quantiles(8, np.int64), pieces, add)
    keys, weights = found.weighted()
    assert weights.sum() == len(every)
    ranks = np.cumsum(weights)
    for key, rank in zip(keys, ranks, strict=True):
        assert abs(rank - np.searchsorted(every, key, side="right")) <= found.rank_error
    if len(every) < 8:
        assert found.rank_error == 0
        np.testing.assert_array_equal(np.repeat(keys, weights), every)


def test_quantiles_of_many() -> None:
    values = np.random.default_rng(0).permutation(300_000)
    sketch = Quantiles(1024, np.int64)
    for piece in np.array_split(values, 100):
        sketch.add(piece)
    keys, weights = sketch.weighted()
    assert len(keys) < 12 * 1024
    assert sketch.rank_error < 0.01 * len(values)
    off = np.abs(np.cumsum(weights) - (keys + 1))  # the rank of a number is the number
    assert 0 < off.max() <= sketch.rank_error
