"""Layouts of boxes, as other tools export them: detected, packed, and compared with other readers.

Each layout is written by hand here and read by something that is not recordsmith: pycocotools,
`xml.etree`, `csv`, `json`. What is packed must be what they read.
"""

from __future__ import annotations

import csv
import json
import xml.etree.ElementTree as ET
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

Found = dict[str, list[tuple[str, tuple[float, ...]]]]
"""Last part of the image's path -> class and xmin, ymin, xmax, ymax in pixels of each object."""


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


def _by_pycocotools(root: Path) -> Found:
    coco = pytest.importorskip("pycocotools.coco")
    found: Found = {}
    for path in root.rglob("*.json"):
        if "captions" in path.name or "keypoints" in path.name or "notes" in path.name:
            continue
        file = coco.COCO(str(path))
        for entry in file.loadImgs(file.getImgIds()):
            name = entry["file_name"].replace("\\", "/").rpartition("/")[2]
            found[name] = [
                (
                    file.cats[item["category_id"]]["name"],
                    (
                        *item["bbox"][:2],
                        item["bbox"][0] + item["bbox"][2],
                        item["bbox"][1] + item["bbox"][3],
                    ),
                )
                for item in file.loadAnns(file.getAnnIds(imgIds=[entry["id"]]))
            ]
    return found


def _coco_itself(root: Path) -> None:
    for split, stems in (("train", "ab"), ("val", "cd")):
        for stem in stems:
            image(root / f"{split}2017/{stem}.jpg")
        jsons = root / "annotations"
        _coco_json(jsons / f"instances_{split}2017.json", stems, lambda s: f"{s}.jpg")
        keypoints = {"keypoints": [1, 2, 2], "num_keypoints": 1}
        _coco_json(
            jsons / f"person_keypoints_{split}2017.json", stems, lambda s: f"{s}.jpg", **keypoints
        )
        captions = {"images": [], "annotations": [{"image_id": 1, "id": 1, "caption": "a cat"}]}
        write(jsons / f"captions_{split}2017.json", json.dumps(captions))


def _coco_in_folders_of_other_names(root: Path) -> None:
    for stem in TRUTH:
        image(root / f"photos/2017/{stem}.jpg")
    _coco_json(root / "labels/boxes.json", "abcd", lambda s: f"{s}.jpg")


def _coco_of_roboflow(root: Path) -> None:
    for split, stems in (("train", "ab"), ("valid", "c"), ("test", "d")):
        for stem in stems:
            image(root / f"{split}/{stem}_jpg.rf.0f3a.jpg")
        path = root / split / "_annotations.coco.json"
        _coco_json(path, stems, lambda s: f"{s}_jpg.rf.0f3a.jpg")
    write(root / "README.roboflow.txt", "exported")


def _coco_of_label_studio(root: Path) -> None:
    for stem in TRUTH:
        image(root / f"images/1f3e-{stem}.jpg")
    _coco_json(root / "result.json", "abcd", lambda s: rf"..\..\media\upload\1\1f3e-{s}.jpg")


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


def _by_splitting_rows(root: Path) -> Found:
    found = {}
    for path in root.rglob("*.txt"):
        rows = [line.split() for line in path.read_text().splitlines() if line[:1].isdigit()]
        if not rows:
            continue
        boxes = []
        for kind, *values in rows:
            numbers = np.array(values, float)
            if len(numbers) > 4:
                points = numbers.reshape(-1, 2)
                low, high = points.min(0), points.max(0)
            else:
                low, high = numbers[:2] - numbers[2:] / 2, numbers[:2] + numbers[2:] / 2
            corners = np.concatenate([low, high]) * [WIDTH, HEIGHT, WIDTH, HEIGHT]
            boxes.append((NAMES[int(kind)], tuple(corners.tolist())))
        found[f"{path.stem}.jpg"] = boxes
    return found


def _yolo_of_ultralytics(root: Path) -> None:
    splits = "path: ../datasets/coco8\ntrain: images/train\nval: images/val\n"
    write(root / "coco8.yaml", f"{splits}names:\n  0: cat\n  1: Dog\n")
    for split, stems in (("train", "ab"), ("val", "cd")):
        for stem in stems:
            image(root / f"images/{split}/{stem}.jpg")
            write(root / f"labels/{split}/{stem}.txt", _yolo_rows(stem))


def _yolo_of_roboflow(root: Path) -> None:
    splits = "train: ../train/images\nval: ../valid/images\n"
    write(root / "data.yaml", f"{splits}nc: 2\nnames: ['cat', 'Dog']\n")
    for split, stems in (("train", "ab"), ("valid", "cd")):
        for stem in stems:
            image(root / f"{split}/images/{stem}.jpg")
            write(root / f"{split}/labels/{stem}.txt", _yolo_rows(stem))


def _yolo_segments(root: Path) -> None:
    _yolo_of_ultralytics(root)
    rows = ["0 0.1 0.25 0.35 0.25 0.35 0.75", "1 0.2 0.1 0.3 0.2 0.4 0.6 0.3 0.7 0.2 0.5"]
    write(root / "labels/train/a.txt", "\n".join(rows))


def _yolo_of_cvat(root: Path) -> None:
    lines = ("classes = 2", "train = data/train.txt", "names = data/obj.names", "backup = backup/")
    write(root / "obj.data", "\n".join(lines))
    write(root / "obj.names", "cat\nDog\n")
    write(root / "train.txt", "".join(f"data/obj_train_data/{stem}.jpg\n" for stem in TRUTH))
    for stem in TRUTH:
        image(root / f"obj_train_data/{stem}.jpg")
        write(root / f"obj_train_data/{stem}.txt", _yolo_rows(stem))


def _darknet_of_roboflow(root: Path) -> None:
    for split, stems in (("train", "ab"), ("valid", "cd")):
        write(root / split / "_darknet.labels", "cat\nDog\n")
        for stem in stems:
            image(root / f"{split}/{stem}.jpg")
            write(root / f"{split}/{stem}.txt", _yolo_rows(stem))


# -- PASCAL VOC ----------------------------------------------------------------------------------


def _by_elementtree(root: Path) -> Found:
    found = {}
    for path in root.rglob("*.xml"):
        document = ET.parse(path).getroot()
        found[f"{path.stem}.jpg"] = [
            (
                str(item.findtext("name")),
                tuple(
                    float(str(item.findtext(f"bndbox/{side}")))
                    for side in ("xmin", "ymin", "xmax", "ymax")
                ),
            )
            for item in document.iter("object")
        ]
    return found


def _voc_in(images: str, annotations: str, *lists: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        for stem, boxes in TRUTH.items():
            split = "train" if stem in "ab" else "valid"
            image(root / images.format(split) / f"{stem}.jpg")
            path = root / annotations.format(split) / f"{stem}.xml"
            write(path, voc_xml(boxes, f"{stem}.jpg"))
        for name in lists:
            write(root / name, "".join(f"{stem}\n" for stem in TRUTH))

    return make


# -- LabelMe -------------------------------------------------------------------------------------


def _labelme_in(images: str, jsons: str, *names: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        for stem, boxes in TRUTH.items():
            image(root / images / f"{stem}.jpg")
            shapes = [
                {"label": kind, "points": [[x2, y2], [x1, y1]], "shape_type": "rectangle"}
                for kind, x1, y1, x2, y2 in boxes
            ]
            document: dict[str, Any] = {
                "version": "5.1.1",
                "flags": {},
                "shapes": shapes,
                "imagePath": f"..\\{images}\\{stem}.jpg",
                "imageData": None,
                "imageHeight": HEIGHT,
                "imageWidth": WIDTH,
            }
            write(root / jsons / f"{stem}.json", json.dumps(document))
        for name in names:
            write(root / name, "__ignore__\n_background_\ncat\nDog\n")

    return make


def _by_json(root: Path) -> Found:
    found = {}
    for path in root.rglob("*.json"):
        shapes = json.loads(path.read_text())["shapes"]
        found[f"{path.stem}.jpg"] = [
            (
                shape["label"],
                tuple(
                    pick(point[axis] for point in shape["points"])
                    for pick in (min, max)
                    for axis in (0, 1)
                ),
            )
            for shape in shapes
        ]
    return found


# -- CVAT ----------------------------------------------------------------------------------------


def _cvat(root: Path) -> None:
    elements = []
    for number, (stem, boxes) in enumerate(TRUTH.items()):
        image(root / f"images/{stem}.jpg")
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


def _by_elementtree_of_cvat(root: Path) -> Found:
    document = ET.parse(root / "annotations.xml").getroot()
    return {
        str(entry.get("name")): [
            (
                str(box.get("label")),
                tuple(float(str(box.get(side))) for side in ("xtl", "ytl", "xbr", "ybr")),
            )
            for box in entry.iter("box")
        ]
        for entry in document.iter("image")
    }


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
    for split, stems in (("train", "ab"), ("valid", "cd")):
        for stem in stems:
            image(root / split / f"{stem}.jpg")
        _write_rows(root / split / "_annotations.csv", _rows(stems))


def _csv_of_tutorials(root: Path) -> None:
    """The rows of an image are not together."""
    for stem in TRUTH:
        image(root / f"images/{stem}.jpg")
    _write_rows(root / "data/train_labels.csv", _rows("dab")[::-1])
    _write_rows(root / "data/test_labels.csv", _rows("c"))


def _csv_of_retinanet(root: Path) -> None:
    rows = []
    for row in _rows("abcd", "images/"):
        image(root / row["filename"])
        corners = {side: row[side] for side in ("xmin", "ymin", "xmax", "ymax")}
        rows.append({"path": row["filename"], **corners, "class": row["class"]})
    _write_rows(root / "annotations.csv", rows, header=False)


def _open_images(root: Path) -> None:
    ids = {"cat": "/m/01yrx", "Dog": "/m/0bt9lr"}
    for split, stems in (("train", "ab"), ("validation", "cd")):
        rows = []
        for stem in stems:
            image(root / split / f"{stem}.jpg")
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


def _by_csv(root: Path) -> Found:
    found: Found = {}
    names = {"/m/01yrx": "cat", "/m/0bt9lr": "Dog"}
    for path in root.rglob("*.csv"):
        if "class-descriptions" in path.name:
            continue
        with path.open(newline="") as file:
            for row in csv.reader(file):
                if "xmin" in row or "XMin" in row:
                    continue
                if len(row) == 11:  # Open Images
                    x1, x2, y1, y2 = map(float, row[4:8])
                    corners = (x1 * WIDTH, y1 * HEIGHT, x2 * WIDTH, y2 * HEIGHT)
                    name, kind = f"{row[0]}.jpg", names[row[2]]
                elif len(row) == 6:
                    corners = tuple(map(float, row[1:5]))  # type: ignore[assignment]
                    name, kind = row[0], row[5]
                else:
                    corners = tuple(map(float, row[4:8]))  # type: ignore[assignment]
                    name, kind = row[0], row[3]
                found.setdefault(name.rpartition("/")[2], []).append((kind, corners))
    return found


# -- the tests -----------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How to write it, what reads it independently, its format, its splits."""

    make: Callable[[Path], None]
    read: Callable[[Path], Found]
    format: str
    splits: tuple[str, ...] = ()


LAYOUTS: Mapping[str, Layout] = {
    "COCO": Layout(_coco_itself, _by_pycocotools, "coco", ("train", "val")),
    "COCO in other folders": Layout(_coco_in_folders_of_other_names, _by_pycocotools, "coco"),
    "COCO of Roboflow": Layout(
        _coco_of_roboflow, _by_pycocotools, "coco", ("train", "valid", "test")
    ),
    "COCO of Label Studio": Layout(_coco_of_label_studio, _by_pycocotools, "coco"),
    "YOLO of Ultralytics": Layout(
        _yolo_of_ultralytics, _by_splitting_rows, "yolo", ("train", "val")
    ),
    "YOLO segments": Layout(_yolo_segments, _by_splitting_rows, "yolo", ("train", "val")),
    "YOLO of Roboflow": Layout(_yolo_of_roboflow, _by_splitting_rows, "yolo", ("train", "val")),
    "YOLO of CVAT": Layout(_yolo_of_cvat, _by_splitting_rows, "yolo"),
    "darknet of Roboflow": Layout(
        _darknet_of_roboflow, _by_splitting_rows, "yolo", ("train", "valid")
    ),
    "PASCAL VOC": Layout(
        _voc_in("JPEGImages", "Annotations", "ImageSets/Main/trainval.txt"), _by_elementtree, "voc"
    ),
    "VOC of Roboflow": Layout(_voc_in("{}", "{}"), _by_elementtree, "voc", ("train", "valid")),
    "VOC of CVAT": Layout(
        _voc_in("JPEGImages", "Annotations", "ImageSets/Main/default.txt", "labelmap.txt"),
        _by_elementtree,
        "voc",
    ),
    "LabelMe": Layout(_labelme_in("photos", "photos"), _by_json, "labelme"),
    "LabelMe in two folders": Layout(
        _labelme_in("images", "annotations", "labels.txt"), _by_json, "labelme"
    ),
    "CVAT": Layout(_cvat, _by_elementtree_of_cvat, "cvat"),
    "CSV of Roboflow": Layout(_csv_of_roboflow, _by_csv, "csv-boxes", ("train", "valid")),
    "CSV of tutorials": Layout(_csv_of_tutorials, _by_csv, "csv-boxes", ("train", "test")),
    "CSV of keras-retinanet": Layout(_csv_of_retinanet, _by_csv, "csv-boxes"),
    "Open Images": Layout(_open_images, _by_csv, "csv-boxes", ("train", "validation")),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Layout, Path]:
    chosen = LAYOUTS[request.param]
    chosen.make(tmp_path / "data")
    return chosen, tmp_path / "data"


def test_layouts_are_packed_as_others_read_them(
    layout: tuple[Layout, Path], tmp_path: Path
) -> None:
    chosen, root = layout
    (candidate,) = find_candidates(FileTree(as_folder(root)))
    assert (candidate.format, candidate.problem) == (chosen.format, "")
    assert candidate.confidence >= Confidence.ANNOTATED
    report = rs.pack(rs.detect(root).source, tmp_path / "out")
    assert (report.skipped_count, tuple(report.splits)) == (0, chosen.splits or ("train",))
    found: Found = {}
    images = {path.name: path for path in root.rglob("*.jpg")}
    for record in rs.open(tmp_path / "out"):
        name = record["image/filename"][0].decode().rpartition("/")[2]
        assert record["image/encoded"][0] == images[name].read_bytes()
        sides = [record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
        boxes = np.transpose(sides) * [WIDTH, HEIGHT, WIDTH, HEIGHT]
        texts = [text.decode() for text in record["image/object/class/text"]]
        found[name] = list(zip(texts, map(tuple, boxes.round(4).tolist()), strict=True))
    expected = chosen.read(root)
    assert len(expected) == len(TRUTH)
    assert {name: sorted(boxes) for name, boxes in found.items()} == {
        name: sorted((kind, tuple(np.round(box, 4).tolist())) for kind, box in boxes)
        for name, boxes in expected.items()
    }


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
