"""Images with segmentation masks: two folders with the same names, a list of pairs, PASCAL VOC.

A listed pair whose files are missing stays in the listing and fails when it is read, so that
packing reports it with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from recordsmith.errors import OptionError, option
from recordsmith.sources.files.folders import check_folder, is_file, last_name, relative_place
from recordsmith.sources.pairs.masks import ColoursOption, check_colours
from recordsmith.sources.pairs.pair_folders import (
    FolderPair,
    find_folders,
    match_folders,
    other_entries,
)
from recordsmith.sources.pairs.pair_lists import check_pairs, read_pairs
from recordsmith.sources.pairs.pair_reader import PairReader
from recordsmith.sources.pairs.pairing import Pair, Pairing
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location

Pairs: TypeAlias = PlaceLike | Iterable[tuple[PlaceLike, PlaceLike]]


class ImagePairs:
    """Images and their masks for semantic segmentation.

    Each sample has the image features of ImageFolder without the class, and
    `image/segmentation/class/encoded` and `image/segmentation/class/format`: a PNG whose pixels
    are class numbers. PNG masks of class numbers are stored unchanged, with their palette or 16
    bits. Decode palettes and masks of 1, 2 or 4 bits with a reader that returns indices:
    TensorFlow's decode_png returns palette colours and scales fewer bits to 0 to 255.

    Example:
        >>> rs.ImagePairs(images="photos", masks="drawn")
        ImagePairs(images='photos', masks='drawn')
    """

    def __init__(
        self,
        root: PlaceLike | None = None,
        *,
        images: PlaceLike | None = None,
        masks: PlaceLike | None = None,
        pairs: Pairs | None = None,
        colours: ColoursOption | None = None,
    ) -> None:
        """Pass a folder that contains both, or both folders, or the pairs.

        Args:
            root: the folder of the dataset; other paths may be relative to it.
            images, masks: the two folders, with the same file names.
            pairs: a file with `image mask` or `image,mask` on each line, relative to the root or
                to the file's own folder; or an iterable of pairs of paths.
            colours: for color-coded masks: a mapping from (red, green, blue) to class number;
                "voc" for PASCAL VOC's color table; "grey" for class numbers saved as RGB.

        Raises:
            OptionError: arguments are missing, invalid or in conflict.
        """
        if (images is None) != (masks is None):
            missing, passed = ("images", "masks") if images is None else ("masks", "images")
            raise OptionError(f"{option(passed)} needs {option(missing)} as well", option=missing)
        if pairs is not None and images is not None:
            raise OptionError(
                f"{option('pairs')} and {option('images')} exclude each other",
                option="pairs",
                remedy="Pass only one of them.",
            )
        if root is None and images is None and pairs is None:
            raise OptionError(
                "nothing to pack: expected a root folder, folders of images and masks, or pairs",
                option="root",
            )
        self.root = None if root is None else as_folder(root)
        self._folders: FolderPair | None = None
        if images is not None and masks is not None:
            self._folders = FolderPair(
                relative_place(self.root, images, as_folder),
                relative_place(self.root, masks, as_folder),
            )
        self._list = pairs if isinstance(pairs, (str, os.PathLike)) else None
        self._given: list[tuple[Location, Location]] | None = None
        if pairs is not None and self._list is None:
            self._given = _checked(pairs, self.root)
        self._colours = colours
        self._table = check_colours(colours)

    def __repr__(self) -> str:
        described = self.describe().items()
        options = [f"{name}={value!r}" for name, value in described if name != "kind"]
        return f"ImagePairs({', '.join(options)})"

    def list_samples(self) -> Listing:
        """Find all pairs, sorted by name, without opening files that have an image suffix.

        Raises:
            SourceError: there are no pairs; the message has what was found and expected.
            OptionError: a folder is a file, or pairs are outside the root.
            FileAccessError: a folder or a list cannot be read.
        """
        found = self._find()
        found.pairs.sort(key=lambda pair: pair.name)
        colours = self._table and tuple((*rgb, number) for rgb, number in self._table.items())
        reader = PairReader(*self._roots(found.pairs), colours or None)
        samples = tuple(map(reader.sample, found.pairs))
        splits = sort_splits(pair.split for pair in found.pairs if pair.split is not None)
        return Listing(samples, reader, notices=tuple(found.notices), splits=splits)

    def describe(self) -> Mapping[str, Any]:
        described: dict[str, Any] = {"kind": "ImagePairs"}
        if self.root is not None:
            described["folder"] = last_name(self.root)
        if self._folders is not None:
            described |= {"images": self._folders.images.name, "masks": self._folders.masks.name}
        if self._list is not None:
            described["pairs"] = as_location(self._list).name
        elif self._given is not None:
            described["pairs"] = len(self._given)
        if isinstance(self._colours, str):
            described["colours"] = self._colours
        elif self._table is not None:
            described["colours"] = sorted([*rgb, number] for rgb, number in self._table.items())
        return described

    def _roots(self, pairs: Sequence[Pair]) -> tuple[Location, Location]:
        """The folders that the places of images and masks are relative to."""
        root = self.root or _common_folder(pairs)
        if self._folders is None:
            return root, root
        images, masks = self._folders.images, self._folders.masks
        return (
            images if self.root is None or images.relative_to(root) is None else root,
            masks if self.root is None or masks.relative_to(root) is None else root,
        )

    def _find(self) -> Pairing:
        if self._given is not None:
            return check_pairs(self._given, self.root)
        if self._list is not None:
            path = as_location(self._list)
            if self.root is not None and not is_file(path):
                path = relative_place(self.root, self._list, as_location)
            root = self.root or path.parent
            check_folder(root, "a folder")
            return read_pairs(path, root)
        if self._folders is not None:
            for folder in (self._folders.images, self._folders.masks):
                check_folder(folder, "a folder")
            base = self._folders.images
            if self.root is not None and base.relative_to(self.root) is not None:
                base = self.root
            return match_folders(base, [self._folders])
        assert self.root is not None
        check_folder(self.root, "a folder")
        base, folders = find_folders(self.root)
        found = match_folders(base, folders)
        found.add_notice(
            other_entries(base, folders),
            "other entry",
            "next to images and masks skipped",
            "other entries",
        )
        return found


def _checked(pairs: Any, root: Location | None) -> list[tuple[Location, Location]]:
    """The pairs of a caller, as locations."""
    checked = []
    for pair in pairs:
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise OptionError(option="pairs", value=pair, expected="pairs of paths, image and mask")
        image, mask = (relative_place(root, place, as_location) for place in pair)
        checked.append((image, mask))
    if not checked:
        raise OptionError(option="pairs", value=[], expected="pairs of paths, image and mask")
    return checked


def _common_folder(pairs: Sequence[Pair]) -> Location:
    """The folder that contains the images and masks of all pairs."""
    places = [place.absolute() for pair in pairs for place in pair.files or ()]
    folders = {place.parent.key for place in places}
    return Location(places[0].store, os.path.commonpath(folders) if all(folders) else "")
