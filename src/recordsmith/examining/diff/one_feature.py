"""Pairs records that differ in one feature, by digests of all their other features.

A record with n features has n such digests: one without each feature. They are differences of one
sum, so that making them takes time and memory in proportion to the features. The sum itself is the
digest of a record that lacks a feature of the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.examining.diff.comparing import MakeDigests, Side, SideReader, Wanted, payloads_of
from recordsmith.examining.diff.matching import Digests, as_digests, digest_of, pairs_of
from recordsmith.examining.diff.record_changes import feature_digests
from recordsmith.wire import RecordBlock

MOST_DIGESTS = 1 << 21
"""How many digests of one side are compared: the limit of memory and time for wide records."""

_ROUNDS = 4  # a record that loses its partner to another one may find the next
_MODULUS = 1 << 128


def pairs_but_one(
    reading: SideReader, left: Wanted, key: str | None
) -> tuple[tuple[Int64Array, Int64Array], int, bool]:
    """Pair the positions of records that are equal except for one feature.

    Args:
        reading: reads both sides.
        left: the records without a partner.
        key: the feature that identifies records. Records that differ only in it are paired if no
            other record has the same content.

    Returns:
        The pairs, in the order of A; how many of them have equal keys; whether all records were
        compared, instead of the first ones.
    """
    most = MOST_DIGESTS // (max(map(_feature_count, reading.sides)) + 1)
    if not all(side.schema.is_complete for side in reading.sides):
        most = 0  # a record may have any number of features
    some = (left[0][:most], left[1][:most])
    pairs = _pairs(reading, some, digests_without_each(key), only_unique=False)
    equal_key_count = len(pairs[0])
    if key is not None:
        rest = _without(some, pairs)
        if len(rest[0]) and len(rest[1]):
            renamed = _pairs(reading, rest, digests_without(key), only_unique=True)
            pairs = (np.concatenate([pairs[0], renamed[0]]), np.concatenate([pairs[1], renamed[1]]))
    order = np.argsort(pairs[0])
    return (
        (pairs[0][order], pairs[1][order]),
        equal_key_count,
        max(map(len, left)) <= most,
    )


def _feature_count(side: Side) -> int:
    return sum(map(len, side.schema.sections.values()))


def _without(wanted: Wanted, pairs: Wanted) -> Wanted:
    a, b = (np.setdiff1d(all_, some) for all_, some in zip(wanted, pairs, strict=True))
    return a, b


def _pairs(
    reading: SideReader, wanted: Wanted, make: MakeDigests, *, only_unique: bool
) -> tuple[Int64Array, Int64Array]:
    """Pair records with an equal digest, each record once."""
    partners: dict[int, int] = {}
    taken: set[int] = set()
    for store in reading.parts(make, wanted):
        of_a, digests_a = store.pop(0, reading.sides[0].starts)
        of_b, digests_b = store.pop(1, reading.sides[1].starts)
        for _ in range(_ROUNDS):
            places_a, places_b = pairs_of(digests_a, digests_b, only_unique=only_unique)
            found = sorted(zip(of_a[places_a].tolist(), of_b[places_b].tolist(), strict=True))
            for a, b in found:
                if a not in partners and b not in taken:
                    partners[a] = b
                    taken.add(b)
            if not found:
                break
            free_a = ~np.isin(of_a, list(partners))
            free_b = ~np.isin(of_b, list(taken))
            of_a, digests_a = of_a[free_a], digests_a[free_a]
            of_b, digests_b = of_b[free_b], digests_b[free_b]
    return np.array([*partners], np.int64), np.array([*partners.values()], np.int64)


class _FeatureSums(NamedTuple):
    """The digests of the features of a record as numbers, and their sum."""

    features: dict[tuple[str, str], int]
    total: int


def digests_without_each(key: str | None = None) -> MakeDigests:
    """Make the digests of a record without each of its features but `key`, and of all of it."""

    def make(sums: _FeatureSums) -> list[int]:
        if len(sums.features) < 2:
            return [sums.total]
        rest = [sums.total - part for (_, name), part in sums.features.items() if name != key]
        return [sums.total, *rest]

    arguments = () if key is None else (key,)
    return MakeDigests("without-each", arguments, _of_records(make))


def digests_without(key: str) -> MakeDigests:
    """Make the digest of a record without the feature `key`, if it has other features."""

    def make(sums: _FeatureSums) -> list[int]:
        if len(sums.features) < 2:
            return []
        return [sums.total - part for (_, name), part in sums.features.items() if name == key]

    return MakeDigests("without", (key,), _of_records(make))


def _of_records(
    make: Callable[[_FeatureSums], list[int]],
) -> Callable[[RecordBlock, Int64Array], tuple[Int64Array, Digests]]:
    def make_all(block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        made = bytearray()
        counts = []
        for _, payload in payloads_of(block, rows):
            features = {
                place: int.from_bytes(digest_of(repr(place).encode() + digest), "little")
                for place, digest in (feature_digests(payload) or {}).items()
            }
            digests = make(_FeatureSums(features, sum(features.values()))) if features else []
            counts.append(len(digests))
            for digest in digests:
                made += (digest % _MODULUS).to_bytes(16, "little")
        return np.repeat(rows, counts), as_digests(made)

    return make_all
