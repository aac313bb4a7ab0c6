"""The number of features counted at once does not change the result; other messages are named."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.checking.schema_file import SchemaFile
from recordsmith.checking.verification import payload_check

D = rs.Defect
NAMES = [f"f{number}" for number in range(12)]
VALUES: list[Any] = [1, 0.5, "text", [1, 2], 7]
RULES: dict[str, Any] = {
    "f0": {"required": True},
    "f1": {"kind": "int64", "max": 5},
    "f2": {"kind": "bytes", "required": True, "shape": []},
    "f11": {"kind": "float"},
}

records_of_features = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=12),
    min_size=1,
    max_size=40,
)


def _wrong(number: int, features: dict[str, Any]) -> set[Any]:
    """The expected defects of a record, feature by feature."""
    wrong = {(number, key, D.MISSING_FEATURE) for key in ("f0", "f2") if key not in features}
    for key, value in features.items():
        kind = {int: "int64", float: "float", str: "bytes", list: "int64"}[type(value)]
        if kind != RULES.get(key, {}).get("kind", kind):
            wrong.add((number, key, D.FEATURE_KIND))
        elif key not in RULES and key != "f3":
            wrong.add((number, key, D.UNEXPECTED_FEATURE))
    if not wrong and features.get("f1") == 7:  # values are checked only if all else is right
        wrong.add((number, "f1", D.FEATURE_VALUE))
    return wrong


@given(records=records_of_features)
def test_rules_against_a_plain_check(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory, write: Any
) -> None:
    rules = {"format": "recordsmith-schema", "features": {**RULES, "f3": {}}}
    path = write(tmp_path_factory.mktemp("wide") / "a.tfrecord", records)
    expected = {one for number, features in enumerate(records) for one in _wrong(number, features)}
    report = rs.verify(path, schema=SchemaFile.from_json(rules))
    assert {(e.record, e.feature, e.defect) for e in report.defects} == expected
    assert report.defect_count == len(expected)


def test_a_map_in_several_pieces(write: Any, tmp_path: Path, reference: Any) -> None:
    """A message may have its map in several pieces, which protobuf joins."""
    steps = {f"s{number}": [[1], [2, number]] for number in range(9)}
    good = rs.encode_sequence_example({}, steps)
    split = b"".join(rs.encode_sequence_example({}, {key: value}) for key, value in steps.items())
    bad = good + rs.encode_sequence_example({}, {"s8": [["a"]]})
    parsed = reference.parse("SequenceExample", split)
    assert reference.plain_lists(parsed.feature_lists).keys() == steps.keys()
    path = write(tmp_path / "a.tfrecord", [good, split, bad, good])
    rules = rs.schema(write(tmp_path / "b.tfrecord", [good]))
    (error,) = rs.verify(path, schema=rules).defects
    assert (error.record, error.feature, error.defect) == (2, "s8", D.FEATURE_KIND)


def test_records_of_very_many_features_are_reported_as_unchecked(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_check, "MAX_FEATURES", 200)
    peaks = []
    for count in (400, 8_000):
        features: dict[str, Any] = {f"feature/{number:06d}": number for number in range(count)}
        path = write(tmp_path / f"{count}.tfrecord", [{"x": 1}, features, {"x": "wrong"}, {"x": 1}])
        rs.verify(path, deep=True)  # warm up
        tracemalloc.start()
        report = rs.verify(path, deep=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert [(error.defect, error.record) for error in report.defects] == [(D.FEATURE_KIND, 2)]
        assert "1 records with more than " in report.unchecked[0]
    assert peaks[1] - peaks[0] < 4 * path.stat().st_size


def test_the_kinds_of_very_many_features_of_a_shard(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_check, "MAX_FEATURES", 20)
    path = write(tmp_path / "a.tfrecord", [{f"f{number:03d}": 1} for number in range(50)])
    report = rs.verify(path, deep=True)
    assert report.is_good
    assert "different features" in report.unchecked[0]


def test_ranking_lists_are_not_checked(write: Any, tmp_path: Path, reference: Any) -> None:
    """Also not those without values, which do not look like lists."""
    example = reference.delimited(1, rs.encode_example({"x": 1}))
    lists = [example, b"", reference.delimited(1, b"") + reference.delimited(2, b""), example]
    report = rs.verify(write(tmp_path / "a.tfrecord", lists), deep=True)
    assert (report.is_good, report.record_count) == (True, 4), report.defects
    assert "ranking lists (ELWC), not Examples" in report.unchecked[0]
    with pytest.raises(rs.OptionError, match="'ELWC'"):
        rs.schema(write(tmp_path / "b.tfrecord", [example]))
