"""Boxes and polygons: PASCAL VOC, COCO, YOLO, and the exports of annotation tools."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from .files import COLOURS, SIZE, Folder, box_of
from .layout import Box, Reading, Record, layout, one

WIDTH, HEIGHT = SIZE
_NAMES = ("cat", "dog")
_OTHERS: Mapping[str, Sequence[str]] = {
    "mask": ("mask", "polygon", "segmentation"),
    "keypoint": ("keypoint", "pose"),
}
"""What the output must mention if these parts of an annotation are not packed."""


def _box(number: int, name: str | None = None) -> Box:
    """A box that is different for each number, and neither square nor centred."""
    left, top = 2 + number % 7, 1 + number % 5
    return (name or _NAMES[number % 2], left, top, left + 12 + number % 3, top + 7)


def _boxes(number: int) -> tuple[Box, ...]:
    """One or two objects."""
    return (_box(number), *([_box(number + 3)] if number % 2 else []))


def _records(
    root: Folder, image: str, items: Iterable[object], start: int = 0
) -> dict[str, Record]:
    """Images by their paths, with different boxes."""
    return {
        image.format(item): Record(root.photo(image.format(item)), boxes=_boxes(number))
        for number, item in enumerate(items, start)
    }


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


# ---- PASCAL VOC --------------------------------------------------------------------------------


def _voc_xml(filename: str, boxes: Sequence[Box], folder: str = "VOC2007") -> str:
    objects = "".join(
        f"<object><name>{name}</name><pose>Unspecified</pose><truncated>0</truncated>"
        f"<difficult>0</difficult><bndbox><xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax>"
        f"<ymax>{bottom}</ymax></bndbox></object>"
        for name, left, top, right, bottom in boxes
    )
    return (
        f"<annotation><folder>{folder}</folder><filename>{filename}</filename><size>"
        f"<width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        f"<segmented>0</segmented>{objects}</annotation>\n"
    )


def _voc(root: Folder, records: Mapping[str, Record], xml: str) -> list[Record]:
    for path, record in records.items():
        name = path.rpartition("/")[2]
        root.text(xml.format(_stem(path)), _voc_xml(name, record.boxes or ()))
    return [*records.values()]


def _voc2007(root: Folder) -> dict[str, list[Record]]:
    below = "VOCdevkit/VOC2007"
    splits = {}
    for split, items in (("train", (12, 17, 23)), ("val", (5, 7)), ("test", (1, 2))):
        names = [f"{item:06d}" for item in items]
        records = _records(root, f"{below}/JPEGImages/{{}}.jpg", names, items[0])
        splits[split] = _voc(root, records, f"{below}/Annotations/{{}}.xml")
        root.lines(f"{below}/ImageSets/Main/{split}.txt", *names)
        for name in _NAMES:
            root.lines(f"{below}/ImageSets/Main/{name}_{split}.txt", *(f"{n}  1" for n in names))
    root.lines(
        f"{below}/ImageSets/Main/trainval.txt", "000005", "000007", "000012", "000017", "000023"
    )
    return {"train": splits["train"], "validation": splits["val"], "test": splits["test"]}


@layout()
def voc_2007_detection(root: Folder) -> Reading:
    """VOCdevkit/VOC2007 with lists of the splits, and a list for each class."""
    return Reading(_voc2007(root), box_tolerance=1.01)


@layout(loud_is_fine=True)
def voc_detection_and_segmentation(root: Folder) -> list[Reading]:
    """Boxes of all images, masks of some: both readings fit, and the other one must be named."""
    below = "VOCdevkit/VOC2012"
    names = [f"2007_0000{item}" for item in (27, 32, 33, 39)]
    records = _records(root, f"{below}/JPEGImages/{{}}.jpg", names)
    boxes = _voc(root, records, f"{below}/Annotations/{{}}.xml")
    masks = []
    for name in names[:3]:
        mask = root.mask(f"{below}/SegmentationClass/{name}.png", (0, 1, 3, 255), palette=COLOURS)
        root.mask(f"{below}/SegmentationObject/{name}.png", (0, 1, 2, 255), palette=COLOURS)
        masks.append(Record(records[f"{below}/JPEGImages/{name}.jpg"].image, mask=mask))
    root.lines(f"{below}/ImageSets/Main/train.txt", *names[:2])
    root.lines(f"{below}/ImageSets/Main/val.txt", *names[2:])
    root.lines(f"{below}/ImageSets/Segmentation/train.txt", *names[:2])
    root.lines(f"{below}/ImageSets/Segmentation/val.txt", names[2])
    return [
        Reading({"train": boxes[:2], "validation": boxes[2:]}, box_tolerance=1.01).mentioning(
            "segmentation", "mask", "pairs"
        ),
        Reading({"train": masks[:2], "validation": masks[2:]}).mentioning(
            "Annotations", "boxes", "voc"
        ),
    ]


@layout(loud_is_fine=True)
def voc_with_missing_and_additional_files(root: Folder) -> Reading:
    """An image without annotation, and an annotation without image."""
    records = _records(root, "JPEGImages/{}.jpg", range(10, 15))
    found = _voc(root, records, "Annotations/{}.xml")
    root.photo("JPEGImages/without_xml.jpg")
    root.text("Annotations/without_image.xml", _voc_xml("without_image.jpg", _boxes(3)))
    return (
        one(found, box_tolerance=1.01)
        .mentioning("without_xml", "no annotation", "without annotation", "without an annotation")
        .mentioning("without_image", "no image", "without an image")
    )


@layout(loud_is_fine=True)
def voc_whose_filenames_are_of_others(root: Folder) -> Reading:
    """Renamed images: <filename> is what the author's computer had; the stems agree."""
    records = _records(root, "img/raccoon-{}.JPG", range(1, 6))
    for path, record in records.items():
        root.text(f"xml/{_stem(path)}.xml", _voc_xml("C:\\data\\raccoon.png", record.boxes or ()))
    return one(records.values(), box_tolerance=1.01)


@layout(loud_is_fine=True)
def voc_lower_case(root: Folder) -> list[Reading]:
    """voc2007/jpegimages and voc2007/annotations, with imagesets/main."""
    splits = {}
    for split, name, items in (("train", "train", range(1, 4)), ("validation", "val", range(4, 6))):
        records = _records(root, "voc2007/jpegimages/{:06d}.jpg", items)
        splits[split] = _voc(root, records, "voc2007/annotations/{}.xml")
        root.lines(f"voc2007/imagesets/main/{name}.txt", *map(_stem, records))
    everything = [record for records in splits.values() for record in records]
    return [
        Reading(splits, box_tolerance=1.01),
        one(everything, box_tolerance=1.01).mentioning("imagesets"),
    ]


# ---- COCO --------------------------------------------------------------------------------------


def _coco(
    records: Mapping[str, Record],
    *,
    parts: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A document of COCO with category ids 17 and 18; `names`: other file names of images."""
    images, annotations = [], []
    for image_id, (path, record) in enumerate(records.items(), 139):
        name = (names or {}).get(path, path.rpartition("/")[2])
        images.append(
            {"id": image_id, "file_name": name, "width": WIDTH, "height": HEIGHT, "license": 1}
        )
        for label, left, top, right, bottom in record.boxes or ():
            entry: dict[str, Any] = {
                "id": len(annotations) + 1,
                "image_id": image_id,
                "category_id": 17 + _NAMES.index(str(label)),
                "bbox": [left, top, right - left, bottom - top],
                "area": (right - left) * (bottom - top),
                "iscrowd": 0,
            }
            if "mask" in parts:
                entry["segmentation"] = [[left, top, right, top, right, bottom, left, bottom]]
            if "keypoint" in parts:
                entry |= {
                    "keypoints": [left + 2, top + 2, 2, right - 2, top + 3, 1],
                    "num_keypoints": 2,
                }
            annotations.append(entry)
    categories: list[dict[str, Any]] = [
        {"id": 17 + number, "name": name, "supercategory": "animal"}
        for number, name in enumerate(_NAMES)
    ]
    if "keypoint" in parts:
        categories = [
            {**c, "keypoints": ["nose", "tail"], "skeleton": [[1, 2]]} for c in categories
        ]
    return {
        "info": {"year": 2017},
        "licenses": [{"id": 1, "name": "CC-BY"}],
        "images": images,
        "annotations": annotations,
        "categories": categories,
    }


def _coco2017(root: Folder) -> dict[str, dict[str, Record]]:
    return {
        "train": _records(root, "train2017/{:012d}.jpg", (9, 25, 30)),
        "val": _records(root, "val2017/{:012d}.jpg", (139, 285), 3),
    }


def _coco_splits(splits: Mapping[str, Mapping[str, Record]]) -> Reading:
    names = {"val": "validation", "valid": "validation"}
    return Reading(
        {names.get(split, split): [*records.values()] for split, records in splits.items()}
    )


@layout(loud_is_fine=True)
def coco_2017_instances(root: Folder) -> Reading:
    """annotations/instances_train2017.json: boxes are packed, and polygons mentioned."""
    splits = _coco2017(root)
    for split, records in splits.items():
        root.json(f"annotations/instances_{split}2017.json", _coco(records, parts=["mask"]))
    return _coco_splits(splits).mentioning(*_OTHERS["mask"])


@layout(loud_is_fine=True)
def coco_2017_all_annotations(root: Folder) -> Reading:
    """Instances, keypoints and captions of the same images: the choice must be mentioned."""
    splits = _coco2017(root)
    for split, records in splits.items():
        root.json(f"annotations/instances_{split}2017.json", _coco(records, parts=["mask"]))
        document = _coco(records, parts=["mask", "keypoint"])
        root.json(f"annotations/person_keypoints_{split}2017.json", document)
        captions = [
            {"id": n, "image_id": image["id"], "caption": "A cat."}
            for n, image in enumerate(document["images"])
        ]
        root.json(
            f"annotations/captions_{split}2017.json",
            {"info": {}, "images": document["images"], "annotations": captions},
        )
    return _coco_splits(splits).mentioning("instances_", "--annotations")


@layout(loud_is_fine=True)
def coco_panoptic(root: Folder) -> list[Reading]:
    """PNGs of segment ids in colours, and a JSON file with the category of each segment."""
    boxes, masks, images, annotations = [], [], [], []
    for number in range(1, 5):
        name = f"{number:012d}"
        image = root.photo(f"train2017/{name}.jpg")
        colours = {0: (0, 0, 0), 1: (10, 1, 0), 2: (20, 1, 0)}  # ids 266 and 276
        segments = root.mask(
            f"annotations/panoptic_train2017/{name}.png", (0, 1, 2), colours=colours
        )
        corners = [box_of(segments, value) for value in (1, 2)]
        boxes.append(
            Record(
                image, boxes=tuple((name, *box) for name, box in zip(_NAMES, corners, strict=True))
            )
        )
        masks.append(Record(image, mask=segments))
        images.append({"id": number, "file_name": f"{name}.jpg", "width": WIDTH, "height": HEIGHT})
        segments_info = [
            {
                "id": 256 + 10 * value,
                "category_id": value,
                "bbox": [left, top, right - left, bottom - top],
                "area": int((segments == value).sum()),
                "iscrowd": 0,
            }
            for value, (left, top, right, bottom) in enumerate(corners, 1)
        ]
        annotations.append(
            {"image_id": number, "file_name": f"{name}.png", "segments_info": segments_info}
        )
    root.json(
        "annotations/panoptic_train2017.json",
        {
            "images": images,
            "annotations": annotations,
            "categories": [
                {"id": n, "name": name, "isthing": 1, "color": [n, n, n]}
                for n, name in enumerate(_NAMES, 1)
            ],
        },
    )
    return [one(masks, renamed_values=True), one(boxes).mentioning("panoptic", "mask")]


@layout(loud_is_fine=True)
def coco_stuff_run_lengths(root: Folder) -> list[Reading]:
    """stuff_train2017.json: a mask for each category, as compressed run lengths."""
    run_lengths = pytest.importorskip("pycocotools.mask")
    boxes, masks, images, annotations = [], [], [], []
    for number in range(1, 5):
        image = root.photo(f"train2017/{number:012d}.jpg")
        pixels = root.regions((0, 1, 2))
        images.append(
            {"id": number, "file_name": f"{number:012d}.jpg", "width": WIDTH, "height": HEIGHT}
        )
        objects = []
        for value, name in enumerate(_NAMES, 1):
            packed = run_lengths.encode(np.asfortranarray(pixels == value, np.uint8))
            left, top, width, height = map(float, run_lengths.toBbox(packed))
            objects.append((name, left, top, left + width, top + height))
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": 91 + value,
                    "segmentation": {"size": [HEIGHT, WIDTH], "counts": packed["counts"].decode()},
                    "bbox": [left, top, width, height],
                    "area": float(run_lengths.area(packed)),
                    "iscrowd": 0,
                }
            )
        boxes.append(Record(image, boxes=tuple(objects)))
        masks.append(Record(image, mask=pixels))
    categories = [{"id": 91 + n, "name": name} for n, name in enumerate(_NAMES, 1)]
    root.json(
        "annotations/stuff_train2017.json",
        {"images": images, "annotations": annotations, "categories": categories},
    )
    return [one(boxes).mentioning(*_OTHERS["mask"]), one(masks, renamed_values=True)]


@layout(loud_is_fine=True)
def coco_keypoints(root: Folder) -> Reading:
    records = _records(root, "val2017/{:012d}.jpg", range(4))
    document = _coco(records, parts=["keypoint"])
    root.json("annotations/person_keypoints_val2017.json", document)
    return one(records.values()).mentioning(*_OTHERS["keypoint"])


@layout(loud_is_fine=True)
def coco_with_missing_and_additional_images(root: Folder) -> Reading:
    """One annotated image is not there, and one image has no entry: both must be mentioned."""
    records = _records(root, "images/{}.jpg", range(10, 16))
    root.json("annotations.json", _coco(records))
    (root.path / "images" / "15.jpg").unlink()
    root.photo("images/extra.jpg")
    rest = [record for path, record in records.items() if path != "images/15.jpg"]
    return one(rest).mentioning("15.jpg", "missing").mentioning("extra.jpg", "not in", "no entry")


@layout(loud_is_fine=True)
def coco_with_splits_below_images(root: Folder) -> Reading:
    """Annotations/Train.json and Images/Train/, in one folder around."""
    splits = {
        split: _records(root, f"pets/Images/{split.title()}/{{}}.JPG", items, len(items))
        for split, items in (("train", "abc"), ("val", "de"))
    }
    for split, records in splits.items():
        root.json(f"pets/Annotations/{split.title()}.json", _coco(records))
    return _coco_splits(splits)


# ---- YOLO --------------------------------------------------------------------------------------


def _yolo_line(box: Box, shape: str) -> str:
    name, left, top, right, bottom = box
    label = _NAMES.index(str(name))
    corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
    if shape in {"polygon", "oriented"}:
        if shape == "polygon":  # one point more
            corners.append((left, (top + bottom) / 2))
        points = [(x / WIDTH, y / HEIGHT) for x, y in corners]
        return " ".join([str(label), *(f"{part:.6f}" for point in points for part in point)])
    centre = ((left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT)
    line = [*centre, (right - left) / WIDTH, (bottom - top) / HEIGHT]
    if shape == "pose":
        line += [left / WIDTH, top / HEIGHT, 2, right / WIDTH, bottom / HEIGHT, 2]
    return " ".join([str(label), *(f"{part:.6f}" for part in line)])


def _yolo(
    root: Folder, records: Mapping[str, Record], labels: str, shape: str = "box"
) -> list[Record]:
    for path, record in records.items():
        lines = [_yolo_line(box, shape) for box in record.boxes or ()]
        root.lines(labels.format(_stem(path)), *lines)
    return [*records.values()]


_DATA = (
    "path: ../datasets/pets\ntrain: images/train\nval: images/val\n\nnames:\n  0: cat\n  1: dog\n"
)


def _ultralytics(root: Folder, below: str = "", shape: str = "box") -> Reading:
    return Reading(
        {
            split: _yolo(
                root,
                _records(root, f"{below}images/{folder}/{{}}.jpg", items, len(items)),
                f"{below}labels/{folder}/{{}}.txt",
                shape,
            )
            for split, folder, items in (("train", "train", "abcd"), ("validation", "val", "ef"))
        }
    )


@layout(loud_is_fine=True)
def yolo_in_one_folder_around(root: Folder) -> Reading:
    """coco8/images/train, with data.yaml in the folder and a README outside."""
    root.text("coco8/coco8.yaml", _DATA)
    root.lines("coco8/LICENSE", "AGPL-3.0")
    return _ultralytics(root, "coco8/")


@layout(loud_is_fine=True)
def yolo_polygons(root: Folder) -> Reading:
    """YOLOv8-seg: the box around a polygon is right if the output mentions the polygons."""
    root.text("data.yaml", _DATA)
    return _ultralytics(root, shape="polygon").mentioning(*_OTHERS["mask"])


@layout(loud_is_fine=True)
def yolo_oriented_boxes(root: Folder) -> Reading:
    """Four corners: upright boxes only if the output mentions it."""
    root.text("data.yaml", _DATA.replace("datasets/pets", "datasets/DOTAv1"))
    return _ultralytics(root, shape="oriented").mentioning(
        "oriented", "rotated", "polygon", "corners"
    )


@layout(loud_is_fine=True)
def yolo_pose(root: Folder) -> Reading:
    root.text("data.yaml", _DATA + "kpt_shape: [2, 3]\n")
    return _ultralytics(root, shape="pose").mentioning(*_OTHERS["keypoint"])


@layout(loud_is_fine=True)
def yolo_without_class_names(root: Folder) -> list[Reading]:
    """images/ and labels/ only: the classes are numbers."""
    records = _records(root, "images/{}.jpg", range(5))
    _yolo(root, records, "labels/{}.txt")
    nameless, numbers = [
        [
            Record(
                r.image,
                boxes=tuple(
                    (None if names is None else names[_NAMES.index(str(n))], *c)
                    for n, *c in r.boxes or ()
                ),
            )  # type: ignore[misc]
            for r in records.values()
        ]
        for names in (None, ("0", "1"))
    ]
    return [one(numbers), one(nameless).mentioning("classes.txt", "data.yaml", "class names")]


@layout(loud_is_fine=True)
def yolo_with_background_images(root: Folder) -> Reading:
    """An empty label file, and an image without any: both have no objects."""
    root.text("data.yaml", "train: images\nval: images\nnames: [cat, dog]\n")
    records = _records(root, "images/{}.jpg", range(5))
    found = _yolo(root, records, "labels/{}.txt")
    for name, labels in (("empty", ""), ("nothing", None)):
        found.append(Record(root.photo(f"images/{name}.jpg"), boxes=()))
        if labels is not None:
            root.text(f"labels/{name}.txt", labels)
    return one(found)


@layout(loud_is_fine=True)
def yolo_without_data_yaml_in_splits(root: Folder) -> Reading:
    """images/train and labels/train, with classes.txt twice, as labelImg writes it."""
    reading = _ultralytics(root)
    root.lines("classes.txt", *_NAMES)
    root.lines("labels/train/classes.txt", *_NAMES)
    return reading


@layout(loud_is_right=True)
def dota(root: Folder) -> None:
    """images/P0000.png and labelTxt/P0000.txt with corners, class and difficulty."""
    for number in range(4):
        root.photo(f"train/images/P000{number}.png")
        root.lines(
            f"train/labelTxt/P000{number}.txt",
            "imagesource:GoogleEarth",
            "gsd:0.146343590398",
            "4.0 2.0 20.0 3.0 19.0 12.0 3.0 11.0 plane 0",
        )


# ---- other tools -------------------------------------------------------------------------------


def _labelme(root: Folder, *, with_data: bool) -> list[Reading]:
    """Polygons that are rectangles, and a mask that they make."""
    records = _records(root, "{:04d}.jpg", range(5))
    for path, record in records.items():
        shapes = [
            {
                "label": name,
                "points": [[left, top], [right, top], [right, bottom], [left, bottom]],
                "group_id": None,
                "shape_type": "polygon",
                "flags": {},
            }
            for name, left, top, right, bottom in record.boxes or ()
        ]
        content = (root.path / path).read_bytes()
        root.json(
            f"{_stem(path)}.json",
            {
                "version": "5.4.1",
                "flags": {},
                "shapes": shapes,
                "imagePath": path,
                "imageData": base64.b64encode(content).decode() if with_data else None,
                "imageHeight": HEIGHT,
                "imageWidth": WIDTH,
            },
        )
    masks = [Record(record.image, mask=_drawn(record.boxes or ())) for record in records.values()]
    return [one(records.values(), box_tolerance=1.01), one(masks, renamed_values=True)]


def _drawn(boxes: Sequence[Box]) -> Any:
    """The pixels within boxes by class; later ones cover earlier ones."""
    pixels = np.zeros((HEIGHT, WIDTH), np.int64)
    for name, left, top, right, bottom in boxes:
        pixels[int(top) : int(bottom), int(left) : int(right)] = 1 + _NAMES.index(str(name))
    return pixels


@layout(loud_is_fine=True)
def labelme_with_image_data_and_class_names(root: Folder) -> list[Reading]:
    root.lines("class_names.txt", "_background_", *_NAMES)
    return _labelme(root, with_data=True)


@layout(loud_is_fine=True)
def balloon_of_vgg_image_annotator(root: Folder) -> Reading:
    """train/via_region_data.json: the tutorial of Mask R-CNN."""
    splits = {}
    for split, folder, items in (("train", "train", "abc"), ("validation", "val", "de")):
        records = _records(root, f"balloon/{folder}/{{}}_k.jpg", items)
        document = {}
        for path, record in records.items():
            name = path.rpartition("/")[2]
            regions = {
                str(n): {
                    "shape_attributes": {
                        "name": "polygon",
                        "all_points_x": [left, right, right, left],
                        "all_points_y": [top, top, bottom, bottom],
                    },
                    "region_attributes": {"name": label},
                }
                for n, (label, left, top, right, bottom) in enumerate(record.boxes or ())
            }
            document[f"{name}1000"] = {"filename": name, "size": 1000, "regions": regions}
        root.json(f"balloon/{folder}/via_region_data.json", document)
        splits[split] = [*records.values()]
    return Reading(splits, box_tolerance=1.01).mentioning(*_OTHERS["mask"])


@layout(loud_is_fine=True)
def global_wheat(root: Folder) -> Reading:
    """Kaggle: train.csv with a `bbox` as text, and a row for each box."""
    images = {f"b6ab77fd{n}": root.photo(f"train/b6ab77fd{n}.jpg") for n in range(4)}
    records, rows = [], []
    for number, (name, image) in enumerate(images.items()):
        boxes = [(None, *box[1:]) for box in _boxes(number)]
        records.append(Record(image, boxes=tuple(boxes)))
        for _, left, top, right, bottom in boxes:
            text = f'"{[float(left), float(top), float(right - left), float(bottom - top)]}"'
            rows.append((name, WIDTH, HEIGHT, text, "usask_1"))
    root.csv("train.csv", "image_id,width,height,bbox,source", *rows)
    root.photo("test/aac893a91.jpg")
    root.csv("sample_submission.csv", "image_id,PredictionString", ("aac893a91", "1.0 0 0 5 5"))
    return one(records).mentioning("test", count=1)


@layout(loud_is_fine=True)
def kitti(root: Folder) -> Reading:
    """training/image_2/000000.png and training/label_2/000000.txt, calibrations in calib/."""
    records = _records(root, "training/image_2/{:06d}.png", range(4))
    for path, record in records.items():
        lines = [
            f"{name} 0.00 0 -0.20 {left} {top} {right} {bottom} 1.89 0.48 1.20 1.84 1.47 8.41 0.01"
            for name, left, top, right, bottom in record.boxes or ()
        ]
        root.lines(f"training/label_2/{_stem(path)}.txt", *lines)
        root.lines(f"training/calib/{_stem(path)}.txt", "P0: 7.07e+02 0 6.04e+02 0 0 7.07e+02")
    test = [root.photo(f"testing/image_2/{n:06d}.png") for n in range(2)]
    return one(records.values(), box_tolerance=1.01).mentioning("testing", count=len(test))


@layout(loud_is_fine=True)
def supervisely(root: Folder) -> Reading:
    """ds0/img/a.jpg, ds0/ann/a.jpg.json, meta.json."""
    records = _records(root, "ds0/img/{}.jpg", "abcd")
    for path, record in records.items():
        objects = [
            {
                "classTitle": name,
                "geometryType": "rectangle",
                "points": {"exterior": [[left, top], [right, bottom]], "interior": []},
            }
            for name, left, top, right, bottom in record.boxes or ()
        ]
        document = {
            "description": "",
            "size": {"height": HEIGHT, "width": WIDTH},
            "objects": objects,
        }
        root.text(f"ds0/ann/{path.rpartition('/')[2]}.json", json.dumps(document))
    root.json("meta.json", {"classes": [{"title": name, "shape": "rectangle"} for name in _NAMES]})
    return one(records.values(), box_tolerance=1.01)
