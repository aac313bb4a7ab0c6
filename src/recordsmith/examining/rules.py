"""Rules for the features of each record, made by hand, read from a file or derived from a schema.

A rule restricts one feature. `rules_of_schema` derives rules from the schema of a manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from recordsmith.example import Schema
from recordsmith.example.schema import FeatureSchema

RulePayload: TypeAlias = Literal["Example", "SequenceExample", "ELWC"]
SECTION_FIELDS: dict[RulePayload, dict[str, tuple[int, bool]]] = {
    "Example": {"features": (1, False)},
    "SequenceExample": {"context": (1, False), "feature_lists": (2, True)},
    "ELWC": {"context": (2, False), "examples": (1, False)},
}
"""Where each message stores its features: (field number, whether they are lists of steps). In a
ranking list (ELWC) the field holds Examples, which have the features.
"""


@dataclass(frozen=True)
class FeatureRule:
    """A rule for one feature.

    kind: bytes, float or int64; None allows any.
    required: whether every record must have the feature; in ranking lists every Example, or every
        context.
    min_values, max_values: bounds for the number of values; in a feature list, of each step. None
        means no upper bound.
    content: content of bytes, image or text; None allows any.
    allowed: the allowed values; None allows any. A str matches its UTF-8 bytes.
    min_value, max_value: bounds for numbers; NaN is outside of all bounds.
    """

    kind: str | None = None
    required: bool = False
    min_values: int = 0
    max_values: int | None = None
    content: str | None = None
    allowed: tuple[Any, ...] | None = None
    min_value: float | None = None
    max_value: float | None = None

    @property
    def restricts_values(self) -> bool:
        """Whether the check must decode values."""
        return not (self.allowed is None and self.min_value is None and self.max_value is None)

    def describe_count(self) -> str:
        """Describe the expected number of values."""
        if self.max_values is None:
            return f"{self.min_values} or more"
        if self.min_values == self.max_values:
            return str(self.min_values)
        return f"{self.min_values} to {self.max_values}"


@dataclass(frozen=True)
class Rules:
    """The rules for the records of a dataset.

    payload: the message type of each record; None if unknown.
    sections: the rules of each section of the message, by feature.
    knows_all: whether a feature without a rule is a defect.
    kinds_agree: whether a feature whose rule allows any kind must have one kind in all records.
    """

    payload: RulePayload | None = None
    sections: Mapping[str, Mapping[str, FeatureRule]] = field(default_factory=dict)
    knows_all: bool = False
    kinds_agree: bool = True


def rules_of_schema(schema: Schema) -> Rules | None:
    """Derive rules from a schema; None if its message type is unknown or mixed."""
    if schema.payload not in SECTION_FIELDS:
        return None
    payload: Any = schema.payload
    sections = rules_by_section(schema, rule_of_feature)
    return Rules(payload, sections, knows_all=schema.is_complete)


def rules_by_section(
    schema: Schema, rule: Callable[[FeatureSchema, int | None], FeatureRule]
) -> dict[str, dict[str, FeatureRule]]:
    """The rule of each feature, by section."""
    return {
        name: {key: rule(feature, _counted_in(schema, name)) for key, feature in section.items()}
        for name, section in schema.sections.items()
    }


def _counted_in(schema: Schema, section: str) -> int | None:
    """Count the messages that can have the features of a section; None if unknown, as for the
    Examples of ranking lists.
    """
    return None if section == "examples" else schema.record_count


def rule_of_feature(feature: FeatureSchema, record_count: int | None) -> FeatureRule:
    """Derive the rule for a feature; `record_count` is the number of records that can have it."""
    return FeatureRule(
        feature.kind if feature.kind not in ("mixed", "none") else None,
        required=record_count is not None and feature.present == record_count > 0,
        min_values=feature.min_length,
        max_values=feature.max_length,
        content=feature.content if feature.content in ("image", "text") else None,
    )
