"""What is there twice, within a split or in two of them? Told by hashes of 64 bits.

Up to KEPT_HASHES different contents each is known, with where it came first and last. Where there
are more, only those whose hash begins with enough zero bits are: a fair sample of contents, of
which every copy is seen, so that what is counted in it is an estimate of one in 2**bits. The answer
does not depend on the order in which hashes come.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.examining.statistics.places import Place, Places
from recordsmith.examining.statistics.sketches import Hashes, begins_with_zeros, count_sorted, find

KEPT_HASHES = 1 << 21
"""So many contents are known exactly: 32 bytes for each."""

SHOWN = 10
_PENDING = 1 << 18
_MOST_SPLITS = 16


@dataclass(frozen=True)
class SharedContent:
    """What two splits have in common.

    contents: how many different ones; records: how many there are of them in both together.
    places: the first in one and in the other, of some of them.
    """

    splits: tuple[str, str]
    contents: int
    records: int
    places: tuple[tuple[Place, Place], ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {
            "splits": list(self.splits),
            "contents": self.contents,
            "records": self.records,
            "places": [[place.to_json() for place in pair] for pair in self.places],
        }


@dataclass(frozen=True)
class DuplicateStatistics:
    """What is there more than once.

    feature: whose values were compared, None: whole records.
    count: how many were compared.
    distinct: how many differ.
    within: for each split, how many are there that came before in it.
    places: the first and the last of some that come twice in a split.
    shared: what pairs of splits have in common; those that have nothing are left out.
    sampled: 1: all figures are exact; n: they are estimates from one content in n.
    """

    feature: str | None
    count: int
    distinct: int
    within: dict[str, int]
    places: tuple[tuple[Place, Place], ...]
    shared: tuple[SharedContent, ...]
    sampled: int

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {
            "feature": self.feature,
            "count": self.count,
            "distinct": self.distinct,
            "within": self.within,
            "places": [[place.to_json() for place in pair] for pair in self.places],
            "shared": [shared.to_json() for shared in self.shared],
            "sampled": self.sampled,
        }


class _Seen:
    """The contents of one split: hashes in order, with how many, the first and the last place."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.counts, self.first, self.last = (np.empty(0, np.int64) for _ in range(3))
        self.pending: list[tuple[Hashes, Int64Array]] = []

    def settle(self, bits: int) -> None:
        """Take in what is pending."""
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
        """Let go of hashes that are not in the sample."""
        chosen = begins_with_zeros(self.hashes, bits)
        self.hashes, self.counts = self.hashes[chosen], self.counts[chosen]
        self.first, self.last = self.first[chosen], self.last[chosen]


class DuplicateSearch:
    """Collects hashes of contents. May be used from several threads."""

    def __init__(self, feature: str | None) -> None:
        self.feature = feature
        self._splits: dict[str, _Seen] = {}
        self._bits = 0
        self._count = 0
        self._pending_count = 0
        self._lock = threading.Lock()

    def add(self, split: str, hashes: Hashes, places: Int64Array) -> None:
        """Add contents of a split by their hashes, with a number for where each is."""
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

    def finish(self, places: Places) -> DuplicateStatistics:
        """What is there more than once."""
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
        return DuplicateStatistics(
            self.feature,
            self._count,
            len(count_sorted(np.sort(np.concatenate(every)))[0]) * scale if every else 0,
            {split: int((seen.counts - 1).sum()) * scale for split, seen in splits.items()},
            tuple((places(a), places(b)) for a, b in sorted(pairs)[:SHOWN]),
            tuple(shared),
            scale,
        )


def _first_pairs(first: Int64Array, second: Int64Array) -> list[tuple[int, int]]:
    """Some pairs of places, those that come first."""
    chosen = np.argsort(first, kind="stable")[:SHOWN]
    return list(zip(first[chosen].tolist(), second[chosen].tolist(), strict=True))


def _shared(one: _Seen, other: _Seen) -> tuple[Any, Any]:
    """Where the contents that two splits share stand in each."""
    _, mine, theirs = np.intersect1d(
        one.hashes, other.hashes, assume_unique=True, return_indices=True
    )
    return mine, theirs
