"""Estimates distinct counts, frequent values and quantiles in bounded memory.

Three sketches, each with a known error:

- `DistinctHashes`: all hashes up to its capacity, then those that begin with enough zero bits
  (adaptive sampling: Flajolet, On adaptive sampling, 1990). Chosen over HyperLogLog,
  because it is exact up to its capacity with the same memory.
- `FrequentKeys`: counters for frequent keys (Misra and Gries; merged as in Agarwal and
  others, Mergeable summaries, 2012).
- `Quantiles`: sorted runs, halved when they grow too long (Munro and Paterson, 1980; as KLL, with
  halves taken in turn instead of at random).

All can be merged, accept arrays, and use no random numbers: the same values in the same order give
the same results.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array

Hashes = npt.NDArray[np.uint64]
Keys = npt.NDArray[Any]
_Array = TypeVar("_Array", bound=npt.NDArray[Any])

# of the finaliser of SplitMix64 (Steele, Lea, Flood, Fast splittable generators, 2014)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_PENDING = 1 << 15
_SMALL_COUNT = 1 << 10
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def hash_keys(keys: Keys) -> Hashes:
    """Hash numbers of 4 or 8 bytes to uint64; uint64 values are returned unchanged."""
    if keys.dtype == np.uint64:
        return keys
    bits = np.ascontiguousarray(keys).view(f"u{keys.itemsize}").astype(np.uint64)
    bits += _GOLDEN
    bits = (bits ^ (bits >> _SHIFTS[0])) * _MULTIPLIERS[0]
    bits = (bits ^ (bits >> _SHIFTS[1])) * _MULTIPLIERS[1]
    return bits ^ (bits >> _SHIFTS[2])


def count_sorted(values: Keys) -> tuple[Keys, Int64Array]:
    """Return the distinct values of a sorted array, and their counts."""
    if not len(values):
        return values, np.empty(0, np.int64)
    is_first = np.empty(len(values), bool)
    is_first[0] = True
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    return values[starts], np.diff(starts, append=len(values))


def begins_with_zeros(hashes: Hashes, bits: int) -> npt.NDArray[np.bool_]:
    """Return which hashes are in the sample of one in 2**bits."""
    return hashes < np.uint64(1 << (64 - bits)) if bits else np.ones(len(hashes), bool)


def find(keys: Keys, wanted: Keys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return the insertion index of each wanted key in sorted keys, and whether it is present."""
    places = np.searchsorted(keys, wanted)
    if not len(keys):
        return places, np.zeros(len(wanted), bool)
    return places, keys[np.minimum(places, len(keys) - 1)] == wanted


class Pending(Generic[_Array]):
    """Arrays of one dtype that wait to be processed. Do not change them afterwards."""

    def __init__(self, enough: int) -> None:
        """`enough`: how many values to collect before processing them."""
        self._enough = enough
        self._arrays: list[_Array] = []
        self._count = 0

    def add(self, values: _Array) -> bool:
        """Add an array; return whether there are enough values now."""
        self._arrays.append(values)
        self._count += len(values)
        return self._count >= self._enough

    def take(self) -> _Array | None:
        """Remove and return all values as one array, in order; None if empty."""
        arrays, count = self._arrays, self._count
        self._arrays, self._count = [], 0
        return np.concatenate(arrays) if count else None  # type: ignore[return-value]


class SortedTable:
    """Distinct keys in order, with int64 columns.

    keys: the keys.
    columns: an array for each ufunc, which combines the values of a key that is added again.
    """

    def __init__(self, dtype: npt.DTypeLike, *combine: np.ufunc) -> None:
        self.keys: Keys = np.empty(0, dtype)
        self.columns = [np.empty(0, np.int64) for _ in combine]
        self._combine = combine

    def add(self, keys: Keys, *columns: Int64Array) -> None:
        """Add sorted distinct keys with their columns. Replaces `keys` if some of them are new."""
        at, is_known = find(self.keys, keys)
        known, is_new = at[is_known], ~is_known
        for combine, mine, theirs in zip(self._combine, self.columns, columns, strict=True):
            mine[known] = combine(mine[known], theirs[is_known])
        if len(known) < len(keys):
            at = at[is_new]
            self.keys = np.insert(self.keys, at, keys[is_new])
            self.columns = [
                np.insert(mine, at, theirs[is_new])
                for mine, theirs in zip(self.columns, columns, strict=True)
            ]

    def keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Drop the other keys."""
        self.keys = self.keys[chosen]
        self.columns = [column[chosen] for column in self.columns]

    def keep_sample(self, bits: int) -> None:
        """Drop the hashes that are not in the sample of one in 2**bits."""
        self.keep(begins_with_zeros(self.keys, bits))


class DistinctHashes:
    """Counts different hashes."""

    def __init__(self, capacity: int) -> None:
        """Exact up to `capacity`; 8 bytes each."""
        self._capacity = capacity
        self._table = SortedTable(np.uint64)
        self._bits = 0
        self._pending: Pending[Hashes] = Pending(_PENDING)

    def add(self, hashes: Hashes) -> None:
        """Add hashes in any order, with repeats. Do not change the array afterwards."""
        if self._pending.add(hashes):
            self._settle()

    def _settle(self) -> None:
        hashes = self._pending.take()
        if hashes is None:
            return
        wanted, _ = count_sorted(np.sort(hashes[begins_with_zeros(hashes, self._bits)]))
        self._table.add(wanted)
        while len(self._table.keys) > self._capacity:
            self._bits += 1
            self._table.keep_sample(self._bits)

    def merge(self, other: DistinctHashes) -> None:
        """Add everything that another survey collected."""
        other._settle()
        if other._bits > self._bits:
            self._bits = other._bits
            self._table.keep_sample(self._bits)
        self.add(other._table.keys)

    @property
    def count(self) -> int:
        """The number of different hashes; an estimate if `error` is not 0."""
        self._settle()
        return len(self._table.keys) << self._bits

    @property
    def error(self) -> float:
        """The relative error of `count`, as three standard deviations; 0.0 if exact."""
        self._settle()
        if not self._bits:
            return 0.0
        return 3 * float(np.sqrt((1 - 0.5**self._bits) / max(1, len(self._table.keys))))


def _smallest(counts: Int64Array, place: int) -> int:
    """Return the n-th smallest count, from 1. Nearly all counts are small."""
    up_to = np.cumsum(np.bincount(np.minimum(counts, _SMALL_COUNT)))
    found = int(np.searchsorted(up_to, place))
    return found if found < _SMALL_COUNT else int(np.sort(counts)[place - 1])


class FrequentKeys(SortedTable):
    """Counters for the most frequent keys.

    A key occurred between `counts` and `counts + error` times; a key without a counter at most
    `error` times. The error is at most the number of added keys divided by the capacity.
    """

    def __init__(self, capacity: int, dtype: npt.DTypeLike) -> None:
        super().__init__(dtype, np.add)
        self._capacity = capacity
        self.error = 0

    @property
    def counts(self) -> Int64Array:
        """How often each key occurred, less what was dropped."""
        return self.columns[0]

    def add(self, keys: Keys, *columns: Int64Array) -> None:
        """Add sorted distinct keys with their counts."""
        super().add(keys, *columns)
        over = len(self.keys) - self._capacity
        if over > 0:  # reduce all counters by the largest one that does not fit
            fall = _smallest(self.counts, over)
            self.keep(self.counts > fall)
            self.columns[0] -= fall
            self.error += fall

    def top(self, most: int) -> tuple[Keys, Int64Array]:
        """Return the most frequent keys with their counts; the first of equally frequent ones."""
        places = np.argsort(-self.counts, kind="stable")[:most]
        return self.keys[places], self.counts[places]

    def merge(self, other: FrequentKeys) -> None:
        """Add everything that another survey collected."""
        self.error += other.error
        self.add(other.keys, other.counts)


class Quantiles:
    """Estimates quantiles. Values on level n have weight 2**n."""

    def __init__(self, length: int, dtype: npt.DTypeLike) -> None:
        """A level is halved when it holds `length` values. Each halved level adds an error of at
        most count / length ranks; `rank_error` is the total.
        """
        self._length = length
        self._dtype = np.dtype(dtype)
        self._levels: list[list[Keys]] = []
        self._sizes: list[int] = []
        self._takes_second: list[bool] = []
        self.rank_error = 0

    def add(self, values: Keys) -> None:
        """Add values in any order."""
        self._put(0, values)
        self._shrink()

    def add_counted(self, keys: Keys, counts: Int64Array) -> None:
        """Add each key `count` times, on the levels of the set bits of its count."""
        for level in range(int(counts.max(initial=0)).bit_length()):
            chosen = keys[(counts >> level & 1).astype(bool)]
            if len(chosen):
                self._put(level, chosen)
        self._shrink()

    def merge(self, other: Quantiles) -> None:
        """Add everything that another survey collected."""
        self.rank_error += other.rank_error
        for level, pieces in enumerate(other._levels):
            for piece in pieces:
                self._put(level, piece)
        self._shrink()

    def _put(self, level: int, values: Keys) -> None:
        while len(self._levels) <= level:
            self._levels.append([])
            self._sizes.append(0)
            self._takes_second.append(False)
        self._levels[level].append(values)
        self._sizes[level] += len(values)

    def _shrink(self) -> None:
        level = 0
        while level < len(self._levels):
            if self._sizes[level] >= self._length:
                values = np.concatenate(self._levels[level])
                values.sort(kind="stable")  # fast on sorted runs
                odd, values = values[: len(values) % 2], values[len(values) % 2 :]
                first = int(self._takes_second[level])
                self._takes_second[level] = not first
                self.rank_error += 1 << level
                self._levels[level], self._sizes[level] = [odd], len(odd)
                self._put(level + 1, values[first::2])
            level += 1

    def weighted(self) -> tuple[Keys, Int64Array]:
        """Return distinct values in order, and their weights."""
        pieces = [np.concatenate(pieces) for pieces in self._levels if pieces]
        if not pieces:
            return np.empty(0, self._dtype), np.empty(0, np.int64)
        weights = [np.full(size, 1 << level, np.int64) for level, size in enumerate(self._sizes)]
        weights = [weight for weight, pieces in zip(weights, self._levels, strict=True) if pieces]
        values, places = np.unique(np.concatenate(pieces), return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, places.ravel(), np.concatenate(weights))
        return values, counts
