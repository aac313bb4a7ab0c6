"""Image files in any folders, without classes or with classes from their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError
from recordsmith.sources.classes import class_in_name, classes_in_names, compile_class_pattern
from recordsmith.sources.files.file_tree import FileTree, ImageEntry, ImageListing, TreeSource
from recordsmith.sources.files.images import class_features, read_image
from recordsmith.sources.files.paths import check_folder, last_name, relative_place
from recordsmith.sources.numbered import collect
from recordsmith.sources.problems import count_notice, summarize_paths
from recordsmith.sources.source import Listing, Note, Sample, StoredReader, ignore_note
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder


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
        tree = self._take_tree(self.root)
        head = f"{self._below}/" if self._below else ""
        listing = ImageListing(self._folder)
        classes: tuple[str, ...] | None = None
        if self._pattern is not None:
            names = (head + image.name for image in tree.walk_images(ImageListing(self._folder)))
            classes = classes_in_names(self._pattern, names, self.root)
        splits = _split_folders(tree.below(self._below))
        samples = collect(self._samples(tree.walk_images(listing), head, classes or (), splits))
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
        self,
        images: Iterable[ImageEntry],
        head: str,
        classes: Sequence[str],
        splits: Sequence[str],
    ) -> Iterator[Sample]:
        labels = {name: label for label, name in enumerate(classes)}
        for below, size, version in images:
            name = head + below
            label = None if self._pattern is None else labels[class_in_name(self._pattern, name)]
            split = below.partition("/")[0] if splits else None
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
