"""Image files in any folders, without classes or with classes from their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.example.keys import CLASS_LABEL, CLASS_TEXT
from recordsmith.sources.classes import check_class_names
from recordsmith.sources.files.folders import check_folder, last_name, read_image_tree
from recordsmith.sources.files.images import read_image
from recordsmith.sources.problems import count_notice, join_names, summarize_paths
from recordsmith.sources.source import Listing, Note, Sample, ignore_note
from recordsmith.sources.splits import are_split_names, sort_splits
from recordsmith.stores import PlaceLike, as_folder


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
        self._class_names: tuple[str, ...] | None = None

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
        tree = read_image_tree(self.root, follows_links=False)
        found = sorted(tree.images, key=itemgetter(0))
        if not found:
            what = f"found {summarize_paths(tree.others)}" if tree.others else "the folder is empty"
            raise SourceError(f"no images to pack: {what}", path=self.root)
        tops = {name.partition("/")[0] for name, _, _ in found}
        has_splits = are_split_names(tops) and all("/" in name for name, _, _ in found)
        classes = self._classes([name for name, _, _ in found])
        if classes is not None:
            self._class_names = tuple(sorted(set(classes)))
            check_class_names(self._class_names)
        labels = {name: label for label, name in enumerate(self._class_names or ())}
        samples = tuple(
            Sample(
                name,
                size,
                None if classes is None else labels[classes[number]],
                name.partition("/")[0] if has_splits else None,
                version=version,
            )
            for number, (name, size, version) in enumerate(found)
        )
        notices = (
            *count_notice(tree.hidden, "hidden file", "skipped"),
            *count_notice(tree.links, "link to a folder", "not followed", "links to folders"),
            *count_notice(tree.others, "non-image file", "skipped"),
        )
        splits = sort_splits(tops) if has_splits else ()
        return Listing(samples, self._class_names, notices, splits)

    def read_sample(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        """Read one image file, unchanged."""
        features = read_image(self.root / sample.name, sample.name)
        if self._class_names is not None and sample.label is not None:
            features[CLASS_LABEL] = sample.label
            features[CLASS_TEXT] = os.fsencode(self._class_names[sample.label])
        return features

    def describe(self) -> Mapping[str, Any]:
        pattern = None if self._pattern is None else self._pattern.pattern
        return {
            "kind": "ImageFiles",
            "folder": last_name(self.root),
            "class_pattern": pattern,
        }

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _classes(self, names: list[str]) -> list[str] | None:
        if self._pattern is None:
            return None
        matches = [self._pattern.search(name) for name in names]
        unmatched = [name for name, match in zip(names, matches, strict=True) if not _group(match)]
        if unmatched:
            raise SourceError(
                f"{len(unmatched):,} of {len(names):,} images have no class: "
                f"{self._pattern.pattern!r} does not match {join_names(unmatched)}",
                unmatched,
                path=self.root,
            )
        return [_group(match) for match in matches]


def _group(match: re.Match[str] | None) -> str:
    """The class in a match: its first group, or the whole match."""
    if match is None:
        return ""
    return (match[1] or "") if match.re.groups else match[0]
