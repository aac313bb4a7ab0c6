"""PASCAL VOC: one XML file with boxes per image, in any of the common layouts.

Listing reads every XML file for the names of classes and images, and keeps the content, because
parsing it again would take longer than the rest of the sample.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.example import Kind
from recordsmith.example.keys import OBJECT_DIFFICULT, OBJECT_TRUNCATED, OBJECT_VIEW
from recordsmith.sources.boxes.annotated import (
    VALUE_BYTES,
    AnnotatedImages,
    AnnotatedReader,
    Annotation,
    changed_error,
    make_listing,
)
from recordsmith.sources.boxes.boxes import (
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    PlacedBox,
)
from recordsmith.sources.boxes.voc_layout import Annotated, find_samples
from recordsmith.sources.boxes.voc_xml import VocObject, read_voc_xml
from recordsmith.sources.classes import make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import PlaceLike


class Voc(AnnotatedImages):
    """Images with boxes in PASCAL VOC's XML format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (from 1), `image/object/class/text`, `image/object/difficult`,
    `image/object/truncated` and `image/object/view`.

    Example:
        >>> rs.pack(rs.Voc("VOCdevkit/VOC2012", boxes="clip"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self, root: PlaceLike, *, label_map: PlaceLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        """
        Args:
            root: the folder of the dataset, such as `VOCdevkit/VOC2012`.
            label_map: path of a `label_map.pbtxt`; without one, classes are sorted by name.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).

        Raises:
            OptionError: `boxes` is invalid.
        """
        super().__init__(root, label_map=label_map, boxes=boxes)

    def list_samples(self) -> Listing:
        """Find annotation files and their images, sorted by path.

        Raises:
            SourceError: there are no annotation files, or several datasets.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self.root)
        found = find_samples(index)
        classes = make_classes(found.class_names, self._label_map)
        return make_listing(
            found.entries,
            found.splits,
            index,
            VocReader(**self._reader_options(classes)),
            classes,
            found.notices,
            lambda annotated: index.version_of(annotated.path),
            _reference,
        )


@dataclass(frozen=True)
class VocReader(AnnotatedReader):
    """Reads an image and its XML file, or the content of that file in the reference."""

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        path = reference["place"]
        if "objects" in reference:
            size, objects = reference["size"], map(VocObject._make, reference["objects"])
            return Annotation(path, [_box(path, item) for item in objects], tuple(size))
        found = read_voc_xml(self.root / path, path)
        if found is None:
            raise changed_error(path)
        boxes = [_box(path, item) for item in found.objects]
        return Annotation(path, boxes, (found.width, found.height))

    def _object_kinds(self) -> Mapping[str, Kind]:
        return {OBJECT_DIFFICULT: "int64", OBJECT_TRUNCATED: "int64", OBJECT_VIEW: "bytes"}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        objects: list[VocObject] = [item.source.extra for item in placed]
        return {
            OBJECT_DIFFICULT: [item.difficult for item in objects],
            OBJECT_TRUNCATED: [item.truncated for item in objects],
            OBJECT_VIEW: [item.view.encode() for item in objects],
        }


def _reference(annotated: Annotated) -> dict[str, Any]:
    reference: dict[str, Any] = {"place": annotated.path}
    if 0 < len(annotated.content) <= VALUE_BYTES:
        *reference["size"], reference["objects"] = json.loads(annotated.content)
    return reference


def _box(path: str, item: VocObject) -> AnnotatedBox:
    place = f"{path}, line {item.line}"
    if item.corners is None:
        return AnnotatedBox(place, item.name, fault=f"object {item.name!r} has no bndbox")
    if not item.name or "\n" in item.name:
        fault = f"invalid class name {item.name!r}"
        return AnnotatedBox(place, item.name, fault=fault, dropped=UNKNOWN_CLASSES_DROPPED)
    xmin, ymin, xmax, ymax = item.corners  # a list where it was JSON
    return AnnotatedBox(f"{place} ({item.name})", item.name, (xmin, ymin, xmax, ymax), extra=item)
