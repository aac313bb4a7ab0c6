"""What is unusual about classes and masks; `stats` and `lint` report it in their own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recordsmith.dataset import standard_name

UNBALANCED = 20
"""The largest class is at least this many times as frequent as the smallest."""

_EVALUATION = ("val", "test")

ClassCounts = Mapping[str, Mapping[str, int]]
"""How often each class occurs, by split."""


class Imbalance(NamedTuple):
    """The most and the least frequent class of the training data.

    counts: of all classes.
    """

    most: str
    least: str
    counts: Mapping[str, int]

    @property
    def times(self) -> float:
        """How many times as frequent as the smallest class the largest is."""
        return self.counts[self.most] / self.counts[self.least]


def find_imbalance(counts: ClassCounts) -> Imbalance | None:
    """Return the imbalance of the training data if it is large.

    Small splits for evaluation are unbalanced by chance, and models do not learn from them; they
    count only if there are no others.
    """
    training = [split for split in counts if standard_name(split) not in _EVALUATION]
    totals: Counter[str] = Counter()
    for split in training if any(counts[split] for split in training) else counts:
        totals.update({name: count for name, count in counts[split].items() if count})
    if len(totals) < 2:
        return None
    most, least = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
    imbalance = Imbalance(most, least, totals)
    return imbalance if imbalance.times >= UNBALANCED else None


def find_missing_classes(counts: ClassCounts) -> dict[str, list[str]]:
    """Return the classes of other splits that each split lacks.

    A split without any classes, such as an unlabelled test set, lacks none.
    """
    known = dict.fromkeys(name for of_split in counts.values() for name in of_split)
    known = {name: None for name in known if any(counts[split].get(name) for split in counts)}
    missing = {
        split: [name for name in known if not of_split.get(name)]
        for split, of_split in counts.items()
        if any(of_split.values())
    }
    return {split: names for split, names in missing.items() if names}


def is_one_hot(length: float, low: float | None, high: float | None) -> bool:
    """Return whether a list of whole numbers marks classes by ones among zeros."""
    return length > 1 and low == 0 and high == 1


def are_drawn_for_viewing(mask_values: Iterable[object]) -> bool:
    """Return whether masks hold 255 and at most 0 besides, instead of class numbers."""
    return set(mask_values) in ({255}, {0, 255})
