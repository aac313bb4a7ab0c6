"""PASCAL VOC: one XML file with boxes per image, in any of the common layouts.

Listing reads every XML file for the names of classes and images, and keeps the content, because
parsing it again would take longer than the rest of the sample.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from recordsmith.example import Kind
from recordsmith.example.keys import (
    FILENAME,
    OBJECT_DIFFICULT,
    OBJECT_TRUNCATED,
    OBJECT_VIEW,
    SOURCE_ID,
)
from recordsmith.sources.boxes.boxes import (
    BOX_KINDS,
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    PlacedBox,
    box_features,
    check_policy,
)
from recordsmith.sources.boxes.entries import Entry, make_samples
from recordsmith.sources.boxes.voc_layout import Annotated, find_samples
from recordsmith.sources.boxes.voc_xml import VocAnnotation, VocObject, load_annotation
from recordsmith.sources.classes import Classes, make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.folders import last_name
from recordsmith.sources.source import Listing, Note, Sample, ignore_note, look_up
from recordsmith.sources.splits import sort_splits
from recordsmith.stores import PlaceLike, as_folder, as_location


class Voc:
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
        self.root = as_folder(root)
        self._label_map = None if label_map is None else as_location(label_map)
        self._policy = check_policy(boxes)
        self._entries: dict[str, Entry[Annotated]] = {}
        self._classes = Classes({}, "the data")

    def __repr__(self) -> str:
        return f"Voc({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find annotation files and their images, sorted by path.

        Raises:
            SourceError: there are no annotation files, or several datasets.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self.root)
        found = find_samples(index)
        self._classes = make_classes(found.class_names, self._label_map)
        self._entries = found.entries
        return Listing(
            make_samples(
                found.entries, found.splits, index, lambda found: index.version_of(found.path)
            ),
            self,
            self._classes.names(),
            (*found.notices, *self._classes.notices()),
            sort_splits(found.splits.values()),
            has_label_map=True,
        )

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image and its annotations.

        Raises:
            SourceError: its image is missing, or boxes are invalid; `problems` lists each.
            CorruptDataError: unreadable-image.
            FileAccessError: a file cannot be read.
        """
        entry = look_up(self._entries, sample)
        features = entry.read_image(self.root, note)
        features[SOURCE_ID] = posixpath.basename(features[FILENAME])
        placed: list[PlacedBox] = []
        if entry.annotation is not None:
            path, content = entry.annotation
            reader = BoxReader(features, self._policy, note)
            placed = self._place(load_annotation(content), path, reader)
            reader.finish(path)
        objects: list[VocObject] = [item.source.extra for item in placed]
        return (
            features
            | box_features(placed)
            | {
                OBJECT_DIFFICULT: [item.difficult for item in objects],
                OBJECT_TRUNCATED: [item.truncated for item in objects],
                OBJECT_VIEW: [item.view.encode() for item in objects],
            }
        )

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "Voc",
            "folder": last_name(self.root),
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
        }

    def kinds(self) -> Mapping[str, Kind]:
        return {
            **BOX_KINDS,
            OBJECT_DIFFICULT: "int64",
            OBJECT_TRUNCATED: "int64",
            OBJECT_VIEW: "bytes",
        }

    def _place(self, found: VocAnnotation, path: str, reader: BoxReader) -> list[PlacedBox]:
        boxes = []
        for item in found.objects:
            place = f"{path}, line {item.line}"
            if item.corners is None:
                reader.reject(place, f"object {item.name!r} has no bndbox")
            elif not item.name or "\n" in item.name:
                fault = f"invalid class name {item.name!r}"
                reader.reject(place, fault, UNKNOWN_CLASSES_DROPPED)
            else:
                where = f"{place} ({item.name})"
                boxes.append(AnnotatedBox(where, item.name, item.corners, item))
        frame = reader.make_frame(found.width, found.height, path)
        return reader.place(boxes, frame, self._classes)
