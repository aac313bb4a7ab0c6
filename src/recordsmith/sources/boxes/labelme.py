"""LabelMe: one JSON file per image, with polygons, rectangles and circles."""

from __future__ import annotations

import base64
import binascii
import json
import math
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset.documents import json_fault
from recordsmith.errors import SourceError, located
from recordsmith.sources.boxes.annotated import AnnotatedImages, make_listing
from recordsmith.sources.boxes.boxes import Corners, number
from recordsmith.sources.boxes.image_annotation_files import FileFormat, find_samples
from recordsmith.sources.boxes.image_annotations import (
    ImageAnnotation,
    ImageAnnotationReader,
    ObjectRow,
    reference_of,
)
from recordsmith.sources.classes import Classes, classes_by_label, make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.images import image_features
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import last_part
from recordsmith.sources.source import Listing
from recordsmith.stores import Location, read_document

_EXPECTED = "LabelMe's .json files next to their images, or in a folder annotations/"
_NAMES_FILES = ("class_names.txt", "labels.txt")
_NO_CLASSES = frozenset(("__ignore__", "_background_"))
_CIRCLE_POINTS = 64
_MAX_VALUES = 1_000_000  # of a file: a parsed one takes up to a hundred bytes
_FLAGS = "annotations were packed without the flags of their image"
_OTHER_SHAPES = "points and lines were left out, because they have no box"


class LabelMe(AnnotatedImages):
    """Images with polygons, rectangles and circles in LabelMe's JSON format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons and
    circles become the boxes around them. Labels follow the order of `class_names.txt` or
    `labels.txt`, otherwise that of the names. An image that is missing is taken from the JSON
    file, if that contains it.

    Example:
        >>> rs.pack(rs.LabelMe("labelled", object_masks="class"), "packed")  # doctest: +SKIP
    """

    def list_samples(self) -> Listing:
        """Read the JSON files and find their images, sorted by path.

        Raises:
            SourceError: there are no LabelMe files.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        found = find_samples(index, FileFormat(".json", read_labelme, _EXPECTED))
        classes = self._classes(index, found.class_names)
        return make_listing(
            found.entries,
            found.splits,
            index,
            LabelMeReader(**self._reader_options(classes)),
            classes,
            found.notices,
            lambda annotated: index.version_of(annotated.path),
            reference_of,
        )

    def _classes(self, index: FileIndex, names: set[str]) -> Classes:
        listed = next((name for name in _NAMES_FILES if name in index), None)
        if listed is None or self._label_map is not None:
            return make_classes(names, self._label_map)
        lines = (name for _, name in read_lines(self.root / listed))
        numbered = enumerate((name for name in lines if name not in _NO_CLASSES), 1)
        return classes_by_label(dict(numbered), None, listed)


@dataclass(frozen=True)
class LabelMeReader(ImageAnnotationReader):
    """Reads an image and its JSON file, which may contain the image."""

    def _image(self, name: str, reference: Mapping[str, Any]) -> dict[str, Any]:
        if "has_image" not in reference:
            return super()._image(name, reference)
        location = self.root / name
        document = _document(location, name)
        path = posixpath.join(posixpath.dirname(name), _file_name(document))
        try:
            data = base64.b64decode(document.get("imageData") or "", validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise SourceError("imageData is not valid base64", path=name) from None
        with located(location):
            return image_features(data, path)

    @staticmethod
    def _parse(location: Location, name: str) -> ImageAnnotation | None:
        return read_labelme(location, name)


def read_labelme(location: Location, name: str) -> ImageAnnotation | None:
    """Read one annotation file, called `name` in messages; None if it is of another type.

    Raises:
        SourceError: the file is not valid JSON.
        FileAccessError: the file cannot be read.
    """
    document = _document(location, name)
    shapes = document.get("shapes")
    if not isinstance(shapes, list):
        return None
    objects, notes = [], []
    flags = document.get("flags")
    if isinstance(flags, dict) and any(flags.values()):
        notes.append((_FLAGS, name))
    for at, shape in enumerate(shapes, 1):
        where = f"shape {at}"
        if not isinstance(shape, dict):
            objects.append(ObjectRow(where, "", None, f"invalid shape {str(shape)[:60]}"))
            continue
        kind = shape.get("shape_type") or "polygon"
        if kind in ("point", "points", "line", "linestrip"):
            notes.append((_OTHER_SHAPES, f"{name}, {where}: {kind}"))
            continue
        objects.append(_object(where, str(kind), shape))
    return ImageAnnotation(
        _file_name(document),
        _size(document.get("imageWidth")),
        _size(document.get("imageHeight")),
        tuple(objects),
        tuple(notes),
        isinstance(document.get("imageData"), str),
    )


def _object(where: str, kind: str, shape: Mapping[str, Any]) -> ObjectRow:
    label = shape.get("label")
    label = label if isinstance(label, str) else ""
    points = _points(shape.get("points"))
    if points is None:
        return ObjectRow(where, label, None, f"invalid points {str(shape.get('points'))[:60]}")
    if kind == "polygon":
        if len(points) < 2:
            return ObjectRow(where, label, None, f"a polygon of {len(points)} points; expected 2")
        return ObjectRow(where, label, _around(points), "", _outline(points))
    if kind not in ("rectangle", "circle", "mask") or len(points) != 2:
        return ObjectRow(where, label, None, f"unsupported shape: {kind} of {len(points)} points")
    (x, y), (edge_x, edge_y) = points
    if kind == "circle":
        radius = math.hypot(edge_x - x, edge_y - y)
        turns = (2 * math.pi * step / _CIRCLE_POINTS for step in range(_CIRCLE_POINTS))
        outline = [(x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns]
        corners = (x - radius, y - radius, x + radius, y + radius)
        return ObjectRow(where, label, corners, "", _outline(outline))
    # drawn from any corner
    return ObjectRow(where, label, _around(points), "", None if kind == "mask" else "box")


def _points(values: Any) -> list[tuple[float, float]] | None:
    if not isinstance(values, list):
        return None
    points = []
    for value in values:
        if not isinstance(value, list) or len(value) != 2:
            return None
        x, y = map(number, value)
        if not (math.isfinite(x) and math.isfinite(y)):
            return None
        points.append((x, y))
    return points


def _around(points: list[tuple[float, float]]) -> Corners:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _outline(points: list[tuple[float, float]]) -> list[list[float]]:
    return [[value for point in points for value in point]]


def _size(value: Any) -> float:
    return number(value or 0)


def _file_name(document: Mapping[str, Any]) -> str:
    name = document.get("imagePath")
    return last_part(name) if isinstance(name, str) else ""


def _document(location: Location, name: str) -> dict[str, Any]:
    data = read_document(location)
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise SourceError(
            f"more than {_MAX_VALUES:,} values", path=name, remedy="Cut the image into tiles."
        )
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (RecursionError, ValueError) as error:
        raise SourceError(json_fault(error), path=name) from None
    return document if isinstance(document, dict) else {}
