"""Statistics of byte strings: sizes, content, distinct values and the most frequent ones.

Values are compared by 64-bit hashes; the first bytes of frequent values are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recordsmith.examining.stats.image_stats import ImageStats, ImageSurvey
from recordsmith.examining.stats.number_stats import (
    EXACT_DISTINCT,
    FREQUENT_COUNTERS,
    TOP_VALUES,
    NumberStats,
    NumberSurvey,
)
from recordsmith.examining.stats.places import Places
from recordsmith.examining.stats.sketches import (
    DistinctHashes,
    FrequentKeys,
    Hashes,
    find,
)
from recordsmith.examining.stats.survey import Collector
from recordsmith.example import BytesArray
from recordsmith.summaries import Report

PREVIEW_BYTES = 128
"""How many bytes of a frequent value are kept."""


@dataclass(frozen=True)
class FrequentBytes:
    """A frequent value.

    begins: its first PREVIEW_BYTES bytes.
    size: its size in bytes.
    count: how often it occurs.
    """

    begins: bytes
    size: int
    count: int

    @property
    def text(self) -> str | None:
        """The value as text; None if it is shortened or not UTF-8."""
        if len(self.begins) < self.size:
            return None
        try:
            return self.begins.decode()
        except UnicodeDecodeError:
            return None

    def to_json(self) -> dict[str, Any]:
        """Return count and value, or size_bytes and begins (hexadecimal) if it is not text."""
        text = self.text
        if text is not None:
            return {"value": text, "count": self.count}
        begins = self.begins[:16].hex()
        return {"size_bytes": self.size, "begins": begins, "count": self.count}


@dataclass(frozen=True, repr=False)
class BytesStats(Report):
    """Statistics of byte strings.

    sizes: sizes of the strings in bytes.
    size_bytes: total size.
    raw, text, image_count: number of raw bytes, texts (UTF-8 without control characters) and
        images, detected from their first bytes.
    distinct, distinct_error, top, top_error: as in NumberStats.
    images: statistics of the images; None without images.
    """

    sizes: NumberStats
    size_bytes: int
    raw: int
    text: int
    image_count: int
    distinct: int
    distinct_error: float
    top: tuple[FrequentBytes, ...]
    top_error: int
    images: ImageStats | None = None

    @property
    def count(self) -> int:
        """The number of strings."""
        return self.sizes.count

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return {"count": self.count} | super().to_json()


class FrequentValues(FrequentKeys):
    """Finds the most frequent byte strings by their hashes, with their first bytes."""

    def __init__(self) -> None:
        super().__init__(FREQUENT_COUNTERS, np.uint64)
        self.previews: dict[int, tuple[bytes, int]] = {}

    def add_values(self, values: BytesArray, hashes: Hashes) -> Hashes:
        """Add values; return their distinct hashes in order."""
        keys, places, counts = np.unique(hashes, return_index=True, return_counts=True)
        before = self.keys
        self.add(keys, counts)
        if self.keys is not before:
            self._drop_previews()
            _, is_kept = find(self.keys, keys)
            for place in places[is_kept].tolist():
                key = int(hashes[place])
                if key not in self.previews:
                    value = next(values[place : place + 1].views())
                    self.previews[key] = bytes(value[:PREVIEW_BYTES]), len(value)
        return keys

    def merge(self, other: FrequentKeys) -> None:
        """Add everything that another survey collected."""
        assert isinstance(other, FrequentValues)
        super().merge(other)
        self.previews = other.previews | self.previews
        self._drop_previews()

    def _drop_previews(self) -> None:
        if len(self.previews) > len(self.keys):
            stay = set(self.keys.tolist())
            self.previews = {key: self.previews[key] for key in stay & self.previews.keys()}

    def top_values(self, most: int) -> tuple[FrequentBytes, ...]:
        """Return the most frequent values."""
        keys, counts = self.top(most)
        found = zip(keys.tolist(), counts.tolist(), strict=True)
        values = [FrequentBytes(*self.previews[key], count) for key, count in found]
        return tuple(sorted(values, key=lambda value: (-value.count, value.begins)))


class BytesSurvey(Collector):
    """Collects statistics of byte strings."""

    def __init__(self) -> None:
        self.sizes = NumberSurvey()
        self.frequent = FrequentValues()
        self._distinct = DistinctHashes(EXACT_DISTINCT)
        self._size_bytes = 0
        self._contents = np.zeros(3, np.int64)
        self.images: ImageSurvey | None = None

    def add(self, values: BytesArray, contents: list[int]) -> Hashes:
        """Add values; `contents` counts raw bytes, texts and images. Return their hashes."""
        lengths = values.lengths
        self.sizes.add(lengths)
        self._size_bytes += int(lengths.sum())
        self._contents += contents
        hashes = values.hashes()
        if len(hashes):
            self._distinct.add(self.frequent.add_values(values, hashes))
        return hashes

    def finish(self, places: Places) -> BytesStats:
        """Return the statistics of everything added so far."""
        raw, text, image_count = self._contents.tolist()
        return BytesStats(
            sizes=self.sizes.finish(),
            size_bytes=self._size_bytes,
            raw=raw,
            text=text,
            image_count=image_count,
            distinct=self._distinct.count,
            distinct_error=self._distinct.error,
            top=self.frequent.top_values(TOP_VALUES),
            top_error=self.frequent.error,
            images=None if self.images is None else self.images.finish(places),
        )
