"""What is in a folder, or below it: pictures, folders, and the rest. Hidden names are passed over.

Links are followed; one that leads to a folder above itself is not, so that walks end. A file is
opened only if its name does not tell whether it is a picture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import OptionError
from recordsmith.files import OWN_NAMES, is_folder, is_special, list_folder
from recordsmith.sources.pictures import has_picture_name, is_picture_file
from recordsmith.sources.versions import size_and_time

_FOLDERS_SEARCHED = 2000


class FoundPicture(NamedTuple):
    """A picture file: its name or relative path, its size in bytes, its time of change.

    Not its entry, which holds a kilobyte.
    """

    name: str
    size_bytes: int
    version: int


@dataclass
class Folder:
    """One folder, looked through: its pictures, its folders, and what is neither.

    hidden, others: whole paths.
    """

    path: Path
    pictures: list[FoundPicture] = field(default_factory=list)
    folders: list[os.DirEntry[str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass
class PictureTree:
    """What is below a folder, however deep.

    pictures: by their paths relative to it, with `/`.
    hidden, others, links: whole paths; links are those to folders that were not followed.
    """

    path: Path
    pictures: list[FoundPicture] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def check_folder(path: Path, expected: str) -> None:
    """See that a caller's path is a folder.

    Raises:
        OptionError: it is a file; `expected` says what should be there.
        FileAccessError: there is nothing.
    """
    if not is_folder(path):
        raise OptionError(f"{path} is a file; expected {expected}")


def read_folder(path: Path) -> Folder:
    """Look through one folder, not those in it.

    Raises:
        FileAccessError: it cannot be read.
    """
    folder = Folder(path)
    for entry in list_folder(path):
        if entry.name in OWN_NAMES:
            continue
        if entry.name.startswith("."):
            folder.hidden.append(entry.path)
        elif leads_to_folder(entry):
            folder.folders.append(entry)
        elif is_picture_file(entry):
            folder.pictures.append(FoundPicture(entry.name, *size_and_time(entry)))
        else:
            folder.others.append(entry.path)
    return folder


def read_picture_tree(path: Path, *, follows_links: bool = True) -> PictureTree:
    """Find all pictures below a folder.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    tree = PictureTree(path)
    for name, entry in files_below(path, tree.hidden, None if follows_links else tree.links):
        if is_picture_file(entry):
            tree.pictures.append(FoundPicture(name, *size_and_time(entry)))
        else:
            tree.others.append(entry.path)
    return tree


def files_below(
    folder: Path, hidden: list[str], links: list[str] | None = None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Path relative to the folder, with `/`, and entry of each file below it.

    Args:
        hidden: takes the whole paths of what is passed over, and of what would be waited for in
            vain.
        links: takes those of links to folders; without it they are followed.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    return _walk(folder, "", (), hidden, links)


def folders_in(path: Path) -> dict[str, Path]:
    """The folders of a folder, by their names in small letters."""
    return {
        entry.name.lower(): Path(entry.path)
        for entry in list_folder(path)
        if not entry.name.startswith(".") and leads_to_folder(entry)
    }


def names_below(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each folder below a path with the names of its files; a large tree is searched in part."""
    for folder, _, files in islice(os.walk(path, followlinks=True), _FOLDERS_SEARCHED):
        yield folder, files


def has_pictures(path: Path) -> bool:
    """Whether names below a folder are those of pictures; a large tree is searched in part."""
    return any(has_picture_name(file) for _, files in names_below(path) for file in files)


def leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to one."""
    try:
        return entry.is_dir()
    except OSError:  # links in a circle
        return False


def _walk(
    folder: Path | str,
    prefix: str,
    above: tuple[str, ...],
    hidden: list[str],
    links: list[str] | None,
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    here = (*above, os.path.realpath(folder))
    for entry in list_folder(folder):
        if entry.name in OWN_NAMES:
            continue
        if entry.name.startswith("."):
            hidden.append(entry.path)
        elif is_special(entry):
            hidden.append(f"{entry.path} (a pipe or a device)")
        elif not leads_to_folder(entry):
            yield prefix + entry.name, entry
        elif links is not None and entry.is_symlink():
            links.append(entry.path)
        elif not entry.is_symlink() or os.path.realpath(entry.path) not in here:
            yield from _walk(entry.path, f"{prefix}{entry.name}/", here, hidden, links)
