"""Pairs by lists: a file with a picture and its mask a line, or paths that the caller gives.

A path of a file never leads out of the folder that is read: one that would (absolute, from
Windows, with `..`) counts by as many of its last parts as name a file there, and that is said.
"""

from __future__ import annotations

import csv
import os
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import OptionError, SourceError
from recordsmith.files import PathLike
from recordsmith.sources.foreign_paths import is_absolute, leads_out, tails
from recordsmith.sources.pairing import Pairing
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.small_texts import read_lines
from recordsmith.sources.wording import some


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
    lines = [
        Line(number, _fields(line)) for number, line in read_lines(path) if not line.startswith("#")
    ]
    if len(lines) > 1 and not _names_a_picture(lines[0]) and _names_a_picture(lines[1]):
        return lines[1:]
    return lines


def pairs_of_list(path: Path, root: Path) -> Pairing:
    """Each line of a file is a pair; a wrong line is a sample that cannot be read.

    Raises:
        SourceError: no line is a pair of files.
    """
    folder = _relative(path.parent, root)
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
        name = _relative(picture, base)
        if leads_out(name):
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
    if not is_absolute(plain):
        for start in dict.fromkeys(("", folder)):
            path = posixpath.normpath(posixpath.join(start, plain))
            if not leads_out(path) and os.path.isfile(os.path.join(root, path)):
                return path, False
        if not leads_out(plain):
            return None, False
    for tail in tails(plain):
        if os.path.isfile(os.path.join(root, tail)):
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


def _relative(path: PathLike, folder: PathLike) -> str:
    """A path as seen from a folder, with `/`."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(folder)).replace(os.sep, "/")
