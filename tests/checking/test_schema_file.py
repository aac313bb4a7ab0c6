"""Schema files: made from records, saved, loaded, validated, and used by verify."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.reading import write_records
from tests.serialized_tensors import serialized

import recordsmith as rs
from recordsmith.checking.schema_file import SchemaFile
from recordsmith.dataset import records_of
from recordsmith.dataset.record_document import to_document

from ..raising import raises

D = rs.Defect


def _document(**features: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": "recordsmith-schema", "version": 1, "features": features}


def _found(path: Path, document: Any) -> list[tuple[rs.Defect, int | None]]:
    rules = SchemaFile.from_json(document)
    return [(e.defect, e.record) for e in rs.verify(path, schema=rules).defects]


def test_records_satisfy_the_schema_made_from_them(
    tmp_path: Path, numbered: SimpleNamespace
) -> None:
    folder = numbered.packed(tmp_path / "set", {"train": [5, 4], "test": [3]})
    rules = rs.schema(folder)
    path = tmp_path / "schema.json"
    rules.save(path)
    assert SchemaFile.load(path) == rules
    assert rs.verify(folder, schema=path).is_good
    features = json.loads(path.read_text("utf-8"))["features"]
    assert features["id"] == {"kind": "int64", "required": True, "shape": []}
    assert features["steps"] == {
        "kind": "int64",
        "required": True,
        "min_values": 0,
        "max_values": None,
    }
    assert features["name"]["content"] == "text"
    with raises(rs.OptionError, option="overwrite"):
        rules.save(path)
    rules.save(path, overwrite=True)


@pytest.mark.parametrize(
    ("rule", "good", "bad", "defect"),
    [
        ({"kind": "int64"}, 1, 1.5, D.FEATURE_KIND),
        ({"kind": "bytes"}, "a", 1, D.FEATURE_KIND),
        ({"required": True}, 1, None, D.MISSING_FEATURE),
        ({"shape": []}, [1], [1, 2], D.FEATURE_SHAPE),
        ({"shape": [2, 3]}, [0.0] * 6, [0.0] * 5, D.FEATURE_SHAPE),
        ({"min_values": 2}, [1, 2, 3], [1], D.FEATURE_SHAPE),
        ({"max_values": 2}, [1, 2], [1, 2, 3], D.FEATURE_SHAPE),
        ({"kind": "bytes", "content": "text"}, "täxt", b"\xff\0", D.FEATURE_VALUE),
        ({"content": "image"}, b"\xff\xd8\xff\xe0" + bytes(20), b"text", D.UNREADABLE_IMAGE),
        ({"kind": "int64", "allowed": [1, 5]}, [5, 1], [5, 2], D.FEATURE_VALUE),
        ({"kind": "bytes", "allowed": ["ä", "b"]}, ["ä"], ["c"], D.FEATURE_VALUE),
        ({"kind": "float", "allowed": [0.5, 1]}, 0.5, 0.25, D.FEATURE_VALUE),
        ({"kind": "int64", "min": 0}, 0, -1, D.FEATURE_VALUE),
        ({"kind": "float", "max": 1.0}, [0.5, 1.0], [0.5, 1.5], D.FEATURE_VALUE),
        ({"kind": "float", "max": 1.0}, 1.0, float("nan"), D.FEATURE_VALUE),
        ({"kind": "float", "min": 0, "max": 1}, [], -0.5, D.FEATURE_VALUE),
    ],
)
def test_each_rule(
    write, tmp_path: Path, rule: Any, good: Any, bad: Any, defect: rs.Defect
) -> None:
    count, places = 700, (0, 3, 350, 699)
    examples: list[dict[str, Any]] = [{"x": good} for _ in range(count)]
    for place in places:
        examples[place]["x"] = bad
    path = write(tmp_path / "a.tfrecord", examples)
    assert _found(path, _document(x=rule)) == [(defect, place) for place in places]
    errors = rs.verify(path, schema=SchemaFile.from_json(_document(x=rule))).defects
    for error, place in zip(errors, places, strict=True):
        assert error.offset == records_of(rs.open(path)).locate_record(place).offset
        assert "'x'" in error.detail


def test_a_rule_without_a_kind_allows_several(tmp_path: Path) -> None:
    path = tmp_path / "mixed.tfrecord"
    with rs.ShardWriter(path) as writer:
        for value in (1, 0.5, b"text", 2):
            writer.write_example({"x": value})
    rules = rs.schema(path)
    assert rs.verify(path, schema=rules).is_good
    assert not rs.verify(path, deep=True).is_good


def test_other_features(write, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tfrecord", [{"x": 1}, {"x": 1, "y": 2}])
    document = _document(x={"kind": "int64"})
    assert _found(path, document) == [(D.UNEXPECTED_FEATURE, 1)]
    assert _found(path, {**document, "other_features": "allowed"}) == []


def test_sequence_examples(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with rs.ShardWriter(path) as writer:
        for steps in ([[1], [2, 3]], [[1, 2, 3]], [[4]]):
            writer.write(rs.encode_sequence_example({"id": 1}, {"steps": steps}))
    rules = rs.schema(path)
    assert rs.verify(path, schema=rules).is_good
    document = rules.to_json()
    document["feature_lists"]["steps"] |= {"max_values": 2}
    assert _found(path, document) == [(D.FEATURE_SHAPE, 1)]
    document["context"]["id"]["allowed"] = [2]
    with pytest.raises(ValueError, match="SequenceExamples"):
        SchemaFile.from_json(document)


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ([], "`object`"),
        ({"format": "other"}, "format"),
        ({**_document(), "version": 9}, "version"),
        ({**_document(), "payload": "ELWC"}, "payload"),
        ({**_document(), "featuers": {}}, "`featuers`"),
        ({**_document(), "other_features": "maybe"}, "other_features"),
        ({**_document(), "features": []}, "features"),
        (_document(x=[]), "'x'"),
        (_document(x={"kinds": "int64"}), "`kinds`"),
        (_document(x={"kind": "int32"}), "kind"),
        (_document(x={"kind": []}), "kind"),
        (_document(x={"required": "yes"}), "required"),
        (_document(x={"shape": 3}), "shape"),
        (_document(x={"shape": [-1]}), "shape"),
        (_document(x={"shape": [], "max_values": 3}), "shape excludes"),
        (_document(x={"min_values": 3, "max_values": 2}), "min_values <= max_values"),
        (_document(x={"content": "raw"}), "content"),
        (_document(x={"kind": "int64", "content": "text"}), "content"),
        (_document(x={"allowed": [1]}), "kind"),
        (_document(x={"kind": "int64", "allowed": ["1"]}), "allowed"),
        (_document(x={"kind": "int64", "allowed": [2**63]}), "int64"),
        (_document(x={"kind": "int64", "allowed": []}), "allowed"),
        (_document(x={"kind": "bytes", "allowed": ["\ud800"]}), "surrogates"),
        (_document(x={"kind": "bytes", "min": 1}), "min"),
        (_document(x={"kind": "float", "max": "1"}), "max"),
    ],
)
def test_invalid_schema_files(write, tmp_path: Path, document: Any, word: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(document))
    with pytest.raises(rs.OptionError) as caught:
        SchemaFile.load(path)
    assert caught.value.option == "schema"
    assert word in caught.value.problem
    assert str(path) in caught.value.problem
    data = write(tmp_path / "a.tfrecord", [{"x": 1}])
    with pytest.raises(rs.OptionError):
        rs.verify(data, schema=path)


def test_other_payloads_have_no_schema_file(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xfe")
    with pytest.raises(rs.OptionError) as caught:
        rs.schema(tmp_path / "a.tfrecord")
    assert (caught.value.option, "Examples" in caught.value.expected) == ("paths", True)
    (tmp_path / "broken.json").write_bytes(b"\xff{")
    with raises(rs.OptionError, option="schema"):
        SchemaFile.load(tmp_path / "broken.json")
    with pytest.raises(rs.FileAccessError):
        SchemaFile.load(tmp_path / "missing.json")


def test_a_duplicate_rule(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    text = json.dumps(_document(x={"kind": "int64"}))
    path.write_text(text.replace('"x":', '"x": {"kind": "bytes"}, "x":'), "utf-8")
    with pytest.raises(rs.OptionError, match="'x'"):
        SchemaFile.load(path)


def test_feature_names_that_are_not_text(write, tmp_path: Path) -> None:
    """They are stored as JSON escapes, so that the file stays valid UTF-8."""
    data = write(tmp_path / "a.tfrecord", [{"\udcff\udc80x": 1, "größe": 2}])
    path = tmp_path / "schema.json"
    rs.schema(data).save(path)
    assert set(SchemaFile.load(path).sections["features"]) == {"\udcff\udc80x", "größe"}
    assert "größe" in path.read_text("utf-8")
    assert rs.verify(data, schema=path).is_good


def test_rules_of_serialised_tensors(tmp_path: Path) -> None:
    """Their dtype and shape are in the schema, its rules, and what shows records."""

    def write(name: str, *tensors: Any) -> Path:
        return write_records(tmp_path / name, [{"x": serialized(one)} for one in tensors])

    good = write("good", np.zeros((2, 3), "f4"), np.zeros((5, 3), "f4"))
    rules = rs.schema(good)
    features = json.loads(json.dumps(rules.to_json()))["features"]
    assert features["x"]["tensor"] == {"dtype": "float32", "shape": [None, 3]}
    assert SchemaFile.from_json(rules.to_json()) == rules
    assert rs.verify(good, schema=rules).is_good
    (table,) = rs.inspect(good).content().tables[-1:]
    assert table.rows[0][1] == "bytes (tensor float32 [?, 3])"
    bytes_table = next(t for t in rs.stats(good).content().tables if t.heads[0] == "bytes")
    assert "tensor float32 [?, 3]" in bytes_table.rows[0]
    record = write("one", np.zeros((2, 3), "f4"))
    value = to_document(next(rs.open(record).records()))["features"]["x"]["values"][0]
    assert value["tensor"] == "serialised tensor float32 [2, 3]"
    for number, other in enumerate([np.zeros((2, 4), "f4"), np.zeros(3, "f4"), np.zeros((2, 3))]):
        bad = write(f"bad {number}", np.zeros((7, 3), "f4"), other)
        (defect,) = rs.verify(bad, schema=rules).defects
        assert (defect.defect, defect.record, defect.feature) == (D.FEATURE_VALUE, 1, "x")
    raw = write_records(tmp_path / "raw", [{"x": b"\0"}, {"x": b"text"}])
    assert _found(raw, rules.to_json()) == [(D.FEATURE_VALUE, 0), (D.FEATURE_VALUE, 1)]
    changes = rs.diff(good, record).schema
    assert ("content", "tensor float32 [?, 3]") in [(change.what, change.a) for change in changes]
    with pytest.raises(ValueError, match="content"):
        SchemaFile.from_json(_document(x={"tensor": {"dtype": None, "shape": None}}))
