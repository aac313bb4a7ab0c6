"""The report of a comparison of two datasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.dataset.labels import ClassNames
from recordsmith.examining.diff.comparing import RecordPlace
from recordsmith.examining.diff.diff_content import diff_content
from recordsmith.examining.diff.record_changes import FeatureChange, SchemaChange
from recordsmith.reports import ReportContent
from recordsmith.serialization import fields_to_json, to_json
from recordsmith.summaries import Report

MAX_LISTED = 100
"""How many records of each sort are listed; the others are only counted."""

MAX_COMPARED = 2000
"""How many changed records are compared feature by feature for `changed_features`."""

_FIELDS = (
    *("is_equal", "a", "b", "same_count", "same_bytes_count", "changed_count", "left_only_count"),
    *("right_only_count", "by", "shared_key_count", "is_same_order", "moved_count", "moves"),
    *("schema", "uncompared"),
)


@dataclass(frozen=True)
class DatasetSummary:
    """The counts of one dataset; `splits` maps each split to its number of records."""

    record_count: int
    shard_count: int
    size_bytes: int
    compression: str
    payload: str
    splits: dict[str, int]


@dataclass(frozen=True)
class RecordChange:
    """A record with the same key but different content in both, or that differs only in the key.

    key: the value of the identifying feature in A, as text; None if it has none.
    """

    key: str | None
    a: RecordPlace
    b: RecordPlace
    features: tuple[FeatureChange, ...]


@dataclass(frozen=True)
class LoneRecord:
    """A record that only one of the datasets has.

    key: the value of a feature that usually identifies a record, as text; None if it has none.
    """

    key: str | None
    place: RecordPlace

    def to_json(self) -> dict[str, Any]:
        """Return key, path, record and split."""
        return {"key": self.key, **to_json(self.place)}


class Move(NamedTuple):
    """The number of records that are in one split of A and in another split of B."""

    a: str
    b: str
    record_count: int


@dataclass(repr=False)
class DiffReport(Report):
    """The differences between datasets A and B.

    a, b: the counts of each dataset.
    same_count: number of records with equal content in both.
    same_bytes_count: how many of them are equal byte for byte.
    changed_count: number of records with the same key but different content, and of records that
        are equal except for their key.
    left_only_count, right_only_count: number of records only in A, or only in B.
    by: the feature that identifies changed records; None if there is no such feature, or no changed
        records.
    shared_key_count: number of records that were not compared because their key is not unique.
    is_same_order: whether the records in both have the same order within each split.
    moves: records in both, in splits of different names.
    splits_are_comparable: whether A and B have a split in common; if not, moves do not count as
        differences.
    schema: differences between features, as far as the schemas list them.
    uncompared: what was not compared, and why.
    class_names: the class names of A and B.
    class_names_differ: whether they differ, if both are known or both datasets have manifests.
    changed_features: for each feature, in how many of the first `compared_count` changed records it
        differs.
    changes, left_only, right_only: the first MAX_LISTED of each.
    """

    _shown = ("is_equal",)

    a: DatasetSummary
    b: DatasetSummary
    same_count: int = 0
    same_bytes_count: int = 0
    changed_count: int = 0
    left_only_count: int = 0
    right_only_count: int = 0
    by: str | None = None
    shared_key_count: int = 0
    is_same_order: bool = True
    moves: tuple[Move, ...] = ()
    splits_are_comparable: bool = True
    schema: tuple[SchemaChange, ...] = ()
    uncompared: tuple[str, ...] = ()
    class_names: tuple[ClassNames | None, ClassNames | None] = (None, None)
    class_names_differ: bool = False
    changed_features: dict[str, int] = field(default_factory=dict)
    compared_count: int = 0
    changes: list[RecordChange] = field(default_factory=list)
    left_only: list[LoneRecord] = field(default_factory=list)
    right_only: list[LoneRecord] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether both have records of the same content in the same splits, and the same classes.

        The order of records, shards and compression may differ.
        """
        return not (
            self.changed_count
            or self.left_only_count
            or self.right_only_count
            or self.moved_count
            or self.schema
            or self.class_names_differ
        )

    @property
    def moved_count(self) -> int:
        """Number of records in another split; 0 if the datasets have no split in common."""
        return sum(move.record_count for move in self.moves) if self.splits_are_comparable else 0

    def content(self) -> ReportContent:
        """Return what a terminal and a page show."""
        return diff_content(self)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON-able dict, as described in docs/json.md."""
        names_of_a, names_of_b = self.class_names
        return {
            **fields_to_json(self, _FIELDS),
            "class_names": {
                "is_equal": not self.class_names_differ,
                "a": to_json(names_of_a),
                "b": to_json(names_of_b),
            },
            "changed_features": [
                {"feature": feature, "records": count}
                for feature, count in self.changed_features.items()
            ],
            **fields_to_json(self, ("compared_count", "changes", "left_only", "right_only")),
        }
