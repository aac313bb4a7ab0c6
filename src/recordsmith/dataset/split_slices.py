"""Selection of splits and parts of them, as TensorFlow Datasets writes it.

    train    train[:80%]    train[100:200]    train[-10%:]    train+validation

Numbers count records and percentages are whole; both may count from the end. A percentage of the
records is rounded to the nearest whole number, halves to the nearest even one, so `train[:80%]` and
`train[80%:]` together have every record once.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

from recordsmith.errors import OptionError

_BOUNDARY = r"\s*(-?\d{1,18}%?)?\s*"
_PART = re.compile(rf"\s*(?P<name>[^\[\]+]+?)\s*(?:\[{_BOUNDARY}:{_BOUNDARY}\])?\s*")
_EXPECTED = "a split, a part of it, or several: train, train[:80%], train[100:200], train+test"


class SplitPart(NamedTuple):
    """A split, or a part of it: boundaries such as `100`, `-10%`, or None."""

    name: str
    start: str | None = None
    stop: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the split."""
        return self.start is self.stop is None

    def range(self, count: int) -> range:
        """Return the positions in a split of `count` records.

        Raises:
            OptionError: a boundary is outside of the split.
        """
        start = 0 if self.start is None else self._boundary(self.start, count)
        stop = count if self.stop is None else self._boundary(self.stop, count)
        return range(start, max(start, stop))

    def _boundary(self, text: str, count: int) -> int:
        number = int(text.rstrip("%"))
        most = 100 if text.endswith("%") else count
        if abs(number) > most:
            raise OptionError(
                f"split {str(self)!r} has the boundary {text}, but {self.name!r} has "
                f"{count:,} records",
                option="split",
                value=str(self),
                expected="at most 100%" if text.endswith("%") else f"at most {count}",
            )
        place = round(Fraction(number * count, 100)) if text.endswith("%") else number
        return place + count if number < 0 else place

    def __str__(self) -> str:
        cut = "" if self.is_whole else f"[{self.start or ''}:{self.stop or ''}]"
        return f"{self.name}{cut}"


def is_split_slice(split: object) -> bool:
    """Whether a split may be more than a name."""
    return isinstance(split, str) and any(mark in split for mark in "[+")


def parse_split(split: str, names: Collection[str]) -> list[SplitPart]:
    """Parse splits and parts of them.

    Args:
        names: of the existing splits; one of them may look like several.

    Raises:
        OptionError: the text is malformed.
    """
    if split in names:
        return [SplitPart(split)]
    parts = []
    for text in split.split("+"):
        found = _PART.fullmatch(text)
        if found is None:
            raise OptionError(
                f"{text.strip()!r} is not a split or a part of one",
                option="split",
                value=split,
                expected=_EXPECTED,
            )
        parts.append(SplitPart(found["name"], found[2], found[3]))
    return parts
