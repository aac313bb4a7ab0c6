"""Pairs of images and masks by folder, in the layouts of segmentation datasets.

root/images + root/masks with splits above or below; root/train + root/train_masks; masks next to
their images; and PASCAL VOC with the splits of `ImageSets`. Files with an image suffix are not
opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError, option
from recordsmith.sources.files.folders import (
    FoundImage,
    ImageTree,
    has_images,
    list_folders,
    list_names,
    read_image_tree,
)
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.pairs.pair_lists import Line, read_list
from recordsmith.sources.pairs.pairing import (
    MASK_ENDINGS,
    Matches,
    PairFile,
    Pairing,
    ambiguity,
    has_adjacent_masks,
    match_names,
    match_within,
    without_suffix,
)
from recordsmith.sources.problems import Fault, join_names
from recordsmith.sources.splits import (
    are_split_names,
    sort_splits,
    split_lists,
)
from recordsmith.stores import Location
from recordsmith.words import count

_FOLDER_NAMES = (
    ("JPEGImages", "SegmentationClass"),
    ("images", "masks"),
    ("image", "mask"),
    ("imgs", "masks"),
    ("images", "labels"),
    ("pictures", "masks"),
)
_LISTS = "ImageSets/Segmentation"
_NESTED = 3  # single folders to descend into, as archives unpack them


@dataclass(frozen=True)
class FolderPair:
    """A folder of images and its folder of masks; the same folder if it contains both."""

    images: Location
    masks: Location
    split: str | None = None


def find_folders(root: Location) -> tuple[Location, list[FolderPair]]:
    """Find where images and masks are.

    Returns:
        (the folder that names are relative to, which is the root or the only folder below it;
        the folders of images and masks).

    Raises:
        SourceError: there are none; the message has what was found and expected.
    """
    base = root
    for _ in range(_NESTED):
        folders = list_folders(base)
        found = list(_find_pairs(folders, None)) or [
            pair
            for name in sort_splits(filter(is_split_name, folders))
            for pair in _select_split(folders, name)
        ]
        if found:
            return base, found
        if len(folders) != 1:
            break
        (base,) = folders.values()
    if any(has_adjacent_masks(files) for _, files in list_names(root)):
        return root, [FolderPair(root, root)]
    raise _no_folders(root)


def match_folders(base: Location, folders: Sequence[FolderPair]) -> Pairing:
    """Pair the files in folders; names are relative to `base` if the images are below it.

    Raises:
        SourceError: there are no pairs; the message has what was found and expected.
    """
    found = Pairing()
    trees: list[ImageTree] = []
    lists = base / _LISTS
    for pair in folders:
        images = read_image_tree(pair.images)
        masks = images if pair.masks == pair.images else read_image_tree(pair.masks)
        trees += [images] if masks is images else [images, masks]
        if masks is images:
            matches = match_within(_names(images))
        else:
            matches = match_names(_names(images), _names(masks))
        head = pair.images.relative_to(base)
        names = _Names(pair, f"{head}/" if head else "", matches, _by_name(images), _by_name(masks))
        listed: dict[str, Location] = {}
        if len(folders) == 1 and lists.is_folder():
            found_lists = split_lists(entry.name for entry in lists.list_entries())
            listed = {split: lists / name for split, name in found_lists.items()}
        if listed:
            _add_listed(found, names, listed, lists)
        else:
            _add_all(found, names)
    found.add_notice([path for tree in trees for path in tree.hidden], "hidden file", "skipped")
    found.add_notice([path for tree in trees for path in tree.others], "non-image file", "skipped")
    if all(pair.fault is not None for pair in found.pairs):
        raise _no_pairs(folders, trees, found)
    return found


def other_entries(base: Location, folders: Sequence[FolderPair]) -> list[str]:
    """The entries of a folder that are not part of the layout that was found."""
    below = [path.relative_to(base) or "" for pair in folders for path in (pair.images, pair.masks)]
    used = {path.partition("/")[0] for path in below}
    if "" in used:
        return []
    used.add(_LISTS.partition("/")[0])
    names = [entry.name for entry in base.list_entries() if not entry.name.startswith(".")]
    return [str(base / name) for name in names if name not in used]


# -- matches -> pairs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Names:
    """The matches of two folders and their files; `prefix` starts the names of samples."""

    folders: FolderPair
    prefix: str
    matches: Matches
    images: dict[str, FoundImage]
    masks: dict[str, FoundImage]

    def files(self, image: str, mask: str) -> tuple[PairFile, PairFile]:
        return (
            PairFile(self.folders.images / image, *self.images[image][1:]),
            PairFile(self.folders.masks / mask, *self.masks[mask][1:]),
        )


def _names(tree: ImageTree) -> list[str]:
    return [image.name for image in tree.images]


def _by_name(tree: ImageTree) -> dict[str, FoundImage]:
    return {image.name: image for image in tree.images}


def _add_all(found: Pairing, names: _Names) -> None:
    """Add every match; its split is that of the folders, or the first folder below."""
    matches, split = names.matches, names.folders.split
    paths = [image for image, _ in matches.pairs]
    paths += [image for images, _ in matches.ambiguous for image in images]
    heads = {path.partition("/")[0] if "/" in path else "" for path in paths}
    is_split_below = split is None and are_split_names(heads)

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
    entries = [lists / entry.name for entry in lists.list_entries()]
    others = [str(entry) for entry in entries if entry not in listed.values()]
    found.add_notice(others, "list", "unused")


def _find_name(line: Line, known: set[str]) -> str:
    """The name on a line of a list: the whole line, or the part before VOC's numbers."""
    whole = without_suffix(" ".join(line.fields))
    return whole if whole in known else without_suffix(line.fields[0])


# -- layouts -------------------------------------------------------------------------------------


def _find_pairs(folders: dict[str, Location], split: str | None) -> Iterator[FolderPair]:
    """The first known pair of folders that exists and has masks."""
    for names in _FOLDER_NAMES:
        images, masks = (folders.get(name.lower()) for name in names)
        if images is not None and masks is not None and has_images(masks):
            yield FolderPair(images, masks, split)
            return


def _select_split(folders: dict[str, Location], name: str) -> Iterator[FolderPair]:
    """train/images + train/masks, or train + train_masks."""
    split = folders[name].name
    yield from _find_pairs(list_folders(folders[name]), split)
    for ending in MASK_ENDINGS:
        masks = folders.get(name + ending)
        if masks is not None and has_images(masks):
            yield FolderPair(folders[name], masks, split)
            return


# -- messages ------------------------------------------------------------------------------------


def _no_folders(root: Location) -> SourceError:
    """The error for a folder without folders of images and masks."""
    entries = [entry.name for entry in root.list_entries() if not entry.name.startswith(".")]
    found = f"found {join_names(entries)}" if entries else "the folder is empty"
    pairs = ", ".join(f"{images} + {masks}" for images, masks in _FOLDER_NAMES)
    return SourceError(
        f"no masks to pack: {found}; expected two folders with the same file names ({pairs}), or "
        "x_mask.png next to x.jpg",
        path=root,
        remedy=f"Name the folders with {option('images')} and {option('masks')}, or list the pairs "
        f"with {option('pairs')}.",
    )


def _no_pairs(
    folders: Sequence[FolderPair], trees: Sequence[ImageTree], found: Pairing
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
