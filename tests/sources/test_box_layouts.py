"""Layouts of boxes, as other tools export them: detected, packed, and compared with the truth.

Each layout is written by hand here, with the same boxes. Pycocotools must read them from COCO, too.
"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import recordsmith as rs
from recordsmith.sources.boxes.detection import find_candidates
from recordsmith.sources.boxes.known_formats import recognise_annotations
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
    item = {"image_id": 1, "id": 1, "caption": "a cat"}
    keypoints = {"keypoints": [1, 2, 2], "num_keypoints": 1}
    for split, stems in TWO_SPLITS.items():
        for task, more in (("instances", {}), ("person_keypoints", keypoints)):
            path = root / f"annotations/{task}_{split}2017.json"
            _coco_json(path, stems, "{}.jpg".format, **more)
        images = [{"id": n, "file_name": f"{stem}.jpg"} for n, stem in enumerate(stems, 1)]
        captions = {"images": images, "annotations": [item]}
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


# -- DOTA ----------------------------------------------------------------------------------------


def _dota_in(images: str, texts: str, *, is_roboflow: bool = False) -> Callable[[Path], None]:
    def text(stem: str) -> str:
        lines = [] if is_roboflow else ["imagesource:GoogleEarth", "gsd:0.146343590398"]
        for kind, x1, y1, x2, y2 in TRUTH[stem]:
            lines.append(f"{x2} {y1} {x2} {y2} {x1} {y2} {x1} {y1} {kind} 1")
        return "\n".join(lines)

    def make(root: Path) -> None:
        _each(root, VALID, f"{images}/{{1}}.jpg", f"{texts}/{{1}}.txt", text)
        if is_roboflow:
            splits = "train: ../train/images\nval: ../valid/images\n"
            write(root / "data.yaml", f"{splits}nc: 2\nnames: ['Dog', 'cat']\n")
            write(root / "README.roboflow.txt", "exported")

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


# -- CreateML, KITTI, VGG Image Annotator ----------------------------------------------------------


def _createml(root: Path) -> None:
    for split, stems in VALID.items():
        items = []
        for stem in stems:
            image(root / f"{split}/{stem}.jpg")
            boxes = [
                {
                    "label": kind,
                    "coordinates": {
                        "x": (x1 + x2) / 2,
                        "y": (y1 + y2) / 2,
                        "width": x2 - x1,
                        "height": y2 - y1,
                    },
                }
                for kind, x1, y1, x2, y2 in TRUTH[stem]
            ]
            items.append({"image": f"{stem}.jpg", "annotations": boxes})
        write(root / f"{split}/_annotations.createml.json", json.dumps(items))


def _kitti_in(folder: str, *others: str) -> Callable[[Path], None]:
    """With calibrations, and as many test images of the same numbers."""

    def text(stem: str) -> str:
        rows = (f"{kind} 0.1 2 -1.58 {x1} {y1} {x2} {y2}" for kind, x1, y1, x2, y2 in TRUTH[stem])
        return "".join(f"{row} 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n" for row in rows)

    def make(root: Path) -> None:
        for stem in TRUTH:
            image(root / f"{folder}/image_2/{stem}.jpg")
            write(root / f"{folder}/label_2/{stem}.txt", text(stem))
            write(root / f"{folder}/calib/{stem}.txt", "P0: 7.2e+02 0 0 0\n")
            for other in others:
                image(root / f"{other}/image_2/{stem}.jpg")

    return make


def _via_regions(stem: str) -> list[dict[str, Any]]:
    regions = []
    for kind, x1, y1, x2, y2 in TRUTH[stem]:
        shape: dict[str, Any] = {"name": "rect", "x": x1, "y": y1}
        shape |= {"width": x2 - x1, "height": y2 - y1}
        if kind == "Dog":
            xs, ys = [x1, x2, x2, x1], [y1, y1, y2, y2]
            shape = {"name": "polygon", "all_points_x": xs, "all_points_y": ys}
        regions.append({"shape_attributes": shape, "region_attributes": {"type": kind}})
    return regions


def _via_json(root: Path) -> None:
    """What VIA 1 and 2 export, next to their projects."""
    for split, stems in VALID.items():
        items: dict[str, Any] = {}
        for stem in stems:
            image(root / f"{split}/{stem}.jpg")
            regions: Any = _via_regions(stem)
            if split == "valid":
                regions = {str(number): region for number, region in enumerate(regions)}
            more = {"size": 512, "file_attributes": {}}
            items[f"{stem}.jpg512"] = {"filename": f"{stem}.jpg", "regions": regions, **more}
        write(root / f"{split}/via_region_data.json", json.dumps(items))
        project = {"_via_settings": {}, "_via_img_metadata": items, "_via_attributes": {}}
        write(root / f"{split}/a_project.json", json.dumps(project))


def _via_csv(root: Path) -> None:
    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes"
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow([*f"#{header}".split(","), "region_attributes"])
    for stem in TRUTH:
        image(root / f"{stem}.jpg")
        for number, region in enumerate(_via_regions(stem)):
            cells = [json.dumps(cell) for cell in region.values()]
            rows.writerow([f"{stem}.jpg", 512, "{}", 2, number, *cells])
    write(root / "via_export_csv.csv", text.getvalue())


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
    "DOTA": Layout(_dota_in("{0}/images", "{0}/labelTxt"), "dota", ("train", "valid")),
    "DOTA in mirrored folders": Layout(
        _dota_in("images/{0}", "labelTxt/{0}"), "dota", ("train", "valid")
    ),
    "DOTA of MMRotate": Layout(_dota_in("images", "annfiles"), "dota"),
    "DOTA of Roboflow": Layout(
        _dota_in("{0}/images", "{0}/labelTxt", is_roboflow=True), "dota", ("train", "valid")
    ),
    "CreateML of Roboflow": Layout(_createml, "createml", ("train", "valid")),
    "KITTI": Layout(_kitti_in("training", "testing"), "kitti"),
    "KITTI's labels": Layout(_kitti_in("."), "kitti"),
    "VIA": Layout(_via_json, "via", ("train", "valid")),
    "VIA in CSV": Layout(_via_csv, "via"),
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


_VOTT_ASSET = (
    '"asset": {"format": "jpg", "id": "1f", "name": "a.jpg", "path": "file:a.jpg", "size": '
    '{"width": 40, "height": 20}, "state": 2, "type": 1}, "regions": [{"id": "x", "type": '
    '"RECTANGLE", "tags": ["cat"], "boundingBox": {"height": 10, "width": 10, "left": 4, "top": 5}'
    "}]"
)
_LABEL_STUDIO_VALUE = '"original_width": 40, "original_height": 20, "x": 10, "y": 25, "width": 25'
_WEB_XML = (
    "<annotation><filename>a.jpg</filename><folder>x</folder><source><sourceImage>x</sourceImage>"
    "<sourceAnnotation>LabelMe Webtool</sourceAnnotation></source>{}"
    "<imagesize><nrows>20</nrows><ncols>40</ncols></imagesize></annotation>"
)
_WEB_OBJECT = (
    "<object><name>cat</name><deleted>0</deleted><verified>0</verified><polygon><username>u"
    "</username><pt><x>4</x><y>5</y></pt><pt><x>14</x><y>15</y></pt></polygon></object>"
)
_KITTI = "Car 0.00 0 -1.58 4.00 5.00 14.00 15.00 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59"
_DOTA = "4.0 5.0 14.0 5.0 14.0 15.0 4.0 15.0 plane 0"

RECOGNISED = [
    (
        "VoTT",
        "vott-json-export/x-export.json",
        '{"name": "x", "securityToken": "t", "videoSettings"'
        ': {"frameExtractionRate": 15}, "tags": [{"name": "cat", "color": "#5db300"}], "id": "i", '
        '"version": "2.2.0", "assets": {"1f": {' + _VOTT_ASSET + "}}}",
    ),
    ("VoTT", "1f-asset.json", "{" + _VOTT_ASSET + ', "version": "2.2.0"}'),
    (
        "Datumaro",
        "annotations/default.json",
        (
            '{"info": {}, "categories": {"label": {"labels": '
            '[{"name": "cat", "parent": ""}], "attributes": []}}, "items": [{"id": "a", '
            '"annotations": [{"id": 0, "type": "bbox", "label_id": 0, "bbox": [4, 5, 10, 10]}], '
            '"image": {"path": "a.jpg", "size": [20, 40]}}]}'
        ),
    ),
    (
        "Datumaro",
        "train.json",
        (
            '{"dm_format_version": "1.0", "media_type": 2, "infos": {}, '
            '"categories": {}, "items": []}'
        ),
    ),
    (
        "Label Studio's storage, with a file for each annotation",
        "1.json",
        f'{{"id": 1, "result": [{{{_LABEL_STUDIO_VALUE}}}], "completed_by": 1, "task": {{}}}}',
    ),
    (
        "Label Studio JSON-MIN",
        "min.json",
        (
            '[{"image": "/data/upload/1/a.jpg", "id": 1, "label": '
            f'[{{{_LABEL_STUDIO_VALUE}, "rectanglelabels": ["cat"]}}]}}]'
        ),
    ),
    ("the LabelMe web tool", "Annotations/a.xml", _WEB_XML.format(_WEB_OBJECT)),
    ("the LabelMe web tool", "Annotations/b.xml", _WEB_XML.format("")),
    ("the LabelMe web tool", "a.xml", f"<annotation>{_WEB_OBJECT}</annotation>"),
    (
        "WIDER FACE",
        "wider_face_split/wider_face_train_bbx_gt.txt",
        "0--Parade/a.jpg\n1\n4 5 10 10 0 0 0 0 0 0 \n",
    ),
    ("MOT", "MOT17-02/gt/gt.txt", "1,1,4,5,10,10,1,1,0.86\n2,1,5,5,10,10,1,1,0.86\n"),
    ("KITTI tracking", "label_02/0000.txt", f"0 1 {_KITTI}\n5 -1 {_KITTI} 0.9\n"),
    ("VisDrone", "annotations/a.txt", "4,5,10,10,1,4,0,0\n4,5,10,10,0,0,0,0,\n"),
    ("VIA 3", "a.json", '{"project": {"pid": "p", "vid_list": []}, "config": {}, "attribute": {}}'),
    ("V7 Darwin", "a.json", '{"version": "2.0", "schema_ref": "u", "item": {}, "annotations": []}'),
    ("SuperAnnotate", "a.jpg.json", '{"metadata": {}, "instances": [{"className": "cat"}]}'),
    (
        "Scale AI",
        "tasks.json",
        '[{"task_id": "t", "params": {"attachment": "a.jpg"}, "response": {"annotations": []}}]',
    ),
    (
        "nuImages",
        "v1.0-mini/object_ann.json",
        '[{"token": "t", "category_token": "c", "sample_data_token": "s", "bbox": [4, 5, 14, 15]}]',
    ),
    ("Labelbox", "export.ndjson", '{"data_row": {}, "media_attributes": {}, "projects": {}}\n'),
    (
        "Ultralytics NDJSON",
        "a.ndjson",
        '{"type": "dataset", "task": "detect", "class_names": {}}\n',
    ),
    ("CrowdHuman", "annotation_train.odgt", '{"ID": "a", "gtboxes": [{"tag": "person"}]}\n'),
    ("MOT", "seq/det/det.txt", "1,-1,4.5,5,10,10,0.9,-1,-1,-1\n"),
    ("captions of Flickr8k", "Flickr8k.token.txt", "a.jpg#0\tA cat.\na.jpg#1\tA dog\n"),
    ("captions of Kaggle's Flickr8k", "captions.txt", 'image,caption\na.jpg,"A cat, sad"\n'),
    ("CelebA", "Anno/identity_CelebA.txt", "000001.jpg 2880\n"),
    ("CelebA", "Anno/list_bbox_celeba.txt", "1\nimage_id x_1 y_1 width height\na.jpg 4 5 10 10\n"),
    (
        "Supervisely",
        "ds0/ann/a.jpg.json",
        (
            '{"description": "", "tags": [], "size": {"height": 20, '
            '"width": 40}, "objects": [{"classTitle": "cat", "geometryType": "rectangle", '
            '"points": {"exterior": [[4, 5], [14, 15]], "interior": []}}]}'
        ),
    ),
    (
        "Supervisely",
        "ds0/ann/b.jpg.json",
        ('{"description": "", "tags": [], "size": {"height": 20, "width": 40}, "objects": []}'),
    ),
    (
        "BDD100K",
        "det_train.json",
        (
            '[{"name": "a.jpg", "timestamp": 1, "labels": [{"id": "1", '
            '"category": "car", "box2d": {"x1": 4, "x2": 14, "y1": 5, "y2": 15}}]}]'
        ),
    ),
]


@pytest.mark.parametrize(("name", "path", "text"), RECOGNISED)
def test_recognised_formats_are_named(name: str, path: str, text: str, tmp_path: Path) -> None:
    known = recognise_annotations(path, text.encode())
    assert known is not None
    assert known.name == name
    assert recognise_annotations(f"in/{path.upper()}", b"\xef\xbb\xbf" + text.encode()) == known
    assert recognise_annotations("a.yaml", text.encode()) is None
    write(tmp_path / path, text)
    for stem in TRUTH:
        image(tmp_path / f"images/{stem}.jpg")
    (candidate,) = find_candidates(FileTree(as_folder(tmp_path)))
    assert candidate.confidence == Confidence.ANNOTATED
    assert name in candidate.problem
    assert candidate.remedy.startswith(known.advice)
    with pytest.raises(rs.SourceError) as caught:  # in a folder, nothing else is offered
        _ = rs.detect(tmp_path).reading
    assert name in str(caught.value)
    if path.endswith((".json", ".xml", ".csv")):  # as the source itself
        with pytest.raises(rs.SourceError) as caught:
            _ = rs.detect(tmp_path / path).source
        assert name in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["a.jpg#0\tA, b\nb.jpg#0\tC\na.jpg#1\tD\n", 'image,caption\na.jpg,"A, b"\nb.jpg,C\na.jpg,D\n'],
)
def test_the_line_that_converts_captions(tmp_path: Path, text: str) -> None:
    known = recognise_annotations("captions.txt", text.encode())
    assert known is not None
    command = (
        known.advice.partition(": ")[2].removesuffix(".").replace("python ", f"{sys.executable} ")
    )
    write(tmp_path / "FILE", text)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "metadata.jsonl").read_text().splitlines()]
    assert [(row["file_name"], row["caption"]) for row in rows] == [
        ("a.jpg", ["A, b", "D"]),
        ("b.jpg", ["C"]),
    ]


def test_a_file_of_tabs_is_read(tmp_path: Path) -> None:
    rows = (f"{stem}.jpg\t4\t5\t14\t15\tcat\n" for stem in TRUTH)
    write(tmp_path / "boxes.tsv", "filename\txmin\tymin\txmax\tymax\tclass\n" + "".join(rows))
    for stem in TRUTH:
        image(tmp_path / f"{stem}.jpg")
    assert rs.detect(tmp_path / "boxes.tsv").reading.format == "csv-boxes"


ORDINARY = {
    "coordinates.json": '[{"image": "a.jpg", "coordinates": [1, 2], "width": 4, "label": "x"}]',
    "map.geojson.json": '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}}',
    "assets.json": '{"assets": {"logo": "a.png"}, "tags": [], "version": "1"}',
    "items.json": '{"info": {}, "items": [{"id": 1, "label": "x"}], "categories": ["a"]}',
    "shop.json": '{"description": "", "tags": ["x"], "size": "L", "height": 2, "width": 3}',
    "answers.json": '[{"result": 1, "from_name": "a"}]',
    "export.json": '{"filename": "a.jpg", "size": 512, "regions": ["EU"]}',
    "rows.json": '[{"name": "a", "labels": ["x"], "category": "y"}]',
    "settings.xml": "<annotation><filename>a.jpg</filename></annotation>",
    "shapes.xml": "<svg><polygon><pt/></polygon></svg>",
    "gt.txt": "1,1,4,5,10,10,1,1,0.86\n",
    "gt/gt.txt": "frame,id\n1,2\n",
    "wider_face.txt": "a.jpg\n1\n4 5 10 10 0 0 0 0 0 0\n",
    "celeba.txt": "000001.jpg 2880\n",
    "yolo.txt": "0 0.1 0.2 0.3 0.2 0.3 0.4 0.1 0.4\n",
    "poses.txt": "1 2 3 4 5 6 7 8 9 10\n",
    "words.txt": "a b c d e f g h plane 0\n",
    "kitti_poses.txt": "1 0 0 1 0 1 0 1 0 0 1 1\n",
    "fourteen.txt": f"{_KITTI.rpartition(' ')[0]}\n",
    "mixed.txt": f"{_KITTI}\nend of file\n",
    "features.txt": "Car 0.5 7 1 1 1 1 1 1 1 1 1 1 1 1\n",
    "quads.txt": "4 5 14 5 14 15 4 15 plane 7\n4 5 14 5 14 15 4 15 two words\n",
    "corners.txt": f"{_DOTA}\nplane 1\n",
    "regions.csv": "filename,region_count,label\na.jpg,1,cat\n",
    "notes.txt": "",
    "numbers.txt": "4,5,10,10,1,4,0,0\n",
    "project.json": '{"project": "x", "config": {}, "metadata": {"instances": 3}}',
    "tasks.json": '[{"task_id": 1, "response": "ok"}]',
    "lines.ndjson": '{"type": "dataset", "task": "x"}',
}


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_have_no_known_format(path: str) -> None:
    assert recognise_annotations(path, ORDINARY[path].encode()) is None
    assert not rs.Dota.box_format.matches(ORDINARY[path].encode())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_files_that_are_read_are_not_recognised_as_others(layout: Layout, tmp_path: Path) -> None:
    layout.make(tmp_path)
    for path in tmp_path.rglob("*.*"):
        if path.is_file() and path.suffix != ".jpg":
            name = path.relative_to(tmp_path).as_posix()
            assert recognise_annotations(name, path.read_bytes()) is None


def test_a_row_that_the_head_cuts_off_is_not_compared() -> None:
    assert recognise_annotations("a.txt", f"0 1 {_KITTI}\n0 2 {_KITTI[:30]}".encode()) is not None


@pytest.mark.parametrize("text", ["[" * 65_536, "1 " * 32_768, "1" * 65_536, "a\n" * 32_768,
                                  '"image"' * 9000, "<annotation>" * 5400])  # fmt: skip
def test_odd_heads(text: str) -> None:
    names = ("a.json", "a.txt", "a.xml", "a.csv", "gt/gt.txt", "a")
    assert [recognise_annotations(name, text.encode()) for name in names] == [None] * 6


def test_annotations_of_an_unknown_format_are_a_problem(tmp_path: Path) -> None:
    for stem in TRUTH:
        image(tmp_path / f"img/{stem}.jpg")
        write(tmp_path / f"ann/{stem}.jpg.json", '{"animals": [{"title": "cat"}]}')
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


@pytest.mark.parametrize(
    ("path", "text", "format"),
    [
        ("boxes.txt", "1 10.0 20.0 30.0 40.0\n2 10.0 20.0 30.0 40.0\n", None),  # not of one image
        ("a.txt", "1 0.5 0.5 0.2 0.2\n", "yolo"),
        ("b.xml", "<list><annotation x='1'/><size>3</size></list>", None),
        ("b.xml", "<?xml version='1.0'?><!-- <b> --><annotation><size/></annotation>", "voc"),
        ("b.xml", "<list><annotations><image/></annotations></list>", None),
        ("b.xml", "<annotations><image/></annotations>", "cvat"),
        ("b.xml", "", None),
    ],
)
def test_only_files_that_can_be_read_are_offered(
    tmp_path: Path, path: str, text: str, format: str | None
) -> None:
    image(tmp_path / "a.jpg")
    write(tmp_path / path, text)
    offered = [reading.format for reading in find_candidates(FileTree(as_folder(tmp_path)))]
    assert offered == ([] if format is None else [format])
