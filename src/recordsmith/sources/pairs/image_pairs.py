"""Images with segmentation masks: two folders with the same names, or one; PASCAL VOC's lists."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recordsmith.dataset import ClassNames, is_split_name
from recordsmith.sources.classes import classes_in_names, compile_pattern
from recordsmith.sources.files.account import Account, Reason, Role
from recordsmith.sources.files.file_tree import FileTree, ImageEntry, TreeSource
from recordsmith.sources.files.images import class_features, read_image, without_suffix
from recordsmith.sources.files.name_files import read_lines, read_text
from recordsmith.sources.files.paths import (
    check_folder,
    common_version,
    is_file,
    join_path,
    path_inside,
    relative_place,
)
from recordsmith.sources.flaws import Check
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
from recordsmith.sources.pairs.palettes import (
    check_palette,
    common_palette,
    has_palette,
    used_colours,
)
from recordsmith.sources.problems import count_notice, join_names, reference_of
from recordsmith.sources.samples import Note, Sample, StoredReader, ignore_note
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import is_like_split, only_split, sort_splits, split_lists
from recordsmith.stores import Location, PlaceLike, as_folder, as_location
from recordsmith.support.errors import OptionError, SourceError, located, option
from recordsmith.support.words import count

VOC_CLASSES = (
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair"),
    *("cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
_OF_VOC = re.compile(r"(?:^|/)SegmentationClass/20(0[7-9]|1[0-2])_\d{6}\.png$")
_VOC_LISTS = "ImageSets/Segmentation"
_MAX_ENDINGS = 5
_CLASS_NAMES = "class_names.txt"  # of LabelMe's data_dataset_voc
_CLASS_TABLE = "_classes.csv"  # "Pixel Value, Class" of Roboflow's PNG masks, in each split
_HIGHEST_NUMBER = 65535  # in a mask


@dataclass(frozen=True)
class PairReader(StoredReader):
    """Reads an image and its mask.

    colours: of each (red, green, blue, class number).
    palette: that of other masks; of each entry (index, red, green, blue).
    """

    root: Location
    colours: tuple[tuple[int, int, int, int], ...] | None = None
    class_names: tuple[str, ...] | None = None
    palette: tuple[tuple[int, int, int, int], ...] = ()

    def read(self, sample: Sample, note: Note = ignore_note) -> Mapping[str, Any]:
        mask = self.root / reference_of(sample)["mask"]
        features = read_image(self.root / sample.name, sample.name)
        features |= class_features(sample.label, self.class_names)
        colours = self.colours and {(r, g, b): number for r, g, b, number in self.colours}
        data = mask.read()
        palette = {index: (r, g, b) for index, r, g, b in self.palette}
        if palette and not has_palette(data, palette):
            with located(mask):
                check_palette(str(mask), used_colours(data), palette)
        return features | mask_features(str(mask), data, features, colours or None, note)


class ImagePairs(TreeSource):
    """Images and their masks for semantic segmentation.

    Each sample has the image features of ImageFolder without the class, and
    `image/segmentation/class/encoded` and `image/segmentation/class/format`: a PNG whose pixels
    are class numbers. PNG masks of class numbers are stored unchanged, with their palette or 16
    bits. Decode palettes and masks of 1, 2 or 4 bits with a reader that returns indices:
    TensorFlow's decode_png returns palette colours and scales fewer bits to 0 to 255.

    The class names are those of the images, with a class pattern; else those of the masks: from a
    file of colours, from `class_names.txt` (LabelMe's `data_dataset_voc`), from `_classes.csv` with
    pixel values and names (Roboflow's PNG masks), or of PASCAL VOC, if all
    masks are named like its own (`SegmentationClass/2007_000032.png`).

    Example:
        >>> rs.ImagePairs("roads", images="photos", masks="drawn")
        ImagePairs('roads', images='photos', masks='drawn')
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        images: PlaceLike | None = None,
        masks: PlaceLike | None = None,
        image_names: str | None = None,
        mask_names: str | None = None,
        split_lists: PlaceLike | None = None,
        class_pattern: str | None = None,
        colours: ColoursOption | PlaceLike | None = None,
        keep_indices: bool = False,
    ) -> None:
        """
        Args:
            root: the folder of the dataset; other paths may be relative to it. Without other
                options, `detect` finds the folders of images and masks in it.
            images, masks: the two folders in it, or twice the same. They may have a `*` for a name
                that both share: `*/images` and `*/masks`, or `*` and `*_masks`. If it stands for
                `train` or `val`, it is the split.
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
        self.root = as_folder(root)
        self._folders: tuple[str, str] | None = None
        if images is not None and masks is not None:
            self._folders = (
                path_inside(self.root, images, "images"),
                path_inside(self.root, masks, "masks"),
            )
        self._image_pattern, self._mask_pattern = PLAIN, None
        if image_names is not None or mask_names is not None:
            self._image_pattern = parse_pattern(image_names or "*", "image_names")
            self._mask_pattern = parse_pattern(mask_names or "*", "mask_names")
        self._lists = (
            None if split_lists is None else relative_place(self.root, split_lists, as_folder)
        )
        self._pattern = compile_pattern(class_pattern, "class_pattern")
        given = {
            "image_names": image_names,
            "mask_names": mask_names,
            "split_lists": self._lists,
            "class_pattern": class_pattern,
            "colours": colours,
            "keep_indices": keep_indices or None,
        }
        self._given = {name: value for name, value in given.items() if value is not None}
        self._colours = colours
        self._table = check_colours(colours, self.root)
        self._keep_indices = keep_indices

    def __repr__(self) -> str:
        described = self.describe().items()
        options = [f", {name}={v!r}" for name, v in described if name not in ("kind", "folder")]
        return f"ImagePairs({str(self.root)!r}{''.join(options)})"

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
        tree = self._take_tree(self.root)
        folders = _expand_pairs(tree, *self._folders)
        lists = self._lists
        if lists is None:
            near = folders[0].images.parent / _VOC_LISTS
            is_inside = near.relative_to(self.root) is not None
            lists = near if is_inside and near.is_folder() else None
        names = split_lists(entry.name for entry in tree.entries(lists)) if lists else {}
        pairs = _Pairs(tree, tree.account())
        for pair in folders:
            matches = self._match(pairs, pair)
            if lists and names:
                pairs.add_listed(matches, lists, names, pair)
            else:
                pairs.add_matches(matches, pair)
        pairs.check(folders)
        samples = tuple(sorted(pairs.samples, key=lambda sample: sample.name))
        used = [folder for pair in folders for folder in (pair.images, pair.masks)]
        account = pairs.account
        account.read(Role.IMAGE, [sample.name for sample in samples])
        account.read(Role.MASK, {reference_of(sample)["mask"] for sample in samples})
        tables = _class_tables(pairs) if self._table is None else {}
        described = [*self._description(tree), *tables]
        account.read(Role.CLASS_NAMES, described)
        for path in account.others(pairs.tables):
            account.leave_other(path)
        places = [*used, *map(tree.place, described), *([] if lists is None else [lists])]
        tree.leave_others(places, account, "outside the folders of images and masks")
        classes = None
        if self._pattern is not None:
            names_of_samples = [sample.name for sample in samples]
            labels, classes = classes_in_names(self._pattern, names_of_samples, self.root)
            for sample, label in zip(samples, labels.tolist(), strict=True):
                sample.label = label
        colours = self._table and tuple((*rgb, number) for rgb, number in self._table.items())
        return Listing(
            samples,
            PairReader(self.root, colours or None, classes, self._palette(samples)),
            classes or self._mask_classes(samples, described, tables),
            pairs.notices,
            sort_splits(sample.split for sample in samples if sample.split is not None),
            only_split([], self.root),
        ).with_account(tree.finish(account))

    def describe(self) -> Mapping[str, Any]:
        described: dict[str, Any] = {**super().describe()}
        if self._folders is not None:
            images, masks = self._folders
            described |= {"images": images or ".", "masks": masks or "."}
        described |= self._given
        if self._lists is not None:
            described["split_lists"] = self._lists.name
        if self._table is not None and not (
            isinstance(self._colours, str) and self._colours in PRESETS
        ):
            described["colours"] = sorted([*rgb, number] for rgb, number in self._table.items())
        return described

    def _resolved(self) -> ImagePairs:
        """The same source with the folders that are found in the root."""
        check_folder(self.root, "a folder")
        tree = self._take_tree(self.root)
        source = ImagePairs(
            self.root, **{**resolve_pairs(tree, self._given).options, **self._given}
        )
        source.use_tree(tree)
        return source

    def _match(self, pairs: _Pairs, pair: _FolderPair) -> Matches:
        """Match the files of a folder of images and of its folder of masks by name."""
        images = pairs.list_images(pair.images)
        if pair.masks == pair.images:
            pattern = self._mask_pattern
            masks = [name for name in images if is_mask_name(name, pattern)]
            images = [name for name in images if not is_mask_name(name, pattern)]
        else:
            masks = pairs.list_images(pair.masks)
            inner = pair.masks.relative_to(pair.images)
            if inner:  # a folder of masks in the folder of images
                images = [name for name in images if not name.startswith(f"{inner}/")]
        return match_names(images, masks, self._image_pattern, self._mask_pattern)

    def _palette(self, samples: Sequence[Sample]) -> tuple[tuple[int, int, int, int], ...]:
        """The entries of the palette of the masks; empty if indices are kept or have no colours."""
        if self._table is not None or self._keep_indices:
            return ()
        masks = [reference_of(sample)["mask"] for sample in samples]
        palette = common_palette(self.root, masks)
        return tuple((index, *colour) for index, colour in palette.items())

    def _description(self, tree: FileTree) -> list[str]:
        """The files in the root itself that describe the classes."""
        named = [_CLASS_NAMES]
        if isinstance(self._colours, (str, os.PathLike)) and self._colours not in PRESETS:
            path = relative_place(self.root, self._colours, as_location).relative_to(self.root)
            named += [path] if path else []
        places = {path: tree.root / path for path in named}
        return [
            path for path, place in places.items() if is_file(place) and not tree.leaves_out(place)
        ]

    def _mask_classes(
        self,
        samples: Sequence[Sample],
        described: Collection[str],
        tables: Mapping[str, ClassNames],
    ) -> ClassNames | None:
        """The names of the numbers in masks: of the file of colours, lists or tables, or VOC."""
        if isinstance(self._colours, (str, os.PathLike)) and self._colours not in PRESETS:
            text = read_text(relative_place(self.root, self._colours, as_location))
            return tuple(name or None for _, name in parse_colour_table(text))
        if _CLASS_NAMES in described:
            lines = read_lines(self.root / _CLASS_NAMES)
            return tuple(name for _, name in lines if name != "__ignore__")
        if tables:
            first, *others = tables.items()
            for path, names in others:
                if names != first[1]:
                    raise SourceError(
                        f"{path} has other classes than {first[0]}",
                        path=self.root,
                        remedy="Pack the splits as datasets of their own, or make the files equal.",
                    )
            return first[1]
        masks = (f"{self.root.key}/{reference_of(sample)['mask']}" for sample in samples)
        return VOC_CLASSES if all(map(_OF_VOC.search, masks)) else None


def _class_tables(pairs: _Pairs) -> dict[str, ClassNames]:
    """The tables of pixel values and class names next to masks, and the names by number."""
    tables: dict[str, ClassNames] = {}
    for path in pairs.tables:
        head = pairs.tree.head(path).decode("utf-8-sig", "replace").partition(",")[0]
        if head.strip().lower() != "pixel value":
            continue
        lines = read_lines(pairs.tree.place(path), path)
        names: dict[int, str] = {}
        for line, text in lines[1:]:
            value, _, name = text.partition(",")
            number = int(value) if re.fullmatch(r" *[0-9]{1,5} *", value) else None
            if number is None or number > _HIGHEST_NUMBER or not name.strip() or number in names:
                raise SourceError(
                    f"found {text!r:.60}; expected a pixel value and a class name",
                    path=path,
                    line=line,
                    remedy="Correct the line, or leave the file out.",
                )
            names[number] = name.strip().strip('"')
        if names:
            tables[path] = tuple(map(names.get, range(max(names) + 1)))
    return tables


class _FolderPair(NamedTuple):
    """A folder of images and its folder of masks; the same folder if it contains both."""

    images: Location
    masks: Location
    split: str | None = None


def _expand_pairs(tree: FileTree, images: str, masks: str) -> list[_FolderPair]:
    """The folders that the options mean: two, or all that fit patterns with as many `*`.

    A `*` stands for the name of one folder or a part of it. If one `*` stands for splits in some
    of the folders, it is the split of all.
    """
    if "*" not in images:
        for path in (images, masks):
            check_folder(tree.place(path), "a folder")
        return [_FolderPair(tree.place(images), tree.place(masks))]
    image_folders, mask_folders = (
        dict(_expand(tree, tree.root, pattern.split("/") if pattern else []))
        for pattern in (images, masks)
    )
    stars = sorted(image_folders.keys() & mask_folders.keys())
    if not stars:
        raise SourceError(
            f"no folders fit both {images!r} and {masks!r}",
            path=tree.root,
            remedy=f"Check {option('images')} and {option('masks')}, which need the same number "
            "of *.",
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
    for name in tree.folder_names(folder):
        if (match := pattern.fullmatch(name)) is not None:
            yield from _expand(tree, folder / name, parts[1:], (*stars, *match.groups()))


@dataclass
class _Pairs:
    """Collects pairs; names of samples, masks and tables are relative to the root of the tree."""

    tree: FileTree
    account: Account
    samples: list[Sample] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    listed: dict[Location, dict[str, ImageEntry]] = field(default_factory=dict)

    def list_images(self, folder: Location) -> list[str]:
        if folder not in self.listed:
            outer = next((known for known in self.listed if known.contains(folder)), None)
            if outer is None:
                walk = self.tree.walk_images(
                    folder, self.account, follows_links=True, others={_CLASS_TABLE: self.tables}
                )
                self.listed[folder] = {image.name: image for image in walk}
            else:
                head, known = f"{folder.relative_to(outer)}/", self.listed[outer]
                names = (name for name in known if name.startswith(head))
                self.listed[folder] = {name.removeprefix(head): known[name] for name in names}
        return list(self.listed[folder])

    def add_matches(self, matches: Matches, folders: _FolderPair) -> None:
        """Add all pairs; folders named like splits below the images are splits."""
        self._check(matches, folders)
        tops = {image.partition("/")[0] if "/" in image else "" for image, _ in matches.pairs}
        is_split_below = folders.split is None and bool(tops) and all(map(is_like_split, tops))
        for image, mask in matches.pairs:
            split = image.partition("/")[0] if is_split_below else folders.split
            self._add(image, mask, folders, split)
        self._leave_lone(folders, matches.lone_images, matches.lone_masks)

    def _leave_lone(
        self, folders: _FolderPair, images: Iterable[str], masks: Iterable[str]
    ) -> None:
        leave, without_mask = self.account.leave, Check.IMAGE_WITHOUT_ANNOTATION
        lone = self._paths(folders.images, images)
        leave(Reason.NO_ANNOTATION, lone, "image", "without a mask skipped", without_mask)
        lone, without_image = self._paths(folders.masks, masks), Check.ANNOTATION_WITHOUT_IMAGE
        leave(Reason.NO_IMAGE, lone, "mask", "without an image skipped", without_image)

    def _paths(self, folder: Location, names: Iterable[str]) -> list[str]:
        """Paths relative to the root of names relative to a folder."""
        above = folder.relative_to(self.tree.root)
        return [join_path(above, name) for name in names]

    def add_listed(
        self, matches: Matches, lists: Location, names: Mapping[str, str], folders: _FolderPair
    ) -> None:
        self._check(matches, folders)
        pairs = {without_suffix(image): (image, mask) for image, mask in matches.pairs}
        lone = {without_suffix(image) for image in matches.lone_images}
        known = {*pairs, *lone}
        first_lists: dict[str, str] = {}
        repeated: list[str] = []
        in_two: list[str] = []
        without_image: list[str] = []
        for split, file in names.items():
            for number, line in read_lines(lists / file):
                if line.startswith("#"):
                    continue
                name = _listed_name(line, known)
                place = f"{lists / file}, line {number}: {name}"
                first_list = first_lists.get(name)
                first_lists.setdefault(name, file)
                if first_list is not None:
                    (repeated if first_list == file else in_two).append(place)
                elif name in pairs:
                    self._add(*pairs[name], folders, split)
                elif name not in lone:
                    without_image.append(place)
        self.notices += [
            *count_notice(repeated, "repeated name", "in lists packed once"),
            *count_notice(in_two, "name", "in two lists packed in the first"),
            *count_notice(
                without_image,
                "name",
                "in lists without an image skipped",
                check=Check.ANNOTATION_WITHOUT_IMAGE,
            ),
        ]
        self._leave_unlisted(matches, folders, first_lists)
        of_lists = lists.relative_to(self.tree.root) or ""
        read = [f"{of_lists}/{file}" for file in names.values()]
        self.account.read(Role.LIST, read)
        unused = [
            f"{of_lists}/{entry.name}"
            for entry in self.tree.entries(lists)
            if entry.kind != "folder" and entry.name not in names.values()
        ]
        self.account.leave(Reason.OTHER_FILE, unused, "list", "unused")

    def _leave_unlisted(
        self, matches: Matches, folders: _FolderPair, listed: Mapping[str, str]
    ) -> None:
        """Leave out what no list names, or is listed without its mask."""
        leave, what = self.account.leave, "missing from lists skipped"
        pairs = [pair for pair in matches.pairs if without_suffix(pair[0]) not in listed]
        images = self._paths(folders.images, (image for image, _ in pairs))
        lone = [name for name in matches.lone_images if without_suffix(name) not in listed]
        images += self._paths(folders.images, lone)
        leave(Reason.UNLISTED, sorted(images), "image", what)
        masks = self._paths(folders.masks, (mask for _, mask in pairs))
        leave(Reason.UNLISTED, masks, "mask", what)
        without_mask = [name for name in matches.lone_images if without_suffix(name) in listed]
        self._leave_lone(folders, without_mask, matches.lone_masks)

    def check(self, folders: Sequence[_FolderPair]) -> None:
        if self.samples:
            return
        if empty := [str(folder) for folder, images in self.listed.items() if not images]:
            what = f"found no images in {join_names(empty)}"
        else:
            where = join_names(f"{pair.images} and {pair.masks}" for pair in folders)
            images = [next(iter(images)) for images in self.listed.values()]
            what = f"no common names in {where}, such as {images[0]} and {images[-1]}"
        raise SourceError(
            f"no pairs to pack: {what}; expected masks named like their images, x.png or "
            "x_mask.png for x.jpg",
            [*self.notices, *self.account.notices()],
            path=self.tree.root,
            remedy=f"Rename the masks, or describe the names with {option('mask_names')}.",
        )

    def _check(self, matches: Matches, folders: _FolderPair) -> None:
        """Note images with other names; an error if a name fits several files."""
        other = self._paths(folders.images, matches.other_images)
        other += self._paths(folders.masks, matches.other_masks)
        by_ending: dict[str, list[str]] = {}
        for path in sorted(set(other)):
            by_ending.setdefault(without_suffix(path).rpartition("_")[2], []).append(path)
        is_few = len(by_ending) <= _MAX_ENDINGS
        for ending, paths in by_ending.items() if is_few else [("", sorted(set(other)))]:
            what = f"named *_{ending} skipped" if is_few else "with other names skipped"
            self.account.leave(Reason.RENDERED, paths, "image", what)
        if matches.ambiguous:
            images, masks = matches.ambiguous[0]
            raise SourceError(
                f"{count(len(matches.ambiguous), 'name')} of images and masks fit several files: "
                f"{join_names(images)} and {join_names(masks)}",
                path=folders.images,
                remedy="Rename or remove some of them.",
            )

    def _add(self, image: str, mask: str, folders: _FolderPair, split: str | None) -> None:
        entries = self.listed[folders.images][image], self.listed[folders.masks][mask]
        root = self.tree.root
        self.samples.append(
            Sample(
                str((folders.images / image).relative_to(root)),
                sum(entry.size_bytes for entry in entries),
                split=split,
                version=common_version(entry.version for entry in entries),
                reference={"mask": (folders.masks / mask).relative_to(root)},
            )
        )


def _listed_name(line: str, known: set[str]) -> str:
    """The name on a line of a list: the whole line, or the part before VOC's numbers."""
    whole = without_suffix(line)
    return whole if whole in known else without_suffix(line.split(maxsplit=1)[0])
