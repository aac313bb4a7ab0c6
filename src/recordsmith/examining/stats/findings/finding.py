"""One finding, and helpers to phrase it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recordsmith.examining.stats.places import Place
from recordsmith.words import first_of

_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """A likely problem in a dataset.

    kind: a stable name for the problem; see docs/stats.md.
    feature: the feature with the problem; None for the dataset.
    text: what was found, and what to do about it.
    places: records that show the problem, if they are known.
    """

    kind: str
    feature: str | None
    text: str
    places: tuple[Place, ...] = ()


def are(count: int) -> str:
    """Return "is" or "are"."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """Return "has" or "have"."""
    return "has" if count == 1 else "have"


def some(names: Sequence[str]) -> str:
    """Join the first few names, and count the others."""
    return first_of(names, _NAMED)
