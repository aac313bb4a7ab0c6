"""Read text files with names, such as lists of images and classes.

Without an encoding they are UTF-8 with or without BOM; invalid bytes are kept as surrogates, as in
file names. In a given encoding, invalid bytes are errors.
"""

from __future__ import annotations

import codecs
import errno
import io
from collections.abc import Iterator
from typing import TextIO, TypeAlias

from recordsmith.stores import Location, read_document
from recordsmith.support.errors import FileAccessError, SourceError, accessing, option

Lines: TypeAlias = list[tuple[int, str]]
"""Line number, counted from 1, and text without surrounding whitespace."""

LONGEST_LINE = 1 << 24
"""In characters; a file with a longer line is not a list."""

_READ_WHOLE_BYTES = 1 << 26


def read_text(location: Location) -> str:
    return read_document(location).decode("utf-8-sig", "surrogateescape")


def decode_text(data: bytes, name: str, encoding: str, errors: str = "strict") -> str:
    """Decode the text of a file, which is called `name` in messages."""
    try:
        return data.decode("utf-8-sig" if encoding == "utf-8" else encoding, errors)
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        has_mark = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        likely = ("utf-16",) if has_mark else ("gbk", "cp1252")
        raise SourceError(
            f"not {encoding.upper()}",
            path=name,
            line=data.count(b"\n", 0, start) + 1,
            remedy="Pass the encoding of the file, such as "
            f"{' or '.join(option('encoding', name) for name in likely)}, or save it as UTF-8.",
        ) from None


def read_lines(location: Location, path: str = "", encoding: str | None = None) -> Lines:
    """Read the lines of a file that are not blank; with an encoding, of a small file.

    path: what the file is called in messages.
    """
    name = path or str(location)
    if encoding is not None:
        text = decode_text(read_document(location), name, encoding)
        return list(_lines(io.StringIO(text, None), name))
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
