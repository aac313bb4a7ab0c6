"""The sources by the names of their formats, and the options that each accepts.

A new source is a class and a line here; its module is imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from recordsmith.stores import PlaceLike
from recordsmith.support.lazy import LazyTable

_SOURCES = {
    "folder": ("class_folders.image_folder.ImageFolder", "images label_map"),
    "files": ("class_folders.image_folder.ImageFiles", "images class_pattern"),
    "captions": ("class_folders.captioned_images.CaptionedImages", "class_pattern encoding"),
    "pairs": (
        "pairs.image_pairs.ImagePairs",
        "images masks image_names mask_names split_lists colours keep_indices class_pattern",
    ),
    "table": (
        "tables.table.Table",
        (
            "images table image_column split_column group_column encoding label_column "
            "label_columns label_separator caption_column"
        ),
    ),
    "arrays": ("archives.arrays.Arrays", ""),
    "shards": ("archives.shards.Shards", "group_column"),
    "tfds": ("archives.tfds.Tfds", ""),
    "lerobot": ("archives.lerobot.LeRobot", "frame_quality"),
    "webdataset": ("archives.webdataset.WebDataset", ""),
    "coco": (
        "boxes.formats.coco.Coco",
        "annotations images label_map boxes drawn object_masks class_from",
    ),
    "createml": ("boxes.formats.createml.CreateML", "annotations images label_map boxes drawn"),
    "csv-boxes": (
        "boxes.formats.csv_boxes.CsvBoxes",
        "annotations images label_map boxes drawn boxes_as image_column split_column label_column",
    ),
    "cvat": (
        "boxes.formats.cvat.Cvat",
        "annotations images label_map boxes drawn object_masks class_from",
    ),
    "dota": ("boxes.formats.dota.Dota", "label_map boxes drawn object_masks"),
    "kitti": ("boxes.formats.kitti.Kitti", "label_map boxes drawn class_from"),
    "image-labels": (
        "boxes.formats.image_labels.ImageLabels",
        "annotations images label_map",
    ),
    "label-studio": (
        "boxes.formats.label_studio.LabelStudio",
        (
            "annotations images label_map boxes drawn object_masks annotator image_column "
            "label_column caption_column class_from"
        ),
    ),
    "labelme": (
        "boxes.formats.labelme.LabelMe",
        "label_map boxes drawn object_masks class_from",
    ),
    "segment-anything": (
        "boxes.formats.segment_anything.SegmentAnything",
        "label_map boxes drawn object_masks class_from",
    ),
    "via": (
        "boxes.formats.via.Via",
        "annotations images label_map boxes drawn object_masks class_from",
    ),
    "voc": ("boxes.formats.voc.Voc", "label_map boxes drawn class_from"),
    "yolo": (
        "boxes.formats.yolo.Yolo",
        "label_map boxes drawn object_masks kpt_shape yolo_task encoding",
    ),
}
"""The class of each source, and the options of `SourceOptions` that it accepts."""

FORMATS: LazyTable[Any] = LazyTable(
    "recordsmith.sources", {name: home for name, (home, _) in _SOURCES.items()}
)
OPTIONS = {name: frozenset(options.split()) for name, (_, options) in _SOURCES.items()}
BOX_SUFFIXES: dict[str, tuple[str, ...]] = {
    "createml": (".json",),
    "csv-boxes": (".csv", ".tsv"),
    "cvat": (".xml",),
    "dota": (".txt",),
    "image-labels": (".csv", "_celeba.txt"),
    "kitti": (".txt",),
    "label-studio": (".json",),
    "labelme": (".json",),
    "segment-anything": (".json",),
    "via": (".json", ".csv"),
    "voc": (".xml",),
    "yolo": (".txt", ".yaml", ".yml", ".data"),
    "coco": (".json",),  # reads any file of JSON that no other format reads
}
"""Those of annotated images, `AnnotatedSource`, and the suffixes of their files."""


class SourceOptions(TypedDict, total=False):
    """How a folder or file is read. Each option is for some formats: `recordsmith detect --help`
    lists them, and their classes describe it.

    Attributes:
        images: folder of the images (for pairs, a * stands for a name that is also in `masks`:
            */images and */masks); None to detect it.
        masks: folder of the masks; None to detect it.
        image_names: names of images, with * for what they share with their masks, such as
            *_leftImg8bit; None to detect them.
        mask_names: names of masks, such as *_gtFine_labelIds; None to detect them.
        split_lists: folder with a list of names for each split, such as train.txt; None to detect
            it.
        colours: colours of masks: voc, grey (brightness is the class number), or a file with red,
            green, blue and name of each class; None for pixels that are class numbers.
        keep_indices: store masks whose palettes have different colours for the same index; by
            default an error.
        class_pattern: regular expression that finds the class in each path.
        annotations: file of the annotations; None to detect it.
        object_masks: draw masks from the polygons: instance or class; None for no masks.
        label_map: label_map.pbtxt with the class numbers; None for numbers made from the data.
        boxes: handling of invalid boxes: stop (fail and list them), clip (fix them) or drop (leave
            them out); None for stop.
        annotator: id or email of the annotator whose annotations are packed; None if each image has
            annotations of one annotator.
        boxes_as: what four numbers are: xyxy (two corners), xywh (a corner and the size) or cxcywh
            (the center and the size); None to detect it.
        drawn: the image that boxes were drawn on, where its EXIF orientation matters and the
            annotated size does not show it: upright or stored; None for that of the format.
        class_from: attribute of objects that is their class; None for the class itself.
        kpt_shape: number of keypoints and of values of each, such as 17,3; or none if longer rows
            are polygons; None for that of the description.
        yolo_task: what rows with more than four numbers have: obb (the corners of oriented boxes),
            segment (polygons) or pose (boxes and keypoints); None to detect it.
        table: file to read in a folder with several tables; or several, with commas between them;
            None for all.
        image_column: column of image paths, which may lack their suffix; of Label Studio, the key
            of the image in the data of tasks.
        split_column: column of splits.
        group_column: column of groups, or feature of records, which stay in one split.
        label_column: column of classes; a cell may have a list of them; of Label Studio, the
            control of the choices that are the labels of images.
        label_columns: columns of 0 and 1 for images with several classes, with commas between them.
        label_separator: between the classes in a cell of the label column, such as |; None for one
            class.
        caption_column: column of captions of images, or Label Studio's control of their texts; None
            for caption or captions.
        encoding: text encoding, such as cp1252 or utf-16; None for utf-8.
        frame_quality: JPEG quality of the frames of videos, 1 to 100; None for 95.
    """

    images: PlaceLike
    masks: PlaceLike
    image_names: str
    mask_names: str
    split_lists: PlaceLike
    colours: PlaceLike
    keep_indices: bool
    class_pattern: str
    annotations: PlaceLike
    object_masks: str
    label_map: PlaceLike
    boxes: str
    annotator: str
    boxes_as: str
    drawn: str
    class_from: str
    kpt_shape: str
    yolo_task: str
    table: str
    image_column: str
    split_column: str
    group_column: str
    label_column: str
    caption_column: str
    label_columns: str
    label_separator: str
    encoding: str
    frame_quality: int


def formats_with(name: str) -> list[str]:
    """The formats that accept an option; the option `format` has them all."""
    return [known for known in FORMATS if name == "format" or name in OPTIONS[known]]


def accepts(format: str, options: Mapping[str, Any]) -> bool:
    return options.keys() <= OPTIONS[format]
