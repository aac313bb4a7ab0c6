"""Generate the list of files: a glob if it matches exactly these files, otherwise their names."""

from __future__ import annotations

import glob
import os
import re

from recordsmith.errors import OptionError
from recordsmith.readers.description import Description
from recordsmith.readers.source_text import comment, is_utf8, list_lines, literal
from recordsmith.stores import as_place, is_url

_MOST_NAMED = 4
_NUMBER = re.compile(r"\d+$")


def file_lines(description: Description) -> list[str]:
    """The lines that define `files`.

    Raises:
        OptionError: a file is not on a local disk, where the program would look for it.
    """
    for file in description.files:
        if is_url(file):
            raise OptionError(
                f"the program reads local files, but {file} is not on a local disk",
                option="reader",
                value=file,
                expected="torch or grain, which read URLs",
                remedy="Or copy the dataset to a local disk with `recordsmith reshard`.",
            )
    pattern = _pattern(description)
    shards = "1 shard" if len(description.files) == 1 else f"{len(description.files):,} shards"
    note = comment(shards, description.record_note)
    if pattern is None:
        lines = list_lines("files", [path_literal(file) for file in description.files])
    else:
        recursive = ", recursive=True" if "**" in pattern else ""
        lines = [f"files = sorted(glob.glob({literal(pattern)}{recursive}))"]
    return [note.strip(), *lines]


def imports(lines: list[str]) -> list[str]:
    """The imports that these lines need, and an empty line."""
    return ["import glob", ""] if any("glob.glob(" in line for line in lines) else []


def path_literal(path: str) -> str:
    """A path as a str literal, or bytes if it is not UTF-8."""
    return literal(path if is_utf8(path) else os.fsencode(path))


def _pattern(description: Description) -> str | None:
    """A glob that matches exactly these files, if it is shorter than their names."""
    given, files = description.paths, list(description.files)
    if not isinstance(given, str):
        return None
    candidates: tuple[str, ...] = ()
    place = as_place(given)
    if not (place.is_folder() or place.exists()):
        candidates = (given,)
    elif len(files) > _MOST_NAMED:
        candidates = _common_patterns(files)
    for pattern in candidates:
        if is_utf8(pattern) and sorted(glob.glob(pattern, recursive=True)) == files:
            return pattern
    return None


def _common_patterns(files: list[str]) -> tuple[str, ...]:
    first, last = min(files), max(files)
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    begin = glob.escape(_NUMBER.sub("", first[:same]))
    _, dot, suffix = os.path.basename(first).partition(".")
    return f"{begin}*{glob.escape(dot + suffix)}", f"{begin}*"
