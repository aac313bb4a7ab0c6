"""Numbers that lose digits when they become 32-bit floats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LOST_DIGITS = "numbers beyond 16,777,216 lost digits in 32-bit floats"
EXACT = float(1 << 24)
"""Up to this a 32-bit float holds every integer."""

_ROUNDED = float(1 << 53)  # from here on, 64-bit floats may have lost digits of integers already


class PrecisionLoss:
    """Which numbers lost digits.

    inexact: the columns with any value that changed, also by less than a float holds digits.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first: dict[str, float] = {}
        self.inexact: set[str] = set()

    def check(
        self, column: str, values: npt.NDArray[np.float64], *, may_be_integers: bool = True
    ) -> npt.NDArray[np.bool_] | None:
        """Count numbers of a column that lose digits; return which do not fit, None if all do.

        Integers may have lost digits when they became these floats.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            stored = values.astype(np.float32)
            sizes = np.abs(values)
            large = np.flatnonzero((sizes > EXACT) & (sizes < np.inf))
            if column not in self.inexact and ((stored != values) & (values == values)).any():  # noqa: PLR0124
                self.inexact.add(column)
        if not len(large):
            return None
        is_too_large = np.isinf(stored[large])
        has_lost = stored[large] != values[large]
        if may_be_integers:
            has_lost |= sizes[large] >= _ROUNDED
        lost = values[large[has_lost & ~is_too_large]]
        if len(lost):
            self._first.setdefault(column, float(lost[0]))
            self._counts[column] = self._counts.get(column, 0) + len(lost)
        if not is_too_large.any():
            return None
        mask = np.zeros(len(values), bool)
        mask[large[is_too_large]] = True
        return mask

    def notices(self) -> list[str]:
        """A notice for each column with such numbers."""
        return [
            f"{number:,} {LOST_DIGITS}: column {name!r}, such as {self._first[name]:.17g}"
            for name, number in self._counts.items()
        ]

    def columns(self) -> list[str]:
        """The columns with such numbers."""
        return list(self._counts)
