"""Plans how a loader reads a dataset: its order and steps, and a reader for compressed shards and
for shards over a network.

Checks that the shards can be read in that order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.dataset import Dataset, records_of
from recordsmith.errors import OptionError, option
from recordsmith.loading.batches.ahead_reader import AheadReader
from recordsmith.loading.batches.sequential_reader import SequentialReader
from recordsmith.loading.order.buckets import BucketBySize, BucketOrder
from recordsmith.loading.order.buffer_shuffle import BufferOrder, BufferShuffle
from recordsmith.loading.order.mix import Mix
from recordsmith.loading.order.rank_share import RankShare
from recordsmith.loading.order.schedule import Schedule
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder, PositionOrder


def plan_reading(
    dataset: Dataset | Mix,
    *,
    shuffle: bool | BlockShuffle | BufferShuffle,
    seed: int,
    buckets: BucketBySize | None,
    epochs: int | None,
    **share: Any,
) -> tuple[Schedule, SequentialReader | AheadReader | None]:
    """Return the steps in which a loader reads, and what reads their records in advance, if any."""
    if not isinstance(dataset, (Dataset, Mix)):
        raise OptionError(
            option="dataset",
            value=dataset,
            expected="a Dataset, as recordsmith.open() returns it, or a Mix",
        )
    if not isinstance(shuffle, (bool, BlockShuffle, BufferShuffle)):
        raise OptionError(
            option="shuffle",
            value=shuffle,
            expected="True, False, a BlockShuffle or a BufferShuffle",
        )
    rank_share = RankShare(len(dataset), **share)
    order = _order_of(
        dataset, shuffle=shuffle, seed=seed, buckets=buckets, step_size=rank_share.step_size
    )
    schedule = Schedule(order, rank_share, epochs, _selection_of(dataset))
    if isinstance(dataset, Dataset) and compressed_shard(dataset) is not None:
        return schedule, SequentialReader(records_of(dataset), order.runs)
    if is_remote(dataset):
        records = dataset if isinstance(dataset, Mix) else records_of(dataset)
        return schedule, AheadReader(records, order.runs)
    return schedule, None


def is_remote(dataset: Dataset | Mix) -> bool:
    """Return whether a shard of the dataset is read over a network."""
    datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    return any(shard.is_remote for one in datasets for shard in records_of(one).all_shards)


def _selection_of(dataset: Dataset | Mix) -> Any:
    """Return a description of the selected records, for a state; None for all records."""
    datasets = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    described = [records_of(one).positions.describe() for one in datasets]
    if all(one is None for one in described):
        return None
    return described if isinstance(dataset, Mix) else described[0]


def _order_of(
    dataset: Dataset | Mix,
    *,
    shuffle: bool | BlockShuffle | BufferShuffle,
    seed: int,
    buckets: BucketBySize | None,
    step_size: int,
) -> PositionOrder:
    """Return the order in which a loader reads."""
    if isinstance(dataset, Mix):
        order = _order_of_mix(dataset, shuffle, seed)
    else:
        _check_compressed(dataset, shuffle, buckets)
        if isinstance(shuffle, BufferShuffle):
            order = BufferOrder(records_of(dataset).span_lengths(), shuffle, seed=seed)
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
        record_sizes=(dataset if isinstance(dataset, Mix) else records_of(dataset)).record_sizes,
        is_shuffled=shuffle is not False,
        seed=seed,
    )


def _order_of_mix(
    mix: Mix, shuffle: bool | BlockShuffle | BufferShuffle, seed: int
) -> PositionOrder:
    for number, dataset in enumerate(mix.datasets):
        compressed = compressed_shard(dataset)
        if compressed is not None:
            raise OptionError(
                f"dataset {number} of the mix has a compressed shard, {compressed}; compressed "
                "shards support only sequential reads",
                option="dataset",
                remedy="Write the shards of mixed datasets uncompressed.",
            )
    if isinstance(shuffle, BufferShuffle):
        raise OptionError(
            "BufferShuffle does not support a Mix",
            option="shuffle",
            value=shuffle,
            expected="True, False or BlockShuffle",
        )
    return mix.order(shuffle=shuffle, seed=seed)


def _check_compressed(
    dataset: Dataset, shuffle: bool | BlockShuffle | BufferShuffle, buckets: BucketBySize | None
) -> None:
    compressed = compressed_shard(dataset)
    if compressed is None:
        return
    why = f"{compressed} is compressed and supports only sequential reads"
    if shuffle is True or isinstance(shuffle, BlockShuffle):
        raise OptionError(
            why,
            option="shuffle",
            value=shuffle,
            remedy="Use BufferShuffle(), which mixes neighbouring records, or write the shards "
            "uncompressed.",
        )
    if buckets is not None:
        raise OptionError(
            why, option="buckets", value=buckets, remedy="Write the shards uncompressed."
        )
    records_of(dataset).check_readable_in_order()


def check_random_access(dataset: Dataset) -> None:
    """Check that records can be read at any position."""
    if not isinstance(dataset, Dataset):
        raise OptionError(
            option="dataset", value=dataset, expected="a Dataset, as recordsmith.open() returns it"
        )
    compressed = compressed_shard(dataset)
    if compressed is not None:
        raise OptionError(
            f"{compressed} is compressed and supports only sequential reads",
            option="dataset",
            remedy="Write the shards uncompressed, or use a Loader.",
        )


def compressed_shard(dataset: Dataset) -> str | None:
    """Return the path of the dataset's first compressed shard; None if none is compressed."""
    shard = records_of(dataset).compressed_shard()
    return None if shard is None else str(shard.location)


def _check_sizes(dataset: Dataset | Mix, buckets: BucketBySize) -> None:
    if buckets.by is None:
        return
    count = sum(dataset.record_counts) if isinstance(dataset, Mix) else len(dataset)
    size_count = len(np.asarray(buckets.by))
    if size_count != count:
        raise OptionError(
            f"{option('by')} has {size_count} sizes",
            option="by",
            expected=f"one for each of the {count} records",
        )
