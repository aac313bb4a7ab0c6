"""Annotation files of one image each: their content in a common form, and its reader."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from recordsmith.sources.boxes.annotated import (
    VALUE_BYTES,
    AnnotatedReader,
    Annotation,
    changed_error,
)
from recordsmith.sources.boxes.boxes import UNKNOWN_CLASSES_DROPPED, AnnotatedBox, Corners
from recordsmith.sources.source import Note
from recordsmith.stores import Location


class ObjectRow(NamedTuple):
    """One object.

    where: in its file: "line 17".
    corners: xmin, ymin, xmax, ymax; None if the object has no valid box.
    fault: why it has none.
    segmentation: its outline, see `rasterize`.
    extra: other values of its format.
    """

    where: str
    name: str
    corners: Corners | None
    fault: str = ""
    segmentation: Any = None
    extra: tuple[Any, ...] = ()


class ImageAnnotation(NamedTuple):
    """The content of one file.

    filename: of the image.
    width, height: of the image; 0 if the file has no size.
    notes: (what, where) of what is left out.
    has_image: whether the file contains the image itself.
    """

    filename: str
    width: float
    height: float
    objects: tuple[ObjectRow, ...]
    notes: tuple[tuple[str, str], ...] = ()
    has_image: bool = False

    def class_names(self) -> set[str]:
        """The valid names of classes."""
        return {each.name for each in self.objects if each.name and "\n" not in each.name}


class Annotated(NamedTuple):
    """What a listing keeps of a file.

    content: from `dump_annotation`; empty if there is none.
    has_image: whether the image of the sample is the one in the file.
    """

    path: str
    content: bytes = b""
    has_image: bool = False


def dump_annotation(annotation: ImageAnnotation) -> bytes:
    """Serialize the size and the objects as JSON, in a tenth of their memory.

    Empty if JSON has no such numbers.
    """
    values = (annotation.width, annotation.height, annotation.objects)
    try:
        text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return b""
    return text.encode()


def reference_of(annotated: Annotated) -> dict[str, Any]:
    """The content of a file, or only its path if that is large."""
    reference: dict[str, Any] = {"place": annotated.path}
    if 0 < len(annotated.content) <= VALUE_BYTES:
        *reference["size"], reference["objects"] = json.loads(annotated.content)
    if annotated.has_image:
        reference["has_image"] = True
    return reference


class ImageAnnotationReader(AnnotatedReader):
    """Reads an image, and its annotation from the reference or the file; subclasses parse it."""

    @staticmethod
    @abstractmethod
    def _parse(location: Location, name: str) -> ImageAnnotation | None: ...

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        path = reference["place"]
        if "objects" in reference:
            size, objects = reference["size"], map(ObjectRow._make, reference["objects"])
            return Annotation(path, [_box(path, each) for each in objects], tuple(size))
        found = self._parse(self.root / path, path)
        if found is None:
            raise changed_error(path)
        boxes = [_box(path, each) for each in found.objects]
        return Annotation(path, boxes, (found.width, found.height))


def _box(path: str, row: ObjectRow) -> AnnotatedBox:
    place, name = f"{path}, {row.where}", row.name
    if row.corners is None:
        return AnnotatedBox(place, name, fault=row.fault)
    if not name or "\n" in name:
        fault = f"invalid class name {name!r}"
        return AnnotatedBox(place, name, fault=fault, dropped=UNKNOWN_CLASSES_DROPPED)
    xmin, ymin, xmax, ymax = row.corners  # a list where it was JSON
    corners = (xmin, ymin, xmax, ymax)
    return AnnotatedBox(f"{place} ({name})", name, corners, row.segmentation, row.extra)
