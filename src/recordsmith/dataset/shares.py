"""Splits as shares of some records: how many records each has, and which."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from recordsmith.errors import OptionError, option
from recordsmith.permutation import Permutations

_EXAMPLE = "{'train': 0.7, 'validation': 0.3}"
_AT_ONCE = 1 << 20


def check_shares(splits: Mapping[str, float]) -> None:
    """Validate the shares of splits."""
    if not isinstance(splits, Mapping) or not splits:
        raise OptionError(
            option="splits", value=splits, expected=f"shares by name, such as {_EXAMPLE}"
        )
    for name, share in splits.items():
        if not isinstance(name, str) or isinstance(share, str):
            raise OptionError(
                f"{option('splits')} has the entry {name!r}: {share!r}",
                option="splits",
                value=share,
                expected="a name and a number",
            )
        if not 0 < share <= 1:
            raise OptionError(
                f"the share of split {name!r} is {share:g}",
                option="splits",
                value=share,
                expected="0 < share <= 1",
            )
    total = math.fsum(splits.values())
    if abs(total - 1) > 1e-6:
        raise OptionError(
            f"the shares of the splits add up to {total:g}",
            option="splits",
            value=total,
            expected="1, or 100%",
        )


def exact_share(share: float) -> Fraction:
    """A share as the decimal number that was written: 0.29 of 100 is 29."""
    return Fraction(share).limit_denominator(10**9)


def share_counts(count: int, splits: Mapping[str, float]) -> dict[str, int]:
    """The size of each split: its share of `count`, rounded so that the sizes add up."""
    shares = [exact_share(share) for share in splits.values()]
    exact = [count * share / sum(shares) for share in shares]
    counts = [math.floor(length) for length in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])
    for place in by_remainder[: count - sum(counts)]:
        counts[place] += 1
    return dict(zip(splits, counts, strict=True))


@dataclass(frozen=True)
class Draw:
    """Keeps the ranks whose place in a random order is in low:high."""

    permutation: Permutations
    low: int
    high: int

    def keeps(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Whether each of the ranks start:stop is kept: bool, (stop - start,)."""
        kept = np.empty(stop - start, np.bool_)
        for low in range(start, stop, _AT_ONCE):
            high = min(low + _AT_ONCE, stop)
            places = self.permutation.numbers(0, np.arange(low, high))
            kept[low - start : high - start] = (self.low <= places) & (places < self.high)
        return kept


def draws_of_splits(
    count: int, shares: Mapping[str, int], seed: int, split: str = ""
) -> dict[str, Draw]:
    """Draw disjoint splits of some records at random; each keeps the order of the records."""
    permutation = Permutations(count, seed, "reshard", "draw", split)
    bounds = [0, *itertools.accumulate(shares.values())]
    return {
        name: Draw(permutation, low, high)
        for name, (low, high) in zip(shares, itertools.pairwise(bounds), strict=True)
    }
