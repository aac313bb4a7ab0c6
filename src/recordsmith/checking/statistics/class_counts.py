"""Counts the classes of label features in each split.

A feature is a label if its key is a conventional one, or ends in a word such as label or class.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.statistics.feature_blocks import Values
from recordsmith.checking.statistics.table_cells import CLASS_ROWS, short
from recordsmith.dataset import ClassNames
from recordsmith.format.example import BytesArray
from recordsmith.format.example.keys import CLASS_LABEL, CLASS_TEXT, OBJECT_LABEL, OBJECT_TEXT
from recordsmith.support.reports import Bar, Cell, ReportTable
from recordsmith.support.serialization import to_json
from recordsmith.support.words import count as format_count

NUMBERED_KEYS = (CLASS_LABEL, OBJECT_LABEL)
"""Features whose labels are the classes in `labels.txt`."""

TEXT_OF_LABEL = {CLASS_LABEL: CLASS_TEXT, OBJECT_LABEL: OBJECT_TEXT}

MAX_CLASSES = 100_000
"""With more different values, a feature is not a label."""

MAX_TEXT_BYTES = 256
"""Longer texts are not class names."""

_KEYS = frozenset((*NUMBERED_KEYS, CLASS_TEXT, OBJECT_TEXT))
_WORDS = re.compile(
    "labels?|class|classes|category|categories|target|(class|category|label)_id|class_(label|name)"
)

Label: TypeAlias = int | str


def is_label(key: str) -> bool:
    word = key.rpartition("/")[2].lower()
    return key in _KEYS or _WORDS.fullmatch(word) is not None


@dataclass(frozen=True)
class NamedLabel:
    """A class.

    label: a number or a text.
    name: the name of a number in `labels.txt`; None if it has no name.
    """

    label: Label
    name: str | None

    def __str__(self) -> str:
        return str(self.label) if self.name is None else f"{self.label} {self.name}"


@dataclass(frozen=True)
class ClassCount(NamedLabel):
    """The count of one class."""

    count: int


@dataclass(frozen=True)
class ClassStats:
    """The classes of one feature. All counts are exact.

    splits: the classes of each split, most frequent first.
    is_numbered: whether the labels are numbers.
    """

    splits: dict[str, tuple[ClassCount, ...]]
    is_numbered: bool

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the counts of each split by the number and name of the class."""
        return {split: {str(n): n.count for n in labels} for split, labels in self.splits.items()}

    def by_name(self) -> list[tuple[str, dict[str, int]]]:
        """Return the counts of each class by split, most frequent class first."""
        totals: dict[str, dict[str, int]] = {}
        for split, counts in self.splits.items():
            for count in counts:
                totals.setdefault(str(count), {})[split] = count.count
        return sorted(totals.items(), key=lambda item: (-sum(item[1].values()), item[0]))

    def by_split(self) -> dict[str, dict[Label, int]]:
        """Return the counts of each split by the name of the class, or its label."""
        return {
            split: {label.name or label.label: label.count for label in labels}
            for split, labels in self.splits.items()
        }

    def table(self, key: str) -> ReportTable:
        splits = list(self.splits)
        ordered = [(name, counts, sum(counts.values())) for name, counts in self.by_name()]
        rows: list[tuple[Cell, ...]] = [
            (name, *(f"{counts.get(split, 0):,}" for split in splits), Bar(total / ordered[0][2]))
            for name, counts, total in ordered
        ]
        title = f"{format_count(len(ordered), 'class', 'classes')} in {short(key)}"
        return ReportTable("", (title, *splits, ""), rows, splits, ("",), terminal_rows=CLASS_ROWS)

    def imbalance(self, split: str) -> float | None:
        """Return the count of the most frequent class divided by that of the rarest one."""
        counts = self.splits[split]
        return counts[0].count / counts[-1].count if counts else None

    def to_json(self) -> dict[str, Any]:
        return {
            "splits": {
                split: {"imbalance": self.imbalance(split), "classes": to_json(counts)}
                for split, counts in self.splits.items()
            }
        }


class LabelCounter:
    """Counts labels. `counts` is None if the values are not classes."""

    def __init__(self) -> None:
        self.counts: Counter[Any] | None = Counter()

    def add(self, values: Values) -> None:
        if self.counts is None:
            return
        keys: Any = values.hashes() if isinstance(values, BytesArray) else values
        distinct, counts = np.unique(keys, return_counts=True)
        labels: list[Label] | None = None
        if len(distinct) <= MAX_CLASSES:
            labels = _labels(values, keys, distinct)
        if labels is None:
            self.counts = None
        else:
            self._join(dict(zip(labels, counts.tolist(), strict=True)))

    def _join(self, counts: Mapping[Any, int]) -> None:
        assert self.counts is not None
        self.counts.update(counts)
        if len(self.counts) > MAX_CLASSES:
            self.counts = None

    def merge(self, other: LabelCounter) -> None:
        if other.counts is None or self.counts is None:
            self.counts = None
        else:
            self._join(other.counts)


def _labels(values: Values, keys: Any, distinct: npt.NDArray[Any]) -> list[Label] | None:
    """Return the numbers or texts of the distinct keys; None if a text is not a class name."""
    if not isinstance(values, BytesArray):
        return distinct.tolist()  # type: ignore[no-any-return]
    places = np.empty(len(distinct), np.int64)
    places[np.searchsorted(distinct, keys)] = np.arange(len(keys))  # one of each
    texts = values[places]
    if texts.lengths.max(initial=0) > MAX_TEXT_BYTES:
        return None
    try:
        return [str(view, "utf-8") for view in texts.views()]
    except ValueError:
        return None


def class_stats(
    splits: Mapping[str, LabelCounter], class_names: ClassNames | None
) -> ClassStats | None:
    """Return the classes of a feature by split; None if it does not hold labels."""
    counted = {split: counter.counts for split, counter in splits.items()}
    labels = {type(label) for counts in counted.values() if counts for label in counts}
    if len(labels) != 1 or None in counted.values():
        return None
    if labels == {float} and not all(
        n.is_integer() for counts in counted.values() for n in counts or ()
    ):
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
