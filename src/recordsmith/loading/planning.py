"""Plans how a loader reads a dataset: its order, its steps, and what reads ahead over a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from recordsmith.dataset import Dataset, records_of
from recordsmith.errors import OptionError, option
from recordsmith.loading.batches.ahead_reader import AheadReader
from recordsmith.loading.order.buckets import BucketBySize, BucketOrder
from recordsmith.loading.order.mix import Mix, datasets_of, record_source
from recordsmith.loading.order.rank_share import RankShare
from recordsmith.loading.order.schedule import Schedule, Step
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder


def plan_reading(
    dataset: Dataset | Mix,
    *,
    shuffle: bool | BlockShuffle,
    seed: int,
    buckets: BucketBySize | None,
    epochs: int | None,
    **share: Any,
) -> tuple[Schedule, Callable[[Iterable[Step]], AheadReader] | None]:
    """Return the steps in which a loader reads, and what reads their records in advance, if any."""
    if not isinstance(dataset, (Dataset, Mix)):
        raise OptionError(
            option="dataset",
            value=dataset,
            expected="a Dataset, as recordsmith.open() returns it, or a Mix",
        )
    rank_share = RankShare(len(dataset), **share)
    for one in datasets_of(dataset):
        check_random_access(one)
    order = _order_of(
        dataset, shuffle=shuffle, seed=seed, buckets=buckets, step_size=rank_share.step_size
    )
    schedule = Schedule(order, rank_share, epochs, _selection_of(dataset))
    if any(shard.is_remote for one in datasets_of(dataset) for shard in records_of(one).all_shards):
        return schedule, partial(AheadReader, record_source(dataset), order.runs)
    return schedule, None


def _selection_of(dataset: Dataset | Mix) -> Any:
    """Return a description of the selected records, for a state; None for all records."""
    described = [records_of(one).describe() for one in datasets_of(dataset)]
    if all(one is None for one in described):
        return None
    return described if isinstance(dataset, Mix) else described[0]


def _order_of(
    dataset: Dataset | Mix,
    *,
    shuffle: bool | BlockShuffle,
    seed: int,
    buckets: BucketBySize | None,
    step_size: int,
) -> PositionOrder:
    """Return the order in which a loader reads."""
    order: PositionOrder
    if isinstance(dataset, Mix):
        order = dataset.order(shuffle=shuffle, seed=seed)
    else:
        order = DatasetOrder(len(dataset), shuffle=shuffle, seed=seed)
    if buckets is None:
        return order
    if not isinstance(buckets, BucketBySize):
        raise OptionError(option="buckets", value=buckets, expected="a BucketBySize")
    _check_sizes(dataset, buckets)
    return BucketOrder(
        order,
        buckets,
        step_size=step_size,
        record_sizes=record_source(dataset).record_sizes,
        is_shuffled=shuffle is not False,
        seed=seed,
    )


def check_random_access(dataset: Dataset) -> None:
    """Check that records can be read at any position."""
    if not isinstance(dataset, Dataset):
        raise OptionError(
            option="dataset", value=dataset, expected="a Dataset, as recordsmith.open() returns it"
        )
    compressed = records_of(dataset).compressed_shard()
    if compressed is not None:
        raise OptionError(
            f"{compressed.location} is compressed with {compressed.compression}, so its records "
            "can only be read in order",
            option="dataset",
            value=str(compressed.location),
            remedy="Write it once with `recordsmith reshard PATH OUT --compression none`.",
        )


def _check_sizes(dataset: Dataset | Mix, buckets: BucketBySize) -> None:
    if buckets.by is None:
        return
    count = sum(map(len, datasets_of(dataset)))
    size_count = len(np.asarray(buckets.by))
    if size_count != count:
        raise OptionError(
            f"{option('by')} has {size_count} sizes",
            option="by",
            expected=f"one for each of the {count} records",
        )
