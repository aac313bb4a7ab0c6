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


def add_counted(
    keys: Keys, counts: Int64Array, more: Keys, more_counts: Int64Array
) -> tuple[Keys, Int64Array]:
    """Merge two lists of sorted distinct keys with their counts. May change `counts`."""
    places, is_known = find(keys, more)
    counts[places[is_known]] += more_counts[is_known]
    if is_known.all():
        return keys, counts
    is_new = ~is_known
    at = places[is_new]
    return np.insert(keys, at, more[is_new]), np.insert(counts, at, more_counts[is_new])


def most_frequent(counts: Int64Array, most: int) -> npt.NDArray[np.intp]:
    """Return the indices of the largest counts; the first of equal ones."""
    return np.argsort(-counts, kind="stable")[:most]


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


class DistinctHashes:
    """Counts different hashes."""

    def __init__(self, capacity: int) -> None:
        """Exact up to `capacity`; 8 bytes each."""
        self._capacity = capacity
        self._hashes: Hashes = np.empty(0, np.uint64)
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
        places, is_known = find(self._hashes, wanted)
        if not is_known.all():
            is_new = ~is_known
            self._hashes = np.insert(self._hashes, places[is_new], wanted[is_new])
            self._shrink()

    def merge(self, other: DistinctHashes) -> None:
        """Add everything that another survey collected."""
        other._settle()
        if other._bits > self._bits:
            self._bits = other._bits
            self._keep_sample()
        self.add(other._hashes)

    def _shrink(self) -> None:
        while len(self._hashes) > self._capacity:
            self._bits += 1
            self._keep_sample()

    def _keep_sample(self) -> None:
        self._hashes = self._hashes[begins_with_zeros(self._hashes, self._bits)]

    @property
    def count(self) -> int:
        """The number of different hashes; an estimate if `error` is not 0."""
        self._settle()
        return len(self._hashes) << self._bits

    @property
    def error(self) -> float:
        """The relative error of `count`, as three standard deviations; 0.0 if exact."""
        self._settle()
        if not self._bits:
            return 0.0
        return 3 * float(np.sqrt((1 - 0.5**self._bits) / max(1, len(self._hashes))))


def _smallest(counts: Int64Array, place: int) -> int:
    """Return the n-th smallest count, from 1. Nearly all counts are small."""
    up_to = np.cumsum(np.bincount(np.minimum(counts, _SMALL_COUNT)))
    found = int(np.searchsorted(up_to, place))
    return found if found < _SMALL_COUNT else int(np.sort(counts)[place - 1])


class FrequentKeys:
    """Counters for the most frequent keys.

    A key occurred between `counts` and `counts + error` times; a key without a counter at most
    `error` times. The error is at most the number of added keys divided by the capacity.
    """

    def __init__(self, capacity: int, dtype: npt.DTypeLike) -> None:
        self._capacity = capacity
        self.keys: Keys = np.empty(0, dtype)
        self.counts: Int64Array = np.empty(0, np.int64)
        self.error = 0

    def add(self, keys: Keys, counts: Int64Array) -> None:
        """Add sorted distinct keys with their counts."""
        self.keys, self.counts = add_counted(self.keys, self.counts, keys, counts)
        over = len(self.keys) - self._capacity
        if over > 0:  # reduce all counters by the largest one that does not fit
            fall = _smallest(self.counts, over)
            stay = self.counts > fall
            self.keys, self.counts = self.keys[stay], self.counts[stay] - fall
            self.error += fall

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
