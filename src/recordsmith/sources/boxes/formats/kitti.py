"""KITTI's object labels: a text file for each image, with 15 values in a row for each object."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Entry,
    attributes_in,
    checked_numbers,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.known_formats import are_rows, first_rows
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.file_tree import HEAD_BYTES, MAX_OPENED, FileTree
from recordsmith.sources.files.name_files import read_lines

_NAMES = ("truncated", "occluded", "alpha", "left", "top", "right", "bottom", "dimension_height",
          "dimension_width", "dimension_length", "location_x", "location_y", "location_z",
          "rotation_y", "score")  # fmt: skip
_BOX, _SIZE, _IN_SPACE = slice(3, 7), slice(7, 10), slice(7, 14)
_DONT_CARE = "DontCare"
_LEFT_OUT = "regions of the class DontCare were left out"


def _is_row(cells: Sequence[bytes]) -> bool:
    """A class, then 14 or 15 numbers, the second of which is the occlusion."""
    return are_rows([cells], (15, 16), text=0) and to_float(cells[2]) in (-1, 0, 1, 2, 3)


def matches(head: bytes) -> bool:
    rows = first_rows(head)
    return bool(rows) and all(map(_is_row, rows))


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for texts of another type, such as calibrations."""
    lines = read_lines(file.location, file.name)
    rows = [(f"line {line}", *text.split(None, len(_NAMES) + 1)) for line, text in lines]
    head = file.location.read(0, HEAD_BYTES)
    if not _is_label_folder(file.name) and not any(map(_is_row, first_rows(head))):
        return
    objects = [_object(*row) for row in rows if row[1] != _DONT_CARE]
    notes = [(_LEFT_OUT, f"{file.name}, {where}") for where, name, *_ in rows if name == _DONT_CARE]
    yield AnnotatedImage(objects=objects, notes=notes)


def _object(where: str, name: str, *texts: str) -> AnnotatedObject:
    known = dict(zip(_NAMES, texts, strict=False))
    try:
        if len(texts) not in (14, 15):
            raise ValueError(f"found {len(texts) + 1} values; expected 15, or 16 with a score")
        values = checked_numbers(known, known)
    except ValueError as error:
        return AnnotatedObject(where, name, fault=str(error))
    left, top, right, bottom = values[_BOX]
    attributes = dict(zip(_NAMES, values, strict=False))
    if attributes["occluded"].is_integer():
        attributes["occluded"] = int(attributes["occluded"])
    for key in (*_NAMES[_BOX], *(_NAMES[_IN_SPACE] if max(values[_SIZE]) <= 0 else ())):
        del attributes[key]
    corners = (left, top, right, bottom)
    return AnnotatedObject(where, name, corners, attributes=attributes_in(attributes))


def _is_label_folder(path: str) -> bool:
    return "label" in posixpath.dirname(path).lower()


class Kitti(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "kitti",
        ".txt",
        matches,
        parse,
        what="images and boxes of text files such as {} (KITTI)",
        has_attributes=True,
        expected="label_2/*.txt of KITTI with image_2/",
        has_outlines=False,
    ),
):
    """Images with boxes in KITTI's text format for object detection.

    Each sample has the image and box features of `Voc`. The other values of an object are its
    attributes: `truncated`, `occluded` and `alpha`; of those with a box in space also
    `dimension_height`, `dimension_width`, `dimension_length`, `location_x`, `location_y`,
    `location_z` and `rotation_y`; and `score`, if there is one. Regions `DontCare` are left out.

    Example:
        rs.pack(rs.Kitti("kitti/training"), "packed")
    """

    @classmethod
    def _matching(cls, tree: FileTree) -> list[str]:
        """The first label files; there may be as many calibrations before them."""
        texts = sorted(tree.files(".txt"), key=lambda path: not _is_label_folder(path))
        return [path for path in texts[:MAX_OPENED] if matches(tree.head(path))]

    def _lists(self, index: FileIndex, base: str, entries: Iterable[Entry]) -> dict[str, list[str]]:
        lists = super()._lists(index, base, entries)
        if any("testing/" in path for path in index.paths):
            lists.pop("test", None)  # has no labels, and the same numbers as others
        return lists
