"""Images with segmentation masks: two folders with the same names, a list of pairs, PASCAL VOC.

A listed pair whose files are missing stays in the listing and fails when it is read, so that
packing reports it with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from recordsmith.dataset import ClassNames
from recordsmith.errors import OptionError, option
from recordsmith.sources.classes import class_in_name, classes_in_names, compile_class_pattern
from recordsmith.sources.files.file_tree import FileTree, TreeSource
from recordsmith.sources.files.name_files import read_lines, read_text
from recordsmith.sources.files.paths import check_folder, is_file, last_name, relative_place
from recordsmith.sources.pairs.layout import resolve_pairs
from recordsmith.sources.pairs.masks import (
    PRESETS,
    ColoursOption,
    check_colours,
    parse_colour_table,
)
from recordsmith.sources.pairs.names import NameRule, parse_pattern
from recordsmith.sources.pairs.pair_folders import (
    VOC_LISTS,
    FolderPair,
    expand_pairs,
    left_out,
    pair_folders,
)
from recordsmith.sources.pairs.pair_lists import check_pairs, read_pairs
from recordsmith.sources.pairs.pair_samples import PairReader, PairSamples
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
        self._rule = NameRule()
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
        tree = None if self.root is None else self._take_tree(self.root)
        if tree is not None and not (self._given or self._list or self._folders):
            return self._resolved(tree).list_samples()
        collected = self._collect(tree)
        samples = tuple(sorted(collected.samples, key=lambda sample: sample.name))
        classes = None
        if self._pattern is not None:
            sound = [sample for sample in samples if "fault" not in (sample.reference or ())]
            classes = classes_in_names(self._pattern, [s.name for s in sound], self.root)
            labels = {name: label for label, name in enumerate(classes)}
            for sample in sound:
                sample.label = labels[class_in_name(self._pattern, sample.name)]
        colours = self._table and tuple((*rgb, number) for rgb, number in self._table.items())
        return Listing(
            samples,
            PairReader(collected.root, collected.mask_root, colours or None, classes),
            classes or self._mask_classes(collected),
            tuple(collected.notices),
            sort_splits(sample.split for sample in samples if sample.split is not None),
            only_split([], self.root),
        )

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

    def _mask_classes(self, collected: PairSamples) -> ClassNames | None:
        """The names of the numbers in masks: of the file of colours, `class_names.txt`, or VOC."""
        if isinstance(self._colours, (str, os.PathLike)) and self._colours not in PRESETS:
            text = read_text(relative_place(self.root, self._colours, as_location))
            return tuple(name or None for _, name in parse_colour_table(text))
        if self.root is not None and is_file(listed := self.root / _CLASS_NAMES):
            return tuple(name for _, name in read_lines(listed) if name != "__ignore__")
        references = (sample.reference or {} for sample in collected.samples)
        masks = [f"{collected.mask_root.key}/{r['mask']}" for r in references if "mask" in r]
        return VOC_CLASSES if masks and all(map(_OF_VOC.search, masks)) else None

    def _resolved(self, tree: FileTree) -> ImagePairs:
        """The same source with the folders that are found in the root."""
        assert self.root is not None
        check_folder(self.root, "a folder")
        given: dict[str, Any] = {name: value for name, value in self._names.items() if value}
        if self._split_lists is not None:
            given["split_lists"] = self._split_lists
        if self._colours is not None:
            given["colours"] = self._colours
        source = ImagePairs(self.root, **{**resolve_pairs(tree, given).options, **given})
        source.use_tree(tree)
        return source

    def _collect(self, tree: FileTree | None) -> PairSamples:
        """Find the pairs, in the way that the options say."""
        if self._given is not None:
            return check_pairs(self._given, self.root)
        if self._list is not None:
            path = as_location(self._list)
            if self.root is not None and not is_file(path):
                path = relative_place(self.root, self._list, as_location)
            root = self.root or path.parent
            check_folder(root, "a folder")
            return read_pairs(path, root)
        assert self._folders is not None
        images, masks = self._folders
        if tree is not None and "*" in str(images) and not isinstance(images, Location):
            folders = expand_pairs(tree, str(images), str(masks))
        else:
            folders = [
                FolderPair(
                    relative_place(self.root, images, as_folder),
                    relative_place(self.root, masks, as_folder),
                )
            ]
            check_folder(folders[0].images, "a folder")
            check_folder(folders[0].masks, "a folder")
        collected = PairSamples(self._base_of(folders[0].images), self._base_of(folders[0].masks))
        lists = self._split_lists
        if lists is None and collected.root == self.root:
            near = folders[0].images.parent / VOC_LISTS
            is_inside = near.relative_to(self.root) is not None
            lists = near if is_inside and near.is_folder() else None
        pair_folders(tree or FileTree(collected.root), collected, folders, self._rule, lists)
        if tree is not None and collected.root == collected.mask_root == self.root:
            used = [folder for pair in folders for folder in (pair.images, pair.masks)]
            collected.notices += left_out(tree, used, lists)
        return collected

    def _base_of(self, folder: Location) -> Location:
        """What files in a folder are relative to: the root, or the folder if it is elsewhere."""
        is_outside = self.root is None or folder.relative_to(self.root) is None
        return folder if is_outside or self.root is None else self.root


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
