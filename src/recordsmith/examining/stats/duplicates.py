"""Finds duplicates within a split or in two splits, by 64-bit hashes.

Up to KEPT_HASHES different contents, results are exact. Beyond that, only hashes that begin with
enough zero bits are kept: a fair sample of contents with all copies of each, so that counts are
estimates from one content in 2**bits. Results do not depend on the order of the hashes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.places import Place, Places
from recordsmith.examining.stats.sketches import Hashes, begins_with_zeros, count_sorted, find
from recordsmith.summaries import Report

KEPT_HASHES = 1 << 21
"""How many contents are counted exactly: 32 bytes each."""

SHOWN = 10
_PENDING = 1 << 18
_MOST_SPLITS = 16


@dataclass(frozen=True, repr=False)
class SharedContent(Report):
    """The duplicates shared by two splits.

    contents: number of different contents in both.
    records: number of records with these contents in both splits together.
    places: for some contents, the first place in each split.
    """

    splits: tuple[str, str]
    contents: int
    records: int
    places: tuple[tuple[Place, Place], ...]


@dataclass(frozen=True, repr=False)
class DuplicateStats(Report):
    """The duplicates of a dataset.

    feature: the feature whose values were compared; None for whole records.
    count: number of compared contents.
    distinct: number of different contents.
    within: for each split, the number of repeats within it.
    places: first and last place of some contents repeated within a split.
    shared: duplicates of each pair of splits that has some.
    sampled: 1 if all numbers are exact; n if they are estimates from one content in n.
    """

    feature: str | None
    count: int
    distinct: int
    within: dict[str, int]
    places: tuple[tuple[Place, Place], ...]
    shared: tuple[SharedContent, ...]
    sampled: int


class _Seen:
    """The contents of one split: sorted hashes with counts, first and last places."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.counts, self.first, self.last = (np.empty(0, np.int64) for _ in range(3))
        self.pending: list[tuple[Hashes, Int64Array]] = []

    def settle(self, bits: int) -> None:
        """Process pending hashes."""
        if not self.pending:
            return
        hashes = np.concatenate([hashes for hashes, _ in self.pending])
        places = np.concatenate([places for _, places in self.pending])
        self.pending = []
        wanted = begins_with_zeros(hashes, bits)
        hashes, places = hashes[wanted], places[wanted]
        if not len(hashes):
            return
        order = np.argsort(hashes)
        hashes, counts = count_sorted(hashes[order])
        starts = np.cumsum(counts) - counts
        first = np.minimum.reduceat(places[order], starts)
        last = np.maximum.reduceat(places[order], starts)
        at, is_known = find(self.hashes, hashes)
        known = at[is_known]
        self.counts[known] += counts[is_known]
        self.first[known] = np.minimum(self.first[known], first[is_known])
        self.last[known] = np.maximum(self.last[known], last[is_known])
        is_new = ~is_known
        at = at[is_new]
        self.hashes = np.insert(self.hashes, at, hashes[is_new])
        self.counts = np.insert(self.counts, at, counts[is_new])
        self.first = np.insert(self.first, at, first[is_new])
        self.last = np.insert(self.last, at, last[is_new])

    def keep_sample(self, bits: int) -> None:
        """Drop hashes outside of the sample."""
        chosen = begins_with_zeros(self.hashes, bits)
        self.hashes, self.counts = self.hashes[chosen], self.counts[chosen]
        self.first, self.last = self.first[chosen], self.last[chosen]


class DuplicateSearch:
    """Collects hashes of contents. Thread-safe."""

    def __init__(self, feature: str | None) -> None:
        self.feature = feature
        self._splits: dict[str, _Seen] = {}
        self._bits = 0
        self._count = 0
        self._pending_count = 0
        self._lock = threading.Lock()

    def add(self, split: str, hashes: Hashes, places: Int64Array) -> None:
        """Add contents of a split by their hashes, with the number of each place."""
        with self._lock:
            self._count += len(hashes)
            wanted = begins_with_zeros(hashes, self._bits)
            seen = self._splits.setdefault(split, _Seen())
            seen.pending.append((hashes[wanted], places[wanted]))
            self._pending_count += int(np.count_nonzero(wanted))
            if self._pending_count >= _PENDING:
                self._settle()

    def _settle(self) -> None:
        self._pending_count = 0
        for seen in self._splits.values():
            seen.settle(self._bits)
        while sum(len(seen.hashes) for seen in self._splits.values()) > KEPT_HASHES:
            self._bits += 1
            for seen in self._splits.values():
                seen.keep_sample(self._bits)

    def finish(self, places: Places) -> DuplicateStats:
        """Return the duplicates."""
        with self._lock:
            self._settle()
        splits = dict(sorted(self._splits.items()))
        scale = 1 << self._bits
        pairs = []
        for seen in splits.values():
            twice = seen.counts > 1
            pairs += _first_pairs(seen.first[twice], seen.last[twice])
        shared = []
        if len(splits) <= _MOST_SPLITS:
            for one, other in combinations(splits, 2):
                mine, theirs = _shared(splits[one], splits[other])
                if not len(mine):
                    continue
                counts = splits[one].counts[mine] + splits[other].counts[theirs]
                both = _first_pairs(splits[one].first[mine], splits[other].first[theirs])
                shared.append(
                    SharedContent(
                        (one, other),
                        len(mine) * scale,
                        int(counts.sum()) * scale,
                        tuple((places(a), places(b)) for a, b in both),
                    )
                )
        every = [seen.hashes for seen in splits.values()]
        return DuplicateStats(
            self.feature,
            self._count,
            len(count_sorted(np.sort(np.concatenate(every)))[0]) * scale if every else 0,
            {split: int((seen.counts - 1).sum()) * scale for split, seen in splits.items()},
            tuple((places(a), places(b)) for a, b in sorted(pairs)[:SHOWN]),
            tuple(shared),
            scale,
        )


def _first_pairs(first: Int64Array, second: Int64Array) -> list[tuple[int, int]]:
    """Return the first pairs of places."""
    chosen = np.argsort(first, kind="stable")[:SHOWN]
    return list(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True))


def _shared(one: _Seen, other: _Seen) -> tuple[Any, Any]:
    """Return the indices of shared contents in each split."""
    _, mine, theirs = np.intersect1d(
        one.hashes, other.hashes, assume_unique=True, return_indices=True
    )
    return mine, theirs
