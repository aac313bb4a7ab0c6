"""CSV files with one box in each row, as of Roboflow, Open Images and keras-retinanet."""

from __future__ import annotations

import csv
import io
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recordsmith.errors import SourceError
from recordsmith.example import Kind
from recordsmith.example.keys import OBJECT_IS_CROWD, OBJECT_TRUNCATED
from recordsmith.sources.boxes.annotated import AnnotatedReader, Annotation, make_listing
from recordsmith.sources.boxes.annotation_files import (
    FileAnnotatedImages,
    find_by_content,
)
from recordsmith.sources.boxes.box_csv import CORNERS, BoxCsv, read_rows, reference_of
from recordsmith.sources.boxes.boxes import (
    UNKNOWN_CLASSES_DROPPED,
    AnnotatedBox,
    BoxPolicy,
    PlacedBox,
    number,
)
from recordsmith.sources.boxes.detection import is_box_csv
from recordsmith.sources.classes import make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.name_files import read_text
from recordsmith.sources.files.paths import common_version, referenced
from recordsmith.sources.problems import join_names
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import PlaceLike

_EXPECTED = (
    "a .csv file with columns such as filename, xmin, ymin, xmax, ymax, class, next to or above "
    "its images"
)
_CLASS_DESCRIPTIONS = re.compile(r"(oidv\d+-)?class-descriptions.*\.csv", re.IGNORECASE)
_FEATURES = {"is_crowd": OBJECT_IS_CROWD, "truncated": OBJECT_TRUNCATED}


class CsvBoxes(FileAnnotatedImages):
    """Images with boxes in a CSV file with one row for each box.

    The columns are found by their names: those of Roboflow and TensorFlow's tutorials (`filename`,
    `width`, `height`, `class`, `xmin`, `ymin`, `xmax`, `ymax`), of Open Images (`ImageID`,
    `LabelName`, `XMin`, …, with class names in `class-descriptions*.csv`), or without a header
    those of keras-retinanet (path, x1, y1, x2, y2, class). Coordinates are in pixels, or 0 to 1 if
    most are at most 1.

    Each sample has the image and box features of `Voc`; with Open Images also
    `image/object/is_crowd` (from `IsGroupOf`) and `image/object/truncated`.

    Example:
        >>> rs.pack(rs.CsvBoxes("raccoons", annotations="train.csv"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
    ) -> None:
        """
        Args:
            root: the folder of images and annotations; or the CSV file, next to its images or in a
                folder `annotations` next to theirs.
            annotations: the CSV file, or a mapping from split to CSV file; None to find them.
            images: the folder of the images, inside the root; None to find it.
            label_map: path of a `label_map.pbtxt`; without one, classes are sorted by name.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).

        Raises:
            OptionError: `boxes` is invalid, or `images` is not a folder inside the root.
        """
        super().__init__(
            root, annotations=annotations, images=images, label_map=label_map, boxes=boxes
        )

    def list_samples(self) -> Listing:
        """Read the CSV files and find their images, sorted by image path.

        Raises:
            SourceError: there are no CSV files of boxes, or one is invalid.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        paths = self._files(index, _find_files)
        files = {split: BoxCsv(path, name) for split, (path, name) in paths.items()}
        first, *others = files.values()
        for other in others:
            if first.layout != other.layout:
                raise SourceError(
                    f"{first.name} and {other.name} have different columns", path=self.root
                )
        described = _class_descriptions(index) if first.columns.is_open_images else []
        names = _described_classes(index, described)
        versions = [index.version_of(path) for path in described]
        found = {names.get(name, name) for file in files.values() for name in file.class_names}
        classes = make_classes(found, self._label_map)
        entries, splits, notices = self._entries(index, files)
        if first.is_relative and not first.columns.is_open_images:
            notices.append(f"coordinates in {first.name} are relative: most are at most 1")
        if left := [name for file in files.values() for name in file.columns.others]:
            notices.append(f"columns that are not packed: {join_names(dict.fromkeys(left))}")
        places = self._places(paths)

        return make_listing(
            entries,
            splits,
            index,
            CsvBoxReader(
                **self._reader_options(classes),
                delimiter=first.columns.delimiter,
                columns=first.columns.numbers,
                is_relative=first.is_relative,
                names=tuple((key, names[key]) for key in sorted(names)),
            ),
            classes,
            notices,
            lambda rows: common_version((rows.file.version, *versions)),
            lambda rows: {**places[rows.file.name], **reference_of(rows)},
        )


@dataclass(frozen=True)
class CsvBoxReader(AnnotatedReader):
    """Reads an image, and its rows from the reference or from ranges of the CSV file.

    columns: (role, number of the column) of each.
    names: of classes, by the name in the file, where they differ.
    """

    delimiter: str = ","
    columns: tuple[tuple[str, int], ...] = ()
    is_relative: bool = False
    names: tuple[tuple[str, str], ...] = ()

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        place = reference["place"]
        location = referenced(self.root, reference.get("file", place))
        size = None if self.is_relative else (0.0, 0.0)
        objects = []
        for line, row in read_rows(location, reference, self.delimiter):
            cells = {role: row[at].strip() for role, at in self.columns if at < len(row)}
            if size is not None:
                size = number(cells.get("width") or 0), number(cells.get("height") or 0)
            if any(cells.get(role) for role in (*CORNERS, "name")):  # otherwise without a box
                objects.append(self._box(f"{place}, line {line}", cells))
        return Annotation(place, objects, size)

    def _box(self, place: str, cells: Mapping[str, str]) -> AnnotatedBox:
        name = self._names.get(cells.get("name", ""), cells.get("name", ""))
        if not name or "\n" in name:
            fault = f"invalid class name {name!r}"
            return AnnotatedBox(place, name, fault=fault, dropped=UNKNOWN_CLASSES_DROPPED)
        xmin, ymin, xmax, ymax = (number(cells.get(side)) for side in CORNERS)
        return AnnotatedBox(f"{place} ({name})", name, (xmin, ymin, xmax, ymax), extra=cells)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return dict(self.names)

    def _object_kinds(self) -> Mapping[str, Kind]:
        known = dict(self.columns)
        return {feature: "int64" for role, feature in _FEATURES.items() if role in known}

    def _object_features(self, placed: list[PlacedBox], image: Mapping[str, Any]) -> dict[str, Any]:
        known = dict(self.columns)
        return {
            feature: [int(number(item.source.extra.get(role)) > 0) for item in placed]
            for role, feature in _FEATURES.items()
            if role in known
        }


def _find_files(index: FileIndex) -> dict[str, str]:
    return find_by_content(index, ".csv", is_box_csv, _EXPECTED)


def _class_descriptions(index: FileIndex) -> list[str]:
    """The files of Open Images with the names of classes."""
    return [path for path in index.paths if _CLASS_DESCRIPTIONS.match(posixpath.basename(path))]


def _described_classes(index: FileIndex, paths: list[str]) -> dict[str, str]:
    """Open Images' class names by their ids, such as /m/01yrx."""
    names: dict[str, str] = {}
    for path in paths:
        for row in csv.reader(io.StringIO(read_text(index.root / path))):
            if len(row) >= 2 and row[0].startswith("/"):
                names.setdefault(row[0], row[1])
    used: dict[str, str] = {}
    for key, name in names.items():
        if used.setdefault(name, key) != key:
            names[key] = f"{name} ({key})"
    return names
