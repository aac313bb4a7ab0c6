"""Pairs of images and masks by list: a file with one pair per line, or paths from the caller.

A path in a list never leads out of the folder that is read: of one that would (absolute, from
Windows, with `..`), the longest ending that names a file there is used, with a notice.
"""

from __future__ import annotations

import csv
import os
import posixpath
from collections.abc import Sequence
from typing import NamedTuple

from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import (
    inside,
    is_absolute,
    is_file,
    leaves_folder,
    path_endings,
    with_slashes,
)
from recordsmith.sources.pairs.pair_samples import PairFile, PairSamples
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.stores import Location
from recordsmith.words import count


class Line(NamedTuple):
    """One line of a list: its number, counted from 1, and its fields."""

    number: int
    fields: tuple[str, ...]


def read_list(path: Location) -> list[Line]:
    """Read the lines of a list, without empty lines and comments (#).

    Fields are separated by tabs if the line has any, else by commas, else by spaces. A first line
    without an image name is a heading if the second line has one.
    """
    lines = [
        Line(number, _fields(line)) for number, line in read_lines(path) if not line.startswith("#")
    ]
    if len(lines) > 1 and not _names_image(lines[0]) and _names_image(lines[1]):
        return lines[1:]
    return lines


def read_pairs(path: Location, root: Location) -> PairSamples:
    """Read the pairs of a list; a wrong line becomes a sample that cannot be read.

    An error if no line names a pair of files.
    """
    folder = path.parent.relative_to(root)
    collected = PairSamples(root, root)
    moved: list[str] = []
    repeated: list[str] = []
    seen: dict[str, tuple[str, int]] = {}
    for line in read_list(path):
        place = f"{path}, line {line.number}"
        files = [_find_inside(name, root, folder) for name in line.fields]
        problem = _problem(line, [file for file, _ in files], root)
        if problem is None:
            image, mask = (file for file, _ in files if file is not None)
            earlier_mask, earlier_line = seen.setdefault(image, (mask, line.number))
            if earlier_mask == mask and earlier_line != line.number:
                repeated.append(place)
                continue
            if earlier_mask == mask:
                if any(is_moved for _, is_moved in files):
                    moved.append(f"{place}, {line.fields[0]} is {image}")
                collected.add(image, PairFile.at(root / image), PairFile.at(root / mask))
                continue
            problem = f"{image} already has the mask {earlier_mask} (line {earlier_line})"
        fault = Fault(problem, str(path), line.number)
        collected.add_fault(f"{path.name}, line {line.number}", fault)
    collected.notices += count_notice(
        moved, "path", "from another machine found by the last parts", "paths"
    )
    collected.notices += count_notice(repeated, "repeated pair", "packed once")
    if not seen:
        faults = collected.faults
        problem = faults[0].problem if faults else "the list is empty"
        raise SourceError(
            f"no pairs to pack: {problem}; expected an image and its mask on each line",
            [str(fault.error()) for fault in faults],
            path=path,
            line=faults[0].line if faults else None,
        )
    return collected


def check_pairs(pairs: Sequence[tuple[Location, Location]], root: Location | None) -> PairSamples:
    """The pairs that the caller passed, relative to the root or to their common folder.

    An error if an image is outside the root, or occurs twice.
    """
    pairs = [(image.absolute(), mask.absolute()) for image, mask in pairs]
    base = root or _common_folder([image for image, _ in pairs])
    whole = root or _common_folder([file for pair in pairs for file in pair])
    collected = PairSamples(whole, whole)
    masks: dict[str, Location] = {}
    for image, mask in pairs:
        name = image.relative_to(base)
        if not name:
            raise OptionError(
                f"{image} is outside the root folder {base}",
                option="pairs",
                value=str(image),
                remedy="Pass a root folder that contains all images.",
            )
        if name in masks:
            raise OptionError(
                f"{image} occurs twice, with the masks {masks[name]} and {mask}",
                option="pairs",
                value=str(image),
            )
        masks[name] = mask
        collected.add(name, PairFile.at(image), PairFile.at(mask))
    return collected


def _common_folder(files: Sequence[Location]) -> Location:
    """The folder that contains some files."""
    folders = {file.parent.key for file in files}
    return Location(files[0].store, os.path.commonpath(folders) if all(folders) else "")


def _find_inside(name: str, root: Location, folder: str | None) -> tuple[str | None, bool]:
    """Find the file in a root that a path from a list means.

    `folder` is that of the list, relative to the root, to which paths may be relative as well; None
    if it lies elsewhere. Returns the path relative to the root, or None if there is no such file,
    and whether it was found by its last parts.
    """
    plain = name if is_file(inside(root, name)) else with_slashes(name)
    if not is_absolute(plain):
        for start in dict.fromkeys(("", folder or "")):
            path = posixpath.normpath(posixpath.join(start, plain))
            if not leaves_folder(path) and is_file(inside(root, path)):
                return path, False
        if not leaves_folder(plain):
            return None, False
    for tail in path_endings(plain):
        if is_file(inside(root, tail)):
            return tail, os.path.normpath(plain) != str((root / tail).absolute())
    return None, False


def _problem(line: Line, files: Sequence[str | None], root: Location) -> str | None:
    if len(line.fields) != 2:
        names = count(len(line.fields), "name")
        return f"expected an image and its mask, found {names}: {', '.join(line.fields)[:80]}"
    missing = [name for name, file in zip(line.fields, files, strict=True) if file is None]
    return f"{join_names(missing)} not found in {root}" if missing else None


def _fields(line: str) -> tuple[str, ...]:
    if "\t" in line:
        fields = line.split("\t")
    elif "," in line:
        fields = next(csv.reader([line], skipinitialspace=True), [])
    else:
        fields = line.split()
    return tuple(text.strip() for text in fields)


def _names_image(line: Line) -> bool:
    return any(map(has_image_name, line.fields))
