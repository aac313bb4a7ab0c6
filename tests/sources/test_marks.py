"""What columns say of rows: distinct values by number, splits in order, classes with labels."""

from __future__ import annotations

import pytest

import recordsmith as rs
from recordsmith.sources.tables.categories import CategoryColumn, as_labels, as_splits


def test_coded() -> None:
    coded = CategoryColumn()
    for value in ("b", None, "a", "b"):
        coded.append(value)
    assert coded.values == ["b", "a"]
    assert coded.missing_count == 1
    assert coded.numbers().tolist() == [0, -1, 1, 0]
    assert as_splits(coded)[0] == ("a", "b")
    assert as_splits(coded)[1].tolist() == [1, 0, 0, 1]
    labels, names = as_labels(coded, are_integers=False)
    assert (labels.tolist(), names) == ([1, -1, 0, 1], ("a", "b"))
    coded.append("x\ny")
    with pytest.raises(rs.SourceError, match="line break"):
        as_labels(coded, are_integers=False)
