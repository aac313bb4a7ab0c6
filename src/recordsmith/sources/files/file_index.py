"""Find files below a folder by the names that annotations use for them.

Annotations name images by paths of other machines, with other suffixes or in other letter case.
The folder is walked once, and only files found by that walk are returned, so that no name leads
outside the folder.
"""

from __future__ import annotations

import os
import posixpath
import unicodedata
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.files.folders import check_folder, walk_files
from recordsmith.sources.files.foreign_paths import with_slashes
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.problems import join_names
from recordsmith.stores import Location

FOUND_BY_LAST_PART = "images were found by the last part of the path in their annotation"
FOUND_BY_OTHER_SPELLING = "images were found under another spelling than in their annotation"
FOUND_WITH_SUFFIX = "images were found under another suffix than in their annotation"


class Found(NamedTuple):
    """A file, relative to the root, and the note on how it was found; None for an exact match."""

    path: str
    change: str | None = None


class FileIndex:
    """The files below a folder, without hidden ones. Immutable, so threads may share it.

    Attributes:
        paths: relative to the root, with `/`, sorted; links are followed, except circular ones.
        hidden: skipped files and folders, also relative.
    """

    def __init__(self, root: Location) -> None:
        """
        Raises:
            OptionError: the root is a file.
            FileAccessError: the root does not exist, or a folder cannot be read.
        """
        check_folder(root, "the folder of the dataset")
        self.root = root
        self.hidden: list[str] = []
        found = sorted(
            (path, entry.size_bytes, entry.version_number)
            for path, _, entry in walk_files(root, self.hidden)
        )
        self.paths = tuple(path for path, _, _ in found)
        self._sizes = array("q", (size for _, size, _ in found))
        self._versions = array("q", (version for _, _, version in found))
        self._known = {path: number for number, path in enumerate(self.paths)}
        self._by_name: dict[str, list[str]] | None = None
        self._by_stem: dict[str, list[str]] | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def size_and_version(self, path: str) -> tuple[int, int]:
        """Size in bytes and version number; 0 for a broken link, which fails when read."""
        number = self._known.get(path)
        return (0, 0) if number is None else (self._sizes[number], self._versions[number])

    def version_of(self, path: str) -> int:
        """The version number of a file."""
        return self.size_and_version(path)[1]

    def find(self, name: str, folders: Sequence[str], near: str = "") -> Found | list[str]:
        """Find the file that an annotation calls `name`.

        Args:
            name: a path relative to one of the folders, or from another machine.
            folders: where to look, best first; "" is the root.
            near: path of the annotation: of several candidates the nearest one wins.

        Returns:
            The file; or all candidates if the name is ambiguous; empty if there are none.
        """
        for folder in folders:
            path = _joined(folder, name)
            if path in self._known:
                return Found(path)
        plain = with_slashes(name)
        last = posixpath.basename(plain.rstrip("/"))
        if not last:
            return []
        if plain != name:
            for folder in folders:
                path = _joined(folder, plain)
                if path in self._known:
                    return Found(path, FOUND_BY_OTHER_SPELLING)
        candidates = self._named(last)
        exact = [path for path in candidates if posixpath.basename(path) == last]
        best = _nearest(exact or candidates, plain, folders, near)
        if len(best) != 1:
            return best
        if plain != last:
            return Found(best[0], FOUND_BY_LAST_PART)
        return Found(best[0], None if exact else FOUND_BY_OTHER_SPELLING)

    def find_image(self, name: str, folders: Sequence[str], near: str = "") -> Found | list[str]:
        """Like `find`, but also with a missing or wrong suffix."""
        found = self.find(name, folders, near)
        if isinstance(found, Found) or found:
            return found
        plain = name.replace("\\", "/")
        last = posixpath.basename(plain.rstrip("/"))
        candidates = self._find_stem(last)
        if not candidates and has_image_name(last):
            candidates = self._find_stem(os.path.splitext(last)[0])
        best = _nearest(candidates, os.path.splitext(plain)[0], folders, near)
        return Found(best[0], FOUND_WITH_SUFFIX) if len(best) == 1 else best

    def _named(self, last: str) -> list[str]:
        if self._by_name is None:
            names: dict[str, list[str]] = {}
            for path in self.paths:
                names.setdefault(name_key(posixpath.basename(path)), []).append(path)
            self._by_name = names
        return self._by_name.get(name_key(last), [])

    def _find_stem(self, stem: str) -> list[str]:
        if self._by_stem is None:
            stems: dict[str, list[str]] = {}
            for path in self.paths:
                if has_image_name(path):
                    key = name_key(os.path.splitext(posixpath.basename(path))[0])
                    stems.setdefault(key, []).append(path)
            self._by_stem = stems
        return self._by_stem.get(name_key(stem), [])


def not_found(found: Found | list[str], name: str, where: str = "", noun: str = "image") -> str:
    """The problem with a file that `find` did not find.

    Args:
        found: what `find` returned.
        name: what it looked for.
        where: where it looked.
        noun: what the file should be.
    """
    if isinstance(found, Found):
        return f"{name!r} is not an image"
    if found:
        return f"{noun} {name!r} is ambiguous: it may be {join_names(found, 'or')}"
    return f"{noun} {name!r} not found{f' in {where}' if where else ''}"


def no_files(root: Location, expected: str, index: FileIndex) -> SourceError:
    """The error for a folder without the files that a source needs."""
    if not index.paths:
        return SourceError(
            f"nothing to pack: the folder has no files; expected {expected}", path=root
        )
    folders = sorted({path.split("/")[0] + "/" for path in index.paths if "/" in path})
    files = [path for path in index.paths if "/" not in path]
    found = join_names([*folders, *files])
    return SourceError(
        f"nothing to pack: found {found}; expected {expected}",
        path=root,
        remedy="Check that this is the right folder.",
    )


def _joined(folder: str, name: str) -> str:
    """A normalized path; the index contains none that lead out of the root."""
    return posixpath.normpath(posixpath.join(folder, name))


def name_key(name: str) -> str:
    """The same key for all spellings of a name: Unicode form and letter case."""
    return unicodedata.normalize("NFC", name).casefold()


def _nearest(candidates: Sequence[str], name: str, folders: Sequence[str], near: str) -> list[str]:
    """The candidates whose folders match best: the name's own, the preferred, the near ones."""
    if len(candidates) < 2:
        return list(candidates)

    def rank(path: str) -> tuple[int, int, int]:
        folder = posixpath.dirname(path)
        preferred = -folders.index(folder) if folder in folders else -len(folders)
        return _shared_end(path, name), preferred, _shared_start(path, near)

    ranks = [rank(path) for path in candidates]
    best = max(ranks)
    return [path for path, own in zip(candidates, ranks, strict=True) if own == best]


def _shared_start(one: str, other: str) -> int:
    return len(posixpath.commonprefix([one.split("/")[:-1], other.split("/")[:-1]]))


def _shared_end(one: str, other: str) -> int:
    """How many folders above the last part are equal."""
    ends = [name_key(path).split("/")[-2::-1] for path in (one, other)]
    return len(posixpath.commonprefix(ends))
