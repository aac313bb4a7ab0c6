"""Rotated boxes: corners in DOTA and YOLO-OBB, angles in CVAT, COCO and roLabelImg."""

from __future__ import annotations

import cmath
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Coco, Cvat, Source, Voc
from recordsmith.sources.boxes.detection import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.stores import as_folder
from recordsmith.support.errors import with_options

from ..raising import places, raises
from .annotated import (
    boxes_of,
    coco,
    corners_of,
    cvat,
    image,
    mask_of,
    overlap,
    problems_of,
    read,
    write,
)
from .source_contract import SourceContract, left_out

TILTED = "8 2 16 4 14 12 6 10"
SHARES = [0.2, 0.1, 0.4, 0.2, 0.35, 0.6, 0.15, 0.5]  # of an image of 40 x 20
BOX = (0.1, 0.15, 0.6, 0.4)


def _dota(root: Path, *rows: str, name: str = "a") -> Path:
    image(root / f"images/{name}.jpg")
    write(root / f"labelTxt/{name}.txt", "\n".join(rows))
    return root


def _yolo(root: Path, **rows: str) -> Path:
    write(root / "classes.txt", "cat\ndog\n")
    for name, text in rows.items():
        image(root / f"images/{name}.jpg")
        write(root / f"labels/{name}.txt", text)
    return root


class TestContractOfDota(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        for name in "abcd":
            _dota(folder, f"{TILTED} cat 0", name=name)
        return rs.Dota(folder, object_masks="instance")


@pytest.mark.parametrize(
    ("row", "corners", "difficult"),
    [
        (f"{TILTED} cat 1", SHARES, 1),
        (f"{TILTED} cat", SHARES, 0),
        (f"\t{TILTED}   cat\t2\r", SHARES, 2),
        ("8 2 6 10 14 12 16 4 cat 0", SHARES, 0),  # counterclockwise
        ("16 4 14 12 6 10 8 2 cat 0", SHARES[2:] + SHARES[:2], 0),
        ("-4 2e0 16. -3 44 .5 6 30 cat 0", [-0.1, 0.1, 0.4, -0.15, 1.1, 0.025, 0.15, 1.5], 0),
        ("0 0 0 0 40 0 40 20 cat 0", [0, 0, 0, 0, 1, 0, 1, 1], 0),
    ],
)
def test_rows_of_dota(tmp_path: Path, row: str, corners: Any, difficult: int) -> None:
    head = ("acquisition dates:2015", "imagesource:GoogleEarth", "gsd:null")
    root = _dota(tmp_path, *head, row, "", "1 1 3 1 3 3 1 3 dog 0")
    features, notes = read(rs.Dota(root))
    assert notes == []
    x, y = np.clip(np.reshape(corners, (4, 2)).T, 0, 1)  # the box does not reach over the edge
    assert boxes_of(features)[0] == (min(y), min(x), max(y), max(x))
    assert corners_of(features)[0] == corners
    assert features["image/object/class/text"] == [b"cat", b"dog"]
    assert features["image/object/difficult"] == [difficult, 0]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (f"{TILTED}", "four corners"),
        ("8 2 16 4 14 12 6 cat 0", "four corners"),
        (f"{TILTED} large vehicle 0", "four corners"),
        (f"{TILTED} cat x", "an integer"),
        (f"{TILTED} 0", "a class"),
        (f"{TILTED} cat 0.5", "an integer"),
        ("8 2 16 x 14 12 6 10 cat 0", "four corners"),
        ("8 2 16 4 14 12 1e300 10 cat 0", "too large"),
        ("48 2 56 4 54 12 46 10 cat 0", "xmin"),  # nothing of it is inside
        ("8 2 8 4 8 12 8 10 cat 0", "empty"),
        ("0 0.5 0.5 0.1 0.1", "four corners"),
    ],
)
def test_wrong_rows_of_dota(tmp_path: Path, row: str, fault: str) -> None:
    root = _dota(tmp_path, "gsd:1", f"{TILTED} dog 0", row)
    (problem,) = problems_of(rs.detect(root).source)
    assert places([problem])[0].startswith("labelTxt/a.txt, line 3")
    assert fault in problem
    assert "0" not in (rs.Dota(root).list_samples().class_names or ())
    features, notes = read(rs.Dota(root, boxes="drop"))
    assert (boxes_of(features), len(notes)) == ([BOX], 1)


@pytest.mark.parametrize(
    ("other", "is_read"),
    [("labelTxt-v1.0/trainset_reclabelTxt", True), ("labelTxt-v1.5/x", False), ("", True)],
)
def test_folders_as_they_are_downloaded(tmp_path: Path, other: str, is_read: bool) -> None:
    """Upright boxes are left out next to rotated ones; two versions are refused."""
    image(tmp_path / "images/images/a.jpg")
    for name, row in (("labelTxt-v1.0/labelTxt", TILTED), (other, "1 1 9 1 9 9 1 9")):
        if name:
            write(tmp_path / name / "a.txt", f"imagesource:x\ngsd:1\n{row} cat 0\n")
    detection = rs.detect(tmp_path)
    listing = detection.source.list_samples()
    assert boxes_of(read(listing)[0]) == [BOX]
    assert (len(listing.samples), detection.to_json()["count"]) == (2 - is_read, 1)
    if not is_read:
        with raises(rs.SourceError, match="leave_out='labelTxt-v1.5/x'"):
            read(listing, 1)


def test_files_without_objects_and_of_other_kinds(tmp_path: Path) -> None:
    """In labelTxt/ every text file is of an image; elsewhere, those that look like DOTA's are."""
    _dota(tmp_path, f"{TILTED} cat 0")
    _dota(tmp_path, "imagesource:x", "gsd:1", name="b")
    _dota(tmp_path, name="c")
    image(tmp_path / "images/d.jpg")
    write(tmp_path / "readme.txt", "DOTA is a data set of aerial images\n")
    write(tmp_path / "labelTxt/e.txt", "")
    listing = rs.Dota(tmp_path).list_samples()
    names = [sample.name for sample in listing.samples]
    assert names == [*(f"images/{name}.jpg" for name in "abc"), "labelTxt/e.txt"]
    assert [len(read(listing, row)[0]["image/object/corner/x"]) for row in range(3)] == [4, 0, 0]
    assert "'e' not found" in problems_of(listing, 3)[0]
    assert left_out(listing)["without an annotation"] == ["images/d.jpg"]


# -- YOLO-OBB ------------------------------------------------------------------------------------

QUAD = "0 " + " ".join(map(str, SHARES))
POLYGON = "1 0.2 0.1 0.4 0.2 0.35 0.6"
UPRIGHT = "1 0.5 0.5 0.2 0.2"


@pytest.mark.parametrize(
    ("rows", "options", "has_corners"),
    [
        ({"a": QUAD, "b": "", "c": f"{QUAD}\n\n{QUAD}\n"}, {}, True),
        ({"a": QUAD, "b": POLYGON}, {}, False),
        ({"a": QUAD, "b": UPRIGHT}, {}, False),
        ({"a": QUAD, "b": QUAD}, {"yolo_task": "segment"}, False),
        ({"a": QUAD}, {"yolo_task": "obb"}, True),
        ({"a": QUAD}, {"kpt_shape": "none"}, True),
        ({"a": QUAD, **{f"{n:02}": "" for n in range(50)}}, {}, True),  # many empty ones first
    ],
)
def test_rows_of_four_points(
    tmp_path: Path, rows: dict[str, str], options: Any, has_corners: bool
) -> None:
    listing = rs.Yolo(_yolo(tmp_path, **rows), **options).list_samples()
    number = [sample.name for sample in listing.samples].index("images/a.jpg")
    features, notes = read(listing, number)
    assert (boxes_of(features), len(notes)) == ([BOX], 1 - has_corners)
    assert ("image/object/corner/x" in features) == has_corners
    assert ("image/object/corner/x" in listing.reader.kinds()) == has_corners
    is_detected = has_corners and "yolo_task" not in options
    assert any("yolo_task='segment'" in with_options(n) for n in listing.notices) == is_detected
    if has_corners:
        assert corners_of(features) == [SHARES]


@pytest.mark.parametrize(
    ("row", "options", "fault"),
    [
        (POLYGON, {}, "6 numbers"),
        (UPRIGHT, {}, "4 numbers"),
        (f"{QUAD} 0.5", {}, "9 numbers"),
        ("0 0.2 x 0.4 0.2 0.35 0.6 0.15 0.5", {}, "not a number"),
        (POLYGON, {"yolo_task": "obb"}, "6 numbers"),
    ],
)
def test_late_rows_without_four_points(tmp_path: Path, row: str, options: Any, fault: str) -> None:
    names = [f"{number:02}" for number in range(25)]
    root = _yolo(tmp_path, **dict.fromkeys(names, QUAD) | {"24": f"{QUAD}\n{row}"})
    listing = rs.Yolo(root, **options).list_samples()
    (problem,) = problems_of(listing, 24)
    assert places([problem])[0].startswith("labels/24.txt, line 2")
    assert fault in problem


def test_tasks_that_do_not_fit(tmp_path: Path) -> None:
    root = _yolo(tmp_path, a=QUAD)
    with raises(rs.OptionError, option="yolo_task", value="detect"):
        rs.Yolo(root, yolo_task="detect")  # type: ignore[arg-type]
    with raises(rs.OptionError, option="kpt_shape", value="2,2"):
        rs.Yolo(root, yolo_task="obb", kpt_shape="2,2")
    with raises(rs.OptionError, option="kpt_shape", value=None):
        rs.Yolo(root, yolo_task="pose").list_samples()
    write(root / "labels/a.txt", f"{UPRIGHT} 0.45 0.5 0.5 0.55")
    boxes = {task: read(rs.Yolo(root, **options))[0]["image/object/bbox/xmax"][0]
             for task, options in {"segment": {"yolo_task": "segment"}, "pose":
                                   {"yolo_task": "pose", "kpt_shape": "2,2"}}.items()}  # fmt: skip
    assert boxes == pytest.approx({"segment": 0.5, "pose": 0.6})
    assert rs.Yolo(root, yolo_task="obb").describe()["yolo_task"] == "obb"


def test_labels_of_both_formats_are_two_readings(tmp_path: Path) -> None:
    """Ultralytics converts labels/train_original to labels/train and keeps both."""
    write(tmp_path / "classes.txt", "cat\n")
    image(tmp_path / "images/train/a.jpg")
    write(tmp_path / "labels/train/a.txt", QUAD)
    write(tmp_path / "labels/train_original/a.txt", f"{TILTED} cat 0\n")
    found = {candidate.format for candidate in find_candidates(FileTree(as_folder(tmp_path)))}
    assert found == {"dota", "yolo"}
    dota, yolo = (read(rs.detect(tmp_path, name).source)[0] for name in ("dota", "yolo"))
    assert corners_of(dota) == corners_of(yolo) == [SHARES]


def _turned(degrees: float) -> list[tuple[float, float]]:
    """The corners of the box 14,6 to 26,12, each turned clockwise about the centre 20,9."""
    turn = cmath.exp(1j * math.radians(degrees))  # clockwise, as y goes down
    corners = (complex(x, y) * turn for x, y in ((-6, -3), (6, -3), (6, 3), (-6, 3)))
    return [(20 + corner.real, 9 + corner.imag) for corner in corners]


@pytest.mark.parametrize("degrees", [0, 30, 90, 143.7, 270, 360, 390, -25])
def test_rotated_boxes_of_cvat(tmp_path: Path, degrees: float) -> None:
    """CVAT's XML and its COCO store the box before its rotation; roLabelImg has radians."""
    box = f'<box label="cat" xtl="14" ytl="6" xbr="26" ybr="12" rotation="{degrees}"/>'
    item = {"bbox": [14, 6, 12, 6], "category_id": 1, "segmentation": [], "area": 72}
    image(tmp_path / "coco/a.jpg")
    rotated = item | {"attributes": {"occluded": False, "rotation": degrees}}
    coco(tmp_path / "coco/instances.json", {"a.jpg": [rotated]}, {1: "cat"})
    oriented = {"cx": 20, "cy": 9, "w": 12, "h": 6, "angle": math.radians(degrees)}
    values = "".join(f"<{key}>{value}</{key}>" for key, value in oriented.items())
    image(tmp_path / "voc/a.jpg")
    write(tmp_path / "voc/a.xml", f"<annotation><object><type>robndbox</type><name>cat</name>"
          f"<robndbox>{values}</robndbox></object></annotation>")  # fmt: skip
    corners = _turned(degrees)
    xs, ys = zip(*corners, strict=True)
    expected = (min(ys) / 20, min(xs) / 40, max(ys) / 20, max(xs) / 40)
    sources = (Cvat(cvat(tmp_path / "cvat", box)), Coco(tmp_path / "coco"), Voc(tmp_path / "voc"))
    for source in sources:
        features, notes = read(source)
        assert boxes_of(features)[0] == pytest.approx(expected, abs=1e-5)
        assert notes == []
        if degrees % 360 or isinstance(source, Voc):
            shares = np.divide(corners, (40, 20)).ravel()
            assert corners_of(features)[0] == pytest.approx(shares, abs=2e-6)
        else:
            assert "image/object/corner/x" not in features
        if degrees % 360 and not isinstance(source, Voc):
            source._masks = "instance"
            features, notes = read(source)
            assert notes == []
            assert overlap(mask_of(features["image/object/mask"][0]), corners) > 0.9
