"""Images with segmentation masks: two folders with the same names, or one; PASCAL VOC's lists.

A listed name without an image or a mask stays in the listing and fails when it is read, so that
packing reports it with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.dataset import ClassNames, is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.classes import class_in_name, classes_in_names, compile_class_pattern
from recordsmith.sources.files.file_tree import FileTree, ImageListing, TreeSource
from recordsmith.sources.files.images import class_features, read_image, without_suffix
from recordsmith.sources.files.name_files import read_lines, read_text
from recordsmith.sources.files.paths import (
    check_folder,
    common_version,
    is_file,
    last_name,
    place_below,
    referenced,
    relative_place,
)
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.pairs.layout import resolve_pairs
from recordsmith.sources.pairs.masks import (
    PRESETS,
    ColoursOption,
    check_colours,
    mask_features,
    parse_colour_table,
)
from recordsmith.sources.pairs.names import (
    PLAIN,
    Matches,
    is_mask_name,
    match_names,
    parse_pattern,
)
from recordsmith.sources.problems import Fault, count_notice, join_names, reference_of
from recordsmith.sources.source import Listing, Note, Sample, StoredReader, ignore_note
from recordsmith.sources.splits import is_like_split, only_split, sort_splits, split_lists
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.words import count

VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair"),
    *("cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
_OF_VOC = re.compile(r"(?:^|/)SegmentationClass/20(0[7-9]|1[0-2])_\d{6}\.png$")
_VOC_LISTS = "ImageSets/Segmentation"
_CLASS_NAMES = "class_names.txt"  # of LabelMe's data_dataset_voc


@dataclass(frozen=True)
class PairReader(StoredReader):
    """Reads an image and its mask; a colour is (red, green, blue, class number)."""

    root: Location
    mask_root: Location
    colours: tuple[tuple[int, int, int, int], ...] | None = None
    class_names: tuple[str, ...] | None = None

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        reference = reference_of(sample)
        features = read_image(referenced(self.root, reference["image"]), sample.name)
        features |= class_features(sample.label, self.class_names)
        colours = self.colours and {(r, g, b): number for r, g, b, number in self.colours}
        mask = referenced(self.mask_root, reference["mask"])
        return features | mask_features(str(mask), mask.read(), features, colours or None, note)


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
        split_lists: PlaceLike | None = None,
        class_pattern: str | None = None,
        colours: ColoursOption | PlaceLike | None = None,
    ) -> None:
        """Pass a folder that contains both, or both folders.

        Args:
            root: the folder of the dataset; other paths may be relative to it. Without other
                options, `detect` finds the folders of images and masks in it.
            images, masks: the two folders, or twice the same. With a root they may have a `*` for
                a name that both share: `*/images` and `*/masks`, or `*` and `*_masks`. If it
                stands for `train` or `val`, it is the split.
            image_names, mask_names: how files are named, with a `*` for what an image and its mask
                share: `*_leftImg8bit`, `*_gtFine_labelIds`, `*.png`. By default a mask has the
                name of its image, also with `_mask`, `_seg`, `_gt` or `_label` behind it.
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
        if root is None and images is None:
            raise OptionError(
                "nothing to pack: expected a root folder, or folders of images and masks",
                option="root",
            )
        self.root = None if root is None else as_folder(root)
        self._folders = None if images is None or masks is None else (images, masks)
        self._image_pattern, self._mask_pattern = PLAIN, None
        if image_names is not None or mask_names is not None:
            self._image_pattern = parse_pattern(image_names or "*", "image_names")
            self._mask_pattern = parse_pattern(mask_names or "*", "mask_names")
        self._lists = (
            None if split_lists is None else relative_place(self.root, split_lists, as_folder)
        )
        self._pattern = compile_class_pattern(class_pattern)
        self._names = {
            "image_names": image_names,
            "mask_names": mask_names,
            "split_lists": None if self._lists is None else self._lists.name,
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
            SourceError: there are no pairs, or a name fits several files; the message has what was
                found and expected.
            OptionError: a folder is a file.
            FileAccessError: a folder or a list cannot be read.
        """
        if self._folders is None:
            return self._resolved().list_samples()
        tree = None if self.root is None else self._take_tree(self.root)
        folders = _expand_pairs(tree, self.root, *self._folders)
        collected = _Pairs(self._base_of(folders[0].images), self._base_of(folders[0].masks))
        lists = self._lists
        if lists is None and collected.root == self.root:
            near = folders[0].images.parent / _VOC_LISTS
            is_inside = near.relative_to(self.root) is not None
            lists = near if is_inside and near.is_folder() else None
        known_tree = tree or FileTree(collected.root)
        for pair in folders:
            collected.add_folders(known_tree, pair, self._match(known_tree, pair, collected), lists)
        collected.finish(folders)
        if tree is not None and collected.root == collected.mask_root == self.root:
            used = [folder for pair in folders for folder in (pair.images, pair.masks)]
            images, others, _ = tree.list_outside(self.root, used)
            others = [path for path in others if path.rpartition("/")[0] != str(lists)]
            what = "outside the folders of images and masks skipped"
            collected.notices += count_notice(images, "image", what)
            collected.notices += count_notice(others, "other file", "skipped")
        return self._listing(collected)

    def describe(self) -> Mapping[str, Any]:
        described: dict[str, Any] = {"kind": "ImagePairs"}
        if self.root is not None:
            described["folder"] = last_name(self.root)
        if self._folders is not None:
            images, masks = map(self._described, self._folders)
            described |= {"images": images, "masks": masks}
        described |= {name: value for name, value in self._names.items() if value is not None}
        if isinstance(self._colours, str) and self._colours in PRESETS:
            described["colours"] = self._colours
        elif self._table is not None:
            described["colours"] = sorted([*rgb, number] for rgb, number in self._table.items())
        return described

    def _base_of(self, folder: Location) -> Location:
        """What files in a folder are relative to: the root, or the folder if it is elsewhere."""
        is_outside = self.root is None or folder.relative_to(self.root) is None
        return folder if is_outside or self.root is None else self.root

    def _described(self, folder: PlaceLike) -> str:
        """A folder in the description, which is independent of the location of the root."""
        text = str(folder)
        if self.root is not None and not isinstance(folder, Location) and not text.startswith("/"):
            return text
        place = as_folder(folder)
        below = None if self.root is None else place.relative_to(self.root)
        return below or place.name

    def _resolved(self) -> ImagePairs:
        """The same source with the folders that are found in the root."""
        assert self.root is not None
        check_folder(self.root, "a folder")
        tree = self._take_tree(self.root)
        given: dict[str, Any] = {name: value for name, value in self._names.items() if value}
        if self._lists is not None:
            given["split_lists"] = self._lists
        if self._colours is not None:
            given["colours"] = self._colours
        source = ImagePairs(self.root, **{**resolve_pairs(tree, given).options, **given})
        source.use_tree(tree)
        return source

    def _match(self, tree: FileTree, pair: _FolderPair, collected: _Pairs) -> Matches:
        """Match the files of a folder of images and of its folder of masks by name."""
        images = collected.list_all(tree, pair.images)
        if pair.masks == pair.images:
            pattern = self._mask_pattern
            masks = [name for name in images if is_mask_name(name, pattern)]
            images = [name for name in images if not is_mask_name(name, pattern)]
        else:
            masks = collected.list_all(tree, pair.masks)
            inner = pair.masks.relative_to(pair.images)
            if inner:  # a folder of masks in the folder of images
                images = [name for name in images if not name.startswith(f"{inner}/")]
        return match_names(images, masks, self._image_pattern, self._mask_pattern)

    def _listing(self, collected: _Pairs) -> Listing:
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

    def _mask_classes(self, collected: _Pairs) -> ClassNames | None:
        """The names of the numbers in masks: of the file of colours, `class_names.txt`, or VOC."""
        if isinstance(self._colours, (str, os.PathLike)) and self._colours not in PRESETS:
            text = read_text(relative_place(self.root, self._colours, as_location))
            return tuple(name or None for _, name in parse_colour_table(text))
        if self.root is not None and is_file(listed := self.root / _CLASS_NAMES):
            return tuple(name for _, name in read_lines(listed) if name != "__ignore__")
        references = (sample.reference or {} for sample in collected.samples)
        masks = [f"{collected.mask_root.key}/{r['mask']}" for r in references if "mask" in r]
        return VOC_CLASSES if masks and all(map(_OF_VOC.search, masks)) else None


class _FolderPair(NamedTuple):
    """A folder of images and its folder of masks; the same folder if it contains both."""

    images: Location
    masks: Location
    split: str | None = None


def _expand_pairs(
    tree: FileTree | None, root: Location | None, images: PlaceLike, masks: PlaceLike
) -> list[_FolderPair]:
    """The folders that the options mean: two, or all that fit patterns with as many `*`.

    A `*` stands for the name of one folder or a part of it. If one `*` stands for splits in some
    of the folders, it is the split of all.
    """
    if tree is None or "*" not in str(images) or isinstance(images, Location):
        pair = _FolderPair(
            relative_place(root, images, as_folder), relative_place(root, masks, as_folder)
        )
        check_folder(pair.images, "a folder")
        check_folder(pair.masks, "a folder")
        return [pair]
    if str(images).count("*") != str(masks).count("*"):
        raise OptionError(
            f"{option('images')} and {option('masks')} need the same number of *",
            option="masks",
            value=masks,
        )
    image_folders, mask_folders = (
        dict(_expand(tree, tree.root, [p for p in str(pattern).split("/") if p not in ("", ".")]))
        for pattern in (images, masks)
    )
    stars = sorted(image_folders.keys() & mask_folders.keys())
    if not stars:
        raise SourceError(
            f"no folders fit both {str(images)!r} and {str(masks)!r}",
            path=tree.root,
            remedy=f"Check {option('images')} and {option('masks')}.",
        )
    places = (place for star in stars for place, name in enumerate(star) if is_split_name(name))
    place = min(places, default=None)
    return [
        _FolderPair(image_folders[star], mask_folders[star], None if place is None else star[place])
        for star in stars
    ]


def _expand(
    tree: FileTree, folder: Location, parts: Sequence[str], stars: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Location]]:
    """Yield the folders that a pattern means, and what each `*` stands for, in order."""
    if not parts:
        yield stars, folder
        return
    pattern = re.compile(re.escape(parts[0]).replace(r"\*", "(.+)"), re.DOTALL)
    for entry in tree.entries(folder):
        match = pattern.fullmatch(entry.name)
        if entry.kind == "folder" and match is not None and not entry.name.startswith("."):
            yield from _expand(tree, folder / entry.name, parts[1:], (*stars, *match.groups()))


@dataclass
class _Pairs:
    """Collects pairs; names of samples are relative to the root."""

    root: Location
    mask_root: Location
    samples: list[Sample] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    listings: list[ImageListing] = field(default_factory=list)

    def list_all(self, tree: FileTree, folder: Location) -> list[str]:
        """The images below a folder."""
        listing = ImageListing(folder)
        listing.images = list(tree.walk_images(listing, follows_links=True))
        self.listings.append(listing)
        return [image.name for image in listing.images]

    def add_folders(
        self, tree: FileTree, folders: _FolderPair, matches: Matches, lists: Location | None
    ) -> None:
        """Add the pairs of the folders that were listed last; of the lists, if there are any."""
        other = [str(folders.images / name) for name in matches.other_images]
        other += [str(folders.masks / name) for name in matches.other_masks]
        self.notices += count_notice(other, "image", "with other names skipped")
        if matches.ambiguous:
            images, masks = matches.ambiguous[0]
            raise SourceError(
                f"{count(len(matches.ambiguous), 'name')} of images and masks fit several files: "
                f"{join_names(images)} and {join_names(masks)}",
                path=folders.images,
                remedy="Rename or remove some of them.",
            )
        file_listings = self.listings[-1 if folders.images == folders.masks else -2 :]
        files = [{file.name: file for file in listing.images} for listing in file_listings]
        head = folders.images.relative_to(self.root)

        def add(image: str, mask: str, split: str | None) -> None:
            entries = files[0][image], files[-1][mask]
            self.samples.append(
                Sample(
                    f"{head}/{image}" if head else image,
                    sum(entry.size_bytes for entry in entries),
                    split=split,
                    version=common_version(entry.version for entry in entries),
                    reference={
                        "image": place_below(self.root, folders.images / image),
                        "mask": place_below(self.mask_root, folders.masks / mask),
                    },
                )
            )

        list_files: dict[str, Location] = {}
        if lists is not None:
            names = split_lists(entry.name for entry in lists.list_entries())
            list_files = {split: lists / name for split, name in names.items()}
        if lists is not None and list_files:
            self._add_listed(matches, list_files, lists, folders, add)
            return
        tops = {image.partition("/")[0] if "/" in image else "" for image, _ in matches.pairs}
        is_split_below = folders.split is None and bool(tops) and all(map(is_like_split, tops))
        for image, mask in matches.pairs:
            add(image, mask, image.partition("/")[0] if is_split_below else folders.split)
        lone = [str(folders.images / image) for image in matches.lone_images]
        check = Check.IMAGE_WITHOUT_ANNOTATION
        self.notices += count_notice(lone, "image", "without a mask skipped", check=check)
        lone = [str(folders.masks / mask) for mask in matches.lone_masks]
        check = Check.ANNOTATION_WITHOUT_IMAGE
        self.notices += count_notice(lone, "mask", "without an image skipped", check=check)

    def _add_listed(
        self,
        matches: Matches,
        files: Mapping[str, Location],
        lists: Location,
        folders: _FolderPair,
        add: Any,
    ) -> None:
        """Add the names in lists; each fault has the line of its name."""
        pairs = {without_suffix(image): (image, mask) for image, mask in matches.pairs}
        lone = {without_suffix(image) for image in matches.lone_images}
        known = {*pairs, *lone}
        first_places: dict[str, tuple[Location, int]] = {}
        repeated: list[str] = []
        no_mask = Check.IMAGE_WITHOUT_ANNOTATION
        for split, path in files.items():
            lines = [
                (number, _listed_name(line, known))
                for number, line in read_lines(path)
                if not line.startswith("#")
            ]
            if lines and all(name in lone for _, name in lines):
                images = count(len(lines), "image")
                notice = f"{images} without a mask skipped, the whole split: {path}"
                self.notices.append(Flaw(notice, no_mask, files=[str(path)], item_count=len(lines)))
                first_places |= {name: (path, number) for number, name in lines}
                continue
            for number, name in lines:
                first = first_places.setdefault(name, (path, number))
                check: Check | None = None
                if first[0] == path and first[1] != number:
                    repeated.append(f"{path}, line {number}")
                    continue
                if first != (path, number):
                    problem = f"{name} is already in {first[0]}, line {first[1]}"
                elif name in pairs:
                    add(*pairs[name], split)
                    continue
                elif name in lone:
                    check, problem = no_mask, f"{name} has no mask in {folders.masks}"
                else:
                    check = Check.ANNOTATION_WITHOUT_IMAGE
                    problem = f"{name} has no image in {folders.images}"
                fault = Fault(problem, str(path), number, check=check and check.value)
                self.faults.append(fault)
                reference = {"fault": fault.to_json()}
                sample = f"{path.name}, line {number}"
                self.samples.append(Sample(sample, 0, split=split, version=0, reference=reference))
        self.notices += count_notice(repeated, "repeated name", "in lists packed once")
        unlisted = sorted(known - first_places.keys())
        for noun, names in (("pair", pairs.keys()), ("image", lone)):
            listed = [name for name in unlisted if name in names]
            self.notices += count_notice(listed, noun, "missing from lists skipped")
        entries = [lists / entry.name for entry in lists.list_entries() if entry.kind != "folder"]
        unused = [str(entry) for entry in entries if entry not in files.values()]
        self.notices += count_notice(unused, "list", "unused")

    def finish(self, folders: Sequence[_FolderPair]) -> None:
        """Add notices on other files; an error if there are no pairs."""
        hidden = [path for listing in self.listings for path in listing.hidden]
        others = [path for listing in self.listings for path in listing.others]
        self.notices += count_notice(hidden, "hidden file", "skipped")
        self.notices += count_notice(others, "non-image file", "skipped")
        if len(self.faults) < len(self.samples):
            return
        if self.faults:
            what = f"no listed name has an image and a mask: {self.faults[0].error()}"
        elif empty := [str(listing.path) for listing in self.listings if not listing.images]:
            what = f"found no images in {join_names(empty)}"
        else:
            where = join_names(f"{pair.images} and {pair.masks}" for pair in folders)
            first, last = self.listings[0].images[0].name, self.listings[-1].images[0].name
            what = f"no common names in {where}, such as {first} and {last}"
        raise SourceError(
            f"no pairs to pack: {what}; expected masks named like their images, x.png or "
            "x_mask.png for x.jpg",
            [*(str(fault.error()) for fault in self.faults), *self.notices],
            remedy=f"Rename the masks, or describe the names with {option('mask_names')}.",
        )


def _listed_name(line: str, known: set[str]) -> str:
    """The name on a line of a list: the whole line, or the part before VOC's numbers."""
    whole = without_suffix(line)
    return whole if whole in known else without_suffix(line.split(maxsplit=1)[0])
