"""Duplicates: compared with plain counting, and estimated from a sample of many contents."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.dataset import Shard
from recordsmith.examining.stats import duplicates
from recordsmith.examining.stats.duplicates import SHOWN, DuplicateSearch
from recordsmith.examining.stats.places import Place, Places, place_numbers
from recordsmith.examining.stats.sketches import hash_keys

contents = st.lists(st.integers(0, 15), max_size=25)
PLACES = Places([Shard(Path(name), "") for name in "abc"])


@given(st.permutations([0, 1, 2]), st.tuples(contents, contents, contents))
def test_counts_and_places(order: list[int], shards: tuple[list[int], ...]) -> None:
    """Shards 0 and 2 are of one split; they come in any order."""
    search = DuplicateSearch("x")
    splits = ("train", "test", "train")
    for shard in order:
        values = np.array(shards[shard], np.int64)
        half = len(values) // 2
        for start, part in ((half, values[half:]), (0, values[:half])):
            with patch("recordsmith.examining.stats.duplicates._PENDING", 1):
                search.add(splits[shard], hash_keys(part), place_numbers(shard, start, len(part)))
    found = search.finish(PLACES)

    places: dict[str, dict[int, list[Place]]] = {
        "test": defaultdict(list),
        "train": defaultdict(list),
    }
    for shard, values in enumerate(shards):
        for position, value in enumerate(values):
            places[splits[shard]][value].append(Place("abc"[shard], position))
    assert (found.feature, found.sampled) == ("x", 1)
    assert found.count == sum(map(len, shards))
    assert found.distinct == len(set(itertools.chain(*shards)))
    assert found.within == {
        split: sum(len(where) - 1 for where in of_split.values())
        for split, of_split in places.items()
    }
    pairs = [
        (where[0], where[-1])
        for of_split in places.values()
        for where in of_split.values()
        if len(where) > 1
    ]
    pairs.sort(key=lambda pair: (pair[0].path, pair[0].record))
    assert list(found.places) == pairs[:SHOWN]
    both = places["test"].keys() & places["train"].keys()
    assert len(found.shared) == bool(both)
    for shared in found.shared:
        assert shared.splits == ("test", "train")
        assert shared.contents == len(both)
        assert shared.records == sum(
            len(places[split][value]) for split in places for value in both
        )
        expected = sorted(
            ((places["test"][value][0], places["train"][value][0]) for value in both),
            key=lambda pair: pair[0].record,
        )
        assert list(shared.places) == expected[:SHOWN]


def test_a_sample_estimates_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 contents, a tenth of them twice, a hundredth in another split too."""
    monkeypatch.setattr(duplicates, "KEPT_HASHES", 8000)
    search = DuplicateSearch(None)
    once, twice, shared = np.arange(100_000), np.arange(10_000), np.arange(50_000, 51_000)
    for split, values in (("train", np.concatenate([once, twice])), ("test", shared)):
        for part in np.array_split(values, 9):
            search.add(split, hash_keys(part), place_numbers(0, 0, len(part)))
    found = search.finish(PLACES)
    assert found.sampled == 16
    assert found.count == 111_000
    assert abs(found.distinct / 100_000 - 1) < 0.05
    assert abs(found.within["train"] / 10_000 - 1) < 0.15
    (between,) = found.shared
    assert abs(between.contents / 1000 - 1) < 0.4
    assert between.records >= 2 * between.contents


def test_the_number_of_splits_is_not_limited_but_pairs_are() -> None:
    search = DuplicateSearch(None)
    for number in range(40):
        search.add(f"split {number}", hash_keys(np.array([1, 1, number])), place_numbers(0, 0, 3))
    found = search.finish(PLACES)
    assert found.distinct == 40
    assert Counter(found.within.values()) == {1: 39, 2: 1}
    assert found.shared == ()
