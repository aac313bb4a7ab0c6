"""Classes: labels that no training takes, classes that a split lacks, and those that are rare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.statistics.class_counts import NUMBERED_KEYS, ClassStatistics
from recordsmith.examining.statistics.remarks.remark import Remark, have, some
from recordsmith.words import count

_IMBALANCE = 10
_GAPS = 10
_MANY_OUTPUTS = 100
_SEEN_OFTEN = 3  # with fewer of each class, others may be missing by chance


def wrong_classes(
    key: str, found: ClassStatistics, class_names: ClassNames | None
) -> Iterator[Remark]:
    """Labels that are no numbers of classes, and classes that only some splits have."""
    every = {counted.label: str(counted) for counts in found.splits.values() for counted in counts}
    if found.is_numbered and every:
        labels = [int(label) for label in every]
        yield from _numbers_of_classes(key, labels, class_names)
        values = sum(counted.count for counts in found.splits.values() for counted in counts)
        if not found.error and values >= _SEEN_OFTEN * len(labels):
            yield from _gaps(key, sorted(labels), class_names)
    if found.error or len(found.splits) < 2:
        return
    for split, counts in found.splits.items():
        there = {counted.label for counted in counts}
        missing = [
            name for label, name in sorted(every.items(), key=_by_label) if label not in there
        ]
        if missing:
            yield Remark(
                "class-missing",
                key,
                f"split {split!r} has none of {count(len(missing), 'class', 'classes')} that other "
                f"splits have: {some(missing)}. Split again, so that each class is in each split.",
            )


def _by_label(item: tuple[int | str, str]) -> tuple[bool, Any]:
    return isinstance(item[0], str), item[0]


def _numbers_of_classes(
    key: str, labels: list[int], class_names: ClassNames | None
) -> Iterator[Remark]:
    low, high = min(labels), max(labels)
    names = class_names if key in NUMBERED_KEYS else None
    if low < 0:
        yield Remark(
            "label-negative",
            key,
            f"labels go down to {low}; a loss that counts classes from 0 fails or is wrong there. "
            "Leave these records out, or give them a class.",
        )
    if names is not None:
        unknown = sorted(
            label
            for label in labels
            if label >= len(names) or (label >= 0 and names[label] is None)
        )
        if unknown:
            yield Remark(
                "label-unnamed",
                key,
                f"{count(len(unknown), 'label')} {have(len(unknown))} no class name: "
                f"{some(list(map(str, unknown)))}; labels.txt names "
                f"{sum(name is not None for name in names):,}. Mend the labels or the names.",
            )
    if low == 1 and (names is None or not names or names[0] is None):
        yield Remark(
            "labels-from-1",
            key,
            "labels begin at 1, as where 0 is the background: a model needs "
            f"{high + 1:,} outputs, or subtract 1.",
        )


def _gaps(key: str, labels: list[int], class_names: ClassNames | None) -> Iterator[Remark]:
    """Numbers that cannot all be classes: a few of very many."""
    outputs = labels[-1] + 1
    if labels[0] < 0 or outputs < max(_MANY_OUTPUTS, _GAPS * len(labels)):
        return
    if key in NUMBERED_KEYS and class_names is not None and len(class_names) >= outputs:
        return  # there are classes that have no records
    yield Remark(
        "labels-with-gaps",
        key,
        f"of the numbers from 0 to {labels[-1]} only {len(labels):,} are labels: "
        f"{some(list(map(str, labels)))}. A loss that counts classes from 0 needs {outputs:,} "
        "outputs; if these are classes, number them anew with `recordsmith edit --recode`.",
    )


def imbalance(key: str, found: ClassStatistics) -> Iterator[Remark]:
    """A class that comes much more often than another."""
    if found.error:
        return
    for split, counts in found.splits.items():
        ratio = found.imbalance(split)
        if ratio is not None and ratio >= _IMBALANCE:
            most, least = counts[0], counts[-1]
            share = most.count / sum(counted.count for counted in counts)
            yield Remark(
                "imbalance",
                key,
                f"in split {split!r} class {most} comes {ratio:,.0f} times as often as {least} "
                f"({most.count:,} to {least.count:,}); always saying {most} would be right in "
                f"{share:.0%}. Weigh or resample the classes, and measure each for itself.",
            )
