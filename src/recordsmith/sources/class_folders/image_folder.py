"""Images in class folders, `root/<class>/image.jpg` or `root/train/<class>/image.jpg`, or in any.

Skipped files are reported as notices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.class_folders.layout import (
    ClassLayout,
    find_class_folders,
    parse_class_list,
)
from recordsmith.sources.classes import (
    check_class_names,
    class_in_name,
    classes_in_names,
    compile_class_pattern,
)
from recordsmith.sources.files.file_tree import FileTree, ImageEntry, ImageListing, TreeSource
from recordsmith.sources.files.images import class_features, read_image, without_suffix
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import check_folder, last_name, relative_place
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Note, Sample, StoredReader, ignore_note
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.words import count

_LAYOUT = "one folder per class, {}/<class>/<image>"


@dataclass(frozen=True)
class ImageReader(StoredReader):
    """Reads image files by name, relative to the root, with their classes. Bytes are unchanged."""

    root: Location
    class_names: tuple[str, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        features = read_image(self.root / sample.name, sample.name)
        return features | class_features(sample.label, self.class_names)


class ImageFiles(TreeSource):
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
        self._below = "" if images is None else _path_inside(self.root, images)
        self._folder = self.root / self._below if self._below else self.root
        self._pattern = compile_class_pattern(class_pattern)

    def __repr__(self) -> str:
        images = f", images={self._below!r}" if self._below else ""
        pattern = "" if self._pattern is None else f", class_pattern={self._pattern.pattern!r}"
        return f"ImageFiles({str(self.root)!r}{images}{pattern})"

    def list_samples(self) -> Listing:
        """Find all images, sorted by path.

        Raises:
            SourceError: there are no images, or some have no class.
            OptionError: the root is a file.
            FileAccessError: a folder cannot be read.
        """
        for folder in (self.root, self._folder):
            check_folder(folder, "a folder with images")
        tree = self._take_tree(self.root)
        head = f"{self._below}/" if self._below else ""
        listing = ImageListing(self._folder)
        classes: tuple[str, ...] | None = None
        if self._pattern is not None:
            names = (head + image.name for image in tree.walk_images(ImageListing(self._folder)))
            classes = classes_in_names(self._pattern, names, self.root)
        splits = _split_folders(tree.below(self._below))
        samples = collect(self._samples(tree.walk_images(listing), classes or (), bool(splits)))
        if not len(samples):
            what = f"found {summarize_paths(listing.others)}"
            what = what if listing.others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=self._folder)
        images, others, _ = tree.list_outside(self.root, [self._folder])
        notices = (
            *count_notice(listing.hidden, "hidden file", "skipped"),
            *count_notice(listing.links, "link to a folder", "not followed", "links to folders"),
            *count_notice(listing.others, "non-image file", "skipped"),
            *count_notice(images, "image", f"outside {head} skipped"),
            *count_notice(others, "other file", "skipped"),
        )
        return Listing(
            samples,
            ImageReader(self.root, classes),
            classes,
            notices,
            sort_splits(splits),
            only_split(reversed(self._below.split("/")), self.root),
        )

    def _samples(
        self, images: Iterable[ImageEntry], classes: Sequence[str], has_splits: bool
    ) -> Iterator[Sample]:
        labels = {name: label for label, name in enumerate(classes)}
        head = f"{self._below}/" if self._below else ""
        for below, size, version in images:
            name = head + below
            label = None if self._pattern is None else labels[class_in_name(self._pattern, name)]
            split = below.partition("/")[0] if has_splits else None
            yield Sample(name, size, label, split, version=version)

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {
            "kind": "ImageFiles",
            "folder": last_name(self.root),
            **({"images": self._below} if self._below else {}),
            "class_pattern": pattern,
        }


def _split_folders(tree: FileTree) -> list[str]:
    """The folders with images, if all are named like splits and no images are elsewhere."""
    filled = tree.filled("")
    is_split = all(map(is_split_name, filled)) and not tree.has_direct_image(tree.root)
    return filled if is_split else []


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
                [default: root, or the only folder in it that contains images]
            labels: a list with the class of each image in a split without class folders, such as
                ImageNet's `val.txt` or `LOC_val_solution.csv`: the name of an image and its class,
                or the class's number, on each line.

        Raises:
            OptionError: the images are outside the root.
        """
        self.root = as_folder(root)
        self._images = None if images is None else _path_inside(self.root, images)
        self._labels = None if labels is None else relative_place(self.root, labels, as_location)

    def __repr__(self) -> str:
        options = {k: v for k, v in self.describe().items() if k not in ("kind", "folder")}
        described = "".join(f", {name}={value!r}" for name, value in options.items())
        return f"ImageFolder({str(self.root)!r}{described})"

    def list_samples(self) -> Listing:
        """Find classes and images, sorted by class and file name.

        Raises:
            SourceError: there are no images in class folders.
            OptionError: the root is a file.
            FileAccessError: the root or a folder in it cannot be read.
        """
        check_folder(self.root, _LAYOUT.format("<folder>"))
        tree = self._take_tree(self.root)
        inner = tree.below(self._images or "")
        layout = find_class_folders(inner, descend=self._images is None)
        walk = _Walk(tree, inner.root, layout, self._labels)
        if not walk.classes:
            raise walk.nothing_found()
        check_class_names(walk.classes, "class folder")
        samples = collect(walk.samples())
        above = [self._images or "", *layout.base.split("/")]
        return Listing(
            samples,
            ImageReader(walk.base, walk.classes),
            walk.classes,
            tuple(walk.notices()),
            sort_splits([*layout.splits, *walk.listed]),
            only_split([name for path in above[::-1] for name in path.split("/")], self.root),
        )

    def describe(self) -> Mapping[str, Any]:
        described = {"kind": "ImageFolder", "folder": last_name(self.root)}
        if self._images is not None:
            described["images"] = self._images or "."
        if self._labels is not None:
            described["labels"] = self._labels.name
        return described


class _Walk:
    """Yields the samples of class folders, and keeps what it skips.

    Names are relative to `base`; the classes of the splits in `listed` are those of a list.
    """

    def __init__(
        self, tree: FileTree, root: Location, layout: ClassLayout, list_file: Location | None
    ) -> None:
        self._tree = tree
        self.base = root / layout.base if layout.base else root
        parts: Mapping[Any, str] = layout.splits or {None: layout.base}
        self._folders: list[tuple[str | None, Location]] = [
            (split, part / name)
            for split, path in parts.items()
            for part in [root / path if path else root]
            for name in tree.list_images(part).folders
        ]
        filled = {folder.name for _, folder in self._folders if tree.has_direct_image(folder)}
        self.classes = tuple(sorted(filled))
        flat = layout.flat if layout.splits else {}  # otherwise they are classes
        self._flat = {split: root / path for split, path in flat.items()}
        self._list_file = list_file
        self._list: Mapping[str, str] = {}
        self.listed: dict[str, Location] = {}
        if list_file is not None:
            self._list = parse_class_list(read_lines(list_file), self.classes, list_file)
            named = {split: f for split, f in self._flat.items() if split in list_file.name}
            self.listed = self._flat if len(self._flat) == 1 else named
        self._skipped: list[ImageListing] = []
        self._unlisted: list[str] = []
        self._unused_count = len(self._list)

    def samples(self) -> Iterator[Sample]:
        """Yield all samples, once; one folder is held at a time."""
        labels = {name: label for label, name in enumerate(self.classes)}
        for split, folder in self._folders:
            listing = self._tree.list_images(folder)
            prefix = f"{split}/{folder.name}" if split else folder.name
            label = labels.get(folder.name)
            for name, size, version in listing.images:
                yield Sample(f"{prefix}/{name}", size, label, split, version=version)
            listing.images = listing.images[:1]
            self._skipped.append(listing)
        for listed_split, folder in self.listed.items():
            images = self._tree.list_images(folder).images
            prefix = str(folder.relative_to(self.base))
            for name, size, version in images:
                text = self._list.get(without_suffix(name))
                if text is None:
                    self._unlisted.append(f"{prefix}/{name}")
                    continue
                self._unused_count -= 1
                yield Sample(f"{prefix}/{name}", size, labels[text], listed_split, version=version)

    def notices(self) -> list[str]:
        """One notice per kind of skipped file, when all samples were yielded."""
        notices = []
        classes = [listing.path.name for listing in self._skipped if listing.images]
        if classes and all(map(is_split_name, classes)):
            notices.append(
                f"{count(len(classes), 'class', 'classes')} named like splits: "
                f"{join_names(classes)}. If they are splits, put the images of each into class "
                "folders."
            )
        used = [folder for _, folder in self._folders] + [*self._flat.values()]
        if self._list_file is not None:
            used.append(self._list_file)
        outside = self._tree.list_outside(self._tree.root, used)
        deeper = [
            image
            for listing in self._skipped
            for name in listing.folders
            for image in self._tree.list_outside(listing.path / name).images
        ]
        hidden = [path for listing in self._skipped for path in listing.hidden]
        others = [path for listing in self._skipped for path in listing.others]
        empty = [str(listing.path) for listing in self._skipped if not listing.images]
        notices += count_notice(outside.images, "image", "outside class folders skipped")
        notices += count_notice(empty, "class folder", "without images skipped")
        notices += count_notice(deeper, "image", "in folders inside class folders skipped")
        notices += count_notice([*outside.hidden, *hidden], "hidden file", "skipped")
        notices += count_notice([*outside.others, *others], "non-image file", "skipped")
        for split, folder in self._flat.items():
            if split not in self.listed:
                number = count(len(self._tree.list_images(folder).images), "image")
                notices.append(f"{number} in {folder} without class folders skipped")
        if self._list_file is not None:
            name = self._list_file.name
            notices += count_notice(self._unlisted, "image", f"missing from {name} skipped")
            if self._unused_count > 0:
                names = count(self._unused_count, "name")
                notices.append(f"{names} in {name} without an image")
        return notices

    def nothing_found(self) -> SourceError:
        """The error for a folder without class folders that contain images."""
        for _ in self.samples():
            pass
        tree = self._tree
        root = tree.list_images(tree.root)
        deeper = {
            str((tree.root / path).parent)
            for path, scan in tree.folders.items()
            if path and scan.image_count
        }
        remedy = "Check that this is the right folder."
        if root.images:
            found = f"found images outside class folders: {join_names(i.name for i in root.images)}"
            remedy = "Move the images of each class into a folder, or pack them as ImageFiles."
        elif deeper:
            found = "found images only in deeper folders"
            remedy = f"Pack {join_names(sorted(deeper), 'or')} instead."
        elif root.folders:
            found = f"found folders without images: {join_names(root.folders)}"
        else:
            found = f"found only {summarize_paths(root.others)}"
            found = found if root.others else "the folder is empty"
        return SourceError(
            f"no images to pack: {found}; expected {_LAYOUT.format(tree.root)}",
            self.notices(),
            path=tree.root,
            remedy=remedy,
        )


def _path_inside(root: Location, images: PlaceLike) -> str:
    """The path of the folder of the images relative to the root."""
    folder = relative_place(root, images, as_folder)
    below = folder.relative_to(root)
    if below is None:
        raise OptionError(f"{folder} is outside {root}", option="images", value=str(images))
    return below
