"""Filters of Spark are the same conditions in recordsmith's syntax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.example import encode_columns
from recordsmith.where import parse_where
from recordsmith.wire import RecordBlock

datasource = pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyarrow")

from pyspark.sql.types import LongType, StructType  # noqa: E402 - installed

from recordsmith.spark import RecordsmithSource  # noqa: E402 - needs pyspark
from recordsmith.spark.filters import where_of  # noqa: E402 - needs pyspark

STORED = st.characters(codec="utf-8")
ODD = ["", "'", '"', "\\", "\\'\"", "\b\f\x7f", "\r\n\t", "a\0b", "\u2028", "né", "\U0001f600", "`"]


def matches(where: str, name: str, texts: list[str]) -> list[bool]:
    """Whether a condition is true, for records of one feature."""
    payloads, offsets = encode_columns({name: texts})
    block = RecordBlock(memoryview(payloads), offsets[:-1], np.diff(offsets), 0, 0)
    return parse_where(where).matches(block).tolist()  # type: ignore[no-any-return]


@given(st.text(STORED, max_size=6), st.text(STORED, min_size=1, max_size=3))
@example("\U0001f600\b\f\0'\"\\", "`\n")
def test_text_is_found_and_no_other(text: str, name: str) -> None:
    others = [text, *(odd for odd in ODD if odd != text), f"{text} "]
    types: dict[str, Any] = {name: str}
    where = where_of([datasource.EqualTo((name,), text)], types)
    assert where is not None
    assert matches(where, name, others) == [other == text for other in others]
    where = where_of([datasource.In((name,), (text, "'"))], types)
    assert where is not None
    assert matches(where, name, others) == [other in (text, "'") for other in others]
    where = where_of([datasource.StringStartsWith((name,), text)], types)
    assert where is not None
    assert matches(where, name, others) == [other.startswith(text) for other in others]


@pytest.mark.parametrize("text", ["\ud800", "a\udc80"])
def test_text_that_cannot_be_stored_is_left_to_spark(text: str) -> None:
    assert where_of([datasource.EqualTo(("name",), text)], {"name": str}) is None


@pytest.mark.parametrize("count", [10, 200_000])
def test_long_filters_are_left_to_spark(tmp_path: Path, count: int) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_columns({"x": [-1, 5, 7]})
    source = RecordsmithSource({"path": str(tmp_path), "push_filters": "true"})
    reader: Any = source.reader(StructType().add("x", LongType()))
    reader.pushFilters([datasource.In(("x",), tuple(range(count)))])
    found = [
        x for part in reader.partitions() for one in reader.read(part) for x in one.to_pydict()["x"]
    ]
    assert found == ([5, 7] if count == 10 else [-1, 5, 7])
