"""Findings on classes: unusable labels, classes missing from a split, and class imbalance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.stats.class_counts import NUMBERED_KEYS, ClassStats
from recordsmith.examining.stats.findings.finding import Finding, have, some
from recordsmith.words import count

_IMBALANCE = 10
_GAPS = 10
_MANY_OUTPUTS = 100
_SEEN_OFTEN = 3  # with fewer values per class, classes may be missing by chance


def wrong_classes(key: str, found: ClassStats, class_names: ClassNames | None) -> Iterator[Finding]:
    """Yield labels that are not class numbers, and classes missing from some splits."""
    every = {counted.label: str(counted) for counts in found.splits.values() for counted in counts}
    if found.is_numbered and every:
        labels = [int(label) for label in every]
        yield from _numbers_of_classes(key, labels, class_names)
        values = sum(counted.count for counts in found.splits.values() for counted in counts)
        if not found.error and values >= _SEEN_OFTEN * len(labels):
            yield from _gaps(key, sorted(labels), class_names)
    if found.error or len(found.splits) < 2:
        return
    lacking = []
    for split, counts in found.splits.items():
        there = {counted.label for counted in counts}
        missing = [
            name for label, name in sorted(every.items(), key=_by_label) if label not in there
        ]
        if missing:
            lacking.append(
                f"split {split!r} lacks {count(len(missing), 'class', 'classes')} of the other "
                f"splits: {some(missing)}"
            )
    if lacking:
        again = "Split again so that every split has every class."
        yield Finding("class-missing", key, f"{'; '.join(lacking)}. {again}")


def _by_label(item: tuple[int | str, str]) -> tuple[bool, Any]:
    return isinstance(item[0], str), item[0]


def _numbers_of_classes(
    key: str, labels: list[int], class_names: ClassNames | None
) -> Iterator[Finding]:
    low, high = min(labels), max(labels)
    names = class_names if key in NUMBERED_KEYS else None
    if low < 0:
        yield Finding(
            "label-negative",
            key,
            f"the lowest label is {low}; a loss that expects labels from 0 fails or is wrong. "
            "Drop these records, or assign them a class.",
        )
    if names is not None:
        unknown = sorted(
            label
            for label in labels
            if label >= len(names) or (label >= 0 and names[label] is None)
        )
        if unknown:
            yield Finding(
                "label-unnamed",
                key,
                f"{count(len(unknown), 'label')} {have(len(unknown))} no class name: "
                f"{some(list(map(str, unknown)))}; labels.txt names "
                f"{sum(name is not None for name in names):,}. Fix the labels or the names.",
            )
    if low == 1 and (names is None or not names or names[0] is None):
        yield Finding(
            "labels-from-1",
            key,
            f"labels start at 1, as if 0 were the background: use {high + 1:,} model outputs, or "
            "subtract 1.",
        )


def _gaps(key: str, labels: list[int], class_names: ClassNames | None) -> Iterator[Finding]:
    """Yield sparse label numbers, which are unlikely to be class numbers."""
    outputs = labels[-1] + 1
    if labels[0] < 0 or outputs < max(_MANY_OUTPUTS, _GAPS * len(labels)):
        return
    if key in NUMBERED_KEYS and class_names is not None and len(class_names) >= outputs:
        return  # the gaps are classes without records
    yield Finding(
        "labels-with-gaps",
        key,
        f"only {len(labels):,} of the numbers from 0 to {labels[-1]} are labels: "
        f"{some(list(map(str, labels)))}. A loss that expects labels from 0 needs {outputs:,} "
        "outputs; if these are classes, renumber them with `recordsmith edit --recode`.",
    )


def imbalance(key: str, found: ClassStats) -> Iterator[Finding]:
    """Yield labels of which one is much more frequent than another, with the worst split."""
    ratios = {split: found.imbalance(split) or 0 for split in found.splits}
    worst = max(ratios, key=ratios.__getitem__)
    if found.error or ratios[worst] < _IMBALANCE:
        return
    counts = found.splits[worst]
    most, least = counts[0], counts[-1]
    share = most.count / sum(counted.count for counted in counts)
    others = [
        f"{ratio:,.0f} times in {split!r}"
        for split, ratio in ratios.items()
        if split != worst and ratio >= _IMBALANCE
    ]
    yield Finding(
        "imbalance",
        key,
        f"in split {worst!r} class {most} is {ratios[worst]:,.0f} times as frequent as {least} "
        f"({most.count:,} to {least.count:,})"
        + (f", and the imbalance is {some(others)}" if others else "")
        + f"; a majority-class baseline reaches {share:.0%} accuracy. Weight or resample the "
        "classes, and report metrics per class.",
    )
