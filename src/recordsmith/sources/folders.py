"""What is in a folder: pictures, folders, and the rest."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from recordsmith.files import list_folder
from recordsmith.sources.pictures import is_picture_file


@dataclass
class Folder:
    """One folder, looked through: its pictures, its folders, and what is neither.

    pictures: name, size in bytes and time of change; not the entries, which hold a kilobyte each.
    """

    path: Path
    pictures: list[tuple[str, int, int]] = field(default_factory=list)
    folders: list[os.DirEntry[str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def read_folder(path: Path) -> Folder:
    """Look through one folder, not those in it.

    Raises:
        FileAccessError: it cannot be read.
    """
    folder = Folder(path)
    for entry in list_folder(path):
        if entry.name.startswith("."):
            folder.hidden.append(entry.path)
        elif _is_folder(entry):
            folder.folders.append(entry)
        elif is_picture_file(entry):
            folder.pictures.append((entry.name, *_size_and_version(entry)))
        else:
            folder.others.append(entry.path)
    return folder


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _size_and_version(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:  # a link to nothing: reading it will say so
        return 0, 0
    return status.st_size, status.st_mtime_ns
