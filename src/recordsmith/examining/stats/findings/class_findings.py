"""Findings on classes: unusable labels, wrong texts, missing classes and class imbalance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.stats.class_counts import NUMBERED_KEYS, ClassStats
from recordsmith.examining.stats.findings.finding import Finding, have, some
from recordsmith.examining.stats.label_texts import TEXT_OF_LABEL
from recordsmith.words import count, first_of

_IMBALANCE = 10
_GAPS = 10
_MANY_OUTPUTS = 100
_SEEN_OFTEN = 3  # with fewer values per class, classes may be missing by chance
_SHOWN = 3


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


def contradictions(
    key: str, pairs: Mapping[tuple[int, str], int], class_names: ClassNames | None
) -> Iterator[Finding]:
    """Yield labels with several texts, texts with several labels, and texts not in labels.txt.

    Args:
        pairs: how often each pair of label and text occurs.
    """
    texts: dict[int, list[str]] = {}
    labels: dict[str, list[str]] = {}
    for (label, text), often in pairs.items():
        texts.setdefault(label, []).append(f"{text!r:.80} ({often:,})")
        labels.setdefault(text, []).append(f"{label} ({often:,})")
    several = {str(label): its for label, its in texts.items() if len(its) > 1}
    problems = [
        *_of_several("label", "texts", several),
        *_of_several(
            "text", "labels", {f"{t!r:.80}": its for t, its in labels.items() if len(its) > 1}
        ),
    ]
    mismatched = [] if class_names is None else _find_mismatched(pairs, class_names)
    if mismatched:
        problems.append(some(mismatched))
    if problems:
        yield Finding(
            "label-text",
            key,
            f"{'; '.join(problems)}. {key} and {TEXT_OF_LABEL[key]} disagree. "
            "Programs that read one of them train on different classes than programs that read the "
            "other. Recode both, or drop the texts, with `recordsmith edit`.",
        )


def _of_several(one: str, others: str, found: Mapping[str, list[str]]) -> Iterator[str]:
    if found:
        shown = [f"{one} {name} has the {others} {_listed(its)}" for name, its in found.items()]
        yield first_of(shown, _SHOWN)


def _listed(names: list[str]) -> str:
    """List a few names: a, b and c; a, b, c and 2 more."""
    if len(names) > _SHOWN:
        return first_of(names, _SHOWN)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _find_mismatched(pairs: Mapping[tuple[int, str], int], class_names: ClassNames) -> list[str]:
    """List texts that differ from the class name; none if no text is a class name at all."""
    names = {label: name for label, name in enumerate(class_names) if name is not None}
    known = set(names.values())
    if not any(label in names and text in known for label, text in pairs):
        return []
    return [
        f"labels.txt says {names[label]!r:.80} for label {label}, but records say {text!r:.80}"
        for label, text in pairs
        if names.get(label, text) != text
    ]
