"""Parse paths in annotation files: from other machines, from Windows, or leading elsewhere.

These functions work on text only and open no files.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

_DRIVE = re.compile(r"[A-Za-z]:(?=/)")


def with_slashes(path: str) -> str:
    """A path with `/`, as on any system but Windows."""
    return path.replace("\\", "/")


def last_part(path: str) -> str:
    """The name of a file, from a path of any system."""
    return with_slashes(path).rpartition("/")[2]


def is_absolute(path: str) -> bool:
    """Whether a path with `/` is absolute on any system."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def leaves_folder(path: str) -> bool:
    """Whether a path with `/` leads out of the folder that it is relative to."""
    return is_absolute(path) or posixpath.normpath(path).split("/")[0] == ".."


def path_endings(path: str) -> Iterator[str]:
    """The endings of a path with `/`, longest first, without those that contain `..`."""
    parts = [part for part in _DRIVE.sub("", path, count=1).split("/") if part not in ("", ".")]
    for first in range(len(parts)):
        if ".." not in parts[first:]:
            yield "/".join(parts[first:])
