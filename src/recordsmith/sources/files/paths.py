"""Locations and paths: of folders that are read, in references, and in annotations.

Paths in annotations may be of other machines, of Windows, or lead elsewhere; the functions on text
open no files.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.support.errors import FileAccessError, OptionError

_DRIVE = re.compile(r"[A-Za-z]:(?=/)")
_MAX_PARTS = 64

# -- locations -------------------------------------------------------------------------------------


def check_folder(folder: Location, expected: str) -> None:
    if not is_folder(folder):
        raise OptionError(f"{folder} is a file", value=str(folder), expected=expected)


def is_folder(place: Location) -> bool:
    """Whether a location is a folder; an error if it is missing."""
    if place.is_folder():
        return True
    (place if place.key else as_location(str(place))).info()
    return False


def is_file(location: Location | None) -> bool:
    """Whether a file can be read at a location."""
    try:
        return location is not None and location.exists()
    except (FileAccessError, OptionError):
        return False


def last_name(location: Location) -> str:
    """The name of a file or folder, also of one that is given as `.` or by a link."""
    return location.identity.rpartition("/")[2]


def relative_place(
    root: Location | None, place: PlaceLike, convert: Callable[[object], Location]
) -> Location:
    """The location of a place that may be relative to the root."""
    given = convert(place)
    if root is None or isinstance(place, Location) or "://" in str(place):
        return given
    below = inside(root, str(place))
    return convert(posixpath.join(str(root), place)) if below is None else below


def inside(folder: Location, path: str) -> Location | None:
    """The location of a path relative to a folder; None if it leads out of it."""
    key = posixpath.normpath(path)
    try:
        return folder if key == "." else folder / key
    except OptionError:
        return None


def path_inside(root: Location, folder: PlaceLike, option: str) -> str:
    """The path of a folder relative to the root, which must contain it."""
    place = relative_place(root, folder, as_folder)
    below = place.relative_to(root)
    if below is None:
        raise OptionError(f"{place} is outside {root}", option=option, value=str(folder))
    return below


def referenced(root: Location, text: str) -> Location:
    """The place of a text: relative to the root, or absolute."""
    return as_location(text) if text.startswith("/") or "://" in text else root / text


# -- versions, without reading files; those of local files are their modification times ------------


def size_and_version(location: Location) -> tuple[int, int]:
    """Size in bytes and version number of an object; 0 for a missing one, which fails when read."""
    try:
        info = location.info()
    except FileAccessError:
        return 0, 0
    return info.size_bytes, location.store.version_number(info.version)


def common_version(versions: Iterable[int]) -> int:
    """A number for the versions of several objects, in this order."""
    # not a CRC, which stays the same for some times to which the same seconds are added
    data = b"".join(version.to_bytes(16, "little", signed=True) for version in versions)
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") >> 1


def object_version(location: Location) -> int:
    """The version number of an object that must exist."""
    return location.store.version_number(location.info().version)


# -- paths in annotations --------------------------------------------------------------------------


def with_slashes(path: str) -> str:
    """A path with `/`, as on any system but Windows."""
    return path.replace("\\", "/")


def last_part(path: str) -> str:
    """The name of a file, from a path of any system."""
    return with_slashes(path).rpartition("/")[2]


def join_path(*parts: str | None) -> str:
    """A path with `/` of its parts, without those that are empty."""
    return "/".join(filter(None, parts))


def is_absolute(path: str) -> bool:
    """Whether a path with `/` is absolute on any system."""
    return path.startswith("/") or _DRIVE.match(path) is not None


def leaves_folder(path: str) -> bool:
    """Whether a path with `/` leads out of the folder that it is relative to."""
    return is_absolute(path) or posixpath.normpath(path).split("/")[0] == ".."


def path_endings(path: str) -> Iterator[str]:
    """The endings of a path with `/`, longest first, without those that contain `..`.

    At most 64 folders deep, as text may have any number of `/`.
    """
    parts = [part for part in _DRIVE.sub("", path, count=1).split("/") if part not in ("", ".")]
    parts = parts[-_MAX_PARTS:]
    for first in range(len(parts)):
        if ".." not in parts[first:]:
            yield "/".join(parts[first:])
