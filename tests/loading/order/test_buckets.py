"""Records of like size come together, and everything else that an order promises still holds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raising import raises

import recordsmith as rs
from recordsmith.loading import BlockShuffle, BucketBySize
from recordsmith.loading.order.buckets import BucketOrder
from recordsmith.loading.order.shuffle import DatasetOrder

LENGTHS = (5, 90, 12, 300, 1, 44, 44, 0, 7)
SHUFFLES = st.sampled_from([False, True, BlockShuffle(4, 2)])


@pytest.fixture(scope="module")
def dataset(small: Any, tmp_path_factory: pytest.TempPathFactory) -> rs.Dataset:
    folder = tmp_path_factory.mktemp("buckets")
    return small.write_shards(folder, [20, 31], lengths=LENGTHS)  # type: ignore[no-any-return]


def _order(
    sizes: npt.NDArray[Any],
    *,
    window: int,
    group: int,
    shuffle: bool | BlockShuffle = True,
) -> BucketOrder:
    return BucketOrder(
        DatasetOrder(len(sizes), shuffle=shuffle, seed=1),
        BucketBySize(window),
        step_size=group,
        record_sizes=lambda positions: sizes[positions],
        is_shuffled=shuffle is not False,
        seed=1,
    )


def _padding(sizes: npt.NDArray[Any], batch_size: int) -> float:
    """How much larger batches get by padding to their largest, of sizes in their order."""
    whole = sizes[: len(sizes) // batch_size * batch_size].reshape(-1, batch_size)
    return float(whole.max(axis=1).sum() * batch_size / whole.sum())


@given(st.integers(1, 200), st.integers(1, 60), st.integers(1, 20), SHUFFLES, st.data())
def test_every_record_comes_once_and_in_its_window(
    count: int, window: int, group: int, shuffle: bool | BlockShuffle, data: Any
) -> None:
    sizes = np.array(data.draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)))
    order = _order(sizes, window=window, group=group, shuffle=shuffle)
    positions = order.positions(2, np.arange(count))
    below = DatasetOrder(count, shuffle=shuffle, seed=1).positions(2, np.arange(count))
    whole = max(1, window // group) * group
    for begin in range(0, count, whole):
        in_window = positions[begin : begin + whole]
        assert sorted(in_window) == sorted(below[begin : begin + whole])
        found = [sizes[in_window[at : at + group]] for at in range(0, len(in_window), group)]
        assert all((np.diff(of_group) >= 0).all() for of_group in found)
        # groups do not overlap: between them, sizes are sorted too
        found.sort(key=lambda of_group: (of_group[0], of_group[-1]))
        assert (np.diff(np.concatenate(found)) >= 0).all()
    asked = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=6)), np.int64)
    assert order.positions(2, asked).tolist() == positions[asked].tolist()


def test_groups_come_in_a_random_order_if_shuffled() -> None:
    sizes = np.random.default_rng(0).integers(0, 1000, 400)
    shuffled = _order(sizes, window=200, group=10)
    firsts = sizes[shuffled.positions(0, np.arange(400))][::10]
    assert (np.diff(firsts[:20]) < 0).any()
    assert firsts.tolist() != sizes[shuffled.positions(1, np.arange(400))][::10].tolist()
    by_size = [np.argsort(firsts[begin : begin + 20]).tolist() for begin in (0, 20)]
    assert by_size[0] != by_size[1], "each window has an order of its own"
    ordered = _order(sizes, window=200, group=10, shuffle=False)
    found = sizes[ordered.positions(0, np.arange(400))]
    assert found.tolist() == sorted(sizes[:200]) + sorted(sizes[200:])


def test_little_is_padded() -> None:
    sizes = np.random.default_rng(0).lognormal(5, 0.6, 20_000)
    plain = DatasetOrder(len(sizes), shuffle=True, seed=1).positions(0, np.arange(len(sizes)))
    bucketed = _order(sizes, window=2048, group=32).positions(0, np.arange(len(sizes)))
    assert _padding(sizes[plain], 32) > 2.5
    assert _padding(sizes[bucketed], 32) < 1.1
    # also for the ranks of which the step is shared out, and where the group divides no window
    assert _padding(sizes[bucketed][1::4], 8) < 1.1
    odd = _order(sizes, window=2048, group=96).positions(0, np.arange(len(sizes)))
    assert _padding(sizes[odd][:19_000], 96) < 1.25


def test_sizes_may_be_given(small: Any, dataset: rs.Dataset) -> None:
    sizes = np.arange(51) % 7
    buckets = rs.BucketBySize(window=100, by=sizes)
    batches = small.ids(small.loader(dataset, batch_size=10, buckets=buckets))
    found = [int(sizes[number]) for batch in batches for number in batch]
    assert found == sorted(sizes.tolist())


def test_states_of_other_buckets_are_refused(small: Any, dataset: rs.Dataset) -> None:
    def loader(buckets: BucketBySize | None) -> rs.Loader:
        return small.loader(dataset, batch_size=2, buckets=buckets)  # type: ignore[no-any-return]

    sizes = np.arange(51)
    state = json.loads(json.dumps(loader(rs.BucketBySize(window=20, by=sizes)).state_dict()))
    loader(rs.BucketBySize(window=20, by=sizes.astype(np.int32))).load_state_dict(state)
    loader(rs.BucketBySize(window=20, by=sizes.tolist())).load_state_dict(state)
    others = [
        rs.BucketBySize(window=21, by=sizes),
        rs.BucketBySize(window=20, by=sizes[::-1]),
        rs.BucketBySize(window=20, by=sizes, group=7),
        rs.BucketBySize(window=20),
        None,
    ]
    for other in others:
        with raises(rs.OptionError, option="state"):
            loader(other).load_state_dict(state)
    broken = {**state, "order": {**state["order"], "buckets": {"group": 0}}}
    with raises(rs.OptionError, option="state"):
        loader(rs.BucketBySize(window=20, by=sizes)).load_state_dict(broken)
