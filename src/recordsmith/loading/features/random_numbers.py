"""Random numbers that depend only on seed, epoch, place and purpose.

They are independent of batch, rank, thread and earlier numbers, so an image is cropped the same way
for any number of ranks and after resuming.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.permutation import mix_bits


class RandomNumbers:
    """The random numbers of the rows of a batch."""

    def __init__(self, seed: int, epoch: int, places: Int64Array) -> None:
        """`places`: of the rows in the order of the epoch."""
        self._seed = seed
        self._epoch = epoch
        self.places = places

    def uniform(self, purpose: str, count: int) -> npt.NDArray[np.float64]:
        """Return `count` numbers in [0, 1) for each row: (rows, count)."""
        numbers = mix_bits(self.places.astype(np.uint64), self._key(purpose))
        bits = mix_bits(numbers[:, np.newaxis], np.arange(count, dtype=np.uint64))
        # the highest 53 bits are what a float64 between 0 and 1 can hold
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def generator(self, purpose: str, row: int | None = None) -> np.random.Generator:
        """Return a generator for one row, or for the batch."""
        key = int(self._key(purpose))
        first = 0 if row is None else row
        place = int(self.places[first]) if first < len(self.places) else 0  # an empty batch
        return np.random.Generator(np.random.Philox(key=[key, place]))

    def select(self, rows: Int64Array) -> RandomNumbers:
        """Return the random numbers of some of the rows."""
        return RandomNumbers(self._seed, self._epoch, self.places[rows])

    def _key(self, purpose: str) -> np.uint64:
        text = f"{self._seed}/{self._epoch}/{purpose}"
        digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"draws").digest()
        return np.uint64(int.from_bytes(digest, "little"))
