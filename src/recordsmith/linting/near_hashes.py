"""Finds equal and nearly equal hashes in n log n time and bounded memory.

Two hashes of 64 bits that differ in at most 6 have at least two of their 8 bytes in common. So
hashes are sorted once for each of the 28 pairs of bytes, and each is compared only with those that
follow it and share the two bytes, at most MAX_COMPARED. n equal hashes are linked to the first
of them, so that they cost n.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array

MAX_DIFFERENT = 6
"""The largest number of different bits of similar hashes."""

MAX_COMPARED = 64
"""With how many others a hash is compared in each order."""

_BYTES = 8
_BYTE_BITS = np.array([number.bit_count() for number in range(256)], np.uint8)  # NumPy before 2.0
_NOTHING = np.iinfo(np.int64).max
_NUMBER_BITS = 48

Hashes64 = npt.NDArray[np.uint64]
AreAlike: TypeAlias = Callable[[Int64Array, Int64Array], npt.NDArray[np.bool_]]


class Counterparts(NamedTuple):
    """For each item, an earlier item that is alike; -1 if there is none.

    within: in the same group.
    across: in another group.
    """

    within: Int64Array
    across: Int64Array


def find_equal(values: Hashes64, groups: Int64Array) -> Counterparts:
    """For each item, the first one with an equal value in its group, and in another group."""
    count = len(values)
    within, across = np.full((2, count), -1, np.int64)
    order = np.lexsort((np.arange(count), values))
    first = order[_run_starts(values[order])]  # of the items with the value, in sorted order
    is_other = groups[order] != groups[first]
    across[order[is_other]] = first[is_other]
    order = np.lexsort((np.arange(count), groups, values))
    starts = _run_starts(values[order], groups[order])
    is_later = starts != np.arange(count)
    within[order[is_later]] = order[starts[is_later]]
    return Counterparts(within, across)


def find_near(
    hashes: Hashes64,
    groups: Int64Array,
    are_alike: AreAlike,
    *,
    max_different: int = MAX_DIFFERENT,
) -> tuple[Counterparts, int]:
    """For each item, the closest earlier one in its group and in another, and how many comparisons.

    Finds all pairs, unless more than MAX_COMPARED hashes share two bytes.

    Args:
        are_alike: called with the numbers of items whose hashes are close, as (one, other): which
            pairs count.
        max_different: the largest number of different bits, at most MAX_DIFFERENT.
    """
    count = len(hashes)
    best = np.full((2, count), _NOTHING, np.int64)  # distance and number, within and across
    order = np.lexsort((np.arange(count), groups, hashes))
    starts = _run_starts(hashes[order], groups[order])
    is_later = starts != np.arange(count)
    _improve(best, hashes, groups, are_alike, order[starts[is_later]], order[is_later], 64)
    items = np.sort(order[~is_later])  # one for each hash and group
    chosen = hashes[items]
    compared = 0
    pieces = chosen.view(np.uint8).reshape(-1, _BYTES)
    for pair in combinations(range(_BYTES), 2):
        rest = [place for place in range(_BYTES) if place not in pair]
        arranged = np.ascontiguousarray(pieces[:, [*pair, *rest]]).view(">u8")[:, 0]
        turned = arranged.astype(np.uint64)
        by_pair = np.argsort(turned, kind="stable")
        turned = turned[by_pair]
        shared = turned >> np.uint64(64 - 16)
        at = np.arange(len(turned))
        for step in range(1, MAX_COMPARED + 1):
            at = at[: np.searchsorted(at, len(turned) - step)]
            at = at[shared[at + step] == shared[at]]
            if not len(at):
                break
            compared += len(at)
            is_near = _bit_count(turned[at] ^ turned[at + step]) <= max_different
            near = at[is_near]
            one, other = items[by_pair[near]], items[by_pair[near + step]]
            _improve(best, hashes, groups, are_alike, one, other, max_different)
    return Counterparts(*np.where(best == _NOTHING, -1, best & ((1 << _NUMBER_BITS) - 1))), compared


def _improve(
    best: Int64Array,
    hashes: Hashes64,
    groups: Int64Array,
    are_alike: AreAlike,
    one: Int64Array,
    other: Int64Array,
    max_different: int,
) -> None:
    """Keep the closest earlier item of each pair for its later one."""
    is_pair = are_alike(one, other)
    early, late = np.minimum(one, other)[is_pair], np.maximum(one, other)[is_pair]
    different = _bit_count(hashes[early] ^ hashes[late]).astype(np.int64)
    ranks = (different << _NUMBER_BITS) | early
    is_across = groups[early] != groups[late]
    is_near = different <= max_different
    for row, chosen in ((0, ~is_across & is_near), (1, is_across & is_near)):
        np.minimum.at(best[row], late[chosen], ranks[chosen])


def _run_starts(*columns: npt.NDArray[np.generic]) -> Int64Array:
    """For each item of sorted columns, the place of the first equal one."""
    count = len(columns[0])
    is_start = np.zeros(count, np.bool_)
    is_start[:1] = True
    for column in columns:
        is_start[1:] |= column[1:] != column[:-1]
    return np.maximum.accumulate(np.where(is_start, np.arange(count), 0))


def _bit_count(values: Hashes64) -> npt.NDArray[np.uint8]:
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(values)
    counts: npt.NDArray[np.uint8] = _BYTE_BITS[values.view(np.uint8)].reshape(-1, _BYTES)
    return counts.sum(axis=1, dtype=np.uint8)  # type: ignore[no-any-return]
