"""What is known of the features of records before they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from recordsmith.errors import DataError
from recordsmith.example import FeatureSchema, Schema

HasKey: TypeAlias = Callable[[str, int], "bool | None"]


def _unknown(_key: str, _max_bytes: int) -> None:
    return None


def _any_has(searches: Sequence[HasKey], key: str, max_bytes: int) -> bool | None:
    found = [has_key(key, max_bytes) for has_key in searches]
    return True if True in found else None if None in found else False


class Preview(NamedTuple):
    """The features of records, as far as they are known.

    schema: of all records, or of the first ones.
    is_complete: whether the schema covers all of them.
    listed: all features that can be read from the records, or others of their files; None if
        unknown.
    is_sure: whether no record has others.
    records: yields positions and payloads, of which an error can name some.
    has_key: called as `has_key(key, max_bytes)`; returns whether a record of the files has a key,
        None if that takes reading more bytes.
    faults: the errors of features that cannot be read from any of the first records, by key.
    """

    schema: Schema
    is_complete: bool
    listed: Mapping[str, FeatureSchema] | None = None
    is_sure: bool = False
    records: Callable[[], Iterable[tuple[int, bytes]]] = tuple
    has_key: HasKey = _unknown
    faults: Mapping[str, DataError] = {}

    @property
    def features(self) -> Mapping[str, FeatureSchema]:
        """The features of the schema, and those that only other records of the files have."""
        listed = self.listed or {}
        own = {
            key: known
            for key, known in self.schema.features.items()
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
        return cls(
            Schema.merged([preview.schema for preview in previews]),
            all(preview.is_complete for preview in previews),
            listed,
            all(preview.is_sure for preview in previews),
            has_key=partial(_any_has, [preview.has_key for preview in previews]),
        )
