"""Pairs equal digests of two multisets.

The digests are sorted together, so that equal ones form a run, those of the first set before those
of the second. Sorting is stable: the first of several equal digests is paired with the first.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from recordsmith.buffers import Int64Array

Digests = npt.NDArray[np.uint64]
"""(count, 2): digests of 128 bits."""


def digest_of(data: bytes | memoryview) -> bytes:
    """Return 16 bytes that are equal for equal data."""
    return blake2b(data, digest_size=16).digest()


def as_digests(data: bytes | bytearray) -> Digests:
    """Return the digests in a concatenation of digests."""
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def pairs_of(a: Digests, b: Digests, *, only_unique: bool = False) -> tuple[Int64Array, Int64Array]:
    """Pair equal digests, each used once.

    Args:
        a, b: uint64, (count, 2).
        only_unique: skip digests that occur more than once on a side.

    Returns:
        Two int64 arrays of shape (pair_count,): indices into `a` and into `b`.
    """
    order, starts, stops = _runs(np.concatenate([a, b]))
    is_a = np.zeros(len(order) + 1, np.int64)
    np.cumsum(order < len(a), out=is_a[1:])
    of_a = is_a[stops] - is_a[starts]
    of_b = stops - starts - of_a
    counts = np.minimum(of_a, of_b)
    if only_unique:
        counts[(of_a > 1) | (of_b > 1)] = 0
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first_a = np.repeat(starts, counts) + within
    first_b = first_a + np.repeat(of_a, counts)
    return order[first_a], order[first_b] - len(a)


def has_repeats(digests: Digests) -> bool:
    """Return whether a digest occurs more than once."""
    _, starts, _ = _runs(digests)
    return len(starts) < len(digests)


def with_tag(digests: Digests, tags: Int64Array) -> Digests:
    """Combine each digest with a number."""
    tagged = digests.copy()
    tagged[:, 1] ^= tags.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return tagged


def _runs(digests: Digests) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the sorting order, and where runs of equal digests start and stop in it."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable
    in_order = digests[order]
    differs = (in_order[1:] != in_order[:-1]).any(axis=1)
    edges = np.flatnonzero(differs) + 1
    if not len(order):
        return order, np.zeros(0, np.int64), np.zeros(0, np.int64)
    return order, np.concatenate([[0], edges]), np.concatenate([edges, [len(order)]])
