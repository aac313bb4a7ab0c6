"""The number of features counted at once does not change the result."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordsmith as rs
from recordsmith.examining import SchemaFile
from recordsmith.examining.rules import FeatureRule, Rules
from recordsmith.examining.verification import section_check, shard_features
from recordsmith.examining.verification.rule_check import RuleCheck

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
    max_size=6,
)


def _found(path: Path, rules: dict[str, Any]) -> list[Any]:
    report = rs.verify(path, schema=SchemaFile.from_json(rules))
    return sorted((e.record, e.feature, e.defect, e.detail) for e in report.defects)


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


@pytest.mark.parametrize("at_once", [1, 3, 5, 1 << 14])
@given(records=records_of_features)
def test_any_number_at_once(
    at_once: int,
    records: list[dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
    write: Any,
) -> None:
    rules = {"format": "recordsmith-schema", "features": {**RULES, "f3": {}}}
    path = write(tmp_path_factory.mktemp("wide") / "a.tfrecord", records)
    expected = {one for number, features in enumerate(records) for one in _wrong(number, features)}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(section_check, "COUNTED_AT_ONCE", at_once)
        found = _found(path, rules)
    assert {one[:3] for one in found} == expected
    assert len(found) == len(expected)


def test_features_without_a_rule() -> None:
    """If rules do not cover all features, the others may have any kind."""
    payloads = [rs.encode_example({"a": 1, "b": value}) for value in (1, 1, 0.5)]
    lengths = np.array(list(map(len, payloads)), np.int64)
    spans = b"".join(payloads), np.cumsum(lengths) - lengths, lengths

    def found(**options: Any) -> list[Any]:
        rules = Rules("Example", {"features": {"a": FeatureRule("int64")}}, **options)
        errors = RuleCheck(rules).check_records(*spans)
        return [(error.record, error.feature, error.defect) for error in errors]

    assert found() == found(kinds_agree=False) == []
    unexpected = [(number, "b", D.UNEXPECTED_FEATURE) for number in range(3)]
    assert found(knows_all=True) == unexpected
    without_rules = [
        (error.record, error.feature) for error in RuleCheck(None).check_records(*spans)
    ]
    assert without_rules == [(2, "b")]


def test_feature_lists_and_maps_in_pieces(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Any
) -> None:
    """A message may have its map in several pieces, which protobuf joins."""
    steps = {f"s{number}": [[1], [2, number]] for number in range(9)}
    good = rs.encode_sequence_example({}, steps)
    split = b"".join(rs.encode_sequence_example({}, {key: value}) for key, value in steps.items())
    bad = good + rs.encode_sequence_example({}, {"s8": [["a"]]})
    parsed = reference.parse("SequenceExample", split)
    assert reference.plain_lists(parsed.feature_lists).keys() == steps.keys()
    path = write(tmp_path / "a.tfrecord", [good, split, bad, good])
    rules = rs.schema(write(tmp_path / "b.tfrecord", [good])).to_json()
    whole = _found(path, rules)
    assert [(position, key, defect) for position, key, defect, _ in whole] == [
        (2, "s8", D.FEATURE_KIND)
    ]
    for at_once in (1, 2, 4):
        monkeypatch.setattr(section_check, "COUNTED_AT_ONCE", at_once)
        assert {one[:3] for one in _found(path, rules)} == {one[:3] for one in whole}


def test_memory_of_a_record_of_very_many_features(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: Any
) -> None:
    """Memory does not grow with the number of features beyond the size of the record."""
    monkeypatch.setattr(section_check, "COUNTED_AT_ONCE", 200)
    monkeypatch.setattr(shard_features, "MAX_FEATURES", 200)
    peaks = []
    for count in (400, 8_000):
        features: dict[str, Any] = {f"feature/{number:06d}": number for number in range(count)}
        features["feature/000300"] = images.jpeg(1)
        path = write(tmp_path / f"{count}.tfrecord", [features])
        rs.verify(path, deep=True)  # warm up
        tracemalloc.start()
        report = rs.verify(path, deep=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (report.is_good, report.image_count) == (True, 1)
    assert peaks[1] - peaks[0] < 4 * path.stat().st_size
