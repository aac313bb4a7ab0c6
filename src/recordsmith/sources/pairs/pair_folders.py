"""Pairs of images and masks in two folders, or in one, with the splits of folders or of lists.

Files with an image suffix are not opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recordsmith.dataset import is_split_name
from recordsmith.errors import OptionError, SourceError, option
from recordsmith.sources.files.file_tree import FileTree, ImageEntry, ImageListing
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.pairs.name_patterns import expand_folders
from recordsmith.sources.pairs.pair_lists import Line, read_list
from recordsmith.sources.pairs.pairing import (
    Matches,
    NameRule,
    PairFile,
    Pairing,
    ambiguity,
    match_names,
    match_within,
)
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.splits import (
    is_like_split,
    split_lists,
)
from recordsmith.stores import Location
from recordsmith.words import count

VOC_LISTS = "ImageSets/Segmentation"


@dataclass(frozen=True)
class FolderPair:
    """A folder of images and its folder of masks; the same folder if it contains both."""

    images: Location
    masks: Location
    split: str | None = None


def expand_pairs(root: Location, images: str, masks: str) -> list[FolderPair]:
    """Find the folders that two patterns with the same number of `*` mean.

    If one `*` stands for splits in some of them, it is the split of all.

    Raises:
        OptionError: the patterns do not have the same number of `*`.
        SourceError: no folders fit both.
        FileAccessError: a folder cannot be read.
    """
    if images.count("*") != masks.count("*"):
        raise OptionError(
            f"{option('images')} and {option('masks')} need the same number of *",
            option="masks",
            value=masks,
        )
    of_images = dict(expand_folders(root, images))
    found = [
        (values, of_images[values], folder)
        for values, folder in expand_folders(root, masks)
        if values in of_images
    ]
    if not found:
        raise SourceError(
            f"no folders fit both {images!r} and {masks!r}",
            path=root,
            remedy=f"Check {option('images')} and {option('masks')}.",
        )
    places = range(images.count("*"))
    place = next((at for at in places if any(is_split_name(each[0][at]) for each in found)), None)
    return [
        FolderPair(image, mask, None if place is None else values[place])
        for values, image, mask in found
    ]


def match_folders(
    tree: FileTree,
    base: Location,
    folders: Sequence[FolderPair],
    rule: NameRule | None = None,
    lists: Location | None = None,
) -> Pairing:
    """Pair the files in folders; names are relative to `base` if the images are below it.

    Args:
        rule: how images and masks are named, if not alike.
        lists: a folder with lists of names, one for each split.

    Raises:
        SourceError: there are no pairs; the message has what was found and expected.
    """
    found = Pairing()
    trees: list[ImageListing] = []
    listed: dict[str, Location] = {}
    if lists is not None and len(folders) == 1:
        found_lists = split_lists(entry.name for entry in lists.list_entries())
        listed = {split: lists / name for split, name in found_lists.items()}
    for pair in folders:
        images = _list_all(tree, pair.images)
        masks = images if pair.masks == pair.images else _list_all(tree, pair.masks)
        inner = None if masks is images else pair.masks.relative_to(pair.images)
        if inner:  # a folder of masks in the folder of images
            images.images = [
                each for each in images.images if not each.name.startswith(f"{inner}/")
            ]
        trees += [images] if masks is images else [images, masks]
        if masks is images:
            matches = (rule.match_within if rule else match_within)(_names(images))
        else:
            matches = (rule.match if rule else match_names)(_names(images), _names(masks))
        head = pair.images.relative_to(base)
        names = _Names(pair, f"{head}/" if head else "", matches, _by_name(images), _by_name(masks))
        found.add_notice(
            [
                *(str(pair.images / name) for name in matches.other_images),
                *(str(pair.masks / name) for name in matches.other_masks),
            ],
            "image",
            "with other names skipped",
        )
        if listed and lists is not None:
            _add_listed(found, names, listed, lists)
        else:
            _add_all(found, names)
    found.add_notice([path for tree in trees for path in tree.hidden], "hidden file", "skipped")
    found.add_notice([path for tree in trees for path in tree.others], "non-image file", "skipped")
    if all(pair.fault is not None for pair in found.pairs):
        raise _no_pairs(folders, trees, found)
    return found


def left_out(tree: FileTree, used: Sequence[Location], lists: Location | None) -> list[str]:
    """Notices on what a folder contains outside the folders that were read."""
    images, others, _ = tree.list_outside(tree.root, used)
    others = [path for path in others if path.rpartition("/")[0] != str(lists)]
    return [
        *count_notice(images, "image", "outside the folders of images and masks skipped"),
        *count_notice(others, "other file", "skipped"),
    ]


# -- matches -> pairs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Names:
    """The matches of two folders and their files; `prefix` starts the names of samples."""

    folders: FolderPair
    prefix: str
    matches: Matches
    images: dict[str, ImageEntry]
    masks: dict[str, ImageEntry]

    def files(self, image: str, mask: str) -> tuple[PairFile, PairFile]:
        return (
            PairFile(self.folders.images / image, *self.images[image][1:]),
            PairFile(self.folders.masks / mask, *self.masks[mask][1:]),
        )


def _list_all(tree: FileTree, folder: Location) -> ImageListing:
    listing = ImageListing(folder)
    listing.images = list(tree.walk_images(listing, follows_links=True))
    return listing


def _names(tree: ImageListing) -> list[str]:
    return [image.name for image in tree.images]


def _by_name(tree: ImageListing) -> dict[str, ImageEntry]:
    return {image.name: image for image in tree.images}


def _add_all(found: Pairing, names: _Names) -> None:
    """Add every match; its split is that of the folders, or the first folder below."""
    matches, split = names.matches, names.folders.split
    paths = [image for image, _ in matches.pairs]
    paths += [image for images, _ in matches.ambiguous for image in images]
    heads = {path.partition("/")[0] if "/" in path else "" for path in paths}
    is_split_below = split is None and bool(heads) and all(map(is_like_split, heads))

    def split_of(path: str) -> str | None:
        return path.partition("/")[0] if is_split_below else split

    for image, mask in matches.pairs:
        found.add(names.prefix + image, *names.files(image, mask), split_of(image))
    for images, masks in matches.ambiguous:
        fault = ambiguity(images, masks, str(names.folders.images))
        for image in images:
            found.add_fault(names.prefix + image, fault, split_of(image))
    _notice_lone(found, names)


def _notice_lone(found: Pairing, names: _Names) -> None:
    folders, matches = names.folders, names.matches
    images = [str(folders.images / image) for image in matches.unmatched_images]
    found.add_notice(
        images, "image", "without a mask skipped", check=Check.IMAGE_WITHOUT_ANNOTATION
    )
    masks = [str(folders.masks / mask) for mask in matches.unmatched_masks]
    found.add_notice(
        masks, "mask", "without an image skipped", check=Check.ANNOTATION_WITHOUT_IMAGE
    )


def _add_listed(
    found: Pairing, names: _Names, listed: dict[str, Location], lists: Location
) -> None:
    """Add the names in VOC's lists; each fault has the line of its name."""
    matches = names.matches
    pairs = {without_suffix(image): (image, mask) for image, mask in matches.pairs}
    lone = {without_suffix(image) for image in matches.unmatched_images}
    folders = names.folders
    ambiguous = {without_suffix(files[0][0]): files for files in matches.ambiguous}
    known = {*pairs, *lone, *ambiguous}
    places: dict[str, tuple[Location, int]] = {}  # of the first occurrence of a name
    check: Check | None
    repeated: list[str] = []
    for split, path in listed.items():
        lines = [(line.number, _find_name(line, known)) for line in read_list(path)]
        if lines and all(name in lone for _, name in lines):
            notice = f"{count(len(lines), 'image')} without a mask skipped, the whole split: {path}"
            bare = Check.IMAGE_WITHOUT_ANNOTATION
            found.notices.append(Flaw(notice, bare, files=[str(path)], item_count=len(lines)))
            places |= {name: (path, number) for number, name in lines}
            continue
        for number, name in lines:
            first_path, first_number = places.setdefault(name, (path, number))
            if (first_path, first_number) == (path, number):
                problem, check = None, None
                if name in ambiguous:
                    problem = ambiguity(*ambiguous[name], str(folders.images)).problem
                elif name in lone:
                    problem = f"{name} has no mask in {folders.masks}"
                    check = Check.IMAGE_WITHOUT_ANNOTATION
                elif name not in known:
                    problem = f"{name} has no image in {folders.images}"
                    check = Check.ANNOTATION_WITHOUT_IMAGE
            elif first_path == path:
                repeated.append(f"{path}, line {number}")
                continue
            else:
                problem, check = f"{name} is already in {first_path}, line {first_number}", None
            if problem is None:
                image, mask = pairs[name]
                found.add(names.prefix + image, *names.files(image, mask), split)
            else:
                where = f"{path.name}, line {number}"
                found.add_fault(where, Fault(problem, str(path), number, check=check), split)
    found.add_notice(repeated, "repeated name", "in lists packed once")
    unlisted = sorted(known - set(places))
    found.add_notice(
        [name for name in unlisted if name in pairs], "pair", "missing from lists skipped"
    )
    lone_unlisted = [name for name in unlisted if name not in pairs]
    found.add_notice(lone_unlisted, "image", "missing from lists skipped")
    entries = [lists / entry.name for entry in lists.list_entries() if entry.kind != "folder"]
    others = [str(entry) for entry in entries if entry not in listed.values()]
    found.add_notice(others, "list", "unused")


def _find_name(line: Line, known: set[str]) -> str:
    """The name on a line of a list: the whole line, or the part before VOC's numbers."""
    whole = without_suffix(" ".join(line.fields))
    return whole if whole in known else without_suffix(line.fields[0])


# -- messages ------------------------------------------------------------------------------------


def _no_pairs(
    folders: Sequence[FolderPair], trees: Sequence[ImageListing], found: Pairing
) -> SourceError:
    """The error for folders without common names."""
    problems = [str(pair.fault.error()) for pair in found.pairs if pair.fault is not None]
    if problems:
        fault = f"none of {count(len(problems), 'name')} has an image and a mask: {problems[0]}"
    elif empty := [str(tree.path) for tree in trees if not tree.images]:
        fault = f"found no images in {join_names(empty)}"
    else:
        where = join_names(f"{pair.images} and {pair.masks}" for pair in folders)
        names = f"{trees[0].images[0].name} and {trees[-1].images[0].name}"
        fault = f"no common names in {where}, such as {names}"
    return SourceError(
        f"no pairs to pack: {fault}; expected masks named like their images, x.png or x_mask.png "
        "for x.jpg",
        [*problems, *found.notices],
        remedy=f"Rename the masks, or list the pairs with {option('pairs')}.",
    )
