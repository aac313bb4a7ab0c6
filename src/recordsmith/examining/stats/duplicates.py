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
from recordsmith.examining.stats.sketches import (
    Hashes,
    SortedTable,
    begins_with_zeros,
    count_sorted,
)
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


class SeenContents(SortedTable):
    """The contents of one split by hash, with counts, first and last places."""

    def __init__(self) -> None:
        super().__init__(np.uint64, np.add, np.minimum, np.maximum)
        self.pending: list[tuple[Hashes, Int64Array]] = []

    def settle(self, bits: int) -> None:
        """Process pending hashes."""
        if not self.pending:
            return
        hashes, places = map(np.concatenate, zip(*self.pending, strict=True))
        self.pending = []
        wanted = np.flatnonzero(begins_with_zeros(hashes, bits))
        if len(wanted):
            order = wanted[np.argsort(hashes[wanted])]
            hashes, counts = count_sorted(hashes[order])
            starts = np.cumsum(counts) - counts
            first, last = (
                combine.reduceat(places[order], starts) for combine in (np.minimum, np.maximum)
            )
            self.add(hashes, counts, first, last)


class DuplicateSearch:
    """Collects hashes of contents. Thread-safe."""

    def __init__(self, feature: str | None) -> None:
        self.feature = feature
        self._splits: dict[str, SeenContents] = {}
        self._bits = 0
        self._count = 0
        self._pending_count = 0
        self._lock = threading.Lock()

    def add(self, split: str, hashes: Hashes, places: Int64Array) -> None:
        """Add contents of a split by their hashes, with the number of each place."""
        with self._lock:
            self._count += len(hashes)
            wanted = begins_with_zeros(hashes, self._bits)
            seen = self._splits.setdefault(split, SeenContents())
            seen.pending.append((hashes[wanted], places[wanted]))
            self._pending_count += int(np.count_nonzero(wanted))
            if self._pending_count >= _PENDING:
                self._settle()

    def _settle(self) -> None:
        self._pending_count = 0
        for seen in self._splits.values():
            seen.settle(self._bits)
        self._shrink()

    def _shrink(self) -> None:
        while sum(len(seen.keys) for seen in self._splits.values()) > KEPT_HASHES:
            self._bits += 1
            for seen in self._splits.values():
                seen.keep_sample(self._bits)

    def merge(self, other: DuplicateSearch) -> None:
        """Add everything that another search collected, in another process."""
        other._settle()
        with self._lock:
            self._settle()
            self._count += other._count
            for split, found in other._splits.items():
                self._splits.setdefault(split, SeenContents()).add(found.keys, *found.columns)
            self._bits = max(self._bits, other._bits)
            for seen in self._splits.values():
                seen.keep_sample(self._bits)
            self._shrink()

    def finish(self, places: Places) -> DuplicateStats:
        """Return the duplicates."""
        with self._lock:
            self._settle()
        splits = dict(sorted(self._splits.items()))
        scale = 1 << self._bits
        pairs = []
        for seen in splits.values():
            counts, first, last = seen.columns
            pairs += _first_pairs(first[counts > 1], last[counts > 1])
        shared = []
        if len(splits) <= _MOST_SPLITS:
            for one, other in combinations(splits, 2):
                mine, theirs = _shared(splits[one], splits[other])
                if not len(mine):
                    continue
                counts, first, _ = (column[mine] for column in splits[one].columns)
                more, second, _ = (column[theirs] for column in splits[other].columns)
                both = _first_pairs(first, second)
                shared.append(
                    SharedContent(
                        (one, other),
                        len(mine) * scale,
                        int((counts + more).sum()) * scale,
                        tuple((places(a), places(b)) for a, b in both),
                    )
                )
        every = [seen.keys for seen in splits.values()]
        return DuplicateStats(
            self.feature,
            self._count,
            len(count_sorted(np.sort(np.concatenate(every)))[0]) * scale if every else 0,
            {split: int((seen.columns[0] - 1).sum()) * scale for split, seen in splits.items()},
            tuple((places(a), places(b)) for a, b in sorted(pairs)[:SHOWN]),
            tuple(shared),
            scale,
        )


def _first_pairs(first: Int64Array, second: Int64Array) -> list[tuple[int, int]]:
    """Return the first pairs of places."""
    chosen = np.argsort(first, kind="stable")[:SHOWN]
    return list(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True))


def _shared(one: SeenContents, other: SeenContents) -> tuple[Any, Any]:
    """Return the indices of shared contents in each split."""
    _, mine, theirs = np.intersect1d(one.keys, other.keys, assume_unique=True, return_indices=True)
    return mine, theirs
