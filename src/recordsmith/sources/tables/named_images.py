"""Find the image files that the rows of a table name.

A name is relative to the folder of its table and must not lead out of the folder that is read;
links inside it are followed. Of an absolute path to another folder, also from Windows, only the
last part is used.
"""

from __future__ import annotations

import posixpath
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import SourceError
from recordsmith.sources.files.foreign_paths import is_absolute, leaves_folder
from recordsmith.sources.files.versions import size_and_version
from recordsmith.sources.source import Note, ignore_note
from recordsmith.stores import Location

_LAST_PART = "images were found by the last part of an absolute path"


class NamedImages:
    """The images in a column; receives the values of the column while the table is listed."""

    def __init__(self, column: str, folder: Location, table_folders: Sequence[str]) -> None:
        """`folder` contains all images; `table_folders` are the folders of the tables in it."""
        self.folder = folder
        self._column = column
        self._table_folders = table_folders
        self._sizes = array("q")
        self._versions = array("q")

    def extend(self, values: Sequence[str | None], table: int) -> None:
        """Look up size and version number of the images of the next rows; 0 without one."""
        for value in values:
            size = version = 0
            if value is not None:
                with suppress(SourceError):  # reading the row raises it
                    path = self.path(value, table, "", ignore_note)
                    size, version = size_and_version(self.folder / path)
            self._sizes.append(size)
            self._versions.append(version)

    def clear(self) -> None:
        """Forget all rows."""
        del self._sizes[:], self._versions[:]

    def sizes(self) -> npt.NDArray[np.int64]:
        """int64, (rows,): the size of each row's image in bytes."""
        return np.array(self._sizes, np.int64)

    def versions(self, of_tables: int) -> npt.NDArray[np.int64]:
        """int64, (rows,): the version of each row's image and of the tables together."""
        return np.array(self._versions, np.int64) ^ of_tables

    def path(self, value: Any, table: int, place: str, note: Note) -> str:
        """The path of an image, relative to the folder.

        Raises:
            SourceError: the row names no image, or one outside the folder.
        """
        text = text_of(value)
        if not text:
            raise SourceError(
                f"column {self._column!r} is empty; expected an image file", sample=place
            )
        name = text.replace("\\", "/")
        if is_absolute(name):
            folder = f"{self.folder.identity}/"
            if name.startswith(folder):
                name = name.removeprefix(folder)
            else:
                name = name.rpartition("/")[2]
                note(_LAST_PART, f"{place}: {text}")
        name = posixpath.normpath(posixpath.join(self._table_folders[table], name))
        if leaves_folder(name) or name == "." or "\0" in name:
            raise SourceError(
                f"the image {text!r} is outside the folder {self.folder}",
                sample=place,
                remedy="Move the image into the folder.",
            )
        return name


def text_of(value: Any) -> str:
    """A feature's value as text; empty for a missing one."""
    if isinstance(value, (list, np.ndarray)):
        value = value[0] if len(value) else b""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
