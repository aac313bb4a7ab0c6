"""Sizes of blocks follow from what a request over a network costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.stores.rounds import RoundStore

import recordsmith as rs
from recordsmith.loading.order.link import Link, measure_link
from recordsmith.stores import Location


@pytest.mark.parametrize(
    ("latency_seconds", "megabytes_per_second", "record_bytes", "size"),
    [
        (0.03, 50, 110_000, 7),  # a sixteenth of 12 MiB
        (0.001, 50, 110_000, 1),
        (0.01, 50, 1000, 500),
        (0.01, 50, 10, 50_000),
        (0.03, 50, 50_000_000, 1),
    ],
)
def test_a_block_takes_as_long_as_a_request(
    latency_seconds: float, megabytes_per_second: float, record_bytes: float, size: int
) -> None:
    rate = megabytes_per_second * 1e6
    blocks = rs.BlockShuffle.for_link(Link(latency_seconds, rate, 8 * rate, record_bytes, 1 << 30))
    assert blocks.size == size
    assert blocks.window >= 16
    assert blocks.size * blocks.window * record_bytes <= max(12 << 20, 16 * record_bytes)


def test_a_dataset_is_measured_with_few_requests(small: Any, tmp_path: Any) -> None:
    local = small.write_shards(tmp_path, [40, 60], lengths=(5000,))
    store = RoundStore(0.01)
    for shard in local.shards:
        store.set(shard.location.name, shard.location.read())
    remote = rs.open([Location(store, key) for key in store.objects])
    assert len(remote) == 100
    store.reset()
    link = measure_link(remote)
    assert link is not None
    assert link.latency_seconds >= 0.01
    assert 5000 < link.record_bytes < 5100
    assert len(store.singles) + len(store.rounds) <= 10
    assert link.dataset_bytes == sum(shard.size_bytes for shard in local.shards)
    assert not link.is_measurable
    with pytest.warns(RuntimeWarning, match="shuffle=True"):
        assert rs.BlockShuffle.for_dataset(remote) == rs.BlockShuffle()
    assert (measure_link(local), rs.BlockShuffle.for_dataset(local)) == (None, rs.BlockShuffle())
