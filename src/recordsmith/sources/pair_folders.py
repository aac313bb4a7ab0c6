"""Pairs by folders: the layouts that segmentation datasets have on disk.

root/images + root/masks and their like, with splits above or below; root/train + root/train_masks;
pictures with their masks beside them; and PASCAL VOC, whose `ImageSets` list what belongs to which
split. Names decide; no file is opened that is named like a picture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError
from recordsmith.files import list_folder
from recordsmith.sources.folders import (
    PictureTree,
    folders_in,
    has_pictures,
    names_below,
    read_picture_tree,
)
from recordsmith.sources.pair_lists import Line, read_list
from recordsmith.sources.pairing import (
    MASK_ENDINGS,
    Matches,
    Pairing,
    doubt,
    has_masks_beside,
    match_names,
    match_within,
    without_suffix,
)
from recordsmith.sources.splits import (
    are_split_names,
    in_split_order,
    split_lists,
)
from recordsmith.sources.wording import some, tally

_FOLDER_NAMES = (
    ("JPEGImages", "SegmentationClass"),
    ("images", "masks"),
    ("image", "mask"),
    ("imgs", "masks"),
    ("images", "labels"),
    ("pictures", "masks"),
)
_LISTS = ("ImageSets", "Segmentation")
_NESTED = 3  # so many folders may have nothing in them but one more, as archives unpack


@dataclass(frozen=True)
class FolderPair:
    """A folder of pictures and its folder of masks; the same one where both are in it."""

    pictures: Path
    masks: Path
    split: str | None = None


def find_folders(root: Path) -> tuple[Path, list[FolderPair]]:
    """Find where pictures and masks are.

    Returns:
        (the folder that names count from: the root, or one further down where it holds nothing
        but that; the folders of pictures and masks).

    Raises:
        SourceError: there are none; says what was found and what was expected.
    """
    base = root
    for _ in range(_NESTED):
        folders = folders_in(base)
        found = list(_pairs_in(folders, None)) or [
            pair
            for name in in_split_order(filter(is_split_name, folders))
            for pair in _of_split(folders, name)
        ]
        if found:
            return base, found
        if len(folders) != 1:
            break
        (base,) = folders.values()
    if any(has_masks_beside(files) for _, files in names_below(root)):
        return root, [FolderPair(root, root)]
    raise _no_folders(root)


def pairs_of_folders(base: Path, folders: Sequence[FolderPair]) -> Pairing:
    """Pair what is in folders; names count from `base` if the pictures are below it.

    Raises:
        SourceError: there are no pairs; says what was found and what was expected.
    """
    found = Pairing()
    trees: list[PictureTree] = []
    lists = base.joinpath(*_LISTS)
    for pair in folders:
        pictures = read_picture_tree(pair.pictures)
        masks = pictures if pair.masks == pair.pictures else read_picture_tree(pair.masks)
        trees += [pictures] if masks is pictures else [pictures, masks]
        if masks is pictures:
            matches = match_within(_names(pictures))
        else:
            matches = match_names(_names(pictures), _names(masks))
        is_below = pair.pictures.is_relative_to(base)
        prefix = pair.pictures.relative_to(base).as_posix() if is_below else "."
        names = _Names(pair, "" if prefix == "." else f"{prefix}/", matches)
        listed: dict[str, Path] = {}
        if len(folders) == 1 and lists.is_dir():
            found_lists = split_lists(entry.path for entry in list_folder(lists))
            listed = {split: Path(path) for split, path in found_lists.items()}
        if listed:
            _add_listed(found, names, listed, lists)
        else:
            _add_all(found, names)
    found.notice("hidden", [path for tree in trees for path in tree.hidden])
    others = [path for tree in trees for path in tree.others]
    if others:
        found.notices.append(f"no pictures: {tally(others)}")
    if all(pair.problem is not None for pair in found.pairs):
        raise _no_pairs(folders, trees, found)
    return found


def beside(base: Path, folders: Sequence[FolderPair]) -> list[str]:
    """What else is in a folder whose layout was found."""
    used = {
        path.relative_to(base).parts[:1] for pair in folders for path in (pair.pictures, pair.masks)
    }
    if () in used:
        return []
    entries = [entry for entry in list_folder(base) if not entry.name.startswith(".")]
    return [entry.path for entry in entries if (entry.name,) not in {*used, _LISTS[:1]}]


# -- matches -> pairs ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Names:
    """What two folders' names say; prefix: of the names of samples."""

    folders: FolderPair
    prefix: str
    matches: Matches

    def files(self, picture: str, mask: str) -> tuple[str, str]:
        return (
            os.path.join(self.folders.pictures, picture),
            os.path.join(self.folders.masks, mask),
        )


def _names(tree: PictureTree) -> list[str]:
    return [picture.name for picture in tree.pictures]


def _add_all(found: Pairing, names: _Names) -> None:
    """Every match is a sample; its split is that of the folders, or the first folder below."""
    matches, split = names.matches, names.folders.split
    paths = [picture for picture, _ in matches.pairs]
    paths += [picture for pictures, _ in matches.doubts for picture in pictures]
    heads = {path.partition("/")[0] if "/" in path else "" for path in paths}
    is_split_below = split is None and are_split_names(heads)

    def split_of(path: str) -> str | None:
        return path.partition("/")[0] if is_split_below else split

    for picture, mask in matches.pairs:
        found.add(names.prefix + picture, *names.files(picture, mask), split_of(picture))
    for pictures, masks in matches.doubts:
        for picture in pictures:
            problem = f"{names.folders.pictures}: {doubt(pictures, masks)}"
            found.add_problem(names.prefix + picture, problem, split_of(picture))
    _notice_lone(found, names)


def _notice_lone(found: Pairing, names: _Names) -> None:
    lone = {
        "pictures without a mask": (names.folders.pictures, names.matches.lone_pictures),
        "masks without a picture": (names.folders.masks, names.matches.lone_masks),
    }
    for what, (folder, files) in lone.items():
        if files:
            found.notices.append(f"{what}: {tally([str(folder / file) for file in files])}")


def _add_listed(found: Pairing, names: _Names, listed: dict[str, Path], lists: Path) -> None:
    """The names of VOC's lists are samples; what is wrong with one is said with its line."""
    matches = names.matches
    pairs = {without_suffix(picture): (picture, mask) for picture, mask in matches.pairs}
    lone = {without_suffix(picture) for picture in matches.lone_pictures}
    doubts = {without_suffix(files[0][0]): doubt(*files) for files in matches.doubts}
    known = {*pairs, *lone, *doubts}
    places: dict[str, tuple[Path, int]] = {}  # where a name is first
    repeated: list[str] = []
    for split, path in listed.items():
        lines = [(line.number, _name_in(line, known)) for line in read_list(path)]
        if lines and all(name in lone for _, name in lines):
            found.notices.append(
                f"a split of pictures without masks, left out: {path} ({len(lines):,} names)"
            )
            places |= {name: (path, number) for number, name in lines}
            continue
        for number, name in lines:
            first_path, first_number = places.setdefault(name, (path, number))
            if (first_path, first_number) == (path, number):
                problem = doubts.get(name)
                if name in lone:
                    problem = f"{name} has no mask in {names.folders.masks}"
                elif name not in known:
                    problem = f"{name} has no picture in {names.folders.pictures}"
            elif first_path == path:
                repeated.append(f"{path}, line {number}")
                continue
            else:
                problem = (
                    f"{name} is in {first_path}, line {first_number}, as well; a sample belongs to "
                    "one split"
                )
            if problem is None:
                picture, mask = pairs[name]
                found.add(names.prefix + picture, *names.files(picture, mask), split)
            else:
                where = f"{path.name}, line {number}"
                found.add_problem(where, f"{path}, line {number}: {problem}", split)
    found.notice("names that a list has again, packed once", repeated)
    unlisted = sorted(known - set(places))
    found.notice("pairs that no list names", [name for name in unlisted if name in pairs])
    found.notice("pictures that no list names", [name for name in unlisted if name not in pairs])
    others = [entry.path for entry in list_folder(lists) if Path(entry.path) not in listed.values()]
    found.notice("lists that are not used", others)


def _name_in(line: Line, known: set[str]) -> str:
    """The name that a line of a list has: all of it, or what stands before VOC's numbers."""
    whole = without_suffix(" ".join(line.fields))
    return whole if whole in known else without_suffix(line.fields[0])


# -- layouts -------------------------------------------------------------------------------------


def _pairs_in(folders: dict[str, Path], split: str | None) -> Iterator[FolderPair]:
    """The first pair of names that is there, with pictures in both."""
    for names in _FOLDER_NAMES:
        pictures, masks = (folders.get(name.lower()) for name in names)
        if pictures is not None and masks is not None and has_pictures(masks):
            yield FolderPair(pictures, masks, split)
            return


def _of_split(folders: dict[str, Path], name: str) -> Iterator[FolderPair]:
    """train/images + train/masks, or train + train_masks."""
    split = folders[name].name
    yield from _pairs_in(folders_in(folders[name]), split)
    for ending in MASK_ENDINGS:
        masks = folders.get(name + ending)
        if masks is not None and has_pictures(masks):
            yield FolderPair(folders[name], masks, split)
            return


# -- words ---------------------------------------------------------------------------------------


def _no_folders(root: Path) -> SourceError:
    """Say what is there instead of pictures and masks."""
    entries = [entry.name for entry in list_folder(root) if not entry.name.startswith(".")]
    found = f"found {some(entries)}" if entries else "the folder is empty"
    pairs = ", ".join(f"{pictures} + {masks}" for pictures, masks in _FOLDER_NAMES)
    return SourceError(
        f"no masks to pack: expected in {root} two folders with the same names in them ({pairs}), "
        f"or x_mask.png beside x.jpg; {found}. Name the folders with pictures= and masks=, or give "
        "a list of them with pairs="
    )


def _no_pairs(
    folders: Sequence[FolderPair], trees: Sequence[PictureTree], found: Pairing
) -> SourceError:
    """Say what is in the folders that have no name in common."""
    problems = [pair.problem for pair in found.pairs if pair.problem is not None]
    if problems:
        words = f"of {len(problems):,} names none has both a picture and a mask: {problems[0]}"
    elif empty := [str(tree.path) for tree in trees if not tree.pictures]:
        words = f"found no pictures in {some(empty)}"
    else:
        where = some(f"{pair.pictures} and {pair.masks}" for pair in folders)
        names = f"{trees[0].pictures[0].name} and {trees[-1].pictures[0].name}"
        words = f"no name is in both of {where}; found {names}"
    return SourceError(
        "no pairs to pack: expected masks with the names of their pictures, x.png or x_mask.png "
        f"for x.jpg; {words}. Or give a list of pairs",
        [*problems, *found.notices],
    )
