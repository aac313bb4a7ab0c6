"""Plans the steps in which a loader reads: its order, divided among ranks and workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from recordsmith.loading.order.inputs import LoaderInput, RecordSource
from recordsmith.loading.order.rank_share import RankShare
from recordsmith.loading.order.schedule import Schedule
from recordsmith.loading.order.shuffle import BlockShuffle
from recordsmith.support.errors import OptionError, option

if TYPE_CHECKING:
    from recordsmith.loading.order.buckets import BucketBySize


def plan_reading(
    source: LoaderInput,
    records: RecordSource,
    share: RankShare,
    *,
    shuffle: bool | BlockShuffle,
    seed: int,
    buckets: BucketBySize | None,
    epochs: int | None,
    normalisation: Mapping[str, str],
) -> Schedule:
    """Return the steps in which a loader reads.

    Args:
        records: those of the source, with the features that the loader needs.
        normalisation: what normalises its features, by name, which a state must match.
    """
    order = source.order(shuffle=shuffle, seed=seed)
    if buckets is not None:
        from recordsmith.loading.order.buckets import BucketBySize, BucketOrder

        if not isinstance(buckets, BucketBySize):
            raise OptionError(option="buckets", value=buckets, expected="a BucketBySize")
        _check_sizes(source, buckets)
        order = BucketOrder(
            order,
            buckets,
            step_size=share.step_size,
            record_sizes=records.record_sizes,
            is_shuffled=shuffle is not False,
            seed=seed,
        )
    chosen = {"selection": source.describe(), "normalisation": dict(normalisation) or None}
    described = {name: value for name, value in chosen.items() if value is not None}
    return Schedule(order, share, epochs, described)


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
