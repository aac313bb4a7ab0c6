"""Images in class folders: `root/<class>/image.jpg`, or with splits `root/train/<class>/image.jpg`.

Skipped files are reported as notices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.class_folders.image_files import ImageReader
from recordsmith.sources.class_folders.layout import (
    ClassLayout,
    find_class_folders,
    parse_class_list,
)
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.file_tree import FileTree, ImageListing, TreeSource
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.files.name_files import read_lines
from recordsmith.sources.files.paths import check_folder, last_name, relative_place
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Sample
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.words import count

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
                [default: root, or the only folder in it that contains images]
            labels: a list with the class of each image in a split without class folders, such as
                ImageNet's `val.txt` or `LOC_val_solution.csv`: the name of an image and its class,
                or the class's number, on each line.

        Raises:
            OptionError: the images are outside the root.
        """
        self.root = as_folder(root)
        self._images: str | None = None
        if images is not None:
            folder = relative_place(self.root, images, as_folder)
            self._images = folder.relative_to(self.root)
            if self._images is None:
                raise OptionError(
                    f"{folder} is outside {self.root}", option="images", value=str(images)
                )
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

    base: what the names of samples are relative to.
    classes: the names of the folders with images, sorted.
    listed: the splits whose classes are in a list, with their folders.
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
