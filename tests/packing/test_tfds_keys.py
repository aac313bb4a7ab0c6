"""`pack(keys="tfds")`; `tests/interop` loads such folders with TensorFlow Datasets."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.errors import CorruptDataError, Defect, OptionError
from recordsmith.stores import as_folder

from ..raising import raises

DOCUMENTS = {"features.json", "dataset_info.json", "label.labels.txt"}


@pytest.fixture
def source(tmp_path: Path, images: ModuleType) -> rs.ImageFolder:
    return rs.ImageFolder(images.make_folder(tmp_path / "images", {"a": 5, "b": 4}))


def _documents(folder: Any) -> dict[str, bytes]:
    place = as_folder(folder)
    names = {entry.name for entry in place.list_entries()} & DOCUMENTS
    return {name: (place / name).read() for name in names}


def test_documents_agree_with_the_manifest(source: rs.ImageFolder, place: Any) -> None:
    rs.pack(source, place / "out", keys="tfds", splits={"train": 0.7, "test": 0.3}, shards=2)
    documents = _documents(place / "out")
    assert documents.keys() == DOCUMENTS
    manifest = json.loads((as_folder(place / "out") / "dataset.json").read())
    info = json.loads(documents["dataset_info.json"])
    found = {split["name"]: list(map(int, split["shardLengths"])) for split in info["splits"]}
    assert found == {
        split: [shard["records"] for shard in shards]
        for split, shards in manifest["splits"].items()
    }
    files = [shard["file"] for shards in manifest["splits"].values() for shard in shards]
    assert files[0] == "dataset-train.tfrecord-00000-of-00002"
    assert documents["label.labels.txt"] == b"a\nb\n"
    assert rs.verify(place / "out").is_good


def test_documents_are_those_of_an_export(source: rs.ImageFolder, tmp_path: Path) -> None:
    rs.pack(source, tmp_path / "packed", shuffle=False)
    rs.export(tmp_path / "packed", tmp_path / "exported", "tfds")
    rs.pack(source, tmp_path / "direct", keys="tfds", shuffle=False)
    exported, direct = map(_documents, (tmp_path / "exported", tmp_path / "direct"))
    assert exported["features.json"] == direct["features.json"]
    infos = [json.loads(found["dataset_info.json"]) for found in (exported, direct)]
    for info in infos:
        info["splits"][0].pop("filepathTemplate")
    assert infos[0] == infos[1]
    (name,) = (path.name for path in (tmp_path / "exported").glob("*.tfrecord-*"))
    assert (tmp_path / "exported" / name).read_bytes() == (tmp_path / "direct" / name).read_bytes()


def test_a_resumed_job_writes_the_same_documents(source: rs.ImageFolder, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(done: int, _: int) -> None:
        if done > 6:
            raise StopError

    options: Any = {"keys": "tfds", "shards": 4, "threads": 1}
    rs.pack(source, tmp_path / "whole", **options)
    with pytest.raises(StopError):
        rs.pack(source, tmp_path / "out", **options, progress=stop)
    assert not _documents(tmp_path / "out")
    report = rs.pack(source, tmp_path / "out", **options)
    assert report.reused_count > 0
    assert _documents(tmp_path / "out") == _documents(tmp_path / "whole")


def test_another_dataset_replaces_the_documents(source: rs.ImageFolder, place: Any) -> None:
    rs.pack(source, place / "out", keys="tfds")
    rs.pack(source, place / "out", overwrite=True)
    assert _documents(place / "out") == {}


@pytest.mark.parametrize("tfds", [{"file_template": "x"}, {}, {"features": 3, "file_template": 1}])
def test_a_manifest_with_a_broken_description(
    source: rs.ImageFolder, tmp_path: Path, tfds: Any
) -> None:
    rs.pack(source, tmp_path / "out", keys="tfds")
    path = tmp_path / "out/dataset.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"tfds": tfds}))
    with raises(CorruptDataError, defect=Defect.BROKEN_MANIFEST):
        rs.export(tmp_path / "out", tmp_path / "exported", "tfds")
    assert len(rs.open(tmp_path / "out")) == 9
    rs.pack(source, tmp_path / "out", overwrite=True)
    assert rs.verify(tmp_path / "out").is_good


def test_planned_jobs_write_them_as_well(source: rs.ImageFolder, tmp_path: Path) -> None:
    plan = rs.plan(source, tmp_path / "out", keys="tfds", shards=2)
    rs.finish(plan, map(rs.run, plan.tasks()))
    rs.pack(source, tmp_path / "whole", keys="tfds", shards=2)
    assert _documents(tmp_path / "out") == _documents(tmp_path / "whole")


def test_append_is_refused_and_reshard_drops_the_documents(
    source: rs.ImageFolder, tmp_path: Path
) -> None:
    rs.pack(source, tmp_path / "out", keys="tfds")
    shard = next((tmp_path / "out").glob("*.tfrecord-*"))
    copy = tmp_path / "more.tfrecord"
    copy.write_bytes(shard.read_bytes())
    with raises(OptionError, option="out", value=tmp_path / "out"):
        rs.append(copy, tmp_path / "out")
    rs.reshard(tmp_path / "out", tmp_path / "new", shards=3)
    assert _documents(tmp_path / "new") == {}
    rs.append(copy, tmp_path / "new")
    rs.export(tmp_path / "new", tmp_path / "again", "tfds")
    before, after = map(_documents, (tmp_path / "out", tmp_path / "again"))
    assert after["features.json"] == before["features.json"]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"compression": "gzip"}, "compression"),
        ({"image_options": rs.ImageOptions(store="raw")}, "image_options"),
        ({"shard_names": "{split}-{shard}"}, "shard_names"),
    ],
)
def test_options_that_tfds_cannot_read_are_refused(
    source: rs.ImageFolder, tmp_path: Path, options: Any, wrong: str
) -> None:
    with raises(OptionError, option=wrong):
        rs.pack(source, tmp_path / "out", keys="tfds", **options)


def test_images_that_tensorflow_cannot_decode_are_skipped(
    source: rs.ImageFolder, tmp_path: Path, images: ModuleType
) -> None:
    webp = images.encode(images.noise(8, 8), "WEBP")
    (tmp_path / "images/a/x.webp").write_bytes(webp)
    with pytest.raises(rs.SourceError) as caught:
        rs.pack(source, tmp_path / "out", keys="tfds")
    assert caught.value.problem_count == 1
    report = rs.pack(source, tmp_path / "out", keys="tfds", skip_errors=True)
    assert (report.sample_count, report.skipped_count) == (9, 1)
