"""CSV files with one box in each row, as of Roboflow, Open Images and keras-retinanet.

The rows of an image are kept as ranges of the file, so that memory grows with the number of images
and not with that of boxes: rows that follow each other are one range.
"""

from __future__ import annotations

import csv
import io
import math
import posixpath
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple, cast

from recordsmith.errors import SourceError, accessing
from recordsmith.example.keys import OBJECT_IS_CROWD, OBJECT_TRUNCATED
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Entry,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.source import ListedImages
from recordsmith.sources.classes import Classes, make_classes
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.file_tree import HEAD_BYTES, FileTree
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.name_files import LONGEST_LINE, read_text
from recordsmith.sources.files.paths import common_version
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names

_NAMES = {
    "image": ("filename", "imagename", "imageid", "image", "imagepath", "imgname", "path", "file"),
    "name": ("class", "classname", "label", "labelname", "category", "name", "object"),
    "xmin": ("xmin", "x1", "left"),
    "ymin": ("ymin", "y1", "top"),
    "xmax": ("xmax", "x2", "right"),
    "ymax": ("ymax", "y2", "bottom"),
    "width": ("width", "imagewidth", "imgwidth"),
    "height": ("height", "imageheight", "imgheight"),
    OBJECT_IS_CROWD: ("isgroupof",),
    OBJECT_TRUNCATED: ("istruncated",),
}
_CORNERS = ("xmin", "ymin", "xmax", "ymax")
_NEEDED = ("image", "name", *_CORNERS)
_DELIMITERS = (",", ";", "\t")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OPEN_IMAGES = frozenset(("ImageID", "LabelName", "XMin"))
_CLASS_DESCRIPTIONS = re.compile(r"(oidv\d+-)?class-descriptions.*\.csv", re.IGNORECASE)
_FEATURES = (OBJECT_IS_CROWD, OBJECT_TRUNCATED)


class _Columns(NamedTuple):
    """Which column has which role; `others` are the names of those that are not read."""

    delimiter: str
    has_header: bool
    numbers: dict[str, int]
    others: tuple[str, ...] = ()
    is_open_images: bool = False


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the images of a file with the places of their rows, or the image that rows are about.

    The context has the delimiter, the columns, whether coordinates are relative, and the names of
    classes by those in the file.
    """
    if file.is_part:
        yield _read_rows(file)
        return
    columns = _find_columns(file.location.read(0, HEAD_BYTES))
    if columns is None:
        raise SourceError(
            "not a CSV of boxes; expected columns such as filename, xmin, ymin, xmax, ymax, "
            "class, or rows of path, x1, y1, x2, y2, class",
            path=file.name,
        )
    roles = columns.numbers
    image, label, corner = roles["image"], roles["name"], roles["xmax"]
    least = 1 + max(roles[role] for role in _NEEDED)
    images: dict[str, array[int]] = {}
    small = large = 0
    with io.BufferedReader(file.location.open_read(), 1 << 20) as stream, accessing(file.name):
        for line, start, stop, row in _rows(cast(BinaryIO, stream), columns, file.name):
            if len(row) < least:
                raise SourceError(
                    f"found {len(row)} columns; expected {least}", path=file.name, line=line
                )
            key = row[image].strip()
            spans = images.get(key)
            if spans is None:
                spans = images[key] = array("q")
            if spans and spans[-1] == start:
                spans[-1] = stop
            else:
                spans.extend((line, start, stop))
            text = row[label].strip()
            if text and "\n" not in text:
                file.class_names[text] = None
            value = to_float(row[corner])
            small += value <= 1
            large += value > 1  # neither for a row without a box
    is_relative = columns.is_open_images or small > large
    file.context = (columns.delimiter, tuple(roles.items()), is_relative, ())
    if is_relative and not columns.is_open_images:
        file.notices.append(f"coordinates in {file.name} are relative: most are at most 1")
    if columns.others:
        file.notices.append(f"columns that are not packed: {join_names(columns.others)}")
    for name, spans in images.items():
        yield AnnotatedImage(f"line {spans[0]}", name, spans=spans)


def _read_rows(file: AnnotationFile) -> AnnotatedImage:
    """The objects in the rows of one image."""
    delimiter, columns, is_relative, known = file.context
    names = dict(known)
    size: tuple[float, float] | None = None if is_relative else (0, 0)
    objects = []
    for first, data in file.parts():
        plain = data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
        reader = csv.reader(io.StringIO(plain, newline=""), delimiter=delimiter)
        before = 0
        for row in reader:
            line, before = first + before, reader.line_num
            cells = {role: row[column].strip() for role, column in columns if column < len(row)}
            if row and size is not None:
                size = to_float(cells.get("width") or 0), to_float(cells.get("height") or 0)
            if any(cells.get(role) for role in (*_CORNERS, "name")):  # otherwise without a box
                xmin, ymin, xmax, ymax = (to_float(cells.get(side)) for side in _CORNERS)
                name = names.get(cells.get("name", ""), cells.get("name", ""))
                extra = [int(to_float(cells.get(key)) > 0) for key in _FEATURES]
                corners = (xmin, ymin, xmax, ymax)
                objects.append(AnnotatedObject(f"line {line}", name, corners, None, extra))
    return AnnotatedImage(size=size, objects=objects)


def _rows(
    file: BinaryIO, columns: _Columns, name: str
) -> Iterator[tuple[int, int, int, list[str]]]:
    """Yield line, start and end in bytes, and cells of each row with content."""
    stop = 0

    def lines() -> Iterator[str]:
        nonlocal stop
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise SourceError(f"a line is longer than {LONGEST_LINE:,} bytes", path=name)
            text = line if stop else line.removeprefix(_BYTE_ORDER_MARK)
            stop += len(line)
            yield text.decode("utf-8", "surrogateescape")

    reader = csv.reader(lines(), delimiter=columns.delimiter)
    is_header = columns.has_header
    before = start = 0
    try:
        for row in reader:
            if row and not is_header:
                yield before + 1, start, stop, row
            is_header &= not row
            before, start = reader.line_num, stop
    except csv.Error as error:
        raise SourceError(str(error), path=name, line=reader.line_num) from None


def _find_columns(head: bytes) -> _Columns | None:
    """Which column is what, from the start of a file; None if it is not a CSV of boxes."""
    lines = head.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace").splitlines()
    text = next((line for line in lines if line.strip()), "")
    for delimiter in _DELIMITERS:
        try:
            cells = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]
        except csv.Error:
            continue
        plain = [re.sub(r"[^a-z0-9]", "", cell.lower()) for cell in cells]
        numbers = {}
        for role, names in _NAMES.items():
            column = next((plain.index(name) for name in names if name in plain), None)
            if column is not None:
                numbers[role] = column
        if all(role in numbers for role in _NEEDED):
            used = numbers.values()
            others = tuple(c for column, c in enumerate(cells) if c and column not in used)
            return _Columns(delimiter, True, numbers, others, set(cells) >= _OPEN_IMAGES)
        if len(cells) == 6 and has_image_name(cells[0]):  # path, x1, y1, x2, y2, class
            has_box = all(math.isfinite(to_float(cell)) for cell in cells[1:5]) and cells[5]
            if has_box or not any(cells[1:]):
                roles = ("image", *_CORNERS, "name")
                return _Columns(delimiter, False, {role: n for n, role in enumerate(roles)})
    return None


def _described_classes(index: FileIndex, paths: Iterable[str]) -> dict[str, str]:
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


class CsvBoxes(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "csv-boxes",
        ".csv",
        lambda head: _find_columns(head) is not None,
        parse,
        what="images and boxes of {} (a row for each box)",
        file_what="a CSV file of boxes",
        file_suffixes=(".csv", ".tsv"),
        expected="a .csv file with columns such as filename, xmin, ymin, xmax, ymax, class, next "
        "to or above its images",
        has_outlines=False,
        features=dict.fromkeys(_FEATURES, "int64"),
    ),
):
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

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        for candidate in super().find_candidates(tree):
            # a path, four numbers and a class in each row, without a header: nothing else is so
            columns = [_find_columns(tree.head(path)) for path in candidate.files]
            is_bare = all(known and not known.has_header for known in columns)
            yield replace(candidate, confidence=Confidence.MARKED) if is_bare else candidate

    def _classes(
        self,
        index: FileIndex,
        files: Collection[AnnotationFile],
        listed: Mapping[str, Sequence[Entry]],
    ) -> tuple[Classes, list[str]]:
        names: Mapping[str, str] = {}
        paths: list[str] = []
        if any(name.startswith("/") for file in files for name in file.class_names):
            paths = [p for p in index.paths if _CLASS_DESCRIPTIONS.match(posixpath.basename(p))]
            names = _described_classes(index, paths)
        versions = [index.version_of(path) for path in paths]
        for file in files:
            file.context = (*file.context[:3], tuple(sorted(names.items())))
        for entry in (entry for entries in listed.values() for entry in entries):
            entry.version = common_version((entry.version, *versions))
        labels = {names.get(name, name) for file in files for name in file.class_names}
        return make_classes(labels, self._label_map), []

    def _list_images(self, index: FileIndex) -> ListedImages:
        listed = super()._list_images(index)
        columns = {role for context in listed.contexts.values() for role, _ in context[1]}
        return replace(listed, features=[key for key in _FEATURES if key in columns])
