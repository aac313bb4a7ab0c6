"""YOLO: one text file per image, one line per object, relative coordinates.

An image without a label file has no objects.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.example import Kind
from recordsmith.example.keys import FILENAME, SOURCE_ID
from recordsmith.sources.boxes.boxes import (
    BOX_KINDS,
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    BoxReader,
    box_features,
    check_policy,
    number,
)
from recordsmith.sources.boxes.entries import Entry, make_samples
from recordsmith.sources.boxes.yolo_layout import find_samples
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.folders import is_file, last_name
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.versions import common_version
from recordsmith.sources.source import Listing, Note, Sample, ignore_note, look_up
from recordsmith.sources.splits import sort_splits
from recordsmith.stores import PlaceLike, as_location, as_place

_DESCRIPTIONS = (".yaml", ".yml", ".data")
_POLYGONS = "polygons were packed as the boxes around them"
_KEYPOINTS = "objects were packed without their keypoints"


class Yolo:
    """Images with boxes in YOLO's text format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (the position in the list of names, from 1) and
    `image/object/class/text`. Polygons become their bounding boxes.

    Example:
        >>> rs.pack(rs.Yolo("coco128/data.yaml"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self, root: PlaceLike, *, label_map: PlaceLike | None = None, boxes: BoxPolicy = "stop"
    ) -> None:
        """
        Args:
            root: the folder of images, labels and their description; or its `data.yaml` or
                `obj.data`, if there are several.
            label_map: path of a `label_map.pbtxt`, which defines the labels.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).

        Raises:
            OptionError: `boxes` is invalid.
        """
        place = as_place(root)
        is_description = place.suffix.lower() in _DESCRIPTIONS and is_file(place)
        self._described_by = place.name if is_description else None
        self.root = place.parent if is_description else place
        self._label_map = None if label_map is None else as_location(label_map)
        self._policy = check_policy(boxes)
        self._entries: dict[str, Entry[str]] = {}
        self._names: dict[int, str] = {}
        self._classes = Classes({}, "the data")
        self._is_upright = False
        self._has_keypoints = False

    def __repr__(self) -> str:
        return f"Yolo({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find images and label files, sorted by image path.

        Raises:
            SourceError: there are no YOLO files, or the description is invalid.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        found = find_samples(index, self._described_by)
        numbers = {label + 1: name for label, name in found.class_names.items()}
        self._classes = classes_by_label(numbers, self._label_map, found.description[0])
        self._names = found.class_names
        self._is_upright, self._has_keypoints = found.is_upright, found.has_keypoints
        self._entries = found.entries
        described = [*map(index.version_of, found.description)]

        def version_of(labels: str) -> int:
            return common_version((index.version_of(labels), *described))

        return Listing(
            make_samples(found.entries, found.splits, index, version_of),
            self,
            self._classes.names(),
            (*found.notices, *self._classes.notices()),
            sort_splits(found.splits.values()),
            has_label_map=True,
        )

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image and its label file.

        Raises:
            SourceError: its image is missing, or labels are invalid; `problems` lists each.
            CorruptDataError: unreadable-image.
            FileAccessError: a file cannot be read.
        """
        entry = look_up(self._entries, sample)
        features = entry.read_image(self.root, note)
        features[SOURCE_ID] = posixpath.basename(features[FILENAME])
        if entry.annotation is None:
            return features | box_features([])
        reader = BoxReader(features, self._policy, note)
        boxes = list(self._boxes(entry.annotation, reader, note))
        frame = reader.relative_frame(entry.annotation, is_upright=self._is_upright)
        placed = reader.place(boxes, frame, self._classes)
        reader.finish(entry.annotation)
        return features | box_features(placed)

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "Yolo",
            "folder": last_name(self.root),
            "file": self._described_by,
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
        }

    def kinds(self) -> Mapping[str, Kind]:
        return dict(BOX_KINDS)

    def _boxes(self, path: str, reader: BoxReader, note: Note) -> Iterator[AnnotatedBox]:
        for line, text in read_lines(self.root / path):
            place = f"{path}, line {line}"
            words = text.split()
            values = [number(word) for word in words[1:]]
            label = number(words[0])
            name = self._names.get(int(label)) if label >= 0 and label.is_integer() else None
            if name is None:
                known = (
                    f"; expected 0 to {max(self._names)}" if self._names else "; no class is named"
                )
                reader.reject(
                    place, f"unknown class number {words[0]!r}{known}", UNKNOWN_CLASSES_DROPPED
                )
                continue
            if self._has_keypoints and len(values) > 4:
                note(_KEYPOINTS, place)
                values = values[:4]
            if len(values) == 4:
                x, y, width, height = values
                half_width, half_height = width / 2, height / 2
                corners = (x - half_width, y - half_height, x + half_width, y + half_height)
            elif len(values) >= 6 and len(values) % 2 == 0:
                note(_POLYGONS, place)
                xs, ys = values[::2], values[1::2]
                corners = (min(xs), min(ys), max(xs), max(ys))
            else:
                found = f"{len(values)} numbers after the class"
                expected = "4 (x, y, width, height) or a polygon"
                reader.reject(place, f"{found}; expected {expected}")
                continue
            yield AnnotatedBox(f"{place} ({name})", name, corners)
