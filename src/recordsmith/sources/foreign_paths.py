r"""Paths as files name them: of another machine, of Windows, or leading elsewhere. Only text.

What a name means here is decided by whoever knows the files; nothing is opened.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

_DRIVE = re.compile(r"[A-Za-z]:(?=/)")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|.*\\")


def with_slashes(path: str) -> str:
    """A path of Windows with `/`; any other as it is."""
    return path.replace("\\", "/") if _WINDOWS.match(path) else path


def is_absolute(path: str) -> bool:
    """Whether a path with `/` begins at a root, of any system."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def leads_out(path: str) -> bool:
    """Whether a path with `/` leads out of the folder that it counts from."""
    return is_absolute(path) or posixpath.normpath(path).split("/")[0] == ".."


def tails(path: str) -> Iterator[str]:
    """The last parts of a path with `/`, the most of them first; none that leads up."""
    parts = [part for part in _DRIVE.sub("", path, count=1).split("/") if part not in ("", ".")]
    for first in range(len(parts)):
        if ".." not in parts[first:]:
            yield "/".join(parts[first:])
