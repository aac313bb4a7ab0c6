"""Which records a dataset has, and in which order.

A dataset maps its places, counted from 0, to positions among all records of its shards. A slice and
a shuffle are arithmetic and take no memory; chosen positions take eight bytes each. New splits are
shares of the records, drawn at random.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array
from recordsmith.support.errors import OptionError, option
from recordsmith.support.permutation import Permutations

if TYPE_CHECKING:
    from fractions import Fraction

Positions: TypeAlias = Sequence[int] | Sequence[bool] | Int64Array | npt.NDArray[np.bool_]


class Selection:
    """The positions of a dataset's records: one for each place. Immutable.

    They are a range or an array of positions, perhaps in a random order that is computed place by
    place, of which a range of places is chosen; and so on.
    """

    def __init__(
        self,
        positions: range | Int64Array,
        orders: Sequence[tuple[int, Permutations, range]] = (),
        **origin: Any,
    ) -> None:
        """
        Args:
            orders: seeds and random orders, and the places that are chosen of each; each is an
                order of the places that the one before it has.
            origin: how the positions were chosen, for people who read the description.
        """
        self._positions: Any = positions
        self._orders = tuple(orders)
        self._origin = origin
        self._places = self._orders[-1][2] if self._orders else range(len(positions))

    def __len__(self) -> int:
        return len(self._places)

    @property
    def run(self) -> range | None:
        """The positions as a range, if they are one."""
        is_run = isinstance(self._positions, range) and not self._orders
        return self._positions if is_run else None

    @cached_property
    def is_ascending(self) -> bool:
        """Whether no position is followed by a lower one, so that files are read in order."""
        if len(self) < 2 or self._orders:
            return len(self) < 2
        if self.run is not None:
            return self.run.step > 0
        return not (self._positions[1:] < self._positions[:-1]).any()

    def at(self, places: Int64Array) -> Int64Array:
        """Return the positions at some places: int64, (n,), from 0 to count - 1."""
        for _, order, chosen in reversed(self._orders):
            places = order.numbers(0, _at(chosen, places))
        if isinstance(self._positions, range):
            return _at(self._positions, places)
        return self._positions[places]  # type: ignore[no-any-return]

    def one(self, place: int) -> int:
        if self._orders:
            return int(self.at(np.array([place], np.int64))[0])
        return int(self._positions[place])

    def all(self) -> Int64Array:
        return self.at(np.arange(len(self), dtype=np.int64))

    def unordered(self) -> Selection:
        """Return these positions, and perhaps others, in an order that is faster to find out."""
        return Selection(self._positions) if self._orders else self

    def describe(self) -> Any:
        """Return a short JSON-able description. Equal if and only if the positions are equal,
        except for a different way to describe the same ones.
        """
        if isinstance(self._positions, range):
            described: Any = _described(self._positions)
        else:
            count = len(self._positions)
            described = {**self._origin, "count": count, "positions": self._digest}
        for seed, _, places in self._orders:
            described = {"shuffle": seed, **_described(places), "of": described}
        return described

    @cached_property
    def _digest(self) -> str:
        import hashlib

        data = np.ascontiguousarray(self._positions, "<i8")
        return hashlib.blake2b(data.data, digest_size=8).hexdigest()

    def cut(self, index: slice) -> Selection:
        """Return the positions in a slice."""
        if not self._orders:
            return Selection(self._positions[index])
        seed, order, places = self._orders[-1]
        orders = (*self._orders[:-1], (seed, order, places[index]))
        return Selection(self._positions, orders, **self._origin)

    def pick(self, places: Positions) -> Selection:
        """Return the positions at some places; IndexError or OptionError if they are invalid."""
        # a copy: the caller may change its array
        return Selection(self.at(np.array(integer_positions(places, len(self)))))

    def shuffled(self, seed: int) -> Selection:
        """Return the positions in a random order."""
        order = Permutations(len(self), seed, "dataset")
        orders = (*self._orders, (seed, order, range(len(self))))
        return Selection(self._positions, orders, **self._origin)


def _at(chosen: range, places: Int64Array) -> Int64Array:
    if chosen.start or chosen.step != 1:
        return chosen.start + chosen.step * places
    return places


def _described(numbers: range) -> dict[str, int]:
    """The description of a range; equal for equal ranges."""
    count = len(numbers)
    return {
        "start": numbers.start if count else 0,
        "step": numbers.step if count > 1 else 1,
        "count": count,
    }


def integer_positions(positions: Positions, count: int) -> Int64Array:
    """Convert positions in a sequence of `count` records to int64 from 0 to `count` - 1."""
    array = _position_array(positions)
    kind = array.dtype.kind
    if kind == "b":
        if len(array) != count:
            raise _not_positions(f"a boolean mask of {len(array)} values")
        return np.flatnonzero(array)
    # for one position, minimum and maximum would cost more than the read
    if len(array) == 1 and kind == "i" and 0 <= array[0] < count:
        return array.astype(np.int64, copy=False)
    if array.size and (array.min() < 0 or array.max() >= count):
        outside = np.flatnonzero((array < -count) | (array >= count))
        if len(outside):
            raise no_position(int(array[outside[0]]), count)
        array = np.where(array < 0, array + count, array)
    return array.astype(np.int64, copy=False)


def _position_array(positions: Positions) -> npt.NDArray[Any]:
    """Convert positions to an array of integers, or a mask, without a check of their range."""
    try:
        array = np.asarray(positions)
    except ValueError:  # lists of unequal length
        array = np.empty(0, object)
    kind = array.dtype.kind
    if array.ndim != 1 or kind not in "biuO":
        if array.ndim == 1 and not array.size and not isinstance(positions, np.ndarray):
            return np.empty(0, np.int64)
        raise _not_positions(f"an array of {array.dtype}, shape {array.shape}")
    if kind == "O" and not (array.size and all(type(number) is int for number in array)):
        raise _not_positions("objects")
    return array


def one_place(index: Any, count: int) -> int:
    """Convert an index, which may be negative, to a place; IndexError if it is out of range."""
    place = operator.index(index)
    if not -count <= place < count:
        raise no_position(place, count)
    return place + count if place < 0 else place


def no_position(index: int, count: int) -> IndexError:
    """Return the error for a position that is out of range."""
    return IndexError(f"position {index} is out of range for a dataset of {count} records")


def _not_positions(found: str) -> OptionError:
    return OptionError(
        f"{option('positions')} is {found}",
        option="positions",
        expected="integers along one axis, or a boolean mask with one value per record",
    )


# -- shares ----------------------------------------------------------------------------------------

_EXAMPLE = "{'train': 0.7, 'validation': 0.3}"
_AT_ONCE = 1 << 20


def check_shares(splits: Mapping[str, float]) -> None:
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
                remedy=f"Write {share:g} percent as {share / 100:g}." if share > 1 else "",
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
    from fractions import Fraction

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


class Draw(msgspec.Struct, frozen=True):
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
