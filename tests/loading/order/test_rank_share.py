"""Ranks share an epoch exactly, in equally many steps."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.loading.order.rank_share import LastBatch, RankShare

COUNTS = st.integers(0, 120)
SIZES = st.integers(1, 9)


def _steps(share: RankShare, read: int = 0) -> list[list[int]]:
    steps = range(share.step_count(read))
    return [places.tolist() for places in share.places(read, steps)]


def _ranks(
    count: int, batch_size: int, world_size: int, last_batch: LastBatch, read: int = 0
) -> Any:
    """The steps of each rank."""
    assume(last_batch != "drop" or count == 0 or count >= batch_size * world_size)
    shares = [
        RankShare(count, batch_size, rank, world_size, last_batch) for rank in range(world_size)
    ]
    return [_steps(share, read) for share in shares]


def _dealt(ranks: list[list[list[int]]]) -> list[list[int]]:
    """For each step, its places as they were dealt out: the first of each rank, then the second."""
    dealt = []
    for step in zip(*ranks, strict=True):  # fails if ranks do not take the same number of steps
        longest = max(map(len, step))
        dealt.append([rank[at] for at in range(longest) for rank in step if at < len(rank)])
    return dealt


@given(COUNTS, SIZES, SIZES, st.data())
def test_keep_shares_out_everything_evenly(
    count: int, batch_size: int, world_size: int, data: Any
) -> None:
    read = data.draw(st.integers(0, count))
    ranks = _ranks(count, batch_size, world_size, "keep", read)
    dealt = _dealt(ranks)
    assert list(chain.from_iterable(dealt)) == list(range(read, count))
    assert all(len(step) == batch_size * world_size for step in dealt[:-1])
    for step in zip(*ranks, strict=True):
        lengths = [len(rank) for rank in step]
        assert max(lengths) - min(lengths) <= 1


@given(COUNTS, SIZES, SIZES)
def test_drop_leaves_out_what_is_no_whole_step(
    count: int, batch_size: int, world_size: int
) -> None:
    whole = count // (batch_size * world_size)
    dealt = _dealt(_ranks(count, batch_size, world_size, "drop"))
    assert len(dealt) == whole
    assert list(chain.from_iterable(dealt)) == list(range(whole * batch_size * world_size))


@given(COUNTS, SIZES, SIZES)
def test_pad_fills_up_with_the_first_places(count: int, batch_size: int, world_size: int) -> None:
    step_size = batch_size * world_size
    ranks = _ranks(count, batch_size, world_size, "pad")
    assert {len(step) for rank in ranks for step in rank} <= {batch_size}
    dealt = list(chain.from_iterable(_dealt(ranks)))
    assert dealt == [place % count for place in range(-(-count // step_size) * step_size)]


def test_shares_of_many_records_need_no_memory_for_them() -> None:
    share = RankShare(10**15, 2, rank=5, world_size=7)
    last = share.step_count() - 1
    # 14 go into 10**15 with a rest of 6, of which rank 5 has the last
    assert [places.tolist() for places in share.places(0, range(last - 1, last + 1))] == [
        [10**15 - 15, 10**15 - 8],
        [10**15 - 1],
    ]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"rank": -1}, "rank"),
        ({"rank": 0.5}, "rank"),
        ({"world_size": 0}, "world_size"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_size": "8"}, "batch_size"),
        ({"worker": 1}, "worker"),
        ({"worker_count": 0}, "worker_count"),
        ({"last_batch": "all"}, "last_batch"),
        (
            {"last_batch": "drop", "batch_size": 6, "world_size": 2},
            "last_batch",
        ),
    ],
)
def test_shares_that_make_no_sense(options: dict[str, Any], option: str) -> None:
    with pytest.raises(rs.OptionError) as caught:
        RankShare(10, **{"batch_size": 2, **options})
    assert caught.value.option == option
