"""Streets, lanes and traffic signs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..files import Folder
from ..layout import Reading, Record, layout, one
from .drawing import (
    HEIGHT,
    WIDTH,
    box_at,
    draw_boxes,
    draw_images,
    draw_pairs,
    file_name,
    file_stem,
)


@layout(loud_is_fine=True)
def kitti_object(root: Folder) -> Reading:
    """A text file for each image with class, angles and boxes, and one of the calibration."""
    items = [f"{number:06d}" for number in range(5)]
    names = ("Car", "Pedestrian", "Cyclist")
    records = draw_boxes(root, "training/image_2/{}.png", items, names)
    for path, record in records.items():
        lines = [
            f"{name} 0.00 0 -1.58 {left:.2f} {top:.2f} {right:.2f} {bottom:.2f} "
            "1.65 1.67 3.64 -0.65 1.71 46.70 -1.59"
            for name, left, top, right, bottom in record.boxes or ()
        ]
        root.lines(f"training/label_2/{file_stem(path)}.txt", *lines)
        root.lines(
            f"training/calib/{file_stem(path)}.txt", "P0: 7.215377e+02 0.000000e+00 6.095593e+02"
        )
    draw_images(root, "testing/image_2/{}.png", items[:2])
    root.lines("testing/calib/000000.txt", "P0: 7.215377e+02 0.000000e+00 6.095593e+02")
    return one(records.values()).mentioning("testing", "test")


@layout()
def cityscapes_as_unpacked(root: Folder) -> Reading:
    """Both archives unpacked into folders of their own."""
    splits: dict[str, list[Record]] = {}
    for split, folder, city in (("train", "train", "aachen"), ("validation", "val", "lindau")):
        splits[split] = []
        for number in (0, 1, 2):
            name = f"{folder}/{city}/{city}_00000{number}_000019"
            image = root.photo(f"leftImg8bit_trainvaltest/leftImg8bit/{name}_leftImg8bit.png")
            truth = f"gtFine_trainvaltest/gtFine/{name}_gtFine"
            mask = root.mask(f"{truth}_labelIds.png", (0, 7, 26))
            root.mask(f"{truth}_instanceIds.png", (0, 7, 26001))
            root.mask(
                f"{truth}_color.png", (0, 7, 26), colours={7: (128, 64, 128), 26: (0, 0, 142)}
            )
            root.json(f"{truth}_polygons.json", {"imgHeight": HEIGHT, "objects": []})
            splits[split].append(Record(image, mask=mask))
    root.text("gtFine_trainvaltest/README", "The Cityscapes Dataset\n")
    root.text("leftImg8bit_trainvaltest/license.txt", "License agreement\n")
    return Reading(splits).mentioning("_color", "color").mentioning("_instanceIds", "instance")


_ROAD = {"Void": (0, 0, 0), "Road": (128, 64, 128), "Car": (64, 0, 128), "Sky": (128, 128, 128)}


@layout(loud_is_fine=True)
def camvid_with_class_dict(root: Folder) -> Reading:
    """`train` and `train_labels`, masks with `_L` in colours that a table names."""
    colours = dict(enumerate(_ROAD.values()))
    splits = {}
    for split, folder, start in (
        ("train", "train", 0),
        ("validation", "val", 4),
        ("test", "test", 6),
    ):
        splits[split] = draw_pairs(
            root,
            f"CamVid/{folder}/0001TP_0066{{}}.png",
            f"CamVid/{folder}_labels/0001TP_0066{{}}_L.png",
            [90 + number for number in range(start, start + 2 + 2 * (start == 0))],
            (1, 2, 3),
            colours=colours,
        )
    root.csv("CamVid/class_dict.csv", "name,r,g,b", *((name, *rgb) for name, rgb in _ROAD.items()))
    return Reading(splits, renamed_values=True)


@layout(loud_is_fine=True)
def bdd100k(root: Folder) -> Reading:
    """One JSON file for each split, with boxes as x1, y1, x2, y2, and lanes."""
    splits = {}
    for split, folder, start in (("train", "train", 0), ("validation", "val", 4)):
        items = [f"0000f77c-6257be{number}8" for number in range(start, start + 4)]
        path = f"bdd100k/images/100k/{folder}/{{}}.jpg"
        records = draw_boxes(root, path, items, ("car", "traffic sign"), start)
        document = [
            {
                "name": file_name(image),
                "attributes": {"weather": "clear", "scene": "city street", "timeofday": "daytime"},
                "timestamp": 10000,
                "labels": [
                    {
                        "category": box[0],
                        "attributes": {"occluded": False},
                        "box2d": dict(zip(("x1", "y1", "x2", "y2"), box[1:], strict=True)),
                        "id": number,
                    }
                    for number, box in enumerate(record.boxes or ())
                ],
            }
            for image, record in records.items()
        ]
        root.json(f"bdd100k/labels/bdd100k_labels_images_{folder}.json", document)
        splits[split] = [*records.values()]
    draw_images(root, "bdd100k/images/100k/test/cabc30fc-e7726{}.jpg", (578, 579))
    return Reading(splits).mentioning("test")


@layout(loud_is_fine=True)
def mapillary_vistas(root: Folder) -> Reading:
    """Three kinds of masks for each image, and test images without any."""
    splits = {}
    palette = {0: (165, 42, 42), 13: (128, 64, 128), 55: (0, 0, 142)}
    for split, folder, start in (("train", "training", 0), ("validation", "validation", 3)):
        items = [f"_CxCvrWxF1AAR9JODTE{number}" for number in range(start, start + 3)]
        splits[split] = draw_pairs(
            root,
            f"{folder}/images/{{}}.jpg",
            f"{folder}/labels/{{}}.png",
            items,
            (0, 13, 55),
            palette=palette,
        )
        for item in items:
            root.mask(f"{folder}/instances/{item}.png", (0, 3328, 14080))
            root.mask(
                f"{folder}/panoptic/{item}.png", (0, 1, 2), colours={1: (9, 0, 0), 2: (0, 9, 0)}
            )
        root.json(f"{folder}/panoptic/panoptic_2018.json", {"images": [], "annotations": []})
    draw_images(root, "testing/images/{}.jpg", ("a_-1cXlZ6hyFJNRZJQfb", "a0eCmIkEbWPyLQ8P5"))
    root.json("config.json", {"labels": [{"name": "animal--bird", "readable": "Bird"}]})
    root.text("LICENSE", "CC BY-NC-SA\n")
    return Reading(splits).mentioning("instances").mentioning("testing", "test")


@layout(loud_is_fine=True)
def tusimple_lanes(root: Folder) -> Reading:
    """Lines of JSON in a `.json` file, which name only the last of the frames of each clip."""
    records = []
    for file, clip in (("0313", "0313-1"), ("0531", "0531")):
        rows = []
        for number in (60, 5320):
            for frame in (1, 10):
                root.photo(f"train_set/clips/{clip}/{number}/{frame}.jpg")
            path = f"clips/{clip}/{number}/20.jpg"
            lanes = [[-2, -2, 12 + number % 7], [-2, 20, 21]]
            rows.append({"lanes": lanes, "h_samples": [10, 15, 20], "raw_file": path})
            records.append(
                Record(root.photo(f"train_set/{path}"), values={"h_samples": [10, 15, 20]})
            )
        root.lines(f"train_set/label_data_{file}.json", *map(json.dumps, rows))
    root.text("train_set/readme.md", "# Lane Detection Challenge\n")
    return one(records).mentioning("1.jpg", "10.jpg", "8 images")


@layout(loud_is_fine=True)
def gtsrb_as_published(root: Folder) -> list[Reading]:
    """Numbered class folders, each with its own table of signs in the images."""
    records, boxed = [], []
    for label in (0, 1, 14):
        rows = []
        for number in range(3):
            name = f"00000_0000{number}.ppm"
            image = root.photo(f"GTSRB/Final_Training/Images/{label:05d}/{name}")
            records.append(Record(image, f"{label:05d}"))
            box = box_at(number + label, (None,))
            boxed.append(Record(image, boxes=(box,)))
            rows.append(";".join(map(str, (name, WIDTH, HEIGHT, *box[1:], label))))
        header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
        root.lines(f"GTSRB/Final_Training/Images/{label:05d}/GT-{label:05d}.csv", header, *rows)
    tests = [f"{number:05d}.ppm" for number in range(3)]
    draw_images(root, "GTSRB/Final_Test/Images/{}", tests)
    root.lines(
        "GTSRB/Final_Test/Images/GT-final_test.test.csv",
        "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2",
        *(f"{name};{WIDTH};{HEIGHT};5;6;20;16" for name in tests),
    )
    root.text("GTSRB/Readme-Images.txt", "Image format: ppm\n")
    return [
        one(records).mentioning("GT-00000.csv", "GT-").mentioning("Final_Test"),
        one(boxed).mentioning("Final_Test"),
    ]


@layout(loud_is_fine=True)
def gtsrb_with_tables(root: Folder) -> list[Reading]:
    """Kaggle's copy: the classes of the test images are only in `Test.csv`."""
    classes: dict[str, list[Record]] = {"train": [], "test": []}
    boxed: dict[str, list[Record]] = {"train": [], "test": []}
    rows: dict[str, list[Sequence[object]]] = {"train": [], "test": []}
    for number in range(12):
        label = (0, 2, 10)[number % 3]
        split = "train" if number < 9 else "test"
        name = f"000{label:02d}_00000_000{number:02d}.png" if number < 9 else f"{number:05d}.png"
        path = f"Train/{label}/{name}" if number < 9 else f"Test/{name}"
        image = root.photo(path)
        box = box_at(number, (str(label),))
        classes[split].append(Record(image, str(label)))
        boxed[split].append(Record(image, boxes=(box,)))
        rows[split].append((WIDTH, HEIGHT, *box[1:], label, path))
    header = "Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path"
    root.csv("Train.csv", header, *rows["train"])
    root.csv("Test.csv", header, *rows["test"])
    draw_images(root, "Meta/{}.png", (0, 2, 10))
    metas = [(f"Meta/{label}.png", label, 1, 0, "1.1") for label in (0, 2, 10)]
    root.csv("Meta.csv", "Path,ClassId,ShapeId,ColorId,SignId", *metas)
    return [
        Reading(boxed).mentioning("Meta", "Meta.csv"),
        Reading(classes, label_column="ClassId").mentioning("Meta", "Meta.csv"),
    ]


@layout(loud_is_fine=True)
def comma10k(root: Folder) -> Reading:
    """`imgs` and `masks` with equal names, in five colours, and a list of finished masks."""
    colours = {
        0: (64, 32, 32),
        1: (255, 0, 0),
        2: (128, 128, 96),
        3: (0, 255, 102),
        4: (204, 0, 255),
    }
    items = [f"000{n}_0085e9e41513078a_2018-08-19--13-26-08_11_86{n}" for n in range(5)]
    path = "{}/{{}}.png".format
    records = draw_pairs(root, path("imgs"), path("masks"), items, (0, 1, 2, 3), colours=colours)
    root.lines("files_trainable", *(f"masks/{item}.png" for item in items))
    root.text("README.md", "# comma10k\n")
    root.text("tools/viewer.py", "import cv2\n")
    return one(records, renamed_values=True).mentioning("files_trainable")


@layout(loud_is_right=True)
def nuimages(root: Folder) -> None:
    """Tables of JSON that refer to each other by tokens."""
    samples = []
    for camera in ("CAM_FRONT", "CAM_BACK"):
        for number in range(3):
            name = f"n003-2018-01-02-11-48-43+0800__{camera}__151486492513370{number}.jpg"
            path = f"samples/{camera}/{name}"
            root.photo(path)
            samples.append({"token": f"{camera}{number}", "filename": path, "is_key_frame": True})
    root.json("v1.0-mini/sample_data.json", samples)
    objects = [
        {
            "token": f"o{n}",
            "sample_data_token": sample["token"],
            "category_token": "c1",
            "bbox": [2, 3, 14, 9],
        }
        for n, sample in enumerate(samples)
    ]
    root.json("v1.0-mini/object_ann.json", objects)
    root.json("v1.0-mini/category.json", [{"token": "c1", "name": "vehicle.car"}])
    root.json("v1.0-mini/log.json", [{"token": "l1", "location": "singapore"}])
