"""Images with segmentation masks: two folders with the same names, a list of pairs, PASCAL VOC.

A listed pair whose files are missing stays in the listing and fails when it is read, so that
packing reports it with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from recordsmith.dataset import ClassNames
from recordsmith.errors import OptionError, option
from recordsmith.sources.class_names import class_in_name, classes_in_names, compile_class_pattern
from recordsmith.sources.files.file_tree import FileTree, TreeSource
from recordsmith.sources.files.name_files import read_lines, read_text
from recordsmith.sources.files.paths import check_folder, is_file, last_name, relative_place
from recordsmith.sources.pairs.detection import find_pairs
from recordsmith.sources.pairs.masks import (
    PRESETS,
    ColoursOption,
    check_colours,
    parse_colour_table,
)
from recordsmith.sources.pairs.name_patterns import parse_pattern
from recordsmith.sources.pairs.pair_folders import (
    VOC_LISTS,
    FolderPair,
    expand_pairs,
    left_out,
    match_folders,
)
from recordsmith.sources.pairs.pair_lists import check_pairs, read_pairs
from recordsmith.sources.pairs.pair_reader import PairReader
from recordsmith.sources.pairs.pairing import NameRule, Pair, Pairing
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import only_split, sort_splits
from recordsmith.stores import Location, PlaceLike, as_folder, as_location

VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair"),
    *("cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
_OF_VOC = re.compile(r"(?:^|/)SegmentationClass/20(0[7-9]|1[0-2])_\d{6}\.png$")
_CLASS_NAMES = "class_names.txt"  # of LabelMe's data_dataset_voc

Pairs: TypeAlias = PlaceLike | Iterable[tuple[PlaceLike, PlaceLike]]


class ImagePairs(TreeSource):
    """Images and their masks for semantic segmentation.

    Each sample has the image features of ImageFolder without the class, and
    `image/segmentation/class/encoded` and `image/segmentation/class/format`: a PNG whose pixels
    are class numbers. PNG masks of class numbers are stored unchanged, with their palette or 16
    bits. Decode palettes and masks of 1, 2 or 4 bits with a reader that returns indices:
    TensorFlow's decode_png returns palette colours and scales fewer bits to 0 to 255.

    The class names are those of the images, with a class pattern; else those of the masks: from a
    file of colours, from `class_names.txt` (LabelMe's `data_dataset_voc`), or of PASCAL VOC, if all
    masks are named like its own (`SegmentationClass/2007_000032.png`).

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
        image_names: str | None = None,
        mask_names: str | None = None,
        pairs: Pairs | None = None,
        split_lists: PlaceLike | None = None,
        class_pattern: str | None = None,
        colours: ColoursOption | PlaceLike | None = None,
    ) -> None:
        """Pass a folder that contains both, or both folders, or the pairs.

        Args:
            root: the folder of the dataset; other paths may be relative to it. Without other
                options, `detect` finds the folders of images and masks in it.
            images, masks: the two folders, or twice the same. With a root they may have a `*` for
                a name that both share: `*/images` and `*/masks`, or `*` and `*_masks`. If it
                stands for `train` or `val`, it is the split.
            image_names, mask_names: how files are named, with a `*` for what an image and its mask
                share: `*_leftImg8bit`, `*_gtFine_labelIds`, `*.png`. By default a mask has the
                name of its image, also with `_mask`, `_seg`, `_gt` or `_label` behind it.
            pairs: a file with `image mask` or `image,mask` on each line, relative to the root or
                to the file's own folder; or an iterable of pairs of paths.
            split_lists: a folder with a list of names for each split, such as `train.txt`.
                [default: `ImageSets/Segmentation`, if it exists]
            class_pattern: a regular expression searched in each image's name; its first group, or
                the whole match, is the class.
            colours: for color-coded masks: a mapping from (red, green, blue) to class number;
                "voc" for PASCAL VOC's color table; "grey" for class numbers saved as RGB; or a file
                with red, green, blue and name of each class, the first of which has the number 0.

        Raises:
            OptionError: arguments are missing, invalid or in conflict.
            FileAccessError: the file of colours cannot be read.
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
        self._folders = None if images is None or masks is None else (images, masks)
        self._rule: NameRule | None = None
        if image_names is not None or mask_names is not None:
            self._rule = NameRule(
                parse_pattern(image_names or "*", "image_names"),
                parse_pattern(mask_names or "*", "mask_names"),
            )
        self._list = pairs if isinstance(pairs, (str, os.PathLike)) else None
        self._given: list[tuple[Location, Location]] | None = None
        if pairs is not None and self._list is None:
            self._given = _checked(pairs, self.root)
        self._split_lists = (
            None if split_lists is None else relative_place(self.root, split_lists, as_folder)
        )
        self._pattern = compile_class_pattern(class_pattern)
        self._names = {
            "image_names": image_names,
            "mask_names": mask_names,
            "split_lists": None if self._split_lists is None else self._split_lists.name,
            "class_pattern": class_pattern,
        }
        self._colours = colours
        self._table = check_colours(colours, self.root)

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
        found, roots = self._find(None if self.root is None else self._take_tree(self.root))
        found.pairs.sort(key=lambda pair: pair.name)
        classes = self._classify(found)
        colours = self._table and tuple((*rgb, number) for rgb, number in self._table.items())
        reader = PairReader(*roots, colours or None, classes)
        samples = tuple(map(reader.sample, found.pairs))
        splits = sort_splits(pair.split for pair in found.pairs if pair.split is not None)
        only = only_split([], self.root)
        names = classes or self._mask_classes(found)
        return Listing(samples, reader, names, tuple(found.notices), splits, only)

    def describe(self) -> Mapping[str, Any]:
        described: dict[str, Any] = {"kind": "ImagePairs"}
        if self.root is not None:
            described["folder"] = last_name(self.root)
        if self._folders is not None:
            images, masks = map(self._described, self._folders)
            described |= {"images": images, "masks": masks}
        described |= {name: value for name, value in self._names.items() if value is not None}
        if self._list is not None:
            described["pairs"] = self._described(self._list)
        elif self._given is not None:
            described["pairs"] = len(self._given)
        if isinstance(self._colours, str) and self._colours in PRESETS:
            described["colours"] = self._colours
        elif self._table is not None:
            described["colours"] = sorted([*rgb, number] for rgb, number in self._table.items())
        return described

    def _described(self, folder: PlaceLike) -> str:
        """A folder in the description, which is independent of the location of the root."""
        text = str(folder)
        if self.root is not None and not isinstance(folder, Location) and not text.startswith("/"):
            return text
        place = as_folder(folder)
        below = None if self.root is None else place.relative_to(self.root)
        return below or place.name

    def _classify(self, found: Pairing) -> tuple[str, ...] | None:
        """Give the pairs the labels of their classes, whose names are returned."""
        if self._pattern is None:
            return None
        sound = [pair for pair in found.pairs if pair.fault is None]
        classes = classes_in_names(self._pattern, [pair.name for pair in sound], self.root)
        labels = {name: label for label, name in enumerate(classes)}
        found.pairs = [
            replace(pair, label=labels[class_in_name(self._pattern, pair.name)])
            if pair.fault is None
            else pair
            for pair in found.pairs
        ]
        return classes

    def _mask_classes(self, found: Pairing) -> ClassNames | None:
        """The names of the numbers in masks: of the file of colours, `class_names.txt`, or VOC."""
        if isinstance(self._colours, (str, os.PathLike)) and self._colours not in PRESETS:
            text = read_text(relative_place(self.root, self._colours, as_location))
            return tuple(name or None for _, name in parse_colour_table(text))
        if self.root is not None and is_file(listed := self.root / _CLASS_NAMES):
            return tuple(name for _, name in read_lines(listed) if name != "__ignore__")
        masks = [pair.files[1].key for pair in found.pairs if pair.files is not None]
        return VOC_CLASSES if masks and all(map(_OF_VOC.search, masks)) else None

    def _find(self, tree: FileTree | None) -> tuple[Pairing, tuple[Location, Location]]:
        """The pairs, and the folders that the places of images and masks are relative to."""
        if self._given is not None:
            found = check_pairs(self._given, self.root)
            root = self.root or _common_folder(found.pairs)
            return found, (root, root)
        if self._list is not None:
            path = as_location(self._list)
            if self.root is not None and not is_file(path):
                path = relative_place(self.root, self._list, as_location)
            root = self.root or path.parent
            check_folder(root, "a folder")
            return read_pairs(path, root), (root, root)
        if self._folders is None:
            return ImagePairs._find(self._detected(tree), tree)
        folders = self._folder_pairs(*self._folders)
        for pair in folders:
            for folder in (pair.images, pair.masks):
                check_folder(folder, "a folder")
        outside = [
            self.root is None or folder.relative_to(self.root) is None
            for folder in (folders[0].images, folders[0].masks)
        ]
        base = folders[0].images if outside[0] else self.root
        assert base is not None
        lists = self._split_lists
        if lists is None and self.root is not None and not outside[0]:
            lists = _lists_of_voc(self.root, folders[0].images)
        found = match_folders(tree or FileTree(base), base, folders, self._rule, lists)
        if tree is not None and not any(outside):
            used = [folder for pair in folders for folder in (pair.images, pair.masks)]
            found.notices += left_out(tree, used, lists)
        masks = folders[0].masks if outside[1] else self.root
        assert masks is not None
        return found, (base, masks)

    def _folder_pairs(self, images: PlaceLike, masks: PlaceLike) -> list[FolderPair]:
        if self.root is not None and "*" in str(images) and not isinstance(images, Location):
            return expand_pairs(self.root, str(images), str(masks))
        return [
            FolderPair(
                relative_place(self.root, images, as_folder),
                relative_place(self.root, masks, as_folder),
            )
        ]

    def _detected(self, tree: FileTree | None) -> ImagePairs:
        """The same source with the folders that are found in the root.

        Raises:
            SourceError: there are none, or several; the message has what was found.
        """
        assert self.root is not None
        assert tree is not None
        check_folder(self.root, "a folder")
        given: dict[str, Any] = {name: value for name, value in self._names.items() if value}
        if self._split_lists is not None:
            given["split_lists"] = self._split_lists
        if self._colours is not None:
            given["colours"] = self._colours
        return ImagePairs(self.root, **{**find_pairs(tree, given), **given})


def _lists_of_voc(root: Location, images: Location) -> Location | None:
    """PASCAL VOC's folder of lists next to the folder of images, if there is one."""
    lists = images.parent / VOC_LISTS
    return lists if lists.relative_to(root) is not None and lists.is_folder() else None


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
