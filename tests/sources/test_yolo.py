"""YOLO in both of its layouts and in none; its small files; invalid labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources import Source, Yolo
from recordsmith.sources.boxes.yolo_files import read_data_file
from recordsmith.sources.layouts import Confidence
from recordsmith.stores import as_location

from ..raising import places, raises
from ..reading import read_sample
from .annotated import boxes_of, image, mask_of, problems_of, read, write
from .source_contract import SourceContract, left_out

ONE = "0 0.5 0.5 0.5 0.25"
BOX = (0.375, 0.25, 0.625, 0.75)  # of ONE: ymin, xmin, ymax, xmax
YAML = "train: images/train\nval: images/val\nnames: [cat, Dog]\n"


def _ultralytics(root: Path, yaml: str = YAML) -> Path:
    write(root / "data.yaml", yaml)
    for name, labels in {"train/a": ONE, "train/b": "", "val/c": f"{ONE}\n1 1 1 0 0\n"}.items():
        image(root / "images" / f"{name}.jpg")
        write(root / "labels" / f"{name}.txt", labels)
    write(root / "labels" / "val" / "c.txt", f"{ONE}\n1 0.5 0.5 1 1\n")
    image(root / "images" / "val" / "bare.png")
    return root


def _darknet(root: Path, folder: str = "data") -> Path:
    data = root / folder
    lines = f"classes = 2\ntrain = {folder}/train.txt\nvalid = {folder}/test.txt\n"
    write(data / "obj.data", f"{lines}names = {folder}/obj.names\nbackup = backup/\n")
    write(data / "obj.names", "cat\nDog\n")
    for name in "abcd":
        image(data / "img" / f"{name}.jpg")
        write(data / "img" / f"{name}.txt", f"{ONE}\n")
    write(data / "train.txt", f"{folder}/img/a.jpg\n\n{folder}/img/b.jpg\n")
    write(data / "test.txt", f"{folder}/img/c.jpg\n{folder}/img/d.jpg\n")
    return root


class TestContract(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Yolo(_darknet(folder))


class TestContractOfUltralytics(SourceContract):
    def make_source(self, folder: Path, _: ModuleType) -> Source:
        return Yolo(_ultralytics(folder))


def _names(source: Source) -> dict[str, str | None]:
    """Name -> split."""
    return {sample.name: sample.split for sample in source.list_samples().samples}


def test_features(tmp_path: Path) -> None:
    source = Yolo(_ultralytics(tmp_path))
    listing = source.list_samples()
    assert listing.class_names == (None, "cat", "Dog")
    assert listing.splits == ("train", "val")
    (notice,) = listing.notices
    assert notice.endswith("without boxes: images/val/bare.png")
    assert _names(source) == {
        "images/train/a.jpg": "train",
        "images/train/b.jpg": "train",
        "images/val/bare.png": "val",
        "images/val/c.jpg": "val",
    }
    features, notes = read(source, 3)
    assert notes == []
    assert boxes_of(features) == [BOX, (0, 0, 1, 1)]
    del features["image/encoded"]
    assert {key: value for key, value in features.items() if "bbox" not in key} == {
        "image/format": "jpeg",
        "image/height": 20,
        "image/width": 40,
        "image/filename": b"images/val/c.jpg",
        "image/source_id": b"c.jpg",
        "image/object/class/label": [1, 2],
        "image/object/class/text": [b"cat", b"Dog"],
    }
    assert boxes_of(read(source, 1)[0]) == boxes_of(read(source, 2)[0]) == []


# -- layouts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("yaml", "noted"),
    [
        ("path: .\ntrain: images/train\nval: images/val\nnames: [cat, Dog]", 0),
        ("path: ../datasets/mine\ntrain: images/train\nval: images/val\nnames: [cat, Dog]", 0),
        ("train: ../train/images\nval: ./images/val\ntest:\nnames: [cat, Dog]", 1),
        ("train: /content/x/images/train\nval: images/val/\nnames: [cat, Dog]", 1),
        (r"train: C:\x\images\train" + "\nval: images/val\nnames: [cat, Dog]", 1),
        ("train: [images/train]\nval:\n  - images/val\nnames: [cat, Dog]", 0),
        ("train: train.txt\nval: val.txt\nnames: [cat, Dog]", 0),
        ("train: images/train\nval: images/val\ntest: images/test\nnames: [cat, Dog]", 1),
    ],
)
def test_folders_and_lists_of_data_yaml(tmp_path: Path, yaml: str, noted: int) -> None:
    _ultralytics(tmp_path, yaml)
    image(tmp_path / "train" / "images" / "other.jpg")
    if "train/images" not in yaml:
        (tmp_path / "train" / "images" / "other.jpg").unlink()
    write(tmp_path / "train.txt", "./images/train/a.jpg\nimages/train/b.jpg\n")
    write(tmp_path / "val.txt", "/home/me/images/val/c.jpg\n./images/val/bare.png\n")
    source = Yolo(tmp_path)
    listing = source.list_samples()
    notices = [notice for notice in listing.notices if notice.startswith("data.yaml: ")]
    assert len(notices) == noted
    names = _names(source)
    if "train/images" in yaml:
        assert names.pop("train/images/other.jpg") == "train"
    else:
        assert names.pop("images/train/a.jpg") == names.pop("images/train/b.jpg") == "train"
    assert names == {"images/val/c.jpg": "val", "images/val/bare.png": "val"}
    is_foreign = "val.txt" in yaml and listing.samples[2].name.endswith("c.jpg")
    assert ["last part" in what for what, _ in read(source, 2)[1]] == [True] * is_foreign


@pytest.mark.parametrize("folder", ["data", "x64/Release/data"])
def test_darknet(tmp_path: Path, folder: str) -> None:
    """Paths in it begin where the program is started, wherever that is above."""
    root = _darknet(tmp_path, "data")
    if folder != "data":
        (tmp_path / "x64/Release").mkdir(parents=True)
        (tmp_path / "data").rename(tmp_path / folder)
    source = Yolo(root)
    listing = source.list_samples()
    assert listing.splits == ("train", "valid")
    assert listing.class_names == (None, "cat", "Dog")
    assert listing.notices == ()
    splits = ("train", "train", "valid", "valid")
    assert _names(source) == {
        f"{folder}/img/{name}.jpg": split for name, split in zip("abcd", splits, strict=True)
    }
    for number in range(4):
        features, notes = read(source, number)
        assert (boxes_of(features), notes) == ([BOX], [])


def test_a_repeated_list_is_not_a_split(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    path = root / "data" / "obj.data"
    path.write_text(path.read_text().replace("test.txt", "train.txt"))
    listing = Yolo(root).list_samples()
    assert listing.splits == ()
    assert len(listing.samples) == 2
    assert listing.notices[0].startswith("data/obj.data: valid skipped")
    paths = {path for names in left_out(listing).values() for path in names}
    assert {"data/img/c.jpg", "data/img/d.jpg"} <= paths


def test_many_paths_of_a_split(tmp_path: Path) -> None:
    paths = ["images/train", "./images/train", "a/" * 30_000 + "images/train", "images/tra"]
    root = _ultralytics(tmp_path, f"train: [{', '.join(paths * 2)}]\nnames: [cat, Dog]\n")
    listing = Yolo(root).list_samples()
    assert [sample.name for sample in listing.samples] == [
        "images/train/a.jpg",
        "images/train/b.jpg",
    ]
    assert sum("not found" in notice for notice in listing.notices) == 2  # each path once


def test_list_that_names_missing_images(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "train.txt", "data/img/a.jpg\n\ndata/img/gone.jpg\n../../../etc/passwd\n")
    source = Yolo(root)
    names = list(_names(source))
    for line in (3, 4):
        sample = source.list_samples().samples[names.index(f"data/train.txt/{line}")]
        with raises(rs.SourceError, path="data/train.txt", line=line, match="not found"):
            read_sample(source, sample)


@pytest.mark.parametrize(
    ("names", "images", "labels"),
    [
        ("classes.txt", "", ""),
        ("classes.txt", "images", "labels"),
        ("labels/classes.txt", "images", "labels"),
        ("data/obj.names", "img", "img"),
        ("_darknet.labels", "img", "labels"),
    ],
)
def test_without_a_description(tmp_path: Path, names: str, images: str, labels: str) -> None:
    write(tmp_path / names, "cat\nDog\n")
    for name in "ab":
        image(tmp_path / images / f"{name}.jpg")
        write(tmp_path / labels / f"{name}.txt", ONE)
    source = Yolo(tmp_path)
    assert source.list_samples().class_names == (None, "cat", "Dog")
    assert source.list_samples().notices == ()
    assert [boxes_of(read(source, number)[0]) for number in range(2)] == [[BOX], [BOX]]


def test_splits_with_other_names_of_classes(tmp_path: Path) -> None:
    for name, kind in (("train/a", "cat"), ("valid/b", "Dog")):
        image(tmp_path / f"{name}.jpg")
        write(tmp_path / f"{name}.txt", ONE)
        write((tmp_path / name).with_name("_darknet.labels"), kind)
    with raises(rs.SourceError, path=tmp_path, match="train/_darknet"):
        Yolo(tmp_path).list_samples()


def test_nothing_there(tmp_path: Path) -> None:
    image(tmp_path / "a.jpg")
    with pytest.raises(rs.SourceError, match=r"found a\.jpg;") as caught:
        Yolo(tmp_path).list_samples()
    assert caught.value.path == str(tmp_path)
    write(tmp_path / "classes.txt", "cat")
    with raises(rs.SourceError, path=tmp_path, match=r"a\.jpg and classes\.txt"):
        Yolo(tmp_path).list_samples()
    write(tmp_path / "one.yaml", YAML)
    write(tmp_path / "two.yml", YAML)
    with raises(rs.SourceError, path=tmp_path, match=r"one\.yaml and two\.yml"):
        Yolo(tmp_path).list_samples()


def test_missing_names_file(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    (root / "data" / "obj.names").unlink()
    with pytest.raises(rs.SourceError, match=r"'data/obj\.names' not found") as caught:
        Yolo(root).list_samples()
    assert caught.value.path == "data/obj.data"


# -- labels --------------------------------------------------------------------------------------


def test_wrong_labels_are_listed_with_their_lines(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    lines = [
        "",
        "2 0.5 0.5 0.5 0.5",
        "-1 0.5 0.5 0.5 0.5",
        "cat 0.5 0.5 0.5 0.5",
        "0 0.5 0.5 0.5",
        "0 0.5 0.5 0.5 0.5 0.9",
        "0 0.9 0.5 0.5 0.5",
        "0 0.5 0.5 0 0.5",
        "0 0.5 x 0.5 0.5",
        ONE,
    ]
    write(root / "data" / "img" / "a.txt", "\r\n".join(lines))
    place = "data/img/a.txt, line"
    expected = [
        ("2", "'2'"),
        ("3", "'-1'"),
        ("4", "'cat'"),
        ("5", "3 numbers"),
        ("6", "5 numbers"),
        ("7 (cat)", "xmax 1.15"),
        ("8 (cat)", "xmin and xmax"),
        ("9 (cat)", "ymin, ymax"),
    ]
    problems = problems_of(Yolo(root))
    assert places(problems) == [f"{place} {line}" for line, _ in expected]
    for problem, (_, words) in zip(problems, expected, strict=True):
        assert words in problem
    features, notes = read(Yolo(root, boxes="drop"))
    assert (boxes_of(features), len(notes)) == ([BOX], 8)
    features, notes = read(Yolo(root, boxes="clip"))
    assert (boxes_of(features), len(notes)) == ([(0.25, 0.65, 0.75, 1), BOX], 8)


def test_polygons_become_boxes(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "img" / "a.txt", f"1 0.5 0.1 0.9 0.5 0.5 0.9 0.2 0.4\n{ONE}")
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0.1, 0.2, 0.9, 0.9), BOX]
    assert features["image/object/class/label"] == [2, 1]
    ((what, where),) = notes
    assert what.startswith("outlines")
    assert where == "data/img/a.txt, line 1 (Dog)"


def _plain(root: Path, labels: Mapping[str, str], names: str = "classes.txt") -> Path:
    """Images and label files by the names of both: images/a.jpg -> labels/a.txt."""
    write(root / names, "cat\nDog\n")
    for name, text in labels.items():
        image(root / "images" / f"{name}.jpg")
        write(root / "labels" / f"{name}.txt", text)
    return root


@pytest.mark.parametrize(
    ("row", "is_row"),
    [
        ("1 0.5 0.5 0.5 0.25", True),
        ("1.000e+00 5.0e-01 5E-1 +.5 .25", True),
        ("01\t0.5 0.5  0.5 0.250", True),
        ("\ufeff1 0.5 0.5 0.5 0.25", True),
        ("\n \n1 0.5 0.5 0.5 0.25\r\n\r\n", True),
        ("1 0.5 0.5 0.5", False),
        ("1 0.5 0.5 0.5 x", False),
        ("1 0.5 0.5 0.5 nan", False),
        ("1.5 0.5 0.5 0.5 0.25", False),
        ("-1 0.5 0.5 0.5 0.25", False),
        ("Dog 0.5 0.5 0.5 0.25", False),
        ("1,0.5,0.5,0.5,0.25", False),
    ],
)
def test_detection_accepts_the_rows_that_are_read(tmp_path: Path, row: str, is_row: bool) -> None:
    root = _plain(tmp_path, {"a": row})
    detection = rs.detect(root)
    if is_row:
        features, notes = read(detection.source)
        assert (boxes_of(features), notes) == ([BOX], [])
        assert features["image/object/class/label"] == [2]
    else:
        assert detection.readings[0].problem
        assert len(problems_of(Yolo(root))) == 1


def test_a_description_with_a_byte_order_mark(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path, "\ufefftrain: images/train\nnames: [cat, Dog]\n")
    detection = rs.detect(root)
    assert detection.reading.confidence == Confidence.MARKED
    assert len(detection.source.list_samples().samples) == 2


def test_coordinates_in_pixels(tmp_path: Path) -> None:
    root = _plain(tmp_path, {"a": f"{ONE}\n0 20 10 20 5\n1 8 8 2 2\n", "b": "0 8 8 4 4"})
    with raises(rs.SourceError, path="labels/a.txt", line=2, match="in pixels"):
        rs.detect(root).source.list_samples()
    write(root / "labels" / "a.txt", f"{ONE} 90 175 1\n{ONE} 85 160 0\n")
    with raises(rs.SourceError, path="labels/a.txt", line=1, match="7 numbers after the class"):
        rs.detect(root).source.list_samples()
    write(root / "labels" / "a.txt", f"{ONE}\n{ONE}\n0 20 10 20 5\n")  # not most of them
    assert {*places(problems_of(Yolo(root)))} == {"labels/a.txt, line 3 (cat)"}


KEYPOINTS = {
    "17 of 3": (f"{ONE} {'0.4 0.5 2 ' * 16}0 0 0", "17,3"),
    "2 of 3": (f"{ONE} 0.3 0.4 1 0.7 0.6 2", "2,3"),
    "2 of 2": (f"{ONE} 0.3 0.4 0.7 0.6", "2,2"),
    "3 of 2, one missing": (f"{ONE} 0.3 0.4 0 0 0.7 0.6", "3,2"),
}


@pytest.mark.parametrize("kind", KEYPOINTS)
def test_keypoints_without_their_shape(tmp_path: Path, kind: str) -> None:
    row, shape = KEYPOINTS[kind]
    root = _plain(tmp_path, {"a": f"{ONE}\n{row}\n", "b": "", "c": row})
    with raises(rs.SourceError, path="labels/a.txt", line=2, match=f"kpt_shape='{shape}'"):
        Yolo(root).list_samples()
    source = Yolo(root, kpt_shape=shape)
    features, notes = read(source)
    assert (boxes_of(features), notes) == ([BOX, BOX], [])
    numbers = [*map(float, row.split()[5:])]
    x, y = (features[f"image/object/keypoint/{axis}"] for axis in "xy")
    count, size = map(int, shape.split(","))
    assert [*x, *y] == [0] * count + numbers[::size] + [0] * count + numbers[1::size]
    assert source.describe()["kpt_shape"] == [*map(int, shape.split(","))]
    write(root / "labels" / "c.txt", f"{row} 0.1\n{ONE}")
    assert places(problems_of(source, 2)) == ["labels/c.txt, line 1"]
    if shape.endswith("2"):
        features, _ = read(Yolo(root, kpt_shape="none"))
        assert boxes_of(features)[1] != BOX


@pytest.mark.parametrize(
    "rows",
    [
        ["0 0.2 0.2 0.4 0.2 0.4 0.3 0.2 0.3"],  # an upright box
        ["0 0.3 0.2 0.4 0.3 0.3 0.4 0.2 0.3"],  # an oriented box
        ["0 0 0 1 0 1 1 0 1 0 0"],  # the whole image
        ["0 0.45 0.58 0.55 0.57 0.56 0.62 0.44 0.61"],  # a small one in the middle
        ["0 0.8 0.8 0.9 0.8 0.9 0.95", "0 0.1 0.7 0.2 0.9 0.1 0.9"],  # triangles
        ["0 0.2 0.2 0.4 0.25 0.3 0.3", "0 0.2 0.2 0.4 0.2 0.4 0.3 0.35 0.35 0.2 0.3"],
        ["0 0.2 0.2 0.4 0.25 0.3 0.3", "1 0.8 0.8 0.9 0.8 0.9 0.95", "1 0.7 0.9 0.6 0.9 0.5 0.8"],
    ],
)
def test_polygons_are_not_keypoints(tmp_path: Path, rows: list[str]) -> None:
    root = _plain(tmp_path, {"a": "\n".join([ONE, *rows])})
    expected = [BOX]
    for row in rows:
        xs, ys = row.split()[1::2], row.split()[2::2]
        expected.append(tuple(map(float, (min(ys), min(xs), max(ys), max(xs)))))
    features, notes = read(Yolo(root))
    assert boxes_of(features) == expected
    (what,) = {what for what, _ in notes}
    assert ("outlines were packed" in what, len(notes)) == (True, len(rows))
    are_various = len({len(row.split()) for row in rows}) > 1
    assert ("object_masks" in rs.detect(root).reading.hints) == are_various


def test_late_keypoints_are_found_when_they_are_read(tmp_path: Path) -> None:
    """The first label files have boxes only."""
    names = [f"{number:02}" for number in range(30)]
    last = KEYPOINTS["2 of 2"][0]
    root = _plain(
        tmp_path, dict.fromkeys(names, ONE) | {"29": f"{ONE}\n{last}\n0 0.8 0.9 0.9 0.9 0.9 0.95"}
    )
    source = Yolo(root)
    assert len(source.list_samples().samples) == 30
    (problem,) = problems_of(source, 29)
    assert places([problem]) == ["labels/29.txt, line 2"]
    assert "kpt_shape='2,2'" in problem
    assert boxes_of(read(Yolo(root, kpt_shape="none"), 29)[0])[1] == (0.25, 0.3, 0.6, 0.7)


@pytest.mark.parametrize("value", ["17", "17,4", "0,3", "a,b", "2000,3", "", 3, "None"])
def test_invalid_kpt_shapes(tmp_path: Path, value: Any) -> None:
    with raises(rs.OptionError, option="kpt_shape", value=value):
        Yolo(tmp_path, kpt_shape=value)


def test_orientation(tmp_path: Path) -> None:
    """Ultralytics trains on the upright image, Darknet on the stored one."""
    corner = "0 0.125 0.125 0.25 0.25"
    root = _ultralytics(tmp_path / "u")
    image(root / "images/train/a.jpg", orientation=6)
    write(root / "labels/train/a.txt", corner)
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0.75, 0, 1, 0.25)]
    assert "rotated" in notes[0][0]
    root = _darknet(tmp_path / "d")
    image(root / "data/img/a.jpg", orientation=6)
    write(root / "data/img/a.txt", corner)
    features, notes = read(Yolo(root))
    assert boxes_of(features) == [(0, 0, 0.25, 0.25)]
    assert "drawn on" in notes[0][0]


@pytest.mark.parametrize(
    ("drawn", "box", "is_noted"),
    [("upright", (0.75, 0, 1, 0.25), True), ("stored", (0, 0, 0.25, 0.25), False)],
)
def test_orientation_by_option(tmp_path: Path, drawn: Any, box: Any, is_noted: bool) -> None:
    corner = "0 0.125 0.125 0.25 0.25"
    for root, name in ((_ultralytics(tmp_path / "u"), "images/train/a"), (_darknet(tmp_path), "")):
        path = name or "data/img/a"
        image(root / f"{path}.jpg", orientation=6)
        write(root / f"{path.replace('images', 'labels')}.txt", corner)
        source = Yolo(root, drawn=drawn)
        features, notes = read(source)
        assert boxes_of(features) == [box]
        assert ["rotated" in what for what, _ in notes] == [True] * is_noted
        assert source.describe()["drawn"] == drawn


# -- names of label files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "label", "is_noted"),
    [
        ("images/a.jpg", "labels/a.TXT", False),
        ("images/a.jpg", "Labels/a.txt", False),
        ("IMAGES/x/a.jpg", "LABELS/x/a.Txt", False),
        ("x/a.jpg", "x/a.TXT", False),
        ("x/a.jpg", "Labels/a.txt", False),
        ("images/de\u0301.jpg", "labels/d\u00e9.txt", True),
        ("images/d\u00e9.jpg", "labels/de\u0301.txt", True),
        ("images/my photo.jpg", "labels/my%20photo.txt", True),
        ("images/my%20photo.jpg", "labels/my photo.txt", True),
        ("images/A.jpg", "labels/a.txt", True),
        ("Images/a.jpg", "Annotations/a.txt", False),
    ],
)
def test_label_files_of_another_spelling(
    tmp_path: Path, path: str, label: str, is_noted: bool
) -> None:
    write(tmp_path / "classes.txt", "cat\nDog\n")
    for name, text in ((path, label), ("images/ok.png", "labels/ok.txt")):
        image(tmp_path / name)
        write(tmp_path / text, ONE)
    source = rs.detect(tmp_path).source
    listing = source.list_samples()
    number = [sample.name for sample in listing.samples].index(path)
    features, notes = read(listing, number)
    assert boxes_of(features) == [BOX]
    assert (
        notes
        == [
            (
                "label files were found under another spelling than their image",
                f"{label}: {path!r}, used {label}",
            )
        ]
        * is_noted
    )
    assert listing.notices == ()


def test_image_and_label_file_of_another_spelling(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    image(root / "data" / "img" / "my photo.jpg")
    write(root / "data" / "img" / "MY%20photo.txt", ONE)
    write(root / "data" / "train.txt", "elsewhere/my%20photo.jpg\n")
    features, notes = read(Yolo(root), [*_names(Yolo(root))].index("data/img/my photo.jpg"))
    assert boxes_of(features) == [BOX]
    assert [where.partition(":")[0] for _, where in notes] == [
        "data/img/MY%20photo.txt",
        "data/train.txt, line 1",
    ]


def test_label_files_that_cannot_be_told_apart(tmp_path: Path) -> None:
    root = _plain(tmp_path, {"a b": ONE, "ok": ONE})
    (root / "labels" / "a b.txt").rename(root / "labels" / "a%20b.txt")
    write(root / "labels" / "A%20B.txt", ONE)
    with raises(rs.SourceError, path="images/a b.jpg", match=r"A%20B\.txt or labels/a%20b\.txt"):
        read(Yolo(root), 0)
    assert boxes_of(read(Yolo(root), 1)[0]) == [BOX]


def test_of_several_spellings_the_own_name_is_the_label_file(tmp_path: Path) -> None:
    root = _plain(tmp_path, {"ok": ONE})
    image(root / "images" / "a.jpg")
    for name, text in (("a.TXT", ONE), ("A.TXT", "1 0.5 0.5 0.1 0.1")):
        write(root / "labels" / name, text)
    features, notes = read(Yolo(root), 0)
    assert (boxes_of(features), notes) == ([BOX], [])


def test_a_label_file_of_two_images(tmp_path: Path) -> None:
    root = _plain(tmp_path, {"a": ONE, "b": ONE})
    image(root / "images" / "a.png")
    image(root / "images" / "B.jpg")  # without labels: b.txt has the name of b.jpg
    source = Yolo(root)
    names = [*_names(source)]
    for name in ("a.jpg", "a.png"):
        with raises(rs.SourceError, path="labels/a.txt", match="images/a.jpg and images/a.png"):
            read(source, names.index(f"images/{name}"))
    assert boxes_of(read(source, names.index("images/b.jpg"))[0]) == [BOX]
    features, notes = read(source, names.index("images/B.jpg"))
    assert (boxes_of(features), notes) == ([], [])
    (notice,) = source.list_samples().notices
    assert notice.endswith("without boxes: images/B.jpg")


@pytest.mark.parametrize(
    ("names", "row"), [("classes.txt", ONE), ("classes.txt", ""), ("data.yaml", ONE)]
)
def test_no_label_file_fits(tmp_path: Path, names: str, row: str) -> None:
    root = _plain(tmp_path, {"a": row, "b": row})
    for name in "ab":
        (root / "labels" / f"{name}.txt").rename(root / "labels" / f"0f1e-{name}.txt")
    write(root / "data.yaml", "train: images\nnames: [cat]\n") if names == "data.yaml" else None
    match = r"labels/0f1e-a\.txt, image images/a\.jpg"
    with raises(rs.SourceError, path=root, match=match):
        rs.detect(root).source.list_samples()
    (root / "labels" / "0f1e-b.txt").rename(root / "labels" / "b.txt")
    notices = Yolo(root).list_samples().notices
    for name in ("images/a.jpg", "labels/0f1e-a.txt"):
        assert any(name in notice for notice in notices)


def test_empty_label_files(tmp_path: Path) -> None:
    root = _plain(tmp_path / "in", dict.fromkeys("ab", ""))
    report = rs.pack(root, tmp_path / "out")
    assert (report.sample_count, report.class_count) == (2, 2)
    assert report.notices == ("all 2 label files are empty", "no image has an object")
    assert rs.verify(tmp_path / "out").is_good


# -- the small files -----------------------------------------------------------------------------

NAMES = {
    "[a, 'b c', 0]": ["a", "b c", "0"],
    "\n- yes\n- '01'\n- c d  # words\n": ["yes", "01", "c d"],
    "\n  0: a\n  1: 'b'\n  3: \"it's\"\n": {0: "a", 1: "b", 3: "it's"},
    "{0: child's toy, 1: x:y}": {0: "child's toy", 1: "x:y"},
    "&a [x]\nother: *a": ["x"],
    "[]": [],
}


@pytest.mark.parametrize("text", NAMES)
def test_names_in_data_yaml(tmp_path: Path, text: str) -> None:
    around = "download: |\n  y = [\nroboflow:\n  a: !!python/name:os.system {b: c}\n"
    path = write(tmp_path / "d.yaml", f'{around}train: x\nval:\nnames: {text}\n"nc": 2 # two\n')
    data = read_data_file(as_location(path), "d.yaml")
    assert data is not None
    expected = NAMES[text]
    assert data.names == (expected if isinstance(expected, dict) else dict(enumerate(expected)))
    assert data.splits == {"train": ["x"]}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("names: cat\ntrain: x", 1),
        ("train: x\nnames: [a, b", 2),
        ("train: x\nnames: [a, [b]]", 2),
        *((f"train: x\nnames:\n  {n}: a\n", 3) for n in ("9" * 5000, "1000001", "-1", "x", "²")),
        ("train: x\nnames:\n  0: a\n  0: b\n", 4),
        ("train: x\nnames:\n  0: a\n  1:\n", 4),
        ("train: x\nnames:\n  0: [a]\n", 3),
        ("train: {0: x}\nnames: [a]", 1),
        ("names: [a]\ntrain: x\nnames: [b]", 3),
        ("train: x\nnames: &a [b, *a]", 2),
        ("train: x\nnames: " + "[" * 100_000, None),
        ("train: x\nnames: [a]\nkpt_shape: [17, 5]", 3),
        ("train: x\nnames: [a]\nkpt_shape: many", 3),
        ("train: x\nnames: [a]\nx: " + "y" * (1 << 18), None),
    ],
)
def test_invalid_yaml(tmp_path: Path, text: str, line: int | None) -> None:
    path = write(tmp_path / "d.yaml", text)
    with pytest.raises(rs.SourceError, match=r"d.yaml") as caught:
        read_data_file(as_location(path), "d.yaml")
    assert (caught.value.path, caught.value.line) == ("d.yaml", line)


@pytest.mark.parametrize("name", [r"a\nb", r"a\rb", r"\ud800"])
def test_names_that_cannot_be_class_names(tmp_path: Path, name: str) -> None:
    root = _ultralytics(tmp_path / "in", YAML.replace("Dog", f'"{name}"'))
    with pytest.raises(rs.SourceError, match="class"):
        rs.pack(Yolo(root), tmp_path / "out", skip_errors=True)


def _gbk(root: Path, kind: str) -> str:
    """A dataset with a class that is not ASCII; returns the file that names it."""
    image(root / "images" / "a.jpg")
    write(root / "labels" / "a.txt", "1 0.5 0.5 0.5 0.25")
    files = {
        "classes.txt": {"classes.txt": "cat\n\u72d7\n"},
        "obj.names": {
            "obj.data": "train = train.txt\nnames = obj.names\n",
            "train.txt": "images/a.jpg\n",
            "obj.names": "cat\n\u72d7\n",
        },
        "data.yaml": {"data.yaml": "train: images\nnames:\n  0: cat\n  1: \u72d7\n"},
    }
    for name, text in files[kind].items():
        (root / name).write_bytes(text.encode("gbk"))
    return kind


@pytest.mark.parametrize(("kind", "line"), [("classes.txt", 2), ("obj.names", 2), ("data.yaml", 4)])
def test_class_names_in_another_encoding(tmp_path: Path, kind: str, line: int) -> None:
    path = _gbk(tmp_path, kind)
    with raises(rs.SourceError, path=path, line=line, match="encoding="):
        rs.detect(tmp_path).source.list_samples()
    source = rs.detect(tmp_path, encoding="gbk").source
    assert source.list_samples().class_names == (None, "cat", "\u72d7")
    assert boxes_of(read(source)[0]) == [BOX]
    assert source.describe()["encoding"] == "gbk"
    with raises(rs.OptionError, option="encoding", value="nope"):
        Yolo(tmp_path, encoding="nope")


def test_lists_of_images_in_another_encoding(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    image(root / "data" / "img" / "\u72d7.jpg")
    (root / "data" / "train.txt").write_bytes("data/img/\u72d7.jpg".encode("gbk"))
    assert "data/img/\u72d7.jpg" in _names(Yolo(root, encoding="gbk"))
    assert "data/img/\u72d7.jpg" not in _names(Yolo(root))


def test_files_of_another_type(tmp_path: Path) -> None:
    path = str(write(tmp_path / "x", "a: b\nnames: [x]\n"))
    assert read_data_file(as_location(path), "x.yaml") is None
    assert read_data_file(as_location(path), "x.data") is None
    for text in (
        '"\nnames: a\ntrain: b\n"',
        '- a: "\nnames: x\ntrain: y"',
        'a: "\nnames: b\ntrain: c"',
    ):
        assert read_data_file(as_location(write(tmp_path / "y", text)), "y.yaml") is None
    write(tmp_path / "x", "names = x.names\n")
    with raises(rs.SourceError, path="x.data", match=r"train = train\.txt"):
        read_data_file(as_location(path), "x.data")


# -- one file of several, and files that lead to nothing -------------------------------------------


def test_the_description_may_be_named(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path / "d")
    write(root / "other.yaml", "train: images/val\nnames: [x, y]\n")
    with raises(rs.SourceError, path=tmp_path / "d", match=r"Pass .*data\.yaml"):
        Yolo(root).list_samples()
    source = Yolo(root / "data.yaml")
    assert str(source.root) == str(root)
    assert _names(source)["images/train/a.jpg"] == "train"
    assert _names(Yolo(root / "other.yaml")) == {
        "images/val/bare.png": None,
        "images/val/c.jpg": None,
    }
    assert source.describe() != Yolo(root / "other.yaml").describe()
    darknet = _darknet(tmp_path / "darknet")
    assert len(_names(Yolo(darknet / "data" / "obj.data"))) == 4
    names = darknet / "data" / "obj.names"
    with raises(rs.OptionError, value=names, expected="the folder of the dataset"):
        Yolo(names).list_samples()


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("train: images/nope\nnames: [x]\n", "images/nope not found"),
        ("train: labels\nnames: [x]\n", "contain no images"),
        ("names: [x]\n", "top-level keys"),
        (" train: images\n names: [x]\n", "top-level keys"),
    ],
)
def test_a_description_without_images(tmp_path: Path, yaml: str, words: str) -> None:
    with pytest.raises(rs.SourceError, match=words) as caught:
        Yolo(_ultralytics(tmp_path, yaml)).list_samples()
    assert caught.value.path == "data.yaml"


def test_no_classes_means_no_objects(tmp_path: Path) -> None:
    root = _ultralytics(tmp_path, "train: images/train\nnames: {}\n")
    write(root / "labels" / "train" / "a.txt", "")
    listing = Yolo(root).list_samples()
    assert [sample.name for sample in listing.samples] == [
        "images/train/a.jpg",
        "images/train/b.jpg",
    ]
    assert listing.class_names == ()
    write(root / "labels" / "train" / "a.txt", ONE)
    source = Yolo(root)
    with pytest.raises(rs.SourceError, match="no class"):
        read_sample(source, source.list_samples().samples[0])


def test_an_image_in_two_splits_stays_in_the_first(tmp_path: Path) -> None:
    root = _darknet(tmp_path)
    write(root / "data" / "test.txt", "data/img/a.jpg\ndata/img/c.jpg\ndata/img/c.jpg\n")
    source = Yolo(root)
    assert _names(source)["data/img/a.jpg"] == "train"
    notice = source.list_samples().notices[0]
    assert notice.startswith("2 repeated")
    assert re.search(r"img/a\.jpg in .*train.* valid", notice)
    assert re.search(r"img/c\.jpg twice .*valid", notice)


def test_masks_of_yolo_on_a_rotated_image(tmp_path: Path) -> None:
    """6: the stored top is on the right; the upright image is 20 wide and 40 high."""
    write(tmp_path / "data.yaml", "train: images\nnames: [cat, Dog]\n")
    write(tmp_path / "labels/0.txt", "1 0 0 0.25 0 0.25 0.25 0 0.25 0 0.1\n")
    image(tmp_path / "images/0.jpg", (40, 20), orientation=6)
    features, _ = read(Yolo(tmp_path, object_masks="class").list_samples())
    expected = np.zeros((20, 40), np.uint8)
    expected[15:, :10] = 2
    assert np.array_equal(mask_of(features["image/segmentation/class/encoded"]), expected)
