from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import recordsmith as rs


def test_annotation_file(
    write: Any, image: Any, box_features: Any, box_kinds: Any, tmp_path: Path, files: Any
) -> None:
    more = box_features((0.25, 0.5, 0.75, 1), (0, 0, 1 / 3, 1), name="ö & <cat>") | {
        "image/object/difficult": [0, 1],
        "image/object/truncated": [1, 0],
        "image/object/view": ["Left", "Frontal"],
    }
    empty = box_features()
    source = write(
        box_kinds,
        train=[image("p/a.jpg", more=more), image("b.jpg", seed=1, more=empty)],
        val=[image("c.jpg", seed=2, more=empty)],
    )
    report = rs.export(source, tmp_path / "out", "voc")
    assert (report.dropped_features, report.problems) == ({}, [])
    written = files(tmp_path / "out")
    assert sorted(written) == [
        *(f"Annotations/{name}.xml" for name in "abc"),
        *("ImageSets/Main/train.txt", "ImageSets/Main/val.txt"),
        *(f"JPEGImages/{name}.jpg" for name in "abc"),
        "label_map.pbtxt",
    ]
    assert written["ImageSets/Main/train.txt"] == b"a\nb\n"
    root = ET.fromstring(written["Annotations/a.xml"])
    assert root.findtext("filename") == "a.jpg"
    size = root.find("size")
    assert size is not None
    assert [size.findtext(tag) for tag in ("width", "height", "depth")] == ["12", "8", "3"]
    objects = root.findall("object")
    assert [found.findtext("name") for found in objects] == ["ö & <cat>"] * 2
    assert [found.findtext("pose") for found in objects] == ["Left", "Frontal"]
    assert [found.findtext("difficult") for found in objects] == ["0", "1"]
    assert [found.findtext("truncated") for found in objects] == ["1", "0"]
    boxes = [[edge.text for edge in found.find("bndbox") or ()] for found in objects]
    assert boxes == [["3", "4", "9", "8"], ["0", "0", "4", "8"]]
    assert ET.fromstring(written["Annotations/b.xml"]).findall("object") == []
    names = rs.open(source)  # the map of labels, as TensorFlow's tools read it
    assert names.class_names is None
    assert b"name: '\xc3\xb6 & <cat>'" in written["label_map.pbtxt"]


def test_masks_have_lists_of_their_own(
    write: Any, image: Any, images: ModuleType, tmp_path: Path, files: Any
) -> None:
    mask = images.encode(images.noise(12, 8, "P"), "PNG")
    masked = {"image/segmentation/class/encoded": mask, "image/segmentation/class/format": "png"}
    rs.export(write(train=[image("a.jpg", more=masked)]), tmp_path / "out", "voc")
    written = files(tmp_path / "out")
    assert sorted(written) == [
        *("ImageSets/Segmentation/train.txt", "JPEGImages/a.jpg", "SegmentationClass/a.png")
    ]
    assert written["SegmentationClass/a.png"] == mask
    assert written["ImageSets/Segmentation/train.txt"] == b"a\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image/object/bbox/xmin": [0.5, 0.5]}, "differ in length"),
        ({"image/object/bbox/xmin": [float("nan")]}, "not a finite number"),
        ({"image/object/bbox/xmin": [5]}, "not a float"),
        ({"image/object/class/text": ["a\0b"]}, "XML"),
        ({"image/encoded": b"no image", "image/height": []}, "size of its image"),
    ],
)
def test_boxes_that_cannot_be_written(
    write: Any, image: Any, box_features: Any, tmp_path: Path, change: Any, message: str
) -> None:
    good = image("a.jpg", more=box_features((0, 0, 1, 1)))
    source = write({"image/height": "int64"}, train=[good, good | change])
    with pytest.raises(rs.SourceError, match=f"record 1: .*{message}"):
        rs.export(source, tmp_path / "out", "voc")


def test_odd_boxes_are_exported_and_reported(
    write: Any, image: Any, box_features: Any, tmp_path: Path
) -> None:
    more = box_features((0.5, 0, 0.25, 1), (-0.5, 0, 1.5, 1), (0, 0, 1, 1))
    report = rs.export(write(train=[image("a.jpg", more=more)]), tmp_path / "out", "voc")
    assert len(report.problems) == 2
    root = ET.parse(tmp_path / "out" / "Annotations" / "a.xml").getroot()
    assert [e.text for e in root.iter("xmin")] == ["6", "-6", "0"]
    assert [e.text for e in root.iter("xmax")] == ["3", "18", "12"]


def test_classes_by_number_only_or_by_name_only(
    write: Any, image: Any, box_features: Any, tmp_path: Path, files: Any
) -> None:
    by_number = box_features((0, 0, 1, 1), label=3) | {"image/object/class/text": []}
    by_name = box_features((0, 0, 1, 1), name="dog") | {"image/object/class/label": []}
    kinds = {"image/object/class/text": "bytes", "image/object/class/label": "int64"}
    source = write(kinds, train=[image("a.jpg", more=by_number), image("b.jpg", more=by_name)])
    rs.export(source, tmp_path / "out", "voc")
    written = files(tmp_path / "out")
    assert b"<name>3</name>" in written["Annotations/a.xml"]
    assert b"<name>dog</name>" in written["Annotations/b.xml"]
