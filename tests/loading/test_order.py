"""Orders are permutations, shared out exactly, at any number of ranks and from any place on."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.loading.order import Blocks, Order
from recordsmith.loading.permutation import Permutation

SHUFFLES = st.one_of(
    st.booleans(), st.builds(Blocks, size=st.integers(1, 40), window=st.integers(1, 5))
)


def _all(order: Order, epoch: int = 0, start: int = 0) -> list[int]:
    return order.positions(epoch, 0, order.length(start), start).tolist()  # type: ignore[no-any-return]


# -- the permutation -----------------------------------------------------------------------------


@given(st.integers(1, 20_000), st.integers(), st.integers(0, 9))
@settings(max_examples=60)
def test_permutation_has_every_number_once(count: int, seed: int, epoch: int) -> None:
    order = Permutation(count, seed, epoch)[np.arange(count)]
    assert sorted(order.tolist()) == list(range(count))


@given(st.integers(1, 10**12), st.data())
@settings(max_examples=60)
def test_any_part_of_an_order_can_be_asked_for_alone(count: int, data: Any) -> None:
    places = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=9))
    permutation = Permutation(count, 7)
    together = permutation[np.array(places)]
    assert ((together >= 0) & (together < count)).all()
    alone = [int(permutation[np.array([place])][0]) for place in places]
    assert together.tolist() == alone
    assert len(set(together.tolist())) == len(set(places))


@pytest.mark.parametrize("count", [3, 4, 5])
def test_few_numbers_come_in_every_order_alike(count: int) -> None:
    seen = Counter(
        tuple(Permutation(count, seed)[np.arange(count)].tolist()) for seed in range(12_000)
    )
    orders = int(np.prod(range(1, count + 1)))
    expected = 12_000 / orders
    assert len(seen) == orders
    chi_square = sum((found - expected) ** 2 for found in seen.values()) / expected
    assert chi_square < orders + 5 * (2 * orders) ** 0.5


def test_many_numbers_are_spread_evenly() -> None:
    count, parts = 1_000_000, 40
    order = Permutation(count, 1)[np.arange(count)]
    table = np.histogram2d(np.arange(count), order, bins=parts)[0]
    expected = count / parts**2
    chi_square = ((table - expected) ** 2 / expected).sum()
    freedom = (parts - 1) ** 2
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.005
    other = Permutation(count, 1, epoch=1)[np.arange(count)]
    assert abs(np.corrcoef(order, other)[0, 1]) < 0.005


def test_orders_are_the_same_everywhere() -> None:
    """Golden: a resumed job depends on it."""
    assert Permutation(10, 0)[np.arange(10)].tolist() == GOLDEN_FEW
    assert Permutation(10**10, 5, 2)[np.arange(4)].tolist() == GOLDEN_MANY
    script = (
        "import numpy as np; from recordsmith.loading.permutation import Permutation\n"
        "print(Permutation(10**10, 5, 2)[np.arange(4)].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == str(GOLDEN_MANY)


GOLDEN_FEW = [6, 7, 5, 0, 1, 9, 2, 3, 4, 8]
GOLDEN_MANY = [9273348502, 4877893572, 2944053822, 5254339420]


# -- sharing out ---------------------------------------------------------------------------------


@given(
    count=st.integers(1, 300),
    shuffle=SHUFFLES,
    seed=st.integers(0, 5),
    epoch=st.integers(0, 3),
    world_size=st.integers(1, 9),
)
@settings(max_examples=200)
def test_ranks_share_an_epoch(
    count: int, shuffle: bool | Blocks, seed: int, epoch: int, world_size: int
) -> None:
    def ranks(ends: Any) -> list[list[int]]:
        return [
            _all(Order(count, shuffle=shuffle, seed=seed, rank=rank, world_size=world_size,
                       ends=ends), epoch)
            for rank in range(world_size)
        ]  # fmt: skip

    whole = _all(Order(count, shuffle=shuffle, seed=seed), epoch)
    assert sorted(whole) == list(range(count))
    kept = ranks("keep")
    assert sorted(position for rank in kept for position in rank) == list(range(count))
    assert kept == [whole[rank::world_size] for rank in range(world_size)]
    dropped = ranks("drop")
    assert {len(rank) for rank in dropped} == {count // world_size}
    assert dropped == [rank[: count // world_size] for rank in kept]
    padded = ranks("pad")
    assert {len(rank) for rank in padded} == {-(-count // world_size)}
    assert {position for rank in padded for position in rank} == set(range(count))


@given(
    count=st.integers(1, 200),
    shuffle=SHUFFLES,
    worlds=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 20)), min_size=1, max_size=4),
)
@settings(max_examples=200)
def test_another_number_of_ranks_may_go_on(
    count: int, shuffle: bool | Blocks, worlds: list[tuple[int, int]]
) -> None:
    """Each world reads some rounds; in the end every record was read once."""
    whole = _all(Order(count, shuffle=shuffle, seed=3), 1)
    read: list[int] = []
    for world_size, rounds in [*worlds, (2, count)]:
        start = len(read)
        ranks = [
            Order(count, shuffle=shuffle, seed=3, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        for number in range(rounds):
            for order in ranks:
                if number < order.length(start):
                    read += order.positions(1, number, number + 1, start).tolist()
    assert read == whole


@pytest.mark.parametrize("size", [1, 3, 16])
def test_blocks_are_read_together_and_mixed_within_their_window(size: int) -> None:
    count, window = 480, 4
    order = _all(Order(count, shuffle=Blocks(size, window), seed=1))
    for begin in range(0, count, size * window):
        run = order[begin : begin + size * window]
        blocks = {position // size for position in run}
        assert len(blocks) == len(run) // size <= window
    assert order != sorted(order)
    assert order != _all(Order(count, shuffle=Blocks(size, window), seed=1), 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 2, "world_size": 2}, "rank is 2; expected 0 to 1"),
        ({"rank": -1}, "rank is -1"),
        ({"world_size": 0}, "world_size is 0"),
        ({"ends": "all"}, "ends is 'all'"),
    ],
)
def test_orders_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(rs.OptionError, match=words):
        Order(10, **options)


@pytest.mark.parametrize("options", [{"size": 0}, {"window": 0}, {"size": 1.5}])
def test_blocks_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(rs.OptionError, match="expected at least 1"):
        Blocks(**options)
