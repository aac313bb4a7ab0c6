"""What all surveys share: merging what two of them collected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Collector:
    """Collects statistics in attributes that can be merged.

    Those are numbers and arrays, which are added; other surveys; dicts of these; and None for
    nothing so far.
    """

    def merge(self, other: Self) -> None:
        """Add everything that another survey collected, which must not be used afterwards."""
        for name, theirs in vars(other).items():
            setattr(self, name, _merged(getattr(self, name), theirs))


def _merged(mine: Any, theirs: Any) -> Any:
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    if hasattr(mine, "merge"):
        mine.merge(theirs)
    elif isinstance(mine, Counter):
        mine.update(theirs)
    elif isinstance(mine, dict):
        for key, value in theirs.items():
            mine[key] = _merged(mine.get(key), value)
    else:
        return mine + theirs
    return mine
