"""Rules for the features of each record, read from a file or derived from a schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from recordsmith.format.example import Kind, Schema
from recordsmith.format.example.schema import FeatureSchema
from recordsmith.format.example.serialized_tensor import TensorSchema

RulePayload: TypeAlias = Literal["Example", "SequenceExample"]
SECTION_FIELDS: dict[RulePayload, dict[str, tuple[int, bool]]] = {
    "Example": {"features": (1, False)},
    "SequenceExample": {"context": (1, False), "feature_lists": (2, True)},
}
"""Where each message stores its features: (field number, whether they are lists of steps)."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)]
_ALLOWED: dict[Kind | None, tuple[type, ...]] = {
    "bytes": (str,),
    "int64": (int,),
    "float": (int, float),
}


class FeatureRule(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename={"min_value": "min", "max_value": "max"},
):
    """A rule for one feature.

    kind: bytes, float or int64; None allows any.
    required: whether every record must have the feature.
    min_values, max_values: bounds for the number of values; in a feature list, of each step. None
        means no upper bound.
    content: content of bytes, image, text or tensor; None allows any.
    tensor: dtype and shape of serialised tensors; None in it allows any.
    allowed: the allowed values; None allows any. A str matches its UTF-8 bytes.
    min_value, max_value: bounds for numbers; NaN is outside of all bounds.
    """

    kind: Kind | None = None
    required: bool = False
    min_values: _Count = 0
    max_values: _Count | None = None
    content: Literal["image", "text", "tensor"] | None = None
    tensor: TensorSchema | None = None
    allowed: Annotated[tuple[int | float | str, ...], msgspec.Meta(min_length=1)] | None = None
    min_value: int | float | None = None
    max_value: int | float | None = None

    def __post_init__(self) -> None:
        if self.max_values is not None and self.min_values > self.max_values:
            raise ValueError("expected min_values <= max_values")
        if self.content is not None and self.kind not in (None, "bytes"):
            raise ValueError(f"content needs kind bytes, got {self.kind}")
        if self.tensor is not None and self.content != "tensor":
            raise ValueError(f"tensor needs content tensor, got {self.content}")
        bounds = [bound for bound in (self.min_value, self.max_value) if bound is not None]
        if bounds and (self.kind in (None, "bytes") or not all(map(math.isfinite, bounds))):
            raise ValueError("min and max are finite numbers, and need kind int64 or float")
        if self.allowed is None:
            return
        if self.kind is None:
            raise ValueError("allowed needs a kind")
        for value in self.allowed:
            if not isinstance(value, _ALLOWED[self.kind]):
                raise ValueError(f"allowed has {value!r:.60}; expected values of kind {self.kind}")  # noqa: TRY004 - a file's
            if isinstance(value, str):
                value.encode()  # a lone surrogate is not text: a ValueError
            elif self.kind == "int64" and not -(1 << 63) <= value < 1 << 63:
                raise ValueError("allowed has a number outside of the int64 range")

    @property
    def restricts_values(self) -> bool:
        """Whether the check must decode values."""
        return not (self.allowed is None and self.min_value is None and self.max_value is None)

    def describe_count(self) -> str:
        if self.max_values is None:
            return f"{self.min_values} or more"
        if self.min_values == self.max_values:
            return str(self.min_values)
        return f"{self.min_values} to {self.max_values}"

    def describe_values(self) -> str:
        if self.allowed is not None:
            shown = ", ".join(map(repr, self.allowed[:8]))
            return f"one of {shown}" + (" …" if len(self.allowed) > 8 else "")
        low = "" if self.min_value is None else f"{self.min_value:g} or more"
        high = "" if self.max_value is None else f"{self.max_value:g} or less"
        return " and ".join(filter(None, (low, high)))


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
    sections = {
        name: {key: rule_of(feature, schema.record_count) for key, feature in section.items()}
        for name, section in schema.sections.items()
    }
    return Rules(payload, sections, knows_all=schema.is_complete)


def rule_of(
    feature: FeatureSchema, record_count: int | None, *, is_loose: bool = False
) -> FeatureRule:
    """Derive the rule for a feature; with `is_loose`, lists of varying length may have any."""
    is_fixed = not is_loose or feature.min_length == feature.max_length
    kind: Any = feature.kind if feature.kind in _ALLOWED else None
    content: Any = feature.content if feature.content != "raw" else None
    return FeatureRule(
        kind,
        required=record_count is not None and feature.present == record_count > 0,
        min_values=feature.min_length if is_fixed else min(feature.min_length, 1),
        max_values=feature.max_length if is_fixed else None,
        content=content,
        tensor=feature.tensor,
    )
