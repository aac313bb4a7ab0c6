"""Files from public repositories: recordsmith agrees with TensorFlow on each of them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.dataset import Shard, parts_of, records_of
from recordsmith.format.example import FeatureSchema


def test_all_files_are_tested(zoo_rows: list[dict[str, Any]], zoo: Path) -> None:
    assert len({row["file"] for row in zoo_rows}) == len(zoo_rows)
    for row in zoo_rows:
        data = (zoo / row["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["file_sha256"], row["file"]


def test_file(zoo_row: dict[str, Any], zoo: Path) -> None:
    row, path = zoo_row, zoo / zoo_row["file"]
    if row["tf_error"] is not None:
        _assert_named_defect(path)
        return
    dataset = rs.open(path)
    records = list(dataset.records())
    assert len(records) == len(dataset) == row["records"]
    assert hashlib.sha256(b"".join(records)).hexdigest() == row["records_sha256"]
    lengths = [len(record) for record in records]
    assert (min(lengths), max(lengths)) == (row["min_record"], row["max_record"])
    if row["compression"] == "none":
        assert [records_of(dataset).read_record(place) for place in range(len(records))] == records
    assert rs.verify(path).is_good
    found = rs.inspect(path)
    assert (found.record_count, found.compression) == (row["records"], row["compression"])
    assert found.schema.payload == row["payload"]
    for section in ("features", "context", "examples", "feature_lists"):
        expected = row.get(section, {})
        actual = found.schema.sections.get(section, {})
        assert {key: _told(feature, section) for key, feature in actual.items()} == expected


def _told(feature: FeatureSchema, section: str) -> dict[str, Any]:
    told: dict[str, Any] = {
        "kind": feature.kind,
        "min": feature.min_length,
        "max": feature.max_length,
        "present": feature.present,
    }
    if section == "feature_lists":
        told |= {"min_steps": feature.min_steps, "max_steps": feature.max_steps}
    return told


def _assert_named_defect(path: Path) -> None:
    """TensorFlow reports a corrupted record, or returns none."""
    report = rs.verify(path)
    assert report.record_count == 0
    (defect,) = report.defects
    assert defect.defect in (rs.Defect.NOT_A_TFRECORD, rs.Defect.LENGTH_CRC,
                             rs.Defect.TRUNCATED_HEADER,
                             rs.Defect.TRUNCATED_PAYLOAD)  # fmt: skip
    assert defect.path == str(path)
    for look in (rs.inspect, lambda path: list(rs.open(path)), lambda path: len(rs.open(path))):
        with pytest.raises(rs.CorruptDataError) as caught:
            look(path)
        assert caught.value.defect is defect.defect


def test_other_formats_are_detected(zoo_rows: list[dict[str, Any]], zoo: Path) -> None:
    pointers = [row for row in zoo_rows if row["payload"] == "git-lfs pointer"]
    assert pointers
    for row in pointers:
        (defect,) = rs.verify(zoo / row["file"]).defects
        assert "git lfs pull" in str(defect)


def test_examples_decode_one_by_one_as_in_columns(
    zoo_rows: list[dict[str, Any]], zoo: Path
) -> None:
    count = 0
    for row in zoo_rows:
        if row["payload"] != "Example" or row["records"] > 500:
            continue
        dataset: Any = rs.open(zoo / row["file"])
        columns: Any = dataset.read_columns(
            {key: rs.FeatureSpec(shape="ragged") for key in row["features"]}
        )
        for place, example in enumerate(dataset):
            for key, column in columns.items():
                assert list(column[place]) == list(example.get(key, []))
                count += 1
    assert count > 1000


def test_the_index_of_each_file_matches_its_frames(
    zoo_rows: list[dict[str, Any]], zoo: Path
) -> None:
    for row in zoo_rows:
        if row["tf_error"] is None:
            index = Shard(zoo / row["file"], "")._build_index()
            payload_bytes = sum(map(len, rs.open(zoo / row["file"]).records()))
            assert payload_bytes + 16 * row["records"] == index.offsets[-1]
            assert index.record_count == row["records"]


def test_a_rewritten_copy_has_the_same_content(
    zoo_row: dict[str, Any], zoo: Path, tmp_path: Path
) -> None:
    """Features in another order, lists packed, in three shards, compressed."""
    row, path = zoo_row, zoo / zoo_row["file"]
    if row["tf_error"] is not None:
        with pytest.raises(rs.CorruptDataError):
            rs.diff(path, path)
        return
    report = rs.diff(path, path)
    assert report.is_equal
    assert report.is_same_order
    assert report.same_count == report.same_bytes_count == row["records"]
    records = [_written_anew(record) for record in rs.open(path).records()]
    for shard in range(3):
        name = f"copy-{shard:05d}-of-00003.tfrecord.gz"
        with rs.ShardWriter(tmp_path / name, compression="gzip") as writer:
            for record in records[shard::3]:
                writer.write(record)
    report = rs.diff(path, tmp_path)
    assert report.is_equal
    assert report.same_count == row["records"]
    with rs.ShardWriter(tmp_path / "less.tfrecord") as writer:
        for record in records[1:]:
            writer.write(record)
        writer.write(b"something else")
    report = rs.diff(path, tmp_path / "less.tfrecord")
    assert (report.changed_count, report.left_only_count, report.right_only_count) == (0, 1, 1)


def _written_anew(record: bytes) -> bytes:
    payload = rs.classify(record)
    if payload == "Example":
        return rs.encode_example(rs.decode_example(record))
    if payload == "SequenceExample":
        return rs.encode_sequence_example(*rs.decode_sequence_example(record))
    return record


@pytest.mark.parametrize("part_bytes", [1 << 30, 100_000])
def test_tables(zoo_row: dict[str, Any], zoo: Path, part_bytes: int) -> None:
    """Of the file, and of the parts that connectors read; a missing feature is null."""
    pa = pytest.importorskip("pyarrow")
    row, path = zoo_row, zoo / zoo_row["file"]
    if row["tf_error"] is not None or row["payload"] not in _SECTIONS:
        kind = rs.NotAnExampleError if row["tf_error"] is None else rs.CorruptDataError
        with pytest.raises(kind):
            rs.open(path).to_arrow().read_all()
        return
    dataset = rs.open(path)
    empty = dataset.to_arrow().schema.empty_table()
    parts = [part.to_arrow().read_all() for part in parts_of(dataset, part_bytes)]
    table = pa.concat_tables([empty, *parts])
    assert len(table) == row["records"]
    expected = {}
    for section in _SECTIONS[row["payload"]]:
        for key, feature in row.get(section, {}).items():
            expected[f"{section}/{key}" if key in expected else key] = section, feature
    assert set(table.schema.names) == set(expected)
    for name, (section, feature) in expected.items():
        assert _kind_of(table[name].type) == feature["kind"], name
        assert _described(table[name].to_pylist(), section) == {**feature, "kind": None}, name


_SECTIONS = {
    "Example": ("features",),
    "SequenceExample": ("context", "feature_lists"),
    "ELWC": ("context", "examples"),
}


def _kind_of(arrow_type: Any) -> str:
    """The kind of feature of a column, at the bottom of its lists."""
    while hasattr(arrow_type, "value_type"):
        arrow_type = arrow_type.value_type
    text = str(arrow_type)
    if "string" in text or "binary" in text:
        return "bytes"
    return {"int64": "int64", "float": "float", "null": "none"}[text]


def _described(rows: list[Any], section: str) -> dict[str, Any]:
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
