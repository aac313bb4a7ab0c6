"""Small text files that name things, such as lists of pictures and of classes: read whole.

UTF-8, with or without its mark; bytes that are none stay in the names, as in names of files.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from recordsmith.files import NOTE_BYTES, PathLike, read_document

Lines: TypeAlias = list[tuple[int, str]]
"""Line number, counted from 1, and text without the space around it."""

_BREAK = re.compile(r"\r\n|\r|\n")


def read_text(path: PathLike) -> str:
    """The text of a file.

    Raises:
        FileAccessError: it cannot be read.
    """
    return read_document(path, NOTE_BYTES).decode("utf-8-sig", "surrogateescape")


def read_lines(path: PathLike) -> Lines:
    """The lines of a file that are not blank.

    Raises:
        FileAccessError: it cannot be read.
    """
    lines = enumerate(_BREAK.split(read_text(path)), 1)
    return [(number, line.strip()) for number, line in lines if line.strip()]
