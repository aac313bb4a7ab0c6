"""Finds the feature that identifies records, and pairs records by its value."""

from __future__ import annotations

from typing import Any

import numpy as np

from recordsmith.buffers import Int64Array
from recordsmith.errors import OptionError, suggest_names
from recordsmith.examining.diff.comparing import MakeDigests, Side, SideReader, Wanted, each
from recordsmith.examining.diff.matching import (
    Digests,
    as_digests,
    digest_of,
    has_repeats,
    pairs_of,
)
from recordsmith.examining.diff.record_changes import feature_digests, key_of, value_digest
from recordsmith.example import ColumnDecoder, FeatureSpec, Schema
from recordsmith.wire import RecordBlock

KEY_FEATURES = (
    "image/filename",
    "image/source_id",
    "image/key/sha256",
    "filename",
    "source_id",
    "id",
    "key",
    "uuid",
    "name",
)
"""Features that usually identify a record, most likely first."""


def check_key(by: str, sides: tuple[Side, Side]) -> None:
    """Check that both datasets have the feature `by`.

    Raises:
        OptionError: no record of one of them has this feature.
    """
    for side in sides:
        known = side.schema.sections.get(_key_section(side.schema), {})
        if by not in known and side.record_count and side.schema.is_complete:
            hint = suggest_names(by, known, "its records have no features")
            raise OptionError(
                f"no record in {side.shards[0].location} has the feature {by!r}; {hint}",
                option="by",
                value=by,
            )


def usual_keys(sides: tuple[Side, Side]) -> list[str]:
    """Return the usual identifying features that most records have."""
    return [
        key
        for key in KEY_FEATURES
        if all(_names_most(side.schema, key) for side in sides if side.record_count)
    ]


def is_unique(reading: SideReader, key: str, some: Wanted) -> bool:
    """Return whether all records of each dataset have different keys; check some of them first."""
    make = key_digests(key)
    if {side.schema.payload for side in reading.sides} == {"Example"}:
        kinds = {side.schema.features[key].kind for side in reading.sides}
        if len(kinds) == 1:
            make = key_digests_of_examples(key, kinds.pop())
    return not _repeats(reading, make, some) and not _repeats(reading, make, None)


def pairs_by_key(
    reading: SideReader, left: Wanted, key: str
) -> tuple[tuple[Int64Array, Int64Array], int]:
    """Pair the positions of records with the same key, skipping keys that are not unique.

    Also returns the number of pairs skipped.
    """
    return _pairs(reading, left, key_digests(key))


def _pairs(
    reading: SideReader, left: Wanted, make: MakeDigests
) -> tuple[tuple[Int64Array, Int64Array], int]:
    """Pair records with equal digests that no other record has; also count the others."""
    pairs: list[tuple[Int64Array, Int64Array]] = []
    shared = 0
    for store in reading.parts(make, left):
        of_a, digests_a = store.pop(0, reading.sides[0].starts)
        of_b, digests_b = store.pop(1, reading.sides[1].starts)
        places_a, places_b = pairs_of(digests_a, digests_b, only_unique=True)
        pairs.append((of_a[places_a], of_b[places_b]))
        shared += len(pairs_of(digests_a, digests_b)[0]) - len(places_a)
    a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
    order = np.argsort(a)
    return (a[order], b[order]), shared


def pairs_by_rest(reading: SideReader, left: Wanted, key: str) -> tuple[Int64Array, Int64Array]:
    """Pair the positions of records that differ only in their key, such as renamed images."""

    def make(payload: memoryview) -> bytes | None:
        digests = feature_digests(payload)
        if digests is None:
            return None
        rest = [(*place, digest.hex()) for place, digest in digests.items() if place[1] != key]
        return digest_of(repr(sorted(rest)).encode()) if rest else None

    return _pairs(reading, left, each(make))[0]


def _key_section(schema: Schema) -> str:
    """Return the section with the features that may identify a record."""
    return "context" if schema.payload == "SequenceExample" else "features"


def _names_most(schema: Schema, key: str) -> bool:
    """Return whether at least half of the records have the feature, each with one value."""
    feature = schema.sections.get(_key_section(schema), {}).get(key)
    return (
        feature is not None
        and feature.kind in ("bytes", "int64")
        and feature.min_length == feature.max_length == 1
        and 2 * feature.present >= schema.record_count
    )


def _repeats(reading: SideReader, make: MakeDigests, wanted: Wanted | None) -> bool:
    """Return whether two records of a dataset have the same key."""
    return any(
        has_repeats(store.pop(number, side.starts)[1])
        for store in reading.parts(make, wanted)
        for number, side in enumerate(reading.sides)
    )


def key_digests(key: str) -> MakeDigests:
    """Make the digests of the values of a feature; skip records without it."""

    def make(payload: memoryview) -> bytes | None:
        value = key_of(payload, key)
        return None if value is None else value_digest(value)

    return each(make)


def key_digests_of_examples(key: str, kind: Any) -> MakeDigests:
    """Make key digests faster, for Examples with at most one value."""

    def make(block: RecordBlock, rows: Int64Array) -> tuple[Int64Array, Digests]:
        spec: Any = FeatureSpec(kind, "ragged")
        decoder = ColumnDecoder({key: spec})
        decoder.append(block.buffer, block.starts[rows], block.lengths[rows])
        column: Any = decoder.finish()[key]
        if kind == "int64":
            digests = np.zeros((len(column.values), 2), np.uint64)
            digests[:, 0] = column.values.view(np.uint64)
            digests[:, 0] *= np.uint64(0x9E3779B97F4A7C15)  # an odd factor is a bijection
        else:
            views = column.values.views()
            digests = as_digests(b"".join(map(digest_of, views)))
        return rows[column.lengths > 0], digests

    return make
