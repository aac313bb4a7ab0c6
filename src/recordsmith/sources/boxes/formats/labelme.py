"""LabelMe: one JSON file per image, with polygons, rectangles, circles and masks."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from recordsmith.dataset import json_fault
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    encoding_error,
    outlined,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import last_part
from recordsmith.stores import Location, read_document
from recordsmith.support.errors import SourceError

_SHAPES = re.compile(rb'"shapes"\s*:\s*\[')
_KEY = re.compile(rb'"(version|flags|imagePath|imageData|lineColor|fillColor)"\s*:')
_NAMES_FILES = ("class_names.txt", "labels.txt")
_NO_CLASSES = frozenset(("__ignore__", "_background_"))
_CIRCLE_POINTS = 64
_POINT_COUNTS = {
    "rectangle": (2, 4),
    **dict.fromkeys(("circle", "mask"), (2,)),
    **dict.fromkeys(("rotation", "oriented_rectangle"), (4,)),
}
_MAX_VALUES = 1_000_000  # of a file: a parsed one takes up to a hundred bytes
_OTHER_SHAPES = "points and lines were left out, because they have no box"
_WRITE_IMAGES = (
    "The image is inside the JSON file. In the folder of the files, this writes such images next "
    "to them: python -c \"import base64, json, pathlib; [path.with_suffix('.png').write_bytes("
    "base64.b64decode(data)) for path in pathlib.Path().glob('*.json') "
    "if (data := json.loads(path.read_bytes()).get('imageData'))]\""
)


def matches(head: bytes) -> bool:
    """Whether a file begins like LabelMe's."""
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    has_shapes = _SHAPES.search(head) is not None
    return head.startswith(b"{") and has_shapes and _KEY.search(head) is not None


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for JSON of another type."""
    document = _document(file.location, file.name)
    shapes = document.get("shapes")
    if not isinstance(shapes, list):
        return
    objects = []
    flags = document.get("flags")
    labels = None  # flags that are declared are shown for each image
    if isinstance(flags, dict) and flags:
        labels = {name: 1.0 for name, is_set in flags.items() if is_set}
    notes = []
    for number, shape in enumerate(shapes, 1):
        where = f"shape {number}"
        if not isinstance(shape, dict):
            fault = f"invalid shape {str(shape)[:60]}"
            objects.append(AnnotatedObject(where, "", fault=fault))
            continue
        kind = shape.get("shape_type") or "polygon"
        if kind in ("point", "points", "line", "linestrip"):
            notes.append((_OTHER_SHAPES, f"{file.name}, {where}: {kind}"))
            continue
        objects.append(_object(where, str(kind), shape))
    path = document.get("imagePath")
    name = last_part(path) if isinstance(path, str) else ""
    width, height = (to_float(document.get(key) or 0) for key in ("imageWidth", "imageHeight"))
    remedy = _WRITE_IMAGES if document.get("imageData") else ""
    yield AnnotatedImage(
        "", name, (width, height), objects, notes=notes, remedy=remedy, labels=labels
    )


def _object(where: str, kind: str, shape: Mapping[str, Any]) -> AnnotatedObject:
    label = shape.get("label")
    name = label if isinstance(label, str) else ""
    points = _points(shape.get("points"))
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
        points = _circle(*points)
    if kind in ("polygon", "circle") or (len(points) == 4 and not _is_upright(points)):
        return outlined(where, name, points)
    outline: str | None = "box"  # drawn from any corner
    if kind == "mask":
        png, (x, y) = shape.get("mask"), points[0]
        outline = json.dumps({"png": png, "x": int(x), "y": int(y)}) if png else None
    return outlined(where, name, points)._replace(outline=outline)


def _circle(center: tuple[float, float], edge: tuple[float, float]) -> list[tuple[float, float]]:
    (x, y), radius = center, math.dist(center, edge)
    turns = (2 * math.pi * step / _CIRCLE_POINTS for step in range(_CIRCLE_POINTS))
    return [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]


def _is_upright(points: Collection[tuple[float, float]]) -> bool:
    """Whether four points are the corners of an upright rectangle, in any order."""
    xs, ys = ({point[side] for point in points} for side in (0, 1))
    return len(set(points)) == len(points) and len(xs) == len(ys) == 2


def _points(values: Any) -> list[tuple[float, float]] | None:
    try:
        points = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    is_valid = points.ndim == 2 and points.shape[1] == 2 and np.isfinite(points).all()
    return [(x, y) for x, y in points.tolist()] if is_valid else None


def _document(location: Location, name: str) -> dict[str, Any]:
    data = read_document(location)
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise SourceError(
            f"more than {_MAX_VALUES:,} values", path=name, remedy="Cut the image into tiles."
        )
    try:
        document = json.loads(text_as_utf8(data, name).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise encoding_error(name, line=data.count(b"\n", 0, error.start) + 1) from None
    except (RecursionError, ValueError) as error:
        raise SourceError(json_fault(error), path=name) from None
    return document if isinstance(document, dict) else {}


class LabelMe(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "labelme",
        ".json",
        matches,
        parse,
        what="images and shapes of JSON files such as {} (LabelMe)",
        expected="LabelMe's .json files next to their images, or in a folder annotations/",
        has_lists=True,
    ),
):
    """Images with polygons, rectangles, circles and masks in LabelMe's JSON format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons,
    circles and rotated rectangles become the boxes around them. Flags of images become the lists
    `image/class/label` and `image/class/text`, if any is set. Labels follow the order of
    `class_names.txt` or `labels.txt`, otherwise that of the names. Images inside the JSON files are
    not used.

    Example:
        rs.pack(rs.LabelMe("labelled", object_masks="class"), "packed")
    """

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], used: Collection[str]
    ) -> tuple[Classes, list[str]]:
        listed = next((name for name in _NAMES_FILES if name in index), None)
        if listed is None or self._label_map is not None:
            return super()._classes(index, files, used)
        lines = (name for _, name in read_lines(self.root / listed))
        numbered = enumerate((name for name in lines if name not in _NO_CLASSES), 1)
        return classes_by_label(dict(numbered), None, listed), []
