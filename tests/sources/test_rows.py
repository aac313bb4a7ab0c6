"""Rows from Python: what becomes of each value, and of rows that do not agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.format.example import encode_example, encode_sequence_example
from recordsmith.sources import Rows, Source
from recordsmith.sources.tables.rows import _MAX_FAILURES

from ..raising import places, raises
from ..reading import read_sample
from .source_contract import SourceContract


class TestContract(SourceContract):
    def make_source(self, folder: Path, images: ModuleType) -> Source:  # noqa: ARG002
        rows = [
            {
                "x": number / 2,
                "name": f"n{number}",
                "class": "ab"[number % 2],
            }
            for number in range(8)
        ]
        return Rows(iter(rows), label="class", group="name")


def _read(source: Rows) -> list[Any]:
    return [rs.decode_example(read_sample(source, s)) for s in source.list_samples().samples]


def test_payloads_are_those_of_the_encoder() -> None:
    rows = [
        {"a": 1, "b": "é", "c": np.arange(3), "d": [b"x", b"y"], "e": None, "f": True},
        {"a": -5, "b": b"\xff", "c": np.zeros(2, np.int32), "d": [], "f": np.int64(0)},
        {},
    ]
    source = Rows(rows, kinds={"d": "bytes"})
    listing = source.list_samples()
    assert [s.name for s in listing.samples] == [f"rows/000000{n}" for n in range(3)]
    expected = [encode_example(row, {"d": "bytes"}) for row in rows]
    assert [read_sample(source, s) for s in listing.samples] == expected
    assert [s.size_bytes for s in listing.samples] == list(map(len, expected))
    assert listing.notices == ()
    assert source.list_samples().reader.kinds() == {"d": "bytes"}


def test_generator_is_used_once_and_lists_the_same() -> None:
    started = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal started
        started += 1
        for number in range(5000):
            yield {"n": number}

    source = Rows(rows())
    listing = source.list_samples()
    assert source.list_samples() == listing
    assert started == 1
    assert [int(features["n"][0]) for features in _read(source)] == list(range(5000))


def test_rows_that_cannot_be_encoded_are_reported_and_the_rest_is_packed(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield {"x": 1}
        yield {"x": object()}
        yield ["x", 1]
        yield {"x": 2**63}
        yield {"x": 2}

    with pytest.raises(rs.SourceError) as caught:
        rs.pack(Rows(rows()), tmp_path / "out")
    assert len(caught.value.problems) == 3
    assert places(caught.value.problems) == ["row 1", "row 2", "row 3"]
    for problem, words in zip(caught.value.problems, ("'x'", "a list", "int64"), strict=True):
        assert words in problem
    report = rs.pack(Rows(rows()), tmp_path / "out", skip_errors=True)
    assert (report.sample_count, len(report.skipped)) == (2, 3)
    assert sorted(int(e["x"][0]) for e in rs.open(tmp_path / "out")) == [1, 2]


def test_when_all_rows_are_wrong_it_ends_soon() -> None:
    given = iter(range(10**9))
    with pytest.raises(rs.SourceError, match="first 1000 rows") as caught:
        Rows(given).list_samples()  # type: ignore[arg-type]
    assert caught.value.problem_count == _MAX_FAILURES
    assert next(given) < 2 * _MAX_FAILURES


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "no rows"),
        ([{"x": 1}, ({"x": 1}, {"steps": [[1], [2]]})], {}, "rows are dicts"),
        ([{"y": "a\nb"}], {"label": "y"}, "line break"),
        *(
            ([{"x": 1}, {"x": [1, 2]}, {"x": 2}], {name: "x"}, "'x' cannot name .* row 1, ")
            for name in ("split", "group")
        ),
    ],
)
def test_rows_that_do_not_agree_are_refused(rows: Any, options: Any, words: str) -> None:
    with pytest.raises(rs.SourceError, match=words):
        Rows(rows, **options).list_samples()


class _Frame:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> None: ...
    def __iter__(self) -> Iterator[str]:
        return iter("x")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"x": [1, 2]}, "an iterable"),
        ("rows.csv", "'rows.csv'"),
        (None, "None"),
        (_Frame(), r"recordsmith\.Table"),
    ],
)
def test_invalid_rows_are_refused(given: Any, words: str) -> None:
    with raises(rs.OptionError, option="rows", match=words):
        Rows(given)


def test_kinds_that_differ_are_refused_unless_given() -> None:
    rows: list[Any] = [{"x": 1, "z": 3}, {"x": 2.5, "z": 4}, {"z": 5}]
    with raises(rs.SourceError, match="several kinds in x;.*kinds={'x': 'float'}"):
        Rows(rows).list_samples()
    source = Rows(rows, kinds={"x": "float"})
    payloads = [read_sample(source, sample) for sample in source.list_samples().samples]
    assert payloads == [encode_example(row, {"x": "float"}) for row in rows]


def test_sequences() -> None:
    rows: list[Any] = [
        ({"id": 1}, {"words": ["a", "bc"], "values": [[1, 2], [], [3.5]]}),
        rs.SequenceExample({"id": np.array([2])}, {"words": [], "values": [[1], [2]]}),
    ]
    source = Rows(rows, kinds={"values": "float"})
    assert [read_sample(source, sample) for sample in source.list_samples().samples] == [
        encode_sequence_example(context, lists, {"values": "float"}) for context, lists in rows
    ]


_VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.floats(width=32), min_size=1),
)
