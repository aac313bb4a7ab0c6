"""The files in a folder decide which source reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

import recordsmith as rs
from recordsmith.sources import make_source
from recordsmith.sources.detection import KINDS, recognise

from ..raising import raises


def _make(root: Path, names: str) -> Path:
    for name in names.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    return root


@pytest.mark.parametrize(
    ("names", "kind", "reason"),
    [
        ("cat/1.jpg dog/2.jpg", "folder", "class folders"),
        ("flowers/cat/1.jpg flowers/dog/2.jpg", "folder", "class folders"),
        ("train/cat/1.jpg test/cat/2.jpg", "folder", "class folders"),
        ("train/1.jpg val/2.jpg", "files", "split folders"),
        ("train/images/1.jpg val/images/2.jpg", "files", "split folders"),
        ("train/images/1.jpg val/cat/2.jpg", "folder", "class folders"),
        ("Images/1.jpg Images/2.jpg", "files", "images in Images, without classes"),
        ("images/cat/1.jpg images/dog/2.jpg", "folder", "class folders"),
        ("images/1.jpg cat/2.jpg", "folder", "class folders"),
        ("1.jpg images/2.jpg", "folder", "class folders"),
        ("1.jpg 2.png notes/3.txt", "files", "outside class folders"),
        ("1.jpg cat/ dog/2.jpg", "folder", "class folders"),
        ("images/1.jpg masks/1.png", "pairs", "masks in masks"),
        ("train/images/1.jpg train/masks/1.png", "pairs", "masks in train/masks"),
        ("JPEGImages/1.jpg SegmentationClass/1.png ImageSets/Segmentation/train.txt", "pairs",
         "images in JPEGImages and masks in SegmentationClass"),
        ("JPEGImages/1.jpg Annotations/1.xml SegmentationClass/1.png", "voc", "Annotations/1.xml"),
        ("VOC2012/JPEGImages/1.jpg VOC2012/Annotations/1.xml", "voc", "1.xml"),
        ("images/1.jpg annotations/1.xml data/x.csv", "voc", "1.xml"),
        ("1.jpg 1.xml", "voc", "1.xml"),
        ("annotations/instances_val2017.json val2017/1.jpg", "coco", "instances_val2017.json"),
        ("train/_annotations.coco.json train/1.jpg", "coco", "train/_annotations.coco.json"),
        ("data.yaml train/images/1.jpg train/labels/1.txt", "yolo", "data.yaml"),
        ("images/1.jpg labels/1.txt", "yolo", "labels"),
        ("obj.names train.txt img/1.jpg img/1.txt", "yolo", "obj.names"),
        ("metadata.jsonl 1.jpg", "table", "metadata.jsonl"),
        ("train/metadata.csv train/1.jpg test/metadata.csv", "table", "metadata.csv"),
        ("rows.csv", "table", "rows.csv"),
        ("a-000.tar a-001.tar", "webdataset", "a-000.tar"),
        ("train-00000-of-00001.tfrecord dataset.json labels.txt", "shards", "train-00000"),
        ("test.record", "shards", "test.record"),
        ("train/things.tfrecord valid/things.tfrecord", "shards", "train/things.tfrecord"),
        ("cats/1.jpg old/things.tfrecord", "folder", "class folders"),
        ("", "folder", ""),
        ("notes/1.txt", "folder", ""),
    ],
)  # fmt: skip
def test_folders(tmp_path: Path, names: str, kind: str, reason: str) -> None:
    found, why = recognise(_make(tmp_path, names))
    assert found == kind
    assert reason in why


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rows.CSV", "table"),
        ("rows.parquet", "table"),
        ("rows.csv.gz", "table"),
        ("x.tar", "webdataset"),
        ("x.tar.gz", "webdataset"),
        ("instances.json", "coco"),
        ("data.yaml", "yolo"),
        ("x.tfrecord", "shards"),
        ("x.tfrecord-00000-of-00001", "shards"),
    ],
)
def test_files(tmp_path: Path, name: str, kind: str) -> None:
    assert recognise(_make(tmp_path, name) / name)[0] == kind


def test_patterns(tmp_path: Path) -> None:
    assert recognise(tmp_path / "x-{000..003}.tar")[0] == "webdataset"
    assert recognise(tmp_path / "x-*.tfrecord")[0] == "shards"


def test_unsupported_file(tmp_path: Path) -> None:
    with raises(rs.SourceError, path=tmp_path / "notes.docx"):
        recognise(_make(tmp_path, "notes.docx") / "notes.docx")
    with pytest.raises(FileNotFoundError):
        recognise(tmp_path / "missing")


def test_explicit_kind_is_not_detected(tmp_path: Path) -> None:
    made = make_source(_make(tmp_path, "rows.csv cat/1.jpg"), "folder")
    assert isinstance(made.source, rs.ImageFolder)
    assert (made.kind, made.reason) == ("folder", "")


def test_options_reach_the_source(tmp_path: Path) -> None:
    made = make_source(tmp_path, "files", class_pattern="x", label_map=None)
    assert "class_pattern='x'" in repr(made.source)


def test_options_of_other_sources_are_refused(tmp_path: Path) -> None:
    with raises(rs.OptionError, option="boxes", value="clip", match="voc, coco, yolo"):
        make_source(_make(tmp_path, "cat/1.jpg"), boxes="clip")


def test_unknown_kinds(tmp_path: Path) -> None:
    with raises(rs.OptionError, option="format", value="foldr", match=r"folder\?"):
        make_source(tmp_path, "foldr")


def test_every_kind_has_a_source(tmp_path: Path) -> None:
    for kind, known in KINDS.items():
        made = make_source(tmp_path, kind)
        assert type(made.source) is known.source
