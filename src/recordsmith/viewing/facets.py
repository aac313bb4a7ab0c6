"""Facets: how often each value of a feature occurs among the records of a view, or a histogram.

They are counted from columns in a thread, and grow while they are read. Values are exact; a
histogram is that of a sample of the numbers, as in `recordsmith stats`.
"""

from __future__ import annotations

import heapq
import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset.record_document import key_text
from recordsmith.errors import DataError, FileAccessError, OptionError, RecordsmithError
from recordsmith.examining.stats.class_counts import LabelCounter
from recordsmith.examining.stats.sampling import ValueSample, hash_positions
from recordsmith.example import BytesArray, FeatureSchema, RaggedArray, keys
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.selections import ViewKey, decode_ragged, matching_blocks
from recordsmith.viewing.tiles import exact
from recordsmith.where import parse_where

_MAX_KEPT = 8
_MAX_FACETS = 12
_MAX_LENGTH = 64  # values of a feature in a record; longer ones are curves
_SHOWN_VALUES = 60
_MAX_AS_VALUES = 40  # different integers; more are a histogram, unless they are classes
_BINS = 20
_LABEL_WORDS = ("label", "class", "category", "split", "type")
_SKIPPED = frozenset(
    {*keys.BOX, keys.FILENAME, keys.SOURCE_ID, keys.OBJECT_AREA, "image/key/sha256"}
)


class FacetCounts:
    """The facets of some records, by split and condition. Thread-safe."""

    def __init__(self, records: ViewedRecords, label_key: str | None) -> None:
        self._records = records
        self._named = {label_key, keys.OBJECT_LABEL}
        self._kept: OrderedDict[ViewKey, _Counting] = OrderedDict()
        self._lock = threading.Lock()

    def describe(self, key: ViewKey) -> dict[str, Any]:
        """Return the facets of a view so far; its first call begins to count.

        Raises:
            OptionError: the condition or the split is invalid.
        """
        key = key._replace(sort="")
        with self._lock:
            counting = self._kept.get(key)
            if counting is None:
                counting = _Counting(self._records, key)
                self._kept[key] = counting
                if len(self._kept) > _MAX_KEPT:
                    self._kept.popitem(last=False)[1].stopping.set()
            self._kept.move_to_end(key)
            whole = self._kept.get(ViewKey(key.split))
        counting.done.wait(0.2)
        edges = {} if whole is None or whole is counting else whole.edges()
        return counting.describe(edges, self.text)

    def close(self) -> None:
        """Stop counting."""
        with self._lock:
            for counting in self._kept.values():
                counting.stopping.set()

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


class _Counting:
    """Counts the facets of one view in a thread."""

    def __init__(self, records: ViewedRecords, key: ViewKey) -> None:
        self._records = records
        self._key = key
        self._where = parse_where(key.where) if key.where else None
        records.positions(key.split)  # raises if the split does not exist
        schema = records.schema
        features = dict(schema.features or schema.sections.get("context", {}))
        self._features = {name: _Facet() for name in facet_keys(features)}
        self._scanned = self._counted = 0
        self._error: RecordsmithError | None = None
        self._lock = threading.Lock()
        self.stopping, self.done = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="facets", daemon=True).start()

    def _run(self) -> None:
        try:
            for scanned, own, chosen in matching_blocks(
                self._records, self._key.split, self._where
            ):
                if self.stopping.is_set() or not self._features:
                    break
                columns = decode_ragged(chosen, list(self._features)) if len(own) else {}
                with self._lock:
                    for key, facet in self._features.items():
                        facet.add(columns.get(key), own)
                    self._scanned += scanned
                    self._counted += len(own)
        except (DataError, FileAccessError, OptionError) as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - shown on the page
            self._error = RecordsmithError(f"counting failed: {type(error).__name__}: {error}")
        self.done.set()

    def edges(self) -> dict[str, Any]:
        with self._lock:
            return {key: facet.edges() for key, facet in self._features.items()}

    def describe(self, edges: dict[str, Any], text: Any) -> dict[str, Any]:
        with self._lock:
            facets = [
                {"key": key_text(key), **described}
                for key, facet in self._features.items()
                if (described := facet.describe(key, edges.get(key), text)) is not None
            ]
        return {
            "facets": facets,
            "scanned": self._scanned,
            "total": len(self._records.positions(self._key.split)),
            "is_complete": self.done.is_set(),
            "error": None if self._error is None else self._error.to_json(),
        }


class _Facet:
    """The values of one feature."""

    def __init__(self) -> None:
        self._labels = LabelCounter()
        self._sample = ValueSample()
        self._finite = self._missing = 0
        self._range: tuple[float, float] | None = None
        self._is_float = self._is_number = False

    def add(self, column: RaggedArray | None, positions: Int64Array) -> None:
        """Add the values of records; None if none has any."""
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
        owners = positions if len(values) == len(positions) else np.repeat(positions, lengths)
        hashes = hash_positions(owners)
        if values.dtype.kind == "f":
            is_finite = np.isfinite(values)
            if not is_finite.all():
                values, hashes = values[is_finite], hashes[is_finite]
        elif self._labels.counts is not None:
            self._labels.add(_once_each(values, values, lengths))
        if len(values):
            self._finite += len(values)
            low, high = values.min().item(), values.max().item()
            known = self._range or (low, high)
            self._range = min(low, known[0]), max(high, known[1])
            chosen = self._sample.choose(hashes)
            self._sample.add(hashes[chosen], values[chosen])

    def edges(self) -> Any:
        if self._range is None:
            return None
        low, high = self._range
        if not self._is_float and high - low < _BINS:
            return np.arange(low, high + 2)
        return np.linspace(low, high, _BINS + 1)

    def describe(self, key: str, edges: Any, text: Any) -> dict[str, Any] | None:
        """Return the facet for the page; None if its values are too many, or there are none."""
        counts = None if self._is_float else self._labels.counts
        is_class = any(word in key.lower() for word in _LABEL_WORDS)
        if counts and self._is_number and len(counts) > _MAX_AS_VALUES and not is_class:
            counts = None
        if counts:
            if not self._is_number and len(counts) > max(20, 0.9 * counts.total()):
                return None  # names, each of which occurs once
            values = [
                {"value": exact(value), "text": text(key, value), "count": count}
                for value, count in heapq.nsmallest(
                    _SHOWN_VALUES, counts.items(), lambda item: (-item[1], item[0])
                )
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
        found = np.histogram(sample.astype(np.float64), edges)[0] * (self._finite / len(sample))
        return {
            "kind": "histogram",
            "edges": list(map(float, edges)),
            "counts": np.rint(found).astype(np.int64).tolist(),
            "sampled": len(sample) if len(sample) < self._finite else None,
            "missing": self._missing,
        }


def _once_each(values: Any, codes: Any, lengths: Int64Array) -> Any:
    """Return each value of a record once, so that the counts are those of records."""
    if lengths.max(initial=0) <= 1:
        return values
    owners = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((codes, owners))
    owners, sorted_codes = owners[order], codes[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (owners[1:] != owners[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    return values[order[is_first]]
