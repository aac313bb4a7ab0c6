"""Which file is meant? All files below a folder, found by the names that annotations use for them.

Annotations name pictures by paths of other machines, with other suffixes, in other letter case, or
not at all. The folder is walked once; then names are looked up in memory. Only files that the walk
met are ever found, so nothing that a name says leads outside of the folder.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from recordsmith.errors import OptionError, SourceError
from recordsmith.files import accessing, is_special, list_folder
from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.splits import SPLIT_NAMES
from recordsmith.sources.wording import some

"""Names of folders and lists that are splits, in lower case."""

_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|.*\\")

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
        hidden: files and folders that were passed over, and what would be waited for in vain.
    """

    def __init__(self, root: Path) -> None:
        with accessing(root):
            if not root.is_dir():
                root.stat()  # says it in words if it is not there
                raise OptionError(f"{root} is a file; expected the folder that holds the dataset")
        self.root = root
        self.hidden: list[str] = []
        paths: list[str] = []
        self._walk(root, "", paths, ())
        self.paths = tuple(sorted(paths))
        self._known = frozenset(paths)
        self._by_name: dict[str, list[str]] | None = None
        self._by_stem: dict[str, list[str]] | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def full_path(self, path: str) -> str:
        """Of a relative path: one that can be opened."""
        return os.path.join(self.root, path)

    def size_of(self, path: str) -> int:
        """Size in bytes; 0 for a link to nothing, which reading will complain about."""
        try:
            return os.stat(self.full_path(path)).st_size
        except OSError:
            return 0

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
        plain = name.replace("\\", "/") if _WINDOWS_PATH.match(name) else name
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

    def _walk(
        self, folder: Path | str, prefix: str, paths: list[str], above: tuple[str, ...]
    ) -> None:
        here = (*above, os.path.realpath(folder))
        for entry in list_folder(folder):
            path = prefix + entry.name
            if entry.name.startswith("."):
                self.hidden.append(path)
            elif is_special(entry):
                self.hidden.append(f"{path} (a pipe or a device)")
            elif not _is_folder(entry):
                paths.append(path)
            elif not entry.is_symlink() or os.path.realpath(entry.path) not in here:
                self._walk(entry.path, f"{path}/", paths, here)


def split_in(path: str) -> str | None:
    """The first folder of a path that is called like a split."""
    folders = path.split("/")[:-1]
    return next((folder for folder in folders if folder.lower() in SPLIT_NAMES), None)


def splits_by_folder(paths: Iterable[str]) -> dict[str, str]:
    """path -> split, if each lies in a folder called like one, and there are several splits."""
    splits = {path: split_in(path) for path in paths}
    named = {path: split for path, split in splits.items() if split is not None}
    return named if len(named) == len(splits) and len(set(named.values())) > 1 else {}


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


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
