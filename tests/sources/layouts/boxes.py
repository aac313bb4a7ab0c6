"""Boxes and polygons: PASCAL VOC, COCO, YOLO, and the exports of annotation tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .files import COLOURS, SIZE, Folder
from .layout import Box, Reading, Record, layout, one

WIDTH, HEIGHT = SIZE
_NAMES = ("cat", "dog")


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


# ---- YOLO --------------------------------------------------------------------------------------


def _yolo(root: Folder, records: Mapping[str, Record], labels: str) -> list[Record]:
    for path, record in records.items():
        lines = []
        for name, left, top, right, bottom in record.boxes or ():
            x, y = (left + right) / 2 / WIDTH, (top + bottom) / 2 / HEIGHT
            numbers = (x, y, (right - left) / WIDTH, (bottom - top) / HEIGHT)
            lines.append(" ".join(map(str, (_NAMES.index(str(name)), *numbers))))
        root.lines(labels.format(_stem(path)), *lines)
    return [*records.values()]


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
def yolo_without_data_yaml_in_splits(root: Folder) -> Reading:
    """images/train and labels/train, with classes.txt twice, as labelImg writes it."""
    splits = {}
    for split, folder, items in (("train", "train", "abcd"), ("validation", "val", "ef")):
        records = _records(root, f"images/{folder}/{{}}.jpg", items, len(items))
        splits[split] = _yolo(root, records, f"labels/{folder}/{{}}.txt")
    root.lines("classes.txt", *_NAMES)
    root.lines("labels/train/classes.txt", *_NAMES)
    return Reading(splits)
