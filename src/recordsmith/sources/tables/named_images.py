"""Find the image files that the rows of a table name, with or without their suffix.

A name is relative to the folder of its table and must not lead out of the folder that is read;
links inside it are followed. Of an absolute path to another folder, also from Windows, only the
last part is used. Only the folders in these names are listed, each once; `FileIndex` lists all.
"""

from __future__ import annotations

import posixpath
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.sources.files.account import Account, Reason, Role
from recordsmith.sources.files.file_index import FileIndex, Found, name_key
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import has_image_name, without_suffix
from recordsmith.sources.files.namesakes import are_copies
from recordsmith.sources.files.paths import is_absolute, join_path, leaves_folder, with_slashes
from recordsmith.sources.flaws import Check
from recordsmith.sources.numbered import Coding, References, RowNames
from recordsmith.sources.problems import count_notice, join_names
from recordsmith.sources.splits import find_split, sort_splits
from recordsmith.sources.tables.encoded_rows import MAX_FAULTS
from recordsmith.stores import FolderEntry
from recordsmith.support.errors import FileAccessError, SourceError
from recordsmith.support.words import count

_LAST_PART = "found by the last part of an absolute path"
_OTHER_NAME = "found under another suffix or spelling"
_ONE_OF_MANY = "the row has no image, like many rows before it"
_MAX_SHOWN = 20


class _Folder:
    """The files in one folder, for lookups with other suffixes and in other letter case.

    named: those that rows name.
    """

    def __init__(self, entries: Iterable[FolderEntry]) -> None:
        self.named: set[str] = set()
        self._files = {
            entry.name: (entry.size_bytes, entry.version_number)
            for entry in entries
            if entry.kind == "object" and not entry.name.startswith(".")
        }

    def find(self, name: str) -> tuple[str, int, int] | None:
        """Name, size and version number of a file; None without one, or with several."""
        if name not in self._files:
            names = self.like(name)
            if len(names) != 1:
                return None
            (name,) = names
        self.named.add(name)
        return (name, *self._files[name])

    def like(self, name: str) -> list[str]:
        """Images with another suffix or spelling of a name."""
        return self._by_stem.get(name_key(without_suffix(name)), [])

    def unnamed(self) -> list[str]:
        return [name for name in self._files if name not in self.named and has_image_name(name)]

    @cached_property
    def images(self) -> frozenset[str]:
        """The names of the images."""
        return frozenset(filter(has_image_name, self._files))

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        by_stem: dict[str, list[str]] = {}
        for name in filter(has_image_name, self._files):
            by_stem.setdefault(name_key(without_suffix(name)), []).append(name)
        return by_stem


class ImageFinder:
    """Finds images by paths relative to a folder, with or without their suffix.

    folders: those where images were looked for, by path.
    """

    def __init__(self, entries: Callable[[str], Iterable[FolderEntry]]) -> None:
        """`entries` lists a folder, by its relative path."""
        self._entries = entries
        self.folders: dict[str, _Folder] = {}

    def folder(self, path: str) -> _Folder:
        """A folder, without files if it does not exist."""
        if path not in self.folders:
            entries: Iterable[FolderEntry] = ()
            with suppress(FileAccessError):
                entries = list(self._entries(path))
            self.folders[path] = _Folder(entries)
        return self.folders[path]

    def find(self, path: str) -> tuple[str, int, int] | None:
        """The path, size and version of an image; None without one, or with several."""
        folder, slash, name = path.rpartition("/")
        file = self.folder(folder).find(name)
        return None if file is None else (folder + slash + file[0], *file[1:])


class _Search:
    """Finds the images of a tree; a bare name also below its root, if asked."""

    def __init__(self, tree: FileTree, *, is_below: bool) -> None:
        self._tree, self._is_below = tree, is_below
        self.finder = ImageFinder(self._entries)
        self._copied: dict[str, bool] = {}

    def find(self, path: str) -> tuple[str, int, int] | None:
        file = self.finder.find(path)
        is_bare = "/" not in path and self._is_below
        if file is None and is_bare and not self.finder.folder("").like(path):
            match = self._index.find_image(path, [""])
            if isinstance(match, Found) and not self._is_copied(posixpath.dirname(match.path)):
                file = self.finder.find(match.path)
        return file

    def _is_copied(self, folder: str) -> bool:
        """Whether a folder has copies of the images above it, and so is not that of others."""
        if folder not in self._copied:
            own, above = self.finder.folder(folder).images, self.finder.folder("").images
            self._copied[folder] = are_copies(len(own), len(above), len(own & above))
        return self._copied[folder]

    def _entries(self, path: str) -> Iterable[FolderEntry]:
        place = self._tree.place(path)
        return () if self._tree.leaves_out(place) else self._tree.entries(place)

    @cached_property
    def _index(self) -> FileIndex:
        return FileIndex(self._tree)


class NamedImages:
    """The images in a column; receives the values of the column while the table is listed.

    left_out: the numbers of the rows whose images the caller leaves out.
    """

    def __init__(
        self,
        column: str,
        tree: FileTree,
        table_folders: Sequence[str],
        *,
        searches_below: bool = False,
    ) -> None:
        """`tree` is that of the folder of the images."""
        self.folder = tree.root
        self._column = column
        self._table_folders = table_folders
        self._search = _Search(tree, is_below=searches_below)
        self._finder = self._search.finder
        # what the caller leaves out is looked up as well, as its rows have no problem
        whole = _Search(FileTree(tree.root), is_below=searches_below)
        self._requested = whole if tree.leave_out else None
        self.clear()

    def read(self, batch: Any, name: str) -> list[str | None]:
        """The names of the images of a `RowBatch`."""
        return batch.category(name)  # type: ignore[no-any-return]

    def extend(self, values: Sequence[str | None], table: int) -> None:
        table_folder = self._table_folders[table]
        for value in values:
            file = folder = None
            is_left_out = False
            try:
                path = self._path(value, table_folder)
                file = self._find(path)
                is_left_out = file is None and self._is_requested(path)
                folder = None if is_left_out else path.rpartition("/")[0]
                problem = f"no image file {value!r}, or several that fit"
            except SourceError as error:
                problem = error.problem
            if is_left_out:
                self.left_out.append(len(self._sizes))
            elif file is None:
                is_one_of_many = len(self._problems) >= MAX_FAULTS
                self._problems[len(self._sizes)] = _ONE_OF_MANY if is_one_of_many else problem
                if value is not None and len(self._missing) < _MAX_SHOWN:
                    self._missing.append(value)
            image, size, version = file or ("", 0, 0)
            self._paths += image.encode("utf-8", "surrogateescape")
            self._path_ends.append(len(self._paths))
            self._sizes.append(size)
            self._versions.append(version)
            self._row_folders.append(self._folders.setdefault(folder, len(self._folders) - 1))

    def clear(self) -> None:
        self._sizes, self._versions = array("q"), array("q")
        self._paths, self._path_ends = bytearray(), array("q", [0])
        self._folders: dict[str | None, int] = {None: -1}
        self._row_folders = array("i")
        self._missing: list[str] = []
        self.left_out = array("q")
        self._problems: dict[int, str] = {}  # of rows without an image
        self._changed: dict[str, tuple[int, str]] = {}  # how images were found by another name
        for names in self._finder.folders.values():
            names.named.clear()

    @property
    def are_missing(self) -> bool:
        """Whether no row has an image that is there."""
        return len(self._problems) + len(self.left_out) == len(self._sizes)

    def sizes(self) -> npt.NDArray[np.int64]:
        """int64, (rows,): the size of each row's image in bytes; 0 without one."""
        return np.array(self._sizes, np.int64)

    def versions(self, of_tables: int) -> npt.NDArray[np.int64]:
        """int64, (rows,): the version of each row's image and of the tables together."""
        return np.array(self._versions, np.int64) ^ of_tables

    def splits(self) -> Coding | None:
        """The split of each row, if all images are in folders named like splits, of several."""
        of_folders = [find_split(f"{folder}/") for folder in self._folders if folder is not None]
        names = sort_splits(name for name in of_folders if name is not None)
        if None in of_folders or len(names) < 2:
            return None
        # a row without a name of an image fails when it is read, in any split
        numbers = np.array([*(names.index(name or "") for name in of_folders), 0], np.int32)
        return names, numbers[np.array(self._row_folders, np.int32)]

    def in_several_splits(self, splits: Coding) -> dict[str, set[str]]:
        """The images of rows in several splits, and these splits."""
        if not self._repeated_count:
            return {}
        names, numbers = splits
        of_images: dict[bytes, set[int]] = {}
        for row, number in enumerate(numbers.tolist()):
            path = bytes(self._paths[self._path_ends[row] : self._path_ends[row + 1]])
            of_images.setdefault(path, set()).add(number)
        return {
            path.decode("utf-8", "surrogateescape"): {names[number] for number in of_image}
            for path, of_image in of_images.items()
            if path and len(of_image) > 1
        }

    def references(self, names: RowNames) -> References:
        """The references of rows, with the `image` of each that has one, relative to the folder."""

        def reference(row: int) -> Mapping[str, Any]:
            if row in self._problems:
                return {**names.reference(row), "problem": self._problems[row]}
            path = self._paths[self._path_ends[row] : self._path_ends[row + 1]]
            return {**names.reference(row), "image": path.decode("utf-8", "surrogateescape")}

        return reference

    def add_to(self, account: Account, above: str) -> None:
        """Add the images to an account; `above` is their folder in that of the source."""
        for path, files in self._finder.folders.items():
            folder = join_path(above, path)
            head = f"{folder}/" if folder else ""
            account.read(Role.IMAGE, {head + name for name in files.named})
            unnamed = [head + name for name in files.unnamed()] if files.named else []
            check = Check.IMAGE_WITHOUT_ANNOTATION
            account.leave(Reason.UNLISTED, unnamed, "image", "without a row skipped", check)

    def notices(self, *, counts_unnamed: bool = True) -> list[str]:
        """Rows without an image; and images without a row, unless an account has them."""
        notices: list[str] = []
        for how, (number, first) in self._changed.items():
            notices.append(f"{count(number, 'image')} {how}, such as {first}")
        if self._problems:
            rows = count(len(self._problems), "row")
            shown = f": {join_names(self._missing)}" if self._missing else ""
            notices.append(f"{rows} without an image file in {self.folder}{shown}")
        if self.left_out:
            notices.append(f"{count(len(self.left_out), 'row')} skipped: image left out")
        if self._repeated_count:
            rows = count(self._repeated_count, "row")
            notices.append(f"{rows} with the image of another row: each row is a record")
        unnamed = [
            posixpath.join(folder, name)
            for folder, names in self._finder.folders.items()
            if names.named and counts_unnamed
            for name in names.unnamed()
        ]
        return notices + count_notice(unnamed, "image", "without a row skipped")

    @property
    def _repeated_count(self) -> int:
        """How many rows have the image of another row."""
        images = sum(len(folder.named) for folder in self._finder.folders.values())
        return len(self._sizes) - len(self._problems) - len(self.left_out) - images

    def _path(self, value: str | None, table_folder: str) -> str:
        """The path of the image that a row names, relative to the folder of all images."""
        if value is None:
            raise SourceError(f"column {self._column!r} is empty; expected an image file")
        name = with_slashes(value)
        head = f"{self.folder.identity}/"
        if name.startswith(head):
            name = name.removeprefix(head)
        elif is_absolute(name):
            name = name.rpartition("/")[2]
            self._note(_LAST_PART, value)
        name = posixpath.normpath(posixpath.join(table_folder, name))
        if leaves_folder(name) or name == "." or "\0" in name:
            raise SourceError(f"the image {value!r} is outside the folder of the images")
        return name

    def _note(self, how: str, name: str) -> None:
        number, first = self._changed.get(how, (0, name))
        self._changed[how] = number + 1, first

    def _find(self, path: str) -> tuple[str, int, int] | None:
        """The path, size and version of an image."""
        file = self._search.find(path)
        last = posixpath.basename(path)
        if file is not None and posixpath.basename(file[0]) != last and has_image_name(last):
            self._note(_OTHER_NAME, path)
        return file

    def _is_requested(self, path: str) -> bool:
        """Whether an image that was not found is left out by the caller."""
        return self._requested is not None and self._requested.find(path) is not None
