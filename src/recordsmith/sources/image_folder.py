"""Class folders: `root/<class>/picture.jpg`, as every picture tutorial has them.

The tutorials' other nesting, `root/<one folder>/<class>/picture.jpg`, is understood as well, and
`root/train/<class>/picture.jpg` with folders that are named like splits. A file is a picture if its
bytes are those of one, or if its name says so: then it must be one. What is not packed is said,
never dropped in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recordsmith.errors import SourceError
from recordsmith.example import Kind
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT
from recordsmith.files import PathLike, as_path
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.contract import Listing, Note, Sample, unheard
from recordsmith.sources.folders import Folder, check_folder, names_below, read_folder
from recordsmith.sources.pictures import has_picture_name, read_picture
from recordsmith.sources.splits import are_split_names, in_split_order
from recordsmith.sources.wording import some, tally

_LAYOUT = "{}/<class>/<picture>, one folder for each class"


class ImageFolder:
    """Pictures in one folder for each class.

    Each sample has `image/encoded` (the file's bytes, untouched), `image/format`, `image/height`
    and `image/width` (from the header; an EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name as text, counted from 0) and
    `image/class/text`. Folders train, val, test and the like with classes in them are splits.
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
        check_folder(self.root, _LAYOUT.format("<folder>"))
        root = read_folder(self.root)
        base = root
        if not base.pictures and len(base.folders) == 1:
            inner = read_folder(Path(base.folders[0].path))
            if not inner.pictures and inner.folders:
                base = inner
        parts = _split_folders(base)
        splits = in_split_order(parts)
        classes = [
            (read_folder(Path(entry.path)), split)
            for split, part in ({**parts} if parts else {None: base}).items()
            for entry in part.folders
        ]
        filled = [(folder, split) for folder, split in classes if folder.pictures]
        if not filled:
            raise self._nothing_found(root, [folder for folder, _ in classes])
        names = tuple(sorted({folder.path.name for folder, _ in filled}))
        check_class_names(names, "class folder")
        self._base = base.path
        self._class_names = tuple(map(os.fsencode, names))
        samples = tuple(
            Sample(f"{place}/{name}", size, label, split, version=version)
            for folder, split in filled
            for place in ("/".join(filter(None, (split, folder.path.name))),)
            for label in (names.index(folder.path.name),)
            for name, size, version in folder.pictures
        )
        looked_through = [*([] if base is root else [root]), base, *parts.values()]
        notices = _notices(base, [folder for folder, _ in classes], looked_through)
        return Listing(samples, names, tuple(notices), splits)

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture file; its bytes are not changed."""
        label = sample.label or 0
        return read_picture(os.path.join(self._base, sample.name), sample.name) | {
            CLASS_LABEL: label,
            CLASS_TEXT: self._class_names[label],
        }

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "ImageFolder", "folder": self.root.resolve().name}

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _nothing_found(self, root: Folder, classes: list[Folder]) -> SourceError:
        """Say what is there instead of class folders with pictures, and what to do."""
        if root.pictures:
            found = (
                f"found pictures in {self.root} itself ({len(root.pictures):,}, such as "
                f"{root.pictures[0].name}), and none in folders below"
            )
            advice = (
                "move the pictures of each class into a folder named after it, or pack them "
                "as recordsmith.ImageFiles, which needs no classes"
            )
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
            f"no pictures to pack: expected {_LAYOUT.format(self.root)}; {found}; {advice}",
            _notices(root, classes, [root]),
        )


def _split_folders(base: Folder) -> dict[str, Folder]:
    """The folders of splits, by name, if that is what all folders here are."""
    if base.pictures or not are_split_names(entry.name for entry in base.folders):
        return {}
    parts = {entry.name: read_folder(Path(entry.path)) for entry in base.folders}
    if any(part.pictures for part in parts.values()):
        return {}  # classes of these names
    filled = {split: part for split, part in parts.items() if part.folders}
    return {split: filled[split] for split in in_split_order(filled)}


# -- words ---------------------------------------------------------------------------------------


def _notices(base: Folder, classes: list[Folder], folders: list[Folder]) -> list[str]:
    """What was passed over, a sentence for each reason; `folders` are those above the classes."""
    folders = [*folders, *classes]
    notices = []
    names = [folder.path.name for folder in classes if folder.pictures]
    if are_split_names(names):
        notices.append(
            f"the classes are called {some(names)}: if these are splits, put the pictures of each "
            "into folders of classes"
        )
    if base.pictures:
        paths = [str(base.path / picture.name) for picture in base.pictures]
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
        for folder, files in names_below(root)
        if any(map(has_picture_name, files))
    }
    return sorted(found)
