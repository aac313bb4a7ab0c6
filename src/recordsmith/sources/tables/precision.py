"""Numbers that lose digits when they become 32-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

LOST_DIGITS = "numbers beyond 16,777,216 lost digits in 32-bit floats"
EXACT = float(1 << 24)
"""Up to this a 32-bit float holds every integer."""

_EXACT_DOUBLE = float(1 << 53)


class PrecisionLoss:
    """Which numbers lost digits.

    inexact: the columns with any value that changed, also by less than a float holds digits.
    """

    def __init__(self) -> None:
        self._by_column: dict[str, tuple[int, str]] = {}
        self.inexact: set[str] = set()

    def extend(self, other: PrecisionLoss) -> None:
        """Add what another one has recorded."""
        for column, (number, place) in other._by_column.items():
            self._add(column, number, place)
        self.inexact |= other.inexact

    def check(
        self,
        column: str,
        values: npt.NDArray[np.float64],
        exact: Callable[[int], Any],
        place: Callable[[int], str],
    ) -> npt.NDArray[np.bool_] | None:
        """Count the numbers of a column that lose digits.

        Args:
            values: (n,).
            exact: the number at an index as int, float or Decimal, as doubles round large integers.
            place: where such a number is, for the notice.

        Returns:
            Which numbers do not fit a 32-bit float; None if all do.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            stored = values.astype(np.float32)
            large = np.flatnonzero((np.abs(values) > EXACT) & (np.abs(values) < np.inf))
            if column not in self.inexact and ((stored != values) & (values == values)).any():  # noqa: PLR0124
                self.inexact.add(column)
        if not len(large):
            return None
        is_lost = stored[large] != values[large]
        for number in np.flatnonzero(~is_lost & (np.abs(values[large]) >= _EXACT_DOUBLE)).tolist():
            is_lost[number] = exact(int(large[number])) != float(stored[large[number]])
        too_large = np.isinf(stored[large])
        lost = large[is_lost & ~too_large]
        if len(lost):
            first = int(lost[0])
            self._add(column, len(lost), f"{place(first)}: {exact(first)}")
        if not too_large.any():
            return None
        mask = np.zeros(len(values), bool)
        mask[large[too_large]] = True
        return mask

    def _add(self, column: str, number: int, place: str) -> None:
        before, first = self._by_column.get(column, (0, place))
        self._by_column[column] = before + number, first

    def places(self) -> list[str]:
        """The first such number of each column, with its place."""
        return [f"{place} in {name!r}" for name, (_, place) in self._by_column.items()]

    def notices(self) -> list[str]:
        """A notice for each column with such numbers."""
        return [
            f"{number:,} {LOST_DIGITS}: column {name!r}, first {place}"
            for name, (number, place) in self._by_column.items()
        ]
