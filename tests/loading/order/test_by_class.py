"""Each batch of a ByClass has k classes with m examples; `test_orders` has ranks and resuming."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.raising import raises
from tests.reading import written

import recordsmith as rs
from recordsmith.loading.order.by_class import _Laps

SIZES = [9, 1, 4, 17, 2, 8, 30]  # records of each class
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(len(SIZES)), SIZES))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    rows = [
        {"id": at, "label": label * 3, "name": f"class {label}", "weight": 0.5, "all": b"same"}
        for at, label in enumerate(LABELS.tolist())
    ]
    return written(tmp_path_factory.mktemp("by-class"), rows)


def _made(dataset: rs.Dataset, **options: Any) -> rs.ByClass:
    return rs.ByClass(dataset, **{"by": "label", "classes": 3, "examples": 2, **options})


def _loader(source: Any, **options: Any) -> rs.Loader:
    options = {"batch_size": source.batch_size, "shuffle": True, "threads": 0, **options}
    return rs.Loader(source, ["id", "label"], **options)


def _ids(loader: rs.Loader) -> list[list[int]]:
    return [batch["id"].tolist() for batch in loader]


def _is_even(times: Any) -> bool:
    return bool(max(times) - min(times) <= 1)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 31, 40])
def test_laps_are_permutations_and_neighbours_differ(size: int) -> None:
    rng = np.random.default_rng(size)
    for count in [*range(1, 20), 33, 64, 81, 200]:
        laps, groups = _Laps(size, 3, "test"), np.full(size * 60, count + 5)
        counts, places = np.full_like(groups, count), np.arange(len(groups))
        members, numbers = laps.numbers(groups, counts, places)
        assert np.array_equal(numbers, places // count)
        for lap in range(len(places) // count):
            assert len({*members[lap * count : (lap + 1) * count].tolist()}) == count
        assert all(_is_even(np.bincount(own, minlength=count)) for own in members.reshape(-1, size))
        some = rng.choice(places, 20)  # in any order, and next to those of another group
        again, _ = laps.numbers(
            np.append(groups[some], 2), np.append(counts[some], 11), np.append(some, 7)
        )
        assert np.array_equal(again[:-1], members[some])


@pytest.mark.parametrize(("classes", "examples"), [(7, 1), (1, 5), (3, 4), (5, 3), (2, 2), (7, 9)])
@pytest.mark.parametrize("by", ["label", "name"])
def test_batches_have_their_classes_and_all_are_drawn_equally_often(
    dataset: rs.Dataset, by: str, classes: int, examples: int
) -> None:
    source = _made(dataset, by=by, classes=classes, examples=examples)
    assert source.record_counts.tolist() == SIZES
    assert source.class_values == [at * 3 if by == "label" else f"class {at}" for at in range(7)]
    assert len(source) == max(1, len(LABELS) // source.batch_size) * source.batch_size
    drawn, records = np.zeros(7, np.int64), np.zeros(len(LABELS), np.int64)
    for batch in _loader(source, epochs=12):
        assert (batch["label"] == LABELS[batch["id"]] * 3).all()
        labels = (batch["label"] // 3).reshape(classes, examples)
        assert (labels == labels[:, :1]).all()
        assert len({*labels[:, 0].tolist()}) == classes
        drawn[labels[:, 0]] += 1
        np.add.at(records, batch["id"], 1)
        assert _is_even(drawn)
        for label, ids in zip(labels[:, 0], batch["id"].reshape(classes, -1), strict=True):
            times = Counter(ids.tolist())
            assert len(times) == min(examples, SIZES[label])
            assert _is_even(times.values())
            assert _is_even(records[label == LABELS])


def test_pairs_of_classes_and_of_records_are_alike(dataset: rs.Dataset) -> None:
    """Also across the ends of laps: two of seven classes, and two of nine records."""
    counts, pairs = np.zeros((7, 7), np.int64), np.zeros((len(LABELS), len(LABELS)), np.int64)
    source = _made(dataset, classes=2, length=4 * 35)
    for seed in range(60):
        order = source.order(shuffle=True, seed=seed)
        found = order.positions(seed, np.arange(len(source))).reshape(-1, 2, 2)
        np.add.at(counts, (*LABELS[found[:, :, 0]].T,), 1)
        np.add.at(pairs, (*found.reshape(-1, 2).T,), 1)
    own = np.flatnonzero(LABELS == 0)
    for table in (counts, pairs[np.ix_(own, own)]):
        is_pair = ~np.eye(len(table), dtype=bool)
        assert not table[~is_pair].any()
        expected = table.sum() / is_pair.sum()
        chi_square = ((table[is_pair] - expected) ** 2 / expected).sum()
        assert chi_square < is_pair.sum() + 5 * np.sqrt(2 * is_pair.sum())


def test_workers_copies_and_other_states(dataset: rs.Dataset) -> None:
    source = _made(dataset)
    expected = _ids(_loader(source, epochs=3))
    workers = [_ids(_loader(source, epochs=3).for_worker(at, 3)) for at in range(3)]
    assert [workers[at % 3][at // 3] for at in range(len(expected))] == expected
    assert _ids(pickle.loads(pickle.dumps(_loader(source, epochs=3)))) == expected
    for options in ({"classes": 2, "examples": 3}, {"by": "all", "classes": 1, "examples": 6}):
        with raises(rs.OptionError, option="state"):
            _loader(_made(dataset, **options)).load_state_dict(_loader(source).state_dict())


def test_skipped_errors_leave_their_rows_out(tmp_path: Path, numbered: Any) -> None:
    damaged = written(tmp_path, [{"id": at, "label": at % 4} for at in range(40)])
    numbered.damage(damaged, [7, 21])
    source = _made(rs.open(damaged.shards[0].location), examples=4)
    batches = source.order(shuffle=True, seed=0).positions(0, np.arange(len(source)))
    loader = _loader(source, skip_errors=2)
    left = [[at for at in own if at not in (7, 21)] for own in batches.reshape(-1, 12).tolist()]
    assert _ids(loader) == left
    assert sum(map(len, left)) == len(batches) - len(loader.skipped) < len(batches)


MADE: list[tuple[str, dict[str, Any]]] = [
    ("classes", {"classes": 8}), ("classes", {"classes": 0}), ("examples", {"examples": 1.5}),
    ("batch_size", {"classes": 7, "examples": (1 << 31) - 1}), ("length", {"length": 13}),
    ("length", {"length": 0}), ("by", {"by": "weight"}), ("key", {"by": "nothing"}),
]  # fmt: skip
LOADED: list[tuple[str, dict[str, Any]]] = [
    ("batch_size", {"batch_size": 12}), ("last_batch", {"world_size": 2}),
    ("shuffle", {"shuffle": False}), ("buckets", {"buckets": rs.BucketBySize()}),
]  # fmt: skip


def test_bad_options(dataset: rs.Dataset) -> None:
    for option, options in MADE:
        with raises(rs.OptionError, option=option):
            _made(dataset, **options)
    for option, options in LOADED:
        with raises(rs.OptionError, option=option):
            _loader(_made(dataset), **options)
    with raises(rs.OptionError, option="dataset"):
        _made(dataset[:0])
    with raises(rs.OptionError, option="parts"):
        rs.Mix([(_made(dataset), 1)])
