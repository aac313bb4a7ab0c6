"""List folders and the trees below them: images, folders, other files. Hidden names are skipped.

Links are followed, except to a folder above the link, so that walks end. A file is opened only if
its name does not have an image suffix.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from recordsmith.dataset.names import INTERNAL_NAMES
from recordsmith.errors import FileAccessError, OptionError
from recordsmith.sources.files.images import has_image_name, is_image_file
from recordsmith.stores import FolderEntry, Location, PlaceLike, as_location

_FOLDERS_SEARCHED = 2000


class FoundImage(NamedTuple):
    """An image file: name or relative path, size in bytes, version number."""

    name: str
    size_bytes: int
    version: int


@dataclass
class Folder:
    """The content of one folder: images, folders, and the rest.

    folders: names.
    hidden, others: full paths.
    """

    path: Location
    images: list[FoundImage] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


@dataclass
class ImageTree:
    """The content of a folder and of all folders below it.

    images: named by their paths relative to it, with `/`.
    hidden, others, links: full paths; links are those to folders that were not followed.
    """

    path: Location
    images: list[FoundImage] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def check_folder(folder: Location, expected: str) -> None:
    """Check that a location is a folder.

    Args:
        expected: what should be there, for the message.

    Raises:
        OptionError: it is a file.
        FileAccessError: it does not exist.
    """
    if not is_folder(folder):
        raise OptionError(f"{folder} is a file", value=str(folder), expected=expected)


def is_folder(place: Location) -> bool:
    """Whether a location is a folder.

    Raises:
        FileAccessError: it does not exist.
    """
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
    """The location of a place that may be relative to the root.

    Args:
        convert: `as_folder` or `as_location`.
    """
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


def has_direct_image(path: Location) -> bool:
    """Whether there is an image in a folder itself."""
    return any(
        is_image_file(path, entry)
        for entry in path.list_entries()
        if not entry.name.startswith(".") and entry.kind != "folder"
    )


def read_folder(path: Location) -> Folder:
    """List one folder, without the folders in it.

    Raises:
        FileAccessError: it cannot be read.
    """
    folder, head = Folder(path), _head(path)
    for entry in path.list_entries():
        name = entry.name
        if name in INTERNAL_NAMES:
            continue
        if name.startswith("."):
            folder.hidden.append(head + name)
        elif entry.kind == "folder":
            folder.folders.append(name)
        elif is_image_file(path, entry):
            folder.images.append(FoundImage(name, entry.size_bytes, entry.version_number))
        else:
            folder.others.append(head + name)
    return folder


def read_image_tree(path: Location) -> ImageTree:
    """Find all images below a folder; links to folders are followed.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    tree = ImageTree(path)
    tree.images = list(walk_images(tree, follows_links=True))
    return tree


def walk_images(
    tree: ImageTree, *, follows_links: bool = False, entries: Iterable[FolderEntry] | None = None
) -> Iterator[FoundImage]:
    """Yield each image below the folder of a tree, sorted by path, and add the rest to the tree.

    Args:
        entries: those of the folder, if it was listed just before.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    head = _head(tree.path)
    hidden: list[str] = []
    links: list[str] = []
    followed = None if follows_links else links
    for name, folder, entry in walk_files(tree.path, hidden, followed, entries):
        if is_image_file(folder, entry):
            yield FoundImage(name, entry.size_bytes, entry.version_number)
        else:
            tree.others.append(head + name)
    tree.hidden = [head + name for name in hidden]
    tree.links = [head + name for name in links]


def walk_files(
    folder: Location,
    hidden: list[str],
    links: list[str] | None = None,
    entries: Iterable[FolderEntry] | None = None,
) -> Iterator[tuple[str, Location, FolderEntry]]:
    """Yield each file below a folder: its relative path with `/`, its folder, and its entry.

    Args:
        hidden: receives the relative paths of skipped files, pipes and devices among them.
        links: receives the relative paths of links to folders; if None, links are followed.
        entries: those of the folder, if it was listed just before.

    Raises:
        FileAccessError: a folder cannot be read.
    """
    # with a stack instead of recursion, as folders may be nested thousands of levels deep
    stack: list[tuple[str, Location, tuple[str, ...], Iterator[FolderEntry]]]
    listed = _sorted(folder.list_entries() if entries is None else entries)
    stack = [("", folder, (folder.identity,), listed)]
    while stack:
        prefix, here, above, left = stack[-1]
        for entry in left:
            name = prefix + entry.name
            if entry.name in INTERNAL_NAMES:
                continue
            if entry.name.startswith("."):
                hidden.append(name)
            elif entry.kind == "special":
                hidden.append(f"{name} (a pipe or a device)")
            elif entry.kind != "folder":
                yield name, here, entry
            elif links is not None and entry.is_link:
                links.append(name)
            else:
                below = here / entry.name
                identity = below.identity
                if identity not in above:
                    inner = _sorted(below.list_entries())
                    stack.append((f"{name}/", below, (*above, identity), inner))
                    break
        else:
            stack.pop()


def list_names(path: Location) -> Iterator[tuple[Location, list[str]]]:
    """Yield each folder below a path with its file names; only the start of a large tree."""
    return islice(_walk_names(path, (path.identity,)), _FOLDERS_SEARCHED)


def has_images(path: Location) -> bool:
    """Whether there are image names below a folder; only the start of a large tree is searched."""
    return any(has_image_name(file) for _, files in list_names(path) for file in files)


def list_outside(root: Location, places: Iterable[Location]) -> tuple[list[str], list[str]]:
    """The images and the other files below a folder, but not below some places in it.

    Hidden files and links to folders are left out.

    Returns:
        (full paths of images, full paths of other files), sorted.
    """
    excluded = {place.relative_to(root) for place in places}
    images: list[str] = []
    others: list[str] = []
    below = [] if "" in excluded else [("", root)]
    while below:
        head, folder = below.pop()
        for entry in folder.list_entries():
            path = head + entry.name
            if entry.name.startswith(".") or entry.is_link or path in excluded:
                continue
            if entry.kind == "folder":
                below.append((f"{path}/", folder / entry.name))
            else:
                (images if has_image_name(entry.name) else others).append(str(folder / entry.name))
    return sorted(images), sorted(others)


def _sorted(entries: Iterable[FolderEntry]) -> Iterator[FolderEntry]:
    return iter(sorted(entries, key=_place_in_paths))


def _place_in_paths(entry: FolderEntry) -> str:
    """Sorts a folder like the paths of the files in it."""
    return f"{entry.name}/" if entry.kind == "folder" else entry.name


def _walk_names(folder: Location, here: tuple[str, ...]) -> Iterator[tuple[Location, list[str]]]:
    try:
        entries = list(folder.list_entries())
    except FileAccessError:
        return
    yield folder, [entry.name for entry in entries if entry.kind != "folder"]
    for entry in entries:
        if entry.kind == "folder":
            below = folder / entry.name
            identity = below.identity
            if identity not in here:
                yield from _walk_names(below, (*here, identity))


def _head(folder: Location) -> str:
    """What precedes relative paths in full paths."""
    return str(folder / "_")[:-1]
