"""CSV and TSV files with one box in each row, as in those of Roboflow, Open Images and many others.

The rows of an image need not follow each other, so all are kept as JSON until the end of the file.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, cast

import msgspec

from recordsmith.dataset import is_split_name
from recordsmith.format.example.keys import OBJECT_IS_CROWD, OBJECT_TRUNCATED
from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Corners,
    decode_objects,
    encode_objects,
    encoding_error,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.source import BoxOptions
from recordsmith.sources.files.account import Role
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.sources.files.name_files import LONGEST_LINE, read_text
from recordsmith.sources.files.paths import common_version
from recordsmith.sources.problems import join_names
from recordsmith.sources.tables.box_columns import NOTATIONS, BoxColumns, Notation, find_box_columns
from recordsmith.stores import PlaceLike
from recordsmith.support.errors import SourceError, accessing, option
from recordsmith.support.explaining import check_word, unknown_word

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CLASS_DESCRIPTIONS = re.compile(r"(oidv\d+-)?class-descriptions.*\.csv", re.IGNORECASE)
_FEATURES = (OBJECT_IS_CROWD, OBJECT_TRUNCATED)
_MEANINGS: Mapping[Notation, str] = {
    "xyxy": "two corners",
    "xywh": "a corner and the size",
    "cxcywh": "the center and the size",
}
_WITHOUT_CLASS = "object"
_COLUMN_OPTIONS = ("image_column", "label_column", "split_column", "boxes_as")
_FEWEST = 50  # a notation is ruled out by one row in so many; fewer may be invalid boxes


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the images of a file; `class_names` has the names of classes by their ids."""
    columns = _find_columns(file)
    file.features = [key for key in _FEATURES if key in columns.roles]
    numbers = _Numbers(columns.notations if len(columns.notations) > 1 else ())
    images = _read_rows(file, columns, numbers)
    are_several = any(rows.count > 1 for rows in images.values())
    notation = _choose_notation(file, columns, numbers, are_several=are_several)
    is_relative = columns.is_open_images or numbers.fractions > numbers.larger
    if not columns.is_open_images:
        file.notices += numbers.notices(file.name, is_relative=is_relative)
    if "name" not in columns.roles:
        file.notices.append(
            f"{file.name} has no column of classes: the class of all boxes is {_WITHOUT_CLASS}; "
            f"{option('label_column')} chooses a column"
        )
    has_splits = all(is_split_name(rows.split) for rows in images.values())
    if columns.others:
        file.notices.append(f"columns that are not packed: {join_names(columns.others)}")
    for name in [*images]:
        rows = images.pop(name)
        objects = decode_objects(msgspec.json.decode(b"[" + rows.objects[:-1] + b"]"))
        if notation != "xyxy":
            objects = [o._replace(corners=_corners(o.corners, notation)) for o in objects]
        frame = None if is_relative else rows.size
        split = rows.split if has_splits else ""
        yield AnnotatedImage(f"line {rows.line}", name, frame, objects, split=split)


@dataclass(slots=True)
class _Rows:
    """The first line of an image, the size and the split in it, and its objects as JSON."""

    line: int
    size: tuple[float, float]
    split: str = ""
    objects: bytearray = field(default_factory=bytearray)
    count: int = 0


@dataclass(slots=True)
class _Numbers:
    """What the rows show about the numbers of boxes.

    notations: those between which the rows decide.
    count: the rows with four numbers.
    fractions: those without a number above 1, which are not all integers.
    larger: those with a number above 1.
    ruled_out: in how many rows the box is empty or outside the image in each notation.
    """

    notations: Sequence[Notation]
    count: int = 0
    fractions: int = 0
    larger: int = 0
    ruled_out: Counter[Notation] = field(default_factory=Counter)

    def add(self, texts: Sequence[str], box: Corners, size: tuple[float, float]) -> None:
        """Consider one row, with the size of its image, or 0."""
        if not math.isfinite(sum(box)):
            return
        self.count += 1
        is_larger = max(box) > 1
        is_fraction = not (is_larger or all(text.lstrip("+-").isdecimal() for text in texts))
        self.larger += is_larger
        self.fractions += is_fraction
        width, height = (1, 1) if is_fraction else (side or math.inf for side in size)
        spare = 0.001 if is_fraction else 0.5  # for rounding
        for notation in self.notations:
            left, top, right, bottom = _corners(box, notation)
            is_inside = (
                min(left, top) >= -spare and right <= width + spare and bottom <= height + spare
            )
            self.ruled_out[notation] += not (is_inside and left < right and top < bottom)

    def notices(self, name: str, *, is_relative: bool) -> list[str]:
        if self.fractions:
            unit = "relative" if is_relative else "in pixels"
            larger = f", {self.larger:,} have numbers above 1" if self.larger else ""
            rows = f"{self.fractions:,} rows have fractions of at most 1{larger}"
            return [f"coordinates in {name} are {unit}: {rows}"]
        if self.count and not self.larger:
            return [f"coordinates in {name} are in pixels: all are integers, of at most 1"]
        return []


def _find_columns(file: AnnotationFile) -> BoxColumns:
    columns = find_box_columns(file.location.read(0, HEAD_BYTES), **file.columns)
    if columns is None:
        raise SourceError(
            "not a CSV of boxes; expected columns such as filename, xmin, ymin, xmax, ymax, "
            "class, or rows of path, x1, y1, x2, y2, class",
            path=file.name,
            remedy=f"Rename the columns, or pass {option('image_column')} and "
            f"{option('boxes_as')}.",
        )
    label_column = file.columns.get("label_column")
    if label_column is not None and "name" not in columns.roles:
        problem = f"{file.name} has no column {label_column!r}"
        raise unknown_word("label_column", label_column, columns.others, problem)
    problem = remedy = ""
    if columns.repeated:
        problem = f"repeated column names: {join_names(columns.repeated)}"
        remedy = "Rename or remove the columns."
    elif columns.has_more_corners:
        problem = "each row has more than two corners (x3, y3); expected boxes"
        remedy = "Replace the corners by columns xmin, ymin, xmax and ymax, or pass "
        remedy += f"{option('format', 'table')} to read a record for each row."
    if problem:
        raise SourceError(problem, path=file.name, line=columns.line, remedy=remedy)
    return columns


def _read_rows(file: AnnotationFile, columns: BoxColumns, numbers: _Numbers) -> dict[str, _Rows]:
    """The rows of each image, with the numbers of each box as they are."""
    roles = columns.roles
    least = 1 + max(roles["image"], roles.get("name", 0), *columns.box)
    images: dict[str, _Rows] = {}
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
                rows = images[cells["image"]] = _Rows(line, size, cells.get("split", ""))
            texts = columns.numbers(row)
            if not any((*texts, cells.get("name"))):  # an image without a box
                continue
            fault = "" if size == rows.size else f"another image size than line {rows.line}"
            if len(texts) != 4:
                found = row[columns.box[0]]
                fault = f"column {columns.names[0]}: found {found!r:.60}; expected four numbers"
                texts = ("",) * 4
            name = file.class_names.get(cells.get("name"), cells.get("name", _WITHOUT_CLASS))
            extra = [int(to_float(cells.get(key)) > 0) for key in _FEATURES]
            left, top, right, bottom = map(to_float, texts)
            box = (left, top, right, bottom)
            numbers.add(texts, box, size)
            rows.count += 1
            if rows.count <= MAX_OBJECTS + 1:  # more are refused
                item = AnnotatedObject(f"line {line}", name, box, None, extra, fault)
                rows.objects += encode_objects(item) + b","
    return images


def _choose_notation(
    file: AnnotationFile, columns: BoxColumns, numbers: _Numbers, *, are_several: bool
) -> Notation:
    """The notation that the names or the rows leave; several rows of an image show boxes."""
    names = join_names(columns.names, shown=4)
    noun = "column" if len(columns.names) == 1 else "columns"
    problem = remedy = ""
    ruled_out = numbers.ruled_out
    possible = [n for n in columns.notations if ruled_out[n] * _FEWEST < max(1, numbers.count)]
    first, *others = sorted(columns.notations, key=lambda notation: ruled_out[notation])
    is_clear = not ruled_out[first] and possible == [first]
    possible = possible if len(possible) > 1 else [*columns.notations]
    if not columns.are_boxes and not are_several:
        problem = f"the {noun} {names} may be boxes, but no image has several rows"
        remedy = f", or {option('format', 'table')} to read a record for each row"
    elif numbers.count and not is_clear:
        problem = f"the boxes in the {noun} {names} may be {join_names(possible, 'or')}"
        remedy = ": " + join_names(f"{notation} is {_MEANINGS[notation]}" for notation in possible)
    if problem:
        ways = join_names((option("boxes_as", notation) for notation in possible), "or")
        remedy = f"Pass {ways} to read boxes{remedy}."
        raise SourceError(problem, path=file.name, line=columns.line, remedy=remedy)
    if numbers.count and others:
        counts = join_names(f"{notation}: {ruled_out[notation]:,}" for notation in others)
        file.notices.append(
            f"boxes in {file.name} ({names}) are read as {first}, which fits all "
            f"{numbers.count:,} rows; rows that do not fit {counts}"
        )
    return first


def _corners(box: Corners, notation: Notation) -> Corners:
    if notation == "xyxy":
        return box
    left, top, width, height = box
    if notation == "cxcywh":
        left, top = left - width / 2, top - height / 2
    return left, top, left + width, top + height


def _rows(file: BinaryIO, columns: BoxColumns, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row with content."""
    is_header = columns.line > 0
    for line, row in csv_rows(text_lines(file, name), columns.delimiter, name):
        if row and not is_header:
            yield line, row
        is_header &= not row


def text_lines(file: BinaryIO, name: str) -> Iterator[str]:
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
            raise encoding_error(name, line=number) from None


def csv_rows(lines: Iterable[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
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


def described_classes(index: FileIndex) -> tuple[dict[str, str], int]:
    """Open Images' class names by their ids, such as /m/01yrx, and the version of their files."""
    names: dict[str, str] = {}
    paths = [path for path in index.paths if _CLASS_DESCRIPTIONS.match(posixpath.basename(path))]
    index.account.read(Role.CLASS_NAMES, {*paths})
    for path in paths:
        for _, row in csv_rows(io.StringIO(read_text(index.root / path)), ",", path):
            if len(row) >= 2 and row[0].startswith("/"):
                names.setdefault(row[0], row[1])
    used: dict[str, str] = {}
    for key, name in names.items():
        if used.setdefault(name, key) != key:
            names[key] = f"{name} ({key})"
    return names, common_version(map(index.version_of, paths)) if paths else 0


class CsvBoxes(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "csv-boxes",
        ".csv",
        lambda head: find_box_columns(head) is not None,
        parse,
        what="images and boxes of {} (a row for each box)",
        file_what="a CSV file of boxes",
        file_suffixes=(".csv", ".tsv"),
        expected="a .csv or .tsv file with columns such as filename, xmin, ymin, xmax, ymax, "
        "class, next to or above its images",
        has_outlines=False,
        features=dict.fromkeys(_FEATURES, "int64"),
    ),
):
    """Images with boxes in a CSV or TSV file with one row for each box.

    The columns are found by their names, without case, punctuation and `bbox`: those of Roboflow
    and TensorFlow's tutorials (`filename`, `width`, `height`, `class`, `xmin`, `ymin`, `xmax`,
    `ymax`), of Open Images (`ImageID`, `LabelName`, `XMin`, …, with class names in
    `class-descriptions*.csv`), `left`, `top`, `width`, `height` and others, or without a header
    those of keras-retinanet (path, x1, y1, x2, y2, class). What four numbers are in a column `bbox`
    or in `x`, `y`, `w`, `h` is decided by the rows, if only one notation fits them all. Coordinates
    are relative if most rows have fractions of at most 1, else in pixels.

    Each sample has the image and box features of `Voc`; with Open Images also
    `image/object/is_crowd` (from `IsGroupOf`) and `image/object/truncated`.

    Example:
        rs.pack(rs.CsvBoxes("raccoons", annotations="train.csv"), "packed")
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        image_column: str | None = None,
        label_column: str | None = None,
        split_column: str | None = None,
        boxes_as: Notation | None = None,
        **options: Unpack[BoxOptions],
    ) -> None:
        """
        Args:
            root, annotations, images: as in `Coco`.
            image_column: column of the names of images; None to find it.
            label_column: column of classes; None to find it.
            split_column: column of the split of each image; None to find it.
            boxes_as: what the four numbers of a box are: two corners (`xyxy`), a corner and the
                size (`xywh`), or the center and the size (`cxcywh`); None to find it by the names
                and the rows.
            options: `label_map`, `boxes` and `drawn`, as in `Voc`.
        """
        super().__init__(root, annotations=annotations, images=images, **options)
        if boxes_as is not None:
            check_word("boxes_as", boxes_as, NOTATIONS)
        given = zip(
            _COLUMN_OPTIONS, (image_column, label_column, split_column, boxes_as), strict=True
        )
        self._columns = {name: value for name, value in given if value}

    def _matches(self, index: FileIndex, path: str) -> bool:
        if not path.lower().endswith(self.box_format.file_suffixes):
            return False
        head = (index.root / path).read(0, HEAD_BYTES)
        return find_box_columns(head, **self._columns) is not None

    def _files(self, index: FileIndex) -> dict[str, AnnotationFile]:
        files = super()._files(index)
        names, version = described_classes(index)
        for file in files.values():
            file.class_names, file.version = names, common_version((file.version, version))
        return files
