"""What differs between two schemas? Features that one of them lacks, and how the others differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recordsmith.example import FeatureSchema, Schema


@dataclass(frozen=True)
class SchemaChange:
    """One thing that differs.

    section: features, context, feature_lists or examples; empty for the payload.
    feature: its name; empty for the payload.
    what: payload, feature (one of them lacks it), kind, content, values (how many an example has),
        steps, or present (how many records have it).
    a, b: what it is there, in words; None where the feature is not.
    """

    section: str
    feature: str
    what: str
    a: str | None
    b: str | None

    def to_json(self) -> dict[str, Any]:
        """section, feature, what, a, b."""
        return dict(vars(self))


def schema_changes(a: Schema, b: Schema) -> tuple[SchemaChange, ...]:
    """All that differs, in the order of the sections and names."""
    if not a.record_count or not b.record_count:
        return ()  # nothing is known of the one: that its records are missing says all
    changes = []
    if a.payload != b.payload:
        changes.append(SchemaChange("", "", "payload", a.payload, b.payload))
    for section in dict.fromkeys([*a.sections, *b.sections]):
        of_a, of_b = a.sections.get(section, {}), b.sections.get(section, {})
        for key in sorted(of_a.keys() | of_b.keys()):
            one, other = of_a.get(key), of_b.get(key)
            if one is None or other is None:
                if not (a.is_complete if one is None else b.is_complete):
                    continue  # it may be among those that the schema does not list
                words = [None if found is None else found.kind for found in (one, other)]
                changes.append(SchemaChange(section, key, "feature", *words))
                continue
            told = _facts(one), _facts(other)
            changes += [
                SchemaChange(section, key, what, told[0][what], told[1][what])
                for what in told[0]
                if told[0][what] != told[1][what]
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
    """Neither as many records have it, nor as many lack it: a record more or less says nothing."""
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
