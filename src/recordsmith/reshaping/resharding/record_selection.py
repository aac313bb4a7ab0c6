"""Selection and order of the records of each split, as arithmetic on record numbers.

A `Pool` contains the selected records of some inputs. A condition takes one bit per record. A
random draw takes no memory: it keeps the ranks at some places of a pseudorandom permutation. So a
sample has exactly the requested number of records, and new splits are disjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array, offsets_from_lengths
from recordsmith.dataset.shares import Draw
from recordsmith.errors import located
from recordsmith.permutation import Permutations
from recordsmith.reshaping.inputs.cache import LruCache
from recordsmith.reshaping.inputs.input_records import InputRecords
from recordsmith.where import Where
from recordsmith.wire import FRAME_BYTES

_AT_ONCE = 1 << 20
_REMEMBERED = 32 << 20  # record numbers in memory: 256 MiB


def count_drawn(draws: Sequence[Draw], starts: Int64Array) -> npt.NDArray[np.int64]:
    """Count the ranks of each input that disjoint draws of one order keep.

    Args:
        draws: in the order of their places, without gaps.
        starts: int64, (inputs + 1,): the rank of the first record of each input, and the end.

    Returns:
        int64, (draws, inputs).
    """
    counts = np.zeros((len(draws), len(starts) - 1), np.int64)
    permutation = draws[0].permutation
    edges = np.array([draws[0].low, *(draw.high for draw in draws)])
    for at, (start, stop) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        for low in range(start, stop, _AT_ONCE):
            places = permutation.numbers(0, np.arange(low, min(low + _AT_ONCE, stop)))
            found = np.searchsorted(edges, places, side="right") - 1
            counts[:, at] += np.bincount(found, minlength=len(edges))[: len(draws)]
    return counts


class MatchedRecords:
    """The records of one input that match a condition, one bit per record."""

    def __init__(self, chosen: Sequence[npt.NDArray[np.bool_]], size_bytes: int) -> None:
        """`chosen`: a flag per record, in order; `size_bytes`: of the kept records."""
        flags = np.concatenate(chosen) if chosen else np.empty(0, np.bool_)
        self._bits = np.packbits(flags)
        self._record_count = len(flags)
        self.count = int(np.count_nonzero(flags))
        self.size_bytes = size_bytes

    def numbers(self) -> Int64Array:
        """int64, (count,), ascending."""
        flags = np.unpackbits(self._bits, count=self._record_count)
        return np.flatnonzero(flags).astype(np.int64, copy=False)


class Pool:
    """The records of one split, ranked from 0 in the order of the inputs.

    inputs: their numbers, in order.
    starts: int64, (len(inputs) + 1,): the rank of each input's first record, and the end.
    drawn_from: the same, before anything was drawn.
    size_bytes: how much all of them take, framing included; about, where they were drawn.
    has_all_records: all records of all its inputs are there.
    """

    def __init__(
        self,
        inputs: Sequence[int],
        record_counts: Sequence[int],
        sizes: Sequence[int],
        kept: Mapping[int, MatchedRecords] | None,
        draw: Draw | None,
        drawn_counts: Int64Array | None,
    ) -> None:
        """
        Args:
            record_counts, sizes: of these inputs.
            kept: by number of the input; None for all records.
            draw: which of these; None for all.
            drawn_counts: int64, (inputs,): of how many of each input it takes.
        """
        self.inputs = tuple(inputs)
        self._record_counts = tuple(record_counts)
        self._kept = kept
        self._draw = draw
        if kept is not None:
            record_counts = [kept[number].count for number in inputs]
            sizes = [kept[number].size_bytes for number in inputs]
        self.drawn_from = offsets_from_lengths(record_counts)
        self.starts = (
            self.drawn_from if drawn_counts is None else offsets_from_lengths(drawn_counts)
        )
        self.size_bytes = sum(sizes) * len(self) // max(1, int(self.drawn_from[-1]))
        self._recent: LruCache[Int64Array] = LruCache(lambda _, numbers: len(numbers), _REMEMBERED)
        self.has_all_records = len(self) == sum(self._record_counts)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def numbers(self, at: int) -> Int64Array:
        """The selected records of `inputs[at]`: int64, ascending."""
        return self._recent.get(at, self._find)

    def _find(self, at: int) -> Int64Array:
        if self._kept is None:
            numbers = np.arange(self._record_counts[at], dtype=np.int64)
        else:
            numbers = self._kept[self.inputs[at]].numbers()
        if self._draw is None:
            return numbers
        return numbers[self._draw.keeps(int(self.drawn_from[at]), int(self.drawn_from[at + 1]))]

    def has_all_records_at(self, at: int) -> bool:
        """Whether all records of `inputs[at]` are selected."""
        return int(self.starts[at + 1] - self.starts[at]) == self._record_counts[at]


@dataclass(frozen=True)
class PoolOrder:
    """The order in which the first `count` records of a pool are written, as ranks."""

    count: int
    permutation: Permutations | None = None

    def ranks(self, start: int, stop: int) -> Int64Array:
        """Ranks at the places start:stop: int64, (stop - start,)."""
        places = np.arange(start, stop, dtype=np.int64)
        return places if self.permutation is None else self.permutation.numbers(0, places)


def select(
    records: InputRecords,
    number: int,
    where: Where | None,
    selected: npt.NDArray[np.bool_] | None,
    advance: Callable[[int], None],
) -> MatchedRecords:
    """Return the selected records of input `number` that match `where`.

    Args:
        records: of all inputs.
        number: of the input.
        where: the condition; None: none.
        selected: whether each record is selected; None: all.
        advance: called with the number of bytes read since the last call.

    Raises:
        CorruptDataError: a record is damaged or cannot be parsed.
    """
    if where is None:
        assert selected is not None
        numbers = np.flatnonzero(selected)
        sizes = records.shard(number).sizes(numbers) if len(numbers) else numbers
        return MatchedRecords([selected], int(sizes.sum()) + FRAME_BYTES * len(numbers))
    chosen = []
    size_bytes = 0
    if records.counts[number]:
        with located(records.location(number)):
            for block in records.shard(number).blocks():
                flags = np.asarray(where.matches(block), np.bool_)
                if selected is not None:
                    flags = flags & selected[block.position : block.position + len(block)]
                chosen.append(flags)
                size_bytes += int((block.lengths[flags] + FRAME_BYTES).sum())
                advance(len(block.frames()))
    return MatchedRecords(chosen, size_bytes)
