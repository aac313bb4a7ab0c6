"""Compares two schemas: missing features, and differences between common ones."""

from __future__ import annotations

from dataclasses import dataclass

from recordsmith.example import FeatureSchema, Schema


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
