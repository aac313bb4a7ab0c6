"""Find files below a folder by the names that annotations use for them.

Annotations name images by paths of other machines, with other suffixes or in other letter case.
The folder is walked once, and only files found by that walk are returned, so that no name leads
outside the folder.
"""

from __future__ import annotations

import posixpath
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.paths import check_folder, with_slashes
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

    def __init__(self, tree: FileTree) -> None:
        self.root = root = tree.root
        check_folder(root, "the folder of the dataset")
        self.hidden: list[str] = []
        found = sorted(
            (path, entry.size_bytes, entry.version_number)
            for path, _, entry in tree.walk(root, self.hidden)
        )
        self.paths = tuple(path for path, _, _ in found)
        self._sizes = array("q", (size for _, size, _ in found))
        self._versions = array("q", (version for _, _, version in found))
        self._known = {path: number for number, path in enumerate(self.paths)}

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
        """Find the file that an annotation calls `name`; or all candidates, if there is not one.

        `name` is relative to one of the folders, the best first, or from another machine. The
        nearest of several candidates to `near` wins, the path of the annotation.
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
        exact = self._by_name.nearest(last, plain, folders, near)
        best = exact or self._by_spelling.nearest(name_key(last), plain, folders, near)
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
        plain = with_slashes(name)
        last = posixpath.basename(plain.rstrip("/"))
        best = self._by_stem.nearest(name_key(last), plain, folders, near)
        if not best and has_image_name(last):
            best = self._by_stem.nearest(name_key(stem_of(last)), plain, folders, near)
        return Found(best[0], FOUND_WITH_SUFFIX) if len(best) == 1 else best

    @cached_property
    def _by_name(self) -> _PathsByName:
        return _PathsByName(self.paths, posixpath.basename)

    @cached_property
    def _by_spelling(self) -> _PathsByName:
        return _PathsByName(self.paths, lambda path: name_key(posixpath.basename(path)))

    @cached_property
    def _by_stem(self) -> _PathsByName:
        images = filter(has_image_name, self.paths)
        return _PathsByName(images, lambda path: name_key(stem_of(path)))


class _PathsByName:
    """Files by a key of their names, and of those with one key the nearest ones."""

    def __init__(self, paths: Iterable[str], key: Callable[[str], str]) -> None:
        self._paths: dict[str, list[str]] = {}
        for path in paths:
            self._paths.setdefault(key(path), []).append(path)
        self._trees: dict[str, _Tree] = {}

    def nearest(self, key: str, name: str, folders: Sequence[str], near: str) -> list[str]:
        """The files of a key whose folders match best.

        The folders in the name count most, then those in `folders`, then those next to `near`.
        The time does not grow with the number of files, as each of them may be looked up.
        """
        paths = self._paths.get(key, [])
        if len(paths) < 2:
            return paths
        if key not in self._trees:
            self._trees[key] = _Tree([(path, _ends(path)) for path in paths])
        tree = self._trees[key].descend(_ends(name))
        preferred = (tree.by_folder[folder] for folder in folders if folder in tree.by_folder)
        return next(preferred, None) or tree.by_start.descend(near.split("/")[:-1]).paths


class _Tree:
    """Paths by some of their parts. Only the branches that are used are made, each once."""

    def __init__(self, items: list[tuple[str, list[str]]], depth: int = 0) -> None:
        self._items = items
        self._depth = depth

    def descend(self, parts: Iterable[str]) -> _Tree:
        """The paths that have as many of the first parts as possible."""
        tree = self
        for part in parts:
            if len(tree._items) == 1 or part not in tree._branches:
                break
            tree = tree._branches[part]
        return tree

    @cached_property
    def _branches(self) -> dict[str, _Tree]:
        found: dict[str, list[tuple[str, list[str]]]] = {}
        for item in self._items:
            if self._depth < len(item[1]):
                found.setdefault(item[1][self._depth], []).append(item)
        return {part: _Tree(items, self._depth + 1) for part, items in found.items()}

    @cached_property
    def paths(self) -> list[str]:
        return [path for path, _ in self._items]

    @cached_property
    def by_folder(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.paths:
            found.setdefault(posixpath.dirname(path), []).append(path)
        return found

    @cached_property
    def by_start(self) -> _Tree:
        """The same paths by their folders from the root."""
        return _Tree([(path, path.split("/")[:-1]) for path in self.paths])


def not_found(found: Found | list[str], name: str, where: str = "", noun: str = "image") -> str:
    """The problem with a file that `find` did not find."""
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


def _ends(path: str) -> list[str]:
    """The folders above the last part, from the innermost."""
    return name_key(path).split("/")[-2::-1]
