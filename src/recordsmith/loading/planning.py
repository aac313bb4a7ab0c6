"""Plans how a loader reads: its order, its steps, and what reads ahead over a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from recordsmith.dataset import records_of
from recordsmith.loading.batches.ahead_reader import AheadReader
from recordsmith.loading.order.buckets import BucketBySize, BucketOrder
from recordsmith.loading.order.inputs import LoaderInput, RecordSource
from recordsmith.loading.order.rank_share import RankShare
from recordsmith.loading.order.schedule import Schedule, Step
from recordsmith.loading.order.shuffle import BlockShuffle
from recordsmith.support.errors import OptionError, option


def plan_reading(
    source: LoaderInput,
    records: RecordSource,
    *,
    shuffle: bool | BlockShuffle,
    seed: int,
    buckets: BucketBySize | None,
    epochs: int | None,
    normalisation: Mapping[str, str],
    **share: Any,
) -> tuple[Schedule, Callable[[Iterable[Step]], AheadReader] | None]:
    """Return the steps in which a loader reads, and what reads their records in advance, if any.

    Args:
        records: those of the source, with the features that the loader needs.
        normalisation: what normalises its features, by name, which a state must match.
    """
    rank_share = RankShare(len(source), **share)
    order = source.order(shuffle=shuffle, seed=seed)
    if buckets is not None:
        if not isinstance(buckets, BucketBySize):
            raise OptionError(option="buckets", value=buckets, expected="a BucketBySize")
        _check_sizes(source, buckets)
        order = BucketOrder(
            order,
            buckets,
            step_size=rank_share.step_size,
            record_sizes=records.record_sizes,
            is_shuffled=shuffle is not False,
            seed=seed,
        )
    chosen = {"selection": source.describe(), "normalisation": dict(normalisation) or None}
    described = {name: value for name, value in chosen.items() if value is not None}
    schedule = Schedule(order, rank_share, epochs, described)
    shards = (shard for dataset in source.datasets for shard in records_of(dataset).all_shards)
    if any(shard.is_remote for shard in shards):
        return schedule, partial(AheadReader, records, order.runs)
    return schedule, None


def _check_sizes(source: LoaderInput, buckets: BucketBySize) -> None:
    if buckets.by is None:
        return
    count, size_count = source.record_count, len(np.asarray(buckets.by))
    if size_count != count:
        raise OptionError(
            f"{option('by')} has {size_count} sizes",
            option="by",
            expected=f"one for each of the {count} records",
        )
