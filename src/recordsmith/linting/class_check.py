"""Checks the names and sizes of classes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from recordsmith.linting.explanations import Severity
from recordsmith.linting.lint_report import Findings, LintExample
from recordsmith.sources.flaws import Check
from recordsmith.words import count

RARE_IMAGES = 10
"""A class with fewer images is rare."""

UNBALANCED = 20
"""The largest class has this many times the images of the smallest: a note."""

_VERY_UNBALANCED = 100  # a warning
_LIKELY_TYPO = 5  # how many times as many images the class has that was meant
_MOST_COMPARED = 5000
_LONGEST_COMPARED = 40
_SHORTEST_WITH_ONE_TYPO, _SHORTEST_WITH_TWO_TYPOS, _LONGEST_WITH_TWO_TYPOS = 5, 9, 20
_MOST_WITH_TWO_TYPOS = 2000
_PLURALS = ("ies", "es", "s")

ClassCounts = Mapping[str, Mapping[str, int]]
"""Number of images by split and class, with all classes in each split."""


def check_classes(
    names: Sequence[str], counts: ClassCounts, findings: Findings, *, deep: bool = True
) -> None:
    """Check the names of classes, and their sizes where the counts are known.

    Args:
        deep: whether to look for names with two typos, which takes ten times as long.
    """
    totals = {name: sum(of_split.get(name, 0) for of_split in counts.values()) for name in names}
    for one, other, why, is_likely in similar_names(totals, most_typos=2 if deep else 1):
        if counts and totals[one] < totals[other]:
            one, other = other, one  # noqa: PLW2901 - the one that was meant comes first
        found = f"{other!r}{_images(totals, other)}: did you mean {one!r}{_images(totals, one)}?"
        severity = Severity.WARNING if is_likely else Severity.NOTE
        findings.add(
            Check.SIMILAR_CLASS_NAMES, LintExample("", f"{found} ({why})"), severity=severity
        )
    if counts:
        _check_sizes(totals, counts, findings)


def _images(totals: Mapping[str, int], name: str) -> str:
    return f" ({count(totals[name], 'image')})" if totals[name] else ""


def _check_sizes(totals: Mapping[str, int], counts: ClassCounts, findings: Findings) -> None:
    filled = {name: total for name, total in totals.items() if total}
    for name, total in totals.items():
        if not total:
            findings.add(Check.EMPTY_CLASS, LintExample("", f"class {name!r} has no images"))
        elif total < RARE_IMAGES:
            found = f"class {name!r} has {count(total, 'image')}"
            findings.add(Check.RARE_CLASS, LintExample("", found))
    for split, of_split in counts.items():
        missing = [name for name in filled if not of_split.get(name)]
        if len(missing) < len(filled):  # a split without classes, such as a test set, is another
            for name in missing:
                found = (
                    f"split {split!r} has no images of class {name!r}, which has {filled[name]:,}"
                )
                findings.add(Check.MISSING_CLASS, LintExample("", found))
    if len(filled) < 2:
        return
    least, most = min(filled, key=filled.__getitem__), max(filled, key=filled.__getitem__)
    times = filled[most] / filled[least]
    if times >= UNBALANCED:
        found = (
            f"class {most!r} has {count(filled[most], 'image')}, {times:,.0f} times those of "
            f"{least!r} ({filled[least]:,})"
        )
        severity = Severity.WARNING if times >= _VERY_UNBALANCED else Severity.NOTE
        findings.add(Check.CLASS_IMBALANCE, LintExample("", found), severity=severity)


def similar_names(
    totals: Mapping[str, int], *, most_typos: int = 2
) -> Iterator[tuple[str, str, str, bool]]:
    """Yield pairs of similar class names, why they are, and whether they likely are one class.

    Names that differ in a digit or a single letter name different classes on purpose, so typos are
    looked for only in longer names, and are likely only in a class that is much smaller.

    Args:
        totals: number of images by name; 0 if unknown.
        most_typos: how many letters may differ in long names, 1 or 2.
    """
    names = [name for name in totals if len(name) <= _LONGEST_COMPARED][:_MOST_COMPARED]
    seen: set[frozenset[str]] = set()

    def new(one: str, other: str) -> bool:
        pair = frozenset((one, other))
        is_new = pair not in seen
        seen.add(pair)
        return is_new

    for key_of, why in (
        (str.casefold, "the letter case differs"),
        (_compact, "spaces, underscores or hyphens differ"),
        (_singular, "singular and plural"),
    ):
        for group in _groups(names, key_of):
            for other in group[1:]:
                if len(other) > 1 and new(group[0], other):  # letters are classes on purpose
                    yield group[0], other, why, True
    for one, other in _typos(names, most_typos):
        if new(one, other):
            few, many = sorted((totals[one], totals[other]))
            yield one, other, "the spelling differs", 0 < few * _LIKELY_TYPO <= many


def _groups(names: Iterable[str], key_of: object) -> list[list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[key_of(name)].append(name)  # type: ignore[operator]
    return [group for key, group in groups.items() if key and len(group) > 1]


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


def _typos(names: Sequence[str], most_typos: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of long names that differ by one or two letters, but not by digits.

    Names that become equal when letters are removed are candidates, so that the cost grows with
    the number of names, not of pairs.
    """
    by_rest: dict[str, list[str]] = defaultdict(list)
    plain = {name: _compact(name) for name in names}
    two = range(_SHORTEST_WITH_TWO_TYPOS, _LONGEST_WITH_TWO_TYPOS + 1)
    two = two if most_typos > 1 and len(names) <= _MOST_WITH_TWO_TYPOS else range(0)
    for name, letters in plain.items():
        if len(letters) >= _SHORTEST_WITH_ONE_TYPO:
            rests = _without_a_letter({letters})
            if len(letters) in two:
                rests |= _without_a_letter(rests)
            for rest in (letters, *rests):
                by_rest[rest].append(name)
    seen = set()
    for group in by_rest.values():
        for one, other in combinations(group[:20], 2):
            if (one, other) in seen:
                continue
            seen.add((one, other))
            a, b = plain[one], plain[other]
            most = 2 if len(a) in two and len(b) in two else 1
            if _digits(a) == _digits(b) and 0 < _edit_distance(a, b) <= most:
                yield one, other


def _without_a_letter(words: set[str]) -> set[str]:
    return {word[:at] + word[at + 1 :] for word in words for at in range(len(word))}


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _edit_distance(one: str, other: str) -> int:
    """How many letters to insert, delete, replace or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]
