"""The options of `reshard`, and the plan of new shards and their records.

A `Pool` has the selected records of some inputs, one bit per record where not all are selected. The
order of a pool is arithmetic on ranks, so a sample has exactly the requested number of records, and
new splits are disjoint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import (
    DEFAULT_TEMPLATE,
    LABEL_MAP_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    Draw,
    ShardCounts,
    ShardPlan,
    Where,
    check_shard_options,
    check_shares,
    draws_of_splits,
    exact_share,
    is_valid_file_name,
    plan_shards,
    shard_files_by_split,
    share_counts,
)
from recordsmith.format.wire import FRAME_BYTES, Compression, check_compression
from recordsmith.support.buffers import Int64Array, offsets_from_lengths
from recordsmith.support.errors import OptionError, SourceError, located, option
from recordsmith.support.permutation import Permutations
from recordsmith.support.serialization import fields_to_json
from recordsmith.writing.building.fingerprints import fingerprint
from recordsmith.writing.reshaping.edits import Edits
from recordsmith.writing.reshaping.inputs import InputRecords, Inputs

_TAKEN = frozenset((LABEL_MAP_NAME, LABELS_NAME, MANIFEST_NAME))
_VERSION = 1  # changes if the same options give other bytes
_POSITIONS = 1 << 16  # per lookup


@dataclass(frozen=True)
class ReshardOptions:
    """The options of `reshard` that determine the output, as described there.

    selection: the description of the selected records of a Dataset; None for all.
    values: what is set from tables, described for the history.
    keep_shards: each input becomes one shard, with the same name if possible.
    """

    split: str | None = None
    selection: Any = None
    shards: ShardCounts | None = None
    shard_size_bytes: int | None = None
    shuffle: bool = False
    seed: int = 0
    take: int | None = None
    sample: float | None = None
    splits: Mapping[str, float] | None = None
    where: Where | None = None
    edits: Edits | None = None
    compression: str | None = None
    shard_names: str = DEFAULT_TEMPLATE
    values: Mapping[str, Any] | None = None
    keep_shards: bool = False

    def __post_init__(self) -> None:
        """Raise OptionError if an option is invalid, or they contradict each other."""
        check_shard_options(self.shards, self.shard_size_bytes, self.shard_names)
        if self.compression is not None:
            check_compression(self.compression)
        if not isinstance(self.seed, int):
            raise OptionError(option="seed", value=self.seed, expected="an integer")
        if self.take is not None and (not isinstance(self.take, int) or self.take < 1):
            raise OptionError(option="take", value=self.take, expected="a positive integer")
        if self.sample is not None and not (
            isinstance(self.sample, (int, float)) and 0 < self.sample <= 1
        ):
            raise OptionError(
                option="sample",
                value=self.sample,
                expected="a share above 0 and at most 1, such as 0.1",
                remedy=f"For a number of random records, pass {option('shuffle', True)} and "
                f"{option('take')}.",
            )
        if not isinstance(self.edits, Edits | None):
            expected = 'recordsmith.Edits, such as Edits(drop=["name"])'
            raise OptionError(option="edits", value=self.edits, expected=expected)
        if self.splits is not None:
            check_shares(self.splits)
            for name in self.splits:
                if not is_valid_file_name(name):
                    raise OptionError(
                        f"split name {name!r} is not valid in a file name",
                        option="splits",
                        value=name,
                    )

    def to_json(self) -> dict[str, Any]:
        """Return the options that are set as a JSON-able dict."""
        is_set = [
            name for name, value in vars(self).items() if value is not None and value is not False
        ]
        return fields_to_json(self, is_set)


# -- selected records ------------------------------------------------------------------------------


class MatchedRecords:
    """Some records of one input, one bit per record; `size_bytes` is their size with framing."""

    def __init__(self, flags: npt.NDArray[np.bool_], size_bytes: int = 0) -> None:
        self._bits = np.packbits(flags)
        self._total = len(flags)
        self.count = int(np.count_nonzero(flags))
        self.size_bytes = size_bytes

    def numbers(self) -> Int64Array:
        """int64, (count,), ascending."""
        flags = np.unpackbits(self._bits, count=self._total)
        return np.flatnonzero(flags).astype(np.int64, copy=False)

    def drawn(self, draw: Draw, first_rank: int) -> MatchedRecords:
        """Return the records that a draw keeps; `first_rank`: of the first of them."""
        flags = np.zeros(self._total, np.bool_)
        flags[self.numbers()[draw.keeps(first_rank, first_rank + self.count)]] = True
        return MatchedRecords(flags)


def choose_records(
    records: InputRecords,
    number: int,
    where: Where | None,
    selected: npt.NDArray[np.bool_] | None,
    advance: Callable[[int], None],
) -> MatchedRecords:
    """Return the records of input `number` that are selected and match `where`; None for all."""
    if where is None:
        assert selected is not None
        numbers = np.flatnonzero(selected)
        sizes = records.shards[number].sizes(numbers) if len(numbers) else numbers
        return MatchedRecords(selected, int(sizes.sum()) + FRAME_BYTES * len(numbers))
    pieces = [np.empty(0, np.bool_)]
    size_bytes = 0
    if records.counts[number]:
        with located(records.given[number].location):
            for block in records.shards[number].blocks():
                flags = np.asarray(where.matches(block), np.bool_)
                if selected is not None:
                    flags = flags & selected[block.position : block.position + len(block)]
                pieces.append(flags)
                size_bytes += int((block.lengths[flags] + FRAME_BYTES).sum())
                advance(len(block.frames()))
    return MatchedRecords(np.concatenate(pieces), size_bytes)


class Pool:
    """The records of one split, ranked from 0 in the order of the inputs.

    inputs: their numbers, in order.
    starts: int64, (len(inputs) + 1,): the rank of each input's first record, and the end.
    size_bytes: how much all of them take, framing included; about, where they were drawn.
    has_all_records: all records of all its inputs are there.
    """

    def __init__(
        self,
        records: InputRecords,
        inputs: Sequence[int],
        chosen: Mapping[int, MatchedRecords] | None,
        size_bytes: int | None = None,
    ) -> None:
        """`chosen`: by number of the input; None for all records."""
        self.inputs = tuple(inputs)
        self._records = records
        self._chosen = chosen
        counts = [records.counts[number] for number in inputs]
        sizes = [records.sizes[number] for number in inputs]
        self._record_counts = counts
        if chosen is not None:
            counts = [chosen[number].count for number in inputs]
            sizes = [chosen[number].size_bytes for number in inputs]
        self.starts = offsets_from_lengths(counts)
        self.size_bytes = sum(sizes) if size_bytes is None else size_bytes
        self.has_all_records = counts == self._record_counts

    def __len__(self) -> int:
        return int(self.starts[-1])

    def chosen(self, index: int) -> MatchedRecords:
        """Return the records of `inputs[index]`."""
        if self._chosen is None:
            return MatchedRecords(np.ones(self._record_counts[index], np.bool_))
        return self._chosen[self.inputs[index]]

    def drawn(self, draw: Draw, count: int) -> Pool:
        """Return the `count` records that a draw keeps."""
        chosen = {
            number: self.chosen(index).drawn(draw, int(self.starts[index]))
            for index, number in enumerate(self.inputs)
        }
        size_bytes = self.size_bytes * count // max(1, len(self))
        return Pool(self._records, self.inputs, chosen, size_bytes)

    def spans(self, start: int, stop: int) -> Iterator[range | Int64Array]:
        """Yield the positions of the ranks start:stop among all inputs, ranges within an input."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        for index in range(first, len(self.inputs)):
            low, high = int(self.starts[index]), int(self.starts[index + 1])
            if low >= stop:
                return
            begin, end = max(low, start) - low, min(high, stop) - low
            first_position = int(self._records.starts[self.inputs[index]])
            if begin < end and high - low == self._record_counts[index]:
                yield range(first_position + begin, first_position + end)
            elif begin < end:
                positions = self.chosen(index).numbers()[begin:end] + first_position
                for cut in range(0, len(positions), _POSITIONS):
                    yield positions[cut : cut + _POSITIONS]

    def positions(self) -> Callable[[Int64Array], Int64Array]:
        """Return a function from ranks to positions among the records of all inputs."""
        firsts = self._records.starts[list(self.inputs)]
        if self.has_all_records:
            shifts = firsts - self.starts[:-1]
            return lambda ranks: (
                ranks + shifts[np.searchsorted(self.starts, ranks, side="right") - 1]
            )
        all_positions = np.concatenate(
            [self.chosen(index).numbers() + first for index, first in enumerate(firsts.tolist())]
        )
        return lambda ranks: all_positions[ranks]


# -- plan ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReshardPlan:
    """The plan of a job.

    pools: the available records of each split.
    counts: how many of them are written.
    orders: the random order of each split; None for the order of the inputs.
    notices: about skipped splits.
    """

    shards: tuple[ShardPlan, ...]
    pools: Mapping[str, Pool]
    counts: Mapping[str, int]
    orders: Mapping[str, Permutations | None]
    compression: Compression
    notices: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Approximate size of the copied records."""
        return sum(_sizes(self.pools, self.counts).values())

    def spans(self) -> Callable[[ShardPlan], Iterator[range | Int64Array]]:
        """Return a function that yields the positions of the records of a shard, in order."""
        lookups = {
            split: self.pools[split].positions()
            for split, order in self.orders.items()
            if order is not None
        }

        def of(shard: ShardPlan) -> Iterator[range | Int64Array]:
            order = self.orders[shard.split]
            if order is None:
                yield from self.pools[shard.split].spans(shard.start, shard.stop)
                return
            for start in range(shard.start, shard.stop, _POSITIONS):
                ranks = order.numbers(0, np.arange(start, min(start + _POSITIONS, shard.stop)))
                yield lookups[shard.split](ranks)

        return of


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
        inputs.identities(),
        inputs.class_names,
        inputs.has_label_map,
    ]
    return fingerprint(document)


def make_plan(
    options: ReshardOptions,
    inputs: Inputs,
    records: InputRecords,
    chosen: Mapping[int, MatchedRecords] | None,
) -> ReshardPlan:
    """Assign records to shards; `chosen` has the selected records of each input, None for all."""
    if not sum(records.counts):
        raise SourceError(f"no records in {', '.join(inputs.names)}", path=inputs.names[0])
    pools, notices = _pools(options, inputs, records, chosen)
    counts = {
        split: len(pool) if options.take is None else min(len(pool), options.take)
        for split, pool in pools.items()
    }
    orders = {
        split: Permutations(len(pool), options.seed, "reshard", "shuffle", split)
        if options.shuffle
        else None
        for split, pool in pools.items()
    }
    compression = output_compression(options, inputs)
    if options.keep_shards:
        shards = _keep_shards(inputs, pools, compression, options.shard_names)
    else:
        shards = plan_shards(
            counts,
            _sizes(pools, counts),
            options.shards,
            options.shard_size_bytes,
            compression,
            options.shard_names,
        )
    return ReshardPlan(shards, pools, counts, orders, compression, tuple(notices))


def _keep_shards(
    inputs: Inputs, pools: Mapping[str, Pool], compression: Compression, template: str
) -> tuple[ShardPlan, ...]:
    """Plan one shard per input with records.

    They keep the names of the inputs if possible; otherwise the template names all of them.
    """
    bounds = {
        split: [
            (number, int(start), int(stop))
            for number, start, stop in zip(
                pool.inputs, pool.starts[:-1], pool.starts[1:], strict=True
            )
            if start < stop
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
    if (
        len(names) == len(inputs.shards) == len(set(names))
        and set(inputs.compressions) == {compression}
        and _TAKEN.isdisjoint(names)
        and all(map(is_valid_file_name, names))
    ):
        files = given
    return tuple(
        ShardPlan(file, split, start, stop)
        for split, runs in bounds.items()
        for file, (_, start, stop) in zip(files[split], runs, strict=True)
    )


def _pools(
    options: ReshardOptions,
    inputs: Inputs,
    records: InputRecords,
    chosen: Mapping[int, MatchedRecords] | None,
) -> tuple[dict[str, Pool], list[str]]:
    """Return the non-empty pools by split, and notices about empty ones."""
    whole = Pool(records, range(len(records)), chosen)
    if options.where is not None and not len(whole):
        raise OptionError(
            f"none of the {sum(records.counts):,} records match {option('where')}",
            option="where",
            value=str(options.where),
        )
    if options.splits is not None:
        count = _round_share(len(whole), options.sample)
        shares = share_counts(count, options.splits)
        for split, share in shares.items():
            if not share:
                raise OptionError(
                    f"split {split!r} would be empty: {options.splits[split]:g} of {count} records",
                    option="splits",
                    value=split,
                    remedy="Give it a larger share.",
                )
        return _draw_pools(options, "", whole, shares), []
    pools: dict[str, Pool] = {}
    notices = []
    for split in inputs.splits:
        numbers = [number for number, shard in enumerate(inputs.shards) if shard.split == split]
        pool = Pool(records, numbers, chosen)
        if options.sample is not None:
            shares_of_split = {split: _round_share(len(pool), options.sample)}
            pool = _draw_pools(options, split, pool, shares_of_split)[split]
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


def _draw_pools(
    options: ReshardOptions, split: str, pool: Pool, shares: Mapping[str, int]
) -> dict[str, Pool]:
    """Draw disjoint pools of `shares` records, as runs of one random order."""
    draws = draws_of_splits(len(pool), shares, options.seed, split)
    return {name: pool.drawn(draw, shares[name]) for name, draw in draws.items()}


def _sizes(pools: Mapping[str, Pool], counts: Mapping[str, int]) -> dict[str, int]:
    """Approximate size of the written records of each split."""
    return {split: pool.size_bytes * counts[split] // len(pool) for split, pool in pools.items()}


def _round_share(count: int, share: float | None) -> int:
    """Return a share of a count, rounded half up."""
    return count if share is None else math.floor(count * exact_share(share) + exact_share(0.5))
