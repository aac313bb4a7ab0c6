"""Which order does a loader read in, and can its shards be read in it?"""

from __future__ import annotations

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import OptionError
from recordsmith.loading.buckets import BucketOrder, Buckets
from recordsmith.loading.buffer import Buffer, BufferOrder
from recordsmith.loading.mix import Mix
from recordsmith.loading.order import Blocks, Order, PositionOrder
from recordsmith.loading.sequential import SequentialReader


def order_of(
    dataset: Dataset | Mix,
    *,
    shuffle: bool | Blocks | Buffer,
    seed: int,
    buckets: Buckets | None,
    step_size: int,
) -> PositionOrder:
    """The order in which a loader reads.

    Args:
        step_size: how many records all ranks take in a step.

    Raises:
        OptionError: the options contradict each other, or shards that are compressed.
    """
    if isinstance(dataset, Mix):
        order = _order_of_mix(dataset, shuffle, seed)
    else:
        _check_compressed(dataset, shuffle, buckets)
        if isinstance(shuffle, Buffer):
            order = BufferOrder(dataset.shard_spans(), shuffle, seed=seed)
        else:
            order = Order(len(dataset), shuffle=shuffle, seed=seed)
    if buckets is None:
        return order
    if not isinstance(buckets, Buckets):
        raise OptionError(f"buckets is {buckets!r:.60}; expected Buckets()")
    _check_sizes(dataset, buckets)
    return BucketOrder(
        order,
        buckets,
        step_size=step_size,
        record_sizes=dataset.record_sizes,
        is_shuffled=shuffle is not False,
        seed=seed,
    )


def reader_of(dataset: Dataset | Mix, order: PositionOrder) -> SequentialReader | None:
    """What reads shards that can only be read in order; None where there are none."""
    if isinstance(dataset, Mix) or compressed_shard(dataset) is None:
        return None
    runs = order.runs if isinstance(order, BufferOrder) else None
    return SequentialReader(dataset, runs)


def _order_of_mix(mix: Mix, shuffle: bool | Blocks | Buffer, seed: int) -> PositionOrder:
    for number, dataset in enumerate(mix.datasets):
        compressed = compressed_shard(dataset)
        if compressed is not None:
            raise OptionError(
                f"dataset {number} of the mix has compressed shards ({compressed}), which can only "
                "be read in order; to mix datasets, write their shards uncompressed"
            )
    if isinstance(shuffle, Buffer):
        raise OptionError("a mix is read here and there: shuffle it with True or Blocks")
    return mix.order(shuffle=shuffle, seed=seed)


def _check_compressed(
    dataset: Dataset, shuffle: bool | Blocks | Buffer, buckets: Buckets | None
) -> None:
    compressed = compressed_shard(dataset)
    if compressed is None:
        return
    why = f"{compressed} is compressed, so its records can only be read from its beginning on"
    if shuffle is True or isinstance(shuffle, Blocks):
        raise OptionError(
            f"{why}: shuffle with Buffer(), which mixes neighbours, or write the shards "
            "uncompressed for a shuffle of all records"
        )
    if buckets is not None:
        raise OptionError(f"{why}: write the shards uncompressed to read records by their size")
    if any(span.numbers.step != 1 for span in dataset.shard_spans()):
        raise OptionError(f"{why}: take a slice without a step")


def check_readable_at_positions(dataset: Dataset) -> None:
    """Whether single records can be read, at any position.

    Raises:
        OptionError: it is no dataset; its shards are compressed.
    """
    if not isinstance(dataset, Dataset):
        raise OptionError(
            f"the dataset is {dataset!r:.60}; expected what recordsmith.open() answers"
        )
    compressed = compressed_shard(dataset)
    if compressed is not None:
        raise OptionError(
            f"{compressed} is compressed, so its records can only be read from its beginning "
            "on: write the shards uncompressed to read examples at positions, or take a Loader"
        )


def compressed_shard(dataset: Dataset) -> str | None:
    """The first compressed shard that the dataset has records of."""
    for span in dataset.shard_spans():
        if span.shard.compression != "none":
            return str(span.shard.path)
    return None


def _check_sizes(dataset: Dataset | Mix, buckets: Buckets) -> None:
    if buckets.by is None:
        return
    count = sum(dataset.record_counts) if isinstance(dataset, Mix) else len(dataset)
    size_count = len(np.asarray(buckets.by))
    if size_count != count:
        raise OptionError(
            f"by of the buckets has {size_count} sizes, but there are {count} records; expected "
            "one for each"
        )
