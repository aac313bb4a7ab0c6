"""LabelMe and X-AnyLabeling: a JSON file for each image, with its shapes."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    attributes_in,
    decode_json,
    ellipse,
    is_class_name,
    json_text,
    object_of_points,
    outlined,
    points_in,
    quad_object,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.known_formats import is_json_with
from recordsmith.sources.boxes.source import ListedImages
from recordsmith.sources.classes import classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import last_part
from recordsmith.stores import read_document
from recordsmith.support.errors import SourceError

_KEYS = ("version", "flags", "imagePath", "imageData", "lineColor", "fillColor")
_NAMES_FILES = ("class_names.txt", "labels.txt")
_NO_CLASSES = frozenset(("__ignore__", "_background_"))
_ROTATED = ("rotation", "oriented_rectangle")
_POINT_COUNTS = {
    "rectangle": (2, 4),
    **dict.fromkeys(("circle", "mask"), (2,)),
    **dict.fromkeys(_ROTATED, (4,)),
}
_MAX_VALUES = 1_000_000  # of a file: a parsed one takes up to a hundred bytes
_OTHER_SHAPES = "shapes were left out, because lines have no box"
_NO_CLASS = "object"
_WITHOUT_CLASS = f"groups of points without a box or polygon got the class {_NO_CLASS!r}"
_UNGROUPED = (
    "a point of no object: give the points of an object and its box or polygon the same group_id, "
    "the Group ID next to their labels"
)
_WRITE_IMAGES = (
    "The image is inside the JSON file. In the folder of the files, this writes such images next "
    "to them: python -c \"import base64, json, pathlib; [path.with_suffix('.png').write_bytes("
    "base64.b64decode(data)) for path in pathlib.Path().glob('*.json') "
    "if (data := json.loads(path.read_bytes()).get('imageData'))]\""
)


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for JSON of another type."""
    data = json_text(read_document(file.location), file.name)
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        problem = f"more than {_MAX_VALUES:,} values"
        raise SourceError(problem, path=file.name, remedy="Cut the image into tiles.")
    document = decode_json(data, file.name, Any, "")
    shapes = document.get("shapes") if isinstance(document, dict) else None
    if not isinstance(shapes, list):
        return
    objects: list[AnnotatedObject] = []
    outlines: dict[str | None, list[int]] = {}
    points: dict[str | None, list[tuple[str, Mapping[str, Any]]]] = {}
    flags = document.get("flags")
    labels = None  # flags that are declared are shown for each image
    if isinstance(flags, dict) and flags:
        labels = {name: 1.0 for name, is_set in flags.items() if is_set}
    notes = []
    for place, shape in enumerate(shapes, 1):
        where = f"shape {place}"
        if not isinstance(shape, dict):
            fault = f"invalid shape {str(shape)[:60]}"
            objects.append(AnnotatedObject(where, "", fault=fault))
            continue
        kind = shape.get("shape_type") or "polygon"
        if kind in ("line", "linestrip"):
            notes.append((_OTHER_SHAPES, f"{file.name}, {where}: {kind}"))
            continue
        number = shape.get("group_id")  # as text, because integers in a file may collide
        group = repr(number) if isinstance(number, int | str) else None
        if kind == "point":
            points.setdefault(group, []).append((where, shape))
            continue
        outlines.setdefault(group, []).append(len(objects))
        objects.append(_object(where, str(kind), shape)._replace(attributes=_attributes(shape)))
    notes += _link(objects, outlines, points, file.name)
    path = document.get("imagePath")
    name = last_part(path) if isinstance(path, str) else ""
    width, height = (to_float(document.get(key) or 0) for key in ("imageWidth", "imageHeight"))
    remedy = _WRITE_IMAGES if document.get("imageData") else ""
    yield AnnotatedImage(
        "", name, (width, height), objects, notes=notes, remedy=remedy, labels=labels
    )


def _link(
    objects: list[AnnotatedObject],
    outlines: Mapping[str | None, Sequence[int]],
    points: Mapping[str | None, Sequence[tuple[str, Mapping[str, Any]]]],
    file: str,
) -> Iterator[tuple[str, str]]:
    """Give the points of each group to its object, or make one of them; yield notes."""
    for group, shapes in points.items():
        named = {str(shape.get("label") or ""): _point(shape) for _, shape in shapes}
        owners, (where, _) = outlines.get(group, ()), shapes[0]
        if group is None:
            objects += [AnnotatedObject(place, "", fault=_UNGROUPED) for place, _ in shapes]
        elif len(named) < len(shapes) or not all(map(is_class_name, named)):
            fault = f"points of group {group:.60} without a label, or with the same"
            objects.append(AnnotatedObject(where, "", fault=fault))
        elif len(owners) > 1:
            fault = f"points of group {group:.60}, which has {len(owners)} boxes or polygons"
            objects.append(AnnotatedObject(where, "", fault=fault))
        elif owners:
            objects[owners[0]] = objects[owners[0]]._replace(points=named)
        else:
            objects.append(object_of_points(where, _NO_CLASS, named))
            yield _WITHOUT_CLASS, f"{file}, {where}"


def _object(where: str, kind: str, shape: Mapping[str, Any]) -> AnnotatedObject:
    label = shape.get("label")
    name = label if isinstance(label, str) else ""
    points = points_in(shape.get("points"))
    if points is None:
        fault = f"invalid points {str(shape.get('points'))[:60]}"
    elif kind == "polygon":
        fault = f"a polygon of {len(points)} points; expected 2" if len(points) < 2 else ""
    else:
        is_known = len(points) in _POINT_COUNTS.get(kind, ())
        fault = "" if is_known else f"unsupported shape: {kind} of {len(points)} points"
    if fault or points is None:
        return AnnotatedObject(where, name, fault=fault)
    if kind == "circle":
        radius = math.dist(*points)
        points = ellipse(*points[0], radius, radius)
    if kind in ("polygon", "circle"):
        return outlined(where, name, points)
    if kind in _ROTATED or (len(points) == 4 and not _is_upright(points)):
        return quad_object(where, name, points)
    outline: str | None = "box"  # drawn from any corner
    if kind == "mask":
        png, (x, y) = shape.get("mask"), points[0]
        outline = json.dumps({"png": png, "x": int(x), "y": int(y)}) if png else None
        points[1] = (points[1][0] + 1, points[1][1] + 1)  # was the last pixel
    return outlined(where, name, points)._replace(outline=outline)


def _attributes(shape: Mapping[str, Any]) -> dict[str, str | float]:
    """The flags of a shape and its description; of X-AnyLabeling also attributes and difficulty."""
    lists = (shape.get(key) for key in ("flags", "attributes"))
    known = dict(chain(*(values.items() for values in lists if isinstance(values, dict))))
    known["description"] = shape.get("description") or None
    return attributes_in({**known, "difficult": shape.get("difficult")})


def _point(shape: Mapping[str, Any]) -> tuple[float, float, int]:
    """x, y and visibility of a keypoint; NaN for an invalid one."""
    points = points_in(shape.get("points")) or ()
    x, y = points[0] if len(points) == 1 else (math.nan, math.nan)
    return x, y, 1 if shape.get("difficult") is True else 2  # X-AnyLabeling: hidden


def _is_upright(points: Collection[tuple[float, float]]) -> bool:
    """Whether four points are the corners of an upright rectangle, in any order."""
    xs, ys = ({point[side] for point in points} for side in (0, 1))
    return len(set(points)) == len(points) and len(xs) == len(ys) == 2


class LabelMe(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "labelme",
        ".json",
        is_json_with("{", *(f"shapes {key}" for key in _KEYS)),
        parse,
        what="images and shapes of JSON files such as {} (LabelMe)",
        expected="LabelMe's .json files next to their images, or in a folder annotations/",
        has_attributes=True,
        has_lists=True,
    ),
):
    """Images with polygons, rectangles, circles and masks in LabelMe's JSON format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons and
    circles become the boxes around them; if any rectangle is rotated, all objects have corners, as
    in `Dota`. Flags of images become the lists `image/class/label` and `image/class/text`, if any
    is set. Labels follow the order of `class_names.txt` or `labels.txt`, otherwise that of the
    names. Images inside the JSON files are not used.

    Flags of shapes, their `description`, and the `attributes` and `difficult` of X-AnyLabeling
    become `image/object/attribute/NAME`: texts, or numbers if every object has one.

    Points with the `group_id` of another shape are its keypoints, and their labels the names of
    these. A group of points alone is an object of the class `object`.

    Example:
        rs.pack(rs.LabelMe("labelled", object_masks="class"), "packed")
    """

    def _list_images(self, index: FileIndex) -> ListedImages:
        """The images; the listed labels also order keypoints, whose names are not classes."""
        listed = super()._list_images(index)
        known, (file, order) = listed.contents.point_names, self._listed_labels(index)
        for name, points in known.items():
            known[name] = dict.fromkeys([*(label for label in order if label in points), *points])
        if not file or self._label_map is not None:
            return listed
        of_points = {*chain(*known.values())}.difference(listed.contents.class_names)
        numbered = enumerate((label for label in order if label not in of_points), 1)
        return replace(listed, classes=classes_by_label(dict(numbered), None, file))

    def _listed_labels(self, index: FileIndex) -> tuple[str, list[str]]:
        """The file that lists the labels, and these; empty without one."""
        file = next((name for name in _NAMES_FILES if name in index), "")
        lines = read_lines(self.root / file) if file else ()
        return file, [name for _, name in lines if name not in _NO_CLASSES]
