"""`FileTree`: what lies below a root, listed once for the detector and the source that it chooses.

Hidden names are skipped. Links are followed, except to a folder above the link, so that walks end.
"""

from __future__ import annotations

import heapq
import itertools
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from recordsmith.dataset.names import INTERNAL_NAMES
from recordsmith.errors import FileAccessError
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.files.images import has_image_name, is_image_file
from recordsmith.stores import FolderEntry, Location

HEAD_BYTES = 1 << 16
HIGHEST_KEY = 1 << 32
"""Above every `sampling_key`."""
_MAX_LISTED = 100_000
_MAX_SCANNED = 20_000
_MAX_HEADS = 100
_NAMES_KEPT = 1000
_FEWER_KEPT = 32  # when there are many names already
_KEPT_IN_ALL = 200_000
_SUFFIXES_KEPT = 50
_NO_DIGITS = bytes(sorted(set(range(256)) - set(b"0123456789")))


def sampling_key(name: str) -> int:
    """A pseudorandom number that is the same for `x1.jpg`, `x1_mask.png` and `img_1.png`.

    Large folders are compared by the names with the smallest keys, so that the samples of two
    folders with the same names have the same names as well.
    """
    stem = os.path.splitext(name.replace("leftImg8bit", ""))[0]
    return zlib.crc32(stem.encode("utf-8", "surrogateescape").translate(None, _NO_DIGITS))


class ImageEntry(NamedTuple):
    """An image file: name or relative path, size in bytes, version number."""

    name: str
    size_bytes: int
    version: int


@dataclass
class ImageListing:
    """The content of one folder, or of a folder and all folders below it.

    images: names, or paths relative to the folder, with `/`.
    folders: the names of those directly in it, if those below it are not listed.
    hidden, others, links: full paths; links are those to folders that were not followed.
    """

    path: Location
    images: list[ImageEntry] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


class OtherFiles(NamedTuple):
    """The full paths of files that a source does not read."""

    images: list[str]
    others: list[str]
    hidden: list[str]


@dataclass
class FolderScan:
    """A bounded summary of the files directly in one folder, by their names.

    path: relative to the root with `/`, "" for the root itself.
    by_suffix: the names of files by suffix in lower case with its dot; of each suffix at most
        1,000, those with the smallest sampling keys.
    suffixes: how many files have each suffix.
    highest_key: names of images with a sampling key above it may be left out.
    """

    path: str
    by_suffix: dict[str, list[str]] = field(default_factory=dict)
    suffixes: Counter[str] = field(default_factory=Counter)
    highest_key: int = HIGHEST_KEY

    @property
    def file_count(self) -> int:
        return self.suffixes.total()

    @cached_property
    def image_count(self) -> int:
        """The number of files with a suffix of images."""
        return sum(count for suffix, count in self.suffixes.items() if suffix in IMAGE_SUFFIXES)

    @cached_property
    def names(self) -> list[str]:
        """The known names of files."""
        return sorted(itertools.chain.from_iterable(self.by_suffix.values()))

    @cached_property
    def images(self) -> list[str]:
        """The known names of images."""
        known = (names for suffix, names in self.by_suffix.items() if suffix in IMAGE_SUFFIXES)
        return sorted(itertools.chain.from_iterable(known))

    def ending(self, endings: tuple[str, ...]) -> Iterator[str]:
        """Yield the known names with one of these endings in lower case, in order."""
        for suffix, names in sorted(self.by_suffix.items()):
            if any(end.endswith(suffix) or suffix.endswith(end) for end in endings):
                yield from (name for name in names if name.lower().endswith(endings))


class FileTree:
    """The files and folders below a root.

    Detectors read `folders`, a bounded summary; sources list what it leads to. Listings of up to
    100,000 entries are kept, so that the first listing of a source repeats none of them.
    """

    def __init__(self, root: Location, max_folders: int = _MAX_SCANNED) -> None:
        self.root = root
        self._max_folders = max_folders
        self._listings: dict[str, list[FolderEntry]] = {}
        self._heads: dict[str, bytes] = {}
        self._room = _MAX_LISTED
        self.is_complete = True  # whether `folders` has all folders, once it is known

    # -- listings ----------------------------------------------------------------------------------

    def entries(self, folder: Location) -> Iterable[FolderEntry]:
        """What is directly in a folder; kept while there is room."""
        known = self._listings.get(str(folder))
        if known is not None:
            return known
        listing = iter(folder.list_entries())
        first = list(itertools.islice(listing, self._room + 1))
        if len(first) > self._room:
            return itertools.chain(first, listing)
        self._room -= len(first)
        self._listings[str(folder)] = first
        return first

    def list_images(self, folder: Location) -> ImageListing:
        """The content of one folder, without the folders in it."""
        listing, head = ImageListing(folder), _head(folder)
        for entry in self.entries(folder):
            name = entry.name
            if name in INTERNAL_NAMES:
                continue
            if name.startswith("."):
                listing.hidden.append(head + name)
            elif entry.kind == "folder":
                listing.folders.append(name)
            elif is_image_file(folder, entry):
                listing.images.append(ImageEntry(name, entry.size_bytes, entry.version_number))
            else:
                listing.others.append(head + name)
        return listing

    def walk_images(
        self, listing: ImageListing, *, follows_links: bool = False
    ) -> Iterator[ImageEntry]:
        """Yield each image below the folder of a listing by path, and add the rest to the listing.

        A file is opened only if its name does not have an image suffix.
        """
        head = _head(listing.path)
        hidden: list[str] = []
        links: list[str] = []
        for name, folder, entry in self.walk(
            listing.path, hidden, None if follows_links else links
        ):
            if is_image_file(folder, entry):
                yield ImageEntry(name, entry.size_bytes, entry.version_number)
            else:
                listing.others.append(head + name)
        listing.hidden = [head + name for name in hidden]
        listing.links = [head + name for name in links]

    def walk(
        self,
        folder: Location,
        hidden: list[str],
        links: list[str] | None = None,
        excluded: Container[str] = (),
    ) -> Iterator[tuple[str, Location, FolderEntry]]:
        """Yield each file below a folder: its relative path with `/`, its folder, and its entry.

        `hidden` receives the relative paths of skipped files, pipes and devices among them, `links`
        those of links to folders; without it, they are followed. Relative paths that are excluded
        are left out.
        """
        # with a stack instead of recursion, as folders may be nested thousands of levels deep
        stack: list[tuple[str, Location, tuple[str, ...], Iterator[FolderEntry]]]
        stack = [("", folder, (folder.identity,), self._in_order(folder))]
        while stack:
            prefix, here, above, left = stack[-1]
            for entry in left:
                name = prefix + entry.name
                if entry.name in INTERNAL_NAMES or name in excluded:
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
                        inner = self._in_order(below)
                        stack.append((f"{name}/", below, (*above, identity), inner))
                        break
            else:
                stack.pop()

    def list_outside(self, folder: Location, places: Iterable[Location] = ()) -> OtherFiles:
        """What is below a folder, but not below some places. Links to folders are left out."""
        excluded = {str(place.relative_to(folder)) for place in places}
        images: list[str] = []
        others: list[str] = []
        hidden: list[str] = []
        if "" not in excluded:
            for path, here, entry in self.walk(folder, hidden, [], excluded):
                (images if has_image_name(path) else others).append(str(here / entry.name))
        return OtherFiles(images, others, [_head(folder) + name for name in hidden])

    def has_direct_image(self, folder: Location) -> bool:
        """Whether there is an image in a folder itself."""
        return any(
            is_image_file(folder, entry)
            for entry in self.entries(folder)
            if not entry.name.startswith(".") and entry.kind != "folder"
        )

    def _in_order(self, folder: Location) -> Iterator[FolderEntry]:
        """What is in a folder; a folder is where the paths of the files in it are."""
        return iter(
            sorted(
                self.entries(folder),
                key=lambda entry: f"{entry.name}/" if entry.kind == "folder" else entry.name,
            )
        )

    # -- summary -----------------------------------------------------------------------------------

    @cached_property
    def folders(self) -> dict[str, FolderScan]:
        """The folders by path, with all folders above them; at most `max_folders`."""
        scans: dict[str, FolderScan] = {}
        name_count = 0
        stack: list[tuple[str, Location, tuple[str, ...]]]
        stack = [("", self.root, (self.root.identity,))]
        while stack and len(scans) < self._max_folders:
            path, location, above = stack.pop()
            scan = scans[path] = FolderScan(path)
            try:
                max_names = _NAMES_KEPT if name_count < _KEPT_IN_ALL else _FEWER_KEPT
                inner = _scan_entries(scan, self.entries(location), max_names)
            except FileAccessError:
                if not path:
                    raise
                continue  # packing reports it
            name_count += sum(map(len, scan.by_suffix.values()))
            head = f"{path}/" if path else ""
            for name in reversed(inner):
                below = location / name
                identity = below.identity
                if identity not in above:
                    stack.append((head + name, below, (*above, identity)))
        self.is_complete = not stack
        return scans

    def below(self, folder: str) -> FileTree:
        """What a folder below the root contains, which is not listed again."""
        if not folder:
            return self
        tree, head = FileTree(self.root / folder), f"{folder}/"
        tree._listings, tree._heads = self._listings, self._heads
        if folder in self.folders:
            tree.is_complete = self.is_complete
            tree.folders = {
                path[len(head) :]: replace(scan, path=path[len(head) :])
                for path, scan in self.folders.items()
                if f"{path}/".startswith(head)
            }
        return tree

    @cached_property
    def tops(self) -> list[str]:
        """The names of the folders in the root."""
        return self.inside("")

    @cached_property
    def _inside(self) -> Mapping[str, list[str]]:
        names: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.folders:
            if path:
                above, _, name = path.rpartition("/")
                names[above].append(name)
        return names

    def inside(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        return self._inside.get(folder, [])

    def filled(self, folder: str) -> list[str]:
        """The names of the folders in a folder that contain images at any depth.

        Of a tree with too many folders for the summary, all folders.
        """
        if not self.is_complete:
            return self.list_images(self.root / folder if folder else self.root).folders
        head = f"{folder}/" if folder else ""
        return [name for name in self.inside(folder) if self.image_counts[head + name]]

    def scan(self, folder: str) -> FolderScan:
        """The summary of a folder, also of one beyond those in `folders`."""
        known = self.folders.get(folder)
        if known is None:
            known = FolderScan(folder)
            _scan_entries(known, self.entries(self.root / folder), _NAMES_KEPT)
        return known

    def direct_count(self, folder: str) -> int:
        """The number of images in a folder itself."""
        return self.scan(folder).image_count

    def files(self, *suffixes: str, depth: int | None = None) -> Iterator[str]:
        """Yield the known paths with one of these endings in lower case, the shallowest first."""
        for folder in sorted(self.folders.values(), key=lambda scan: scan.path.count("/")):
            if depth is None or (folder.path.count("/") + bool(folder.path)) <= depth:
                for name in folder.ending(suffixes):
                    yield f"{folder.path}/{name}" if folder.path else name

    def head(self, path: str) -> bytes:
        """The first 64 KiB of a file; empty if it cannot be read. Some are kept."""
        file = self.root / path
        head = self._heads.get(str(file))
        if head is None:
            try:
                head = file.read(0, HEAD_BYTES)
            except FileAccessError:
                head = b""
            if len(self._heads) < _MAX_HEADS:
                self._heads[str(file)] = head
        return head

    @cached_property
    def image_counts(self) -> Mapping[str, int]:
        """The number of images in each folder and all folders below it."""
        return self._sums({path: scan.image_count for path, scan in self.folders.items()})

    @cached_property
    def file_counts(self) -> Mapping[str, int]:
        """The number of files in each folder and all folders below it."""
        return self._sums({path: scan.file_count for path, scan in self.folders.items()})

    def _sums(self, counts: dict[str, int]) -> dict[str, int]:
        for path in sorted(self.folders, key=lambda path: -path.count("/")):
            if path:
                counts[path.rpartition("/")[0]] += counts[path]
        return counts


class TreeSource:
    """A source whose first listing uses what the detector has listed."""

    _tree: FileTree | None = None

    def use_tree(self, tree: FileTree) -> None:
        """List the next samples from a tree that was just scanned."""
        self._tree = tree

    def _take_tree(self, root: Location) -> FileTree:
        tree, self._tree = self._tree, None
        return FileTree(root) if tree is None else tree


def _scan_entries(folder: FolderScan, entries: Iterable[FolderEntry], max_names: int) -> list[str]:
    """Add the files in a folder to its scan; returns the names of the folders in it."""
    counts: defaultdict[str, int] = defaultdict(int)
    known: dict[str, list[str]] = {}
    inner = []
    for entry in entries:
        name = entry.name
        if name[0] == "." or name in INTERNAL_NAMES:
            continue
        if entry.kind == "folder":
            inner.append(name)
            continue
        if entry.kind == "special":
            continue
        dot = name.rfind(".")
        suffix = name[dot:].lower() if dot > 0 else ""
        counts[suffix] += 1
        names = known.get(suffix)
        if names is None:
            if len(known) >= _SUFFIXES_KEPT and suffix not in IMAGE_SUFFIXES:
                continue  # too many different ones to keep their names
            names = known[suffix] = []
        names.append(name)
        if len(names) > 4 * _NAMES_KEPT:
            names[:] = heapq.nsmallest(max_names, names, sampling_key)
    for suffix, names in known.items():
        if counts[suffix] > max_names:
            names = heapq.nsmallest(max_names, names, sampling_key)  # noqa: PLW2901
            if suffix in IMAGE_SUFFIXES:
                last = sampling_key(names[-1]) if names else 0
                folder.highest_key = min(folder.highest_key, last)
        folder.by_suffix[suffix] = sorted(names)
    folder.suffixes = Counter(counts)
    return inner


def _head(folder: Location) -> str:
    """What precedes relative paths in full paths."""
    return str(folder / "_")[:-1]
