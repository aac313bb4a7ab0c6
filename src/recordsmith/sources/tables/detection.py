"""Detect tables, with the images that their rows name and the column of classes.

A column is the image column if its first values are files that are there, with or without suffix.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import os
import posixpath
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.dataset import detect_foreign_folder, has_split_word, is_split_name
from recordsmith.format.wire.compression import GZIP_MAGIC
from recordsmith.image import find_image_header
from recordsmith.sources.files.account import Reason
from recordsmith.sources.files.file_tree import MAX_TABLES, FileTree
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.known_names import ARROW_SUFFIXES, TABLE_SUFFIXES, is_submission
from recordsmith.sources.files.paths import is_absolute, leaves_folder, with_slashes
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.problems import join_names
from recordsmith.sources.tables.arrow_rows import ArrowRows
from recordsmith.sources.tables.box_columns import (
    NOTATIONS,
    find_box_columns,
    has_box_names,
    plain_name,
)
from recordsmith.sources.tables.csv_rows import column_names, guess_delimiter
from recordsmith.sources.tables.label_lists import recognise_label_list
from recordsmith.sources.tables.named_images import ImageFinder
from recordsmith.sources.tables.table import METADATA_COLUMNS
from recordsmith.stores import Location
from recordsmith.support.errors import RecordsmithError, option
from recordsmith.support.words import common_prefix

_ROWS = 300
_HEAD_BYTES = 1 << 24
_INFLATED_BYTES = 1 << 18
_FOLDERS_NEAR = 100
_MAX_FOLDERS = 100
_MAX_COLUMNS = 50
_MAX_READ_COLUMNS = 10_000
_PROBED = 24  # values of a column that are looked up
_FIRST = 7
_LABEL_NAMES = frozenset(
    (
        *("label", "labels", "class", "classes", "classname", "classlabel", "classid"),
        *("category", "categoryname", "categoryid", "target", "species", "breed", "variety"),
        *("diagnosis", "disease"),
    )
)
_ENDINGS = (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))
_PLAIN_LABEL_NAMES = frozenset(("label", "class", "target", "y"))
"""Columns of classes in tables without images; in `target` and `y`, classes repeat."""
_NO_CLASSES = frozenset(
    (
        *("split", "partition", "fold", "kfold", "subset", "set", "usage"),
        *("caption", "captions", "text"),
    )
)
_FEW_INTEGERS = 20
_AS_TABLE = f"pass {option('format', 'table')} to read a record for each row."
_ID = re.compile("^id|id$|image|img|file|name|path|picture|photo|case")


class _ImageColumn(NamedTuple):
    """The images of a table: the column, and their folder.

    spread: if not empty, the folders in it in which the images are.
    """

    column: str
    folder: str
    spread: tuple[str, ...] = ()


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    foreign = detect_foreign_folder(tree.root, tree.folders[""].names)
    if foreign is not None and tree.inside(""):
        yield LayoutCandidate(
            "table",
            foreign[0],
            Confidence.MARKED,
            noun="rows",
            problem="each split is a folder of its own",
            remedy=foreign[1],
            needs=("table",),
        )
        return
    if metadata := _metadata(tree):
        yield metadata
        return
    tables = list(itertools.islice(tree.files(*_ENDINGS, depth=2), MAX_TABLES))
    heads = [
        head
        for path in tables
        if not (is_submission(path) or path in tree.foreign)
        and (head := read_table_head(tree, path)) is not None
    ]
    lookup = _Lookup(tree)
    found = {head: _find_images(tree, lookup, head) for head in heads}
    with_images = {head: images for head, images in found.items() if images is not None}
    boxes = list(_box_readings(lookup, with_images))
    yield from boxes
    if with_images:
        has_boxes = bool(boxes) or any(_are_read_as_boxes(tree, head) for head in heads)
        for reading in _image_readings(heads, with_images, tables):
            confidence = Confidence.POSSIBLE if has_boxes else reading.confidence
            yield dataclasses.replace(reading, confidence=confidence)
    elif not sum(folder.image_count for folder in tree.folders.values()):
        yield from _plain_readings(heads, tables)


def of_file(reading: LayoutCandidate, table: Location) -> LayoutCandidate:
    """The reading of a single table with its column of classes.

    It has a problem if one of its columns names images near it.
    """
    tree = FileTree(table.parent, _FOLDERS_NEAR)
    head = read_table_head(tree, table.name)
    if head is None:
        return reading
    images = _find_images(tree, _Lookup(tree), head)
    if images is None:
        return _with_classes(reading, head)
    place = images.folder or "."
    return dataclasses.replace(
        reading,
        problem=f"the column {images.column} names images in {place}/, which would be left out",
        remedy=f"Pack the folder {table.parent} to read them, or pass {option('format', 'table')} "
        "to pack the rows alone.",
        needs=("image_column",),
    )


def _metadata(tree: FileTree) -> LayoutCandidate | None:
    """The reading of a folder of images with metadata, as in Hugging Face and Roboflow."""
    for folders in ([""], tree.inside("")):
        paths = [
            posixpath.join(folder, name)
            for folder in folders
            for name in METADATA_COLUMNS
            if folder in tree.folders and name in tree.folders[folder].names
        ]
        heads = [head for path in paths if (head := read_table_head(tree, path)) is not None]
        if heads and all(METADATA_COLUMNS[head.name] in head.columns for head in heads):
            column = METADATA_COLUMNS[heads[0].name]
            if any(_are_read_as_boxes(tree, h) or has_box_names([*h.columns]) for h in heads):
                return None
            what = f"rows of {join_names(_paths(heads))} with images (column {column})"
            reading = LayoutCandidate("table", what, Confidence.MARKED, noun="rows")
            return reading if column == "filename" else _with_columns(reading, heads, column)
    return None


def _with_columns(
    reading: LayoutCandidate, heads: Sequence[TableHead], image_column: str
) -> LayoutCandidate:
    """The reading of rows with images, with their columns of classes and splits."""
    label, split = _label_column(heads[0], image_column), _split_column(heads[0])
    found = {"label_column": ("classes", label), "split_column": ("splits", split)}
    if reading.confidence == Confidence.MARKED and heads[0].folder:
        del found["split_column"]  # the folders are splits
    columns = {
        key: (what, name)
        for key, (what, name) in found.items()
        if all(name in head.columns for head in heads)
    }
    hints = {} if label is not None else _list_hints(heads[0])
    return dataclasses.replace(
        reading,
        hints=hints,
        options={**reading.options, **{key: name for key, (_, name) in columns.items()}},
        clauses={key: f"{what} in column {name}" for key, (what, name) in columns.items()},
    )


# -- the first rows --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class TableHead:
    """The first rows of a table.

    path: relative to the root.
    columns: the texts in each column, without missing ones; a column of anything else is empty.
    row_count: of these rows.
    """

    path: str
    columns: dict[str, list[str]]
    row_count: int

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def read_table_head(tree: FileTree, path: str) -> TableHead | None:
    name = path.lower().removesuffix(".gz")
    is_arrow = name.endswith(ARROW_SUFFIXES)
    columns: Mapping[str, Sequence[Any]]
    try:
        if is_arrow:
            columns = _arrow(tree.root / path)
        elif name.endswith((".jsonl", ".ndjson")):
            columns = _json(_first_lines(tree.head(path)))
        else:
            columns = _csv(_first_lines(tree.head(path)), name)
    except (csv.Error, zlib.error, ValueError, RecursionError, RecordsmithError):
        return None
    if not columns or (len(columns) > _MAX_READ_COLUMNS and not is_arrow):
        return None
    return TableHead(
        path,
        {name: [text for text in map(_text, values) if text] for name, values in columns.items()},
        max(map(len, columns.values())),
    )


def _first_lines(head: bytes) -> list[str]:
    if head.startswith(GZIP_MAGIC):
        head = zlib.decompressobj(31).decompress(head, _INFLATED_BYTES)
    lines = head.decode("utf-8-sig", "replace").splitlines(keepends=True)
    if lines and len(head) >= 1 << 16:
        lines.pop()  # it may be cut
    return lines


def _csv(lines: Sequence[str], name: str) -> dict[str, Sequence[Any]]:
    if not lines:
        return {}
    names, *rows = list(csv.reader(lines, delimiter=guess_delimiter(name, lines[0])))
    rows = [row for row in rows if len(row) == len(names)]
    return {name: [row[n] for row in rows] for n, name in enumerate(column_names(names))}


def _json(lines: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    columns: dict[str, list[Any]] = {}
    for line in lines:
        row = json.loads(line) if not line.isspace() else {}
        if not isinstance(row, dict):
            return {}
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return columns


def _arrow(path: Location) -> Mapping[str, Sequence[Any]]:
    rows = ArrowRows([path], None, {}, required={}, batch_bytes=_HEAD_BYTES)
    columns: dict[str, list[Any]] = {name: [] for name in rows.kinds if name != rows.image}
    row_count = size_bytes = 0
    for batch in rows.batches(0):
        for name in columns:
            columns[name] += batch.values(name)[: _ROWS - row_count]
        row_count += len(batch)
        size_bytes += batch.size_bytes
        if row_count >= _ROWS or size_bytes >= _HEAD_BYTES:
            break
    return columns


def _text(value: Any) -> str:
    """A text or an integer as text; empty for anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.strip()
    return str(value) if type(value) is int else ""


def _image_readings(
    heads: Sequence[TableHead], with_images: dict[TableHead, _ImageColumn], tables: Sequence[str]
) -> Iterator[LayoutCandidate]:
    """Yield the readings of tables whose rows name images: one, if all have the same columns."""
    labels = {head: _label_column(head, with_images[head].column) for head in with_images}
    labelled = [head for head in with_images if labels[head] is not None]
    groups = _groups(labelled or list(with_images), with_images)
    train = [group for group in groups if group[0].name.lower().startswith("train")]
    tests = [group for group in groups if group not in train]
    if not labelled and len(train) == 1 and all(has_split_word(g[0].name) for g in tests):
        groups = train
    for group in groups:
        head = group[0]
        images, label = with_images[head], labels[head]
        others = [path for path in tables if path not in _paths(group)]
        options: dict[str, Any] = {"image_column": images.column}
        if head.folder not in ("", "data") or {"", head.folder} & {*map(posixpath.dirname, others)}:
            options = {"table": ",".join(_paths(group))} | options
        if images.folder != head.folder or images.spread:
            options["images"] = images.folder or "."
        places = images.spread or ([images.folder] if images.folder else [])
        where = f" in {join_names(f'{place}/' for place in places)}" if places else ""
        what = f"rows of {join_names(_paths(group))} with images{where} (column {images.column})"
        left_out = {path: _why_left_out(path, heads, with_images, labelled) for path in others}
        reading = LayoutCandidate(
            "table", what, Confidence.ANNOTATED, options, "rows", left_out=left_out
        )
        reading = _with_columns(reading, group, images.column)
        if repeated := _with_several_classes(head, images.column, label):
            what = f"several rows of {repeated} have different classes"
            remedy = (
                f"Join the classes of an image in one row, and pass {option('label_separator')}; "
                f"convert rows of regions to masks or COCO; or {_AS_TABLE}"
            )
            reading = dataclasses.replace(reading, problem=what, remedy=remedy, needs=("format",))
        yield reading


def _with_several_classes(head: TableHead, image_column: str, label: str | None) -> str | None:
    """The first image whose rows have different classes; None if each image has one class."""
    names = head.columns[image_column]
    classes = [] if label is None else head.columns[label]
    if len(names) != len(classes):
        return None
    known: dict[str, str] = {}
    pairs = zip(names, classes, strict=True)
    return next((name for name, text in pairs if known.setdefault(name, text) != text), None)


def _paths(heads: Iterable[TableHead]) -> list[str]:
    return [head.path for head in heads]


def _groups(
    heads: Iterable[TableHead], with_images: Mapping[TableHead, _ImageColumn]
) -> list[list[TableHead]]:
    """Tables of splits, which have the same columns and images, and each other table alone."""
    groups: dict[Any, list[TableHead]] = {}
    for head in heads:
        suffix = os.path.splitext(head.name)[1]
        alike = with_images[head], head.folder, suffix, frozenset(head.columns)
        groups.setdefault(alike if has_split_word(head.name) else head, []).append(head)
    return list(groups.values())


def _why_left_out(
    path: str,
    heads: Sequence[TableHead],
    with_images: Collection[TableHead],
    labelled: Collection[TableHead],
) -> tuple[Reason, str]:
    if is_submission(path):
        return Reason.SUBMISSION, "as a submission"
    head = next((head for head in heads if head.path == path), None)
    if head is None:
        return Reason.OTHER_FILE, "without column names"
    if head in with_images and head in labelled:
        return Reason.NAMES_IMAGES, "with other columns or images"
    if head in with_images:
        return Reason.OTHER_FILE, "without classes"
    has_names = any(has_image_name(value) for values in head.columns.values() for value in values)
    return Reason.OTHER_FILE, (
        "whose images are mostly missing" if has_names else "without a column of images"
    )


def _find_images(tree: FileTree, lookup: _Lookup, head: TableHead) -> _ImageColumn | None:
    """The column of a table whose values are images that are there."""
    best: tuple[Any, ...] = ()
    chosen: _ImageColumn | None = None
    near = list(_near_folders(tree, head))
    for column, values in itertools.islice(head.columns.items(), _MAX_COLUMNS):
        distinct = list(dict.fromkeys(values))
        if not distinct or any(len(value) > 1000 or "\0" in value for value in distinct[:_PROBED]):
            continue
        if _are_integers(distinct) and not _ID.search(column.lower()):
            continue  # such as epochs, which may be names of images by chance
        step = max(1, len(distinct) // _PROBED)
        probed = distinct[::step][:_PROBED]
        probed = [*probed[::3], *probed[1::3], *probed[2::3]]  # the first ones are from all parts
        hits = {folder: lookup.hits(folder, probed) for folder in near}
        candidates = [(len(names), _ImageColumn(column, path)) for path, names in hits.items()]
        for number, images in [*candidates, *_spread_images(column, hits)]:
            name = posixpath.basename(images.folder).lower()
            affinity = len(common_prefix([name, head.name.lower()]))
            rank = (len(distinct), number, not images.spread, affinity, name.startswith("train"))
            if 2 * number >= len(probed) and rank > best:
                best, chosen = rank, images
    return chosen


def _spread_images(column: str, hits: Mapping[str, set[str]]) -> Iterator[tuple[int, _ImageColumn]]:
    """Images that are in several folders of one folder, each in one of them."""
    for above in {posixpath.dirname(folder) for folder in hits if folder}:
        inside = {
            folder: names
            for folder, names in hits.items()
            if folder and names and posixpath.dirname(folder) == above
        }
        counts = Counter(value for names in inside.values() for value in names)
        if len(inside) > 1 and set(counts.values()) == {1}:
            yield len(counts), _ImageColumn(column, above, tuple(inside))


def _near_folders(tree: FileTree, head: TableHead) -> Iterator[str]:
    """The folder of a table, folders in it, and folders next to it."""
    above = [head.folder]
    if head.folder:
        above.append(posixpath.dirname(head.folder))
    near: dict[str, None] = {head.folder: None}
    for folder in above:
        for name in tree.inside(folder):
            path = posixpath.join(folder, name)
            near[path] = None
            near |= dict.fromkeys(posixpath.join(path, inner) for inner in tree.inside(path))
    return itertools.islice(near, _MAX_FOLDERS)


class _Lookup:
    """Looks up names of images in the folders of a tree, as the source does."""

    def __init__(self, tree: FileTree) -> None:
        self.tree = tree
        self._finder = ImageFinder(
            lambda path: (
                tree.entries(tree.root / path if path else tree.root)
                if path in tree.folders
                else ()
            )
        )

    def hits(self, folder: str, values: Sequence[str]) -> set[str]:
        """Which values are names of images relative to a folder; none if not the first."""
        hits = set()
        for number, value in enumerate(values):
            name = with_slashes(value)
            if not is_absolute(name) and not leaves_folder(name):
                file = self._finder.find(posixpath.normpath(posixpath.join(folder, name)))
                if file is not None and has_image_name(file[0]):
                    hits.add(value)
            if number == _FIRST and not hits:
                break
        return hits

    def image_size(self, images: _ImageColumn, value: str) -> tuple[float, float]:
        """Width and height of an image; 1 without one."""
        for folder in (images.folder, *images.spread):
            file = self._finder.find(
                posixpath.normpath(posixpath.join(folder, with_slashes(value)))
            )
            header = None if file is None else find_image_header(self.tree.head(file[0]))
            if header is not None:
                return header.width, header.height
        return 1, 1


def _label_column(head: TableHead, image_column: str) -> str | None:
    """The column of classes, if there is one clear one."""
    split = _split_column(head)
    others = [
        name
        for name in head.columns
        if name not in (image_column, split) and plain_name(name) not in _NO_CLASSES
    ]
    named = [
        name
        for name in others
        if plain_name(name) in _LABEL_NAMES and _are_classes(head, name, is_named=True)
    ]
    if named:
        return named[0] if len(named) == 1 else None
    if len(others) == 1 and _are_classes(head, others[0], is_named=False):
        return others[0]
    return None


def _list_hints(head: TableHead) -> dict[str, str]:
    """What to pass if a column with the name of classes has lists of them."""
    for name, values in head.columns.items():
        if plain_name(name) in (*_LABEL_NAMES, "tags") and _are_several({*values}):
            signs = (sign for value in values for sign in "[|;, " if sign in value)
            sign, ways = next(signs), option("label_column", name)
            ways += "" if sign == "[" else f" {option('label_separator', sign)}"
            return {"label_column": f"if column {name} has lists of classes, pass {ways}"}
    return {}


def _split_column(head: TableHead) -> str | None:
    columns = [
        name
        for name, values in head.columns.items()
        if len(set(values)) > 1 and all(map(is_split_name, set(values)))
    ]
    return columns[0] if len(columns) == 1 else None


def _are_classes(head: TableHead, name: str, *, is_named: bool) -> bool:
    values = head.columns[name]
    distinct = set(values)
    if not values or any(re.fullmatch(r"-?\d*\.\d+(e-?\d+)?", value) for value in values):
        return False
    if is_named:
        return not _are_several(distinct)
    if _are_integers(values) and len(distinct) > _FEW_INTEGERS:
        return False
    return len(distinct) < 0.9 * len(values) and not _are_several(distinct)


def _are_several(distinct: set[str]) -> bool:
    """Whether values are lists of labels: fewer words than different values."""
    words = {word for value in distinct for word in re.split(r"[\s,;|]+", value) if word}
    has_lists = any(re.search(r"\S[\s,;|]+\S", value) for value in distinct)
    return has_lists and len(words) < len(distinct)


def _are_integers(values: Sequence[str]) -> bool:
    return all(re.fullmatch(r"-?\d+", value) for value in values)


def _box_readings(
    lookup: _Lookup, with_images: Mapping[TableHead, _ImageColumn]
) -> Iterator[LayoutCandidate]:
    """Yield the readings of tables of boxes whose names alone do not show that they are."""
    tree = lookup.tree
    for column in dict.fromkeys(images.column for images in with_images.values()):
        named: list[str] = []
        for head, images in with_images.items():
            if images.column != column or _are_read_as_boxes(tree, head):
                continue
            content = tree.head(head.path) if _is_text(head) else b""
            if find_box_columns(content, image_column=column) is not None:
                named.append(head.path)
            elif has_box_names([*head.columns]):
                problem = "boxes are only read from CSV and TSV files"
                remedy = f"Convert it to CSV, or {_AS_TABLE}"
                yield _box_reading(head.path, column, problem, remedy)
            elif numbers := _numbers_in_images(lookup, head, images, content):
                ways = (option("boxes_as", notation) for notation in NOTATIONS)
                columns = join_names(numbers, shown=4)
                problem = f"images are in several rows, and the columns {columns} may be boxes"
                remedy = f"Pass {join_names(ways, 'or')} to read boxes, or {_AS_TABLE}"
                yield _box_reading(head.path, column, problem, remedy, ("boxes_as",))
        if named:
            yield _box_reading(join_names(named), column)


def _box_reading(
    paths: str, column: str, problem: str = "", remedy: str = "", needs: tuple[str, ...] = ()
) -> LayoutCandidate:
    return LayoutCandidate(
        "csv-boxes",
        f"images and boxes of {paths} (a row for each box)",
        Confidence.ANNOTATED,
        {"image_column": column},
        problem=problem,
        remedy=remedy,
        needs=needs,
    )


def _are_read_as_boxes(tree: FileTree, head: TableHead) -> bool:
    """Whether a file has everything that the source of boxes, or of lists of classes, needs."""
    content = tree.head(head.path) if _is_text(head) else b""
    return find_box_columns(content) is not None or recognise_label_list(content) is not None


def _is_text(head: TableHead) -> bool:
    return head.name.lower().endswith((".csv", ".tsv"))


def _numbers_in_images(
    lookup: _Lookup, head: TableHead, images: _ImageColumn, content: bytes
) -> tuple[str, ...]:
    """The only four columns of numbers, if they are in images that have several rows; else none."""
    values = head.columns[images.column]
    if len(set(values)) == len(values) or len(values) != head.row_count:
        return ()
    found = find_box_columns(content, image_column=images.column, boxes_as="xyxy")
    if found is None:
        return ()
    rows = zip(*(head.columns[name] for name in found.names), strict=False)
    for value, row in zip(values[:_PROBED], rows, strict=False):
        size = lookup.image_size(images, value)
        if not all(0 <= float(text) <= side for text, side in zip(row, size * 2, strict=True)):
            return ()
    return found.names


# -- tables without images ------------------------------------------------------------------------


def _plain_readings(heads: Sequence[TableHead], tables: Sequence[str]) -> Iterator[LayoutCandidate]:
    """Yield the readings of tables whose rows name no images: all of a folder, or each."""
    top = [head for head in heads if head.folder == ""]
    top = top or [head for head in heads if head.folder == "data"]
    formats = {os.path.splitext(head.name)[1] for head in top}
    are_alike = len(formats) == 1 and len({frozenset(head.columns) for head in top}) == 1
    for group in [top] if are_alike else [[head] for head in top]:
        paths = _paths(group)
        why = Reason.OTHER_READING, "in another folder" if are_alike else "with other columns"
        reading = LayoutCandidate(
            "table",
            f"rows of {join_names(paths)}",
            Confidence.ANNOTATED,
            {} if are_alike else {"table": paths[0]},
            "rows",
            left_out={path: why for path in tables if path not in paths},
        )
        yield _with_classes(reading, group[0])


def _with_classes(reading: LayoutCandidate, head: TableHead) -> LayoutCandidate:
    """The reading of rows without images, with the column of classes if one has such a name."""
    columns = [
        name
        for name, values in head.columns.items()
        if (plain := plain_name(name)) in _PLAIN_LABEL_NAMES
        and len(values) == head.row_count
        and _are_classes(head, name, is_named=plain in ("class", "label"))
    ]
    if len(columns) != 1:
        return reading
    return dataclasses.replace(
        reading,
        clauses={"label_column": f"classes in column {columns[0]}"},
        options={**reading.options, "label_column": columns[0]},
    )
