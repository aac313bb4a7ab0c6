"""Read the classes of images from a list, such as ImageNet's `val.txt`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

from recordsmith.errors import SourceError, option
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.files.name_files import read_lines
from recordsmith.stores import Location


def read_class_list(file: Location, classes: Sequence[str]) -> Mapping[str, str] | Sequence[str]:
    """Read the class of each image.

    A line has the name of an image, with or without its suffix, and the name of its class or its
    number among the sorted classes, counted from 0; or only the class, for images sorted by name.

    Returns:
        The class of each image by its name without suffix; or the classes in order.

    Raises:
        SourceError: a line has no known class.
        FileAccessError: the file cannot be read.
    """
    lines = [(number, split_line(text)) for number, text in read_lines(file)]
    known = set(classes)
    if lines and class_of(lines[0][1], classes, known) is None:  # a heading
        lines = lines[1:]
    has_names = any(len(fields) > 1 for _, fields in lines)
    found: dict[str, str] = {}
    in_order: list[str] = []
    for number, fields in lines:
        name = class_of(fields, classes, known)
        if name is None:
            raise SourceError(
                f"no class in {' '.join(fields)!r:.80}; expected an image and its class",
                path=file,
                line=number,
                remedy=f"Choose another list with {option('labels')}.",
            )
        if has_names:
            found[without_suffix(posixpath.basename(fields[0]))] = name
        else:
            in_order.append(name)
    return found if has_names else in_order


def split_line(text: str) -> list[str]:
    """The fields of a line: separated by tabs, else by commas and spaces."""
    if "\t" in text:
        return [field.strip() for field in text.split("\t")]
    if "," in text:
        return [field.strip() for field in text.split(",")]
    return text.split()


def class_of(fields: Sequence[str], classes: Sequence[str], known: Iterable[str]) -> str | None:
    """The class on a line; None if there is no known one.

    Numbers alone on their lines are not classes: ImageNet's ground truth has numbers of its own.
    """
    if not fields:
        return None
    text = fields[min(1, len(fields) - 1)]
    for name in (text, text.partition(" ")[0]):  # LOC_val_solution.csv has boxes after the class
        if name in known:
            return name
    is_number = len(fields) > 1 and text.isascii() and text.isdigit() and len(text) < 7
    return classes[int(text)] if is_number and int(text) < len(classes) else None
