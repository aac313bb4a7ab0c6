"""Each epoch has every position once, in the order that the shuffle promises."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.loading import BlockShuffle
from recordsmith.loading.order.shuffle import DatasetOrder

SHUFFLES = st.one_of(
    st.booleans(), st.builds(BlockShuffle, size=st.integers(1, 40), window=st.integers(1, 5))
)


def _all(order: DatasetOrder, epoch: int = 0) -> list[int]:
    return order.positions(epoch, np.arange(order.count)).tolist()


@given(st.integers(1, 600), SHUFFLES, st.data())
def test_any_part_can_be_asked_for_alone(
    count: int, shuffle: bool | BlockShuffle, data: Any
) -> None:
    order = DatasetOrder(count, shuffle=shuffle)
    places = data.draw(st.lists(st.integers(0, count - 1), max_size=9))
    whole = _all(order, 2)
    part = order.positions(2, np.array(places, np.int64)).tolist()
    assert part == [whole[place] for place in places]


@pytest.mark.parametrize("shuffle", [True, BlockShuffle(3, 4)])
def test_epochs_and_seeds_have_orders_of_their_own(shuffle: bool | BlockShuffle) -> None:
    orders = [_all(DatasetOrder(100, shuffle=shuffle, seed=seed), epoch) for seed, epoch in
              ((0, 0), (0, 1), (1, 0))]  # fmt: skip
    assert orders[0] == _all(DatasetOrder(100, shuffle=shuffle, seed=0), 0)
    assert len({tuple(order) for order in orders}) == 3


@pytest.mark.parametrize("size", [1, 3, 16])
def test_blocks_are_read_together_and_mixed_within_their_window(size: int) -> None:
    count, window = 480, 4
    order = _all(DatasetOrder(count, shuffle=BlockShuffle(size, window), seed=1))
    neighbours = []
    for begin in range(0, count, size * window):
        run = order[begin : begin + size * window]
        blocks = sorted({position // size for position in run})
        assert len(blocks) == len(run) // size <= window
        neighbours += np.diff(blocks).tolist()
        assert len(run) < 8 or run != sorted(run)
    assert max(neighbours) > 1, "blocks are not in a random order"


def test_a_short_last_block_stays_at_the_end() -> None:
    order = _all(DatasetOrder(103, shuffle=BlockShuffle(10, 1), seed=1))
    assert sorted(order[100:]) == [100, 101, 102]


def test_orders_are_the_same_everywhere() -> None:
    """Golden: a resumed job depends on it."""
    assert _all(DatasetOrder(12, shuffle=True, seed=1), 2) == GOLDEN
    assert _all(DatasetOrder(12, shuffle=BlockShuffle(2, 2), seed=1), 2) == GOLDEN_BLOCKS
    assert DatasetOrder(10**12, shuffle=True).positions(0, np.arange(3)).tolist() == GOLDEN_MANY


GOLDEN = [1, 9, 4, 2, 0, 3, 10, 8, 5, 6, 7, 11]
GOLDEN_BLOCKS = [0, 7, 1, 6, 5, 9, 8, 4, 2, 10, 11, 3]
GOLDEN_MANY = [608773448669, 461124738883, 193391077021]


@given(SHUFFLES, st.integers(-(2**63), 2**64 - 1))
def test_a_description_survives_json(shuffle: bool | BlockShuffle, seed: int) -> None:
    described = DatasetOrder(7, shuffle=shuffle, seed=seed).describe()
    assert json.loads(json.dumps(described)) == described
    blocks = BlockShuffle(np.int64(3), np.int64(2))  # type: ignore[arg-type]
    json.dumps(DatasetOrder(7, shuffle=blocks, seed=np.int64(3)).describe())  # type: ignore[arg-type]
