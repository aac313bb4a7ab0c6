"""Checks the names and sizes of classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from recordsmith.linting.lint_report import Findings, LintExample
from recordsmith.sources.flaws import Check, LintCheck, Severity
from recordsmith.words import count

RARE_IMAGES = 10
"""A class with fewer images is rare."""

UNBALANCED = 20
"""The largest class has this many times the images of the smallest: a note."""

_VERY_UNBALANCED = 100  # a warning
_TYPO_FACTOR = 5  # how many times as many images the class has that was meant
_MAX_COMPARED = 5000
_LONGEST_COMPARED = 40
_SHORTEST_WITH_TYPO = 5
_MAX_IN_GROUP = 20
_PLURALS = ("ies", "es", "s")

ClassCounts = Mapping[str, Mapping[str, int]]
"""Number of images by split and class, with all classes in each split."""


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
        "The largest class has many times the images of the smallest.",
        "Weight the loss, or mix the classes evenly in training.",
    )


def check_classes(names: Sequence[str], counts: ClassCounts, findings: Findings) -> None:
    """Check the names of classes, and their sizes where the counts are known."""
    totals = {name: sum(of_split.get(name, 0) for of_split in counts.values()) for name in names}
    for first, second, why, is_likely in similar_names(totals):
        # the one that was meant comes first
        meant, other = (second, first) if totals[first] < totals[second] else (first, second)
        text = f"{other!r}{_images(totals, other)}: did you mean {meant!r}{_images(totals, meant)}?"
        severity = Severity.WARNING if is_likely else Severity.NOTE
        example = LintExample("", f"{text} ({why})")
        findings.add(Check.SIMILAR_CLASS_NAMES, example, severity=severity)
    if counts:
        _check_sizes(totals, counts, findings)


def _images(totals: Mapping[str, int], name: str) -> str:
    return f" ({count(totals[name], 'image')})" if totals[name] else ""


def _check_sizes(totals: Mapping[str, int], counts: ClassCounts, findings: Findings) -> None:
    filled = {name: total for name, total in totals.items() if total}
    for name, total in totals.items():
        if not total:
            text = f"class {name!r} has no images"
            findings.add(ClassCheck.EMPTY_CLASS, LintExample("", text))
        elif total < RARE_IMAGES:
            text = f"class {name!r} has {count(total, 'image')}"
            findings.add(ClassCheck.RARE_CLASS, LintExample("", text))
    for split, of_split in counts.items():
        missing = [name for name in filled if not of_split.get(name)]
        if len(missing) < len(filled):  # a split without classes, such as a test set, is another
            for name in missing:
                text = (
                    f"split {split!r} has no images of class {name!r}, which has {filled[name]:,}"
                )
                findings.add(ClassCheck.MISSING_CLASS, LintExample("", text))
    if len(filled) < 2:
        return
    least, most = min(filled, key=filled.__getitem__), max(filled, key=filled.__getitem__)
    times = filled[most] / filled[least]
    if times >= UNBALANCED:
        text = (
            f"class {most!r} has {count(filled[most], 'image')}, {times:,.0f} times those of "
            f"{least!r} ({filled[least]:,})"
        )
        severity = Severity.WARNING if times >= _VERY_UNBALANCED else Severity.NOTE
        findings.add(ClassCheck.CLASS_IMBALANCE, LintExample("", text), severity=severity)


def similar_names(totals: Mapping[str, int]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield pairs of similar class names, why they are, and whether they likely are one class.

    Names that differ in a digit or a single letter name different classes on purpose, so typos are
    looked for only in longer names, and are likely only in a class that is much smaller.
    """
    names = [name for name in totals if len(name) <= _LONGEST_COMPARED][:_MAX_COMPARED]
    seen: set[frozenset[str]] = set()
    key_of: Callable[[str], str]
    for key_of, why in (
        (str.casefold, "the letter case differs"),
        (_compact, "spaces, underscores or hyphens differ"),
        (_singular, "singular and plural"),
    ):
        groups: dict[str, list[str]] = defaultdict(list)
        for name in names:
            groups[key_of(name)].append(name)
        for first, *others in (group for key, group in groups.items() if key):
            for other in others:
                pair = frozenset((first, other))
                if len(other) > 1 and pair not in seen:  # letters are classes on purpose
                    seen.add(pair)
                    yield first, other, why, True
    for first, other in _typos(names):
        pair = frozenset((first, other))
        if pair not in seen:
            seen.add(pair)
            few, many = sorted((totals[first], totals[other]))
            yield first, other, "the spelling differs", 0 < few * _TYPO_FACTOR <= many


def _compact(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.casefold())


def _singular(name: str) -> str:
    compact = _compact(name)
    for ending in _PLURALS:
        if compact.endswith(ending) and len(compact) >= len(ending) + 3:
            stem = compact.removesuffix(ending)
            if ending == "s" and stem.endswith("s"):
                return compact  # glass
            return stem + ("y" if ending == "ies" else "") if ending != "es" else stem.rstrip("e")
    return compact.rstrip("e") if len(compact) > 3 else compact


def _typos(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of long names that differ by one letter or two swapped ones, not by digits.

    Names that become equal when a letter is removed are candidates, so that the cost grows with
    the number of names, not of pairs.
    """
    by_rest: dict[str, list[str]] = defaultdict(list)
    for name in names:
        letters = _compact(name)
        if len(letters) >= _SHORTEST_WITH_TYPO:
            for rest in {letters} | {letters[:n] + letters[n + 1 :] for n in range(len(letters))}:
                by_rest[rest].append(name)
    for group in by_rest.values():
        for first, other in combinations(group[:_MAX_IN_GROUP], 2):
            one, two = _compact(first), _compact(other)
            if re.sub(r"\D", "", one) == re.sub(r"\D", "", two) and _is_one_typo(one, two):
                yield first, other


def _is_one_typo(one: str, other: str) -> bool:
    """Whether a letter is inserted, deleted, replaced, or swapped with its neighbour."""
    if len(one) > len(other):
        one, other = other, one
    start = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one)
    )
    rest, more = one[start:], other[start:]
    if len(rest) < len(more):
        return rest == more[1:]
    is_swapped = rest[:2] == more[1::-1] and rest[2:] == more[2:]
    return one != other and (rest[1:] == more[1:] or is_swapped)
