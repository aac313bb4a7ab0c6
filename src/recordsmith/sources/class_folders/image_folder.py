"""Images in class folders, `root/<class>/image.jpg` or `root/train/<class>/image.jpg`, or in any.

Skipped files are reported as notices.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError
from recordsmith.sources.class_folders.layout import find_class_folders
from recordsmith.sources.classes import (
    check_class_names,
    classes_in_names,
    compile_class_pattern,
)
from recordsmith.sources.files.file_tree import FileTree, SkippedFiles, TreeSource
from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.files.paths import check_folder, last_name, path_inside
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Note, Sample, StoredReader, ignore_note
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder
from recordsmith.words import count


@dataclass(frozen=True)
class ImageReader(StoredReader):
    """Reads image files by name, relative to the root, with their classes. Bytes are unchanged."""

    root: Location
    class_names: tuple[str, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        features = read_image(self.root / sample.name, sample.name)
        return features | class_features(sample.label, self.class_names)


class _ImageSource(TreeSource):
    """A source of the images in a folder of the root; None if it is to be found."""

    root: Location
    _images: str | None

    def __repr__(self) -> str:
        options = [
            f", {name}={value!r}"
            for name, value in self.describe().items()
            if name not in ("kind", "folder") and value is not None
        ]
        return f"{type(self).__name__}({str(self.root)!r}{''.join(options)})"

    def describe(self) -> Mapping[str, Any]:
        images = {} if self._images is None else {"images": self._images or "."}
        return {"kind": type(self).__name__, "folder": last_name(self.root), **images}


class ImageFiles(_ImageSource):
    """Images in a folder and all folders below it.

    Each sample has `image/encoded`, `image/format`, `image/height`, `image/width` and
    `image/filename` (its path below the root); with a class pattern also `image/class/label` and
    `image/class/text`.

    Example:
        >>> rs.ImageFiles("pets", class_pattern="^([a-z]+)_")
        ImageFiles('pets', class_pattern='^([a-z]+)_')
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        images: PlaceLike | None = None,
        class_pattern: str | None = None,
    ) -> None:
        """
        Args:
            root: the folder of the dataset.
            images: a folder in it that contains the images; the others are skipped. If it contains
                only folders named train, val, test and so on, these are splits. [default: root]
            class_pattern: a regular expression searched in each path below the root (with `/`).
                Its first group, or the whole match, is the class: `^([a-z]+)_` takes `cat` from
                `cat_0.jpeg`. An image that does not match is an error.

        Raises:
            OptionError: the pattern is not a regular expression.
        """
        self.root = as_folder(root)
        self._images = None if images is None else path_inside(self.root, images, "images") or None
        self._pattern = compile_class_pattern(class_pattern)

    def list_samples(self) -> Listing:
        """Find all images, sorted by path.

        Raises:
            SourceError: there are no images, or some have no class.
            OptionError: the root is a file.
            FileAccessError: a folder cannot be read.
        """
        tree = self._take_tree(self.root)
        below = self._images or ""
        folder = tree.place(below)
        for place in (self.root, folder):
            check_folder(place, "a folder with images")
        inner = tree.below(below)
        splits = inner.filled("")
        if not all(map(is_split_name, splits)) or inner.has_direct_image(folder):
            splits = []
        head = f"{below}/" if below else ""
        skipped = SkippedFiles()
        samples = collect(
            Sample(
                head + path, size, split=path.partition("/")[0] if splits else None, version=version
            )
            for path, size, version in tree.walk_images(folder, skipped)
        )
        if not len(samples):
            others = skipped.others
            what = f"found {summarize_paths(others)}" if others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=folder)
        classes: tuple[str, ...] | None = None
        if self._pattern is not None:
            samples.labels, classes = classes_in_names(self._pattern, samples.names, self.root)
        tree.skip_others([folder], skipped)
        return Listing(
            samples,
            ImageReader(self.root, classes),
            classes,
            skipped.notices(f"outside {head}"),
            sort_splits(splits),
            only_split(reversed(below.split("/")), self.root),
        )

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {**super().describe(), "class_pattern": pattern}


class ImageFolder(_ImageSource):
    """Images in one folder per class.

    Each sample has `image/encoded` (the unchanged file), `image/format`, `image/height` and
    `image/width` (from the header; the EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name, from 0) and
    `image/class/text`. Folders named train, val, test and so on that contain class folders are
    splits.

    Example:
        rs.pack(rs.ImageFolder("flowers"), "packed")
    """

    def __init__(self, root: PlaceLike, *, images: PlaceLike | None = None) -> None:
        """
        Args:
            root: the folder of the dataset.
            images: the folder in it that contains the class folders or the folders of splits.
                [default: root, or the only folder in it that contains images]

        Raises:
            OptionError: the images are outside the root.
        """
        self.root = as_folder(root)
        self._images = None if images is None else path_inside(self.root, images, "images")

    def list_samples(self) -> Listing:
        """Find classes and images, sorted by class and file name.

        Raises:
            SourceError: there are no images in class folders.
            OptionError: the root is a file.
            FileAccessError: the root or a folder in it cannot be read.
        """
        check_folder(self.root, "one folder per class, <folder>/<class>/<image>")
        tree = self._take_tree(self.root)
        inner = tree.below(self._images or "")
        layout = find_class_folders(inner, descend=self._images is None)
        parts: Mapping[Any, str] = layout.splits or {None: layout.base}
        folders = [
            (split, inner.place(path) / name)
            for split, path in parts.items()
            for name in tree.folder_names(inner.place(path))
        ]
        filled = {str(folder) for _, folder in folders if tree.has_direct_image(folder)}
        classes = tuple(sorted({folder.name for _, folder in folders if str(folder) in filled}))
        skipped = SkippedFiles()
        if not classes:
            tree.skip_others((), skipped)
            raise _nothing_found(tree, skipped)
        check_class_names(classes, "class folder")
        labels = {name: label for label, name in enumerate(classes)}
        deeper: list[str] = []

        def walk() -> Iterator[Sample]:
            for split, folder in folders:
                head = f"{split}/{folder.name}/" if split else f"{folder.name}/"
                label = labels.get(folder.name)
                for path, size, version in tree.walk_images(folder, skipped):
                    if "/" in path:
                        deeper.append(str(folder / path))
                    else:
                        yield Sample(head + path, size, label, split, version=version)

        samples = collect(walk())
        notices = []
        if all(map(is_split_name, classes)):
            notices.append(
                f"{count(len(classes), 'class', 'classes')} named like splits: "
                f"{join_names(classes)}. If they are splits, put the images of each into class "
                "folders."
            )
        empty = [str(folder) for _, folder in folders if str(folder) not in filled]
        notices += count_notice(empty, "class folder", "without images skipped")
        notices += count_notice(deeper, "image", "in folders inside class folders skipped")
        tree.skip_others((folder for _, folder in folders), skipped)
        above = [self._images or "", *layout.base.split("/")]
        return Listing(
            samples,
            ImageReader(inner.place(layout.base), classes),
            classes,
            (*notices, *skipped.notices("outside class folders")),
            sort_splits(layout.splits),
            only_split([name for path in above[::-1] for name in path.split("/")], self.root),
        )


def _nothing_found(tree: FileTree, skipped: SkippedFiles) -> SourceError:
    """The error for a folder without class folders that contain images."""
    remedy = "Check that this is the right folder."
    above = {posixpath.dirname(path) for path in skipped.images}
    if str(tree.root) in above or tree.has_direct_image(tree.root):
        found = f"found images outside class folders: {join_names(skipped.images)}"
        remedy = "Move the images of each class into a folder, or pack them as ImageFiles."
    elif above:
        found = "found images only in deeper folders"
        remedy = f"Pack {join_names(sorted(set(map(posixpath.dirname, above))), 'or')} instead."
    elif names := tree.folder_names(tree.root):
        found = f"found folders without images: {join_names(names)}"
    else:
        found = f"found only {summarize_paths(skipped.others)}"
        found = found if skipped.others else "the folder is empty"
    return SourceError(
        f"no images to pack: {found}; expected {tree.root}/<class>/<image>",
        skipped.notices(),
        path=tree.root,
        remedy=remedy,
    )
