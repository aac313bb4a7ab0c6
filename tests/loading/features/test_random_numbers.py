"""Random numbers belong to a place in an epoch, and to what they are for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.loading.features.feature import RandomNumbers

PLACES = st.lists(st.integers(0, 2**62), min_size=1, max_size=9)


@given(PLACES, st.integers(0, 9), st.integers(0, 9))
def test_they_do_not_depend_on_the_batch(places: list[int], seed: int, epoch: int) -> None:
    draws = RandomNumbers(seed, epoch, np.array(places))
    together = draws.uniform("crop", 3)
    assert together.shape == (len(places), 3)
    for row, place in enumerate(places):
        alone = RandomNumbers(seed, epoch, np.array([place]))
        assert alone.uniform("crop", 3).tolist() == [together[row].tolist()]
        assert draws.generator("map", row).random() == alone.generator("map", 0).random()
    reverse = np.arange(len(places))[::-1]
    assert draws.select(reverse).uniform("crop", 3).tolist() == together[::-1].tolist()


def test_they_are_even_and_have_nothing_to_do_with_each_other() -> None:
    places = np.arange(100_000)
    columns = {
        "one": RandomNumbers(0, 0, places).uniform("crop", 2)[:, 0],
        "another": RandomNumbers(0, 0, places).uniform("crop", 2)[:, 1],
        "purpose": RandomNumbers(0, 0, places).uniform("flip", 1)[:, 0],
        "epoch": RandomNumbers(0, 1, places).uniform("crop", 1)[:, 0],
        "seed": RandomNumbers(1, 0, places).uniform("crop", 1)[:, 0],
        "next": RandomNumbers(0, 0, places + 1).uniform("crop", 1)[:, 0],
    }
    for column in columns.values():
        assert column.min() >= 0
        assert column.max() < 1
        counts = np.histogram(column, bins=100, range=(0, 1))[0]
        chi_square = ((counts - 1000) ** 2 / 1000).sum()
        assert abs(chi_square - 99) < 5 * 198**0.5
    correlations = np.corrcoef(list(columns.values())) - np.eye(len(columns))
    assert abs(correlations).max() < 5 / len(places) ** 0.5


def test_they_are_the_same_everywhere() -> None:
    """Golden: a resumed job depends on it."""
    draws = RandomNumbers(1, 2, np.array([3, 10**12]))
    assert (draws.uniform("crop", 2) * 2**53).astype(np.int64).tolist() == GOLDEN
    raw = draws.generator("map", 1).bit_generator.random_raw(2)
    assert raw.tolist() == GOLDEN_RAW  # type: ignore[attr-defined]


GOLDEN = [[8581940110827205, 7833896827383773], [2052483300375767, 1517606481988671]]
GOLDEN_RAW = [13461963238980313390, 2625496102112078448]


def test_generators_of_rows_batches_and_purposes_differ() -> None:
    draws = RandomNumbers(0, 0, np.array([7, 8]))
    seen = {
        draws.generator("map_examples", 0).random(),
        draws.generator("map_examples", 1).random(),
        draws.generator("map_batches").random(),
    }
    assert len(seen) == 3
    assert draws.generator("map_batches").random() in seen


def test_a_batch_that_a_filter_left_empty_has_a_generator_too() -> None:
    nothing = RandomNumbers(0, 0, np.array([7])).select(np.array([], np.int64))
    assert nothing.uniform("crop", 2).shape == (0, 2)
    assert 0 <= nothing.generator("map_batches").random() < 1
