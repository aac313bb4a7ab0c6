"""Read text files with names, such as lists of images and classes.

They are UTF-8 with or without BOM; invalid bytes are kept as surrogates, as in file names.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from typing import TextIO, TypeAlias

from recordsmith.errors import FileAccessError, accessing
from recordsmith.stores import Location, read_document

Lines: TypeAlias = list[tuple[int, str]]
"""Line number, counted from 1, and text without surrounding whitespace."""

LONGEST_LINE = 1 << 24
"""In characters; a file with a longer line is not a list."""

_READ_WHOLE_BYTES = 1 << 26


def read_text(location: Location) -> str:
    """Read the text of a small file."""
    return read_document(location).decode("utf-8-sig", "surrogateescape")


def read_lines(location: Location) -> Lines:
    """Read the lines of a file that are not blank; the file may be long."""
    name = str(location)
    data = location.read(0, _READ_WHOLE_BYTES)
    is_whole = len(data) < _READ_WHOLE_BYTES
    stream = io.BytesIO(data) if is_whole else io.BufferedReader(location.open_read())
    with accessing(name), io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape") as file:
        return list(_lines(file, name))


def _lines(file: TextIO, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise FileAccessError(
                errno.EFBIG,
                f"line {number} is longer than {LONGEST_LINE:,} characters",
                name,
                remedy="Check that this is the right file.",
            )
        if text := line.strip():
            yield number, text
