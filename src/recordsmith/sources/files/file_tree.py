"""`FileTree`: what lies below a root, listed once for the detector and the source that it chooses.

Hidden names are skipped. Links are followed, except to a folder above the link, so that walks end.
"""

from __future__ import annotations

import fnmatch
import heapq
import itertools
import os
import posixpath
import zlib
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from recordsmith.dataset import INTERNAL_NAMES
from recordsmith.image import IMAGE_SUFFIXES
from recordsmith.sources.files.account import Account, Inspector, Reason, Role
from recordsmith.sources.files.images import is_image_file
from recordsmith.sources.files.known_names import HIDDEN_LETTERS, is_hidden
from recordsmith.sources.files.paths import join_path, last_name
from recordsmith.stores import FolderEntry, Location, PlaceLike, as_place
from recordsmith.support.errors import FileAccessError, SourceError, option

HEAD_BYTES = 1 << 16
MAX_OPENED = 20
"""How many files of each suffix detectors open."""
MAX_TABLES = 50
"""How many tables they open."""
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
class FolderScan:
    """A bounded summary of the files directly in one folder, by their names.

    path: relative to the root with `/`, "" for the root itself.
    by_suffix: the names of files by suffix in lower case with its dot; of each suffix at most
        1,000, those with the smallest sampling keys.
    suffixes: how many files have each suffix.
    highest_key: names of images with a sampling key above it may be left out.
    hidden: the names of hidden files and folders.
    special: the names of pipes and devices.
    """

    path: str
    by_suffix: dict[str, list[str]] = field(default_factory=dict)
    suffixes: Counter[str] = field(default_factory=Counter)
    highest_key: int = HIGHEST_KEY
    hidden: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)

    @property
    def file_count(self) -> int:
        """The number of files, without hidden ones."""
        return self.suffixes.total()

    @cached_property
    def image_count(self) -> int:
        return sum(count for suffix, count in self.suffixes.items() if suffix in IMAGE_SUFFIXES)

    @cached_property
    def names(self) -> list[str]:
        return sorted(itertools.chain.from_iterable(self.by_suffix.values()))

    @cached_property
    def images(self) -> list[str]:
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

    explained: why the detector leaves out some files and folders; see `LayoutCandidate`.
    inspector: opens files that are left out.
    foreign: the files that are of a format of annotations that is not read, as the detector knows.
    is_detected: whether the detector chose the source, so that an account needs all files.
    """

    def __init__(
        self, root: Location, max_folders: int = _MAX_SCANNED, leave_out: Sequence[str] = ()
    ) -> None:
        """`leave_out`: names, paths or patterns of files and folders that are as if not there."""
        self.root = root
        self.leave_out = tuple(leave_out)
        self.matched: set[str] = set()  # of these, once `folders` is known
        self.explained: Mapping[str, tuple[Reason, str]] = {}
        self.inspector: Inspector | None = None
        self.foreign: frozenset[str] = frozenset()
        self.is_detected = False
        self._top = root  # that the names are relative to
        self._max_folders = max_folders
        self._listings: dict[str, list[FolderEntry]] = {}
        self._heads: dict[str, bytes] = {}
        self._room = _MAX_LISTED
        self._requested: dict[str, list[FolderEntry]] = {}
        self._of_requested: dict[str, list[str]] = {}
        self.is_complete = True  # whether `folders` has all folders, once it is known

    def place(self, path: str) -> Location:
        return self.root / path if path else self.root

    def entries(self, folder: Location) -> Iterable[FolderEntry]:
        """What is directly in a folder; kept while there is room."""
        known = self._listings.get(str(folder))
        if known is not None:
            return known
        listing = iter(folder.list_entries())
        if self.leave_out:
            listing = self._without_requested(folder, listing)
        first = list(itertools.islice(listing, self._room + 1))
        if len(first) > self._room:
            return itertools.chain(first, listing)
        self._room -= len(first)
        self._listings[str(folder)] = first
        return first

    def _without_requested(
        self, folder: Location, entries: Iterable[FolderEntry]
    ) -> Iterator[FolderEntry]:
        """What is in a folder and is not left out by the caller, whose names are kept."""
        path = folder.relative_to(self._top)
        if path is None:
            yield from entries
            return
        head = f"{path}/" if path else ""
        self._requested[path] = []
        for entry in entries:
            names = [name for name in self.leave_out if matches_any(head + entry.name, [name])]
            self.matched.update(names)
            if names:
                self._requested[path].append(entry)
            else:
                yield entry

    def leaves_out(self, place: Location) -> bool:
        """Whether the caller leaves out a file or folder, or a folder above it."""
        path = place.relative_to(self._top) if self.leave_out else None
        above = itertools.accumulate(path.split("/"), join_path) if path else ()
        return any(matches_any(name, self.leave_out) for name in above)

    def walk_images(
        self,
        folder: Location,
        account: Account,
        *,
        follows_links: bool = False,
        others: Mapping[str, list[str]] = MappingProxyType({}),
    ) -> Iterator[ImageEntry]:
        """Yield each image below a folder by its relative path; others go to the account.

        A file is opened only if its name does not have an image suffix. Paths of files that have
        one of the names in `others` are added to its list instead.
        """
        for path, here, entry in self.walk(folder, account, follows_links=follows_links):
            if entry.name in others:
                others[entry.name].append(self._path(folder, path))
            elif is_image_file(here, entry):
                yield ImageEntry(path, entry.size_bytes, entry.version_number)
            else:
                account.leave_other(self._path(folder, path))

    def walk(
        self,
        folder: Location,
        account: Account,
        *,
        follows_links: bool = True,
        excluded: Container[str] = (),
    ) -> Iterator[tuple[str, Location, FolderEntry]]:
        """Yield each file below a folder: its relative path with `/`, its folder, and its entry.

        Hidden files, pipes and devices go to the account. Relative paths that are excluded are
        passed over.
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
                is_odd = entry.name[0] in HIDDEN_LETTERS and is_hidden(entry.name)
                if is_odd or entry.kind == "special":
                    path = self._path(folder, name)
                    account.leave_unreadable([path], is_hidden=is_odd)
                elif entry.kind != "folder":
                    yield name, here, entry
                elif entry.is_link and not follows_links:
                    link = self._path(folder, name)
                    account.leave(Reason.LINK, [link], "link to a folder")
                else:
                    below = here / entry.name
                    identity = below.identity
                    if identity not in above:
                        inner = self._in_order(below)
                        stack.append((f"{name}/", below, (*above, identity), inner))
                        break
            else:
                stack.pop()

    def leave_others(
        self,
        places: Iterable[Location],
        account: Account,
        where: str = "",
        splits: Container[str] = (),
    ) -> None:
        """Add what is below the root, but not below some places; see `Account.leave_other`."""
        excluded = {str(place.relative_to(self.root)) for place in places}
        if "" not in excluded:
            walk = self.walk(self.root, account, follows_links=False, excluded=excluded)
            for path, _, _ in walk:
                account.leave_other(path, where, splits)

    def account(self) -> Account:
        """An account of the files below the root, which has none of them yet."""
        return Account(self.leave_out, self.explained)

    def finish(self, account: Account) -> Account:
        """Complete an account: with what the caller leaves out, and what no one reported."""
        if self.is_detected or "folders" in vars(self):
            for path, scan in self.folders.items():
                head = f"{path}/" if path else ""
                account.leave_unreadable([head + name for name in scan.hidden], is_hidden=True)
                account.leave_unreadable([head + name for name in scan.special], is_hidden=False)
            account.finish(
                (path, scan.file_count + len(scan.hidden) + len(scan.special), scan.names)
                for path, scan in self.folders.items()
            )
        # after the files that scans count, of which they are none
        for folder, entries in sorted(self._requested.items()):
            for entry in entries:
                files = self._files_of(join_path(folder, entry.name), entry)
                if (read := next(filter(account.is_read, files), None)) is not None:
                    raise SourceError(
                        f"{option('leave_out')} cannot leave out {read}, which this source needs",
                        path=self.root,
                        remedy="Move it out of the folder, or pass the other files by name.",
                    )
                account.leave(Reason.REQUESTED, files, what="left out")
        if self.inspector is not None:
            account.inspect(self.inspector)
        return account

    def requested_files(self) -> list[str]:
        """The files that the caller leaves out of the folders that were listed."""
        return [
            path
            for folder, entries in self._requested.items()
            for entry in entries
            for path in self._files_of(join_path(folder, entry.name), entry)
        ]

    def _files_of(self, path: str, entry: FolderEntry) -> list[str]:
        """A file, or the files below a folder, which is listed once."""
        if entry.kind != "folder":
            return [path]
        if path not in self._of_requested:
            hidden = Account()
            walk = FileTree(self._top / path).walk(self._top / path, hidden, follows_links=False)
            files = [name for name, _, _ in walk]
            files += (name for line in hidden.left_out for name in line.names)
            self._of_requested[path] = [f"{path}/{name}" for name in files]
        return self._of_requested[path]

    def _path(self, folder: Location, name: str) -> str:
        """The path relative to the root of a path relative to a folder."""
        return join_path(folder.relative_to(self.root), name)

    def folder_names(self, folder: Location) -> list[str]:
        return [
            entry.name
            for entry in self.entries(folder)
            if entry.kind == "folder" and not is_hidden(entry.name)
        ]

    def has_direct_image(self, folder: Location) -> bool:
        return any(
            is_image_file(folder, entry)
            for entry in self.entries(folder)
            if not is_hidden(entry.name) and entry.kind != "folder"
        )

    def _in_order(self, folder: Location) -> Iterator[FolderEntry]:
        """What is in a folder; a folder is where the paths of the files in it are."""
        return iter(
            sorted(
                self.entries(folder),
                key=lambda entry: f"{entry.name}/" if entry.kind == "folder" else entry.name,
            )
        )

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
        tree.leave_out, tree._requested, tree._top = self.leave_out, self._requested, self._top
        tree._of_requested = self._of_requested
        tree.matched = self.matched
        tree.foreign = frozenset(
            path.removeprefix(head) for path in self.foreign if path.startswith(head)
        )
        tree._listings, tree._heads = self._listings, self._heads
        if "folders" in vars(self) and folder in self.folders:
            tree.is_complete = self.is_complete
            tree.folders = {
                path[len(head) :]: replace(scan, path=path[len(head) :])
                for path, scan in self.folders.items()
                if f"{path}/".startswith(head)
            }
        return tree

    @cached_property
    def _inside(self) -> Mapping[str, list[str]]:
        names: defaultdict[str, list[str]] = defaultdict(list)
        for path in self.folders:
            if path:
                above, _, name = path.rpartition("/")
                names[above].append(name)
        return names

    def inside(self, folder: str) -> list[str]:
        return self._inside.get(folder, [])

    def filled(self, folder: str) -> list[str]:
        """The names of the folders in a folder that contain images at any depth.

        Of a tree with too many folders for the summary, all folders.
        """
        if not self.is_complete:
            return self.folder_names(self.place(folder))
        head = f"{folder}/" if folder else ""
        return [name for name in self.inside(folder) if self.image_counts[head + name]]

    def scan(self, folder: str) -> FolderScan:
        known = self.folders.get(folder)
        if known is None:
            known = FolderScan(folder)
            _scan_entries(known, self.entries(self.place(folder)), _NAMES_KEPT)
        return known

    def direct_count(self, folder: str) -> int:
        return self.scan(folder).image_count

    def files(self, *suffixes: str, depth: int | None = None) -> Iterator[str]:
        """Yield the known paths with one of these endings in lower case, the shallowest first."""
        for folder in sorted(self.folders.values(), key=lambda scan: scan.path.count("/")):
            if depth is None or (folder.path.count("/") + bool(folder.path)) <= depth:
                for name in folder.ending(suffixes):
                    yield join_path(folder.path, name)

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
    """A source of a folder `root`, whose first listing uses what the detector has listed."""

    _tree: FileTree | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"  # type: ignore[attr-defined]

    def describe(self) -> Mapping[str, Any]:
        return {"kind": type(self).__name__, "folder": last_name(self.root)}  # type: ignore[attr-defined]

    def use_tree(self, tree: FileTree) -> None:
        """List the next samples from a tree that was just scanned."""
        self._tree = tree

    def _files_account(
        self, role: Role, files: Iterable[Location], described: Sequence[str] = ()
    ) -> Account | None:
        """The account of a source of some large files; None if its folder was not scanned.

        described: names or patterns of documents that the source reads as well.
        """
        if self._tree is None:
            return None
        tree = self._take_tree(self._tree.root)
        account = tree.account()
        read = {path for file in files if (path := file.relative_to(tree.root)) is not None}
        scans = tree.folders.values()
        paths = (join_path(scan.path, name) for scan in scans for name in scan.names)
        account.read(role, read)
        documents = {path for path in paths if path not in read and matches_any(path, described)}
        account.read(Role.DESCRIPTION, documents)
        return tree.finish(account)

    def _take_tree(self, root: Location) -> FileTree:
        """The tree that was scanned; later another one, as files may have changed."""
        tree = self._tree
        if tree is None:
            return FileTree(root)
        self._tree = FileTree(root, leave_out=tree.leave_out)
        self._tree.explained, self._tree.inspector = tree.explained, tree.inspector
        self._tree.is_detected = True
        return tree


class PathSource(TreeSource):
    """A source that reads a folder, or else a file or a pattern of files."""

    def __init__(self, path: PlaceLike) -> None:
        self.path = as_place(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def root(self) -> Location | None:
        """The folder that is read; None for a file."""
        return self.path if self.path.is_folder() else None


def matches_any(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path, or its last part, is one of some names, paths or patterns with `*`."""
    name = posixpath.basename(path)
    return any(
        fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
    )


def _scan_entries(folder: FolderScan, entries: Iterable[FolderEntry], max_names: int) -> list[str]:
    """Add the files in a folder to its scan; returns the names of the folders in it."""
    counts: defaultdict[str, int] = defaultdict(int)
    known: dict[str, list[str]] = {}
    inner = []
    for entry in entries:
        name = entry.name
        if (name[0] in HIDDEN_LETTERS and is_hidden(name)) or entry.kind == "special":
            if name not in INTERNAL_NAMES:
                (folder.hidden if is_hidden(name) else folder.special).append(name)
            continue
        if entry.kind == "folder":
            inner.append(name)
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
