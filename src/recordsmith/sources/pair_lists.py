"""Pairs by lists: a file with a picture and its mask a line, or paths that the caller gives.

A path of a file never leads out of the folder that is read: one that would (absolute, from
Windows, with `..`) counts by as many of its last parts as name a file there, and that is said.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import OptionError, SourceError
from recordsmith.files import read_file
from recordsmith.sources.pairing import Pairing
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.wording import some

_DRIVE = re.compile(r"[A-Za-z]:(?=/)|/(?=/)")


class Line(NamedTuple):
    """One line of a list, counted from 1, and what stands there."""

    number: int
    fields: tuple[str, ...]


def read_list(path: Path) -> list[Line]:
    """The lines of a list; empty ones and those that begin with # are left out.

    Fields stand between tabs, or commas, or spaces, whichever of these a line has first in this
    order. A first line that names no picture is a heading, if the one below does.

    Raises:
        FileAccessError: it cannot be read.
    """
    text = read_file(path).decode("utf-8-sig", "surrogateescape")
    lines = [
        Line(number, _fields(line.strip()))
        for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(lines) > 1 and not _names_a_picture(lines[0]) and _names_a_picture(lines[1]):
        return lines[1:]
    return lines


def pairs_of_list(path: Path, root: Path) -> Pairing:
    """Each line of a file is a pair; a wrong line is a sample that cannot be read.

    Raises:
        SourceError: no line is a pair of files.
    """
    folder = os.path.relpath(os.path.abspath(path.parent), os.path.abspath(root))
    found = Pairing()
    moved: list[str] = []
    repeated: list[str] = []
    seen: dict[str, tuple[str, int]] = {}
    for line in read_list(path):
        place = f"{path}, line {line.number}"
        files = [find_inside(name, root, folder) for name in line.fields]
        problem = _problem(line, [file for file, _ in files], root)
        if problem is None:
            picture, mask = (file for file, _ in files if file is not None)
            earlier_mask, earlier_line = seen.setdefault(picture, (mask, line.number))
            if earlier_mask != mask:
                problem = f"{picture} has another mask in line {earlier_line}, {earlier_mask}"
            elif earlier_line != line.number:
                repeated.append(place)
                continue
        if problem is not None:
            found.add_problem(f"{path.name}, line {line.number}", f"{place}: {problem}")
            continue
        if any(is_moved for _, is_moved in files):
            moved.append(f"{place}, {line.fields[0]} as {picture}")
        found.add(picture, os.path.join(root, picture), os.path.join(root, mask))
    found.notice("paths that lead elsewhere, found by their last parts", moved)
    found.notice("pairs that are listed again, packed once", repeated)
    if not seen:
        problems = [pair.problem or "" for pair in found.pairs]
        first = f"; the first line says: {problems[0]}" if problems else ", which has no lines"
        raise SourceError(
            f"no pairs to pack: expected a picture and its mask in each line of {path}{first}",
            problems,
        )
    return found


def pairs_of_paths(pairs: Sequence[tuple[Path, Path]], root: Path | None) -> Pairing:
    """Pairs that the caller named, relative to the root if there is one.

    Raises:
        OptionError: a picture is not below the root, or is there twice.
    """
    whole = [[os.path.abspath((root or Path()) / path) for path in pair] for pair in pairs]
    if root is not None:
        base = os.path.abspath(root)
    else:
        base = os.path.commonpath([os.path.dirname(picture) for picture, _ in whole])
    found = Pairing()
    masks: dict[str, str] = {}
    for picture, mask in whole:
        name = os.path.relpath(picture, base).replace(os.sep, "/")
        if _leads_out(name):
            raise OptionError(f"{picture} is not in {root}; name a root that has all pictures")
        if name in masks:
            raise OptionError(f"pairs has {picture} twice, with {masks[name]} and with {mask}")
        masks[name] = mask
        found.add(name, picture, mask)
    return found


def find_inside(name: str, root: Path, folder: str) -> tuple[str | None, bool]:
    """Which file of a root does a path from a list mean?

    Args:
        name: the path, as the list has it.
        root: the folder that is read.
        folder: of the list, relative to the root: paths may count from there as well.

    Returns:
        (the path relative to the root, or None if it has no such file; whether it is another path
        than the list has, found by its last parts).
    """
    plain = name if os.path.isfile(os.path.join(root, name)) else name.replace("\\", "/")
    if not plain.startswith("/") and not _DRIVE.match(plain):
        is_below = not _leads_out(os.path.normpath(plain))
        for start in dict.fromkeys(("", folder)):
            path = os.path.normpath(os.path.join(start, plain))
            if not _leads_out(path) and os.path.isfile(os.path.join(root, path)):
                return path.replace(os.sep, "/"), False
        if is_below:
            return None, False
    parts = [part for part in _DRIVE.sub("", plain, count=1).split("/") if part not in ("", ".")]
    for first in range(len(parts)):
        tail = "/".join(parts[first:])
        if ".." not in parts[first:] and os.path.isfile(os.path.join(root, tail)):
            return tail, os.path.normpath(plain) != os.path.join(os.path.abspath(root), tail)
    return None, False


def _problem(line: Line, files: Sequence[str | None], root: Path) -> str | None:
    if len(line.fields) != 2:
        return (
            f"expected a picture and its mask, found {len(line.fields)} "
            f"name{'s' * (len(line.fields) != 1)}: {', '.join(line.fields)[:80]}"
        )
    missing = [name for name, file in zip(line.fields, files, strict=True) if file is None]
    if missing:
        return f"{some(missing)} {'is' if len(missing) == 1 else 'are'} not in {root}"
    return None


def _fields(line: str) -> tuple[str, ...]:
    if "\t" in line:
        fields = line.split("\t")
    elif "," in line:
        fields = next(csv.reader([line], skipinitialspace=True), [])
    else:
        fields = line.split()
    return tuple(text.strip() for text in fields)


def _names_a_picture(line: Line) -> bool:
    return any(map(has_picture_name, line.fields))


def _leads_out(path: str) -> bool:
    return os.path.isabs(path) or path.replace(os.sep, "/").split("/")[0] == os.pardir
