"""Class folders: `root/<class>/picture.jpg`, as every picture tutorial has them.

The tutorials' other nesting, `root/<one folder>/<class>/picture.jpg`, is understood as well. A
file is a picture if its bytes are those of one, or if its name says so: then it must be one. What
is not packed is said, never dropped in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.files import PathLike, accessing, as_path, list_folder
from recordsmith.sources.contract import Listing, Note, Sample, unheard
from recordsmith.sources.pictures import has_picture_name, is_picture_file, read_picture
from recordsmith.sources.wording import some, tally

_FOLDERS_SEARCHED = 2000
_SPLIT_NAMES = frozenset(("train", "training", "val", "valid", "validation", "test", "testing"))


class ImageFolder:
    """Pictures in one folder for each class.

    Each sample has `image/encoded` (the file's bytes, untouched), `image/format`, `image/height`
    and `image/width` (from the header; an EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name as text, counted from 0) and
    `image/class/text`.
    """

    def __init__(self, root: PathLike) -> None:
        self.root = as_path(root)
        self._base = self.root  # where the class folders are; found when listing
        self._class_names: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find classes and pictures; the order is by class, then by file name.

        Raises:
            SourceError: there are no pictures, or not in folders of classes.
            FileAccessError: the root or a folder in it cannot be read.
        """
        with accessing(self.root):
            if not self.root.is_dir():
                self.root.stat()  # says it in words if it is not there
                raise OptionError(f"{self.root} is a file; {_expected('<folder>')}")
        root = _read_folder(self.root)
        base = root
        if not base.pictures and len(base.folders) == 1:
            inner = _read_folder(Path(base.folders[0].path))
            if not inner.pictures and inner.folders:
                base = inner
        classes = [_read_folder(Path(entry.path)) for entry in base.folders]
        filled = [folder for folder in classes if folder.pictures]
        if not filled:
            raise self._nothing_found(root, classes)
        self._base = base.path
        self._class_names = tuple(os.fsencode(folder.path.name) for folder in filled)
        for name in self._class_names:
            if b"\n" in name or b"\r" in name:
                raise SourceError(
                    f"the class folder {os.fsdecode(name)!r} has a line break in its name, which "
                    "labels.txt cannot hold; rename it"
                )
        samples = tuple(
            Sample(f"{folder.path.name}/{name}", size, label, version=version)
            for label, folder in enumerate(filled)
            for name, size, version in folder.pictures
        )
        names = tuple(folder.path.name for folder in filled)
        passed_over = [base, *classes] if base is root else [root, base, *classes]
        return Listing(samples, names, tuple(_notices(base, classes, passed_over)))

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture file; its bytes are not changed."""
        label = sample.label or 0
        return read_picture(os.path.join(self._base, sample.name), sample.name) | {
            "image/class/label": label,
            "image/class/text": self._class_names[label],
        }

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "ImageFolder", "folder": self.root.resolve().name}

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _nothing_found(self, root: _Folder, classes: list[_Folder]) -> SourceError:
        """Say what is there instead of class folders with pictures, and what to do."""
        if root.pictures:
            found = (
                f"found pictures in {self.root} itself ({len(root.pictures):,}, such as "
                f"{root.pictures[0][0]}), and none in folders below"
            )
            advice = "move the pictures of each class into a folder named after it"
        elif candidates := _folders_that_would_pack(self.root):
            found = "found pictures further down"
            advice = f"pack {some(candidates, 'or')} instead"
        elif classes:
            found = f"found folders without pictures: {some(f.path.name for f in classes)}"
            advice = "check that this is the right folder and that its files are pictures"
        elif root.others:
            found = f"found no folders, only {tally(root.others)}"
            advice = "check that this is the right folder"
        else:
            found = "the folder is empty"
            advice = "check that this is the right folder"
        return SourceError(
            f"no pictures to pack: {_expected(str(self.root))}; {found}; {advice}",
            _notices(root, classes, [root, *classes]),
        )


@dataclass
class _Folder:
    """One folder, looked through: its pictures, its folders, and what is neither.

    pictures: name, size in bytes and time of change; not the entries, which hold a kilobyte each.
    """

    path: Path
    pictures: list[tuple[str, int, int]] = field(default_factory=list)
    folders: list[os.DirEntry[str]] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def _read_folder(path: Path) -> _Folder:
    folder = _Folder(path)
    for entry in list_folder(path):
        if entry.name.startswith("."):
            folder.hidden.append(entry.path)
        elif _is_folder(entry):
            folder.folders.append(entry)
        elif is_picture_file(entry):
            folder.pictures.append((entry.name, *_size_and_version(entry)))
        else:
            folder.others.append(entry.path)
    return folder


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _size_and_version(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:  # a link to nothing: reading it will say so
        return 0, 0
    return status.st_size, status.st_mtime_ns


# -- words ---------------------------------------------------------------------------------------


def _expected(root: str) -> str:
    return f"expected {root}/<class>/<picture>, one folder for each class"


def _notices(base: _Folder, classes: list[_Folder], folders: list[_Folder]) -> list[str]:
    """What was passed over, a sentence for each reason."""
    notices = []
    names = [folder.path.name for folder in classes if folder.pictures]
    if names and _SPLIT_NAMES.issuperset(map(str.lower, names)):
        notices.append(
            f"the classes are called {some(names)}: if these are splits, pack each by itself"
        )
    if base.pictures:
        paths = [str(base.path / name) for name, *_ in base.pictures]
        notices.append(f"not in a class folder: {tally(paths)}")
    empty = [str(folder.path) for folder in classes if not folder.pictures]
    if empty:
        notices.append(f"class folders without pictures: {some(empty)}")
    deeper = [entry.path for folder in classes for entry in folder.folders]
    if deeper:
        notices.append(f"folders inside of class folders: {some(deeper)}")
    hidden = [path for folder in folders for path in folder.hidden]
    if hidden:
        notices.append(f"hidden: {some(hidden)}")
    others = [path for folder in folders for path in folder.others]
    if others:
        notices.append(f"no pictures: {tally(others)}")
    return notices


def _folders_that_would_pack(root: Path) -> list[str]:
    """Folders below that have folders with pictures; a large tree is searched in part."""
    found = {
        str(Path(folder).parent)
        for folder, _, files in islice(os.walk(root), _FOLDERS_SEARCHED)
        if any(map(has_picture_name, files))
    }
    return sorted(found)
