"""Facets: how often each value of a feature occurs among the records of a view, or a histogram.

They are counted from columns in a thread, and grow while they are read. Values are exact; a
histogram is that of a sample of the numbers, as in `recordsmith stats`.
"""

from __future__ import annotations

import heapq
import json
import threading
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np

from recordsmith.checking import Hashes, LabelCounter, ValueSample, hash_positions
from recordsmith.dataset import key_text
from recordsmith.format.example import BytesArray, FeatureSchema, RaggedArray, keys
from recordsmith.format.example.class_lists import CLASS_LISTS, positive_classes
from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import CorruptDataError
from recordsmith.viewing.lru_cache import LruCache
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.scans import Scan, ViewKey

_MAX_KEPT = 8
_WAIT_SECONDS = 0.2
_MAX_FACETS = 12
_MAX_LENGTH = 64  # values of a feature in a record; longer ones are curves
_SHOWN_VALUES = 60
_MAX_AS_VALUES = 40  # different integers; more are a histogram, unless they are classes
_BINS = 20
_LABEL_WORDS = ("label", "class", "category", "split", "type")
_SKIPPED = {
    *(*keys.BOX, keys.KEYPOINT_X, keys.KEYPOINT_Y, keys.CORNER_X, keys.CORNER_Y, keys.FILENAME),
    *(keys.SOURCE_ID, keys.OBJECT_ID, keys.OBJECT_AREA, "image/key/sha256"),
}


class FacetCounts:
    """The facets of some records, by split and condition. Thread-safe."""

    def __init__(self, records: ViewedRecords, label_key: str | None) -> None:
        self._records = records
        self._named = {label_key, keys.OBJECT_LABEL}
        self._kept: LruCache[ViewKey, _Counting] = LruCache(_MAX_KEPT, drop=_Counting.stop)

    def describe(self, key: ViewKey) -> dict[str, Any]:
        """Return the facets of a view so far; its first call begins to count.

        Raises:
            OptionError: the condition or the split is invalid.
        """
        key = key._replace(sort="")
        counting = self._kept.get_or_make(key, lambda: _Counting(self._records, key))
        whole = self._kept.get(ViewKey(key.split))
        counting.wait(lambda: False, _WAIT_SECONDS)
        edges = {} if whole is None or whole is counting else whole.edges()
        return counting.describe(edges, self.text)

    def close(self) -> None:
        self._kept.clear()

    def text(self, key: str, value: Any) -> str:
        """Return a value as people read it: the name of a class, or the number."""
        if value is None:
            return "missing"
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        names = self._records.view.class_names
        if key in self._named and names is not None and isinstance(value, int):
            name = names[value] if 0 <= value < len(names) else None
            return str(value) if name is None else name
        return str(value)


def facet_keys(features: dict[str, FeatureSchema]) -> list[str]:
    """Return the features that are worth counting: classes first."""
    chosen = [
        key
        for key, feature in features.items()
        if key not in _SKIPPED
        and (feature.kind in ("int64", "float") or feature.content == "text")
        and 0 < feature.max_length <= _MAX_LENGTH
    ]
    chosen.sort(key=lambda key: (not any(word in key.lower() for word in _LABEL_WORDS), key))
    return chosen[:_MAX_FACETS]


class _Counting(Scan):
    def __init__(self, records: ViewedRecords, key: ViewKey) -> None:
        super().__init__(records, key)
        schema = records.schema
        features = dict(schema.features or schema.sections.get("context", {}))
        self._facets = {name: _Facet(name) for name in facet_keys(features)}
        self._counted: Collection[str] = ()  # the features of the pass
        self._lock = threading.Lock()
        self.begin()

    def scan(self) -> None:
        for counted in self._passes():
            with self._lock:
                self.scanned, self._counted = 0, counted
            for positions, columns in self.columns(counted):
                hashes = hash_positions(positions)
                with self._lock:
                    for key in counted:
                        column = columns.get(key)
                        if column is not None and key in CLASS_LISTS:
                            shares = columns.get(keys.CLASS_CONFIDENCE)
                            with suppress(CorruptDataError):  # count all of a damaged block
                                column = positive_classes(column, shares)
                        self._facets[key].add(column, positions, hashes)
                del columns

    def _passes(self) -> list[list[str]]:
        """Divide the features into those whose values are kept, and those that need the records."""
        filtered = self._where.keys if self._where else ()
        kept = self._records.kept_keys(self._key.split, [*self._facets, *filtered])
        if not kept.issuperset(filtered):
            kept = set()
        if keys.CLASS_CONFIDENCE in self._facets.keys() - kept:
            kept = kept.difference(CLASS_LISTS)  # to be read together
        passes = [key for key in self._facets if key in kept], self._facets.keys() - kept
        return [list(chosen) for chosen in passes if chosen]

    def edges(self) -> dict[str, Any]:
        with self._lock:
            return {key: facet.edges() for key, facet in self._facets.items()}

    def describe(self, edges: dict[str, Any], text: Any) -> dict[str, Any]:
        with self._lock:
            facets = [
                {
                    "key": key_text(key),
                    "is_complete": self.is_complete or key not in self._counted,
                    **described,
                }
                for key, facet in self._facets.items()
                if (described := facet.describe(edges.get(key), text)) is not None
            ]
            scanned = self.scanned
        return {
            "facets": facets,
            "scanned": scanned,
            "total": len(self._records.positions(self._key.split)),
            "is_complete": self.is_complete,
            "error": None if self.error is None else self.error.to_json(),
        }


class _Facet:
    def __init__(self, key: str) -> None:
        self._key = key
        self._is_class = any(word in key.lower() for word in _LABEL_WORDS)
        self._labels = LabelCounter()
        self._sample = ValueSample()
        self._finite = self._missing = 0
        self._range: tuple[float, float] | None = None
        self._is_float = self._is_number = False

    def add(self, column: RaggedArray | None, positions: Int64Array, hashes: Hashes) -> None:
        """Add the values of records; None if none has any. `hashes` are those of the positions."""
        if column is None:
            self._missing += len(positions)
            return
        values, lengths = column.values, column.lengths
        self._missing += int(np.count_nonzero(lengths == 0))
        if not len(values):
            return
        if isinstance(values, BytesArray):
            if self._labels.counts is not None:
                self._labels.add(_once_each(values, values.hashes(), lengths))
            return
        self._is_number = True
        self._is_float |= values.dtype.kind == "f"
        if not (lengths == 1).all():
            hashes = hash_positions(np.repeat(positions, lengths))
        if values.dtype.kind == "f":
            is_finite = np.isfinite(values)
            if not is_finite.all():
                values, hashes = values[is_finite], hashes[is_finite]
        elif self._labels.counts is not None:
            self._labels.add(_once_each(values, values, lengths))
            if not self._is_class and len(self._labels.counts or ()) > _MAX_AS_VALUES:
                self._labels.counts = None
        if len(values):
            self._finite += len(values)
            low, high = values.min().item(), values.max().item()
            known = self._range or (low, high)
            self._range = min(low, known[0]), max(high, known[1])
            chosen = self._sample.choose(hashes)
            self._sample.add(hashes[chosen], values[chosen])

    def edges(self) -> Any:
        """Return the edges of a histogram; None if the values are counted, or there are none."""
        if self._range is None or self._counts():
            return None
        low, high = self._range
        if not self._is_float and high - low < _BINS:
            return np.arange(low, high + 2)
        return np.linspace(low, high, _BINS + 1)

    def _counts(self) -> Counter[Any] | None:
        return None if self._is_float else self._labels.counts

    def describe(self, edges: Any, text: Any) -> dict[str, Any] | None:
        """Return the facet for the page; None if its values are too many, or there are none.

        `edges` are those of a histogram of all records, if there is one.
        """
        counts = self._counts() if edges is None else None
        if counts:
            if not self._is_number and len(counts) > max(20, 0.9 * counts.total()):
                return None  # names, each of which occurs once
            values = [
                {
                    "literal": json.dumps(value, ensure_ascii=False),
                    "text": text(self._key, value),
                    "count": count,
                }
                for value, count in heapq.nsmallest(_SHOWN_VALUES, counts.items(), _rank)
            ]
            return {
                "kind": "values",
                "values": values,
                "distinct": len(counts),
                "missing": self._missing,
            }
        edges = self.edges() if edges is None else edges
        if not self._is_number or edges is None or self._finite == 0:
            return None
        sample = self._sample.values()
        scaled = np.histogram(sample.astype(np.float64), edges)[0] * (self._finite / len(sample))
        return {
            "kind": "histogram",
            "edges": list(map(float, edges)),
            "counts": np.rint(scaled).astype(np.int64).tolist(),
            "sampled": len(sample) if len(sample) < self._finite else None,
            "missing": self._missing,
        }


def _rank(item: tuple[Any, int]) -> tuple[int, bool, Any]:
    """Order values by their counts; numbers before texts."""
    value, count = item
    return -count, isinstance(value, str), value


def _once_each(values: Any, codes: Any, lengths: Int64Array) -> Any:
    """Return each value of a record once, so that the counts are those of records."""
    if lengths.max(initial=0) <= 1:
        return values
    distinct, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
    pairs = np.repeat(np.arange(len(lengths)), lengths) * len(distinct) + numbers
    return values[first[np.unique(pairs) % len(distinct)]]
