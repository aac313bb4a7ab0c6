"""The features of a record, and what differs between two records or two schemas.

Keeps only a digest and a short text of each feature, so that thousands of records can be compared
without keeping their images in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from recordsmith.checking.shard_summaries import span
from recordsmith.format.example import (
    FeatureSchema,
    FeatureValue,
    Schema,
    SequenceExample,
    decode_payload,
)
from recordsmith.format.example.payload import as_text
from recordsmith.support.errors import DataError
from recordsmith.support.words import count as format_count
from recordsmith.support.words import shortened

_VALUES_SHOWN = 4
_TEXT_SHOWN = 60
LONGEST_TEXT = 4096


class FeatureNote(NamedTuple):
    """A digest of the kind and values of a feature, and its values as a short text."""

    digest: bytes
    text: str


RecordNotes: TypeAlias = Mapping[tuple[str, str], FeatureNote]
"""The features of a record by section and name."""


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


def digest_of(data: bytes | memoryview) -> bytes:
    """Return 16 bytes that are equal for equal data."""
    return blake2b(data, digest_size=16).digest()


def note_features(payload: memoryview) -> RecordNotes:
    """Summarize the features of an Example or SequenceExample; other records have none."""
    try:
        example: Any = decode_payload(payload)
    except DataError:  # another message or other data
        return {}
    section, features, lists = "features", example, {}
    if isinstance(example, SequenceExample):
        section, features, lists = "context", example.context, example.feature_lists
    notes = {
        (section, key): FeatureNote(value_digest(value), describe_value(value))
        for key, value in features.items()
    }
    for key, steps in lists.items():
        text = f"{len(steps)} step{'s' * (len(steps) != 1)}"
        text += f", the first {describe_value(steps[0])}" if steps else ""
        digest = digest_of(b"".join(map(value_digest, steps)))
        notes["feature_lists", key] = FeatureNote(digest, text)
    return notes


def changes_between(a: RecordNotes, b: RecordNotes) -> tuple[FeatureChange, ...]:
    changes = []
    for place in sorted(a.keys() | b.keys()):
        of_a, of_b = a.get(place), b.get(place)
        if of_a is not None and of_b is not None and of_a.digest == of_b.digest:
            continue
        text_a = None if of_a is None else of_a.text
        text_b = None if of_b is None else of_b.text
        if text_a == text_b:  # same length, or equal up to where it is shortened
            text_b = f"other {text_b}" if " bytes" in str(text_b) else f"{text_b}, differs"
        changes.append(FeatureChange(*place, text_a, text_b))
    return tuple(changes)


def key_of(payload: memoryview, key: str) -> FeatureValue | None:
    """Return the value of the feature that identifies records; None if it is missing or empty."""
    try:
        example = decode_payload(payload)
    except DataError:
        return None
    features = example.context if isinstance(example, SequenceExample) else example
    value = features.get(key)
    return None if value is None or len(value) == 0 else value


def value_digest(value: FeatureValue) -> bytes:
    """Return 16 bytes that are equal for equal values of the same kind."""
    if not isinstance(value, list):
        return digest_of(value.dtype.name.encode() + value.tobytes())
    return digest_of(b"bytes" + b"".join(len(v).to_bytes(8, "little") + v for v in value))


def describe_value(value: FeatureValue) -> str:
    shown: list[str]
    if isinstance(value, list):
        shown = [_describe_bytes(item) for item in value[:_VALUES_SHOWN]]
    else:  # the shortest exact text
        shown = [str(item) for item in value[:_VALUES_SHOWN]]
    if len(value) == 1:
        return shown[0]
    more = f", … {len(value):,} values" if len(value) > _VALUES_SHOWN else ""
    return f"[{', '.join(shown)}{more}]"


def _describe_bytes(value: bytes) -> str:
    text = as_text(value) if len(value) <= LONGEST_TEXT else None
    if text is None:
        return format_count(len(value), "byte")
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


def schema_changes(a: Schema, b: Schema) -> Iterator[SchemaChange]:
    """Yield all differences, ordered by section and name."""
    if not a.record_count or not b.record_count:
        return  # without records there is no schema to compare
    if a.payload != b.payload:
        yield SchemaChange("", "", "payload", a.payload, b.payload)
    for section in dict.fromkeys([*a.sections, *b.sections]):
        of_a, of_b = a.sections.get(section, {}), b.sections.get(section, {})
        for key in sorted(of_a.keys() | of_b.keys()):
            one, other = of_a.get(key), of_b.get(key)
            if one is None or other is None:
                if a.is_complete if one is None else b.is_complete:  # otherwise it was left out
                    kinds = [None if known is None else known.kind for known in (one, other)]
                    yield SchemaChange(section, key, "feature", *kinds)
                continue
            facts, other_facts = _facts(one, a.record_count), _facts(other, b.record_count)
            if a.record_count - one.present == b.record_count - other.present:
                other_facts["present"] = facts["present"]  # explained by records added or removed
            for what, fact in facts.items():
                if fact != other_facts[what]:
                    yield SchemaChange(section, key, what, fact, other_facts[what])


def _facts(feature: FeatureSchema, record_count: int) -> dict[str, Any]:
    steps = None
    if feature.min_steps is not None:
        steps = span(feature.min_steps, feature.max_steps or 0)
    return {
        "kind": feature.kind,
        "content": feature.content_text,
        "values": span(feature.min_length, feature.max_length),
        "steps": steps,
        "present": f"{feature.present:,} of {record_count:,}",
    }
