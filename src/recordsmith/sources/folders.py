"""List folders and the trees below them: images, folders, other files. Hidden names are skipped.

Links are followed, except to a folder above the link, so that walks end. A file is opened only if
its name does not have an image suffix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import OptionError
from recordsmith.files import INTERNAL_NAMES, is_folder, is_special, list_folder
from recordsmith.sources.images import has_image_name, is_image_file
from recordsmith.sources.versions import size_and_time

_FOLDERS_SEARCHED = 2000


class FoundImage(NamedTuple):
    """An image file: name or relative path, size in bytes, modification time.

    It replaces the `DirEntry`, which takes a kilobyte.
    """

    name: str
    size_bytes: int
    version: int


@dataclass
class Folder:
    """The content of one folder: images, folders, and the rest.

    hidden, others: full paths.
    """

    path: Path
    images: list[FoundImage] = field(default_factory=list)
    folders: list[os.DirEntry[str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass
class ImageTree:
    """The content of a folder and of all folders below it.

    images: named by their paths relative to it, with `/`.
    hidden, others, links: full paths; links are those to folders that were not followed.
    """

    path: Path
    images: list[FoundImage] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def check_folder(path: Path, expected: str) -> None:
    """Check that a path is a folder.

    Args:
        expected: what should be there, for the message.

    Raises:
        OptionError: it is a file.
        FileAccessError: it does not exist.
    """
    if not is_folder(path):
        raise OptionError(f"{path} is a file", value=str(path), expected=expected)


def read_folder(path: Path) -> Folder:
    """List one folder, without the folders in it.

    Raises:
        FileAccessError: it cannot be read.
    """
    folder = Folder(path)
    for entry in list_folder(path):
        if entry.name in INTERNAL_NAMES:
            continue
        if entry.name.startswith("."):
            folder.hidden.append(entry.path)
        elif leads_to_folder(entry):
            folder.folders.append(entry)
        elif is_image_file(entry):
            folder.images.append(FoundImage(entry.name, *size_and_time(entry)))
        else:
            folder.others.append(entry.path)
    return folder


def read_image_tree(path: Path, *, follows_links: bool = True) -> ImageTree:
    """Find all images below a folder.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    tree = ImageTree(path)
    for name, entry in walk_files(path, tree.hidden, None if follows_links else tree.links):
        if is_image_file(entry):
            tree.images.append(FoundImage(name, *size_and_time(entry)))
        else:
            tree.others.append(entry.path)
    return tree


def walk_files(
    folder: Path, hidden: list[str], links: list[str] | None = None
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield each file below a folder: its relative path with `/`, and its entry.

    Args:
        hidden: receives the full paths of skipped files, pipes and devices among them.
        links: receives the paths of links to folders; if None, links are followed.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    return _walk(folder, "", (), hidden, links)


def list_folders(path: Path) -> dict[str, Path]:
    """The folders in a folder, by lower-case name."""
    return {
        entry.name.lower(): Path(entry.path)
        for entry in list_folder(path)
        if not entry.name.startswith(".") and leads_to_folder(entry)
    }


def list_names(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder below a path with its file names; only the start of a large tree."""
    for folder, _, files in islice(os.walk(path, followlinks=True), _FOLDERS_SEARCHED):
        yield folder, files


def has_images(path: Path) -> bool:
    """Whether there are image names below a folder; only the start of a large tree is searched."""
    return any(has_image_name(file) for _, files in list_names(path) for file in files)


def leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or a link to a folder."""
    try:
        return entry.is_dir()
    except OSError:  # circular links
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
        if entry.name in INTERNAL_NAMES:
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
