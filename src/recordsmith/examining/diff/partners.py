"""Matches the records of two datasets in steps, each with another digest.

A step uses only records that earlier steps did not match.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.examining.diff.comparing import DigestStore, MakeDigests, SideReader, Wanted
from recordsmith.examining.diff.diff_report import Move
from recordsmith.examining.diff.matching import pairs_of, with_tag


class Partners:
    """The matching between the records of A and B.

    partners: int64, (records of A,): positions in B, -1 without a match.
    is_taken: bool, (records of B,): whether a record has a match.
    """

    def __init__(self, reading: SideReader) -> None:
        self.reading = reading
        self.sides = reading.sides
        names = [shard.split for side in self.sides for shard in side.shards]
        self.splits = list(dict.fromkeys(names))
        self._split_numbers = {name: number for number, name in enumerate(self.splits)}
        self.partners: Int64Array = np.zeros(0, np.int64)
        self.is_taken: npt.NDArray[np.bool_] = np.zeros(0, bool)

    @property
    def count(self) -> int:
        return int(np.count_nonzero(self.partners >= 0))

    def left(self) -> Wanted:
        """Return the records of both sides without a match."""
        return np.flatnonzero(self.partners < 0), np.flatnonzero(~self.is_taken)

    def splits_of(self, side: int, positions: Int64Array) -> Int64Array:
        """Return the split numbers of records: int64, (count,)."""
        return self.sides[side].splits_of(positions, self._split_numbers)

    def match_first(self, make: MakeDigests) -> None:
        """Match all records by their digests."""
        store = DigestStore()
        self.reading.first(make, store)
        self.partners = np.full(self.sides[0].record_count, -1, np.int64)
        self.is_taken = np.zeros(self.sides[1].record_count, bool)
        self._match_equal(store)
        for other in self.reading.parts(make, None, bits=store.bits, part=1):
            self._match_equal(other)

    def match(self, make: MakeDigests) -> None:
        """Match the remaining records by other digests."""
        wanted = self.left()
        if not len(wanted[0]) or not len(wanted[1]):
            return
        for store in self.reading.parts(make, wanted):
            self._match_equal(store)

    def _match_equal(self, store: DigestStore) -> None:
        """Match equal digests, in the same split first, so that copies in several splits are not
        reported as moved.
        """
        found = [store.pop(side, self.sides[side].starts) for side in (0, 1)]
        (of_a, digests_a), (of_b, digests_b) = found
        tagged = [
            with_tag(digests, self.splits_of(side, positions))
            for side, (positions, digests) in enumerate(found)
        ]
        self._pair(of_a, of_b, *pairs_of(*tagged))
        rest_a = self.partners[of_a] < 0
        rest_b = ~self.is_taken[of_b]
        of_a, of_b = of_a[rest_a], of_b[rest_b]
        self._pair(of_a, of_b, *pairs_of(digests_a[rest_a], digests_b[rest_b]))

    def _pair(
        self, of_a: Int64Array, of_b: Int64Array, places_a: Int64Array, places_b: Int64Array
    ) -> None:
        self.partners[of_a[places_a]] = of_b[places_b]
        self.is_taken[of_b[places_b]] = True

    def is_same_order(self) -> bool:
        """Return whether matched records have the same order within each split."""
        of_a = np.flatnonzero(self.partners >= 0)
        of_b = self.partners[of_a]
        splits_a, splits_b = self.splits_of(0, of_a), self.splits_of(1, of_b)
        for a, b in np.unique(np.stack([splits_a, splits_b], 1), axis=0).tolist():
            in_order = of_b[(splits_a == a) & (splits_b == b)]
            if (in_order[1:] < in_order[:-1]).any():
                return False
        return True

    def moves(self) -> list[Move]:
        """Count matched records in splits of different names."""
        of_a = np.flatnonzero(self.partners >= 0)
        splits = np.stack([self.splits_of(0, of_a), self.splits_of(1, self.partners[of_a])], 1)
        names, counts = np.unique(splits[splits[:, 0] != splits[:, 1]], axis=0, return_counts=True)
        return [
            Move(self.splits[a], self.splits[b], count)
            for (a, b), count in zip(names.tolist(), counts.tolist(), strict=True)
        ]
