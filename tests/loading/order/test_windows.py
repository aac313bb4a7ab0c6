"""Places change with those of their own window and with no others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recordsmith.loading.order.shuffle import mixed_in_windows, window_numbers


@given(count=st.integers(1, 300), size=st.integers(1, 80), data=st.data())
def test_each_window_is_mixed_within_itself(count: int, size: int, data: Any) -> None:
    shift = data.draw(st.integers(0, size - 1))
    places = np.arange(count)
    mixed = mixed_in_windows(places, count, size, 3, shift=shift)
    cuts = [0, *range(shift or size, count, size), count]
    for begin, end in pairwise(cuts):
        if begin < end:
            assert sorted(mixed[begin:end].tolist()) == list(range(begin, end))
            assert len(set(window_numbers(places[begin:end], size, shift).tolist())) == 1
    asked = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=5)), np.int64)
    alone = mixed_in_windows(asked, count, size, 3, shift=shift)
    assert alone.tolist() == mixed[asked].tolist()


def test_windows_of_one_length_have_orders_of_their_own() -> None:
    mixed = mixed_in_windows(np.arange(400), 400, 100, 1).reshape(4, 100) % 100
    assert len({tuple(order) for order in mixed.tolist()}) == 4
    assert all((order != np.arange(100)).sum() > 80 for order in mixed)
