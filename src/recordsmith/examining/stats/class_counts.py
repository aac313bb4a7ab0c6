"""Counts the classes of label features in each split, and which texts the labels have.

A feature is a label if its key is a conventional one, or ends in a word such as label or class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.stats.feature_blocks import FeatureBlock, Values
from recordsmith.example import BytesArray
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, OBJECT_LABEL, OBJECT_TEXT
from recordsmith.serialization import to_json

NUMBERED_KEYS = (CLASS_LABEL, OBJECT_LABEL)
"""Features whose labels are the classes in `labels.txt`."""

TEXT_OF_LABEL = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}

MAX_CLASSES = 100_000
"""With more different values, a feature is not a label, and pairs of label and text are none."""

MAX_TEXT_BYTES = 256
"""Longer texts are not class names."""

_KEYS = frozenset((*NUMBERED_KEYS, CLASS_TEXT, OBJECT_TEXT))
_WORDS = re.compile(
    "labels?|class|classes|category|categories|target|(class|category|label)_id|class_(label|name)"
)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Label: TypeAlias = int | str


def is_label(key: str) -> bool:
    """Return whether a feature is a label according to its key."""
    word = key.rpartition("/")[2].lower()
    return key in _KEYS or _WORDS.fullmatch(word) is not None


@dataclass(frozen=True)
class ClassCount:
    """The count of one class.

    label: a number or a text.
    name: the name of a number in `labels.txt`; None if it has no name.
    """

    label: Label
    name: str | None
    count: int

    def __str__(self) -> str:
        return str(self.label) if self.name is None else f"{self.label} {self.name}"


@dataclass(frozen=True)
class ClassStats:
    """The classes of one feature. All counts are exact.

    splits: the classes of each split, most frequent first.
    is_numbered: whether the labels are numbers.
    """

    splits: dict[str, tuple[ClassCount, ...]]
    is_numbered: bool

    def by_name(self) -> list[tuple[str, dict[str, int]]]:
        """Return the counts of each class by split, most frequent class first."""
        totals: dict[str, dict[str, int]] = {}
        for split, counts in self.splits.items():
            for count in counts:
                totals.setdefault(str(count), {})[split] = count.count
        return sorted(totals.items(), key=lambda item: (-sum(item[1].values()), item[0]))

    def imbalance(self, split: str) -> float | None:
        """Return the count of the most frequent class divided by that of the rarest one."""
        counts = self.splits[split]
        return counts[0].count / counts[-1].count if counts else None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict."""
        return {
            "splits": {
                split: {"imbalance": self.imbalance(split), "classes": to_json(counts)}
                for split, counts in self.splits.items()
            }
        }


class LabelCounter:
    """Counts labels, or pairs of label and text. `counts` is None if these are not classes."""

    def __init__(self) -> None:
        self.counts: Counter[Any] | None = Counter()

    def add_labels(self, values: Values) -> None:
        """Add numbers or texts."""
        if self.counts is None:
            return
        keys = values.hashes() if isinstance(values, BytesArray) else values
        self._add(_firsts(keys), lambda first: _labels(values[first]))

    def add_pairs(self, labels: FeatureBlock, texts: FeatureBlock) -> None:
        """Add some records; records with different numbers of texts and labels are ignored."""
        numbers, names = labels.values.get("int64"), texts.values.get("bytes")
        if self.counts is None or numbers is None or not isinstance(names, BytesArray):
            return
        places, name_places = _shared_places(labels.rows["int64"], texts.rows["bytes"])
        numbers, names = numbers[places], names[name_places]
        keys = names.hashes() ^ (numbers.astype(np.uint64) * _SPREAD)
        pairs = _firsts(keys)
        self._add(
            pairs, lambda first: zip(_labels(numbers[first]), _labels(names[first]), strict=True)
        )

    def _add(self, firsts: tuple[Int64Array, Int64Array], labels_at: Any) -> None:
        first, counts = firsts
        if self.counts is None or len(first) > MAX_CLASSES:
            self.counts = None
            return
        try:
            labels = list(labels_at(first))
        except ValueError:  # not a class name
            self.counts = None
            return
        self._join(dict(zip(labels, counts.tolist(), strict=True)))

    def _join(self, counts: Mapping[Any, int]) -> None:
        assert self.counts is not None
        self.counts.update(counts)
        if len(self.counts) > MAX_CLASSES:
            self.counts = None

    def merge(self, other: LabelCounter) -> None:
        """Add what another counter counted."""
        if other.counts is None or self.counts is None:
            self.counts = None
        else:
            self._join(other.counts)


def _firsts(keys: Any) -> tuple[Int64Array, Int64Array]:
    """Return where each key is first, and how often it is there."""
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return first, counts


def _labels(values: Any) -> Iterable[Label]:
    """Return numbers or texts; raise ValueError if a text is not a class name."""
    if not isinstance(values, BytesArray):
        return values.tolist()  # type: ignore[no-any-return]
    if values.lengths.max(initial=0) > MAX_TEXT_BYTES:
        raise ValueError
    return [str(view, "utf-8") for view in values.views()]


def _shared_places(rows: Int64Array, other_rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Find the values of two features that belong together, by the rows they are in."""
    if np.array_equal(rows, other_rows):
        every = np.arange(len(rows))
        return every, every
    row_count = 1 + max(rows.max(initial=0), other_rows.max(initial=0))
    is_same = np.bincount(rows, minlength=row_count) == np.bincount(other_rows, minlength=row_count)
    return np.flatnonzero(is_same[rows]), np.flatnonzero(is_same[other_rows])


def class_stats(
    splits: Mapping[str, LabelCounter], class_names: ClassNames | None
) -> ClassStats | None:
    """Return the classes of a feature by split; None if it does not hold labels."""
    counted = {split: counter.counts for split, counter in splits.items()}
    labels = {type(label) for counts in counted.values() if counts for label in counts}
    if len(labels) != 1 or None in counted.values():
        return None
    return ClassStats(
        {
            split: tuple(
                ClassCount(label, name_of(label, class_names), count)
                for label, count in sorted((counts or {}).items(), key=lambda n: (-n[1], n[0]))
            )
            for split, counts in counted.items()
        },
        is_numbered=labels == {int},
    )


def name_of(label: Label, class_names: ClassNames | None) -> str | None:
    """Return the name of a label in `labels.txt`; None if it has no name."""
    if class_names is None or isinstance(label, str) or not 0 <= label < len(class_names):
        return None
    return class_names[label]
