"""Pairs of equal digests agree with counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.examining.diff.matching import as_digests, has_repeats, pairs_of, with_tag

# few values, in both halves, so that most are there several times
heaps = st.lists(st.sampled_from([(0, 0), (0, 1), (1, 0), (2**64 - 1, 5)]), max_size=12)


def digests(values: list[tuple[int, int]]) -> np.ndarray:
    return np.array(values, np.uint64).reshape(-1, 2)


@given(heaps, heaps)
def test_pairs_are_the_multiset_intersection(a: list, b: list) -> None:
    places_a, places_b = pairs_of(digests(a), digests(b))
    assert len(set(places_a.tolist())) == len(set(places_b.tolist())) == len(places_a)
    paired = [a[place] for place in places_a]
    assert paired == [b[place] for place in places_b]
    assert Counter(paired) == Counter(a) & Counter(b)
    for value in set(paired):  # the first ones, in order
        of_value = [place for place in places_a if a[place] == value]
        assert of_value == [place for place, item in enumerate(a) if item == value][: len(of_value)]
        of_value = [place for place in places_b if b[place] == value]
        assert of_value == [place for place, item in enumerate(b) if item == value][: len(of_value)]


@given(heaps, heaps)
def test_only_unique_digests(a: list, b: list) -> None:
    places_a, places_b = pairs_of(digests(a), digests(b), only_unique=True)
    expected = {value for value in a if a.count(value) == b.count(value) == 1}
    assert {a[place] for place in places_a} == {b[place] for place in places_b} == expected
    assert len(places_a) == len(expected)


@given(heaps)
def test_repeats(values: list) -> None:
    assert has_repeats(digests(values)) == (len(set(values)) < len(values))


def test_tags_separate_equal_digests() -> None:
    same = digests([(7, 8)] * 3)
    tagged = with_tag(same, np.array([0, 1, 1]))
    assert not has_repeats(tagged[:2])
    assert has_repeats(tagged[1:])
    assert has_repeats(same)
    assert as_digests(b"\1" + bytes(7) + b"\2" + bytes(7)).tolist() == [[1, 2]]
