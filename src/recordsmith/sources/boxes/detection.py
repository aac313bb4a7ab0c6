"""Detect annotated images by the content of their annotation files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import islice

from recordsmith.errors import option
from recordsmith.sources.boxes.box_csv import find_columns, has_box_column
from recordsmith.sources.boxes.coco_layout import is_of_other_task
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names

_MOST_OPENED = 20  # files of each suffix
_MOST_COMPARED = 10_000
_IMAGE_NAME = re.compile(rb'"[^"]+\.(jpe?g|png|bmp|tiff?|webp)"', re.IGNORECASE)
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


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield the ways to read the folder as annotated images."""
    images = sum(folder.image_count for folder in tree.folders.values())
    found = [
        *_json_readings(tree, images),
        *_xml_readings(tree, images),
        *_csv_readings(tree),
        *(_yolo_readings(tree, images) if images else ()),
    ]
    yield from found or _unknown_readings(tree)


def _json_readings(tree: FileTree, images: int) -> Iterator[LayoutCandidate]:
    heads = _heads(tree, ".json")
    if found := [path for path, head in heads.items() if is_coco(head)]:
        other = [path for path in found if is_of_other_task(path)]
        chosen = [path for path in found if path not in other] or found
        left_out = tuple(f"{path} (another task)" for path in other if path not in chosen)
        what = f"images and boxes of {join_names(chosen)} (COCO)"
        files = tuple(found)
        yield LayoutCandidate("coco", what, Confidence.ANNOTATED, left_out=left_out, files=files)
    if found := [path for path, head in heads.items() if is_labelme(head)]:
        what = f"images and shapes of JSON files such as {found[0]} (LabelMe)"
        yield LayoutCandidate("labelme", what, _strength(tree, ".json", images))


def _xml_readings(tree: FileTree, images: int) -> Iterator[LayoutCandidate]:
    heads = _heads(tree, ".xml")
    if found := [path for path, head in heads.items() if is_voc(head)]:
        what = f"images and boxes of XML files such as {found[0]} (PASCAL VOC)"
        yield LayoutCandidate("voc", what, _strength(tree, ".xml", images))
    if found := [path for path, head in heads.items() if is_cvat(head)]:
        what = f"images and boxes of {join_names(found)} (CVAT)"
        yield LayoutCandidate("cvat", what, Confidence.ANNOTATED)


def _csv_readings(tree: FileTree) -> Iterator[LayoutCandidate]:
    heads = _heads(tree, ".csv")
    if found := [path for path, head in heads.items() if is_box_csv(head)]:
        what = f"images and boxes of {join_names(found)} (a row for each box)"
        problem = remedy = ""
        columns = [find_columns(heads[path]) for path in found]
        # a path, four numbers and a class in each row, without a header: nothing else is like it
        is_bare = all(each is not None and not each.has_header for each in columns)
        if None in columns:
            problem = f"{found[columns.index(None)]} has boxes in columns that are not known"
            remedy = "Name its columns filename, xmin, ymin, xmax, ymax, class."
        files = tuple(found)
        strength = Confidence.MARKED if is_bare else Confidence.ANNOTATED
        yield LayoutCandidate(
            "csv-boxes", what, strength, files=files, problem=problem, remedy=remedy
        )


def _yolo_readings(tree: FileTree, images: int) -> Iterator[LayoutCandidate]:
    heads = _heads(tree, ".yaml", ".yml")
    described = [path for path, head in heads.items() if is_yolo_yaml(head)]
    heads = _heads(tree, ".data")
    described += [path for path, head in heads.items() if is_darknet_data(head)]
    if described:
        what = f"images and boxes described by {described[0]} (YOLO)"
        yield LayoutCandidate("yolo", what, Confidence.MARKED)
        return
    if labels := [path for path, head in _heads(tree, ".txt").items() if is_yolo_labels(head)]:
        names = [
            path
            for path in tree.files(".txt", ".names", ".labels", depth=2)
            if _NAMES_FILES.fullmatch(posixpath.basename(path))
        ]
        classes = f", classes of {names[0]}" if names else ""
        what = f"images and boxes of text files such as {labels[0]}{classes} (YOLO)"
        yield LayoutCandidate("yolo", what, _strength(tree, ".txt", images))


def _strength(tree: FileTree, suffix: str, images: int) -> Confidence:
    """That of a reading with a file for each image: less where most images have none."""
    files = sum(folder.suffixes[suffix] for folder in tree.folders.values())
    return Confidence.ANNOTATED if 2 * files >= images else Confidence.STRUCTURE


def _unknown_readings(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Files named like images, or that name images: annotations of a format that is not known."""
    images = {
        _plain_stem(name)
        for folder in tree.folders.values()
        for name in folder.names
        if has_image_name(name)
    }
    for suffix, similar in ((".txt", "yolo"), (".json", "labelme"), (".xml", "voc")):
        paths = list(islice(tree.files(suffix), _MOST_COMPARED))
        named = [path for path in paths if _plain_stem(posixpath.basename(path)) in images]
        if named and 2 * len(named) >= len(paths):
            yield _unknown(similar, f"files with the names of images such as {named[0]}")
            return
    heads = _heads(tree, ".json")
    if found := [path for path, head in heads.items() if images and _IMAGE_NAME.search(head)]:
        yield _unknown("coco", f"images named in {found[0]}")


def _unknown(similar: str, what: str) -> LayoutCandidate:
    return LayoutCandidate(
        similar,
        what,
        Confidence.ANNOTATED,
        problem="the format of these annotations is not known",
        remedy="Convert them to COCO, YOLO or PASCAL VOC, or pack the images without them with "
        f"{option('format', 'files')} or {option('format', 'folder')}.",
    )


def _plain_stem(name: str) -> str:
    """The stem of an image, or of a file with the name of an image and another suffix."""
    stem = posixpath.splitext(name)[0]
    return posixpath.splitext(stem)[0] if has_image_name(stem) else stem


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
    return find_columns(head) is not None or has_box_column(head)


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


def _heads(tree: FileTree, *suffixes: str) -> dict[str, bytes]:
    """The first files with one of these suffixes, and how they start."""
    return {path: tree.head(path) for path in islice(tree.files(*suffixes), _MOST_OPENED)}
