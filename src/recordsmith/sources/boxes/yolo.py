"""YOLO: one text file per image, one line per object, relative coordinates.

An image without a label file has no objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from recordsmith.errors import SourceError, option
from recordsmith.sources.boxes.annotated import (
    AnnotatedImages,
    AnnotatedReader,
    Annotation,
    make_listing,
)
from recordsmith.sources.boxes.boxes import (
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    number,
)
from recordsmith.sources.boxes.yolo_layout import find_samples
from recordsmith.sources.classes import classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import common_version, is_file
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import Location

_LABELS_CHECKED = 100
_DESCRIPTIONS = (".yaml", ".yml", ".data")
_KEYPOINTS = "objects were packed without their keypoints"


class Yolo(AnnotatedImages):
    """Images with boxes in YOLO's text format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (the position in the list of names, from 1) and
    `image/object/class/text`. Polygons become the boxes around them, and masks with `object_masks`.

    The root may also be the `data.yaml` or `obj.data` of the dataset, if there are several.

    Example:
        >>> rs.pack(rs.Yolo("coco128/data.yaml"), "packed")  # doctest: +SKIP
    """

    def list_samples(self) -> Listing:
        """Find images and label files, sorted by image path.

        Raises:
            SourceError: there are no YOLO files, or the description is invalid.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        found = find_samples(index, self._file)
        numbers = {label + 1: name for label, name in found.class_names.items()}
        classes = classes_by_label(numbers, self._label_map, found.description[0])
        if self._masks is None and not found.has_keypoints:
            labels = (each.annotation for each in found.entries.values() if each.annotation)
            self._check_rows(islice(labels, _LABELS_CHECKED))
        described = [*map(index.version_of, found.description)]
        return make_listing(
            found.entries,
            found.splits,
            index,
            YoloReader(
                **self._reader_options(classes),
                is_upright=found.is_upright,
                names=tuple(found.class_names.items()),
                has_keypoints=found.has_keypoints,
            ),
            classes,
            found.notices,
            lambda labels: common_version((index.version_of(labels), *described)),
            lambda labels: {"place": labels},
        )

    def _check_rows(self, labels: Iterable[str]) -> None:
        """Refuse oriented boxes, which look like polygons of 4 points.

        Raises:
            SourceError: all rows have 8 numbers after the class.
        """
        first = ""
        for path in labels:
            lines = read_lines(self.root / path)
            if any(len(line.split()) != 9 for _, line in lines):
                return
            first = first or (path if lines else "")
        if first:
            raise SourceError(
                "all rows have 8 numbers after the class: they are oriented boxes (OBB), which "
                "have no place in a record, or polygons of 4 points",
                path=first,
                remedy=f"Pass {option('object_masks', 'instance')} to pack their outlines as masks "
                "with the upright boxes around them.",
            )

    def describe(self) -> Mapping[str, Any]:
        return {**super().describe(), "file": self._file}

    @staticmethod
    def _parts_of(root: Location) -> tuple[Location, str | None]:
        is_description = root.suffix.lower() in _DESCRIPTIONS and is_file(root)
        return (root.parent, root.name) if is_description else (root, None)


@dataclass(frozen=True)
class YoloReader(AnnotatedReader):
    """Reads an image and its label file.

    names: of classes by number, from 0.
    """

    names: tuple[tuple[int, str], ...] = ()
    has_keypoints: bool = False

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        path = reference["place"]
        lines = read_lines(self.root / path)
        return Annotation(path, [self._box(path, *line, note) for line in lines], None)

    @cached_property
    def _names(self) -> Mapping[int, str]:
        return dict(self.names)

    def _box(self, path: str, line: int, text: str, note: Note) -> AnnotatedBox:
        place = f"{path}, line {line}"
        words = text.split()
        values = [number(word) for word in words[1:]]
        label = number(words[0])
        name = self._names.get(int(label)) if label >= 0 and label.is_integer() else None
        if name is None:
            known = f"; expected 0 to {max(self._names)}" if self._names else "; no class is named"
            fault = f"unknown class number {words[0]!r}{known}"
            return AnnotatedBox(place, "", fault=fault, dropped=UNKNOWN_CLASSES_DROPPED)
        if self.has_keypoints and len(values) > 4:
            note(_KEYPOINTS, place)
            values = values[:4]
        if len(values) == 4:
            x, y, width, height = values
            outline = None
            half_width, half_height = width / 2, height / 2
            corners = (x - half_width, y - half_height, x + half_width, y + half_height)
        elif len(values) >= 6 and len(values) % 2 == 0:
            outline = [values]
            xs, ys = values[::2], values[1::2]
            corners = (min(xs), min(ys), max(xs), max(ys))
        else:
            found = f"{len(values)} numbers after the class"
            expected = "4 (x, y, width, height) or a polygon"
            hint = ", not predictions with their confidence" * (len(values) == 5)
            return AnnotatedBox(place, name, fault=f"{found}; expected {expected}{hint}")
        return AnnotatedBox(f"{place} ({name})", name, corners, outline)
