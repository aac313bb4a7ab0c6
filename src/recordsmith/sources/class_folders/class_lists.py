"""Read the classes of images from a list, such as ImageNet's `val.txt`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from recordsmith.errors import SourceError, option
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.files.name_files import Lines
from recordsmith.stores import Location

ClassList: TypeAlias = Mapping[str, str] | Sequence[str]
"""The class of each image by its name without suffix; or the classes of images in order."""


def parse_class_list(lines: Lines, classes: Sequence[str], file: Location) -> ClassList:
    """Parse a list with the class of each image; the first line may be a heading.

    A line has the name of an image, with or without its suffix, and the name of its class or its
    number among the sorted classes, counted from 0; or only the class, for images sorted by name.
    An error if a line has no known class.
    """
    known = set(classes)
    rows = [(number, _split_line(text)) for number, text in lines]
    if rows and _class_of(rows[0][1], classes, known) is None:
        rows = rows[1:]
    by_name: dict[str, str] = {}
    in_order: list[str] = []
    for number, fields in rows:
        name = _class_of(fields, classes, known)
        if name is None:
            raise SourceError(
                f"no class in {' '.join(fields)!r:.80}; expected an image and its class",
                path=file,
                line=number,
                remedy=f"Choose another list with {option('labels')}.",
            )
        in_order.append(name)
        by_name[without_suffix(posixpath.basename(fields[0]))] = name
    return by_name if any(len(fields) > 1 for _, fields in rows) else in_order


def _split_line(text: str) -> list[str]:
    """The fields of a line: separated by tabs, else by commas, else by spaces."""
    separator = next((mark for mark in "\t," if mark in text), None)
    return [field.strip() for field in text.split(separator)]


def _class_of(fields: Sequence[str], classes: Sequence[str], known: Iterable[str]) -> str | None:
    """The class on a line; None if there is no known one.

    Numbers alone on their lines are not classes: ImageNet's ground truth has numbers of its own.
    """
    text = fields[min(1, len(fields) - 1)]
    for name in (text, text.partition(" ")[0]):  # LOC_val_solution.csv has boxes after the class
        if name in known:
            return name
    is_number = len(fields) > 1 and text.isascii() and text.isdigit() and len(text) < 7
    return classes[int(text)] if is_number and int(text) < len(classes) else None
