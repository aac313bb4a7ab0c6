"""The plan of new shards and their records, made before any record is copied."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.buffers import Int64Array
from recordsmith.building import (
    is_valid_file_name,
    shard_bounds,
    shard_counts,
    shard_files_by_split,
)
from recordsmith.dataset import LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME
from recordsmith.dataset.shares import Draw, draws_of_splits, exact_share, share_counts
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.permutation import Permutations
from recordsmith.reshaping.inputs.fingerprints import fingerprint
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.reshaping.inputs.input_shards import Inputs
from recordsmith.reshaping.resharding.record_selection import (
    MatchedRecords,
    Pool,
    PoolOrder,
    count_drawn,
)
from recordsmith.reshaping.resharding.reshard_options import ReshardOptions
from recordsmith.wire import Compression, check_compression

_TAKEN = frozenset((LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME))
_VERSION = 1  # changes if the same options give other bytes


@dataclass(frozen=True)
class ReshardedShard:
    """One new shard: the records at places start:stop in the order of its split."""

    file: str
    split: str
    start: int
    stop: int


@dataclass(frozen=True)
class ReshardPlan:
    """The plan of a job.

    pools: the available records of each split.
    orders: their order, and how many are written.
    notices: about skipped splits.
    """

    shards: tuple[ReshardedShard, ...]
    pools: Mapping[str, Pool]
    orders: Mapping[str, PoolOrder]
    compression: Compression
    notices: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Approximate size of the copied records."""
        return sum(_pool_size_bytes(pool, self.orders[split]) for split, pool in self.pools.items())

    def is_unchanged(self, split: str) -> bool:
        """Whether the split keeps all its records, in any order."""
        return self.pools[split].has_all_records and self.orders[split].count == len(
            self.pools[split]
        )


def output_compression(options: ReshardOptions, inputs: Inputs) -> Compression:
    """Return the compression of the new shards; by default that of the inputs."""
    if options.compression is None:
        return inputs.common_compression()
    return check_compression(options.compression)


def reshard_fingerprint(options: ReshardOptions, inputs: Inputs) -> str:
    """Return a hash of everything that determines the output, without reading records."""
    document: list[Any] = [
        _VERSION,
        options.to_json(),
        output_compression(options, inputs),
        [shard.identity() for shard in inputs.shards],
        inputs.class_names,
        inputs.has_label_map,
    ]
    return fingerprint(document)


def make_plan(
    options: ReshardOptions,
    inputs: Inputs,
    records: InputRecords,
    kept: Mapping[int, MatchedRecords] | None,
) -> ReshardPlan:
    """Assign records to shards.

    Args:
        kept: the records of each input that match the condition; None without a condition.

    Raises:
        SourceError: the inputs have no records.
        OptionError: no record is selected, or options ask for more shards than records.
    """
    if not sum(records.counts):
        raise SourceError(f"no records in {', '.join(inputs.names)}", path=inputs.names[0])
    pools, notices = _pools(options, inputs, records, kept)
    orders = {split: _order(options, split, len(pool)) for split, pool in pools.items()}
    compression = output_compression(options, inputs)
    if options.keep_shards:
        kept_shards = _keep_shards(inputs, pools, compression, options.shard_names)
        return ReshardPlan(kept_shards, pools, orders, compression, tuple(notices))
    counts = shard_counts(
        {split: order.count for split, order in orders.items()},
        {split: _pool_size_bytes(pool, orders[split]) for split, pool in pools.items()},
        options.shards,
        options.shard_size_bytes,
    )
    shards = []
    for split, files in shard_files_by_split(counts, compression, options.shard_names).items():
        bounds = shard_bounds(orders[split].count, len(files))
        shards += [
            ReshardedShard(file, split, start, stop)
            for file, start, stop in zip(files, bounds[:-1], bounds[1:], strict=True)
        ]
    return ReshardPlan(tuple(shards), pools, orders, compression, tuple(notices))


def _keep_shards(
    inputs: Inputs, pools: Mapping[str, Pool], compression: Compression, template: str
) -> tuple[ReshardedShard, ...]:
    """Plan one shard per input with records.

    They keep the names of the inputs if possible; otherwise the template names all of them.
    """
    bounds = {
        split: [
            (pool.inputs[at], int(pool.starts[at]), int(pool.starts[at + 1]))
            for at in range(len(pool.inputs))
            if pool.starts[at] < pool.starts[at + 1]
        ]
        for split, pool in pools.items()
    }
    files = shard_files_by_split(
        {split: len(runs) for split, runs in bounds.items()}, compression, template
    )
    given = {
        split: [inputs.shards[number].location.name for number, _, _ in runs]
        for split, runs in bounds.items()
    }
    names = [name for of_split in given.values() for name in of_split]
    is_whole = sum(map(len, bounds.values())) == len(inputs.shards)
    is_alike = all(shard.compression == compression for shard in inputs.shards)
    if is_whole and is_alike and _are_valid_names(names):
        files = given
    return tuple(
        ReshardedShard(file, split, start, stop)
        for split, runs in bounds.items()
        for file, (_, start, stop) in zip(files[split], runs, strict=True)
    )


def _are_valid_names(names: Sequence[str]) -> bool:
    """Whether these names of inputs are valid, distinct names of shards."""
    return (
        len(set(names)) == len(names)
        and _TAKEN.isdisjoint(names)
        and all(map(is_valid_file_name, names))
    )


def _pools(
    options: ReshardOptions,
    inputs: Inputs,
    records: InputRecords,
    kept: Mapping[int, MatchedRecords] | None,
) -> tuple[dict[str, Pool], list[str]]:
    """Return the non-empty pools by split, and notices about empty ones."""
    whole = _pool(records, range(len(records)), kept)
    if options.where is not None and not len(whole):
        raise OptionError(
            f"none of the {sum(records.counts):,} records match {option('where')}",
            option="where",
            value=str(options.where),
        )
    if options.splits is not None:
        drawn = _round_share(len(whole), options.sample)
        shares = share_counts(drawn, options.splits)
        for split, count in shares.items():
            if not count:
                raise OptionError(
                    f"split {split!r} would be empty: {options.splits[split]:g} of {drawn} records",
                    option="splits",
                    value=split,
                    remedy="Give it a larger share.",
                )
        return _draw_pools(options, "", whole, shares, records, kept), []
    pools: dict[str, Pool] = {}
    notices = []
    for split in inputs.splits:
        numbers = [shard.number for shard in inputs.shards if shard.split == split]
        pool = _pool(records, numbers, kept)
        if options.sample is not None:
            share = {split: _round_share(len(pool), options.sample)}
            pool = _draw_pools(options, split, pool, share, records, kept)[split]
        if len(pool):
            pools[split] = pool
        else:
            notices.append(f"split {split!r} was skipped: no records are left")
    if not pools:
        raise OptionError(
            f"none of the {sum(records.counts):,} records are left",
            option="sample",
            value=options.sample,
            remedy="Select more records.",
        )
    return pools, notices


def _pool(
    records: InputRecords,
    numbers: Sequence[int],
    kept: Mapping[int, MatchedRecords] | None,
    draw: Draw | None = None,
    drawn_counts: Int64Array | None = None,
) -> Pool:
    counts = [records.counts[number] for number in numbers]
    sizes = [records.sizes[number] for number in numbers]
    return Pool(numbers, counts, sizes, kept, draw, drawn_counts)


def _draw_pools(
    options: ReshardOptions,
    split: str,
    pool: Pool,
    shares: Mapping[str, int],
    records: InputRecords,
    kept: Mapping[int, MatchedRecords] | None,
) -> dict[str, Pool]:
    """Draw disjoint pools of `shares` records, as runs of one random order."""
    draws = draws_of_splits(len(pool), shares, options.seed, split)
    counts = count_drawn([*draws.values()], pool.drawn_from)
    return {
        name: _pool(records, pool.inputs, kept, draw, of_inputs)
        for (name, draw), of_inputs in zip(draws.items(), counts, strict=True)
    }


def _order(options: ReshardOptions, split: str, count: int) -> PoolOrder:
    permutation = Permutations(count, options.seed, "reshard", "shuffle", split)
    return PoolOrder(
        count if options.take is None else min(count, options.take),
        permutation if options.shuffle else None,
    )


def _pool_size_bytes(pool: Pool, order: PoolOrder) -> int:
    """Approximate size of the written records of a pool."""
    return pool.size_bytes * order.count // len(pool)


def _round_share(count: int, share: float | None) -> int:
    """Return a share of a count, rounded half up."""
    return count if share is None else math.floor(count * exact_share(share) + exact_share(0.5))
