"""Detect tables, with the images that their rows name and the column of classes.

A column is the image column if its first values are files that are there, with or without suffix.
"""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from recordsmith.dataset.splits import has_split_word
from recordsmith.sources.files.folders import is_file
from recordsmith.sources.files.foreign_paths import is_absolute, leaves_folder
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.problems import join_names
from recordsmith.sources.survey import Reading, Strength, Survey
from recordsmith.sources.tables.table import METADATA_COLUMNS, TABLE_SUFFIXES
from recordsmith.sources.tables.table_head import TableHead, read_table_head

_MOST_TABLES = 50
_MOST_FOLDERS = 100
_MOST_COLUMNS = 50
_PROBED = 24  # values of a column that are looked up
_FIRST = 7
_LABEL_NAMES = frozenset(
    (
        *("label", "labels", "class", "classes", "classname", "classlabel", "classid"),
        *("category", "categoryname", "categoryid", "target", "species", "breed", "variety"),
        *("diagnosis", "disease"),
    )
)
_BOX_NAMES = ({"xmin", "xmax"}, {"x1", "x2", "y1", "y2"}, {"bbox"}, {"xcenter", "ycenter"})
_FEW_INTEGERS = 20
_ID = re.compile("^id|id$|image|img|file|name|path|picture|photo|number|index|key|case")


class _Found(NamedTuple):
    """The images of a table: the column, their folder and how many of the probed values hit."""

    column: str
    folder: str
    hits: int


def find_readings(survey: Survey) -> Iterator[Reading]:
    """Yield how a folder can be read as a table."""
    if found := _metadata(survey):
        yield found
        return
    tables = list(itertools.islice(survey.files(*_endings(), depth=2), _MOST_TABLES))
    heads = [head for path in tables if (head := read_table_head(survey, path)) is not None]
    with_images: dict[TableHead, _Found] = {}
    for head in heads:
        if _has_boxes(head):
            return  # a table of boxes, which has rows for each box
        if images := _find_images(survey, head):
            with_images[head] = images
    if with_images:
        yield from _image_readings(heads, with_images, tables)
    elif not sum(folder.image_count for folder in survey.folders.values()):
        yield from _plain_readings(heads, tables)


def _endings() -> tuple[str, ...]:
    return (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))


def _metadata(survey: Survey) -> Reading | None:
    """The reading of a folder of images with metadata, as in Hugging Face and Roboflow."""
    for folders in ([""], survey.tops):
        paths = [
            posixpath.join(folder, name)
            for folder in folders
            for name in METADATA_COLUMNS
            if name in survey.folders[folder].names
        ]
        heads = [head for path in paths if (head := read_table_head(survey, path)) is not None]
        if heads and all(METADATA_COLUMNS[head.name] in head.columns for head in heads):
            column = METADATA_COLUMNS[heads[0].name]
            if any(_has_boxes(head) for head in heads):
                return None
            what = f"rows of {join_names(_paths(heads))} with images (column {column})"
            return Reading("table", what, Strength.MARKED, noun="rows")
    return None


# -- images ---------------------------------------------------------------------------------------


def _image_readings(
    heads: Sequence[TableHead],
    with_images: dict[TableHead, _Found],
    tables: Sequence[str],
) -> Iterator[Reading]:
    """Yield the readings of tables whose rows name images: one, if all have the same columns."""
    labels = {head: _label_column(head, with_images[head].column) for head in with_images}
    labelled = [head for head in with_images if labels[head] is not None]
    chosen = labelled or list(with_images)
    first = chosen[0]
    alike = [
        head
        for head in chosen
        if head.columns.keys() == first.columns.keys()
        and with_images[head][:2] == with_images[first][:2]
        and head.folder == first.folder
    ]
    is_whole = (
        len(alike) == len(chosen)
        and first.folder in ("", "data")
        and {posixpath.dirname(path) for path in tables if path not in _paths(chosen)}.isdisjoint(
            {first.folder}
        )
        and len({os.path.splitext(head.name)[1] for head in alike}) == 1
        and (len(alike) == 1 or all(has_split_word(head.name) for head in alike))
    )
    for group in [alike] if is_whole else [[head] for head in _preferred(chosen)]:
        head = group[0]
        images, label = with_images[head], labels[head]
        options: dict[str, Any] = {"image_column": images.column}
        if not is_whole:
            options = {"table": head.path} | options
        if images.folder != head.folder:
            options["images"] = images.folder
        if label is not None:
            options["label_column"] = label
        where = f" in {images.folder}/" if images.folder else ""
        what = (
            f"rows of {join_names(_paths(group))} with images{where} (column {images.column})"
            + (f", classes in column {label}" if label is not None else "")
        )
        others = [path for path in tables if path not in _paths(group)]
        left_out = tuple(
            f"{path} ({_why_left_out(path, heads, with_images, labels)})" for path in others
        )
        yield Reading("table", what, Strength.ANNOTATED, options, "rows", left_out)


def _paths(heads: Iterable[TableHead]) -> list[str]:
    return [head.path for head in heads]


def _preferred(heads: Sequence[TableHead]) -> list[TableHead]:
    """The table for training, if one has that name and all others are for something else."""
    train = [head for head in heads if head.name.lower().startswith("train")]
    others = [head for head in heads if head not in train]
    if len(train) == 1 and all(has_split_word(head.name) for head in others):
        return train
    return list(heads)


def _why_left_out(
    path: str,
    heads: Sequence[TableHead],
    with_images: dict[TableHead, _Found],
    labels: dict[TableHead, str | None],
) -> str:
    head = next((head for head in heads if head.path == path), None)
    if head is None:
        return "not a table with column names"
    if head not in with_images:
        return "no column of images"
    return "no classes" if labels[head] is None else "other columns or images"


def _find_images(survey: Survey, head: TableHead) -> _Found | None:
    """The column of a table whose values are images that are there."""
    found = []
    for column, values in itertools.islice(head.columns.items(), _MOST_COLUMNS):
        distinct = list(dict.fromkeys(values))
        if not distinct or any(len(value) > 1000 or "\0" in value for value in distinct[:_PROBED]):
            continue
        if _are_integers(distinct) and not _ID.search(column.lower()):
            continue  # such as epochs, which may be names of images by chance
        step = max(1, len(distinct) // _PROBED)
        probed = distinct[::step][:_PROBED]
        for folder in _near_folders(survey, head):
            hits = _count_images(survey, folder, probed)
            if 2 * hits >= len(probed):
                found.append((len(distinct), _affinity(folder, head.name), column, folder, hits))
    if not found:
        return None
    most = max(each[0] for each in found)
    _, _, column, folder, hits = max(
        (each for each in found if each[0] == most), key=lambda each: (each[4], each[1])
    )
    return _Found(column, folder, hits)


def _near_folders(survey: Survey, head: TableHead) -> Iterator[str]:
    """The folder of a table, folders in it, and folders next to it."""
    above = [head.folder]
    if head.folder:
        above.append(posixpath.dirname(head.folder))
    found: dict[str, None] = {head.folder: None}
    for folder in above:
        for name in survey.inside(folder):
            path = posixpath.join(folder, name)
            found[path] = None
            found |= dict.fromkeys(posixpath.join(path, inner) for inner in survey.inside(path))
    return itertools.islice(found, _MOST_FOLDERS)


def _count_images(survey: Survey, folder: str, values: Sequence[str]) -> int:
    """How many of these values are names of images relative to a folder; 0 if not the first."""
    hits = 0
    for number, value in enumerate(values):
        name = value.replace("\\", "/")
        if not is_absolute(name) and not leaves_folder(name):
            hits += _is_image(survey, posixpath.normpath(posixpath.join(folder, name)))
        if number == _FIRST and not hits:
            return 0
    return hits


def _is_image(survey: Survey, path: str) -> bool:
    """Whether an image is at a path, or at a path with a suffix that images in its folder have."""
    folder, _, name = path.rpartition("/")
    known = survey.folders.get(folder)
    if known is None or not known.image_count:
        return False
    suffixes = {os.path.splitext(each)[1] for each in known.names if has_image_name(each)}
    names = [name] if has_image_name(name) else [name + suffix for suffix in sorted(suffixes)]
    if any(each in known.names for each in names):
        return True
    if len(known.names) == known.file_count:
        return False
    return any(is_file(survey.root / posixpath.join(folder, each)) for each in names)


def _affinity(folder: str, table: str) -> int:
    """How much the name of a folder is like that of a table: train_images and train.csv."""
    word = re.match(r"[a-z]*", table.lower())
    last = posixpath.basename(folder).lower()
    return bool(word and word[0] and last.startswith(word[0]))


# -- classes --------------------------------------------------------------------------------------


def _label_column(head: TableHead, image_column: str) -> str | None:
    """The column of classes, if there is one clear one."""
    others = [name for name in head.columns if name != image_column]
    named = [
        name
        for name in others
        if _plain(name) in _LABEL_NAMES and _are_classes(head, name, is_named=True)
    ]
    if len(named) > 1:  # such as class_id and class_name: names, if they are the same classes
        texts = [name for name in named if not _are_integers(head.columns[name])]
        if len(texts) == 1 and all(_correspond(head, texts[0], name) for name in named):
            return texts[0]
        return None
    if named:
        return named[0]
    if len(others) == 1 and _are_classes(head, others[0], is_named=False):
        return others[0]
    return None


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


def _correspond(head: TableHead, one: str, other: str) -> bool:
    left, right = head.columns[one], head.columns[other]
    pairs = set(zip(left, right, strict=False))
    return len(left) == len(right) and len(pairs) == len(set(left)) == len(set(right))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _has_boxes(head: TableHead) -> bool:
    names = set(map(_plain, head.columns))
    return any(each <= names for each in _BOX_NAMES)


# -- tables without images ------------------------------------------------------------------------


def _plain_readings(heads: Sequence[TableHead], tables: Sequence[str]) -> Iterator[Reading]:
    """Yield the readings of tables whose rows name no images: all of a folder, or each."""
    top = [head for head in heads if head.folder == ""]
    top = top or [head for head in heads if head.folder == "data"]
    if not top:
        return
    others = [path for path in tables if path not in _paths(top)]
    is_one = len({os.path.splitext(head.name)[1] for head in top}) == 1
    if is_one and len({frozenset(head.columns) for head in top}) == 1:
        what = f"rows of {join_names(_paths(top))}"
        left_out = tuple(f"{path} (in another folder)" for path in others)
        yield Reading("table", what, Strength.ANNOTATED, {}, "rows", left_out)
        return
    for head in _preferred(top):
        left_out = tuple(f"{path} (other columns)" for path in tables if path != head.path)
        options = {"table": head.path}
        what = f"rows of {head.path}"
        yield Reading("table", what, Strength.ANNOTATED, options, "rows", left_out)
