"""Orders are permutations, equal on every machine, and uniformly random."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordsmith.support.permutation import Permutations


@given(st.integers(1, 20_000), st.integers(), st.integers(0, 9))
@settings(max_examples=60)
def test_every_number_comes_once(count: int, seed: int, lap: int) -> None:
    order = Permutations(count, seed).numbers(lap, np.arange(count))
    assert order.dtype == np.int64
    assert sorted(order.tolist()) == list(range(count))


def test_an_empty_order() -> None:
    assert Permutations(0, 1).numbers(0, np.arange(0)).tolist() == []


@given(st.integers(1, 2**62), st.data())
@settings(max_examples=60)
def test_any_part_of_an_order_can_be_computed_alone(count: int, data: Any) -> None:
    asked = data.draw(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, count - 1)), min_size=1, max_size=9)
    )
    orders = Permutations(count, 7)
    laps, places = np.array(asked).T
    together = orders.numbers(laps, places)
    assert ((together >= 0) & (together < count)).all()
    assert together.tolist() == [
        int(orders.numbers(lap, np.array([place]))[0]) for lap, place in asked
    ]
    assert len({(lap, number) for (lap, _), number in zip(asked, together, strict=True)}) == len(
        set(asked)
    )


def _excess(table: npt.NDArray[Any], expected: Any) -> float:
    """Return by how many standard deviations counts deviate more than expected."""
    chi_square = ((table - expected) ** 2 / expected).sum()
    freedom = table.size - 1
    return float((chi_square - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_all_orders_of_few_numbers_are_equally_likely(count: int) -> None:
    laps = 12_000
    places = np.tile(np.arange(count), laps)
    orders = Permutations(count, 1).numbers(np.repeat(np.arange(laps), count), places)
    seen = Counter(map(tuple, orders.reshape(laps, count).tolist()))
    assert len(seen) == factorial(count)
    assert abs(_excess(np.array(list(seen.values())), laps / factorial(count))) < 5


@pytest.mark.parametrize("count", [33, 40, 64, 100, 128, 1000])
def test_pairs_are_equally_likely_in_narrow_networks(count: int) -> None:
    """Too few rounds show in places that share a digit."""
    orders, laps = Permutations(count, 1), np.arange(100_000)
    base = int((count - 1) ** 0.5) + 1
    for one, other in ((0, 1), (5, 6), (0, base), (3, 3 + base), (0, count - 1)):
        pair = [orders.numbers(laps, np.full(len(laps), place)) for place in (one, other)]
        marginal = np.bincount(pair[0], minlength=count)
        assert abs(_excess(marginal, len(laps) / count)) < 5
        distance = np.bincount((pair[0] - pair[1]) % count, minlength=count)[1:]
        assert abs(_excess(distance, len(laps) / (count - 1))) < 5


@pytest.mark.parametrize("count", [5_000, 1_000_000])
def test_many_numbers_are_spread_evenly(count: int) -> None:
    parts = 20
    orders = Permutations(count, 1)
    order = orders.numbers(0, np.arange(count))
    table = np.histogram2d(np.arange(count), order, bins=parts)[0]
    # rows and columns have fixed sums, so fewer degrees of freedom; the limit allows for it
    assert abs(_excess(table, count / parts**2)) < 5
    for other in (np.roll(order, 1), orders.numbers(1, np.arange(count))):
        distance = np.histogram((order - other) % count, bins=50, range=(0, count))[0]
        assert abs(_excess(distance, count / 50)) < 5


def test_laps_seeds_and_keys_have_different_orders() -> None:
    places = np.arange(1000)
    orders = [
        Permutations(1000, 1, "a").numbers(0, places),
        Permutations(1000, 1, "a").numbers(1, places),
        Permutations(1000, 2, "a").numbers(0, places),
        Permutations(1000, 1, "b").numbers(0, places),
    ]
    for at, one in enumerate(orders):
        for other in orders[at + 1 :]:
            assert (one == other).sum() < 10  # one is expected


def test_orders_are_the_same_everywhere() -> None:
    """Golden values: a resumed job depends on them."""
    assert Permutations(10, 0).numbers(0, np.arange(10)).tolist() == GOLDEN_FEW
    assert Permutations(1000, 0).numbers(3, np.arange(4)).tolist() == GOLDEN_NARROW
    assert Permutations(10**10, 5, "x").numbers(2, np.arange(4)).tolist() == GOLDEN_MANY
    script = (
        "import numpy as np; from recordsmith.support.permutation import Permutations\n"
        "print(Permutations(10**10, 5, 'x').numbers(2, np.arange(4)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == str(GOLDEN_MANY)


GOLDEN_FEW = [5, 7, 1, 2, 8, 0, 4, 3, 6, 9]
GOLDEN_NARROW = [544, 777, 56, 945]
GOLDEN_MANY = [2465802396, 671553890, 828048357, 2027254505]
