"""Image files in any folders, without classes or with classes from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.class_folders.image_reader import ImageReader
from recordsmith.sources.class_names import (
    class_in_name,
    classes_in_names,
    compile_class_pattern,
)
from recordsmith.sources.files.folders import (
    ImageTree,
    check_folder,
    has_images,
    last_name,
    list_outside,
    relative_place,
    walk_images,
)
from recordsmith.sources.files.images import is_image_file
from recordsmith.sources.numbered import LazyNotices, StreamedSamples
from recordsmith.sources.problems import count_notice, summarize_paths
from recordsmith.sources.source import Listing, Sample
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import FolderEntry, Location, PlaceLike, as_folder


class ImageFiles:
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
        self._folder = self.root if images is None else relative_place(self.root, images, as_folder)
        below = self._folder.relative_to(self.root)
        if below is None:
            raise OptionError(
                f"{self._folder} is outside {self.root}", option="images", value=str(images)
            )
        self._below = below
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
        classes = None if self._pattern is None else self._classes()
        walk = _Walk(self.root, self._below, self._pattern, classes)
        samples = StreamedSamples(walk.samples)
        if not samples:
            others = walk.tree.others
            what = f"found {summarize_paths(others)}" if others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=self._folder)
        return Listing(
            samples,
            ImageReader(self.root, classes),
            classes,
            LazyNotices(samples, walk.notices),
            sort_splits(walk.splits),
            only_split(reversed(self._below.split("/")), self.root),
        )

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {
            "kind": "ImageFiles",
            "folder": last_name(self.root),
            **({"images": self._below} if self._below else {}),
            "class_pattern": pattern,
        }

    def _classes(self) -> tuple[str, ...]:
        """The classes in the names of all images, sorted."""
        assert self._pattern is not None
        head = f"{self._below}/" if self._below else ""
        names = (head + image.name for image in walk_images(ImageTree(self._folder)))
        return tuple(sorted(set(classes_in_names(self._pattern, names, self.root))))


class _Walk:
    """Yields the images below a folder as samples, and keeps what it skips."""

    def __init__(
        self,
        root: Location,
        below: str,
        pattern: re.Pattern[str] | None,
        classes: tuple[str, ...] | None,
    ) -> None:
        self._root = root
        self._head = f"{below}/" if below else ""
        folder = root / below if below else root
        self.tree = ImageTree(folder)
        self._pattern = pattern
        self._labels = {name: label for label, name in enumerate(classes or ())}
        self._entries: list[FolderEntry] | None = list(folder.list_entries())
        self.splits = _split_folders(folder, self._entries)

    def samples(self) -> Iterator[Sample]:
        """Yield all samples, sorted by path."""
        self.tree = ImageTree(self.tree.path)
        entries, self._entries = self._entries, None
        for below, size, version in walk_images(self.tree, entries=entries):
            name = self._head + below
            label = (
                None if self._pattern is None else self._labels[class_in_name(self._pattern, name)]
            )
            split = below.partition("/")[0] if self.splits else None
            yield Sample(name, size, label, split, version=version)

    def notices(self) -> list[str]:
        """The notices on what was skipped, when all samples were yielded."""
        tree = self.tree
        return [
            *count_notice(tree.hidden, "hidden file", "skipped"),
            *count_notice(tree.links, "link to a folder", "not followed", "links to folders"),
            *count_notice(tree.others, "non-image file", "skipped"),
            *self._outside(),
        ]

    def _outside(self) -> list[str]:
        """Notices on what is outside the folder of images."""
        images, others = list_outside(self._root, [self.tree.path])
        return [
            *count_notice(images, "image", f"outside {self._head} skipped"),
            *count_notice(others, "other file", "skipped"),
        ]


def _split_folders(root: Location, entries: Iterable[FolderEntry]) -> list[str]:
    """The folders with images, sorted, if all are named like splits and no images are elsewhere."""
    visible = [entry for entry in entries if not entry.name.startswith(".")]
    folders = [entry.name for entry in visible if entry.kind == "folder"]
    named = set(filter(is_split_name, folders))
    if not named or any(entry.kind != "folder" and is_image_file(root, entry) for entry in visible):
        return []
    if any(name not in named and has_images(root / name) for name in folders):
        return []
    return sorted(name for name in named if has_images(root / name))
