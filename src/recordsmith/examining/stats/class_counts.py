"""Counts the classes of label features in each split.

A feature is a label if its key is a conventional one, or ends in a word such as label or class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.stats.bytes_stats import FrequentValues
from recordsmith.examining.stats.feature_stats import FeatureStatsSurvey
from recordsmith.examining.stats.number_stats import EXACT_DISTINCT, NumberSurvey
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT, OBJECT_LABEL, OBJECT_TEXT
from recordsmith.serialization import to_json

NUMBERED_KEYS = (CLASS_LABEL, OBJECT_LABEL)
"""Features whose labels are the classes in `labels.txt`."""

_KEYS = frozenset((*NUMBERED_KEYS, CLASS_TEXT, OBJECT_TEXT))
_WORDS = re.compile(
    "labels?|class|classes|category|categories|target|(class|category|label)_id|class_(label|name)"
)


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

    label: int | str
    name: str | None
    count: int

    def __str__(self) -> str:
        return str(self.label) if self.name is None else f"{self.label} {self.name}"


@dataclass(frozen=True)
class ClassStats:
    """The classes of one feature.

    splits: the classes of each split, most frequent first.
    is_numbered: whether the labels are numbers.
    error: by how much a count may be too low; 0 if all counts are exact and complete.
    """

    splits: dict[str, tuple[ClassCount, ...]]
    is_numbered: bool
    error: int

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
            "error": self.error,
            "splits": {
                split: {
                    "imbalance": self.imbalance(split),
                    "classes": to_json(counts),
                }
                for split, counts in self.splits.items()
            },
        }


class ClassSurvey:
    """Collects the labels of one feature by split."""

    def __init__(self) -> None:
        self._numbers: dict[str, NumberSurvey] = {}
        self._texts: dict[str, FrequentValues] = {}

    def add(self, split: str, feature: FeatureStatsSurvey) -> None:
        """Add the labels of a feature, collected from records of one split."""
        if "int64" in feature.numbers:
            numbers = self._numbers.setdefault(split, NumberSurvey())
            numbers.merge(feature.numbers["int64"])
        if feature.bytes is not None:
            self._texts.setdefault(split, FrequentValues()).merge(feature.bytes.frequent)

    def finish(self, class_names: ClassNames | None) -> ClassStats | None:
        """Return the classes; None if the feature does not hold labels."""
        if self._numbers and not self._texts:
            return self._finish_numbers(class_names)
        if self._texts and not self._numbers:
            return self._finish_texts()
        return None

    def _finish_numbers(self, class_names: ClassNames | None) -> ClassStats:
        splits, error = {}, 0
        for split, numbers in self._numbers.items():
            top, top_error = numbers.top(EXACT_DISTINCT)
            error = max(error, top_error)
            splits[split] = tuple(
                ClassCount(int(label), name_of(int(label), class_names), count)
                for label, count in top
            )
        return ClassStats(splits, is_numbered=True, error=error)

    def _finish_texts(self) -> ClassStats | None:
        splits, error = {}, 0
        for split, texts in self._texts.items():
            error = max(error, texts.error)
            counts = [(value.text, value.count) for value in texts.top_values(EXACT_DISTINCT)]
            if any(text is None for text, _ in counts):  # images, such as masks
                return None
            splits[split] = tuple(ClassCount(text or "", None, count) for text, count in counts)
        return ClassStats(splits, is_numbered=False, error=error)


def name_of(label: int, class_names: ClassNames | None) -> str | None:
    """Return the name of a label in `labels.txt`; None if it has no name."""
    return class_names[label] if class_names and 0 <= label < len(class_names) else None
