"""Schema files, which people edit and `verify` checks records against: see `docs/schema.md`.

A generated schema is strict where all records agree and loose where they differ. Unknown keys are
errors, because a misspelled rule would silently never apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from recordsmith.checking.inspection import inspect
from recordsmith.checking.rules import SECTION_FIELDS, FeatureRule, RulePayload, Rules, rule_of
from recordsmith.dataset import Dataset, Paths, json_of, write_json
from recordsmith.format.example import Schema
from recordsmith.stores import PlaceLike, as_location, read_document
from recordsmith.support.errors import OptionError
from recordsmith.support.work import Progress

FORMAT = "recordsmith-schema"
VERSION = 1


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """The top level of a schema file."""

    format: Literal["recordsmith-schema"]
    version: Literal[1] = 1
    payload: RulePayload = "Example"
    other_features: Literal["refused", "allowed"] = "refused"
    features: dict[str, Any] = {}
    context: dict[str, Any] = {}
    feature_lists: dict[str, Any] = {}


class _Shape(msgspec.Struct):
    """The lengths of a feature in each dimension."""

    shape: list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)]]


@dataclass(frozen=True)
class SchemaFile:
    """A schema that each record of a dataset must satisfy.

    payload: Example or SequenceExample.
    sections: the rules by section and feature: "features" for Examples; "context" and
        "feature_lists" for SequenceExamples.
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
                expected="Examples or SequenceExamples",
            )
        count = schema.record_count
        return cls(
            payload,
            {
                name: {key: rule_of(known, count, is_loose=True) for key, known in section.items()}
                for name, section in schema.sections.items()
            },
        )

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
        write_json(path, self.to_json(), overwrite=overwrite)

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
        try:
            checked = msgspec.convert(document, _Document)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        sections: dict[str, dict[str, FeatureRule]] = {}
        for name in ("features", "context", "feature_lists"):
            rules = getattr(checked, name)
            if name in SECTION_FIELDS[checked.payload]:
                sections[name] = {key: _rule_from_json(name, key, rules[key]) for key in rules}
            elif rules:
                raise ValueError(f"{checked.payload}s have no {name}")
        restricted = any(
            rule.restricts_values for its in sections.values() for rule in its.values()
        )
        if restricted and checked.payload == "SequenceExample":
            raise ValueError("SequenceExamples do not support allowed, min and max")
        return cls(checked.payload, sections, checked.other_features == "allowed")

    def rules(self) -> Rules:
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
        OptionError: the records are not Examples or SequenceExamples.
        CorruptDataError, FileAccessError: as in `inspect`.

    Example:
        rs.schema("out").save("schema.json")
        assert rs.verify("copy", schema="schema.json").is_good
    """
    return SchemaFile.of(inspect(paths_or_dataset, split, progress=progress).schema)


def _rule_to_json(rule: FeatureRule) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(rule)
    low, high = document.pop("min_values", 0), document.pop("max_values", None)
    counts = {"min_values": low, "max_values": high}
    if low == high:
        counts = {"shape": [] if low == 1 else [low]}
    return {"kind": rule.kind, "required": rule.required, **counts, **document}


def _rule_from_json(section: str, key: str, document: Any) -> FeatureRule:
    try:
        rule = dict(msgspec.convert(document, dict[str, Any]))
        shape = rule.pop("shape", None)
        if shape is not None:
            if "min_values" in rule or "max_values" in rule:
                raise ValueError("shape excludes min_values and max_values")
            lengths = msgspec.convert({"shape": shape}, _Shape).shape
            rule["min_values"] = rule["max_values"] = math.prod(lengths)
        return msgspec.convert(rule, FeatureRule)
    except ValueError as error:  # also those of msgspec
        raise ValueError(f"{section}: {key!r}: {error}") from None
