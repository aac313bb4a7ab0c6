"""Weighted draws each class exactly as often as stated, from all of its records alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises

import recordsmith as rs
from recordsmith.dataset import column_file
from recordsmith.loading.order import exact_draws
from recordsmith.loading.order.exact_draws import ExactDraws, exact_shares
from recordsmith.stores.local import scratch
from recordsmith.support.permutation import GroupPermutations

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
    assert balanced.draw_counts == pytest.approx([61 / len(present)] * len(present))
    drawn: Counter[int] = Counter()
    by_class: dict[int, Counter[int]] = {label: Counter() for label in present}
    for count, epoch in enumerate(_epochs(balanced, 5), 1):
        for number, label in epoch:
            by_class[label][number] += 1
        drawn.update(number for number, _ in epoch)
        for label in present:  # lap by lap
            times = [drawn[number] for number in by_class[label]]
            assert max(times) - min(times) <= 1
            assert abs(sum(times) - 61 * count / len(present)) < 1
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


WEIGHTS: dict[str, Callable[[Any, int], Any]] = {
    "similar": lambda rng, count: rng.uniform(0.1, 1, count),
    "of any size": lambda rng, count: 10.0 ** rng.uniform(-300, 308, count),
    "an outlier": lambda rng, count: np.r_[1e308, rng.uniform(0, 1e300, count - 1)],
    "the smallest": lambda _, count: 5e-324 * np.arange(1, count + 1),
    "the largest": lambda _, count: np.full(count, 1.7e308),
    "long tail": lambda rng, count: rng.pareto(0.5, count),
    "few": lambda rng, count: rng.integers(0, 3, count) + (np.arange(count) == 0),
    "two groups": lambda _, count: np.where(np.arange(count) % 2, 1e-4, 1),
}


def _shares(weights: Any, length: int) -> list[Fraction]:
    """The exact draws of an epoch."""
    exact = [Fraction(float(weight)) for weight in weights]
    return [length * weight / sum(exact) for weight in exact]


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("length", [1, 13, 60, 400])
def test_each_record_is_drawn_within_one_of_its_share(
    dataset_of: Callable[..., rs.Dataset], name: str, length: int
) -> None:
    rng = np.random.default_rng(length)
    weights = WEIGHTS[name](rng, 40)
    order = rs.Weighted(dataset_of([40]), weights=weights, length=length).order(
        shuffle=True, seed=length
    )
    shares = _shares(weights, length)
    drawn = np.zeros(40, np.int64)
    for epoch in range(50):
        drawn += np.bincount(order.positions(epoch, np.arange(length)), minlength=40)
        pairs = zip(drawn.tolist(), shares, strict=True)
        assert max(abs(count - (epoch + 1) * share) for count, share in pairs) <= 1 + 1e-9
    assert not drawn[[not share for share in shares]].any()
    again = rs.Weighted(dataset_of([40]), weights=weights, length=length).order(
        shuffle=True, seed=length
    )
    for epoch in (49, 3, 20):  # any epoch at once
        places = rng.integers(0, length, 9)
        assert again.positions(epoch, places).tolist() == order.positions(epoch, places).tolist()


@pytest.mark.parametrize("first_seed", range(700, 1000, 100))
def test_few_draws_of_few_strata(first_seed: int) -> None:
    """Many deadlines meet here: the random times alone would miss some of them."""
    for seed in range(first_seed, first_seed + 100):
        rng = np.random.default_rng(seed)
        weights = rng.integers(1, 30, rng.integers(2, 12)).astype(np.float64)
        length = int(rng.integers(1, len(weights) + 1))
        shares = exact_shares(weights, length)
        draws = ExactDraws(shares, length, seed)
        drawn = np.zeros(len(weights))
        for epoch in range(40):
            of_epoch = draws.epoch(epoch)
            assert draws.earlier(of_epoch, np.arange(len(weights))).tolist() == drawn.tolist()
            drawn += np.diff(of_epoch.first_draws)
            assert of_epoch.first_draws[-1] == length, (seed, epoch)
            assert np.diff(of_epoch.first_draws).min() >= 0
            assert abs(drawn - (epoch + 1) * shares).max() < 1 + 1e-9, (seed, epoch)


def test_light_classes_come_in_some_epochs(dataset_of: Callable[..., rs.Dataset]) -> None:
    weights = {0: 1, 1: 0.02, 2: 0.0}
    source = rs.Weighted(dataset_of([3, 4, 5]), by="label", weights=weights, length=10)
    counts = [Counter(label for _, label in epoch) for epoch in _epochs(source, 51)]
    assert {own[1] for own in counts} == {0, 1}
    assert sum(counts, Counter())[1] == 10
    assert not any(own[2] for own in counts)


def test_epochs_have_records_of_all_weights() -> None:
    """Not first the heavy ones: those of any group come in about its share of each epoch."""
    rng = np.random.default_rng(3)
    weights = np.sort(rng.uniform(0.1, 1, 4000))
    draws = ExactDraws(exact_shares(weights, 1000), 1000, seed=5)
    light = exact_shares(weights, 1000)[:2000].sum()
    for epoch in range(20):
        counts = np.diff(draws.epoch(epoch).first_draws)
        assert abs(counts[:2000].sum() - light) < 5 * np.sqrt(light)


@pytest.mark.parametrize("name", ["similar", "long tail", "few", "an outlier"])
def test_with_replacement_each_draw_is_independent(
    dataset_of: Callable[..., rs.Dataset], name: str
) -> None:
    weights = np.asarray(WEIGHTS[name](np.random.default_rng(8), 30), np.float64)
    source = rs.Weighted(dataset_of([30]), weights=weights, length=600, with_replacement=True)
    order = source.order(shuffle=True, seed=4)
    drawn = np.array([order.positions(epoch, np.arange(600)) for epoch in range(200)])
    shares = weights / weights.max()
    shares /= shares.sum()
    common = shares * 200 * 600 > 5
    counts = np.bincount(drawn.ravel(), minlength=30)
    expected = shares * 200 * 600
    assert not counts[shares == 0].any()
    if common.sum() == 1:
        assert counts[common] == 200 * 600
        return
    chi_square = ((counts - expected)[common] ** 2 / expected[common]).sum()
    freedom = common.sum() - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)
    # the counts of an epoch vary as those of independent draws, and so do neighbours
    heavy = int(shares.argmax())
    p = shares[heavy]
    variance = (drawn == heavy).sum(axis=1).var() / (600 * p * (1 - p))
    assert abs(variance - 1) < 5 * np.sqrt(2 / 200)
    again = ((drawn[:, 1:] == heavy) & (drawn[:, :-1] == heavy)).mean()
    assert abs(again - p**2) < 5 * np.sqrt(p**2 / drawn.size) + 5 * p**1.5 / np.sqrt(drawn.size)


def test_with_replacement_the_records_of_a_class_are_alike(
    dataset_of: Callable[..., rs.Dataset],
) -> None:
    labels = _labels([40, 4])
    source = rs.Weighted(dataset_of([40, 4]), by="label", length=4000, with_replacement=True)
    drawn = np.bincount(source.order(shuffle=True, seed=1).positions(7, np.arange(4000)))
    for label, count in enumerate([40, 4]):
        own = drawn[labels == label]
        assert abs(own.sum() - 2000) < 5 * np.sqrt(1000)
        chi_square = ((own - own.mean()) ** 2 / own.mean()).sum()
        assert abs(chi_square - (count - 1)) < 5 * np.sqrt(2 * count)


def test_different_weights_take_no_objects(dataset_of: Callable[..., rs.Dataset]) -> None:
    source = rs.Weighted(dataset_of([40]), weights=np.arange(40))
    for values in (source.classes, source.record_counts, source.draw_counts):
        assert isinstance(values, np.ndarray)
        assert values.shape == (40,)


def test_mixing_a_weighted_is_refused(dataset_of: Callable[..., rs.Dataset]) -> None:
    source = rs.Weighted(dataset_of([5, 5]), by="label")
    with raises(rs.OptionError, option="parts", value=(source, 0.5)):
        rs.Mix([(source, 0.5), (dataset_of([5, 5]), 0.5)])


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
    monkeypatch.setattr(exact_draws, "_AT_ONCE", 32)
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
        ({"by": "label", "length": 0}, "length"),
        ({"by": "label", "length": 1 << 60}, "length"),
        ({"weights": [float("inf")] * 12}, "weight 0 is inf"),
        ({"weights": [1] * 11 + [float("nan")]}, "weight 11 is nan"),
        ({"weights": [0.0] * 12}, "all weights are 0"),
        ({"weights": [10**400] * 12}, "weight"),
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
