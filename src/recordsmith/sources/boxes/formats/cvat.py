"""CVAT's own XML: one file with the shapes of all images, or with the tracks of a video."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from recordsmith.dataset import KeypointClass, is_label
from recordsmith.format.example.keys import OBJECT_TRACK
from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Corners,
    attributes_in,
    checked_numbers,
    ellipse,
    has_elements,
    is_class_name,
    object_of_points,
    outlined,
    parse_xml,
    points_in,
    rotated_object,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.cvat_tracks import NO_TRACK, Tracks
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex

_ROOT = re.compile(rb"<annotations>")
_INNER = re.compile(rb"<(version|meta|image|track)\b")
_NAME = re.compile(rb"<label>\s*<name>([^<]*)<")
_PARENT = re.compile(rb"<parent>([^<]*)<")
_ATTRIBUTE = re.compile(rb"<name>([^<]*)</name>")
_IS_NUMBER = re.compile(rb"<input_type>\s*number\s*<")
_SVG = re.compile(rb"<svg>([^<]*)<")
_SVG_ELEMENT = re.compile(r"<(?:line|circle)\b([^<>]*)>")
_SVG_VALUE = re.compile(r"data-(node-id|label-name|node-from|node-to)=[\"']([^\"']*)")
_OTHER_SHAPES = "shapes were left out, because lines and cuboids are not read"
_OTHER_ATTRIBUTES = "attributes were left out, because tags and points of skeletons have none"
_LEFT_OUT = frozenset(("polyline", "cuboid"))
_SHAPES = frozenset(("box", "polygon", "points", "ellipse", "mask"))
_MARKS = {  # the first pattern is fast
    key: (re.compile(b'%s="[1-9]' % key.encode()),
          re.compile(rb'<(?:box|polygon|ellipse|mask)\b[^<>]*\s%s="[1-9]' % key.encode()))
    for key in ("occluded", "group_id")
}  # fmt: skip
_SIDES = ("xtl", "ytl", "xbr", "ybr")
_PART = ("left", "top", "width", "height")


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    data = text_as_utf8(file.location.read(), file.name, is_xml=True)
    declared, file.keypoint_classes, numbers = _declared_labels(data)
    file.class_names.update(enumerate(declared, 1))
    parser = expat.ParserCreate("utf-8")
    images: list[AnnotatedImage] = []
    open_images: list[AnnotatedImage] = []
    objects: list[AnnotatedObject] = []
    notes: list[tuple[str, str]] = []
    labels: dict[str, float] = {}
    attributes: dict[str, Any] = {}
    # the open one: its points, and the attributes before them
    skeletons: list[tuple[str, str, dict[str, tuple[float, float, int]], dict[str, Any]]] = []
    open_attributes: list[tuple[str, list[str]]] = []
    tracks = Tracks(file.name, data)
    marks = [key for key, patterns in _MARKS.items() if all(p.search(data) for p in patterns)]

    def start(tag: str, values: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if tracks.is_open and not open_images:
            values = tracks.begin(tag, values, line)
            open_images.append(AnnotatedImage())
        if tag == "image":
            number, name = values.get("id", "?"), values.get("name", "")
            size = to_float(values.get("width") or 0), to_float(values.get("height") or 0)
            split = values.get("subset", "")
            open_images.append(AnnotatedImage(f"image {number}", name, size, (), number, split))
        elif tag == "track":
            tracks.begin_track(values, line)
        elif not open_images or max(len(objects), len(notes), len(labels)) > MAX_OBJECTS:
            return  # the image is refused
        elif tag == "attribute":
            open_attributes.append((values.get("name", ""), []))
            parser.CharacterDataHandler = open_attributes[-1][1].append
        elif tag == "tag":
            labels[values.get("label", "")] = 1
        elif tag == "skeleton":
            attributes.update(_marks(values, marks))
            skeletons.append((f"line {line}", values.get("label", ""), {}, {}))
        elif tag == "points" and skeletons:
            points, name = skeletons[-1][2], values.get("label", "")
            skeletons[-1][3].update(attributes)
            attributes.clear()
            if name in points:
                fault = f"the skeleton has another point {name!r:.60}"
                objects.append(AnnotatedObject(f"line {line}", "", fault=fault))
            points.setdefault(name, _point(values))
        elif tag in _SHAPES:
            attributes.update(_marks(values, marks))
            objects.append(_object(f"line {line}", tag, values))
        elif tag in _LEFT_OUT:
            notes.append((_OTHER_SHAPES, f"{file.name}, line {line}: {tag}"))

    def end(tag: str) -> None:
        if tag == "skeleton" and skeletons:
            where, name, points, held = skeletons.pop()
            attributes.update(held)
            if not tracks.is_open or any(visibility for _, _, visibility in points.values()):
                objects.append(object_of_points(where, name, points))
        if tag == "attribute":
            parser.CharacterDataHandler = None
            if open_attributes:  # none of an image that is refused
                name, pieces = open_attributes.pop()
                attributes[name] = _value("".join(pieces), is_number=name in numbers)
        elif tag != "image" and attributes:
            if tag == "tag" or skeletons:
                place = f"{file.name}, line {parser.CurrentLineNumber}"
                notes.extend([(_OTHER_ATTRIBUTES, place)] * len(attributes))
            elif tag in (*_SHAPES, "skeleton") and objects:
                objects[-1] = objects[-1]._replace(attributes=attributes_in(attributes))
            attributes.clear()
        if tag == "track":
            tracks.is_open = False
        elif tag == "image" or (tracks.is_open and tag == tracks.shape):
            image = open_images.pop()._replace(notes=notes.copy(), labels=labels.copy())
            if tag == "image":
                known = [item._replace(extra=(NO_TRACK,)) for item in objects]
                images.append(image._replace(objects=known))
            else:
                tracks.end(objects, notes)
            for items in (objects, notes, labels):
                items.clear()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    for _ in parse_xml(parser, data, file.name):
        yield from images
        images.clear()
    yield from tracks.images()
    file.unlisted = tracks.unlisted
    file.features = file.features if tracks.has_objects else ()


def _declared_labels(data: bytes) -> tuple[list[str], dict[str, KeypointClass], set[str]]:
    """The labels of a task or project in order, points of skeletons by label, and attributes.

    These are the names of those that are numbers.
    """
    start, end = data.find(b"<labels>"), data.find(b"</labels>")
    names: list[str] = []
    points: dict[str, list[str]] = {}
    svgs: dict[str, str] = {}
    declared = data[start:end] if 0 <= start < end else b""
    for label in declared.split(b"</label>")[:-1]:
        name, parent, svg = (_text_in(label, tag) for tag in (_NAME, _PARENT, _SVG))
        if not is_class_name(name):
            continue
        if parent := parent.strip():
            points.setdefault(parent, []).append(name)
        else:
            names.append(name)
            svgs[name] = svg
    keypoints = {
        name: KeypointClass(tuple(of_class), _edges(svgs.get(name, ""), of_class))
        for name, of_class in points.items()
    }
    numbers = [text for text in declared.split(b"<attribute>")[1:] if _IS_NUMBER.search(text)]
    return names, keypoints, {_text_in(text, _ATTRIBUTE) for text in numbers}


def _marks(values: Mapping[str, str], names: Sequence[str]) -> dict[str, int]:
    """The numbers of CVAT's shapes, if at least one of them is not 0."""
    texts = {name: values.get(name, "") for name in names}
    return {name: int(text) if is_label(text) else 0 for name, text in texts.items()}


def _value(text: str, *, is_number: bool) -> str | float:
    """The value of an attribute: a number if it is declared as one, and is one."""
    for kind in (int, float) if is_number else ():
        with suppress(ValueError):
            return kind(text)
    return text


def _text_in(label: bytes, tag: re.Pattern[bytes]) -> str:
    match = tag.search(label)
    return html.unescape(match[1].decode("utf-8", "replace")) if match else ""


def _edges(svg: str, names: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The lines of a skeleton's drawing between points; its circles have their names."""
    numbers = {name: number for number, name in enumerate(names)}
    elements = [dict(_SVG_VALUE.findall(element)) for element in _SVG_ELEMENT.findall(svg)]
    points = {
        values["node-id"]: numbers[html.unescape(values["label-name"])]
        for values in elements
        if "node-id" in values and html.unescape(values.get("label-name", "")) in numbers
    }
    ends = (
        (points.get(e.get("node-from", "")), points.get(e.get("node-to", ""))) for e in elements
    )
    return tuple((a, b) for a, b in ends if a is not None and b is not None)


def _object(where: str, shape: str, values: Mapping[str, str]) -> AnnotatedObject:
    name = values.get("label", "")
    try:
        return _drawn(where, name, shape, values)
    except ValueError as error:
        return AnnotatedObject(where, name, fault=str(error))


def _drawn(where: str, name: str, shape: str, values: Mapping[str, str]) -> AnnotatedObject:
    degrees = to_float(values.get("rotation") or 0) % 360
    if shape == "box":
        xmin, ymin, xmax, ymax = checked_numbers(values, _SIDES)
        corners: Corners = (xmin, ymin, xmax, ymax)
        if degrees:
            return rotated_object(where, name, corners, degrees)
        return AnnotatedObject(where, name, corners, "box")
    if shape == "ellipse":
        x, y, across, down = checked_numbers(values, ("cx", "cy", "rx", "ry"))
        return outlined(where, name, ellipse(x, y, across, down, math.radians(degrees)))
    if shape == "mask":
        left, top, width, height = map(int, checked_numbers(values, _PART))
        counts = [text.strip() for text in values.get("rle", "").split(",")]
        if not all(map(str.isdecimal, counts)):
            raise ValueError(f"invalid rle {values.get('rle')!r:.60}; expected run lengths")
        runs = {"counts": [*map(int, counts)], "size": [height, width], "by_row": True}
        outline = json.dumps({**runs, "x": left, "y": top})
        return AnnotatedObject(where, name, (left, top, left + width, top + height), outline)
    points = _points(values)
    if points is None or (shape == "polygon" and len(points) < 2):
        raise ValueError(f"invalid points {values.get('points')!r:.60}; expected x,y;x,y")
    if shape == "points":
        seen = _visibility(values)
        return object_of_points(where, name, [value for x, y in points for value in (x, y, seen)])
    return outlined(where, name, points)


def _visibility(values: Mapping[str, str]) -> int:
    if values.get("outside") == "1":
        return 0
    return 1 if values.get("occluded") == "1" else 2


def _point(values: Mapping[str, str]) -> tuple[float, float, int]:
    """x, y and visibility of a point of a skeleton; NaN for an invalid one."""
    points = _points(values) or ()
    x, y = points[0] if len(points) == 1 else (math.nan, math.nan)
    return x, y, _visibility(values)


def _points(values: Mapping[str, str]) -> list[tuple[float, float]] | None:
    return points_in([pair.split(",") for pair in values.get("points", "").split(";")])


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
        has_attributes=True,
        expected="annotations.xml of CVAT's exports 'CVAT for images 1.1' or 'CVAT for video 1.1', "
        "next to or above its images",
        features={OBJECT_TRACK: "int64"},
    ),
):
    """Images with boxes, polygons, ellipses and masks in CVAT's XML format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Outlines
    become the boxes around them; if any box is rotated, all have corners, as in `Dota`. Subsets
    become splits. Labels have the order of the file, from 1. Skeletons and shapes of points have
    keypoints, and the box around those that are labelled: those that are not `outside`. Attributes
    of shapes become `image/object/attribute/NAME`: numbers if CVAT declares numbers and every
    object has one, otherwise texts. `occluded` (0 or 1) and `group_id` are attributes as
    well, if any box or outline has one.

    Tracks of a video are objects of its frames with `image/object/track/label`, while they are not
    `outside`; other frames of the task have no objects.

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
