"""CVAT's own XML ("CVAT for images 1.1"): one file with the boxes and polygons of all images."""

from __future__ import annotations

import html
import re
from array import array
from collections.abc import Collection, Iterator, Mapping
from xml.parsers import expat

import numpy as np

from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Corners,
    has_elements,
    outlined,
    parse_xml,
    rotated,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.support.errors import SourceError

_ROOT = re.compile(rb"<annotations>")
_INNER = re.compile(rb"<(version|meta|image)\b")
_NAME = re.compile(rb"<label>\s*<name>([^<]*)<")
_PARENT = re.compile(rb"<parent>\s*[^<\s]")
_OTHER_SHAPES = "shapes were left out that are neither boxes nor polygons"
_ATTRIBUTES = "attributes of objects were left out"
_LEFT_OUT = frozenset(("attribute", "polyline", "points", "ellipse", "cuboid", "skeleton", "mask"))
_SIDES = ("xtl", "ytl", "xbr", "ybr")


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    data = text_as_utf8(file.location.read(), file.name, is_xml=True)
    file.class_names.update(enumerate(_declared_labels(data), 1))
    parser = expat.ParserCreate("utf-8")
    images: list[AnnotatedImage] = []
    open_images: list[AnnotatedImage] = []
    objects: list[AnnotatedObject] = []
    notes: list[tuple[str, str]] = []
    labels: dict[str, float] = {}

    def start(tag: str, values: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if tag == "image":
            number, name = values.get("id", "?"), values.get("name", "")
            size = to_float(values.get("width") or 0), to_float(values.get("height") or 0)
            split = values.get("subset", "")
            open_images.append(AnnotatedImage(f"image {number}", name, size, (), number, split))
        elif tag == "track":
            raise SourceError(
                f"the track {values.get('label', '')!r:.60} is from an export 'CVAT for video'",
                path=file.name,
                line=line,
                remedy="Export the task from CVAT as 'CVAT for images 1.1'.",
            )
        elif not open_images or max(len(objects), len(notes), len(labels)) > MAX_OBJECTS:
            return  # the image is refused
        elif tag == "tag":
            labels[values.get("label", "")] = 1
        elif tag in ("box", "polygon"):
            objects.append(_object(f"line {line}", tag, values))
        elif tag in _LEFT_OUT:
            what = _ATTRIBUTES if tag == "attribute" else _OTHER_SHAPES
            place = f"{file.name}, line {line}"
            notes.append((what, place + f": {tag}" * (what == _OTHER_SHAPES)))

    def end(tag: str) -> None:
        if tag == "image":
            image = open_images.pop()._replace(objects=objects.copy(), notes=notes.copy())
            images.append(image._replace(labels=labels.copy()))
            for items in (objects, notes, labels):
                items.clear()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    for _ in parse_xml(parser, data, file.name):
        yield from images
        images.clear()


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
        corners: Corners = (xmin, ymin, xmax, ymax)
        if degrees := to_float(values.get("rotation") or 0) % 360:
            return outlined(where, name, rotated(corners, degrees))
        return AnnotatedObject(where, name, corners, "box")
    points = values.get("points", "")
    outline = _outline(points)
    if outline is None:
        return AnnotatedObject(where, name, fault="invalid points; expected x,y;x,y")
    xs, ys = outline[::2], outline[1::2]
    corners = (min(xs), min(ys), max(xs), max(ys))
    return AnnotatedObject(where, name, corners, f"[{outline.tolist()}]")


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
        lambda head: has_elements(head, _ROOT, _INNER),
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
    and rotated boxes become the boxes around them. Subsets become splits. Labels have the order of
    the file, from 1.

    Tags are the classes of whole images, `image/class/label` and `image/class/text`. If no image
    has a shape and each has one tag, they are single classes as in `ImageFolder`, from 0 in the
    order of the file; otherwise lists, of the same classes as the shapes, which are empty for an
    image without tags.

    Example:
        rs.pack(rs.Cvat("export"), "packed")
    """

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], used: Collection[str]
    ) -> tuple[Classes, list[str]]:
        declared = (name for file in files for name in file.class_names.values())
        names = dict.fromkeys((*declared, *used))
        return classes_by_label(dict(enumerate(names, 1)), self._label_map, "the data"), []
