"""Datasets whose feature names hold values: every job works and reports what it left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.checking.statistics import feature_blocks, record_builder
from recordsmith.checking.verification import payload_check
from recordsmith.dataset import read_manifest
from recordsmith.format.example import encode_example, schema

from ..raising import raises

COUNT = 40
LABELS = ("zero", "one", "two")


@pytest.fixture(scope="module", autouse=True)
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "MAX_FEATURES", 20)
        patched.setattr(schema, "LISTED_FEATURES", 3)
        patched.setattr(payload_check, "MAX_FEATURES", 20)
        yield


def row(number: int) -> dict[str, Any]:
    return {f"id-{number:03d}": 1, "label": number % 3}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records with a feature named after each of them."""
    folder = tmp_path_factory.mktemp("foreign")
    for shard in range(2):
        with rs.ShardWriter(folder / f"part-{shard:05d}-of-00002.tfrecord") as writer:
            for number in range(shard * COUNT // 2, (shard + 1) * COUNT // 2):
                writer.write_example(row(number))
    return folder


@pytest.fixture(scope="module")
def packed(foreign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with a manifest."""
    out = tmp_path_factory.mktemp("packed") / "out"
    report = rs.reshard(foreign, out, shards=3)
    assert any("values" in notice for notice in report.notices)
    return out


def test_the_manifest_marks_its_schema_as_incomplete(foreign: Path, packed: Path) -> None:
    manifest = read_manifest(packed)
    assert manifest is not None
    assert not manifest.schema.is_complete
    assert list(manifest.schema.features) == ["id-000", "id-001", "id-002"]
    assert rs.inspect(foreign).schema == rs.inspect(packed).schema == manifest.schema
    document = rs.inspect(packed).to_json()
    assert document["is_complete"] is False


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_do_not_change_the_manifest(foreign: Path, packed: Path, threads: int) -> None:
    out = packed.parent / f"threads-{threads}"
    rs.reshard(foreign, out, shards=3, threads=threads)
    assert (out / "dataset.json").read_bytes() == (packed / "dataset.json").read_bytes()


def test_verify_accepts_features_that_the_manifest_left_out(packed: Path, tmp_path: Path) -> None:
    report = rs.verify(packed, deep=True)
    assert report.is_good
    assert any("manifest" in reason for reason in report.unchecked)
    shard = next(packed.glob("*.tfrecord"))
    with rs.ShardWriter(tmp_path / "wide.tfrecord") as writer:
        for number in range(2 * COUNT):
            writer.write_example(row(number))
    wide = rs.verify(tmp_path / "wide.tfrecord", deep=True)
    assert wide.is_good
    assert any("kinds of the" in reason for reason in wide.unchecked)
    assert not rs.verify(shard, deep=True).unchecked


def test_verify_still_checks_listed_features(packed: Path, tmp_path: Path) -> None:
    """The rules of listed features still apply."""
    broken = tmp_path / "broken"
    broken.mkdir()
    document = json.loads((packed / "dataset.json").read_bytes())
    document["schema"]["features"]["id-001"]["kind"] = "float"
    (broken / "dataset.json").write_text(json.dumps(document))
    for shard in packed.glob("*.tfrecord"):
        (broken / shard.name).write_bytes(shard.read_bytes())
    report = rs.verify(broken, deep=True)
    assert [defect.defect for defect in report.defects] == ["feature-kind-mismatch"]


def test_jobs_that_need_all_features_raise(foreign: Path, tmp_path: Path) -> None:
    dataset = rs.open(foreign)
    for needs_all in (
        lambda: rs.schema(foreign),
        lambda: rs.reader_code(foreign, "tf"),
        dataset.read_columns,
        lambda: next(dataset.batches(4)),
        lambda: next(dataset.batches(4, ["label"])),
        lambda: rs.export(foreign, tmp_path / "csv", "csv"),
        lambda: rs.Loader(dataset, batch_size=4),
    ):
        with pytest.raises(rs.OptionError, match="features"):
            needs_all()
    with pytest.raises(rs.RecordsmithError, match="features"):
        rs.pack(rs.Rows(map(row, range(COUNT))), tmp_path / "rows")


def test_named_features_are_read(packed: Path) -> None:
    dataset = rs.open(packed)
    spec = {"label": rs.FeatureSpec("int64", ())}
    labels = sorted(dataset.read_columns(spec)["label"].tolist())
    assert labels == sorted(number % 3 for number in range(COUNT))
    batch = next(dataset.batches(7, spec))
    assert batch["label"].shape == (7,)
    with rs.Loader(dataset, {"y": rs.Scalar("label")}, batch_size=COUNT) as loader:
        assert sorted(next(iter(loader))["y"].tolist()) == labels
    with (
        rs.Loader(dataset, {"y": rs.Scalar("lable")}, batch_size=4) as loader,
        pytest.raises(rs.CorruptDataError) as caught,
    ):
        next(iter(loader))
    assert caught.value.defect is rs.Defect.MISSING_FEATURE


def test_diff_compares_listed_features_and_reports_that(
    foreign: Path, packed: Path, tmp_path: Path
) -> None:
    report = rs.diff(foreign, packed)
    assert report.is_equal
    assert len(report.uncompared) == 2
    with rs.ShardWriter(tmp_path / "few.tfrecord") as writer:
        writer.write_example({"id-000": 1.5, "zzz": 1})
    few = rs.diff(foreign, tmp_path / "few.tfrecord")
    assert not few.is_equal
    changes = {(change.feature, change.what) for change in few.schema}
    assert ("id-000", "kind") in changes
    assert ("id-001", "feature") in changes  # B knows all of its own
    assert ("zzz", "feature") not in changes  # A may have it
    assert few.to_json()["uncompared"] == list(few.uncompared)


def test_edit_where_append_and_salvage_work(packed: Path, tmp_path: Path) -> None:
    rs.edit(packed, tmp_path / "edited", drop=["id-*"])
    assert list(rs.open(tmp_path / "edited").schema.features) == ["label"]
    rs.reshard(packed, tmp_path / "some", where="label == 1")
    assert len(rs.open(tmp_path / "some")) == sum(number % 3 == 1 for number in range(COUNT))
    rs.salvage(packed, tmp_path / "salvaged")
    assert rs.diff(packed, tmp_path / "salvaged").is_equal
    rs.append(tmp_path / "some", tmp_path / "salvaged")
    joined = read_manifest(tmp_path / "salvaged")
    assert joined is not None
    assert joined.schema.features["id-001"].present == 2
    assert rs.verify(tmp_path / "salvaged", deep=True).is_good


def test_recoding_needs_class_names(packed: Path, tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    for shard in packed.glob("*.tfrecord"):
        (named / shard.name).write_bytes(shard.read_bytes())
    (named / "labels.txt").write_text("".join(f"{n}:{name}\n" for n, name in enumerate(LABELS)))
    table = {0: 1, 1: 0, 2: 2}
    with pytest.raises(rs.OptionError, match="class"):
        rs.edit(named, tmp_path / "recoded", recode={"label": table})


def test_columns_with_a_schema_without_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LONGEST_LISTED_NAME", 2)
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for number in range(COUNT):
            writer.write_example(row(number))
    dataset = rs.open(tmp_path / "a.tfrecord")
    assert dataset.read_columns(["label"])["label"].tolist() == [n % 3 for n in range(COUNT)]
    with raises(rs.CorruptDataError, defect=rs.Defect.MISSING_FEATURE):
        dataset.read_columns(["x"])
    assert (dataset.schema.is_complete, dataset.schema.features) == (False, {})
    with pytest.raises(rs.OptionError, match="FeatureSpec"):
        next(dataset.batches(2, ["x"]))


def test_stats_count_omitted_features(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_builder, "MAX_FEATURES", 10)
    assert rs.stats(foreign).left_out == COUNT + 1 - 10
    monkeypatch.setattr(record_builder, "MAX_LEFT_OUT", 5)
    assert rs.stats(foreign).left_out == 5


def test_a_record_with_very_many_features_is_read(tmp_path: Path) -> None:
    """One record may have more than a schema holds."""
    with rs.ShardWriter(tmp_path / "one.tfrecord") as writer:
        writer.write(encode_example({f"f{number}": number for number in range(500)}))
    report = rs.verify(tmp_path / "one.tfrecord", deep=True)
    assert report.is_good
    assert "were not checked" in report.unchecked[0]
    assert len(rs.open(tmp_path / "one.tfrecord")[0]) == 500
    assert len(rs.inspect(tmp_path / "one.tfrecord").schema.features) == 3


def test_stats_of_records_with_little_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: ModuleType
) -> None:
    """Read in pieces, as columns of all features in all records would be mostly empty."""
    path = tmp_path / "unlike.tfrecord"
    with rs.ShardWriter(path) as writer:
        for number in range(COUNT):
            image = images.jpeg(number // 2)
            others = {"text": [f"{number}"] * (number % 3), "image/encoded": image}
            writer.write_example(row(number) | others)
    whole = rs.stats(path).to_json()
    for cells in (0, 7, 100):
        monkeypatch.setattr(feature_blocks, "CELLS_AT_A_TIME", cells)
        assert rs.stats(path).to_json() == whole
    assert whole["features"]["label"]["present"] == COUNT


def test_a_bad_record_is_located(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_most_two(buffer: Any, starts: Any, lengths: Any, takes: Any) -> Any:
        if len(starts) > 2:
            return None
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            if b"id-013" in bytes(buffer[start : start + length]):
                raise rs.CorruptDataError(rs.Defect.MALFORMED_EXAMPLE, "broken", record=place)
        return {}

    monkeypatch.setattr(record_builder, "example_blocks", at_most_two)
    with raises(rs.CorruptDataError, record=13):
        rs.stats(foreign)


def test_waiting_schemas_are_packed(
    foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MAX_FEATURES", 10_000)
    rs.reshard(foreign, tmp_path / "plain", shards=3)
    monkeypatch.setattr(schema, "PACKED_FROM", 1)
    monkeypatch.setattr(schema, "_MERGED_AT_ONCE", 5)
    rs.reshard(foreign, tmp_path / "packed", shards=3)
    one, other = ((tmp_path / name / "dataset.json").read_bytes() for name in ("plain", "packed"))
    assert one == other
    whole = rs.inspect(foreign).schema
    assert len(whole.features) == COUNT + 1
    packed = whole.packed()
    assert packed == whole
    assert packed.features["label"] == whole.features["label"]
    assert list(packed.features) == list(whole.features)
    assert "nothing" not in packed.features
