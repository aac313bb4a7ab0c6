"""Images in class folders: `root/<class>/image.jpg`.

`root/<one folder>/<class>/image.jpg` works as well, and so does `root/train/<class>/image.jpg` with
folders named like splits, of which one may be without class folders. Skipped files are reported as
notices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.class_folders.class_lists import read_class_list
from recordsmith.sources.class_folders.image_reader import ImageReader
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.file_tree import FileTree, ImageListing, TreeSource
from recordsmith.sources.files.images import has_image_name, is_image_word, without_suffix
from recordsmith.sources.files.paths import check_folder, last_name, relative_place
from recordsmith.sources.numbered import LazyNotices, RelistedSamples
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Sample
from recordsmith.sources.splits import are_split_names, is_like_split, only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.words import count

NESTED = 3
"""How many folders around the class folders are followed, each the only one in its folder."""

_LAYOUT = "one folder per class, {}/<class>/<image>"


class ImageFolder(TreeSource):
    """Images in one folder per class.

    Each sample has `image/encoded` (the unchanged file), `image/format`, `image/height` and
    `image/width` (from the header; the EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name, from 0) and
    `image/class/text`. Folders named train, val, test and so on that contain class folders are
    splits.

    Example:
        >>> rs.pack(rs.ImageFolder("flowers"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        images: PlaceLike | None = None,
        labels: PlaceLike | None = None,
    ) -> None:
        """
        Args:
            root: the folder of the dataset.
            images: the folder in it that contains the class folders or the folders of splits.
                [default: root, or the only folder in it]
            labels: a list with the class of each image in a split without class folders, such as
                ImageNet's `val.txt` or `LOC_val_solution.csv`: the name of an image and its class,
                or the class's number, on each line.

        Raises:
            OptionError: the images are outside the root.
        """
        self.root = as_folder(root)
        self._images = None if images is None else relative_place(self.root, images, as_folder)
        self._labels = None if labels is None else relative_place(self.root, labels, as_location)
        if self._images is not None and self._images.relative_to(self.root) is None:
            raise OptionError(
                f"{self._images} is outside {self.root}", option="images", value=str(images)
            )

    def __repr__(self) -> str:
        described = {name: value for name, value in self.describe().items() if name != "kind"}
        described.pop("folder")
        options = "".join(f", {name}={value!r}" for name, value in described.items())
        return f"ImageFolder({str(self.root)!r}{options})"

    def list_samples(self) -> Listing:
        """Find classes and images, sorted by class and file name.

        Raises:
            SourceError: there are no images in class folders.
            OptionError: the root is a file.
            FileAccessError: the root or a folder in it cannot be read.
        """
        check_folder(self.root, _LAYOUT.format("<folder>"))
        tree = self._take_tree(self.root)
        above = self._above(tree)
        base = above[-1]
        parts, flat = _split_folders(tree, base)
        unlisted: dict[str, ImageListing] = {}
        if self._labels is not None and len(flat) > 1:
            unlisted = {name: flat[name] for name in flat if name not in self._labels.name}
            flat = {name: folder for name, folder in flat.items() if name not in unlisted}
        folders = [
            ClassFolder(part.path / name, split)
            for split, part in ({**parts} if parts else {None: base}).items()
            for name in part.folders
        ]
        walk = _Walk(tree, base, folders)
        classes = walk.find_classes()
        if not classes:
            raise self._nothing_found(tree, above[0], [tree.list_images(f.path) for f in folders])
        check_class_names(classes, "class folder")
        walk.above = [*above, *parts.values()]
        walk.flat = flat
        walk.skipped = unlisted if self._labels is not None else flat
        if self._labels is not None:
            walk.list_file = self._labels
            walk.listed = read_class_list(self._labels, classes)
        if self._images is not None:
            walk.outside = tree.root
        samples = RelistedSamples(walk.samples)
        labelled = flat if self._labels is not None else {}
        return Listing(
            samples,
            ImageReader(base.path, tuple(classes)),
            tuple(classes),
            LazyNotices(samples, walk.notices),
            sort_splits([*parts, *labelled]),
            only_split((last_name(folder.path) for folder in reversed(above)), self.root),
        )

    def describe(self) -> Mapping[str, Any]:
        described = {"kind": "ImageFolder", "folder": last_name(self.root)}
        if self._images is not None:
            described["images"] = self._images.relative_to(self.root) or "."
        if self._labels is not None:
            described["labels"] = self._labels.name
        return described

    def _above(self, tree: FileTree) -> list[ImageListing]:
        """All folders from the root down to that of the class folders or splits."""
        base = tree.list_images(self._images or self.root)
        above = [base]
        while self._images is None and len(above) <= NESTED:
            if base.images or len(base.folders) != 1:
                break
            inner = tree.list_images(base.path / base.folders[0])
            if inner.images or not inner.folders:
                break
            base = inner
            above.append(base)
        return above

    def _nothing_found(
        self, tree: FileTree, root: ImageListing, classes: list[ImageListing]
    ) -> SourceError:
        """The error for a folder without class folders that contain images."""
        remedy = "Check that this is the right folder."
        if root.images:
            found = f"found images outside class folders: {join_names(i.name for i in root.images)}"
            remedy = (
                "Move the images of each class into a folder named after it, or pack them without "
                "classes as ImageFiles."
            )
        elif candidates := _folders_that_would_pack(tree):
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
            _notices(tree, root, classes, [root]),
            path=self.root,
            remedy=remedy,
        )


def _split_folders(
    tree: FileTree, base: ImageListing
) -> tuple[dict[str, ImageListing], dict[str, ImageListing]]:
    """The split folders by name, if all folders with images are named like splits.

    Returns:
        (those with class folders; those with images and without class folders).
    """
    if base.images:
        return {}, {}
    names = base.folders
    if not are_split_names(names):
        if any(not is_like_split(name) and tree.has_images(base.path / name) for name in names):
            return {}, {}  # found with the first class, as each folder may be a request
        names = [
            name for name in names if is_like_split(name) and tree.has_images(base.path / name)
        ]
    if not names or not all(map(is_like_split, names)):
        return {}, {}
    parts = {name: tree.list_images(base.path / name) for name in names}
    inner = {name: _inner(tree, part) for name, part in parts.items()}
    flat = {name: part for name, part in inner.items() if part.images}
    filled = {name: part for name, part in parts.items() if part.folders and name not in flat}
    if not any(map(is_split_name, filled)):
        return {}, {}  # classes of these names
    return (
        {split: filled[split] for split in sort_splits(filled)},
        {split: flat[split] for split in sort_splits(flat)},
    )


def _inner(tree: FileTree, folder: ImageListing) -> ImageListing:
    """The folder, or the only folder in it, if that is named like a folder of images."""
    if not folder.images and len(folder.folders) == 1 and is_image_word(folder.folders[0]):
        return tree.list_images(folder.path / folder.folders[0])
    return folder


class ClassFolder(NamedTuple):
    """A folder of images of one class, and its split if there are several."""

    path: Location
    split: str | None


class _Walk:
    """Yields the samples of class folders, and keeps what it skips."""

    def __init__(self, tree: FileTree, base: ImageListing, folders: list[ClassFolder]) -> None:
        self._tree = tree
        self._base = base
        self._folders = folders
        self._labels: dict[str, int] = {}
        self._skipped: list[ImageListing] = []
        self._unlisted: list[str] = []
        self._unused = 0
        self.above: list[ImageListing] = []
        self.flat: dict[str, ImageListing] = {}
        self.skipped: dict[str, ImageListing] = {}
        self.list_file: Location | None = None
        self.listed: Mapping[str, str] | Sequence[str] | None = None
        self.outside: Location | None = None

    def find_classes(self) -> list[str]:
        """The names of the folders with images, sorted."""
        names = {path.name for path, _ in self._folders if self._tree.has_direct_image(path)}
        self._labels = {name: label for label, name in enumerate(sorted(names))}
        return list(self._labels)

    def samples(self) -> Iterator[Sample]:
        """Yield all samples; one folder is held at a time."""
        self._skipped = []
        for path, split in self._folders:
            folder = self._tree.list_images(path)
            prefix = "/".join(filter(None, (split, path.name)))
            label = self._labels.get(path.name)
            for name, size, version in folder.images:
                yield Sample(f"{prefix}/{name}", size, label, split, version=version)
            self._skipped.append(dataclasses.replace(folder, images=folder.images[:1]))
        if self.listed is not None:
            yield from self._listed_samples(self.listed)

    def _listed_samples(self, listed: Mapping[str, str] | Sequence[str]) -> Iterator[Sample]:
        """The samples of splits without class folders, whose classes are in a list."""
        self._unlisted = []
        used = 0
        for split, folder in self.flat.items():
            prefix = folder.path.relative_to(self._base.path)
            by_name = listed
            if not isinstance(by_name, Mapping):
                if len(by_name) != len(folder.images) or len(self.flat) > 1:
                    raise SourceError(
                        f"{len(by_name):,} classes for {len(folder.images):,} images in {prefix}",
                        path=self.list_file,
                        remedy=f"Choose another list with {option('labels')}.",
                    )
                names = (without_suffix(image.name) for image in folder.images)
                by_name = dict(zip(names, by_name, strict=True))
            for name, size, version in folder.images:
                text = by_name.get(without_suffix(name))
                if text is None:
                    self._unlisted.append(f"{prefix}/{name}")
                    continue
                used += 1
                yield Sample(f"{prefix}/{name}", size, self._labels[text], split, version=version)
        self._unused = len(listed) - used

    def notices(self) -> list[str]:
        """The notices on what was skipped, when all samples were yielded."""
        notices = _notices(self._tree, self._base, self._skipped, self.above)
        for folder in self.skipped.values():
            number = count(len(folder.images), "image")
            notices.append(f"{number} in {folder.path} without class folders skipped")
        if self.list_file is not None:
            listed = self.list_file.name
            notices += count_notice(self._unlisted, "image", f"missing from {listed} skipped")
            if self._unused > 0:
                names = count(self._unused, "name")
                notices.append(f"{names} in {listed} without an image")
        if self.outside is not None:
            images, others = self._tree.list_outside(
                self.outside, [self._base.path, *self._list_files()]
            )
            notices += count_notice(images, "image", "outside class folders skipped")
            notices += count_notice(others, "other file", "skipped")
        return notices

    def _list_files(self) -> list[Location]:
        return [] if self.list_file is None else [self.list_file]


# -- messages ------------------------------------------------------------------------------------


def _notices(
    tree: FileTree, base: ImageListing, classes: list[ImageListing], folders: list[ImageListing]
) -> list[str]:
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
    deeper = [
        image
        for folder in classes
        for name in folder.folders
        for image in tree.list_outside(folder.path / name, ())[0]
    ]
    hidden = [path for folder in folders for path in folder.hidden]
    others = [path for folder in folders for path in folder.others]
    return [
        *notices,
        *count_notice(outside, "image", "outside class folders skipped"),
        *count_notice(empty, "class folder", "without images skipped"),
        *count_notice(deeper, "image", "in folders inside class folders skipped"),
        *count_notice(hidden, "hidden file", "skipped"),
        *count_notice(others, "non-image file", "skipped"),
    ]


def _folders_that_would_pack(tree: FileTree) -> list[str]:
    """Folders below whose folders contain images; only the start of a large tree is searched."""
    found = {
        str(folder.parent)
        for folder, files in tree.search(tree.root)
        if any(map(has_image_name, files))
    }
    return sorted(found)
