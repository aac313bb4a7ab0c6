"""Layouts of boxes, as other tools export them: detected, packed, and compared with the truth.

Each layout is written by hand here, with the same boxes. Pycocotools must read them from COCO, too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.boxes.source import find_candidates
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.layouts import Confidence
from recordsmith.stores import as_folder

from .annotated import image, voc_xml, write

WIDTH, HEIGHT = 40, 20
TRUTH = {
    "a": [("cat", 4.0, 5.0, 14.0, 15.0), ("Dog", 0.0, 0.0, 40.0, 20.0)],
    "b": [("Dog", 10.0, 2.0, 30.0, 18.0)],
    "c": [("cat", 1.0, 1.0, 3.0, 4.0)],
    "d": [("cat", 20.0, 10.0, 40.0, 12.0), ("cat", 2.0, 3.0, 9.0, 8.0)],
}
NAMES = ["cat", "Dog"]


# -- COCO ----------------------------------------------------------------------------------------


def _coco_json(path: Path, stems: str, name: Callable[[str], str], **more: Any) -> None:
    images: list[Any] = []
    annotations: list[Any] = []
    for stem in stems:
        number = len(images) + 1
        size = {"width": WIDTH, "height": HEIGHT}
        images.append({"id": number, "file_name": name(stem), **size})
        for kind, x1, y1, x2, y2 in TRUTH[stem]:
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": NAMES.index(kind) + 1,
                    "bbox": [x1, y1, x2 - x1, y2 - y1],
                    "area": (x2 - x1) * (y2 - y1),
                    "iscrowd": 0,
                    "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]],
                    **more,
                }
            )
    categories = [{"id": n, "name": kind} for n, kind in enumerate(NAMES, 1)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    write(path, json.dumps({"info": {"year": 2017}, "licenses": [], **document}))


def _by_pycocotools(root: Path) -> list[list[Any]]:
    """Class, xmin, ymin, xmax, ymax of the objects of each image, in order."""
    coco = pytest.importorskip("pycocotools.coco")
    images = []
    for path in sorted(root.rglob("*.json")):
        if "captions" in path.name or "keypoints" in path.name:
            continue
        file = coco.COCO(str(path))
        for image_id in file.getImgIds():
            boxes = []
            for item in file.loadAnns(file.getAnnIds(imgIds=[image_id])):
                x, y, width, height = item["bbox"]
                name = file.cats[item["category_id"]]["name"]
                boxes.append((name, x, y, x + width, y + height))
            images.append(boxes)
    return images


Splits = Mapping[str, str]
TWO_SPLITS = {"train": "ab", "val": "cd"}
VALID = {"train": "ab", "valid": "cd"}
ALL = {"": "abcd"}


def _each(
    root: Path, splits: Splits, images: str, path: str = "", text: Callable[[str], str] = str
) -> None:
    """An image, and a file with the boxes, for each stem; {} is the split and the stem."""
    for split, stems in splits.items():
        for stem in stems:
            image(root / images.format(split, stem))
            if path:
                write(root / path.format(split, stem), text(stem))


def _coco_itself(root: Path) -> None:
    _each(root, TWO_SPLITS, "{}2017/{}.jpg")
    captions = {"images": [], "annotations": [{"image_id": 1, "id": 1, "caption": "a cat"}]}
    keypoints = {"keypoints": [1, 2, 2], "num_keypoints": 1}
    for split, stems in TWO_SPLITS.items():
        for task, more in (("instances", {}), ("person_keypoints", keypoints)):
            path = root / f"annotations/{task}_{split}2017.json"
            _coco_json(path, stems, "{}.jpg".format, **more)
        write(root / f"annotations/captions_{split}2017.json", json.dumps(captions))


def _coco_in_folders_of_other_names(root: Path) -> None:
    _each(root, ALL, "photos/2017{}/{}.jpg")
    _coco_json(root / "labels/boxes.json", "abcd", "{}.jpg".format)


def _coco_of_roboflow(root: Path) -> None:
    splits = {"train": "ab", "valid": "c", "test": "d"}
    _each(root, splits, "{}/{}_jpg.rf.0f3a.jpg")
    for split, stems in splits.items():
        _coco_json(root / split / "_annotations.coco.json", stems, "{}_jpg.rf.0f3a.jpg".format)
    write(root / "README.roboflow.txt", "exported")


def _coco_of_label_studio(root: Path) -> None:
    _each(root, ALL, "images/{}1f3e-{}.jpg")
    _coco_json(root / "result.json", "abcd", r"..\..\media\upload\1\1f3e-{}.jpg".format)


# -- YOLO ----------------------------------------------------------------------------------------


def _yolo_rows(stem: str) -> str:
    rows = []
    for kind, x1, y1, x2, y2 in TRUTH[stem]:
        values = (
            (x1 + x2) / 2 / WIDTH,
            (y1 + y2) / 2 / HEIGHT,
            (x2 - x1) / WIDTH,
            (y2 - y1) / HEIGHT,
        )
        rows.append(f"{NAMES.index(kind)} {' '.join(map(str, values))}")
    return "\n".join(rows)


def _yolo_of_ultralytics(root: Path) -> None:
    splits = "path: ../datasets/coco8\ntrain: images/train\nval: images/val\n"
    write(root / "coco8.yaml", f"{splits}names:\n  0: cat\n  1: Dog\n")
    _each(root, TWO_SPLITS, "images/{}/{}.jpg", "labels/{}/{}.txt", _yolo_rows)


def _yolo_of_roboflow(root: Path) -> None:
    splits = "train: ../train/images\nval: ../valid/images\n"
    write(root / "data.yaml", f"{splits}nc: 2\nnames: ['cat', 'Dog']\n")
    _each(root, VALID, "{}/images/{}.jpg", "{}/labels/{}.txt", _yolo_rows)


def _yolo_segments(root: Path) -> None:
    _yolo_of_ultralytics(root)
    rows = ["0 0.1 0.25 0.35 0.25 0.35 0.75", "1 0 0 1 0.5 0.5 1"]
    write(root / "labels/train/a.txt", "\n".join(rows))


def _yolo_of_cvat(root: Path) -> None:
    lines = ("classes = 2", "train = data/train.txt", "names = data/obj.names", "backup = backup/")
    write(root / "obj.data", "\n".join(lines))
    write(root / "obj.names", "cat\nDog\n")
    write(root / "train.txt", "".join(f"data/obj_train_data/{stem}.jpg\n" for stem in TRUTH))
    _each(root, ALL, "obj_train_data/{}{}.jpg", "obj_train_data/{}{}.txt", _yolo_rows)


def _darknet_of_roboflow(root: Path) -> None:
    _each(root, VALID, "{}/{}.jpg", "{}/{}.txt", _yolo_rows)
    for split in VALID:
        write(root / split / "_darknet.labels", "cat\nDog\n")


# -- PASCAL VOC ----------------------------------------------------------------------------------


def _voc_in(images: str, annotations: str, *lists: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        path = f"{annotations}/{{1}}.xml"
        _each(root, VALID, f"{images}/{{1}}.jpg", path, lambda s: voc_xml(TRUTH[s], f"{s}.jpg"))
        for name in lists:
            write(root / name, "".join(f"{stem}\n" for stem in TRUTH))

    return make


# -- LabelMe -------------------------------------------------------------------------------------


def _labelme_in(images: str, jsons: str, *names: str) -> Callable[[Path], None]:
    def text(stem: str) -> str:
        shapes = [
            {"label": kind, "points": [[x2, y2], [x1, y1]], "shape_type": "rectangle"}
            for kind, x1, y1, x2, y2 in TRUTH[stem]
        ]
        size = {"imageHeight": HEIGHT, "imageWidth": WIDTH, "imageData": None}
        path = f"..\\{images}\\{stem}.jpg"
        return json.dumps({"flags": {}, "shapes": shapes, "imagePath": path, **size})

    def make(root: Path) -> None:
        _each(root, VALID, f"{images}/{{1}}.jpg", f"{jsons}/{{1}}.json", text)
        for name in names:
            write(root / name, "__ignore__\n_background_\ncat\nDog\n")

    return make


# -- CVAT ----------------------------------------------------------------------------------------


def _cvat(root: Path) -> None:
    elements = []
    _each(root, ALL, "images/{}{}.jpg")
    for number, (stem, boxes) in enumerate(TRUTH.items()):
        shapes = "".join(
            f'<box label="{kind}" occluded="0" source="manual" xtl="{x1}" ytl="{y1}" xbr="{x2}" '
            f'ybr="{y2}" z_order="0">\n</box>'
            for kind, x1, y1, x2, y2 in boxes
        )
        size = f'width="{WIDTH}" height="{HEIGHT}"'
        elements.append(f'<image id="{number}" name="{stem}.jpg" {size}>{shapes}\n</image>')
    labels = "<labels><label><name>cat</name></label></labels>"
    meta = f"<version>1.1</version><meta><job>{labels}</job></meta>"
    text = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>' + meta + "\n".join(elements)
    write(root / "annotations.xml", text + "</annotations>\n")


# -- CSV -----------------------------------------------------------------------------------------


def _write_rows(path: Path, rows: list[dict[str, Any]], *, header: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if header:
            writer.writeheader()
        writer.writerows(rows)


def _rows(stems: str, folder: str = "") -> list[dict[str, Any]]:
    return [
        {
            "filename": f"{folder}{stem}.jpg",
            "width": WIDTH,
            "height": HEIGHT,
            "class": kind,
            "xmin": int(x1),
            "ymin": int(y1),
            "xmax": int(x2),
            "ymax": int(y2),
        }
        for stem in stems
        for kind, x1, y1, x2, y2 in TRUTH[stem]
    ]


def _csv_of_roboflow(root: Path) -> None:
    _each(root, VALID, "{}/{}.jpg")
    for split, stems in VALID.items():
        _write_rows(root / split / "_annotations.csv", _rows(stems))


def _csv_of_tutorials(root: Path) -> None:
    """The rows of an image are not together."""
    _each(root, ALL, "images/{}{}.jpg")
    _write_rows(root / "data/train_labels.csv", _rows("dab")[::-1])
    _write_rows(root / "data/test_labels.csv", _rows("c"))


def _csv_of_retinanet(root: Path) -> None:
    _each(root, ALL, "images/{}{}.jpg")
    sides = ("filename", "xmin", "ymin", "xmax", "ymax", "class")
    rows = [{side: row[side] for side in sides} for row in _rows("abcd", "images/")]
    _write_rows(root / "annotations.csv", rows, header=False)


def _open_images(root: Path) -> None:
    _each(root, {"train": "ab", "validation": "cd"}, "{}/{}.jpg")
    ids = {"cat": "/m/01yrx", "Dog": "/m/0bt9lr"}
    for split, stems in (("train", "ab"), ("validation", "cd")):
        rows = []
        for stem in stems:
            rows += [
                {
                    "ImageID": stem,
                    "Source": "xclick",
                    "LabelName": ids[kind],
                    "Confidence": 1,
                    "XMin": x1 / WIDTH,
                    "XMax": x2 / WIDTH,
                    "YMin": y1 / HEIGHT,
                    "YMax": y2 / HEIGHT,
                    "IsOccluded": 0,
                    "IsTruncated": -1,
                    "IsGroupOf": int(kind == "Dog"),
                }
                for kind, x1, y1, x2, y2 in TRUTH[stem]
            ]
        _write_rows(root / f"{split}-annotations-bbox.csv", rows)
    described = "".join(f"{key},{name}\n" for name, key in ids.items())
    write(root / "class-descriptions-boxable.csv", f"{described}/m/0ignored,Ignored\n")


# -- the tests -----------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How to write it, its format, its splits, and what its images are called."""

    make: Callable[[Path], None]
    format: str
    splits: tuple[str, ...] = ("train",)
    image: str = "{}.jpg"


LAYOUTS: Mapping[str, Layout] = {
    "COCO": Layout(_coco_itself, "coco", ("train", "val")),
    "COCO in other folders": Layout(_coco_in_folders_of_other_names, "coco"),
    "COCO of Roboflow": Layout(
        _coco_of_roboflow, "coco", ("train", "valid", "test"), "{}_jpg.rf.0f3a.jpg"
    ),
    "COCO of Label Studio": Layout(_coco_of_label_studio, "coco", image="1f3e-{}.jpg"),
    "YOLO of Ultralytics": Layout(_yolo_of_ultralytics, "yolo", ("train", "val")),
    "YOLO segments": Layout(_yolo_segments, "yolo", ("train", "val")),
    "YOLO of Roboflow": Layout(_yolo_of_roboflow, "yolo", ("train", "val")),
    "YOLO of CVAT": Layout(_yolo_of_cvat, "yolo"),
    "darknet of Roboflow": Layout(_darknet_of_roboflow, "yolo", ("train", "valid")),
    "PASCAL VOC": Layout(
        _voc_in("JPEGImages", "Annotations", "ImageSets/Main/trainval.txt"), "voc"
    ),
    "VOC in lower case": Layout(_voc_in("images", "annotations/xmls"), "voc"),
    "VOC in mirrored folders": Layout(
        _voc_in("images/{0}", "annotations/{0}"), "voc", ("train", "valid")
    ),
    "VOC next to its images": Layout(_voc_in(".", "."), "voc"),
    "VOC below its images": Layout(_voc_in(".", "annotations"), "voc"),
    "VOC of Roboflow": Layout(_voc_in("{0}", "{0}"), "voc", ("train", "valid")),
    "VOC of CVAT": Layout(
        _voc_in("JPEGImages", "Annotations", "ImageSets/Main/default.txt", "labelmap.txt"), "voc"
    ),
    "LabelMe": Layout(_labelme_in("photos", "photos"), "labelme"),
    "LabelMe in two folders": Layout(_labelme_in("images", "annotations", "labels.txt"), "labelme"),
    "CVAT": Layout(_cvat, "cvat"),
    "CSV of Roboflow": Layout(_csv_of_roboflow, "csv-boxes", ("train", "valid")),
    "CSV of tutorials": Layout(_csv_of_tutorials, "csv-boxes", ("train", "test")),
    "CSV of keras-retinanet": Layout(_csv_of_retinanet, "csv-boxes"),
    "Open Images": Layout(_open_images, "csv-boxes", ("train", "validation")),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_are_packed(layout: Layout, tmp_path: Path) -> None:
    root = tmp_path / "data"
    layout.make(root)
    (candidate,) = find_candidates(FileTree(as_folder(root)))
    assert (candidate.format, candidate.problem) == (layout.format, "")
    assert candidate.confidence >= Confidence.ANNOTATED
    report = rs.pack(rs.detect(root).source, tmp_path / "out")
    assert (report.skipped_count, tuple(report.splits)) == (0, layout.splits)
    packed: dict[str, Any] = {}
    images = {path.name: path for path in root.rglob("*.jpg")}
    for record in rs.open(tmp_path / "out"):
        name = record["image/filename"][0].decode().rpartition("/")[2]
        assert record["image/encoded"][0] == images[name].read_bytes()
        sides = [record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
        boxes = (np.transpose(sides) * [WIDTH, HEIGHT, WIDTH, HEIGHT]).round(4).tolist()
        texts = [text.decode() for text in record["image/object/class/text"]]
        packed[name] = sorted((text, *box) for text, box in zip(texts, boxes, strict=True))
    assert packed == {layout.image.format(stem): sorted(boxes) for stem, boxes in TRUTH.items()}
    if layout.format == "coco":
        assert sorted(_by_pycocotools(root)) == sorted(TRUTH.values())


UNKNOWN = {
    "DOTA": ("images/{}.png", "labelTxt/{}.txt", "4 2 20 3 19 12 3 11 plane 0"),
    "KITTI": ("image_2/{}.png", "label_2/{}.txt", "Car 0 0 -0.2 1 2 3 4 1.8 0.4 1 1 1 8 0"),
    "Supervisely": ("img/{}.jpg", "ann/{}.jpg.json", '{"objects": [{"classTitle": "cat"}]}'),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_annotations_of_unknown_formats_are_a_problem(name: str, tmp_path: Path) -> None:
    images, annotations, text = UNKNOWN[name]
    for stem in TRUTH:
        image(tmp_path / images.format(stem))
        write(tmp_path / annotations.format(stem), text)
    (reading,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert "not known" in reading.problem
    with pytest.raises(rs.SourceError, match="not known"):
        _ = rs.detect(tmp_path).source
    assert reading.confidence == Confidence.ANNOTATED


OTHERS = {
    "dataset_info.json": '{"name": "mnist", "splits": [{"name": "train"}]}',
    "features.json": '{"featuresDict": {"features": {"image": {"image": {}}}}}',
    "package.json": '{"version": "1", "files": ["a"]}',
    "vocab.json": '{"images": 1, "annotations": 2}',
    "deep.json": "[" * 70_000,
    "rows.csv": "id,label,x,y\n1,cat,2,3\n",
    "names.csv": "filename,label\na.jpg,cat\n",
    "config.yaml": "names: [a]\nlr: 1\n",
    "run.yaml": "train: true\n",
    "data/numbers.txt": "1 2 3\n4 5 6\n",
    "README.txt": "These are images.\n",
    "list.txt": "a.jpg 1\nb.jpg 2\n",
    "feed.xml": "<rss><item/></rss>",
    "pom.xml": "<project/>",
}


def test_other_files_are_not_annotations(tmp_path: Path) -> None:
    for name, text in OTHERS.items():
        write(tmp_path / name, text)
    for stem in TRUTH:
        image(tmp_path / f"cats/{stem}.jpg")
    assert list(find_candidates(FileTree(as_folder(tmp_path)))) == []


def test_few_annotation_files_are_weaker(tmp_path: Path) -> None:
    """ImageNet has boxes of a third of its images."""
    _voc_in("images", "annotations")(tmp_path)
    for number in range(10):
        image(tmp_path / f"images/more{number}.jpg")
    (reading,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert (reading.format, reading.confidence) == ("voc", Confidence.STRUCTURE)
