"""Read CSV files of boxes: which column is what, and where the rows of each image are.

The rows of an image are kept as ranges of the file, so that memory grows with the number of images
and not with that of boxes: rows that follow each other are one range.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, cast

from recordsmith.errors import SourceError, accessing
from recordsmith.sources.boxes.annotated import VALUE_BYTES
from recordsmith.sources.boxes.annotation_files import DescribedImage
from recordsmith.sources.boxes.boxes import number
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.name_files import LONGEST_LINE
from recordsmith.sources.files.paths import size_and_version
from recordsmith.stores import Location

_NAMES = {
    "image": ("filename", "imagename", "imageid", "image", "imagepath", "imgname", "path", "file"),
    "name": ("class", "classname", "label", "labelname", "category", "name", "object"),
    "xmin": ("xmin", "x1", "left"),
    "ymin": ("ymin", "y1", "top"),
    "xmax": ("xmax", "x2", "right"),
    "ymax": ("ymax", "y2", "bottom"),
    "width": ("width", "imagewidth", "imgwidth"),
    "height": ("height", "imageheight", "imgheight"),
    "is_crowd": ("isgroupof",),
    "truncated": ("istruncated",),
}
CORNERS = ("xmin", "ymin", "xmax", "ymax")
_NEEDED = ("image", "name", *CORNERS)
_SIDES = frozenset(name for role in CORNERS for name in _NAMES[role])
_BOX_COLUMNS = frozenset(("bbox", "boundingbox", "box"))
_DELIMITERS = (",", ";", "\t")
_HEAD_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OPEN_IMAGES = frozenset(("ImageID", "LabelName", "XMin"))


class Columns(NamedTuple):
    """Which column is what.

    numbers: (role, column) of each column that is read.
    others: names of columns that are not read.
    is_open_images: whether they are those of Open Images.
    """

    delimiter: str
    has_header: bool
    numbers: tuple[tuple[str, int], ...]
    others: tuple[str, ...] = ()
    is_open_images: bool = False


class ImageRows(NamedTuple):
    """The rows of one image: (line, start, stop) of each range of bytes, end to end."""

    file: BoxCsv
    places: array[int]


class BoxCsv:
    """What a listing keeps of one file.

    Attributes:
        name: its path relative to the root.
        class_names: of all rows.
        is_relative: whether most coordinates are at most 1.
        empty_count: rows of images without boxes.
        version: changes when the file changes.
    """

    def __init__(self, location: Location, name: str) -> None:
        """Read the file once.

        Raises:
            SourceError: the file is not a CSV of boxes; `line` is where.
            FileAccessError: the file cannot be read.
        """
        self.name = name
        self.location = location
        columns = find_columns(location.read(0, _HEAD_BYTES))
        if columns is None:
            raise SourceError(
                "not a CSV of boxes; expected columns such as filename, xmin, ymin, xmax, ymax, "
                "class, or rows of path, x1, y1, x2, y2, class",
                path=name,
            )
        self.columns = columns
        self.class_names: set[str] = set()
        _, self.version = size_and_version(location)
        self._images: dict[str, array[int]] = {}
        roles = dict(columns.numbers)
        image, label, corner = roles["image"], roles["name"], roles["xmax"]
        least = 1 + max(roles[role] for role in _NEEDED)
        small = large = 0
        with io.BufferedReader(location.open_read(), 1 << 20) as file, accessing(name):
            for line, start, stop, row in _rows(cast(BinaryIO, file), columns, name):
                if len(row) < least:
                    raise SourceError(
                        f"found {len(row)} columns; expected {least}", path=name, line=line
                    )
                key = row[image].strip()
                places = self._images.get(key)
                if places is None:
                    places = self._images[key] = array("q")
                if places and places[-1] == start:
                    places[-1] = stop
                else:
                    places.extend((line, start, stop))
                text = row[label].strip()
                if text and "\n" not in text:
                    self.class_names.add(text)
                value = number(row[corner])
                small += value <= 1
                large += value > 1  # neither for a row without a box
        self.is_relative = columns.is_open_images or small > large

    @property
    def layout(self) -> tuple[Any, ...]:
        """What must be equal for one reader to read the rows of several files."""
        return self.columns.delimiter, self.columns.numbers, self.is_relative

    def described(self) -> Iterator[DescribedImage[ImageRows]]:
        """Yield the images in the order of the file."""
        for name, places in self._images.items():
            yield DescribedImage(f"line {places[0]}", name, ImageRows(self, places))


def reference_of(rows: ImageRows) -> dict[str, object]:
    """The rows of an image as text, or their ranges if they are long; with their lines."""
    location, places = rows.file.location, rows.places
    ranges = list(zip(places[::3], places[1::3], places[2::3], strict=True))
    if sum(stop - start for _, start, stop in ranges) > VALUE_BYTES:
        return {"ranges": [list(each) for each in ranges]}
    return {"rows": [[line, _text(location, start, stop)] for line, start, stop in ranges]}


def read_rows(
    location: Location, reference: Mapping[str, object], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each row that a reference contains or has the range of.

    Raises:
        FileAccessError: the file cannot be read.
    """
    parts: Iterable[tuple[int, str]] = (
        reference["rows"]  # type: ignore[assignment]
        if "rows" in reference
        else (
            (line, _text(location, start, stop))
            for line, start, stop in reference["ranges"]  # type: ignore[attr-defined]
        )
    )
    for line, text in parts:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        before = 0
        for row in reader:
            if row:
                yield line + before, row
            before = reader.line_num


def find_columns(head: bytes) -> Columns | None:
    """Which column is what, from the start of a file; None if it is not a CSV of boxes."""
    for delimiter in _DELIMITERS:
        cells = _first_cells(head, delimiter)
        found = _from_header(cells, delimiter) or _from_row(cells, delimiter)
        if found is not None:
            return found
    return None


def has_box_column(head: bytes) -> bool:
    """Whether there are boxes, but perhaps in other columns than `find_columns` knows."""
    for delimiter in _DELIMITERS:
        plain = {_plain(cell) for cell in _first_cells(head, delimiter)}
        if not plain.isdisjoint(_BOX_COLUMNS) or len(plain.intersection(_SIDES)) >= 4:
            return True
    return False


def _first_cells(head: bytes, delimiter: str) -> list[str]:
    lines = head.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace").splitlines()
    text = next((line for line in lines if line.strip()), "")
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _plain(cell: str) -> str:
    return re.sub(r"[^a-z0-9]", "", cell.lower())


def _from_header(cells: list[str], delimiter: str) -> Columns | None:
    plain = [_plain(cell) for cell in cells]
    numbers = {}
    for role, names in _NAMES.items():
        at = next((plain.index(name) for name in names if name in plain), None)
        if at is not None:
            numbers[role] = at
    if not all(role in numbers for role in _NEEDED):
        return None
    others = tuple(cell for at, cell in enumerate(cells) if cell and at not in numbers.values())
    is_open_images = set(cells) >= _OPEN_IMAGES
    return Columns(delimiter, True, tuple(numbers.items()), others, is_open_images)


def _from_row(cells: list[str], delimiter: str) -> Columns | None:
    """The columns of a file without a header: path, x1, y1, x2, y2, class."""
    is_box = (
        len(cells) == 6
        and has_image_name(cells[0])
        and (not any(cells[1:]) or (all(_is_number(cell) for cell in cells[1:5]) and cells[5]))
    )
    roles = ("image", *CORNERS, "name")
    numbers = tuple((role, at) for at, role in enumerate(roles))
    return Columns(delimiter, False, numbers) if is_box else None


def _is_number(text: str) -> bool:
    return number(text) == number(text)


def _rows(file: BinaryIO, columns: Columns, name: str) -> Iterator[tuple[int, int, int, list[str]]]:
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


def _text(location: Location, start: int, stop: int) -> str:
    data = location.read(start, stop)
    return (data if start else data.removeprefix(_BYTE_ORDER_MARK)).decode(
        "utf-8", "surrogateescape"
    )
