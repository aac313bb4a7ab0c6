"""Images in class folders, `root/<class>/image.jpg` or `root/train/<class>/image.jpg`, or in any.

Skipped files are reported as notices.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.sources.class_folders.layout import find_class_folders, splits_of_folders
from recordsmith.sources.classes import (
    check_class_names,
    class_folder_classes,
    classes_in_names,
    compile_pattern,
    numbered_classes_notice,
)
from recordsmith.sources.files.account import Account, Reason, Role, are_few
from recordsmith.sources.files.file_tree import FileTree, TreeSource
from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.files.paths import check_folder, join_path, path_inside
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.samples import Note, Sample, StoredReader, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.support.errors import SourceError
from recordsmith.support.words import count


@dataclass(frozen=True)
class ImageReader(StoredReader):
    """Reads image files by name, relative to the root, with their classes. Bytes are unchanged."""

    root: Location
    class_names: tuple[str | None, ...] | None = None

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
        return {**super().describe(), **images}


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
                `cat_0.jpeg`. An image that does not match is an error, but for few (at most one
                or a tenth) next to the folders of all others, which are skipped.

        Raises:
            OptionError: the pattern is not a regular expression.
        """
        self.root = as_folder(root)
        self._images = None if images is None else path_inside(self.root, images, "images") or None
        self._pattern = compile_pattern(class_pattern, "class_pattern")

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
        head = f"{below}/" if below else ""
        split_of = splits_of_folders(tree.below(below))
        account = tree.account()
        of_folder: Counter[str] = Counter()
        without_class: list[str] = []  # next to folders

        def walk() -> Iterator[Sample]:
            for path, size, version in tree.walk_images(folder, account):
                split = split_of.get(path.partition("/")[0])
                if "/" not in path and self._pattern and not self._pattern.search(head + path):
                    without_class.append(head + path)
                elif split_of and (split is None or "/" not in path):
                    what = "outside the folders of splits skipped"
                    account.leave(Reason.OTHER_READING, [head + path], "image", what)
                else:
                    of_folder[path.rpartition("/")[0]] += 1
                    yield Sample(head + path, size, split=split, version=version)

        samples = collect(walk())
        if not len(samples) and not without_class:
            others = [name for line in account.left_out for name in line.names]
            what = f"found {summarize_paths(others)}" if others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=folder)
        account.read_folders(Role.IMAGE, of_folder, below, samples.names)
        classes: tuple[str, ...] | None = None
        if self._pattern is not None:
            total = len(samples) + len(without_class)
            are_beside = len(samples) and "" not in of_folder and are_few(len(without_class), total)
            if without_class and not are_beside:  # an error
                classes_in_names(self._pattern, [*without_class, *samples.names], self.root)
            account.leave(
                Reason.OTHER_READING, without_class, "image", "outside class folders skipped"
            )
            samples.labels, classes = classes_in_names(self._pattern, samples.names, self.root)
        tree.leave_others([folder], account, f"outside {head}")
        return Listing(
            samples,
            ImageReader(self.root, classes),
            classes,
            numbered_classes_notice(classes),
            sort_splits(split_of.values()),
            only_split(reversed(below.split("/")), self.root),
        ).with_account(tree.finish(account))

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {**super().describe(), "class_pattern": pattern}


class ImageFolder(_ImageSource):
    """Images in one folder per class.

    Each sample has `image/encoded` (the unchanged file), `image/format`, `image/height` and
    `image/width` (from the header; the EXIF orientation is not applied), `image/filename`
    (`<class>/<file>`), `image/class/label` (classes sorted by name, from 0) and
    `image/class/text`. Classes that are all whole numbers are sorted as numbers. Folders named
    train, val, test and so on that contain class folders are splits, and folders that differ only
    in such a word (`train_images`, `test_images`).

    Example:
        rs.pack(rs.ImageFolder("flowers"), "packed")
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        images: PlaceLike | None = None,
        label_map: PlaceLike | None = None,
    ) -> None:
        """
        Args:
            root: the folder of the dataset.
            images: the folder in it that contains the class folders or the folders of splits.
                [default: root, or the only folder in it that contains images]
            label_map: path of a `label_map.pbtxt`, which gives each class its label.

        Raises:
            OptionError: the images are outside the root.
        """
        self.root = as_folder(root)
        self._images = None if images is None else path_inside(self.root, images, "images")
        self._label_map = None if label_map is None else as_location(label_map)

    def describe(self) -> Mapping[str, Any]:
        label_map = {} if self._label_map is None else {"label_map": self._label_map.name}
        return {**super().describe(), **label_map}

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
            (split, f"{path}/{name}" if path else name)
            for split, path in parts.items()
            for name in tree.folder_names(inner.place(path))
        ]
        named = {f"{layout.base}/{name}".lstrip("/"): of for name, of in layout.named.items()}
        folders = [(named[path][0] if path in named else s, path) for s, path in folders]
        class_of = {
            path: named[path][1] if path in named else posixpath.basename(path)
            for _, path in folders
        }
        filled = {path for _, path in folders if tree.has_direct_image(inner.place(path))}
        names = {class_of[path] for path in filled}
        account = tree.account()
        if not names:
            tree.leave_others((), account)
            raise _nothing_found(tree, account)
        check_class_names(names, "class folder")
        classes = class_folder_classes(names, self._label_map)
        above = f"{layout.base}/" if layout.base else ""
        of_folder: Counter[str] = Counter()

        def walk() -> Iterator[Sample]:
            for split, folder in folders:
                label = classes.label_of(class_of[folder]) if folder in filled else None
                head = folder.removeprefix(above)
                deeper = []
                images = 0
                for path, size, version in tree.walk_images(inner.place(folder), account):
                    if "/" in path:
                        deeper.append(join_path(self._images, folder, path))
                    else:
                        images += 1
                        yield Sample(f"{head}/{path}", size, label, split, version=version)
                of_folder[folder] = images
                where = "in folders inside class folders skipped"
                account.leave(Reason.OTHER_READING, deeper, "image", where)

        samples = collect(walk())
        account.read_folders(Role.IMAGE, of_folder, self._images or "")
        notices = numbered_classes_notice(classes.names())
        if all(map(is_split_name, names)):
            notices.append(
                f"{count(len(names), 'class', 'classes')} named like splits: "
                f"{join_names(sorted(names))}. If they are splits, put the images of each into "
                "class folders."
            )
        empty = [join_path(self._images, folder) for _, folder in folders if folder not in filled]
        notices += count_notice(empty, "class folder", "without images skipped")
        for path in layout.flat.values():
            what = "in a split without class folders"
            flat = join_path(self._images, path)
            account.explained.setdefault(f"{flat}/", (Reason.UNLABELLED_SPLIT, what))
        places = (inner.place(folder) for _, folder in folders)
        splits = {join_path(self._images, path) for path in layout.splits.values()}
        tree.leave_others(places, account, "outside class folders", splits)
        tops = [self._images or "", *layout.base.split("/")]
        return Listing(
            samples,
            ImageReader(inner.place(layout.base), classes.names()),
            classes.names(),
            notices,
            sort_splits([*layout.splits, *(split for split, _ in named.values())]),
            only_split([name for path in tops[::-1] for name in path.split("/")], self.root),
            has_label_map=self._label_map is not None,
        ).with_account(tree.finish(account))


def _nothing_found(tree: FileTree, account: Account) -> SourceError:
    """The error for a folder without class folders that contain images."""
    remedy = "Check that this is the right folder."
    left = account.left_out
    images = [name for line in left if line.noun == "image" for name in line.names]
    others = [name for line in left if line.noun != "image" for name in line.names]
    above = {posixpath.dirname(path) for path in images}
    if "" in above or tree.has_direct_image(tree.root):
        found = f"found images outside class folders: {join_names(images)}"
        remedy = "Move the images of each class into a folder, or pack them as ImageFiles."
    elif above:
        found = "found images only in deeper folders"
        places = sorted({str(tree.place(posixpath.dirname(path))) for path in above})
        remedy = f"Pack {join_names(places, 'or')} instead."
    elif names := tree.folder_names(tree.root):
        found = f"found folders without images: {join_names(names)}"
    else:
        found = f"found only {summarize_paths(others)}" if others else "the folder is empty"
    return SourceError(
        f"no images to pack: {found}; expected {tree.root}/<class>/<image>",
        account.notices(),
        path=tree.root,
        remedy=remedy,
    )
