"""Find files below a folder by the names that annotations use for them.

Annotations name images by paths of other machines or by URLs, with other suffixes or in other
letter case.
The folder is walked once, and only files found by that walk are returned, so that no name leads
outside the folder.
"""

from __future__ import annotations

import posixpath
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from recordsmith.sources.files.file_tree import FileTree
from recordsmith.sources.files.images import has_image_name, stem_of
from recordsmith.sources.files.paths import check_folder, with_slashes
from recordsmith.sources.problems import join_names
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError
from recordsmith.support.words import common_prefix

FOUND_BY_LAST_PART = "images were found by the last part of the path in their annotation"
FOUND_BY_OTHER_SPELLING = "images were found under another spelling than in their annotation"
FOUND_OUTSIDE = "images were found outside of the folder of the others"
FOUND_WITH_SUFFIX = "images were found under another suffix than in their annotation"

_MAX_NAMESAKES = 64  # that are compared for each name


class Found(NamedTuple):
    """A file, relative to the root, and the note on how it was found; None for an exact match."""

    path: str
    change: str | None = None


class LeftOut(NamedTuple):
    """A file, relative to the root, that the caller leaves out."""

    path: str


class Namesake(NamedTuple):
    """Another file with the name, relative to the root; see `without_namesakes`."""

    path: str


Match: TypeAlias = Found | LeftOut | Namesake | list[str]
"""What is found for a name; all candidates if there is not one file."""


class FileIndex:
    """The files below a folder, without hidden ones. Immutable, so threads may share it.

    Attributes:
        tree: the folder.
        paths: relative to the root, with `/`, sorted; links are followed, except circular ones.
        left_out: the same of the files that the caller leaves out.
        account: has the hidden files and folders.
    """

    def __init__(self, tree: FileTree) -> None:
        self.root = root = tree.root
        check_folder(root, "the folder of the dataset")
        self.tree, self.account = tree, tree.account()
        found = sorted(
            (path, entry.size_bytes, entry.version_number)
            for path, _, entry in tree.walk(root, self.account)
        )
        self.paths = tuple(path for path, _, _ in found)
        self._sizes = array("q", (size for _, size, _ in found))
        self._versions = array("q", (version for _, _, version in found))
        self._known = {path: number for number, path in enumerate(self.paths)}
        self.left_out = frozenset(tree.requested_files())

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def size_and_version(self, path: str) -> tuple[int, int]:
        """Size in bytes and version number; 0 for a broken link, which fails when read."""
        number = self._known.get(path)
        return (0, 0) if number is None else (self._sizes[number], self._versions[number])

    def version_of(self, path: str) -> int:
        return self.size_and_version(path)[1]

    def find(self, name: str, folders: Sequence[str], near: str = "") -> Match:
        """Find the file that an annotation calls `name`; or all candidates, if there is not one.

        `name` is relative to one of the folders, the best first, or from another machine. Of
        several files with its last part, the folders in the name count most, then those in
        `folders`, then those next to `near`, the path of the annotation. A file that is left out is
        found like the others, so that none of them replaces it.
        """
        plain = with_slashes(name)
        for spelling in dict.fromkeys((name, plain)):
            for folder in folders:
                path = posixpath.normpath(posixpath.join(folder, spelling))
                if path in self._known or path in self.left_out:
                    how = None if spelling == name else FOUND_BY_OTHER_SPELLING
                    return self._match(path, how)
        last = posixpath.basename(plain.rstrip("/"))
        if not last:
            return []
        candidates = self._by_name.get(last, [])
        how = None if candidates else FOUND_BY_OTHER_SPELLING
        best = self._nearest(
            candidates or self._by_key.get(name_key(last), []), plain, folders, near
        )
        if len(best) != 1:
            return best
        return self._match(best[0], how if plain == last else FOUND_BY_LAST_PART)

    def find_image(self, name: str, folders: Sequence[str], near: str = "") -> Match:
        """Like `find`, but also with a missing or wrong suffix."""
        match = self.find(name, folders, near)
        if match:
            return match
        plain = with_slashes(name)
        last = posixpath.basename(plain.rstrip("/"))
        stems = [name_key(last), *([name_key(stem_of(last))] if has_image_name(last) else [])]
        candidates = next(filter(None, map(self._by_stem.get, stems)), [])
        best = self._nearest(candidates, plain, folders, near)
        return self._match(best[0], FOUND_WITH_SUFFIX) if len(best) == 1 else best

    def images_in(self, folder: str) -> list[str]:
        """The images directly in a folder."""
        return self._images_of.get(folder, [])

    def _match(self, path: str, how: str | None) -> Match:
        return Found(path, how) if path in self._known else LeftOut(path)

    def _nearest(self, paths: list[str], name: str, folders: Sequence[str], near: str) -> list[str]:
        """The paths whose folders match best; of very many, those with the same last folder.

        One path if all are left out.
        """
        if len(paths) > _MAX_NAMESAKES:
            paths = self._by_last_two.get(_last_two(name), paths)
        if len(paths) > _MAX_NAMESAKES:
            return [path for path in paths if path in self._known] or paths[:1]
        if len(paths) < 2:
            return paths
        ends, start = _ends(name), near.split("/")[:-1]

        def rank(path: str) -> tuple[int, int, int, bool]:
            folder = posixpath.dirname(path)
            preference = len(folders) - folders.index(folder) if folder in folders else 0
            nearness = _common(path.split("/")[:-1], start)
            return _common(_ends(path), ends), preference, nearness, folder in self._folders

        ranks = list(map(rank, paths))
        highest = max(ranks)
        best = [path for path, place in zip(paths, ranks, strict=True) if place == highest]
        return [path for path in best if path not in self._known][:1] or best

    @cached_property
    def _folders(self) -> set[str]:
        """Those of files that are not left out."""
        return set(map(posixpath.dirname, self.paths))

    @cached_property
    def _images_of(self) -> dict[str, list[str]]:
        return _grouped(filter(has_image_name, self.all_paths), posixpath.dirname)

    @cached_property
    def _by_last_two(self) -> dict[str, list[str]]:
        return _grouped(self.all_paths, _last_two)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        return _grouped(self.all_paths, posixpath.basename)

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        return _grouped(self.all_paths, lambda path: name_key(posixpath.basename(path)))

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        images = filter(has_image_name, self.all_paths)
        return _grouped(images, lambda path: name_key(stem_of(path)))

    @property
    def all_paths(self) -> Iterable[str]:
        """The paths, and those of files that are left out."""
        return (*self.paths, *sorted(self.left_out)) if self.left_out else self.paths


def _grouped(paths: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(key(path), []).append(path)
    return groups


def _common(parts: list[str], others: list[str]) -> int:
    """How many of the first parts are equal."""
    return len(common_prefix([parts, others]))


def _last_two(path: str) -> str:
    return name_key("/".join(path.split("/")[-2:]))


def not_found(found: Match, name: str, where: str = "", noun: str = "image") -> str:
    """The problem with a file that `find` did not find."""
    if isinstance(found, Found):
        return f"{name!r} is not an image"
    if isinstance(found, LeftOut):
        return f"{noun} {name!r} is left out"
    problem = f"{noun} {name!r} not found{f' in {where}' if where else ''}"
    if isinstance(found, Namesake):
        return f"{problem}; {found.path} has the same name, but the other images are elsewhere"
    if found:
        return f"{noun} {name!r} is ambiguous: it may be {join_names(found, 'or')}"
    return problem


def no_files(root: Location, expected: str, index: FileIndex) -> SourceError:
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


def name_key(name: str) -> str:
    """The same key for all spellings of a name: Unicode form, letter case, percent-encoding."""
    return unicodedata.normalize("NFC", unquote(name)).casefold()


def _ends(path: str) -> list[str]:
    """The folders above the last part, from the innermost."""
    return name_key(path).split("/")[-2::-1]
