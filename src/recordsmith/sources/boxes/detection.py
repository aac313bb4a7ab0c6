"""Detect annotated images by the content of their annotation files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from itertools import islice

from recordsmith.sources.boxes.box_csv import find_columns
from recordsmith.sources.boxes.coco_layout import is_of_other_task
from recordsmith.sources.problems import join_names
from recordsmith.sources.survey import Reading, Strength, Survey

_MOST_OPENED = 20  # files of each suffix
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COCO_LIST = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_COCO_KEY = re.compile(rb'"(file_name|image_id|supercategory|category_id)"\s*:')
_SHAPES = re.compile(rb'"shapes"\s*:\s*\[')
_LABELME_KEY = re.compile(rb'"(version|flags|imagePath|imageData|lineColor|fillColor)"\s*:')
_VOC = re.compile(rb"<annotation(\s[^>]*)?>.*?<(filename|folder|size|object)\b", re.DOTALL)
_CVAT = re.compile(rb"<annotations>.*?<(version|meta|image)\b", re.DOTALL)
_YAML_NAMES = re.compile(rb"^[\"']?names[\"']?\s*:", re.MULTILINE)
_YAML_SPLIT = re.compile(rb"^[\"']?(train|val|valid|validation|test)[\"']?\s*:", re.MULTILINE)
_DARKNET = re.compile(rb"^\s*names\s*=", re.MULTILINE)
_YOLO_ROW = re.compile(rb"\s*\d+(\s+-?\d*\.?\d+(e-?\d+)?){4,}\s*")
_NAMES_FILES = re.compile(r".*\.names|classes\.txt|_darknet\.labels", re.IGNORECASE)


def find_readings(survey: Survey) -> Iterator[Reading]:
    """Yield the ways to read the folder as annotated images."""
    yield from _json_readings(survey)
    yield from _xml_readings(survey)
    yield from _csv_readings(survey)
    yield from _yolo_readings(survey)


def _json_readings(survey: Survey) -> Iterator[Reading]:
    if found := _matching(survey, is_coco, ".json"):
        other = [path for path in found if is_of_other_task(path)]
        chosen = [path for path in found if path not in other] or found
        left_out = tuple(f"{path} (another task)" for path in other if path not in chosen)
        what = f"images and boxes of {join_names(chosen)} (COCO)"
        yield Reading("coco", what, Strength.ANNOTATED, left_out=left_out)
    if found := _matching(survey, is_labelme, ".json"):
        what = f"images and shapes of JSON files such as {found[0]} (LabelMe)"
        yield Reading("labelme", what, Strength.ANNOTATED)


def _xml_readings(survey: Survey) -> Iterator[Reading]:
    if found := _matching(survey, is_voc, ".xml"):
        what = f"images and boxes of XML files such as {found[0]} (PASCAL VOC)"
        yield Reading("voc", what, Strength.ANNOTATED)
    if found := _matching(survey, is_cvat, ".xml"):
        what = f"images and boxes of {join_names(found)} (CVAT)"
        yield Reading("cvat", what, Strength.ANNOTATED)


def _csv_readings(survey: Survey) -> Iterator[Reading]:
    if found := _matching(survey, is_box_csv, ".csv"):
        what = f"images and boxes of {join_names(found)} (a row for each box)"
        yield Reading("csv-boxes", what, Strength.ANNOTATED)


def _yolo_readings(survey: Survey) -> Iterator[Reading]:
    described = _matching(survey, is_yolo_yaml, ".yaml", ".yml")
    described += _matching(survey, is_darknet_data, ".data")
    if described:
        what = f"images and boxes described by {described[0]} (YOLO)"
        yield Reading("yolo", what, Strength.MARKED)
        return
    images = any(folder.image_count for folder in survey.folders.values())
    labels = _matching(survey, is_yolo_labels, ".txt") if images else []
    if labels:
        names = [
            path
            for path in survey.files(".txt", ".names", ".labels", depth=2)
            if _NAMES_FILES.fullmatch(posixpath.basename(path))
        ]
        classes = f", classes of {names[0]}" if names else ""
        what = f"images and boxes of text files such as {labels[0]}{classes} (YOLO)"
        yield Reading("yolo", what, Strength.ANNOTATED)


def is_coco(head: bytes) -> bool:
    """Whether a file starts like COCO's JSON: an object with one of its lists."""
    head = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    is_list = _COCO_LIST.search(head) is not None
    return head.startswith(b"{") and is_list and _COCO_KEY.search(head) is not None


def is_labelme(head: bytes) -> bool:
    """Whether a file starts like LabelMe's JSON."""
    head = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    is_list = _SHAPES.search(head) is not None
    return head.startswith(b"{") and is_list and _LABELME_KEY.search(head) is not None


def is_voc(head: bytes) -> bool:
    """Whether a file starts like PASCAL VOC's XML."""
    return _VOC.search(head) is not None


def is_cvat(head: bytes) -> bool:
    """Whether a file starts like CVAT's XML."""
    return _CVAT.search(head) is not None


def is_box_csv(head: bytes) -> bool:
    """Whether a file starts like a CSV with a box in each row."""
    return find_columns(head) is not None


def is_yolo_yaml(head: bytes) -> bool:
    """Whether a file is a `data.yaml`."""
    return _YAML_NAMES.search(head) is not None and _YAML_SPLIT.search(head) is not None


def is_darknet_data(head: bytes) -> bool:
    """Whether a file is an `obj.data`."""
    return _DARKNET.search(head) is not None


def is_yolo_labels(head: bytes) -> bool:
    """Whether a file starts with rows of a class number and at least four numbers."""
    lines = [line for line in head.splitlines()[:-1] or [head] if line.strip()]
    return bool(lines) and all(_YOLO_ROW.fullmatch(line) for line in lines[:_MOST_OPENED])


def _matching(survey: Survey, test: Callable[[bytes], bool], *suffixes: str) -> list[str]:
    """The first paths with one of these suffixes whose content passes a test."""
    return [
        path for path in islice(survey.files(*suffixes), _MOST_OPENED) if test(survey.head(path))
    ]
