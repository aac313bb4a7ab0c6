"""Class folders: `root/<class>/picture.jpg`, as every picture tutorial has them.

The tutorials' other nesting, `root/<one folder>/<class>/picture.jpg`, is understood as well.
Pictures are known by their bytes, not by their names. What is not packed is said, never dropped
in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordsmith.errors import OptionError, SourceError, located
from recordsmith.example import Kind
from recordsmith.files import PathLike, accessing, list_folder, open_file
from recordsmith.image import PICTURE_SUFFIXES, is_picture, probe_image
from recordsmith.sources.contract import Listing, Sample

_EXPECTED = "expected {root}/<class>/<picture>, one folder for each class"


class ImageFolder:
    """Pictures in one folder for each class.

    Each sample has `image/encoded` (the file's bytes, untouched), `image/format`, `image/height`
    and `image/width` (from the header), `image/filename` (relative to the root),
    `image/class/label` (classes sorted by name, counted from 0) and `image/class/text`.
    """

    def __init__(self, root: PathLike) -> None:
        self.root = Path(root)
        self._base = self.root  # where the class folders are; found when listing
        self._class_names: tuple[bytes, ...] = ()

    def list_samples(self) -> Listing:
        """Find classes and pictures; the order is by class, then by file name.

        Raises:
            SourceError: there are no pictures, or not in folders of classes.
            FileAccessError: the root or a folder in it cannot be read.
        """
        with accessing(self.root):
            if not self.root.is_dir():
                self.root.stat()
                raise OptionError(f"{self.root} is a file; " + _EXPECTED.format(root="<folder>"))
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
        notices = [*root.notices, *(base.notices if base is not root else ())]
        notices += [
            f"picture outside of a class folder, not packed: {entry.path}"
            for entry in base.pictures
        ]
        for folder in classes:
            if not folder.pictures:
                notices.append(f"empty class, left out: {folder.path}")
            notices += folder.notices
            notices += [
                f"folder inside a class folder, not packed: {entry.path}"
                for entry in folder.folders
            ]
        return self._listing(base.path, filled, notices)

    def read_features(self, sample: Sample) -> Mapping[str, Any]:
        """Read one picture file; its bytes are not changed."""
        path = os.path.join(self._base, sample.name)
        with open_file(path) as file, accessing(path):
            data = file.read()
        with located(path):
            info = probe_image(data)
        label = sample.label or 0
        return {
            "image/class/label": label,
            "image/class/text": self._class_names[label],
            "image/encoded": data,
            "image/filename": os.fsencode(sample.name),
            "image/format": info.format,
            "image/height": info.height,
            "image/width": info.width,
        }

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "ImageFolder", "folder": self.root.resolve().name}

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _listing(self, base: Path, classes: list[_Folder], notices: list[str]) -> Listing:
        self._base = base
        names = [folder.path.name for folder in classes]
        for name in names:
            if "\n" in name or "\r" in name:
                raise SourceError(
                    f"the class folder {name!r} has a line break in its name, which labels.txt "
                    "cannot hold; rename it"
                )
        self._class_names = tuple(os.fsencode(name) for name in names)
        samples = tuple(
            Sample(f"{folder.path.name}/{entry.name}", entry.stat().st_size, label)
            for label, folder in enumerate(classes)
            for entry in folder.pictures
        )
        return Listing(samples, tuple(names), tuple(notices))

    def _nothing_found(self, root: _Folder, classes: list[_Folder]) -> SourceError:
        """Say what is there instead of class folders with pictures."""
        expected = _EXPECTED.format(root=self.root)
        deeper = [
            f"{folder.path.name}/{entry.name}" for folder in classes for entry in folder.folders
        ]
        if root.pictures:
            found = (
                f"found {len(root.pictures)} pictures in {self.root} itself, such as "
                f"{root.pictures[0].name}, and no folder with pictures"
            )
            advice = "move the pictures of each class into a folder named after it"
        elif deeper:
            found = f"found folders two levels down, such as {deeper[0]}, and no pictures above"
            advice = f"pack one of {', '.join(str(folder.path) for folder in classes[:3])} instead"
        elif classes:
            names = ", ".join(folder.path.name for folder in classes[:5])
            found = f"found {len(classes)} folders without a picture in them: {names}"
            advice = "check that this is the right folder and that its files are pictures"
        else:
            found = f"found {len(root.notices)} other files and no folders"
            advice = "check that this is the right folder"
        return SourceError(f"no pictures to pack: {expected}; {found}; {advice}", root.notices)


@dataclass
class _Folder:
    """One folder, looked through: its pictures, its folders, and what is neither."""

    path: Path
    pictures: list[os.DirEntry[str]] = field(default_factory=list)
    folders: list[os.DirEntry[str]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def _read_folder(path: Path) -> _Folder:
    folder = _Folder(path)
    for entry in list_folder(path):
        with accessing(entry.path):
            if entry.name.startswith("."):
                folder.notices.append(f"hidden, not packed: {entry.path}")
            elif entry.is_dir():
                folder.folders.append(entry)
            elif not entry.is_file():
                folder.notices.append(f"no regular file, not packed: {entry.path}")
            elif _has_picture_name(entry.name) or _holds_picture(entry):
                folder.pictures.append(entry)
            else:
                folder.notices.append(f"no picture, not packed: {entry.path}")
    return folder


def _has_picture_name(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES


def _holds_picture(entry: os.DirEntry[str]) -> bool:
    with open_file(entry.path) as file:
        return is_picture(file)
