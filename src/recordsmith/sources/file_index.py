"""Which file is meant? All files below a folder, found by the names that annotations use for them.

Annotations name pictures by paths of other machines, with other suffixes, in other letter case, or
not at all. The folder is walked once; then names are looked up in memory. Only files that the walk
met are ever found, so nothing that a name says leads outside of the folder.
"""

from __future__ import annotations

import os
import posixpath
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.folders import check_folder, files_below
from recordsmith.sources.foreign_paths import with_slashes
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.versions import size_and_time
from recordsmith.sources.wording import some

FOUND_BY_LAST_PART = "the picture that an annotation names was found by the last part of its path"
FOUND_BY_OTHER_SPELLING = "the picture that an annotation names was found in another spelling"
FOUND_WITH_SUFFIX = "the picture that an annotation names was found under another suffix"


class Found(NamedTuple):
    """A file, relative to the root, and how its name was changed to find it; None: not at all."""

    path: str
    change: str | None = None


class FileIndex:
    """The files below a folder, but for hidden ones. Immutable once made, so threads share it.

    Attributes:
        paths: relative to the root, with `/`, sorted; links are followed, circles are not.
        hidden: files and folders that were passed over, relative as well.
    """

    def __init__(self, root: Path) -> None:
        """
        Raises:
            OptionError: the root is a file.
            FileAccessError: it is not there, or a folder cannot be read.
        """
        check_folder(root, "the folder that holds the dataset")
        self.root = root
        hidden: list[str] = []
        self.paths = tuple(sorted(path for path, _ in files_below(root, hidden)))
        self.hidden = [Path(path).relative_to(root).as_posix() for path in hidden]
        self._known = frozenset(self.paths)
        self._by_name: dict[str, list[str]] | None = None
        self._by_stem: dict[str, list[str]] | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def full_path(self, path: str) -> str:
        """Of a relative path: one that can be opened."""
        return os.path.join(self.root, path)

    def size_and_time(self, path: str) -> tuple[int, int]:
        """Size in bytes and time of change; 0 for a link to nothing: reading it will say so."""
        return size_and_time(self.full_path(path))

    def time_of(self, path: str) -> int:
        """When a file was changed last, in nanoseconds."""
        return self.size_and_time(path)[1]

    def find(self, name: str, folders: Sequence[str], near: str = "") -> Found | list[str]:
        """The file that an annotation calls `name`.

        Args:
            name: a path from one of the folders, or of another machine.
            folders: where to look, best first; "" is the root.
            near: path of what names it: of several candidates the one nearest to it is taken.

        Returns:
            The file; or, if it is not clear which one is meant, all that may be; none: empty.
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

    def find_picture(self, name: str, folders: Sequence[str], near: str = "") -> Found | list[str]:
        """Like `find`; a suffix that is missing or wrong does not matter either."""
        found = self.find(name, folders, near)
        if isinstance(found, Found) or found:
            return found
        plain = name.replace("\\", "/")
        last = posixpath.basename(plain.rstrip("/"))
        candidates = self._with_stem(last)
        if not candidates and has_picture_name(last):
            candidates = self._with_stem(os.path.splitext(last)[0])
        best = _nearest(candidates, os.path.splitext(plain)[0], folders, near)
        return Found(best[0], FOUND_WITH_SUFFIX) if len(best) == 1 else best

    def _named(self, last: str) -> list[str]:
        if self._by_name is None:
            names: dict[str, list[str]] = {}
            for path in self.paths:
                names.setdefault(_key(posixpath.basename(path)), []).append(path)
            self._by_name = names
        return self._by_name.get(_key(last), [])

    def _with_stem(self, stem: str) -> list[str]:
        if self._by_stem is None:
            stems: dict[str, list[str]] = {}
            for path in self.paths:
                if has_picture_name(path):
                    key = _key(os.path.splitext(posixpath.basename(path))[0])
                    stems.setdefault(key, []).append(path)
            self._by_stem = stems
        return self._by_stem.get(_key(stem), [])


def not_found(found: Found | list[str], otherwise: str = "there is none of that name") -> str:
    """Why `find` did not give a file that can be taken, in words."""
    if isinstance(found, Found):
        return f"{found.path} is no picture"
    return f"it may be {some(found, 'or')}" if found else otherwise


def no_files(root: Path, expected: str, index: FileIndex) -> SourceError:
    """There is nothing that a source understands; says what there is."""
    if not index.paths:
        return SourceError(f"nothing to pack: expected {expected}; {root} holds no files")
    folders = sorted({path.split("/")[0] + "/" for path in index.paths if "/" in path})
    files = [path for path in index.paths if "/" not in path]
    found = some([*folders, *files])
    return SourceError(
        f"nothing to pack: expected {expected}; found {found} in {root}; check that this is the "
        "right folder"
    )


def _joined(folder: str, name: str) -> str:
    """A path as the walk would have met it; one that leads out of the root is none of those."""
    return posixpath.normpath(posixpath.join(folder, name))


def _key(name: str) -> str:
    """What is alike in the same name as other systems and people write it."""
    return unicodedata.normalize("NFC", name).casefold()


def _nearest(candidates: Sequence[str], name: str, folders: Sequence[str], near: str) -> list[str]:
    """Those whose folders agree best with the folders of the name, and with where it is said."""
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
    """How many folders above the last part are the same."""
    ends = [_key(path).split("/")[-2::-1] for path in (one, other)]
    return len(posixpath.commonprefix(ends))
