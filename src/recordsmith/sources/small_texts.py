"""Text files that name things, such as lists of pictures and of classes.

UTF-8, with or without its mark; bytes that are none stay in the names, as in names of files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import TextIO, TypeAlias

from recordsmith.errors import FileAccessError
from recordsmith.files import PathLike, accessing, read_document

Lines: TypeAlias = list[tuple[int, str]]
"""Line number, counted from 1, and text without the space around it."""

LONGEST_LINE = 1 << 24
"""In characters; a file with a longer one is no list."""


def read_text(path: PathLike) -> str:
    """The text of a small file.

    Raises:
        FileAccessError: it cannot be read, or is longer than a small one may be.
    """
    return read_document(path).decode("utf-8-sig", "surrogateescape")


def read_lines(path: PathLike) -> Lines:
    """The lines of a file that are not blank. It may be long: a line for each of many pictures.

    Raises:
        FileAccessError: it cannot be read, or a line has more than LONGEST_LINE characters.
    """
    with accessing(path), open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        return list(_lines(file, os.fspath(path)))


def _lines(file: TextIO, name: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise FileAccessError(
                errno.EFBIG,
                f"cannot read {name}: line {number} is longer than {LONGEST_LINE:,} characters; "
                "is it the right file?",
                name,
            )
        if text := line.strip():
            yield number, text
