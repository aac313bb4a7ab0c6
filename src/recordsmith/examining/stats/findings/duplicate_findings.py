"""Findings on records and images that occur more than once, in two splits or in one."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.stats.duplicates import DuplicateStats
from recordsmith.examining.stats.findings.finding import Finding, are
from recordsmith.words import count


def leakage(found: DuplicateStats) -> Iterator[Finding]:
    """Yield duplicates shared by two splits."""
    for shared in found.shared:
        one, other = shared.splits
        text = (
            f"{_how_many(found, shared.contents)} of split {one!r} {are(shared.contents)} also in "
            f"{other!r}, byte for byte: evaluation on these is optimistic (leakage). Drop them "
            "from one of the splits, or split again."
        )
        if shared.places:
            text += f" First duplicate: {shared.places[0][0]} and {shared.places[0][1]}."
        yield Finding("leakage", found.feature, text, shared.places[0] if shared.places else ())


def repeated(found: DuplicateStats) -> Iterator[Finding]:
    """Yield duplicates within a split."""
    again = sum(found.within.values())
    if again:
        text = (
            f"{_how_many(found, again)} of {found.count:,} {are(again)} exact duplicates in the "
            "same split: duplicates are weighted twice in training."
        )
        if found.places:
            text += f" First duplicate: {found.places[0][0]} and {found.places[0][1]}."
        yield Finding("duplicates", found.feature, text, found.places[0] if found.places else ())


def _how_many(found: DuplicateStats, number: int) -> str:
    about = "about " if found.sampled > 1 else ""
    return about + count(number, "record" if found.feature is None else "image")
