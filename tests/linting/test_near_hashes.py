"""The search finds what comparing all pairs finds, in time and memory that grow with n log n."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.linting.near_hashes import (
    MAX_COMPARED,
    MAX_DIFFERENT,
    _bit_count,
    find_equal,
    find_near,
)

_ORDERS = 28
BITS = st.integers(0, 2**64 - 1)


def _distance(one: int, other: int) -> int:
    return (one ^ other).bit_count()


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Hashes of which many are close to each other, their groups and contents."""
    centres = draw(st.lists(BITS, min_size=1, max_size=4))
    hashes = []
    for _ in range(draw(st.integers(1, 40))):
        value = draw(st.sampled_from(centres))
        for place in draw(st.lists(st.integers(0, 63), max_size=9)):
            value ^= 1 << place
        hashes.append(value)
    size = len(hashes)
    groups = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    contents = draw(st.lists(st.integers(1, 30), min_size=size, max_size=size))
    return hashes, groups, contents


def _arrays(hashes: list[int], groups: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(hashes, np.uint64), np.array(groups, np.int64)


def _always(one: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.ones(len(one), np.bool_)


@given(clusters(), st.integers(0, MAX_DIFFERENT))
def test_near_hashes_are_those_of_brute_force(
    items: tuple[list[int], list[int], list[int]], most: int
) -> None:
    hashes, groups, _ = items
    found = find_near(*_arrays(hashes, groups), _always, max_different=most)[0]
    first: dict[tuple[int, int], int] = {}  # of each hash and group: later ones are linked to it
    for late, value in enumerate(hashes):
        is_first = first.setdefault((value, groups[late]), late) == late
        near = [n for n in range(late) if _distance(value, hashes[n]) <= most]
        own = [n for n in near if groups[n] == groups[late]]
        other = [n for n in near if groups[n] != groups[late]]
        assert (found.within[late] >= 0) == bool(own)
        if own:
            closest = min(_distance(value, hashes[n]) for n in own)
            assert _distance(value, hashes[found.within[late]]) == closest
        if is_first:
            assert (found.across[late] >= 0) == bool(other)
        assert found.across[late] == -1 or found.across[late] in other


@given(clusters())
def test_pairs_that_do_not_count_are_left_out(
    items: tuple[list[int], list[int], list[int]],
) -> None:
    hashes, groups, contents = items
    of = np.array(contents)
    found = find_near(*_arrays(hashes, groups), lambda one, other: of[one] != of[other])[0]
    for late, early in [*enumerate(found.within), *enumerate(found.across)]:
        assert early == -1 or contents[late] != contents[early]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=40))
def test_equal_values_are_those_of_brute_force(items: list[tuple[int, int]]) -> None:
    values, groups = [v for v, _ in items], [g for _, g in items]
    found = find_equal(*_arrays(values, groups))
    for late, (value, group) in enumerate(items):
        own = [n for n in range(late) if items[n] == (value, group)]
        same = [n for n in range(late) if values[n] == value]
        assert found.within[late] == (own[0] if own else -1)
        is_other = bool(same) and groups[same[0]] != group
        assert found.across[late] == (same[0] if is_other else -1)


def test_planted_pairs_among_many_hashes_are_all_found() -> None:
    rng = np.random.default_rng(1)
    count, planted = 200_000, 500
    hashes = rng.integers(0, 2**64, count, np.uint64)
    for number in range(planted):
        places = rng.choice(64, rng.integers(0, MAX_DIFFERENT + 1), replace=False)
        changed = sum(1 << int(place) for place in places)
        hashes[count - 1 - number] = hashes[number] ^ np.uint64(changed)
    groups = rng.integers(0, 2, count)
    near, comparison_count = find_near(hashes, groups, _always)
    twins = np.maximum(near.within, near.across)
    late = count - 1 - np.arange(planted)
    np.testing.assert_array_equal(twins[late], np.arange(planted))
    assert (twins >= 0).sum() == planted
    assert comparison_count <= _ORDERS * MAX_COMPARED * count


@pytest.mark.parametrize("bits", [0, 1, 8, 16])
@pytest.mark.parametrize("count", [1000, 20_000])
def test_the_number_of_comparisons_is_linear_for_any_hashes(bits: int, count: int) -> None:
    """Hashes of few different bits share all bytes but two."""
    hashes = np.random.default_rng(2).integers(0, 1 << bits, count).astype(np.uint64)
    near, comparison_count = find_near(hashes, np.zeros(count, np.int64), _always)
    assert comparison_count <= _ORDERS * MAX_COMPARED * min(count, 1 << bits)
    is_repeated = np.ones(count, np.bool_)
    is_repeated[np.unique(hashes, return_index=True)[1]] = False
    assert (near.within[is_repeated] >= 0).all()


def test_numpy_without_bit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).integers(0, 2**64, 1000, np.uint64)
    values[:2] = 0, 2**64 - 1
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert [*_bit_count(values)] == [int(value).bit_count() for value in values]
