"""Which pictures are below a folder, however deep? And what is there that is none?

Links to folders are followed, each folder once, so that circles end. Hidden names are passed over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from recordsmith.files import list_folder
from recordsmith.sources.pictures import has_picture_name, is_picture_file

_FOLDERS_SEARCHED = 2000


@dataclass
class PictureTree:
    """What is below a folder.

    pictures: paths relative to it, with `/`.
    hidden, others: whole paths.
    """

    folder: Path
    pictures: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def read_picture_tree(folder: Path) -> PictureTree:
    """Find all pictures below a folder.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    tree = PictureTree(folder)
    _read_into(tree, folder, "", set())
    return tree


def has_pictures(folder: Path) -> bool:
    """Whether names below a folder are those of pictures; a large tree is searched in part."""
    walk = islice(os.walk(folder, followlinks=True), _FOLDERS_SEARCHED)
    return any(has_picture_name(file) for _, _, files in walk for file in files)


def folders_in(path: Path) -> dict[str, Path]:
    """The folders of a folder, by their names in small letters."""
    return {
        entry.name.lower(): Path(entry.path)
        for entry in list_folder(path)
        if not entry.name.startswith(".") and _is_folder(entry)
    }


def _read_into(tree: PictureTree, folder: Path, prefix: str, seen: set[str]) -> None:
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    for entry in list_folder(folder):
        if entry.name.startswith("."):
            tree.hidden.append(entry.path)
        elif _is_folder(entry):
            _read_into(tree, Path(entry.path), f"{prefix}{entry.name}/", seen)
        elif is_picture_file(entry):
            tree.pictures.append(prefix + entry.name)
        else:
            tree.others.append(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
