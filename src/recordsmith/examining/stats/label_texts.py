"""Counts pairs of labels and texts, to find labels whose text names another class.

Good data has as many pairs as classes, bad data a few more. If there are very many pairs, the texts
are not class names, and nothing is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.examining.stats.feature_blocks import FeatureBlock
from recordsmith.example import BytesArray
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, OBJECT_LABEL, OBJECT_TEXT

TEXT_OF_LABEL = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}

MOST_PAIRS = 20_000
LONGEST_TEXT = 256
"""In bytes; 20,000 pairs take 10 MB."""

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class LabelTexts:
    """Counts the pairs of a label feature and a text feature."""

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[int, bytes]] = {}  # by a hash of both
        self._counts: Counter[int] = Counter()
        self._is_full = False

    def add(self, labels: FeatureBlock, texts: FeatureBlock) -> None:
        """Add some records; records with different numbers of texts and labels are ignored."""
        numbers, names = labels.values.get("int64"), texts.values.get("bytes")
        if self._is_full or numbers is None or not isinstance(names, BytesArray):
            return
        places, names_at = _shared_places(labels.rows["int64"], texts.rows["bytes"])
        values: Any = numbers[places]
        keys = names.hashes()[names_at] ^ (values.astype(np.uint64) * _SPREAD)
        found, first, counts = np.unique(keys, return_index=True, return_counts=True)
        for key, at, count in zip(found.tolist(), first.tolist(), counts.tolist(), strict=True):
            if key not in self._pairs:
                place = int(names_at[at])
                text = bytes(next(iter(names[place : place + 1].views())))
                if not self._add_pair(key, (int(values[at]), text)):
                    return
            self._counts[key] += count

    def merge(self, other: LabelTexts) -> None:
        """Add everything that another survey collected."""
        if other._is_full:
            self._give_up()
        if self._is_full:
            return
        for key, pair in other._pairs.items():
            if key not in self._pairs and not self._add_pair(key, pair):
                return
        self._counts += other._counts

    def _add_pair(self, key: int, pair: tuple[int, bytes]) -> bool:
        if len(self._pairs) >= MOST_PAIRS or len(pair[1]) > LONGEST_TEXT:
            self._give_up()
            return False
        self._pairs[key] = pair
        return True

    def _give_up(self) -> None:
        self._is_full = True
        self._pairs.clear()
        self._counts.clear()

    def finish(self) -> Mapping[tuple[int, str], int]:
        """Return how often each pair occurs, sorted by label; empty if there are too many pairs."""
        pairs = {
            (label, text.decode("utf-8", "backslashreplace")): self._counts[key]
            for key, (label, text) in self._pairs.items()
        }
        return dict(sorted(pairs.items()))


def _shared_places(rows: Int64Array, other_rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Find the values of two features that belong together, by the rows they are in."""
    if np.array_equal(rows, other_rows):
        every = np.arange(len(rows))
        return every, every
    row_count = 1 + max(rows.max(initial=0), other_rows.max(initial=0))
    is_same = np.bincount(rows, minlength=row_count) == np.bincount(other_rows, minlength=row_count)
    return np.flatnonzero(is_same[rows]), np.flatnonzero(is_same[other_rows])
