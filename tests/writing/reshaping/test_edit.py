"""`recordsmith.edit`: whole datasets, with shards, names of classes and schema."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.dataset import read_manifest
from recordsmith.stores import Location

from ... import numbered_examples as numbered
from ...places import visible
from ...raising import raises


@pytest.fixture
def packed(place: Location) -> Location:
    """40 examples in two splits, with manifest and class names; `id` counts."""
    folder: Location = numbered.packed(place / "in", {"train": [20, 5, 10], "validation": [5]})
    return folder


@pytest.fixture
def labelled(tmp_path: Path, images: ModuleType) -> Path:
    """Images of three classes, packed."""
    for number, name in enumerate(("daisy", "rose", "tulip")):
        (tmp_path / "images" / name).mkdir(parents=True)
        for copy in range(number + 1):
            file = tmp_path / "images" / name / f"{copy}.png"
            file.write_bytes(images.encode(images.noise(6, 4, seed=number), "PNG"))
    rs.pack(rs.ImageFolder(tmp_path / "images"), tmp_path / "in", shards=2)
    return tmp_path / "in"


def files_of(folder: Location) -> list[str]:
    return [*visible(folder)]


def counts_of(folder: Location) -> list[int]:
    manifest = read_manifest(folder)
    assert manifest is not None
    return [shard.record_count for of in manifest.splits.values() for shard in of]


def test_shards_names_and_order_stay(packed: Location, place: Location) -> None:
    out = place / "out"
    report = rs.edit(packed, out, drop=["steps"], rename={"name": "title"}, add={"new": 0.5})
    assert (report.record_count, report.records_in, report.is_new) == (40, 40, True)
    assert files_of(out) == files_of(packed)
    assert counts_of(out) == [20, 5, 10, 5]
    for number, example in enumerate(rs.open(out)):
        expected = numbered.features(number)
        assert sorted(example) == ["id", "new", "score", "title"]
        assert example["id"].tolist() == [number]
        assert example["title"] == [expected["name"].encode()]
        assert example["new"].tolist() == [0.5]
    assert rs.verify(out).is_good
    assert sorted(rs.open(out).schema.features) == ["id", "new", "score", "title"]
    assert rs.open(out, split="validation").schema.features["new"].present == 5
    assert (out / "labels.txt").read() == (packed / "labels.txt").read()
    again = rs.edit(packed, out, drop=["steps"], rename={"name": "title"}, add={"new": 0.5})
    assert not again.is_new
    manifest = json.loads((out / "dataset.json").read())
    change = {"drop": ["steps"], "rename": {"name": "title"}, "add": {"new": 0.5}}
    assert manifest["provenance"]["reshard"]["edits"] == change


def test_only_some_of_them(packed: Location, place: Location) -> None:
    rs.edit(packed, place / "out", drop=["score"], where="id >= 22 and id not in (30, 31)")
    ids = [*range(22, 30), *range(32, 40)]
    assert numbered.ids_of(rs.open(place / "out")) == ids
    assert counts_of(place / "out") == [3, 8, 5]  # the first shard has none left
    assert "train-00001-of-00002.tfrecord" in files_of(place / "out")
    assert rs.verify(place / "out").is_good


def test_into_other_shards(packed: Location, place: Location) -> None:
    options: dict[str, Any] = {"shards": 2, "compression": "gzip", "split": "train"}
    rs.edit(packed, place / "out", rename={"id": "number"}, **options)
    assert counts_of(place / "out") == [17, 18]
    numbers = rs.open(place / "out").read_columns(["number"])["number"]
    np.testing.assert_array_equal(numbers, np.arange(35))
    rs.edit(place / "out", place / "back", rename={"number": "id"}, compression="none")
    assert numbered.ids_of(rs.open(place / "back")) == list(range(35))
    assert "train-00000-of-00002.tfrecord" in files_of(place / "back")


def test_foreign_files_keep_their_names(place: Location) -> None:
    numbered.write_shard(place / "in.tfrecord", [0, 1])
    rs.edit(place / "in.tfrecord", place / "out", drop=["name"])
    assert "in.tfrecord" in files_of(place / "out")
    assert numbered.ids_of(rs.open(place / "out")) == [0, 1]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({}, "no edits"),
        ({"drop": ["nam"]}, "'nam'.*'name'"),
        ({"drop": ["x/*"]}, r"'x/\*'"),
        ({"rename": {"id": "name"}}, "'id' to 'name'"),
        ({"add": {"id": 1}}, "add 'id'"),
        ({"recode": {"score": {1: 2}}}, "'score' is float"),
        ({"cast": {"scor": "int64"}}, "'scor'.*'score'"),
        ({"cast": {"score": "bytes"}}, "int64.*float"),
        ({"cast": {"score": "int64"}, "drop": ["score"]}, "removes 'score'"),
        ({"drop": ["id"], "where": "idd == 3"}, "'idd'.*'id'"),
        ({"drop": ["id"], "where": "id == 'x'"}, "'id' is int64"),
        ({"drop": ["id"], "where": "id =="}, "character 6"),
    ],
)
@pytest.mark.parametrize("is_packed", [True, False])
def test_errors_before_anything_is_written(
    packed: Location, place: Location, edit: dict[str, Any], message: str, is_packed: bool
) -> None:
    if not is_packed:
        (packed / "dataset.json").delete()
    with pytest.raises(rs.OptionError, match=message):
        rs.edit(packed, place / "out", **edit)
    assert not (place / "out").is_folder()


def test_values_missing_in_a_table_are_located(packed: Location, place: Location) -> None:
    table = {number: 1 for number in range(40) if number != 22}
    with raises(
        rs.CorruptDataError,
        feature="id",
        found="22",
        path=packed / "train-00001-of-00003.tfrecord",
        record=2,
    ) as caught:
        rs.edit(packed, place / "out", recode={"id": table})
    assert caught.value.offset
    assert not (place / "out").is_folder()


def test_values_that_cannot_be_cast_are_located(packed: Location, place: Location) -> None:
    with raises(
        rs.CorruptDataError,
        feature="score",
        path=packed / "train-00000-of-00003.tfrecord",
        record=1,
    ) as caught:
        rs.edit(packed, place / "out", cast={"score": "int64"}, threads=1)
    assert caught.value.offset
    assert not (place / "out").is_folder()
    rs.edit(packed, place / "out", cast={"id": "float"})
    schema = rs.open(place / "out").schema
    assert schema.features["id"].kind == "float"


def test_conflicts_in_single_records_are_located(place: Location) -> None:
    with rs.ShardWriter(place / "in.tfrecord") as writer:
        for example in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {}):
            writer.write_example(example)
    with raises(rs.OptionError, option="rename", value="b", match=r"in\.tfrecord, record 2: "):
        rs.edit(place / "in.tfrecord", place / "out", rename={"a": "b"})


def test_labels_and_their_names(labelled: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("old,new,name\n0,1,flower\n2,1,\n1,0,\n")
    (tmp_path / "texts.csv").write_text("old,new\ndaisy,flower\ntulip,flower\nrose,rose\n")
    recode = {
        "image/class/label": tmp_path / "table.csv",
        "image/class/text": tmp_path / "texts.csv",
    }
    assert rs.edit(labelled, tmp_path / "out", recode=recode).notices == ()
    del recode["image/class/text"]
    (notice,) = rs.edit(labelled, tmp_path / "stale", recode=recode).notices
    assert "image/class/text" in notice
    drop = ["image/class/text"]
    assert rs.edit(labelled, tmp_path / "dropped", recode=recode, drop=drop).notices == ()
    dataset = rs.open(tmp_path / "out")
    assert dataset.class_names == ("rose", "flower")
    assert (tmp_path / "out" / "labels.txt").read_text() == "0:rose\n1:flower\n"
    texts = {"daisy": "flower", "rose": "rose", "tulip": "flower"}
    for before, after in zip(rs.open(labelled), dataset, strict=True):
        text = after["image/class/text"][0].decode()
        assert text == texts[before["image/class/text"][0].decode()]  # type: ignore[union-attr]
        assert dataset.class_names[int(after["image/class/label"][0])] == text
        assert after["image/encoded"] == before["image/encoded"]
    assert rs.verify(tmp_path / "out").is_good


def test_names_of_two_lines_are_invalid(tmp_path: Path) -> None:
    numbered.packed(tmp_path / "in", {"train": [3]})
    table = tmp_path / "table.csv"
    table.write_text('old,new,name\n0,0,"a\n1:b"\n*,*,\n', "utf-8")
    with raises(rs.OptionError, option="recode", value="a\n1:b"):
        rs.edit(tmp_path / "in", tmp_path / "out", recode={"label": table})
    assert not (tmp_path / "out").exists()
