"""Counts images and groups that are in several splits, in bounded memory.

Values are compared by 64-bit hashes. Of a feature with very many different values, only those with
the smallest hashes count in all splits: a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from recordsmith.checking.statistics.feature_blocks import FeatureBlock
from recordsmith.checking.statistics.sampling import Builder, Hashes
from recordsmith.format.example import BytesArray
from recordsmith.format.example.keys import IMAGE
from recordsmith.format.example.usual_names import USUAL_NAMES
from recordsmith.support.permutation import finalize_bits

MAX_HASHES = 1 << 20
"""How many different values of a feature in a split are compared."""

_ALL = 2**64 - 1
_PIECES = 4096


@dataclass(frozen=True)
class Leak:
    """Values of a feature that are in two splits.

    feature: an image, or the group of a record.
    splits: the two.
    count: how many different values are in both, of those that were compared. A value in three
        splits is counted for the first and the second, and for the first and the third.
    compared: the share of all values that was compared; 1 if it is all.
    """

    feature: str
    splits: tuple[str, str]
    count: int
    compared: float


class DistinctHashes(Builder):
    """Different hashes, the MAX_HASHES smallest at most."""

    def __init__(self) -> None:
        self.limit = _ALL
        self._pieces: list[Hashes] = []
        self._count = 0

    def add_block(self, block: FeatureBlock) -> None:
        """Add the values of a feature, except numbers instead of images."""
        is_image = block.key in USUAL_NAMES[IMAGE]
        for piece in block.pieces():
            values = piece.values
            if isinstance(values, BytesArray):
                self.add(values.hashes()[values.lengths > 0])
            elif piece.kind == "int64" and not is_image:
                self.add(finalize_bits(np.asarray(values, np.int64).view(np.uint64)))

    def add(self, hashes: Hashes) -> None:
        """Add hashes, which may be equal."""
        hashes = np.unique(hashes[hashes <= np.uint64(self.limit)])
        self._pieces.append(hashes)
        self._count += len(hashes)
        if self._count >= 2 * MAX_HASHES or len(self._pieces) >= _PIECES:
            self.distinct()

    def merge(self, other: DistinctHashes) -> None:
        """Add those of another sample."""
        self.limit = min(self.limit, other.limit)
        for piece in other._pieces:
            self.add(piece)

    def distinct(self) -> Hashes:
        """Return the hashes, ascending."""
        hashes = np.unique(np.concatenate([np.empty(0, np.uint64), *self._pieces]))
        hashes = hashes[hashes <= np.uint64(self.limit)]
        if len(hashes) > MAX_HASHES:
            hashes = hashes[:MAX_HASHES].copy()
            self.limit = int(hashes[-1])
        self._pieces, self._count = [hashes], len(hashes)
        return hashes


def find_leaks(values: Mapping[str, Mapping[str, DistinctHashes]]) -> Iterator[Leak]:
    """Yield what is in several splits; `values` by feature and split."""
    for feature, splits in sorted(values.items()):
        found = [of_split.distinct() for of_split in splits.values()]
        limit = min(of_split.limit for of_split in splits.values())
        hashes = np.concatenate(found)
        owners = np.repeat(np.arange(len(found)), [*map(len, found)])
        owners, hashes = owners[hashes <= np.uint64(limit)], hashes[hashes <= np.uint64(limit)]
        _, indices, of_hash = np.unique(hashes, return_index=True, return_inverse=True)
        firsts = owners[indices][of_hash]  # the first split that has the value
        is_again = owners != firsts
        pairs = Counter(zip(firsts[is_again].tolist(), owners[is_again].tolist(), strict=True))
        names = [*splits]
        for (one, other), count in sorted(pairs.items()):
            yield Leak(feature, (names[one], names[other]), count, (limit + 1) / (_ALL + 1))
