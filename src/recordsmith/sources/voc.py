"""PASCAL VOC: an XML file with boxes for each picture, in any of the layouts that people have.

Listing reads every XML file, for the names of classes and pictures, and keeps what is in it, as
parsing it again would cost more than the rest of its sample. Where files are, `voc_layout` finds
out; whether boxes are good, `boxes`.
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
from recordsmith.files import PathLike, as_path
from recordsmith.sources.boxes import (
    BOX_KINDS,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    PlacedBox,
    box_features,
    check_policy,
)
from recordsmith.sources.classes import Classes, classes_of
from recordsmith.sources.contract import Listing, Note, Sample, look_up, unheard
from recordsmith.sources.entries import Entry, samples_of
from recordsmith.sources.file_index import FileIndex
from recordsmith.sources.splits import in_split_order
from recordsmith.sources.voc_layout import Annotated, find_samples
from recordsmith.sources.voc_xml import VocAnnotation, VocObject, kept


class Voc:
    """Pictures with boxes in PASCAL VOC's XML.

    Each sample has its picture untouched (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1 of the stored picture),
    `image/object/class/label` (from 1), `image/object/class/text`, `image/object/difficult`,
    `image/object/truncated` and `image/object/view`.
    """

    def __init__(
        self, root: PathLike, *, label_map: PathLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        """
        Args:
            root: the folder of the dataset, such as `VOCdevkit/VOC2012`.
            label_map: path of a `label_map.pbtxt`; without one the classes are sorted by name.
            boxes: what a wrong box does: `stop` its sample, be made right (`clip`), or left out
                (`drop`).

        Raises:
            OptionError: `boxes` is another word.
        """
        self.root = as_path(root)
        self._label_map = None if label_map is None else as_path(label_map)
        self._policy = check_policy(boxes)
        self._entries: dict[str, Entry[Annotated]] = {}
        self._classes = Classes({}, "the data")

    def __repr__(self) -> str:
        return f"Voc({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find annotation files and their pictures; the order is that of their paths.

        Raises:
            SourceError: there are no annotation files; says what is there.
            OptionError: the label map is none.
            FileAccessError: a folder or the label map cannot be read.
        """
        index = FileIndex(self.root)
        found = find_samples(index)
        self._classes = classes_of(found.class_names, self._label_map)
        self._entries = found.entries
        return Listing(
            samples_of(found.entries, found.splits, index, lambda told: index.time_of(told.path)),
            self._classes.names(),
            (*found.notices, *self._classes.notices()),
            in_split_order(found.splits.values()),
            has_label_map=True,
        )

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture and its annotation file."""
        entry = look_up(self._entries, sample)
        features = entry.read_picture(self.root, note)
        features[SOURCE_ID] = posixpath.basename(features[FILENAME])
        placed: list[PlacedBox] = []
        if entry.annotation is not None:
            path, content = entry.annotation
            reader = BoxReader(features, self._policy, note)
            placed = self._place(kept(content), path, reader)
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
            "folder": self.root.resolve().name,
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
                reader.reject(place, f"the object {item.name!r} has no bndbox")
            elif not item.name or "\n" in item.name:
                reader.reject(place, f"the object has the name {item.name!r}; expected a class")
            else:
                where = f"{place} ({item.name})"
                boxes.append(AnnotatedBox(where, item.name, item.corners, item))
        frame = reader.frame_of(found.width, found.height, path)
        return reader.place(boxes, frame, self._classes)
