"""Pairs of images and masks in two folders, or in one, with the splits of folders or of lists.

Files with an image suffix are not opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.files.file_tree import FileTree, ImageListing
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.pairs.names import NameRule
from recordsmith.sources.pairs.pair_lists import Line, read_list
from recordsmith.sources.pairs.pair_samples import PairFile, PairSamples
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import is_like_split, split_lists
from recordsmith.stores import Location
from recordsmith.words import count

VOC_LISTS = "ImageSets/Segmentation"


@dataclass(frozen=True)
class FolderPair:
    """A folder of images and its folder of masks; the same folder if it contains both."""

    images: Location
    masks: Location
    split: str | None = None


def expand_pairs(tree: FileTree, images: str, masks: str) -> list[FolderPair]:
    """Find the folders that two patterns with the same number of `*` mean.

    A `*` stands for the name of one folder or a part of it. If one `*` stands for splits in some
    of the folders, it is the split of all.
    """
    if images.count("*") != masks.count("*"):
        raise OptionError(
            f"{option('images')} and {option('masks')} need the same number of *",
            option="masks",
            value=masks,
        )
    image_folders = dict(_expand(tree, tree.root, _parts(images)))
    folders = [
        (values, image_folders[values], folder)
        for values, folder in _expand(tree, tree.root, _parts(masks))
        if values in image_folders
    ]
    if not folders:
        raise SourceError(
            f"no folders fit both {images!r} and {masks!r}",
            path=tree.root,
            remedy=f"Check {option('images')} and {option('masks')}.",
        )
    splits = [place for values, *_ in folders for place, v in enumerate(values) if is_split_name(v)]
    place = min(splits, default=None)
    return [
        FolderPair(image, mask, None if place is None else values[place])
        for values, image, mask in folders
    ]


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in ("", ".")]


def _expand(
    tree: FileTree, folder: Location, parts: Sequence[str], values: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Location]]:
    """Yield the folders that a pattern means, and what each `*` stands for, in order."""
    if not parts:
        yield values, folder
        return
    pattern = re.compile(re.escape(parts[0]).replace(r"\*", "(.+)"), re.DOTALL)
    for entry in tree.entries(folder):
        match = pattern.fullmatch(entry.name)
        if entry.kind == "folder" and match is not None and not entry.name.startswith("."):
            yield from _expand(tree, folder / entry.name, parts[1:], (*values, *match.groups()))


def pair_folders(
    tree: FileTree,
    collected: PairSamples,
    folders: Sequence[FolderPair],
    rule: NameRule,
    lists: Location | None = None,
) -> None:
    """Add the pairs of files in folders; names are relative to the root if images are below it.

    `lists` is a folder with lists of names, one for each split. An error if there are no pairs.
    """
    listings: list[ImageListing] = []
    list_files: dict[str, Location] = {}
    if lists is not None and len(folders) == 1:
        names = split_lists(entry.name for entry in lists.list_entries())
        list_files = {split: lists / name for split, name in names.items()}
    for pair in folders:
        matched = _MatchedFolders(tree, collected, pair, rule)
        listings += matched.listings
        if lists is not None and list_files:
            matched.add_listed(list_files, lists)
        else:
            matched.add_all()
    hidden = [path for listing in listings for path in listing.hidden]
    others = [path for listing in listings for path in listing.others]
    collected.notices += count_notice(hidden, "hidden file", "skipped")
    collected.notices += count_notice(others, "non-image file", "skipped")
    if len(collected.faults) == len(collected.samples):
        raise _no_pairs(folders, listings, collected)


def left_out(tree: FileTree, used: Sequence[Location], lists: Location | None) -> list[str]:
    """Notices on what a folder contains outside the folders that were read."""
    images, others, _ = tree.list_outside(tree.root, used)
    others = [path for path in others if path.rpartition("/")[0] != str(lists)]
    return [
        *count_notice(images, "image", "outside the folders of images and masks skipped"),
        *count_notice(others, "other file", "skipped"),
    ]


class _MatchedFolders:
    """The files of a folder of images and of its folder of masks, matched by name."""

    def __init__(
        self, tree: FileTree, collected: PairSamples, folders: FolderPair, rule: NameRule
    ) -> None:
        self._collected = collected
        self._folders = folders
        images = _list_all(tree, folders.images)
        if folders.masks == folders.images:
            self.listings = [images]
            self._matches = rule.match_within(image.name for image in images.images)
        else:
            masks = _list_all(tree, folders.masks)
            inner = folders.masks.relative_to(folders.images)
            if inner:  # a folder of masks in the folder of images
                images.images = [
                    image for image in images.images if not image.name.startswith(f"{inner}/")
                ]
            self.listings = [images, masks]
            self._matches = rule.match(
                (image.name for image in images.images), (mask.name for mask in masks.images)
            )
        self._files = [{file.name: file for file in each.images} for each in self.listings]
        head = folders.images.relative_to(collected.root)
        self._prefix = f"{head}/" if head else ""
        other = [str(folders.images / name) for name in self._matches.other_images]
        other += [str(folders.masks / name) for name in self._matches.other_masks]
        collected.notices += count_notice(other, "image", "with other names skipped")

    def _add(self, image: str, mask: str, split: str | None) -> None:
        files = (
            PairFile(self._folders.images / image, *self._files[0][image][1:]),
            PairFile(self._folders.masks / mask, *self._files[-1][mask][1:]),
        )
        self._collected.add(self._prefix + image, *files, split)

    def _ambiguity(self, images: Sequence[str], masks: Sequence[str]) -> Fault:
        """The fault of files that share one name."""
        have = "have" if len(images) > 1 else "has"
        return Fault(
            f"{join_names(images)} {have} the same name as {join_names(masks)}",
            str(self._folders.images),
            remedy=f"Rename or remove some of them, or list the pairs with {option('pairs')}.",
        )

    def add_all(self) -> None:
        """Add every match; its split is that of the folders, or the first folder below."""
        matches, split = self._matches, self._folders.split
        paths = [image for image, _ in matches.pairs]
        paths += [image for images, _ in matches.ambiguous for image in images]
        tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
        is_split_below = split is None and bool(tops) and all(map(is_like_split, tops))

        def split_of(path: str) -> str | None:
            return path.partition("/")[0] if is_split_below else split

        for image, mask in matches.pairs:
            self._add(image, mask, split_of(image))
        for images, masks in matches.ambiguous:
            fault = self._ambiguity(images, masks)
            for image in images:
                self._collected.add_fault(self._prefix + image, fault, split_of(image))
        lone = [str(self._folders.images / image) for image in matches.lone_images]
        check = Check.IMAGE_WITHOUT_ANNOTATION
        notices = count_notice(lone, "image", "without a mask skipped", check=check)
        lone = [str(self._folders.masks / mask) for mask in matches.lone_masks]
        check = Check.ANNOTATION_WITHOUT_IMAGE
        notices += count_notice(lone, "mask", "without an image skipped", check=check)
        self._collected.notices += notices

    def add_listed(self, files: dict[str, Location], folder: Location) -> None:
        """Add the names in VOC's lists; each fault has the line of its name."""
        matches, notices = self._matches, self._collected.notices
        pairs = {without_suffix(image): (image, mask) for image, mask in matches.pairs}
        faults = {without_suffix(images[0]): (images, masks) for images, masks in matches.ambiguous}
        lone = {without_suffix(image) for image in matches.lone_images}
        known = {*pairs, *lone, *faults}
        first_places: dict[str, tuple[Location, int]] = {}
        repeated: list[str] = []
        for split, path in files.items():
            lines = [(line.number, _find_name(line, known)) for line in read_list(path)]
            if lines and all(name in lone for _, name in lines):
                images = count(len(lines), "image")
                notice = f"{images} without a mask skipped, the whole split: {path}"
                check = Check.IMAGE_WITHOUT_ANNOTATION
                notices.append(Flaw(notice, check, files=[str(path)], item_count=len(lines)))
                first_places |= {name: (path, number) for number, name in lines}
                continue
            for number, name in lines:
                first = first_places.setdefault(name, (path, number))
                if first != (path, number) and first[0] == path:
                    repeated.append(f"{path}, line {number}")
                elif first == (path, number) and name in pairs:
                    self._add(*pairs[name], split)
                else:
                    problem, check_name = "", None
                    if first != (path, number):
                        problem = f"{name} is already in {first[0]}, line {first[1]}"
                    elif name in faults:
                        problem = self._ambiguity(*faults[name]).problem
                    elif name in lone:
                        problem = f"{name} has no mask in {self._folders.masks}"
                        check_name = Check.IMAGE_WITHOUT_ANNOTATION.value
                    else:
                        problem = f"{name} has no image in {self._folders.images}"
                        check_name = Check.ANNOTATION_WITHOUT_IMAGE.value
                    fault = Fault(problem, str(path), number, check=check_name)
                    self._collected.add_fault(f"{path.name}, line {number}", fault, split)
        notices += count_notice(repeated, "repeated name", "in lists packed once")
        unlisted = sorted(known - first_places.keys())
        unlisted_pairs = [name for name in unlisted if name in pairs]
        notices += count_notice(unlisted_pairs, "pair", "missing from lists skipped")
        unlisted_images = [name for name in unlisted if name not in pairs]
        notices += count_notice(unlisted_images, "image", "missing from lists skipped")
        entries = [folder / entry.name for entry in folder.list_entries() if entry.kind != "folder"]
        unused = [str(entry) for entry in entries if entry not in files.values()]
        notices += count_notice(unused, "list", "unused")


def _list_all(tree: FileTree, folder: Location) -> ImageListing:
    listing = ImageListing(folder)
    listing.images = list(tree.walk_images(listing, follows_links=True))
    return listing


def _find_name(line: Line, known: set[str]) -> str:
    """The name on a line of a list: the whole line, or the part before VOC's numbers."""
    whole = without_suffix(" ".join(line.fields))
    return whole if whole in known else without_suffix(line.fields[0])


def _no_pairs(
    folders: Sequence[FolderPair], listings: Sequence[ImageListing], collected: PairSamples
) -> SourceError:
    """The error for folders without common names."""
    problems = [str(fault.error()) for fault in collected.faults]
    if problems:
        what = f"none of {count(len(problems), 'name')} has an image and a mask: {problems[0]}"
    elif empty := [str(listing.path) for listing in listings if not listing.images]:
        what = f"found no images in {join_names(empty)}"
    else:
        where = join_names(f"{pair.images} and {pair.masks}" for pair in folders)
        names = f"{listings[0].images[0].name} and {listings[-1].images[0].name}"
        what = f"no common names in {where}, such as {names}"
    return SourceError(
        f"no pairs to pack: {what}; expected masks named like their images, x.png or x_mask.png "
        "for x.jpg",
        [*problems, *collected.notices],
        remedy=f"Rename the masks, or list the pairs with {option('pairs')}.",
    )
