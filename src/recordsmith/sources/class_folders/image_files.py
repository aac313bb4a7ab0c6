"""Image files in any folders, without classes or with classes from their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.class_folders.image_reader import ImageReader
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.folders import (
    ImageTree,
    check_folder,
    has_images,
    last_name,
    walk_images,
)
from recordsmith.sources.files.images import is_image_file
from recordsmith.sources.numbered import LazyNotices, StreamedSamples
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Sample
from recordsmith.sources.splits import are_split_names, sort_splits
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

    def __init__(self, root: PlaceLike, *, class_pattern: str | None = None) -> None:
        """
        Args:
            root: the folder. If it contains only folders named train, val, test and so on, these
                are splits.
            class_pattern: a regular expression searched in each path below the root (with `/`).
                Its first group, or the whole match, is the class: `^([a-z]+)_` takes `cat` from
                `cat_0.jpeg`. An image that does not match is an error.

        Raises:
            OptionError: the pattern is not a regular expression.
        """
        self.root = as_folder(root)
        try:
            self._pattern = None if class_pattern is None else re.compile(class_pattern)
        except re.error as error:
            raise OptionError(
                f"{class_pattern!r} is not a regular expression: {error}",
                option="class_pattern",
                value=class_pattern,
            ) from None

    def __repr__(self) -> str:
        pattern = "" if self._pattern is None else f", class_pattern={self._pattern.pattern!r}"
        return f"ImageFiles({str(self.root)!r}{pattern})"

    def list_samples(self) -> Listing:
        """Find all images, sorted by path.

        Raises:
            SourceError: there are no images, or some have no class.
            OptionError: the root is a file.
            FileAccessError: a folder cannot be read.
        """
        check_folder(self.root, "a folder with images")
        classes = None if self._pattern is None else self._classes()
        walk = _Walk(self.root, self._pattern, classes)
        samples = StreamedSamples(walk.samples)
        if not samples:
            others = walk.tree.others
            what = f"found {summarize_paths(others)}" if others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=self.root)
        return Listing(
            samples,
            ImageReader(self.root, classes),
            classes,
            LazyNotices(samples, walk.notices),
            sort_splits(walk.splits),
        )

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {
            "kind": "ImageFiles",
            "folder": last_name(self.root),
            "class_pattern": pattern,
        }

    def _classes(self) -> tuple[str, ...]:
        """The classes in the names of all images, sorted."""
        assert self._pattern is not None
        found: set[str] = set()
        unmatched = []
        number = 0
        for number, image in enumerate(walk_images(ImageTree(self.root)), 1):  # noqa: B007
            name = _group(self._pattern.search(image.name))
            found.add(name)
            if not name:
                unmatched.append(image.name)
        if unmatched:
            raise SourceError(
                f"{len(unmatched):,} of {number:,} images have no class: "
                f"{self._pattern.pattern!r} does not match {join_names(unmatched)}",
                unmatched,
                path=self.root,
            )
        check_class_names(found)
        return tuple(sorted(found))


class _Walk:
    """Yields the images below a folder as samples, and keeps what it skips."""

    def __init__(
        self, root: Location, pattern: re.Pattern[str] | None, classes: tuple[str, ...] | None
    ) -> None:
        self.tree = ImageTree(root)
        self._pattern = pattern
        self._labels = {name: label for label, name in enumerate(classes or ())}
        filled = {entry.name for entry in root.list_entries() if _has_images(root, entry)}
        self.splits = sorted(filled) if are_split_names(filled) else []

    def samples(self) -> Iterator[Sample]:
        """Yield all samples, sorted by path."""
        self.tree = ImageTree(self.tree.path)
        for name, size, version in walk_images(self.tree):
            label = (
                None if self._pattern is None else self._labels[_group(self._pattern.search(name))]
            )
            split = name.partition("/")[0] if self.splits else None
            yield Sample(name, size, label, split, version=version)

    def notices(self) -> list[str]:
        """The notices on what was skipped, when all samples were yielded."""
        tree = self.tree
        return [
            *count_notice(tree.hidden, "hidden file", "skipped"),
            *count_notice(tree.links, "link to a folder", "not followed", "links to folders"),
            *count_notice(tree.others, "non-image file", "skipped"),
        ]


def _has_images(root: Location, entry: FolderEntry) -> bool:
    """Whether an entry of the root is an image, or a folder with images."""
    if entry.name.startswith("."):
        return False
    return has_images(root / entry.name) if entry.kind == "folder" else is_image_file(root, entry)


def _group(match: re.Match[str] | None) -> str:
    """The class in a match: its first group, or the whole match."""
    if match is None:
        return ""
    return (match[1] or "") if match.re.groups else match[0]
