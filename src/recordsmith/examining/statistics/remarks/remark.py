"""One remark, and the words that its sentence may need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.words import first_of

_NAMED = 5


@dataclass(frozen=True)
class Remark:
    """Something to look at.

    kind: what it is, by a name that stays: see docs/inspect.md.
    feature: which feature it is about; None: the dataset.
    text: what was found, and what to do, in words.
    """

    kind: str
    feature: str | None
    text: str

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict."""
        return {"kind": self.kind, "feature": self.feature, "text": self.text}


def are(count: int) -> str:
    """The verb for so many."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """The verb for so many."""
    return "has" if count == 1 else "have"


def some(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are."""
    return first_of(names, _NAMED)
