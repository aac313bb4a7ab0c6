"""Which records does each new shard have? Decided before any is copied, without a list of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.buffers import Int64Array
from recordsmith.building import (
    bounds_of,
    exact_share,
    files_of_splits,
    is_no_file_name,
    shard_counts,
    share_counts,
)
from recordsmith.dataset import LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME
from recordsmith.errors import OptionError, SourceError
from recordsmith.permutation import Permutations
from recordsmith.reshaping.choosing import Draw, Kept, Order, Pool, count_drawn
from recordsmith.reshaping.fingerprints import fingerprint
from recordsmith.reshaping.inputs import Inputs
from recordsmith.reshaping.options import ReshardOptions
from recordsmith.reshaping.records import Records
from recordsmith.wire import Compression, check_compression

_TAKEN = frozenset((LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME))
_VERSION = 1  # another one if the same options would give other bytes


@dataclass(frozen=True)
class PlannedShard:
    """One new shard: what stands at the places start:stop of its split's order."""

    file: str
    split: str
    start: int
    stop: int


@dataclass(frozen=True)
class ReshardPlan:
    """The whole job.

    pools: what each split has to give; orders: in which order, and how much of it.
    notices: what was left out.
    """

    shards: tuple[PlannedShard, ...]
    pools: Mapping[str, Pool]
    orders: Mapping[str, Order]
    compression: Compression
    notices: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """About how much is copied."""
        return sum(_size_of(pool, self.orders[split]) for split, pool in self.pools.items())

    def is_unchanged(self, split: str) -> bool:
        """Whether all records of all its inputs are there, in whatever order."""
        return self.pools[split].is_whole and self.orders[split].count == len(self.pools[split])


def compression_of(options: ReshardOptions, inputs: Inputs) -> Compression:
    """How the new shards are compressed: as is said, else as all of the inputs are."""
    if options.compression is None:
        return inputs.common_compression()
    return check_compression(options.compression)


def fingerprint_of(options: ReshardOptions, inputs: Inputs) -> str:
    """A hash over everything that decides what the shards will hold, short of reading it."""
    document: list[Any] = [
        _VERSION,
        options.to_json(),
        compression_of(options, inputs),
        [shard.identity() for shard in inputs.shards],
        inputs.class_names,
        inputs.has_label_map,
    ]
    return fingerprint(document)


def make_plan(
    options: ReshardOptions, inputs: Inputs, records: Records, kept: Mapping[int, Kept] | None
) -> ReshardPlan:
    """Decide which records go where.

    Args:
        kept: by number of the input, what a condition has kept; None if there is none.

    Raises:
        SourceError: there are no records.
        OptionError: none is left of those that there are, or options ask for more than there is.
    """
    if not sum(records.counts):
        raise SourceError(f"there are no records in {', '.join(inputs.names)}")
    pools, notices = _pools(options, inputs, records, kept)
    orders = {split: _order(options, split, len(pool)) for split, pool in pools.items()}
    compression = compression_of(options, inputs)
    if options.keep_shards:
        kept_shards = _shards_as_they_are(inputs, pools, compression, options.shard_names)
        return ReshardPlan(kept_shards, pools, orders, compression, tuple(notices))
    counts = shard_counts(
        {split: order.count for split, order in orders.items()},
        {split: _size_of(pool, orders[split]) for split, pool in pools.items()},
        options.shards,
        options.shard_size_bytes,
    )
    shards = []
    for split, files in files_of_splits(counts, compression, options.shard_names).items():
        bounds = bounds_of(orders[split].count, len(files))
        shards += [
            PlannedShard(file, split, start, stop)
            for file, start, stop in zip(files, bounds[:-1], bounds[1:], strict=True)
        ]
    return ReshardPlan(tuple(shards), pools, orders, compression, tuple(notices))


def _shards_as_they_are(
    inputs: Inputs, pools: Mapping[str, Pool], compression: Compression, template: str
) -> tuple[PlannedShard, ...]:
    """One shard for each input, but none without records.

    They have the names of the inputs if these can all be kept; else new ones, from the template.
    """
    bounds = {
        split: [
            (pool.inputs[at], int(pool.starts[at]), int(pool.starts[at + 1]))
            for at in range(len(pool.inputs))
            if pool.starts[at] < pool.starts[at + 1]
        ]
        for split, pool in pools.items()
    }
    files = files_of_splits(
        {split: len(runs) for split, runs in bounds.items()}, compression, template
    )
    given = {
        split: [inputs.shards[number].path.name for number, _, _ in runs]
        for split, runs in bounds.items()
    }
    names = [name for of_split in given.values() for name in of_split]
    is_whole = sum(map(len, bounds.values())) == len(inputs.shards)
    is_alike = all(shard.compression == compression for shard in inputs.shards)
    if is_whole and is_alike and _can_be_kept(names):
        files = given
    return tuple(
        PlannedShard(file, split, start, stop)
        for split, runs in bounds.items()
        for file, (_, start, stop) in zip(files[split], runs, strict=True)
    )


def _can_be_kept(names: Sequence[str]) -> bool:
    """Whether shards can have these names, that files elsewhere have."""
    return (
        len(set(names)) == len(names)
        and _TAKEN.isdisjoint(names)
        and not any(map(is_no_file_name, names))
    )


def _pools(
    options: ReshardOptions, inputs: Inputs, records: Records, kept: Mapping[int, Kept] | None
) -> tuple[dict[str, Pool], list[str]]:
    """What each split has to give; none that is empty."""
    whole = _pool(records, range(len(records)), kept)
    if options.where is not None and not len(whole):
        raise OptionError(
            f"the condition (where) holds for none of the {sum(records.counts):,} records, so "
            "there is nothing to write; choose another"
        )
    if options.splits is not None:
        drawn = _share_of(len(whole), options.sample)
        shares = share_counts(drawn, options.splits)
        for split, count in shares.items():
            if not count:
                raise OptionError(
                    f"split {split!r} would be empty: {options.splits[split]:g} of {drawn} records "
                    "is none; give it a larger share"
                )
        return _drawn(options, "", whole, shares, records, kept), []
    pools: dict[str, Pool] = {}
    notices = []
    for split in inputs.splits:
        numbers = [shard.number for shard in inputs.shards if shard.split == split]
        pool = _pool(records, numbers, kept)
        if options.sample is not None:
            share = {split: _share_of(len(pool), options.sample)}
            pool = _drawn(options, split, pool, share, records, kept)[split]
        if len(pool):
            pools[split] = pool
        else:
            notices.append(f"no record of split {split!r} is left, so it is left out")
    if not pools:
        raise OptionError(
            f"of {sum(records.counts):,} records none is left: choose others, or more of them"
        )
    return pools, notices


def _pool(
    records: Records,
    numbers: Sequence[int],
    kept: Mapping[int, Kept] | None,
    draw: Draw | None = None,
    drawn_counts: Int64Array | None = None,
) -> Pool:
    counts = [records.counts[number] for number in numbers]
    sizes = [records.sizes[number] for number in numbers]
    return Pool(numbers, counts, sizes, kept, draw, drawn_counts)


def _drawn(
    options: ReshardOptions,
    split: str,
    pool: Pool,
    shares: Mapping[str, int],
    records: Records,
    kept: Mapping[int, Kept] | None,
) -> dict[str, Pool]:
    """Consecutive runs of one random order of a pool, so that each record is in one of them at
    most; of the lengths that `shares` says.
    """
    permutation = Permutations(len(pool), options.seed, "reshard", "draw", split)
    bounds = [0, *itertools.accumulate(shares.values())]
    counts = count_drawn(permutation, pool.drawn_from, bounds)
    return {
        name: _pool(
            records,
            pool.inputs,
            kept,
            Draw(permutation, bounds[place], bounds[place + 1]),
            counts[place],
        )
        for place, name in enumerate(shares)
    }


def _order(options: ReshardOptions, split: str, count: int) -> Order:
    permutation = Permutations(count, options.seed, "reshard", "shuffle", split)
    return Order(
        count if options.take is None else min(count, options.take),
        permutation if options.shuffle else None,
    )


def _size_of(pool: Pool, order: Order) -> int:
    """About how many bytes of a pool are written."""
    return pool.size_bytes * order.count // len(pool)


def _share_of(count: int, share: float | None) -> int:
    """Rounded, a half upwards."""
    return count if share is None else math.floor(count * exact_share(share) + exact_share(0.5))
