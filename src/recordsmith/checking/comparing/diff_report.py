"""The report of a comparison of two datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from recordsmith.checking.comparing.features import FeatureChange, SchemaChange
from recordsmith.dataset import ClassNames
from recordsmith.support.reports import (
    Example,
    ReportContent,
    ReportTable,
    ShownFinding,
    SourceLocation,
)
from recordsmith.support.serialization import fields_to_json, to_json
from recordsmith.support.summaries import Report
from recordsmith.support.words import count as format_count
from recordsmith.support.words import first_of
from recordsmith.support.words import size as format_size

MAX_LISTED = 100
"""How many records of each sort are listed; the others are only counted."""

MAX_COMPARED = 2000
"""How many changed records are compared feature by feature for `changed_features`."""

_SPLITS_SHOWN = 3
_FEATURES_SHOWN = 20  # of a record
_FIELDS = (
    *("is_equal", "a", "b", "same_count", "same_bytes_count", "changed_count", "left_only_count"),
    *("right_only_count", "by", "shared_key_count", "is_same_order", "moved_count", "moves"),
    *("schema", "uncompared"),
)


@dataclass(frozen=True)
class SplitLocation(SourceLocation):
    """The place of a record, and its split."""

    split: str


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
    """A record with the same key but different content in both.

    key: the value of the identifying feature in A, as text; None if it has none.
    """

    key: str | None
    a: SplitLocation
    b: SplitLocation
    features: tuple[FeatureChange, ...]


@dataclass(frozen=True)
class LoneRecord:
    """A record that only one of the datasets has.

    key: the value of a feature that usually identifies a record, as text; None if it has none.
    """

    key: str | None
    place: SplitLocation

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
    changed_count: number of records with the same key but different content.
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
        counts = [
            (self.changed_count, "changed"),
            (self.left_only_count, "only in A"),
            (self.right_only_count, "only in B"),
            (self.moved_count, "in another split"),
        ]
        same = format_count(self.same_count, "record")
        differing = [f"{count:,} {what}" for count, what in counts if count]
        verdict = "equal" if self.is_equal else "different"
        head = f"the same {same}" if self.is_equal else ", ".join([f"{same} in both", *differing])
        return ReportContent(
            summary=f"{verdict}: {head}",
            verdict=verdict,
            level="good" if self.is_equal else "note",
            figures=[
                (f"{count:,}", what) for count, what in [(self.same_count, "in both"), *counts]
            ],
            tables=[_datasets(self), *_changed_features(self)],
            findings=[finding for finding in _findings(self) if finding.examples],
            notes=[*_notes(self)],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON-able dict, as described in docs/reference/json.md."""
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


def _datasets(report: DiffReport) -> ReportTable:
    rows = []
    for name, side in (("A", report.a), ("B", report.b)):
        splits = [f"{split} {count:,}" for split, count in side.splits.items()]
        numbers = (f"{side.record_count:,}", f"{side.shard_count:,}", format_size(side.size_bytes))
        rows.append((name, *numbers, side.compression, first_of(splits, _SPLITS_SHOWN)))
    heads = ("", "records", "shards", "size", "compression", "splits")
    return ReportTable("", heads, rows, heads[1:4], ("splits", "compression"))


def _changed_features(report: DiffReport) -> Iterator[ReportTable]:
    if report.changed_features:
        among = format_count(report.changed_count, "changed record")
        if report.compared_count < report.changed_count:
            among = f"the first {report.compared_count:,} changed records"
        matched = f", matched by {report.by}" if report.by is not None else ""
        rows = [(name, f"{count:,}") for name, count in report.changed_features.items()]
        title = f"features that differ in {among}{matched}"
        yield ReportTable(title, ("feature", "records"), rows, ("records",))


def _notes(report: DiffReport) -> Iterator[str]:
    """Yield what may differ between equal datasets, and what was not compared."""
    in_other_bytes = report.same_count - report.same_bytes_count
    if in_other_bytes:
        yield (
            f"{in_other_bytes:,} of the same records have other bytes: another order of features, "
            "or another packing of lists"
        )
    if not report.is_same_order:
        yield "the same records are in another order"
    if report.moves and not report.splits_are_comparable:
        yield "the splits have other names"
    a, b = report.class_names
    if (a is None) != (b is None) and not report.class_names_differ:
        yield f"only {'B' if a is None else 'A'} has class names"
    yield from (f"note: {reason}" for reason in report.uncompared)
    if report.shared_key_count:
        yield (
            f"{report.shared_key_count:,} more may be changed records, but share their "
            f"{report.by or ''} with other records"
        )
    if report.by is None and report.left_only_count and report.right_only_count:
        yield (
            "Changed records are listed as only in A and only in B: no feature identifies them. "
            "Name one with `--by KEY`."
        )


def _findings(report: DiffReport) -> Iterator[ShownFinding]:
    moves = [f"{move.a} -> {move.b}: {move.record_count:,}" for move in report.moves]
    if report.moved_count:
        yield _listed("splits", "records in another split", moves)
    yield _listed("features", "features of the datasets", map(_schema_line, report.schema))
    if report.class_names_differ:
        names = _differing_names(*report.class_names)
        yield _listed("classes", "names of the classes", names)
    yield _listed(
        "changed",
        "records that are in both, but differ",
        [
            f"{change.key or 'a record'} ({change.a}; {change.b}): "
            + "; ".join(map(_feature_line, change.features[:_FEATURES_SHOWN]))
            for change in report.changes
        ],
        report.changed_count,
        [place for change in report.changes for place in (change.a, change.b)],
    )
    for side, other, count, records in (
        ("A", "B", report.left_only_count, report.left_only),
        ("B", "A", report.right_only_count, report.right_only),
    ):
        lines = [str(record.place) + f": {record.key}" * bool(record.key) for record in records]
        places = [record.place for record in records]
        yield _listed(f"only in {side}", f"records that {other} lacks", lines, count, places)


def _listed(
    kind: str,
    text: str,
    lines: Iterable[str],
    count: int | None = None,
    places: Sequence[SplitLocation] = (),
) -> ShownFinding:
    examples = [*map(Example, lines)]
    return ShownFinding(
        kind,
        text,
        count=len(examples) if count is None else count,
        examples=examples,
        places=places,
    )


def _schema_line(change: SchemaChange) -> str:
    name = (change.feature or repr("")) if change.section else "payload"
    what = "" if change.what in ("feature", "payload") else f"{change.what} "
    return f"{name}{_of_section(change.section)}: {what}{_arrow(change.a, change.b)}"


def _feature_line(change: FeatureChange) -> str:
    return f"{change.feature}{_of_section(change.section)}: {_arrow(change.a, change.b)}"


def _arrow(a: str | None, b: str | None, none: str = "missing") -> str:
    return f"{none if a is None else a} -> {none if b is None else b}"


def _of_section(section: str) -> str:
    return {"": "", "features": ""}.get(section, f" ({section})")


def _differing_names(a: Sequence[str | None] | None, b: Sequence[str | None] | None) -> list[str]:
    if a is None or b is None:
        return [f"only {'B' if a is None else 'A'} has them"]
    return [
        f"{label}: {_arrow(name, other_name, 'none')}"
        for label, (name, other_name) in enumerate(zip_longest(a, b))
        if name != other_name
    ]
