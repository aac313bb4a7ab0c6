"""Find the columns of a CSV or TSV file that are boxes, by its header and first rows.

Names such as `xmin, ymin, xmax, ymax` or `left, top, width, height` define the notation of a box.
`x, y, w, h` and a column `bbox` allow several notations.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from recordsmith.format.example.keys import OBJECT_IS_CROWD, OBJECT_TRUNCATED
from recordsmith.sources.files.images import has_image_name

Notation = Literal["xyxy", "xywh", "cxcywh"]
"""What four numbers are: two corners; a corner and the size; the center and the size."""

NOTATIONS: tuple[Notation, ...] = ("xyxy", "xywh", "cxcywh")

_ROLES: Mapping[str, tuple[str, ...]] = {
    "image": (
        *("filename", "imagename", "imageid", "image", "imagepath", "imgname", "path", "file"),
        *("filepath", "imagefile", "imagefilename", "fname", "img", "imgid", "imgpath", "imgfile"),
    ),
    "name": (
        *("class", "classname", "label", "labelname", "category", "name", "object"),
        *("classlabel", "categoryname", "classid", "categoryid", "labelid", "cls", "target"),
        *("species", "breed", "variety", "diagnosis", "disease"),
    ),
    "split": ("split", "subset", "partition", "usage"),
    "width": ("width", "imagewidth", "imgwidth", "imagew", "imgw"),
    "height": ("height", "imageheight", "imgheight", "imageh", "imgh"),
    OBJECT_IS_CROWD: ("isgroupof",),
    OBJECT_TRUNCATED: ("istruncated",),
}
_CORNERS = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x1", "y1", "x2", "y2"),
    ("left", "top", "right", "bottom"),
    ("x0", "y0", "x1", "y1"),
    ("minx", "miny", "maxx", "maxy"),
    ("xtl", "ytl", "xbr", "ybr"),
    ("xleft", "ytop", "xright", "ybottom"),
    ("topleftx", "toplefty", "bottomrightx", "bottomrighty"),
)
_CENTERS = (
    *(("cx", "cy"), ("xcenter", "ycenter"), ("centerx", "centery"), ("xc", "yc")),
    *(("xcentre", "ycentre"), ("centrex", "centrey"), ("xctr", "yctr"), ("xmid", "ymid")),
)
_SIZES = (("w", "h"), ("width", "height"))
_OPEN_QUADS: tuple[tuple[str, ...], ...] = tuple(("x", "y", *size) for size in _SIZES)
"""Their first two numbers are a corner or the center."""
_QUADS: Mapping[tuple[str, ...], tuple[Notation, ...]] = {
    **dict.fromkeys(_CORNERS, ("xyxy",)),
    **dict.fromkeys(((*corners[:2], *size) for corners in _CORNERS for size in _SIZES), ("xywh",)),
    **dict.fromkeys(((*center, *size) for center in _CENTERS for size in _SIZES), ("cxcywh",)),
    **dict.fromkeys(_OPEN_QUADS, ("xywh", "cxcywh")),
}
_KERAS_RETINANET = ("x1", "y1", "x2", "y2")
_BOX_WORD = re.compile("^(?:boundingbox|bndbox|bbox|box|bb)|(?:boundingbox|bndbox|bbox|box)$")
_NUMBERS = re.compile("unnamed.*|index|id")
_DELIMITERS = (",", ";", "\t", "|")
_OPEN_IMAGES = frozenset(("ImageID", "LabelName", "XMin"))
_ROWS = 100
_CELL_CHARACTERS = 1000
_CELL_MARKS = re.compile(r"[\[\](){},;\s]+")


class BoxColumns(NamedTuple):
    """Which column has which role.

    line: the line of the header; 0 without a header.
    roles: the column of `image`, and those of `name`, `width`, `height` and features that exist.
    box: the four columns of a box, or the only one, with four numbers in a cell.
    names: of these columns.
    notations: what the numbers can be.
    are_boxes: whether the names leave no doubt that the numbers are boxes.
    others: the names of unused columns.
    repeated: the names that several columns have.
    has_more_corners: whether there are also x3 and y3, as in rows of polygons.
    """

    delimiter: str
    line: int
    roles: Mapping[str, int]
    box: tuple[int, ...]
    names: tuple[str, ...]
    notations: tuple[Notation, ...]
    are_boxes: bool = True
    others: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    has_more_corners: bool = False
    is_open_images: bool = False

    def numbers(self, row: Sequence[str]) -> tuple[str, ...]:
        """The numbers of a box as text: four, unless a cell is blank or invalid."""
        if len(self.box) == 1:
            return _cell_numbers(row[self.box[0]])
        return tuple(row[column].strip() for column in self.box)


def find_box_columns(
    head: bytes,
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    boxes_as: Notation | None = None,
) -> BoxColumns | None:
    """Find the columns of boxes from the start of a file; None if it is not a CSV of boxes.

    Args:
        head: the first bytes.
        image_column: name of the column of images, if it is known.
        label_column: name of the column of classes, if it is known.
        split_column: name of the column of splits, if it is known.
        boxes_as: the notation of the boxes, if it is known. Then the only four columns of numbers
            may have any names.
    """
    lines = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace").splitlines()
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    for delimiter in _DELIMITERS:
        names, *rows = _parsed(lines[first : first + _ROWS], delimiter) or [[]]
        rows = [row for row in rows if len(row) == len(names)]
        found = _named_box(names, rows)
        given = {"image": image_column, "name": label_column, "split": split_column}
        roles = _find_roles(names, found, given)
        if found is None and boxes_as is not None:
            found = _Found(_unnamed_box(names, rows, roles.values()), NOTATIONS)
        if "image" in roles and found is not None and found.box:
            used = {*roles.values(), *found.box}
            return BoxColumns(
                delimiter,
                first + 1,
                roles,
                found.box,
                tuple(names[column] for column in found.box),
                found.notations if boxes_as is None else (boxes_as,),
                found.are_boxes or boxes_as is not None,
                tuple(name for number, name in enumerate(names) if name and number not in used),
                tuple(n for n, times in Counter(filter(None, names)).items() if times > 1),
                {"x3", "y3"} <= {_BOX_WORD.sub("", plain_name(name)) for name in names},
                set(names) >= _OPEN_IMAGES,
            )
        if _is_bare(names):
            roles, notations = {"image": 0, "name": 5}, (boxes_as or NOTATIONS[0],)
            roles |= {"width": 6, "height": 7} if len(names) == 8 else {}
            return BoxColumns(delimiter, 0, roles, (1, 2, 3, 4), _KERAS_RETINANET, notations)
    return None


def has_box_names(names: Sequence[str]) -> bool:
    """Whether names of columns are those of boxes, with or without a column of images."""
    return _named_box(names, []) is not None


def plain_name(name: str) -> str:
    """The name of a column in lower case, with only letters and digits."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


class _Found(NamedTuple):
    box: tuple[int, ...]
    notations: tuple[Notation, ...]
    are_boxes: bool = True


def _named_box(names: Sequence[str], rows: Sequence[Sequence[str]]) -> _Found | None:
    """The columns whose names are those of a box, such as `x_min` or `bbox_x1`."""
    marked: dict[str, int] = {}  # names with `box` in them come first: bbox_width, width
    unmarked: dict[str, int] = {}
    for column, name in enumerate(map(plain_name, names)):
        short = _BOX_WORD.sub("", name)
        (unmarked if short == name else marked).setdefault(short, column)
    for known in (marked, unmarked, unmarked | marked):
        for quad, notations in _QUADS.items():
            if known.keys() >= set(quad):
                are_boxes = quad not in _OPEN_QUADS or known is marked
                return _Found(tuple(known[name] for name in quad), notations, are_boxes)
    for notation in ("", *NOTATIONS):
        column = marked.get(notation, -1)
        cells = [row[column] for row in rows if row[column]] if column >= 0 else []
        is_bare = column >= 0 and plain_name(names[column]) == "box"  # may be anything
        if column >= 0 and not (is_bare and not (cells and all(map(_is_box, cells)))):
            return _Found((column,), tuple(n for n in NOTATIONS if notation in ("", n)))
    return None


def _unnamed_box(
    names: Sequence[str], rows: Sequence[Sequence[str]], used: Collection[int]
) -> tuple[int, ...]:
    """The only four columns of numbers, if they are next to each other; else none."""
    columns = [
        column
        for column, name in enumerate(names)
        if column not in used and name and not _NUMBERS.fullmatch(plain_name(name))
    ]
    numeric = tuple(c for c in columns if rows and all(_is_number(row[c]) for row in rows))
    return numeric if len(numeric) == 4 and numeric[3] - numeric[0] == 3 else ()


def _find_roles(
    names: Sequence[str], found: _Found | None, given: Mapping[str, str | None]
) -> dict[str, int]:
    box = () if found is None else found.box
    plain: dict[str, int] = {}
    for column, name in enumerate(map(plain_name, names)):
        if column not in box:
            plain.setdefault(name, column)
    roles: dict[str, int] = {}
    for role, known in _ROLES.items():
        columns = [plain[text] for text in known if text in plain]
        if (chosen := given.get(role)) is not None:
            columns = [column for column, name in enumerate(names) if name == chosen]
        columns = [column for column in columns if column not in roles.values()]
        if columns:
            roles[role] = columns[0]
    return roles


def _is_bare(cells: Sequence[str]) -> bool:
    """Whether a first row is path, x1, y1, x2, y2, class, or a path and empty cells.

    As in keras-retinanet; in SKU-110K, width and height of the image follow.
    """
    if len(cells) not in (6, 8) or not has_image_name(cells[0]):
        return False
    is_box = all(map(_is_number, (*cells[1:5], *cells[6:]))) and bool(cells[5])
    return is_box or not any(cells[1:])


def _parsed(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The rows of some lines, until one that is not CSV."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(
            [cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)
        )
    return rows


def _cell_numbers(cell: str) -> tuple[str, ...]:
    """The numbers in a cell such as `[10, 20, 30, 40]` or `10 20 30 40`, as text."""
    return tuple(filter(None, _CELL_MARKS.split(cell[:_CELL_CHARACTERS])))


def _is_box(cell: str) -> bool:
    numbers = _cell_numbers(cell)
    return len(numbers) == 4 and all(map(_is_number, numbers))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
