"""Weighted draws each class exactly as often as stated, from all of its records alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.dataset import column_file
from recordsmith.loading.order import weighted
from recordsmith.permutation import GroupPermutations
from recordsmith.stores.local import scratch

NAMES = ["daisy", "fern", "moss", "rose"]


def _labels(counts: list[int], seed: int = 0) -> np.ndarray[Any, Any]:
    labels = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(labels)


@pytest.fixture
def dataset_of(tmp_path: Path) -> Callable[..., rs.Dataset]:
    """Make a dataset of three shards with so many records of each class, in a random order."""

    def make(counts: list[int], scale: int = 1) -> rs.Dataset:
        labels = _labels(counts)
        for number, own in enumerate(np.array_split(np.arange(len(labels)), 3)):
            with rs.ShardWriter(tmp_path / f"part-{number}.tfrecord", overwrite=True) as writer:
                for at in own.tolist():
                    label = int(labels[at])
                    row = {"id": at, "label": label * scale, "weight": 2.0**label}
                    writer.write_example({**row, "name": NAMES[label % len(NAMES)]})
        return rs.open(tmp_path)

    return make


def _epochs(source: Any, count: int = 1, **options: Any) -> list[list[tuple[int, int]]]:
    """The ids and labels of each epoch."""
    options = {"batch_size": 5, "shuffle": True, "epochs": count, "threads": 0, **options}
    loader = rs.Loader(source, ["id", "label"], **options)
    rows = [
        pair
        for batch in loader
        for pair in zip(batch["id"].tolist(), batch["label"].tolist(), strict=True)
    ]
    return [rows[start : start + len(source)] for start in range(0, len(rows), len(source))]


def test_orders_of_groups_are_permutations_of_their_own() -> None:
    counts = np.array([1, 2, 3, 31, 32, 33, 500, 65_535, 65_536, 70_001])
    groups = np.repeat(np.arange(len(counts)), counts)
    places = np.concatenate([np.arange(count) for count in counts.tolist()])
    orders = GroupPermutations(7, "test")
    laps = np.full_like(groups, 2)
    together = orders.numbers(groups, counts[groups], laps, places)
    for group, count in enumerate(counts.tolist()):
        own = together[groups == group]
        assert np.array_equal(np.sort(own), np.arange(count))
        alone = orders.numbers(*(np.full(count, n) for n in (group, count, 2)), np.arange(count))
        assert np.array_equal(own, alone)
        if count > 30:
            other = orders.numbers(
                *(np.full(count, n) for n in (group, count, 3)), np.arange(count)
            )
            assert not np.array_equal(own, other)


@pytest.mark.parametrize("counts", [[50, 3, 20, 1], [1, 1], [40], [7, 0, 0, 11]])
@pytest.mark.parametrize("scale", [1, 1_000, 1 << 40])
def test_classes_are_drawn_equally_often(
    dataset_of: Callable[..., rs.Dataset], counts: list[int], scale: int
) -> None:
    dataset = dataset_of(counts, scale)
    balanced = rs.Weighted(dataset, by="label", length=61)
    present = [label * scale for label, count in enumerate(counts) if count]
    assert balanced.classes == present
    assert balanced.record_counts == [count for count in counts if count]
    assert max(balanced.draw_counts) - min(balanced.draw_counts) <= 1
    drawn: Counter[int] = Counter()
    by_class: dict[int, Counter[int]] = {label: Counter() for label in present}
    for epoch in _epochs(balanced, 5):
        own = Counter(label for _, label in epoch)
        assert [own[label] for label in present] == balanced.draw_counts
        for number, label in epoch:
            by_class[label][number] += 1
        drawn.update(number for number, _ in epoch)
        for label in present:  # lap by lap
            times = [drawn[number] for number in by_class[label]]
            assert max(times) - min(times) <= 1
            if sum(times) >= counts[label // scale]:
                assert len(times) == counts[label // scale]


@pytest.mark.parametrize(
    ("by", "weights", "shares"),
    [
        ("label", {0: 1, 1: 3, 2: 0, 3: 6}, [6, 18, 0, 36]),
        ("name", {"daisy": 1, "fern": 3, "moss": 0, "rose": 6}, [6, 18, 0, 36]),
        ("name", None, [15, 15, 15, 15]),
        (None, "weight", None),
        (None, "array", None),
    ],
)
def test_weights(dataset_of: Callable[..., rs.Dataset], by: Any, weights: Any, shares: Any) -> None:
    counts = [10, 20, 5, 2]
    dataset = dataset_of(counts)
    if shares is None:
        exact = np.array(counts) * 2.0 ** np.arange(4)
        shares = (60 * exact / exact.sum()).tolist()
    given = 2.0 ** _labels(counts) if weights == "array" else weights
    source = rs.Weighted(dataset, by, weights=given, length=60)
    own = Counter(label for _, label in _epochs(source)[0])
    assert sum(own.values()) == 60
    assert all(abs(own[label] - share) < 1 for label, share in enumerate(shares))


def test_many_different_weights_are_grouped(dataset_of: Callable[..., rs.Dataset]) -> None:
    dataset = dataset_of([2000])
    weights = np.random.default_rng(1).lognormal(0, 2, 2000)
    weights[::7] = 0
    source = rs.Weighted(dataset, weights=weights, length=400_000)
    assert len(source.classes) <= 256
    times = np.bincount([number for number, _ in _epochs(source, batch_size=5000)[0]])
    expected = 400_000 * weights / weights.sum()
    assert not times[::7].any()
    common = expected > 100
    assert (times > 0).sum() > 1600  # also of those with little weight
    ratio = times[common] / expected[common]
    most_apart = (weights.max() / weights[weights > 0].min()) ** (1 / 254)
    assert 0.98 / most_apart < ratio.min() <= ratio.max() < 1.02 * most_apart


def test_a_state_fits_only_the_same_classes_and_draws(
    dataset_of: Callable[..., rs.Dataset],
) -> None:
    dataset = dataset_of([30, 4, 9])

    def loader(**options: Any) -> rs.Loader:
        source = rs.Weighted(dataset, **{"by": "label", "length": 20, **options})
        return rs.Loader(source, ["id"], batch_size=2, shuffle=True)

    state = loader().state_dict()
    loader().load_state_dict(state)
    for options in (
        {"weights": {0: 1, 1: 1, 2: 3}},
        {"with_replacement": True},
        {"by": None, "weights": 1 + np.arange(43) % 3},
    ):
        with pytest.raises(rs.OptionError, match="weighted"):
            loader(**options).load_state_dict(state)


def test_large_arrays_are_in_files(
    dataset_of: Callable[..., rs.Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = dataset_of([300, 40])
    expected = _epochs(rs.Weighted(dataset, by="label"), 2)
    monkeypatch.setattr(scratch, "_ARRAY_IN_MEMORY_BYTES", 16)
    monkeypatch.setattr(weighted, "_AT_ONCE", 32)
    assert _epochs(rs.Weighted(dataset, by="label"), 2) == expected
    assert column_file.record_values(dataset, "label").numbers.base is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "nothing"}, "nothing"),
        ({"by": "weight"}, "floats"),
        ({}, "by"),
        ({"by": "label", "weights": {0: 1}}, "no weight for the classes 1, 2"),
        ({"by": "label", "weights": {0: 1, 1: 1, 2: 1, 9: 1}}, "no record has the classes 9"),
        ({"by": "label", "weights": {0: -1, 1: 1, 2: 1}}, "weight 0 is -1"),
        ({"by": "label", "weights": {0: float("nan"), 1: 1, 2: 1}}, "weight 0 is nan"),
        ({"by": "label", "weights": {0: 0, 1: 0, 2: 0}}, "all weights are 0"),
        ({"by": "label", "weights": {0: 1, 1: 1, 2: "x"}}, "weight"),
        ({"by": "label", "weights": 3}, "weights"),
        ({"by": "label", "weights": {0: 1e-9, 1: 1, 2: 1}}, "too small"),
        ({"by": "label", "length": 2}, "too small"),
        ({"by": "label", "length": 0}, "length"),
        ({"weights": [1, 2]}, "shape"),
        ({"weights": "name"}, "texts"),
    ],
)
def test_bad_options(dataset_of: Callable[..., rs.Dataset], options: Any, words: str) -> None:
    dataset = dataset_of([3, 4, 5])
    with pytest.raises(rs.OptionError, match=words):
        rs.Weighted(dataset, **options)


def test_it_needs_a_shuffle(dataset_of: Callable[..., rs.Dataset]) -> None:
    source = rs.Weighted(dataset_of([3, 4]), by="label")
    for shuffle in (False, rs.BlockShuffle()):
        with raises(rs.OptionError, option="shuffle", value=shuffle):
            rs.Loader(source, ["id"], batch_size=1, shuffle=shuffle)
