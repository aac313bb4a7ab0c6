"""Shuffle by arithmetic: compute the number at any position of a random order, without an array.

A Feistel network permutes pairs of two digits, whose bases are about the square root of the count.
Pairs outside the range pass through it again until they are inside ("cycle walking": Black and
Rogaway, Ciphers with Arbitrary Finite Domains, 2002). Memory does not depend on the count, and the
order is the same on every machine. Up to 32 numbers are ranked by a hash instead, and small counts
get more rounds, as narrow networks do not produce all orders with equal probability.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array

_Numbers: TypeAlias = npt.NDArray[np.uint64]
_Base: TypeAlias = np.uint64 | _Numbers  # the same for all numbers, or one for each

_FEW = 32
_FEW_WIDTHS = ((0, 1), (1, 4), (4, 12), (12, _FEW))
_NOT_MANY = 1 << 16
_ROUNDS, _FEW_ROUNDS = 8, 6  # few for many numbers
_HALF = np.uint64(32)
# of the finaliser of SplitMix64 (Steele, Lea, Flood, Fast splittable generators, 2014)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Permutations:
    """Random orders of the numbers from 0 to count - 1: one for each lap, without end.

    Equal count, key and lap give equal orders; all others are independent.
    """

    def __init__(self, count: int, *key: int | str) -> None:
        """`key`: the seed, and what distinguishes these orders from others with the same seed."""
        self.count = count
        self._low_base = math.isqrt(max(0, count - 1)) + 1
        self._high_base = -(-count // self._low_base)
        self._keys = random_keys(_FEW_ROUNDS if count >= _NOT_MANY else _ROUNDS, *key)

    def numbers(self, lap: int | Int64Array, places: Int64Array) -> Int64Array:
        """Return the numbers at some places.

        Args:
            lap: which order, from 0; an int64 array (n,) gives the order for each place.
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """
        laps = np.atleast_1d(np.asarray(lap, np.int64)).astype(np.uint64)
        if self.count <= _FEW:
            return self._ranks(laps, places)
        keys = mix_bits(laps, self._keys)
        low_base, high_base = np.uint64(self._low_base), np.uint64(self._high_base)
        numbers = _once(keys, places.astype(np.uint64), low_base, high_base)
        outside = np.flatnonzero(numbers >= self.count)
        while len(outside):
            its_keys = keys if len(laps) == 1 else keys[:, outside]
            numbers[outside] = _once(its_keys, numbers[outside], low_base, high_base)
            outside = outside[numbers[outside] >= self.count]
        return numbers.astype(np.int64)

    def _ranks(self, laps: _Numbers, places: Int64Array) -> Int64Array:
        own_keys = mix_bits(laps, self._keys[0])[:, np.newaxis]
        hashes = mix_bits(np.arange(self.count, dtype=np.uint64), own_keys)
        ranks = hashes.argsort(axis=1, kind="stable").argsort(axis=1).astype(np.int64, copy=False)
        return ranks[0, places] if len(laps) == 1 else ranks[np.arange(len(laps)), places]


class GroupPermutations:
    """Random orders of the records of many groups: of group g, of the numbers from 0 to its count.

    As `Permutations`, for all groups at once: the cost does not depend on how many there are.
    """

    def __init__(self, *key: int | str) -> None:
        """`key`: as in `Permutations`."""
        self._keys = random_keys(_ROUNDS, *key)

    def numbers(
        self, groups: Int64Array, counts: Int64Array, laps: Int64Array, places: Int64Array
    ) -> Int64Array:
        """Return the numbers at some places of the orders of some groups.

        Args:
            groups, laps: int64, (n,): which order; any non-negative numbers.
            counts: int64, (n,): of the group.
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """
        own_keys = mix_bits(
            laps.astype(np.uint64), mix_bits(groups.astype(np.uint64), self._keys[0])
        )
        numbers = np.empty_like(places)
        is_few, is_many = counts <= _FEW, counts >= _NOT_MANY
        for least, most in _FEW_WIDTHS:  # sorting rows that are no wider than needed
            if (few := np.flatnonzero(is_few & (counts > least) & (counts <= most))).size:
                numbers[few] = _ranks(own_keys[few], counts[few], places[few], most)
        for rounds, chosen in ((_ROUNDS, ~is_few & ~is_many), (_FEW_ROUNDS, is_many)):
            rows = np.flatnonzero(chosen)
            keys = mix_bits(own_keys[rows], self._keys[:rounds])
            sizes, inside = counts[rows].astype(np.uint64), places[rows].astype(np.uint64)
            low_bases = np.sqrt(counts[rows] - 1).astype(np.uint64) + np.uint64(1)
            high_bases = (sizes + low_bases - np.uint64(1)) // low_bases
            inside = _once(keys, inside, low_bases, high_bases)
            while (left := np.flatnonzero(inside >= sizes)).size:
                inside[left] = _once(keys[:, left], inside[left], low_bases[left], high_bases[left])
            numbers[rows] = inside.astype(np.int64)
        return numbers


def _ranks(own_keys: _Numbers, counts: Int64Array, places: Int64Array, most: int) -> Int64Array:
    """Return the rank of a hash among those of its group, of up to `most` numbers."""
    hashes = mix_bits(np.arange(most, dtype=np.uint64), own_keys[:, np.newaxis])
    hashes[np.arange(most) >= counts[:, np.newaxis]] = np.iinfo(np.uint64).max
    order = hashes.argsort(axis=1, kind="stable")
    return order[np.arange(len(places)), places].astype(np.int64)


def random_keys(count: int, *key: int | str) -> _Numbers:
    """Return up to 8 keys for `mix_bits`, the same for the same seed and names: (count, 1)."""
    text = "/".join(map(str, key)).encode("utf-8", "surrogatepass")
    import hashlib

    digest = hashlib.blake2b(text, digest_size=8 * count).digest()
    return np.frombuffer(digest, "<u8").astype(np.uint64)[:, np.newaxis]


def _once(keys: _Numbers, numbers: _Numbers, low_base: _Base, high_base: _Base) -> _Numbers:
    """Run the network once, in place: allocating arrays costs more than filling them.

    Each round adds a hash of one digit to the other digit, then swaps them.
    """
    high = numbers // low_base
    low = numbers - high * low_base
    hashes, shifted = np.empty_like(low), np.empty_like(low)
    for key in keys:
        np.bitwise_xor(low, key, out=hashes)
        np.multiply(hashes, _GOLDEN, out=hashes)
        np.right_shift(hashes, _HALF, out=shifted)
        np.bitwise_xor(hashes, shifted, out=hashes)
        np.multiply(hashes, _MULTIPLIERS[0], out=hashes)
        np.right_shift(hashes, _HALF, out=hashes)  # a fraction of 2**32 ...
        np.multiply(hashes, high_base, out=hashes)
        np.right_shift(hashes, _HALF, out=hashes)  # ... scaled to the base
        np.add(high, hashes, out=high)
        np.subtract(high, high_base, out=hashes)  # wraps to a huge number where there is no carry
        np.minimum(high, hashes, out=high)
        low, high = high, low
        low_base, high_base = high_base, low_base
    return high * low_base + low


def mix_bits(numbers: _Numbers, key: np.uint64 | _Numbers) -> _Numbers:
    """Hash each number with the key, or with its own key, to 64 bits."""
    return finalize_bits((numbers + np.uint64(1)) * _GOLDEN ^ key)


def finalize_bits(numbers: _Numbers) -> _Numbers:
    """Make every bit depend on every bit of a number."""
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * multiplier
    return numbers ^ (numbers >> np.uint64(31))
