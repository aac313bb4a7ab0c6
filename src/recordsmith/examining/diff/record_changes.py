"""Finds the features that differ between two records.

Keeps only a digest and a short text of each feature, so that thousands of records can be compared
without keeping their images in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from recordsmith.errors import DataError
from recordsmith.examining.diff.matching import digest_of
from recordsmith.example import FeatureSchema, FeatureValue, Schema, SequenceExample, decode_payload
from recordsmith.example.payload import as_text
from recordsmith.words import shortened

_VALUES_SHOWN = 4
_TEXT_SHOWN = 60
_LONGEST_TEXT = 4096
_FEATURE_LISTS = "feature_lists"

Features = Mapping[str, FeatureValue]


class FeatureNote(NamedTuple):
    """One feature of one record.

    digest: digest of its kind and values.
    text: its values, shortened.
    """

    digest: bytes
    text: str


RecordNotes = dict[tuple[str, str], FeatureNote]
"""The features of a record by section and name."""


class RecordNote(NamedTuple):
    """What is reported of one record.

    key: the value of the feature that identifies it, shortened; None if it has none.
    features: None if they are not compared.
    """

    key: str | None
    features: RecordNotes | None


@dataclass(frozen=True)
class FeatureChange:
    """A feature that differs between two records, or is missing from one of them.

    section: features, context or feature_lists.
    a, b: its values, shortened; None if the record lacks it.
    """

    section: str
    feature: str
    a: str | None
    b: str | None


def note_record(payload: memoryview, name: str | None, *, with_features: bool) -> RecordNote:
    """Summarize a record; `name` is the feature that identifies records, if there is one."""
    value = None if name is None else key_of(payload, name)
    return RecordNote(
        None if value is None else describe_value(value),
        (take_notes(payload) or {}) if with_features else None,
    )


def take_notes(payload: memoryview) -> RecordNotes | None:
    """Summarize the features of a record; None if it is not an Example or SequenceExample."""
    example = _decoded(payload)
    if example is None:
        return None
    return {
        place: FeatureNote(
            digest, (_describe_steps if place[0] == _FEATURE_LISTS else describe_value)(value)
        )
        for place, value, digest in _features_of(example)
    }


def feature_digests(payload: memoryview) -> dict[tuple[str, str], bytes] | None:
    """Return a digest of each feature; None if the record is not an Example or SequenceExample."""
    example = _decoded(payload)
    if example is None:
        return None
    return {place: digest for place, _, digest in _features_of(example)}


def changes_between(a: RecordNotes, b: RecordNotes) -> tuple[FeatureChange, ...]:
    """Return the features that differ, sorted by name."""
    changes = []
    for section, key in sorted(a.keys() | b.keys()):
        of_a, of_b = a.get((section, key)), b.get((section, key))
        if of_a is not None and of_b is not None and of_a.digest == of_b.digest:
            continue
        text_a = None if of_a is None else of_a.text
        text_b = None if of_b is None else of_b.text
        if text_a == text_b:  # same length, or equal up to where it is shortened
            text_b = f"other {text_b}" if " bytes" in str(text_b) else f"{text_b}, differs"
        changes.append(FeatureChange(section, key, text_a, text_b))
    return tuple(changes)


def key_of(payload: memoryview, key: str) -> FeatureValue | None:
    """Return the value of the feature that identifies records; None if it is missing or empty."""
    example = _decoded(payload)
    if example is None:
        return None
    features = example.context if isinstance(example, SequenceExample) else example
    value = features.get(key)
    return None if value is None or len(value) == 0 else value


def value_digest(value: FeatureValue) -> bytes:
    """Return 16 bytes that are equal for equal values of the same kind."""
    digest = blake2b(digest_size=16)
    if isinstance(value, list):
        digest.update(b"bytes")
        for item in value:
            digest.update(len(item).to_bytes(8, "little"))
            digest.update(item)
    else:
        digest.update(value.dtype.name.encode())
        digest.update(value.data)
    return digest.digest()


def describe_value(value: FeatureValue) -> str:
    """Return the values as a short text."""
    if isinstance(value, list):
        shown = [_describe_bytes(item) for item in value[:_VALUES_SHOWN]]
    elif value.dtype == np.float32:
        shown = [str(item) for item in value[:_VALUES_SHOWN]]  # the shortest exact text
    else:
        shown = [str(item) for item in value[:_VALUES_SHOWN].tolist()]
    if len(value) == 1:
        return shown[0]
    more = f", … {len(value):,} values" if len(value) > _VALUES_SHOWN else ""
    return f"[{', '.join(shown)}{more}]"


def _decoded(payload: memoryview) -> Features | SequenceExample | None:
    try:
        return decode_payload(payload)
    except DataError:  # another message or other data
        return None


def _features_of(
    example: Features | SequenceExample,
) -> Iterator[tuple[tuple[str, str], Any, bytes]]:
    """Yield section and name, the value or the steps, and their digest."""
    if not isinstance(example, SequenceExample):
        for key, value in example.items():
            yield ("features", key), value, value_digest(value)
        return
    for key, value in example.context.items():
        yield ("context", key), value, value_digest(value)
    for key, steps in example.feature_lists.items():
        yield (_FEATURE_LISTS, key), steps, digest_of(b"".join(map(value_digest, steps)))


def _describe_steps(steps: Sequence[FeatureValue]) -> str:
    text = f"{len(steps)} step{'' if len(steps) == 1 else 's'}"
    return f"{text}, the first {describe_value(steps[0])}" if steps else text


def _describe_bytes(value: bytes) -> str:
    text = as_text(value) if len(value) <= _LONGEST_TEXT else None
    if text is None:
        return f"{len(value):,} byte{'' if len(value) == 1 else 's'}"
    return json.dumps(shortened(text, _TEXT_SHOWN), ensure_ascii=False)


@dataclass(frozen=True)
class SchemaChange:
    """One difference between two schemas.

    section: features, context, feature_lists or examples; empty for the payload.
    feature: the feature name; empty for the payload.
    what: payload, feature (one schema lacks it), kind, content, values (per record), steps, or
        present (number of records that have it).
    a, b: the values in A and B, as text; None if the schema lacks the feature.
    """

    section: str
    feature: str
    what: str
    a: str | None
    b: str | None


def schema_changes(a: Schema, b: Schema) -> tuple[SchemaChange, ...]:
    """Return all differences, ordered by section and name."""
    if not a.record_count or not b.record_count:
        return ()  # without records there is no schema to compare
    changes = []
    if a.payload != b.payload:
        changes.append(SchemaChange("", "", "payload", a.payload, b.payload))
    for section in dict.fromkeys([*a.sections, *b.sections]):
        of_a, of_b = a.sections.get(section, {}), b.sections.get(section, {})
        for key in sorted(of_a.keys() | of_b.keys()):
            one, other = of_a.get(key), of_b.get(key)
            if one is None or other is None:
                if not (a.is_complete if one is None else b.is_complete):
                    continue  # the incomplete schema may have left it out
                kinds = [None if found is None else found.kind for found in (one, other)]
                changes.append(SchemaChange(section, key, "feature", *kinds))
                continue
            facts = _facts(one), _facts(other)
            changes += [
                SchemaChange(section, key, what, facts[0][what], facts[1][what])
                for what in facts[0]
                if facts[0][what] != facts[1][what]
            ]
            if _presence_differs(one, a.record_count, other, b.record_count):
                changes.append(
                    SchemaChange(
                        section,
                        key,
                        "present",
                        f"{one.present:,} of {a.record_count:,}",
                        f"{other.present:,} of {b.record_count:,}",
                    )
                )
    return tuple(changes)


def _presence_differs(
    one: FeatureSchema, count: int, other: FeatureSchema, other_count: int
) -> bool:
    """Return whether presence differs by more than records added or removed could explain."""
    return one.present != other.present and count - one.present != other_count - other.present


def _facts(feature: FeatureSchema) -> dict[str, str | None]:
    return {
        "kind": feature.kind,
        "content": feature.content,
        "values": _span(feature.min_length, feature.max_length),
        "steps": None
        if feature.min_steps is None
        else _span(feature.min_steps, feature.max_steps or 0),
    }


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
