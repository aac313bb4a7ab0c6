"""Schema files, which people edit and `verify` checks records against: see `docs/schema.md`.

A generated schema is strict where all records agree and loose where they differ. Unknown keys are
errors, because a misspelled rule would silently never apply.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from recordsmith.dataset import Dataset
from recordsmith.dataset.documents import json_of
from recordsmith.dataset.locate import Paths
from recordsmith.errors import OptionError, suggest_names
from recordsmith.examining.inspection import inspect
from recordsmith.examining.rules import (
    SECTION_FIELDS,
    FeatureRule,
    RulePayload,
    Rules,
    rules_by_section,
)
from recordsmith.example import Schema
from recordsmith.example.payload import KIND_NUMBERS
from recordsmith.example.schema import FeatureSchema
from recordsmith.stores import PlaceLike, as_location, read_document, write_atomically
from recordsmith.work import Progress

FORMAT = "recordsmith-schema"
VERSION = 1
_TOP_KEYS = ("format", "version", "payload", "other_features")
_RULE_KEYS = (
    "kind",
    "required",
    "shape",
    "min_values",
    "max_values",
    "content",
    "allowed",
    "min",
    "max",
)
_CONTENTS = ("image", "text")


@dataclass(frozen=True)
class SchemaFile:
    """A schema that each record of a dataset must satisfy.

    payload: Example, SequenceExample or ELWC.
    sections: the rules by section and feature: "features" for Examples; "context" and
        "feature_lists" for SequenceExamples; "context" and "examples" for ranking lists (ELWC).
    allows_others: whether records may have features without a rule.
    """

    payload: RulePayload
    sections: Mapping[str, Mapping[str, FeatureRule]] = field(default_factory=dict)
    allows_others: bool = False

    @classmethod
    def of(cls, schema: Schema) -> SchemaFile:
        """Make a schema file from the schema of a dataset.

        Kinds are strict, and so are fixed numbers of values and features that all records have.
        Lists of varying length may have any length.

        Raises:
            OptionError: the records are other messages, or have too many features.
        """
        schema.check_complete("a schema file lists all features")
        payload: Any = schema.payload
        if payload not in SECTION_FIELDS:
            raise OptionError(
                f"cannot make a schema file from payloads of type {schema.payload!r}",
                option="paths",
                expected="Examples, SequenceExamples or ranking lists (ELWC)",
            )
        return cls(payload, rules_by_section(schema, _loose_rule))

    @classmethod
    def load(cls, path: PlaceLike) -> SchemaFile:
        """Read a schema file.

        Raises:
            FileAccessError: the file cannot be read.
            OptionError: the file is not a valid schema file; the message shows the invalid part.
        """
        place = as_location(path)
        try:
            return cls.from_json(json_of(read_document(place), with_keys_once=True))
        except ValueError as error:
            raise OptionError(
                f"invalid schema file {place}: {error}",
                option="schema",
                remedy="Pass a file that `recordsmith schema` wrote.",
            ) from None

    def save(self, path: PlaceLike, *, overwrite: bool = False) -> None:
        """Write the schema file atomically.

        Raises:
            OptionError: the file exists, and `overwrite` is False.
            FileAccessError: the file cannot be written.
        """
        data = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        # bytes of a key that are not UTF-8 become \\udcff, as JSON escapes them
        write_atomically(path, data.encode("utf-8", "backslashreplace"), overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        """Return the document, as described in `docs/schema.md`."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "payload": self.payload,
            "other_features": "allowed" if self.allows_others else "refused",
            **{
                name: {key: _rule_to_json(rule) for key, rule in section.items()}
                for name, section in self.sections.items()
            },
        }

    @classmethod
    def from_json(cls, document: Any) -> SchemaFile:
        """Make a schema file from a document.

        Raises:
            ValueError: the document is invalid; the message shows the invalid part.
        """
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise ValueError(f'expected an object with "format": "{FORMAT}"')
        if document.get("version", VERSION) != VERSION:
            raise ValueError(
                f"version is {document['version']!r}; this version of recordsmith reads {VERSION}"
            )
        payload: Any = document.get("payload", "Example")
        if payload not in get_args(RulePayload):
            raise ValueError(f"payload is {payload!r}; expected {', '.join(get_args(RulePayload))}")
        known = (*_TOP_KEYS, *SECTION_FIELDS[payload])
        for key in document:
            if key not in known:
                raise ValueError(f"unknown key {key!r}; {suggest_names(key, known, '')}")
        others = document.get("other_features", "refused")
        if others not in ("refused", "allowed"):
            raise ValueError(f"other_features is {others!r}; expected refused or allowed")
        sections: dict[str, dict[str, FeatureRule]] = {}
        for name in SECTION_FIELDS[payload]:
            section = document.get(name, {})
            if not isinstance(section, Mapping):
                raise ValueError(f"{name} is {section!r:.60}; expected an object")  # noqa: TRY004 - a file's
            sections[name] = {}
            for key, rule in section.items():
                try:
                    sections[name][key] = parsed = _rule_from_json(rule)
                    if parsed.restricts_values and payload == "SequenceExample":
                        raise ValueError("SequenceExamples do not support allowed, min and max")
                except ValueError as error:
                    raise ValueError(f"{name}: {key!r}: {error}") from None
        return cls(payload, sections, others == "allowed")

    def rules(self) -> Rules:
        """Return the rules for verification."""
        return Rules(
            self.payload, self.sections, knows_all=not self.allows_others, kinds_agree=False
        )


def schema(
    paths_or_dataset: Paths | Dataset,
    split: str | None = None,
    *,
    progress: Progress | None = None,
) -> SchemaFile:
    """Derive a schema file from the records of a dataset.

    Args:
        paths_or_dataset: as in `inspect`.
        split: only this split, or part of one: train, train[:80%]. None for all.
        progress: called as `progress(done_bytes, total_bytes)`.

    Raises:
        OptionError: the records are not Examples, SequenceExamples or ranking lists.
        CorruptDataError, FileAccessError: as in `inspect`.

    Example:
        rs.schema("train").save("schema.json")
        rs.verify("other", schema="schema.json")
    """
    return SchemaFile.of(inspect(paths_or_dataset, split, progress=progress).schema)


def _loose_rule(feature: FeatureSchema, record_count: int | None) -> FeatureRule:
    is_fixed = feature.min_length == feature.max_length
    return FeatureRule(
        feature.kind if feature.kind in KIND_NUMBERS else None,
        required=record_count is not None and feature.present == record_count > 0,
        min_values=feature.min_length if is_fixed else min(feature.min_length, 1),
        max_values=feature.max_length if is_fixed else None,
        content=feature.content if feature.content in _CONTENTS else None,
    )


def _rule_to_json(rule: FeatureRule) -> dict[str, Any]:
    document: dict[str, Any] = {} if rule.kind is None else {"kind": rule.kind}
    document["required"] = rule.required
    if rule.min_values == rule.max_values:
        document["shape"] = [] if rule.min_values == 1 else [rule.min_values]
    else:
        document |= {"min_values": rule.min_values, "max_values": rule.max_values}
    if rule.content is not None:
        document["content"] = rule.content
    if rule.allowed is not None:
        document["allowed"] = list(rule.allowed)
    for key, value in (("min", rule.min_value), ("max", rule.max_value)):
        if value is not None:
            document[key] = value
    return document


def _rule_from_json(document: Any) -> FeatureRule:
    if not isinstance(document, Mapping):
        raise ValueError(f"rule is {document!r:.60}; expected an object")  # noqa: TRY004 - a file's
    for key in document:
        if key not in _RULE_KEYS:
            raise ValueError(f"unknown key {key!r}; {suggest_names(key, _RULE_KEYS, '')}")
    kind = _one_of(document, "kind", (None, *KIND_NUMBERS))
    content = _one_of(document, "content", (None, *_CONTENTS))
    if content is not None and kind not in (None, "bytes"):
        raise ValueError(f"content needs kind bytes, got {kind}")
    low, high = _counts(document)
    return FeatureRule(
        kind,
        _one_of(document, "required", (False, True), default=False),
        low,
        high,
        content,
        _allowed(document, kind),
        _bound(document, "min", kind),
        _bound(document, "max", kind),
    )


def _one_of(
    document: Mapping[str, Any], key: str, known: tuple[Any, ...], default: Any = None
) -> Any:
    value = document.get(key, default)
    if isinstance(value, (list, dict)) or not any(value is one or value == one for one in known):
        expected = ", ".join("null" if one is None else json.dumps(one) for one in known)
        raise ValueError(f"{key} is {value!r:.60}; expected one of {expected}")
    return value


def _counts(document: Mapping[str, Any]) -> tuple[int, int | None]:
    shape = document.get("shape")
    if shape is not None:
        if "min_values" in document or "max_values" in document:
            raise ValueError("shape excludes min_values and max_values")
        if not isinstance(shape, list) or not all(map(_is_count, shape)):
            raise ValueError(
                f"shape is {shape!r:.60}; expected a list of lengths, [] for one value"
            )
        count = math.prod(shape)
        return count, count
    low, high = document.get("min_values", 0), document.get("max_values")
    if not _is_count(low) or not (high is None or (_is_count(high) and high >= low)):
        raise ValueError(
            f"min_values is {low!r:.40} and max_values is {high!r:.40}; expected integers with "
            "min_values <= max_values, or null for no maximum"
        )
    return low, high


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**60


def _allowed(document: Mapping[str, Any], kind: str | None) -> tuple[Any, ...] | None:
    allowed = document.get("allowed")
    if allowed is None:
        return None
    fits = {"bytes": (str,), "int64": (int,), "float": (int, float)}.get(kind or "")
    if fits is None:
        raise ValueError("allowed needs a kind")
    is_list = isinstance(allowed, list) and allowed
    if not is_list or not all(
        isinstance(value, fits) and not isinstance(value, bool) for value in allowed
    ):
        raise ValueError(f"allowed is {allowed!r:.60}; expected a list of values of kind {kind}")
    if kind == "bytes":
        "".join(allowed).encode()  # a lone surrogate is not text: a ValueError
    if kind == "int64" and not all(-(2**63) <= value < 2**63 for value in allowed):
        raise ValueError("allowed has a number outside of the int64 range")
    return tuple(allowed)


def _bound(document: Mapping[str, Any], key: str, kind: str | None) -> float | None:
    value = document.get(key)
    if value is None:
        return None
    if kind not in ("int64", "float"):
        raise ValueError(f"{key} needs kind int64 or float")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{key} is {value!r:.60}; expected a number")
    return value
