"""What a comparison of two datasets found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.diff.comparing import RecordPlace
from recordsmith.examining.diff.record_changes import FeatureChange
from recordsmith.examining.diff.schema_changes import SchemaChange

MAX_LISTED = 100
"""So many records of each sort are listed; the rest is counted."""

MAX_COMPARED = 2000
"""Of so many changed records the features are compared, and counted in `changed_features`."""


@dataclass(frozen=True)
class DatasetSummary:
    """One of the two datasets in numbers; splits: how many records each has."""

    record_count: int
    shard_count: int
    size_bytes: int
    compression: str
    payload: str
    splits: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """records, shards, size_bytes, compression, payload, splits."""
        return {
            "records": self.record_count,
            "shards": self.shard_count,
            "size_bytes": self.size_bytes,
            "compression": self.compression,
            "payload": self.payload,
            "splits": self.splits,
        }


@dataclass(frozen=True)
class RecordChange:
    """A record that both datasets have, by its key, with other content.

    key: the value of the feature by which it is known, in words.
    """

    key: str
    a: RecordPlace
    b: RecordPlace
    features: tuple[FeatureChange, ...]

    def to_json(self) -> dict[str, Any]:
        """key, a, b, features."""
        return {
            "key": self.key,
            "a": _place_json(self.a),
            "b": _place_json(self.b),
            "features": [change.to_json() for change in self.features],
        }


@dataclass(frozen=True)
class LoneRecord:
    """A record that only one of the datasets has.

    key: what it has in a feature that usually names a record, in words; None if there is none.
    """

    key: str | None
    place: RecordPlace

    def to_json(self) -> dict[str, Any]:
        """key, path, record, split."""
        return {"key": self.key, **_place_json(self.place)}


class Move(NamedTuple):
    """How many records are in one split of A, and in another of B."""

    a: str
    b: str
    record_count: int


@dataclass
class DiffReport:
    """What differs between datasets A and B.

    a, b: each in numbers.
    same_count: records that both have.
    same_bytes_count: those of them that are equal byte for byte.
    changed_count: records that both have by their key, with other content.
    only_a_count, only_b_count: records that one of them has.
    by: the feature by which changed records are known; None if there is none, or no need of one.
    shared_key_count: how many more would be known as changed if no two records of a dataset had the
        same key.
    renamed_count: how many of the first MAX_COMPARED records that only A has are the same as such
        of B but for the feature `name`; that is None where there are none.
    is_same_order: whether the records that both have are in the same order, split by split.
    moves: records that both have, in splits of other names.
    splits_are_comparable: whether A and B have a split in common; else moves are no difference.
    schema: what differs in the features, as far as schemas list them.
    remarks: sentences on what was not compared, and why.
    class_names: those of A and of B; they differ if both are known, or if one dataset of two with
        manifests lacks them.
    changed_features: in how many of the first `compared_count` changed records each differs.
    changes, only_a, only_b: the first MAX_LISTED.
    """

    a: DatasetSummary
    b: DatasetSummary
    same_count: int = 0
    same_bytes_count: int = 0
    changed_count: int = 0
    only_a_count: int = 0
    only_b_count: int = 0
    by: str | None = None
    shared_key_count: int = 0
    renamed_count: int = 0
    name: str | None = None
    is_same_order: bool = True
    moves: tuple[Move, ...] = ()
    splits_are_comparable: bool = True
    schema: tuple[SchemaChange, ...] = ()
    remarks: tuple[str, ...] = ()
    class_names: tuple[ClassNames | None, ClassNames | None] = (None, None)
    class_names_differ: bool = False
    changed_features: dict[str, int] = field(default_factory=dict)
    compared_count: int = 0
    changes: list[RecordChange] = field(default_factory=list)
    only_a: list[LoneRecord] = field(default_factory=list)
    only_b: list[LoneRecord] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """The same records with the same content in the same splits, and the same class names.

        Their order, their shards and how these are compressed may differ.
        """
        return not (
            self.changed_count
            or self.only_a_count
            or self.only_b_count
            or self.moved_count
            or self.schema
            or self.class_names_differ
        )

    @property
    def moved_count(self) -> int:
        """Records that went from one split to another; 0 where the splits have other names."""
        return sum(move.record_count for move in self.moves) if self.splits_are_comparable else 0

    def to_json(self) -> dict[str, Any]:
        """As in docs/json.md."""
        return {
            "is_equal": self.is_equal,
            "a": self.a.to_json(),
            "b": self.b.to_json(),
            "same": self.same_count,
            "same_bytes": self.same_bytes_count,
            "changed": self.changed_count,
            "only_a": self.only_a_count,
            "only_b": self.only_b_count,
            "by": self.by,
            "shared_key": self.shared_key_count,
            "renamed": self.renamed_count,
            "name": self.name,
            "is_same_order": self.is_same_order,
            "moved": self.moved_count,
            "moves": [
                {"a": move.a, "b": move.b, "records": move.record_count} for move in self.moves
            ],
            "schema": [change.to_json() for change in self.schema],
            "remarks": list(self.remarks),
            "class_names": {
                "is_equal": not self.class_names_differ,
                **{
                    side: None if names is None else list(names)
                    for side, names in zip("ab", self.class_names, strict=True)
                },
            },
            "changed_features": [
                {"feature": feature, "records": count}
                for feature, count in self.changed_features.items()
            ],
            "compared": self.compared_count,
            "changes": [change.to_json() for change in self.changes],
            "records_only_a": [record.to_json() for record in self.only_a],
            "records_only_b": [record.to_json() for record in self.only_b],
        }


def _place_json(place: RecordPlace) -> dict[str, Any]:
    return {"path": place.path, "record": place.number, "split": place.split}
