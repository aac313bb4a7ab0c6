"""Tables of the files of others: what a connector read, as `expected.jsonl` describes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import recordsmith as rs

SECTIONS = {
    "Example": ("features",),
    "SequenceExample": ("context", "feature_lists"),
    "ELWC": ("context", "examples"),
}


def check_file(row: dict[str, Any], read: Callable[[], Any]) -> None:
    """Check what a connector reads from a file.

    Args:
        row: of `expected.jsonl`.
        read: returns a pyarrow.Table of all columns, in which a missing feature is null.
    """
    if row["tf_error"] is not None or row["payload"] not in SECTIONS:
        kind = rs.NotAnExampleError if row["tf_error"] is None else rs.CorruptDataError
        with pytest.raises(kind):
            read()
        return
    table = read()
    assert len(table) == row["records"]
    expected = {}
    for section in SECTIONS[row["payload"]]:
        for key, feature in row.get(section, {}).items():
            expected[f"{section}/{key}" if key in expected else key] = section, feature
    assert set(table.schema.names) == set(expected)
    for name, (section, feature) in expected.items():
        column = table[name]
        assert kind_of(column.type) == feature["kind"], name
        assert described(column.to_pylist(), section) == {**feature, "kind": None}, name


def kind_of(arrow_type: Any) -> str:
    """The kind of feature of a column, at the bottom of its lists."""
    while hasattr(arrow_type, "value_type"):
        arrow_type = arrow_type.value_type
    text = str(arrow_type)
    if "string" in text or "binary" in text:
        return "bytes"
    return {"int64": "int64", "float": "float", "null": "none"}[text]


def described(rows: list[Any], section: str) -> dict[str, Any]:
    """The figures of a column: lengths, how many rows have it, and steps of a feature list."""
    if section == "examples":  # of each Example in a list; an empty list where it lacks the feature
        rows = [example for row in rows if row is not None for example in row if example]
    found = [row for row in rows if row is not None]
    steps = {}
    values = found
    if section == "feature_lists":
        counts = [*map(len, found)]
        steps = {"min_steps": min(counts), "max_steps": max(counts)}
        values = [step for row in found for step in row]
    lengths = [len(value) if isinstance(value, list) else 1 for value in values]
    return {"kind": None, "min": min(lengths), "max": max(lengths), "present": len(found), **steps}
