"""Picture files that the rows of a table name: where are they, and how large?

A name is taken as relative to the folder of its table, and may not lead out of the folder that is
read; links that lie in there are followed. Of an absolute path, of this system or of Windows, only
the last part counts.
"""

from __future__ import annotations

import posixpath
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import SourceError
from recordsmith.sources.contract import Note, unheard
from recordsmith.sources.foreign_paths import is_absolute, leads_out
from recordsmith.sources.versions import size_and_time

_LAST_PART = "of an absolute path of a picture only the last part counts"


class NamedPictures:
    """The pictures that a column names. Hears of the column while the table is listed."""

    def __init__(self, column: str, folder: Path, beside: Sequence[str]) -> None:
        """`folder` has all pictures; `beside` are the folders in it where the tables lie."""
        self.folder = folder
        self._column = column
        self._beside = beside
        self._sizes = array("q")
        self._times = array("q")

    def append(self, value: str | None, table: int) -> None:
        """Look up size and time of the picture of the next row; 0 if there is none."""
        size = time = 0
        if value is not None:
            with suppress(SourceError):  # reading it will say so
                path = self.path(value, table, "", unheard)
                size, time = size_and_time(self.folder / path)
        self._sizes.append(size)
        self._times.append(time)

    def sizes(self) -> npt.NDArray[np.int64]:
        """int64, (rows,): the size of each row's picture in bytes."""
        return np.array(self._sizes, np.int64)

    def versions(self, of_tables: int) -> npt.NDArray[np.int64]:
        """int64, (rows,): the version of each row's picture and of the tables together."""
        return np.array(self._times, np.int64) ^ of_tables

    def path(self, value: Any, table: int, place: str, note: Note) -> str:
        """The path of a picture, relative to the folder.

        Raises:
            SourceError: the row names none, or one outside of the folder.
        """
        text = text_of(value)
        if not text:
            raise SourceError(f"{place}: column {self._column!r} names no picture")
        name = text.replace("\\", "/")
        if is_absolute(name):
            name = name.rpartition("/")[2]
            note(_LAST_PART, f"{place}: {text}")
        name = posixpath.normpath(posixpath.join(self._beside[table], name))
        if leads_out(name) or name == "." or "\0" in name:
            raise SourceError(
                f"{place}: {text!r} leads out of the folder {self.folder}; pictures have to lie in "
                "it"
            )
        return name


def text_of(value: Any) -> str:
    """A value of a feature as text; empty where there is none."""
    if isinstance(value, (list, np.ndarray)):
        value = value[0] if len(value) else b""
    if value is None:
        return ""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
