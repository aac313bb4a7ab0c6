"""What must hold for the features of each record: rules, made by hand, from a file or of a schema.

A rule speaks of one feature. `rules_of_schema` makes the rules that a manifest's schema stands for:
all its records together allow no more than this.
"""

from __future__ import annotations

from collections.abc import Mapping
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
"""Where each message keeps its features: (field number, whether they are lists of steps). Of a
ranking list (ELWC) the field holds Examples that have them.
"""


@dataclass(frozen=True)
class FeatureRule:
    """What must hold for one feature.

    kind: bytes, float or int64; None: any.
    required: every record has it; of a ranking list every Example, or every context.
    min_values, max_values: how many values its list has; None: any number. Of a feature list in
        each step.
    content: of bytes: image or text; None: any.
    allowed: the values that there may be; None: any. Text stands for its UTF-8 bytes.
    min_value, max_value: of numbers; NaN is outside of any bounds.
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
    def speaks_of_values(self) -> bool:
        """Whether values must be decoded to tell."""
        return not (self.allowed is None and self.min_value is None and self.max_value is None)

    def count_in_words(self) -> str:
        """How many values are expected."""
        if self.max_values is None:
            return f"{self.min_values} or more"
        if self.min_values == self.max_values:
            return str(self.min_values)
        return f"{self.min_values} to {self.max_values}"


@dataclass(frozen=True)
class Rules:
    """What must hold for the records of a dataset.

    payload: what each record is; None: not known.
    sections: for each section of the payload its rules, by feature.
    knows_all: a feature that has no rule is wrong.
    kinds_agree: a feature whose rule names no kind has one kind all the same, whichever it is.
    """

    payload: RulePayload | None = None
    sections: Mapping[str, Mapping[str, FeatureRule]] = field(default_factory=dict)
    knows_all: bool = False
    kinds_agree: bool = True


def rules_of_schema(schema: Schema) -> Rules | None:
    """The rules that a schema stands for; None if it is of other payloads, or of several."""
    if schema.payload not in SECTION_FIELDS:
        return None
    payload: Any = schema.payload
    return Rules(
        payload,
        {
            name: {
                key: rule_of_feature(feature, counted_in(schema, name))
                for key, feature in section.items()
            }
            for name, section in schema.sections.items()
        },
        knows_all=schema.is_complete,
    )


def counted_in(schema: Schema, section: str) -> int | None:
    """How many can have the features of a section; None if the schema does not tell, as of the
    Examples in ranking lists.
    """
    return None if section == "examples" else schema.record_count


def rule_of_feature(feature: FeatureSchema, record_count: int | None) -> FeatureRule:
    """What all records together say of a feature, as a rule for each; `record_count` of them can
    have it.
    """
    return FeatureRule(
        feature.kind if feature.kind not in ("mixed", "none") else None,
        required=record_count is not None and feature.present == record_count > 0,
        min_values=feature.min_length,
        max_values=feature.max_length,
        content=feature.content if feature.content in ("image", "text") else None,
    )
