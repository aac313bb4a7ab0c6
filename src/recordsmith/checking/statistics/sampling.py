"""Samples of values that do not depend on how the work is divided, and merging of what was built.

A sample has the values with the smallest hashes of their positions: the place of the record and the
number of the value in it. It is the same for any threads, processes and order of merging.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from recordsmith.support.buffers import Int64Array
from recordsmith.support.permutation import finalize_bits

Hashes = npt.NDArray[np.uint64]

SAMPLE_SIZE = 10_000
"""How many values of a feature are in its sample: all figures are exact up to as many values."""

_SEED = np.uint64(0x9E3779B97F4A7C15)


def hash_positions(places: Int64Array, first: int = 0) -> Hashes:
    """Hash the position of each value, from the place numbers of their records, in order.

    `first` is the number of the first value in its record, if all are of one record.
    """
    is_first = np.ones(len(places), bool)
    np.not_equal(places[1:], places[:-1], out=is_first[1:])
    hashes = finalize_bits(places.view(np.uint64) + _SEED)
    if is_first.all() and not first:
        return finalize_bits(hashes)
    starts = np.flatnonzero(is_first)
    numbers = np.arange(first, first + len(places)) - np.repeat(
        starts, np.diff(starts, append=len(places))
    )
    return finalize_bits(hashes + numbers.view(np.uint64))


class ValueSample:
    """The SAMPLE_SIZE values with the smallest hashes."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Hashes, npt.NDArray[Any]]] = []
        self._count = 0
        self._limit = 2**64 - 1

    def choose(self, hashes: Hashes) -> Int64Array:
        """Return the indices of the values that may belong to the sample."""
        return np.flatnonzero(hashes <= np.uint64(self._limit))

    def add(self, hashes: Hashes, values: npt.NDArray[Any]) -> None:
        if len(hashes):
            self._pieces.append((hashes, values))
            self._count += len(hashes)
        if self._count >= 2 * SAMPLE_SIZE:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._pieces) > 1 or self._count > SAMPLE_SIZE:
            hashes, values = map(np.concatenate, zip(*self._pieces, strict=True))
            if len(hashes) > SAMPLE_SIZE:
                chosen = np.argpartition(hashes, SAMPLE_SIZE - 1)[:SAMPLE_SIZE]
                hashes, values = hashes[chosen], values[chosen]
                self._limit = int(hashes.max())
            self._pieces, self._count = [(hashes, values)], len(hashes)

    def merge(self, other: ValueSample) -> None:
        for hashes, values in other._pieces:
            self.add(hashes, values)

    def __getstate__(self) -> dict[str, Any]:
        self._shrink()
        return vars(self)

    def values(self) -> npt.NDArray[Any]:
        self._shrink()
        return self._pieces[0][1] if self._pieces else np.empty(0, np.int64)


class Builder:
    """Builds statistics from attributes that merge by themselves.

    Those are numbers and arrays, which are added; other builders and samples; dicts of these; and
    None for nothing so far. Attributes in `_fixed` are left alone.
    """

    _fixed: ClassVar[tuple[str, ...]] = ()

    def merge(self, other: Self) -> None:
        """Add what another builder collected, which must not be used afterwards."""
        for name, theirs in vars(other).items():
            if name not in self._fixed:
                setattr(self, name, _merged(getattr(self, name), theirs))


class ProblemPlaces:
    """The place numbers of records with a problem, by kind of finding and feature."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], list[Int64Array]] = {}

    def add(self, kind: str, feature: str, places: Int64Array) -> None:
        """Add records, in ascending order of all that are added; some may be repeated."""
        if len(places):
            self._places.setdefault((kind, feature), []).append(np.unique(places))

    def merge(self, other: ProblemPlaces) -> None:
        for key, places in other._places.items():
            self._places.setdefault(key, []).extend(places)

    def of(self, kind: str, feature: str) -> Iterator[tuple[int, int]]:
        """Yield the numbers of the shard and of the record in it, each once."""
        pieces = self._places.get((kind, feature), ())
        for place in np.unique(np.concatenate([np.empty(0, np.int64), *pieces])).tolist():
            yield place >> _POSITION_BITS, place & ((1 << _POSITION_BITS) - 1)


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


_POSITION_BITS = 40


def place_numbers(shard: int, position: int, count: int) -> Int64Array:
    """Number `count` records of a shard from `position`; numbers ascend with shard and position."""
    first = (shard << _POSITION_BITS) + position
    return np.arange(first, first + count)
