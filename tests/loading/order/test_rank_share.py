"""Ranks share an epoch exactly, in equally many steps."""

from __future__ import annotations

from itertools import chain
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from recordsmith.loading.order.rank_share import LastBatch, RankShare

SIZES = st.integers(1, 9)


@given(st.integers(0, 120), SIZES, SIZES, st.sampled_from(["keep", "drop", "pad"]), st.data())
def test_ranks_together_take_the_places_in_order(
    small: Any, count: int, batch_size: int, world_size: int, last_batch: LastBatch, data: Any
) -> None:
    """The rest of an epoch, from any place; the first of each rank in a step, then the second."""
    step_size = batch_size * world_size
    assume(last_batch != "drop" or count == 0 or count >= step_size)
    read = data.draw(st.integers(0, count))
    shares = [
        RankShare(count, batch_size, rank, world_size, last_batch) for rank in range(world_size)
    ]
    ranks = [
        [places.tolist() for places in share.places(read, range(share.step_count(read)))]
        for share in shares
    ]
    steps = small.dealt(ranks)
    assert all(len(step) == step_size for step in steps[:-1])
    for step in zip(*ranks, strict=True):
        lengths = {len(rank) for rank in step}
        assert max(lengths) - min(lengths) <= (last_batch == "keep")
    left = count - read
    end = {
        "keep": left,
        "drop": left // step_size * step_size,
        "pad": -(-left // step_size) * step_size,
    }
    places = [*chain.from_iterable(steps)]
    assert places == [place % count for place in range(read, read + end[last_batch])]


def test_shares_of_many_records_need_no_memory_for_them() -> None:
    share = RankShare(10**15, 2, rank=5, world_size=7)
    last = share.step_count() - 1
    # 14 go into 10**15 with a rest of 6, of which rank 5 has the last
    assert [places.tolist() for places in share.places(0, range(last - 1, last + 1))] == [
        [10**15 - 15, 10**15 - 8],
        [10**15 - 1],
    ]
