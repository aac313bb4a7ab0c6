"""What is known of the features of records before they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from recordsmith.format.example import FeatureSchema, Schema
from recordsmith.support.errors import DataError

FindKey: TypeAlias = Callable[[str, int], "FeatureSchema | Literal[False] | None"]


def _unknown(_key: str, _max_bytes: int) -> None:
    return None


def _find_any(
    searches: Sequence[FindKey], key: str, max_bytes: int
) -> FeatureSchema | Literal[False] | None:
    found = [find_key(key, max_bytes) for find_key in searches]
    return next(filter(None, found), None if None in found else False)


class Preview(NamedTuple):
    """The features of records, as far as they are known.

    schema: of all records, or of the first ones.
    is_complete: whether the schema covers all of them.
    listed: all features that can be read from the records, or others of their files; None if
        unknown.
    is_sure: whether no record has others.
    records: yields positions and payloads, of which an error can name some.
    find_key: called as `find_key(key, max_bytes)`; returns the schema of a key in a record of the
        files, False if none has it, None if it takes reading more bytes to know.
    faults: the errors of features that cannot be read from any of the first records, by key.
    """

    schema: Schema
    is_complete: bool
    listed: Mapping[str, FeatureSchema] | None = None
    is_sure: bool = False
    records: Callable[[], Iterable[tuple[int, bytes]]] = tuple
    find_key: FindKey = _unknown
    faults: Mapping[str, DataError] = {}

    @property
    def ambiguous(self) -> set[str]:
        """The keys of both a feature of the context and a feature list."""
        sections = self.schema.sections
        return {*sections.get("context", {})} & {*sections.get("feature_lists", {})}

    @property
    def features(self) -> Mapping[str, FeatureSchema]:
        """The features of the schema, and those that only other records of the files have."""
        listed = self.listed or {}
        own = {
            key: known
            for key, known in self.schema.columns.items()
            if known.kind != "none" or key not in listed
        }
        return {**listed, **own}

    @classmethod
    def merged(cls, previews: Sequence[Preview]) -> Preview:
        """Return the preview of several datasets together."""
        if len(previews) == 1:
            return previews[0]
        listed: dict[str, FeatureSchema] | None = None
        if all(preview.listed is not None for preview in previews):
            listed = {key: known for one in previews for key, known in one.features.items()}
        schemas = [preview.schema for preview in previews]
        if {schema.payload for schema in schemas} == {"Example", "SequenceExample"}:
            schemas = [  # the features of Examples are read as those of the context
                schema
                if schema.payload != "Example"
                else replace(
                    schema, payload="SequenceExample", sections={"context": schema.features}
                )
                for schema in schemas
            ]
        return cls(
            Schema.merged(schemas),
            all(preview.is_complete for preview in previews),
            listed,
            all(preview.is_sure for preview in previews),
            find_key=partial(_find_any, [preview.find_key for preview in previews]),
        )
