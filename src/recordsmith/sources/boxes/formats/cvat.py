"""CVAT's own XML ("CVAT for images 1.1"): one file with the boxes and polygons of all images."""

from __future__ import annotations

import html
import re
from array import array
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any
from xml.parsers import expat

import numpy as np

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.xml_files import parse_xml
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex

_HEAD = re.compile(rb"<annotations>.*?<(version|meta|image)\b", re.DOTALL)
_NAME = re.compile(rb"<label>\s*<name>([^<]*)<")
_PARENT = re.compile(rb"<parent>\s*[^<\s]")
_OTHER_SHAPES = "shapes and tags were left out that are neither boxes nor polygons"
_ATTRIBUTES = "attributes of objects were left out"
_LEFT_OUT = frozenset(
    ("attribute", "tag", "polyline", "points", "ellipse", "cuboid", "skeleton", "mask")
)
_SIDES = ("xtl", "ytl", "xbr", "ybr")


def parse(file: AnnotationFile) -> list[AnnotatedImage]:
    """The images of a file with their places, or the one in a part of it."""
    if file.is_part:
        return [image for line, data in file.parts() for image in _images(data, file, line - 1)]
    data = file.location.read()
    file.class_names.update(dict.fromkeys(_declared_labels(data)))
    return _images(data, file, 0)


def _images(data: bytes, file: AnnotationFile, lines_before: int) -> list[AnnotatedImage]:
    parser = expat.ParserCreate()
    images: list[AnnotatedImage] = []
    objects: list[AnnotatedObject] = []
    is_inside = False

    def start(tag: str, values: dict[str, str]) -> None:
        nonlocal is_inside
        line = parser.CurrentLineNumber + lines_before
        if tag == "image":
            is_inside = True
            number = values.get("id", "?")
            size = to_float(values.get("width") or 0), to_float(values.get("height") or 0)
            image = AnnotatedImage(f"image {number}", values.get("name", ""), size, id=number)
            spans = array("q", (line, parser.CurrentByteIndex, 0))
            images.append(image._replace(spans=spans, split=values.get("subset", "")))
        elif is_inside and tag in ("box", "polygon"):
            name = values.get("label")
            if not file.is_part and name and "\n" not in name:
                file.class_names[name] = None
            elif file.is_part and len(objects) <= MAX_OBJECTS:
                objects.append(_object(f"line {line}", tag, values))
        elif is_inside and tag in _LEFT_OUT:
            what = _ATTRIBUTES if tag == "attribute" else _OTHER_SHAPES
            file.note(what, f"{file.name}, line {line}" + f": {tag}" * (what == _OTHER_SHAPES))

    def end(tag: str) -> None:
        nonlocal is_inside
        if tag == "image":
            is_inside = False
            position, spans = parser.CurrentByteIndex, images[-1].spans
            is_tag = data.startswith(b"</image", position)  # otherwise after <image …/>
            assert spans is not None
            spans[2] = data.index(b">", position) + 1 if is_tag else position

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "utf8", "ascii"):
            raise SourceError(
                f"the encoding {encoding}", path=file.name, remedy="Save it as UTF-8."
            )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.XmlDeclHandler = declaration
    parse_xml(parser, data, file.name)
    return [image._replace(objects=objects) for image in images] if file.is_part else images


def _declared_labels(data: bytes) -> list[str]:
    """The labels of the task or project, in order, without parts of skeletons."""
    start, end = data.find(b"<labels>"), data.find(b"</labels>")
    labels = data[start:end].split(b"</label>")[:-1] if 0 <= start < end else []
    matches = (_NAME.search(label) for label in labels if not _PARENT.search(label))
    texts = (html.unescape(name[1].decode("utf-8", "replace")) for name in matches if name)
    return [text for text in texts if text and "\n" not in text]


def _object(where: str, shape: str, values: Mapping[str, str]) -> AnnotatedObject:
    name = values.get("label", "")
    if shape == "box":
        xmin, ymin, xmax, ymax = (to_float(values.get(side)) for side in _SIDES)
        rotation = to_float(values.get("rotation") or 0)
        fault = "the box is rotated; expected an upright one" if rotation else ""
        return AnnotatedObject(where, name, (xmin, ymin, xmax, ymax), "box", fault=fault)
    points = values.get("points", "")
    outline = _outline(points)
    if outline is None:
        return AnnotatedObject(where, name, fault="invalid points; expected x,y;x,y")
    xs, ys = outline[::2], outline[1::2]
    corners = (min(xs), min(ys), max(xs), max(ys))
    # parsed again for a mask: the numbers take more memory than the text
    return AnnotatedObject(where, name, corners, partial(_polygons, points))


def _polygons(points: str) -> list[list[float]]:
    return [list(_outline(points) or ())]


def _outline(points: str) -> array[float] | None:
    """The coordinates of a polygon; None if it is invalid."""
    outline = array("d")
    start = 0
    while start <= len(points):
        stop = points.find(";", start)
        stop = len(points) if stop < 0 else stop
        pair = points[start:stop].split(",", 2)
        if len(pair) != 2:
            return None
        outline.extend(map(to_float, pair))
        start = stop + 1
    return outline if len(outline) >= 4 and np.isfinite(outline).all() else None


class Cvat(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "cvat",
        ".xml",
        lambda head: _HEAD.search(head) is not None,
        parse,
        what="images and boxes of {} (CVAT)",
        file_what="an XML file of CVAT",
        file_suffixes=(".xml",),
        expected="annotations.xml of CVAT's export 'CVAT for images 1.1', next to or above its "
        "images",
    ),
):
    """Images with boxes and polygons in CVAT's XML format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons
    become the boxes around them. Subsets become splits. Labels have the order of the file, from 1.

    Example:
        >>> rs.pack(rs.Cvat("export"), "packed")  # doctest: +SKIP
    """

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], listed: Any
    ) -> tuple[Classes, list[str]]:
        names = dict.fromkeys(name for file in files for name in file.class_names)
        return classes_by_label(dict(enumerate(names, 1)), self._label_map, "the data"), []
