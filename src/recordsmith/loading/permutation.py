"""A shuffle without an array: the place of any number in a random order, by arithmetic.

A Feistel network permutes the numbers below a power of two, keyed by seed and epoch; numbers that
fall outside of the count go through it again until they do not ("cycle walking": Black and Rogaway,
Ciphers with Arbitrary Finite Domains, 2002). It takes the same memory for a million records and
for a billion, gives the same order on every machine, and any part of the order can be asked for
alone. Few numbers are sorted by a hash instead: narrow networks do not give all orders alike.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array

_ROUNDS = 6
_FEW = 4096
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of the finaliser of SplitMix64


class Permutation:
    """A random order of the numbers from 0 to count - 1.

    Equal (count, seed, epoch) give equal orders; orders of different epochs have nothing to do with
    each other.
    """

    def __init__(self, count: int, seed: int, epoch: int = 0) -> None:
        self.count = count
        bits = max(2, (count - 1).bit_length())
        self._low_bits = bits // 2
        self._high_bits = bits - self._low_bits
        digest = hashlib.blake2b(f"{seed}/{epoch}".encode(), digest_size=8 * _ROUNDS).digest()
        self._keys = np.frombuffer(digest, "<u8").astype(np.uint64)
        self._order: Int64Array | None = None
        if count <= _FEW:
            numbers = np.arange(count, dtype=np.uint64)
            hashes = mixed(mixed(numbers, self._keys[0]), self._keys[1])
            self._order = np.argsort(hashes, kind="stable").astype(np.int64, copy=False)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, places: Int64Array) -> Int64Array:
        """The numbers at some places of the order.

        Args:
            places: int64, (n,), from 0 to count - 1.

        Returns:
            int64, (n,).
        """
        if self._order is not None:
            return self._order[places]
        numbers = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(numbers >= self.count)
        while len(outside):
            numbers[outside] = self._once(numbers[outside])
            outside = outside[numbers[outside] >= self.count]
        return numbers.astype(np.int64)

    def _once(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """One pass through the network: halves of unequal width take turns."""
        low_bits, high_bits = self._low_bits, self._high_bits
        low = numbers & _mask(low_bits)
        high = numbers >> np.uint64(low_bits)
        for key in self._keys:
            # the half that was changed last keys the change of the other; their widths swap
            high, low = low, high ^ (mixed(low, key) & _mask(high_bits))
            low_bits, high_bits = high_bits, low_bits
        return (high << np.uint64(low_bits)) | low


def mixed(
    numbers: npt.NDArray[np.uint64], key: np.uint64 | npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """64 bits of each number, well mixed with the key, or with the key of each."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ key
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(multiplier)
    return mixed ^ (mixed >> np.uint64(31))


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
