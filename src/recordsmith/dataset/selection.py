"""Which records a dataset has, and in which order.

A dataset maps its places, counted from 0, to positions among all records of its shards. A slice and
a shuffle are arithmetic and take no memory; chosen positions take eight bytes each.
"""

from __future__ import annotations

import hashlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, option
from recordsmith.permutation import Permutations

Positions: TypeAlias = Sequence[int] | Sequence[bool] | Int64Array | npt.NDArray[np.bool_]


class ChosenPositions(ABC):
    """The positions of a dataset's records: one for each place."""

    run: range | None = None
    """The positions as a range, if they are one."""

    is_everything = False
    """Whether these are all positions, in order."""

    is_ascending: bool
    """Whether no position is followed by a lower one, so that files are read in order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def at(self, places: Int64Array) -> Int64Array:
        """Return the positions at some places: int64, (n,), from 0 to count - 1."""

    def one(self, place: int) -> int:
        """Return the position at a place."""
        return int(self.at(np.array([place], np.int64))[0])

    @abstractmethod
    def describe(self) -> Any:
        """Return a short JSON-able description; None for everything. Equal if and only if the
        positions are equal, except for a different way to describe the same ones.
        """

    def all(self) -> Int64Array:
        """Return all positions."""
        return self.at(np.arange(len(self), dtype=np.int64))

    def unordered(self) -> ChosenPositions:
        """Return these positions, and perhaps others, in an order that is faster to find out."""
        return self

    def cut(self, places: range) -> ChosenPositions:
        """Return the positions at a range of places."""
        if places == range(len(self)):
            return self
        return PositionArray(self.at(np.arange(places.start, places.stop, places.step)))


class PositionRange(ChosenPositions):
    """An arithmetic progression of positions."""

    def __init__(self, run: range, *, is_everything: bool = False) -> None:
        self.run: range = run
        self.is_everything = is_everything
        self.is_ascending = run.step > 0 or len(run) < 2

    def __len__(self) -> int:
        return len(self.run)

    def at(self, places: Int64Array) -> Int64Array:
        run = self.run
        return run.start + run.step * places if run.start or run.step != 1 else places

    def one(self, place: int) -> int:
        return self.run[place]

    def describe(self) -> Any:
        return None if self.is_everything else _described(self.run)

    def cut(self, places: range) -> ChosenPositions:
        return self if places == range(len(self)) else PositionRange(_of_range(self.run, places))


class PositionArray(ChosenPositions):
    """Chosen positions, in any order."""

    def __init__(self, positions: Int64Array, **origin: Any) -> None:
        """`origin`: how they were chosen, for people who read the description."""
        self._positions = np.array(positions, np.int64)  # a copy: the caller may change its array
        self._origin = origin

    def __len__(self) -> int:
        return len(self._positions)

    def at(self, places: Int64Array) -> Int64Array:
        return self._positions[places]

    @cached_property
    def is_ascending(self) -> bool:  # type: ignore[override]
        return not (self._positions[1:] < self._positions[:-1]).any()

    def describe(self) -> Any:
        return {**self._origin, "count": len(self), "positions": self._digest}

    @cached_property
    def _digest(self) -> str:
        data = self._positions.astype("<i8", copy=False)
        return hashlib.blake2b(data.data, digest_size=8).hexdigest()


class ShuffledPositions(ChosenPositions):
    """Other positions in a random order, computed place by place."""

    def __init__(self, positions: ChosenPositions, seed: int, places: range | None = None) -> None:
        """`places`: which places of the random order; None for all."""
        self._of = positions
        self._seed = seed
        self._order = Permutations(len(positions), seed, "dataset")
        self._places = range(len(positions)) if places is None else places
        self.is_ascending = len(self._places) < 2

    def __len__(self) -> int:
        return len(self._places)

    def at(self, places: Int64Array) -> Int64Array:
        own = self._places.start + self._places.step * places
        return self._of.at(self._order.numbers(0, own))

    def unordered(self) -> ChosenPositions:
        return self._of.unordered()

    def describe(self) -> Any:
        of = self._of.describe()
        rest = {} if of is None else {"of": of}
        return {"shuffle": self._seed, **_described(self._places), **rest}

    def cut(self, places: range) -> ChosenPositions:
        return ShuffledPositions(self._of, self._seed, _of_range(self._places, places))


def _of_range(numbers: range, places: range) -> range:
    """The numbers at a range of places."""
    if not places:
        return range(0)
    first, step = numbers[places[0]], numbers.step * places.step
    return range(first, first + step * len(places), step)


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
    array = position_array(positions)
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


def position_array(positions: Positions) -> npt.NDArray[Any]:
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
