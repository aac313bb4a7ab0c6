"""Records and pictures that come more than once: in two splits, or in one."""

from __future__ import annotations

from collections.abc import Iterator

from recordsmith.examining.statistics.duplicates import DuplicateStatistics
from recordsmith.examining.statistics.remarks.remark import Remark, are
from recordsmith.words import count


def leakage(found: DuplicateStatistics) -> Iterator[Remark]:
    """In two splits: what is measured on one of them is not what will be."""
    for shared in found.shared:
        one, other = shared.splits
        text = (
            f"{_how_many(found, shared.contents)} of split {one!r} {are(shared.contents)} in "
            f"{other!r} as well, byte for byte: what is measured on one of them is too good. "
            "Leave them out of one of them, or split again."
        )
        if shared.places:
            text += f" The first: {shared.places[0][0]}; and {shared.places[0][1]}."
        yield Remark("leakage", found.feature, text)


def repeated(found: DuplicateStatistics) -> Iterator[Remark]:
    """In one split."""
    again = sum(found.within.values())
    if again:
        text = (
            f"{_how_many(found, again)} of {found.count:,} came before in the same split, "
            "byte for byte: they count double in training."
        )
        if found.places:
            text += f" The first: {found.places[0][0]}; and {found.places[0][1]}."
        yield Remark("duplicates", found.feature, text)


def _how_many(found: DuplicateStatistics, number: int) -> str:
    about = "about " if found.sampled > 1 else ""
    return about + count(number, "record" if found.feature is None else "picture")
