"""Which records a dataset has, and in which order.

A dataset maps its places, counted from 0, to positions among all records of its shards. A slice and
a shuffle are arithmetic and take no memory; chosen positions take eight bytes each. Whatever needs
the number of records, such as a slice, is worked out at first use if that number is not known yet.
"""

from __future__ import annotations

import hashlib
import operator
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, option
from recordsmith.permutation import Permutations
from recordsmith.stopping import renew_in_children

Positions: TypeAlias = Sequence[int] | Sequence[bool] | Int64Array | npt.NDArray[np.bool_]


class Counted(Protocol):
    """A sequence whose length may not be known yet; `len` finds it out."""

    def __len__(self) -> int: ...

    @property
    def known_record_count(self) -> int | None:
        """The length, if it is known without reading."""


class ChosenPositions(ABC):
    """The positions of a dataset's records: one for each place."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def known_count(self) -> int | None:
        """The number of records, if it is known without reading."""
        return len(self)

    @abstractmethod
    def at(self, places: Int64Array) -> Int64Array:
        """Return the positions at some places: int64, (n,), from 0 to count - 1."""

    def one(self, place: int) -> int:
        """Return the position at a place."""
        return int(self.at(np.array([place], np.int64))[0])

    @property
    def run(self) -> range | None:
        """The positions as a range, if they are one."""
        return None

    @property
    @abstractmethod
    def is_ascending(self) -> bool:
        """Whether no position is followed by a lower one, so that files are read in order."""

    @property
    def is_everything(self) -> bool:
        """Whether these are all positions, in order."""
        return False

    @property
    def is_everything_known(self) -> bool:
        """The same, but False if it is not known without reading."""
        return self.is_everything

    @abstractmethod
    def describe(self) -> Any:
        """Return a short JSON-able description; None for everything. Equal if and only if the
        positions are equal, except for a different way to describe the same ones.
        """

    def resolved(self) -> ChosenPositions:
        """Return the same positions, with a known count."""
        return self

    def all(self) -> Int64Array:
        """Return all positions."""
        return self.at(np.arange(len(self), dtype=np.int64))

    def unordered(self) -> ChosenPositions:
        """Return these positions, and perhaps others, in an order that is faster to find out."""
        return self

    def cut(self, index: slice) -> ChosenPositions:
        """Return the positions in a slice."""
        if self.known_count is None:
            return DeferredPositions(partial(_cut, self, index))
        return self._cut(range(len(self))[index])

    def pick(self, places: Positions) -> ChosenPositions:
        """Return the positions at some places, which are checked.

        Raises:
            IndexError, OptionError: as `integer_positions`.
        """
        if self.known_count is None:
            numbers = np.array(_numbers(places))  # a copy: the caller may change its array
            return DeferredPositions(partial(_pick, self, numbers))
        return PositionArray(self.at(integer_positions(places, len(self))))

    def shuffled(self, seed: int) -> ChosenPositions:
        """Return the positions in a random order."""
        if self.known_count is None:
            return DeferredPositions(partial(_shuffled, self, seed))
        return ShuffledPositions(self, seed)

    def _cut(self, places: range) -> ChosenPositions:
        if places == range(len(self)):
            return self
        return PositionArray(self.at(np.arange(places.start, places.stop, places.step)))


class AllPositions(ChosenPositions):
    """All records, in order."""

    def __init__(self, records: Counted) -> None:
        self._records = records
        self._count: int | None = None  # kept, because every read of one record asks for it

    def __len__(self) -> int:
        if self._count is None:
            self._count = len(self._records)
        return self._count

    @property
    def known_count(self) -> int | None:
        return self._records.known_record_count

    def resolved(self) -> ChosenPositions:
        len(self)
        return self

    def at(self, places: Int64Array) -> Int64Array:
        return places

    def one(self, place: int) -> int:
        return place

    @property
    def run(self) -> range:
        return range(len(self))

    @property
    def is_ascending(self) -> bool:
        return True

    @property
    def is_everything(self) -> bool:
        return True

    def describe(self) -> None:
        return None

    def _cut(self, places: range) -> ChosenPositions:
        return self if places == range(len(self)) else PositionRange(places)


class PositionRange(ChosenPositions):
    """An arithmetic progression of positions."""

    def __init__(self, positions: range) -> None:
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    def at(self, places: Int64Array) -> Int64Array:
        chosen = self._positions
        return chosen.start + chosen.step * places if chosen.start or chosen.step != 1 else places

    def one(self, place: int) -> int:
        return self._positions[place]

    @property
    def run(self) -> range:
        return self._positions

    @property
    def is_ascending(self) -> bool:
        return self._positions.step > 0 or len(self) < 2

    def describe(self) -> Any:
        return _described(self._positions)

    def _cut(self, places: range) -> ChosenPositions:
        return PositionRange(_of_range(self._positions, places))


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
    def is_ascending(self) -> bool:
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

    def __len__(self) -> int:
        return len(self._places)

    def at(self, places: Int64Array) -> Int64Array:
        own = self._places.start + self._places.step * places
        return self._of.at(self._order.numbers(0, own))

    @property
    def is_ascending(self) -> bool:
        return len(self) < 2

    def unordered(self) -> ChosenPositions:
        return self._of.unordered()

    def describe(self) -> Any:
        of = self._of.describe()
        return {
            "shuffle": self._seed,
            **_described(self._places),
            **({} if of is None else {"of": of}),
        }

    def _cut(self, places: range) -> ChosenPositions:
        return ShuffledPositions(self._of, self._seed, _of_range(self._places, places))


class DeferredPositions(ChosenPositions):
    """Positions that are worked out once, at first use. Thread-safe."""

    def __init__(self, work_out: Callable[[], ChosenPositions]) -> None:
        self._work_out = work_out
        self._found: ChosenPositions | None = None
        self.renew_lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """Replace the lock with a new, unlocked one."""
        self._lock = threading.RLock()

    def __getstate__(self) -> Mapping[str, Any]:
        """Pickle what was found, or how to find it."""
        with self._lock:
            found, work_out = self._found, self._work_out
        return {"_found": found, "_work_out": None if found is not None else work_out}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self.renew_lock()
        renew_in_children(self)

    def resolved(self) -> ChosenPositions:
        if self._found is None:
            with self._lock:
                if self._found is None:
                    self._found = self._work_out().resolved()
        return self._found

    def __len__(self) -> int:
        return len(self.resolved())

    @property
    def known_count(self) -> int | None:
        return None if self._found is None else len(self._found)

    def at(self, places: Int64Array) -> Int64Array:
        return self.resolved().at(places)

    @property
    def run(self) -> range | None:
        return self.resolved().run

    @property
    def is_ascending(self) -> bool:
        return self.resolved().is_ascending

    @property
    def is_everything(self) -> bool:
        return self.resolved().is_everything

    @property
    def is_everything_known(self) -> bool:
        return self._found is not None and self._found.is_everything

    def unordered(self) -> ChosenPositions:
        return self.resolved().unordered()

    def describe(self) -> Any:
        return self.resolved().describe()

    def _cut(self, places: range) -> ChosenPositions:
        return self.resolved()._cut(places)  # noqa: SLF001 - of the same class


def _cut(positions: ChosenPositions, index: slice) -> ChosenPositions:
    return positions.resolved().cut(index)


def _pick(positions: ChosenPositions, places: Positions) -> ChosenPositions:
    return positions.resolved().pick(places)


def _shuffled(positions: ChosenPositions, seed: int) -> ChosenPositions:
    return positions.resolved().shuffled(seed)


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
    """Convert positions in a sequence of `count` records to int64 from 0 to `count` - 1.

    Raises:
        IndexError: a position is out of range.
        OptionError: the positions are not integers or a mask of the right length.
    """
    array = _numbers(positions)
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


def _numbers(positions: Positions) -> npt.NDArray[Any]:
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
    """Convert an index, which may be negative, to a place.

    Raises:
        IndexError: it is out of range.
    """
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
