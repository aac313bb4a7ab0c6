"""Checks the names and sizes of classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from recordsmith.checking.class_rules import ClassCounts, find_imbalance, find_missing_classes
from recordsmith.checking.linting.lint_report import Findings, LintExample
from recordsmith.sources import Check, LintCheck, Severity
from recordsmith.support.words import count

RARE_IMAGES = 10
"""A class with fewer images is rare."""

_VERY_UNBALANCED = 100  # a warning


class ClassCheck(LintCheck):
    """What is checked about classes."""

    EMPTY_CLASS = (
        "empty-class",
        "note",
        "No image has the class.",
        "Remove it from the list, or add images.",
    )
    RARE_CLASS = (
        "rare-class",
        "note",
        "A class has few images.",
        "Add images, merge it with another class, or sample it more often in training.",
    )
    MISSING_CLASS = (
        "missing-class",
        "warning",
        "A split has no image of a class, so the class is not trained or not evaluated.",
        "Split again, with the same share of every class in each split.",
    )
    CLASS_IMBALANCE = (
        "class-imbalance",
        "note",
        "The largest class of the training data has many times the images of the smallest.",
        "Weight the loss, or mix the classes evenly in training.",
    )


def check_classes(names: Sequence[str], counts: ClassCounts, findings: Findings) -> None:
    totals = {name: sum(of_split.get(name, 0) for of_split in counts.values()) for name in names}
    for group in _similar_names(names):
        meant, *others = sorted(group, key=lambda name: -totals[name])
        for other in others:
            text = f"{other!r}{_images(totals, other)}: did you mean {meant!r}"
            example = LintExample("", f"{text}{_images(totals, meant)}?")
            findings.add(Check.SIMILAR_CLASS_NAMES, example)
    if counts:
        _check_sizes(totals, counts, findings)


def _images(totals: Mapping[str, int], name: str) -> str:
    return f" ({count(totals[name], 'image')})" if totals[name] else ""


def _check_sizes(totals: Mapping[str, int], counts: ClassCounts, findings: Findings) -> None:
    for name, total in totals.items():
        if not total:
            text = f"class {name!r} has no images"
            findings.add(ClassCheck.EMPTY_CLASS, LintExample("", text))
        elif total < RARE_IMAGES:
            text = f"class {name!r} has {count(total, 'image')}"
            findings.add(ClassCheck.RARE_CLASS, LintExample("", text))
    for split, missing in find_missing_classes(counts).items():
        for name in missing:
            text = f"split {split!r} has no images of class {name!r}, which has {totals[name]:,}"
            findings.add(ClassCheck.MISSING_CLASS, LintExample("", text))
    if (found := find_imbalance(counts)) is not None:
        most, least, sizes = found
        text = (
            f"class {most!r} has {count(sizes[most], 'image')}, {found.times:,.0f} times those of "
            f"{least!r} ({sizes[least]:,})"
        )
        severity = Severity.WARNING if found.times >= _VERY_UNBALANCED else Severity.NOTE
        findings.add(ClassCheck.CLASS_IMBALANCE, LintExample("", text), severity=severity)


def _similar_names(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield names that differ only in case, spaces, underscores, hyphens or a final s.

    Single letters are different classes on purpose.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        key = re.sub(r"[\s_-]+", "", name.casefold())
        is_plural = len(key) > 3 and key.endswith("s") and not key.endswith("ss")
        groups[key[:-1] if is_plural else key].append(name)
    return (group for key, group in groups.items() if len(group) > 1 and len(key) > 1)
