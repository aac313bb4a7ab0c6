"""Images in class folders: `root/<class>/image.jpg`.

`root/<one folder>/<class>/image.jpg` works as well, and so does `root/train/<class>/image.jpg` with
folders named like splits. Skipped files are reported as notices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from recordsmith.errors import SourceError
from recordsmith.sources.class_folders.image_reader import ImageReader
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.folders import (
    Folder,
    check_folder,
    has_direct_image,
    last_name,
    list_names,
    read_folder,
)
from recordsmith.sources.files.images import has_image_name
from recordsmith.sources.numbered import LazyNotices, StreamedSamples
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Sample
from recordsmith.sources.splits import are_split_names, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.words import count

_IMAGES_KEPT = 100_000
_LAYOUT = "one folder per class, {}/<class>/<image>"


class ImageFolder:
    """Images in one folder per class.

    Each sample has `image/encoded` (the unchanged file), `image/format`, `image/height` and
    `image/width` (from the header; the EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name, from 0) and
    `image/class/text`. Folders named train, val, test and so on that contain class folders are
    splits.

    Example:
        >>> rs.pack(rs.ImageFolder("flowers"), "packed")  # doctest: +SKIP
    """

    def __init__(self, root: PlaceLike) -> None:
        """
        Args:
            root: the folder that contains the class folders.
        """
        self.root = as_folder(root)

    def __repr__(self) -> str:
        return f"ImageFolder({str(self.root)!r})"

    def list_samples(self) -> Listing:
        """Find classes and images, sorted by class and file name.

        Raises:
            SourceError: there are no images in class folders.
            OptionError: the root is a file.
            FileAccessError: the root or a folder in it cannot be read.
        """
        check_folder(self.root, _LAYOUT.format("<folder>"))
        root = read_folder(self.root)
        base = root
        if not base.images and len(base.folders) == 1:
            inner = read_folder(base.path / base.folders[0])
            if not inner.images and inner.folders:
                base = inner
        parts = _split_folders(base)
        folders = [
            ClassFolder(part.path / name, split)
            for split, part in ({**parts} if parts else {None: base}).items()
            for name in part.folders
        ]
        walk = _Walk(base, folders)
        classes = walk.find_classes()
        if not classes:
            raise self._nothing_found(root, [read_folder(each.path) for each in folders])
        check_class_names(classes, "class folder")
        walk.above = [*([] if base is root else [root]), base, *parts.values()]
        samples = StreamedSamples(walk.samples)
        return Listing(
            samples,
            ImageReader(base.path, tuple(classes)),
            tuple(classes),
            LazyNotices(samples, walk.notices),
            sort_splits(parts),
        )

    def describe(self) -> Mapping[str, Any]:
        return {"kind": "ImageFolder", "folder": last_name(self.root)}

    def _nothing_found(self, root: Folder, classes: list[Folder]) -> SourceError:
        """The error for a folder without class folders that contain images."""
        remedy = "Check that this is the right folder."
        if root.images:
            found = f"found images outside class folders: {join_names(i.name for i in root.images)}"
            remedy = (
                "Move the images of each class into a folder named after it, or pack them without "
                "classes as ImageFiles."
            )
        elif candidates := _folders_that_would_pack(self.root):
            found = "found images only in deeper folders"
            remedy = f"Pack {join_names(candidates, 'or')} instead."
        elif classes:
            found = f"found folders without images: {join_names(f.path.name for f in classes)}"
        elif root.others:
            found = f"found no folders, only {summarize_paths(root.others)}"
        else:
            found = "the folder is empty"
        return SourceError(
            f"no images to pack: {found}; expected {_LAYOUT.format(self.root)}",
            _notices(root, classes, [root]),
            path=self.root,
            remedy=remedy,
        )


def _split_folders(base: Folder) -> dict[str, Folder]:
    """The split folders by name, if all folders here are named like splits."""
    if base.images or not are_split_names(base.folders):
        return {}
    parts = {name: read_folder(base.path / name) for name in base.folders}
    if any(part.images for part in parts.values()):
        return {}  # classes of these names
    filled = {split: part for split, part in parts.items() if part.folders}
    return {split: filled[split] for split in sort_splits(filled)}


class ClassFolder(NamedTuple):
    """A folder of images of one class, and its split if there are several."""

    path: Location
    split: str | None


class _Walk:
    """Yields the samples of class folders, and keeps what it skips."""

    def __init__(self, base: Folder, folders: list[ClassFolder]) -> None:
        self._base = base
        self._folders = folders
        self._labels: dict[str, int] = {}
        self._listed: dict[Location, Folder] = {}  # for the first walk, so that it lists less
        self._skipped: list[Folder] = []
        self.above: list[Folder] = []

    def find_classes(self) -> list[str]:
        """The names of the folders with images, sorted."""
        found = set()
        kept_count = 0
        for path, _ in self._folders:
            if kept_count < _IMAGES_KEPT:
                folder = self._listed[path] = read_folder(path)
                kept_count += len(folder.images)
                has_images = bool(folder.images)
            else:
                has_images = has_direct_image(path)
            if has_images:
                found.add(path.name)
        self._labels = {name: label for label, name in enumerate(sorted(found))}
        return list(self._labels)

    def samples(self) -> Iterator[Sample]:
        """Yield all samples; one folder is held at a time."""
        self._skipped = []
        for path, split in self._folders:
            folder = self._listed.pop(path, None) or read_folder(path)
            prefix = "/".join(filter(None, (split, path.name)))
            label = self._labels.get(path.name)
            for name, size, version in folder.images:
                yield Sample(f"{prefix}/{name}", size, label, split, version=version)
            self._skipped.append(dataclasses.replace(folder, images=folder.images[:1]))

    def notices(self) -> list[str]:
        """The notices on what was skipped, when all samples were yielded."""
        return _notices(self._base, self._skipped, self.above)


# -- messages ------------------------------------------------------------------------------------


def _notices(base: Folder, classes: list[Folder], folders: list[Folder]) -> list[str]:
    """One notice per kind of skipped file; `folders` are those above the class folders."""
    folders = [*folders, *classes]
    notices = []
    names = [folder.path.name for folder in classes if folder.images]
    if are_split_names(names):
        notices.append(
            f"{count(len(names), 'class', 'classes')} named like splits: {join_names(names)}. If "
            "they are splits, put the images of each into class folders."
        )
    outside = [str(base.path / image.name) for image in base.images]
    empty = [str(folder.path) for folder in classes if not folder.images]
    deeper = [str(folder.path / name) for folder in classes for name in folder.folders]
    hidden = [path for folder in folders for path in folder.hidden]
    others = [path for folder in folders for path in folder.others]
    return [
        *notices,
        *count_notice(outside, "image", "outside class folders skipped"),
        *count_notice(empty, "class folder", "without images skipped"),
        *count_notice(deeper, "folder", "inside class folders skipped"),
        *count_notice(hidden, "hidden file", "skipped"),
        *count_notice(others, "non-image file", "skipped"),
    ]


def _folders_that_would_pack(root: Location) -> list[str]:
    """Folders below whose folders contain images; only the start of a large tree is searched."""
    found = {
        str(folder.parent) for folder, files in list_names(root) if any(map(has_image_name, files))
    }
    return sorted(found)
