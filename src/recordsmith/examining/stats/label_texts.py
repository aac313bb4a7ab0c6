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
        self._counts: Counter[tuple[int, bytes]] | None = Counter()  # None: too many pairs

    def add(self, labels: FeatureBlock, texts: FeatureBlock) -> None:
        """Add some records; records with different numbers of texts and labels are ignored."""
        numbers, names = labels.values.get("int64"), texts.values.get("bytes")
        if self._counts is None or numbers is None or not isinstance(names, BytesArray):
            return
        places, names_at = _shared_places(labels.rows["int64"], texts.rows["bytes"])
        values: Any = numbers[places]
        keys = names.hashes()[names_at] ^ (values.astype(np.uint64) * _SPREAD)
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        found = names[names_at[first]]
        if len(first) > MOST_PAIRS or found.lengths.max(initial=0) > LONGEST_TEXT:
            self._counts = None
            return
        pairs = zip(values[first].tolist(), map(bytes, found.views()), strict=True)
        self._add(dict(zip(pairs, counts.tolist(), strict=True)))

    def merge(self, other: LabelTexts) -> None:
        """Add everything that another survey collected."""
        if other._counts is None or self._counts is None:
            self._counts = None
        else:
            self._add(other._counts)

    def _add(self, counts: Mapping[tuple[int, bytes], int]) -> None:
        assert self._counts is not None
        self._counts.update(counts)
        if len(self._counts) > MOST_PAIRS:
            self._counts = None

    def finish(self) -> Mapping[tuple[int, str], int]:
        """Return how often each pair occurs, sorted by label; empty if there are too many pairs."""
        pairs = {
            (label, text.decode("utf-8", "backslashreplace")): count
            for (label, text), count in (self._counts or {}).items()
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
