"""Locations of files and folders: checks, names, and paths relative to a root."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from recordsmith.errors import FileAccessError, OptionError
from recordsmith.stores import Location, PlaceLike, as_location


def check_folder(folder: Location, expected: str) -> None:
    """Check that a location is a folder."""
    if not is_folder(folder):
        raise OptionError(f"{folder} is a file", value=str(folder), expected=expected)


def is_folder(place: Location) -> bool:
    """Whether a location is a folder."""
    if place.is_folder():
        return True
    (place if place.key else as_location(str(place))).info()
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
    found = inside(root, str(place))
    return convert(posixpath.join(str(root), place)) if found is None else found


def inside(folder: Location, path: str) -> Location | None:
    """The location of a path relative to a folder; None if it leads out of it."""
    key = posixpath.normpath(path)
    try:
        return folder if key == "." else folder / key
    except OptionError:
        return None


def place_below(root: Location, place: Location) -> str:
    """The text for a place in references: relative to the root if it lies below it."""
    below = place.relative_to(root)
    return str(place.absolute()) if below is None else below


def referenced(root: Location, text: str) -> Location:
    """The place of a text from `place_below`."""
    return as_location(text) if text.startswith("/") or "://" in text else root / text


def is_file(location: Location | None) -> bool:
    """Whether a file can be read at a location."""
    try:
        return location is not None and location.exists()
    except (FileAccessError, OptionError):
        return False
