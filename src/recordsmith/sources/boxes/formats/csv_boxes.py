"""CSV files with one box in each row, as in those of Roboflow, Open Images and keras-retinanet.

The rows of an image need not follow each other, so all are kept as JSON until the end of the file.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple, cast

import msgspec

from recordsmith.errors import SourceError, accessing
from recordsmith.example.keys import OBJECT_IS_CROWD, OBJECT_TRUNCATED
from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    decode_objects,
    encode_objects,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
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
    """Yield the images of a file; `class_names` has the names of classes by their ids."""
    columns = _find_columns(file.location.read(0, HEAD_BYTES))
    if columns is None:
        raise SourceError(
            "not a CSV of boxes; expected columns such as filename, xmin, ymin, xmax, ymax, "
            "class, or rows of path, x1, y1, x2, y2, class",
            path=file.name,
        )
    roles = columns.numbers
    file.features = [key for key in _FEATURES if key in roles]
    least = 1 + max(roles[role] for role in _NEEDED)
    images: dict[str, _Rows] = {}
    small = large = 0
    with io.BufferedReader(file.location.open_read(), 1 << 20) as stream, accessing(file.name):
        for line, row in _rows(cast(BinaryIO, stream), columns, file.name):
            if len(row) < least:
                raise SourceError(
                    f"found {len(row)} columns; expected {least}", path=file.name, line=line
                )
            cells = {
                role: row[column].strip() for role, column in roles.items() if column < len(row)
            }
            size = to_float(cells.get("width") or 0), to_float(cells.get("height") or 0)
            rows = images.get(cells["image"])
            if rows is None:
                rows = images[cells["image"]] = _Rows(line, size)
            xmin, ymin, xmax, ymax = (to_float(cells[side]) for side in _CORNERS)
            if any(cells[role] for role in (*_CORNERS, "name")):  # otherwise without a box
                name = file.class_names.get(cells["name"], cells["name"])
                extra = [int(to_float(cells.get(key)) > 0) for key in _FEATURES]
                corners = (xmin, ymin, xmax, ymax)
                fault = "" if size == rows.size else f"another image size than line {rows.line}"
                item = AnnotatedObject(f"line {line}", name, corners, None, extra, fault)
                rows.count += 1
                if rows.count <= MAX_OBJECTS + 1:  # more are refused
                    rows.objects += encode_objects(item) + b","
            small += xmax <= 1
            large += xmax > 1  # neither for a row without a box
    is_relative = columns.is_open_images or small > large
    if is_relative and not columns.is_open_images:
        file.notices.append(f"coordinates in {file.name} are relative: most are at most 1")
    if columns.others:
        file.notices.append(f"columns that are not packed: {join_names(columns.others)}")
    for name in [*images]:
        rows = images.pop(name)
        objects = decode_objects(msgspec.json.decode(b"[" + rows.objects[:-1] + b"]"))
        frame = None if is_relative else rows.size
        yield AnnotatedImage(f"line {rows.line}", name, frame, objects)


@dataclass(slots=True)
class _Rows:
    """The first line of an image, the size in it, and its objects as JSON."""

    line: int
    size: tuple[float, float]
    objects: bytearray = field(default_factory=bytearray)
    count: int = 0


def _rows(file: BinaryIO, columns: _Columns, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row with content."""

    def lines() -> Iterator[str]:
        for number in itertools.count(1):
            line = file.readline(LONGEST_LINE)
            if len(line) == LONGEST_LINE:
                problem = f"a line is longer than {LONGEST_LINE:,} bytes"
                raise SourceError(problem, path=name, line=number)
            if not line:
                return
            try:
                yield line.decode("utf-8" if number > 1 else "utf-8-sig")
            except ValueError:
                raise SourceError(
                    "not UTF-8", path=name, line=number, remedy="Save the file as UTF-8."
                ) from None

    is_header = columns.has_header
    for line, row in _csv_rows(lines(), columns.delimiter, name):
        if row and not is_header:
            yield line, row
        is_header &= not row


def _csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each row."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)  # no quote is open at the end
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise SourceError(f"not valid CSV: {error}", path=name, line=line) from None


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
        for _, row in _csv_rows(io.StringIO(read_text(index.root / path)), ",", path):
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
        rs.pack(rs.CsvBoxes("raccoons", annotations="train.csv"), "packed")
    """

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        for candidate in super().find_candidates(tree):
            # a path, four numbers and a class in each row, without a header: nothing else is so
            columns = [_find_columns(tree.head(path)) for path in candidate.files]
            is_bare = all(known and not known.has_header for known in columns)
            yield replace(candidate, confidence=Confidence.MARKED) if is_bare else candidate

    def _files(self, index: FileIndex) -> dict[str, AnnotationFile]:
        files = super()._files(index)
        paths = [p for p in index.paths if _CLASS_DESCRIPTIONS.match(posixpath.basename(p))]
        names, versions = _described_classes(index, paths), map(index.version_of, paths)
        version = common_version(versions) if paths else 0
        for file in files.values():
            file.class_names, file.version = names, common_version((file.version, version))
        return files
