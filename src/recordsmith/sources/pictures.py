"""Picture files, for every source that has some: is this one, and what are its features?

A file is a picture if its bytes are those of one, or if its name says so: then it must be one.
"""

from __future__ import annotations

import os
from typing import Any

from recordsmith.errors import CorruptDataError, located
from recordsmith.example.keys import FILENAME, FORMAT, HEIGHT, PICTURE, WIDTH
from recordsmith.files import PathLike, open_file, read_file
from recordsmith.image import PICTURE_SUFFIXES, ImageInfo, is_picture, probe_image
from recordsmith.wire import HEAD_BYTES, describe_foreign


def read_picture(path: PathLike, name: str) -> dict[str, Any]:
    """The features of a picture file, its bytes untouched; `name` becomes `image/filename`.

    Raises:
        CorruptDataError: unreadable-image.
        FileAccessError: it cannot be read.
    """
    data = read_file(path)
    with located(os.fspath(path)):
        return picture_features(data, name)


def picture_features(data: bytes, name: str) -> dict[str, Any]:
    """The same, of a picture's bytes.

    Raises:
        CorruptDataError: unreadable-image.
    """
    info = _probe(data)
    return {
        PICTURE: data,
        FILENAME: os.fsencode(name),
        FORMAT: info.format,
        HEIGHT: info.height,
        WIDTH: info.width,
    }


def is_picture_file(entry: os.DirEntry[str]) -> bool:
    """By its name, or by its bytes. A link to nothing counts by its name: it should be one."""
    try:
        is_file = entry.is_file()
        leads_nowhere = entry.is_symlink() and not os.path.exists(entry)
    except OSError:  # links in a circle
        is_file, leads_nowhere = False, True
    if has_picture_name(entry.name):
        return is_file or leads_nowhere
    if not is_file:
        return False
    with open_file(entry.path) as file:
        return is_picture(file)


def has_picture_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES


def _probe(data: bytes) -> ImageInfo:
    try:
        return probe_image(data)
    except CorruptDataError as error:
        foreign = describe_foreign(data[:HEAD_BYTES])
        if foreign is not None and not foreign.name.endswith("picture"):
            error.detail = f"it is {foreign.name}, no picture. {foreign.advice}"
        raise
