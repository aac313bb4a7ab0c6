"""Detect images and masks: two folders, or one, whose files have the same names.

Names of files show which folders belong together, pixels show which of them has masks. The names of
folders are a hint where both look alike or cannot be read.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError, option
from recordsmith.image import Colour
from recordsmith.sources.files.file_tree import FileTree, sampling_key
from recordsmith.sources.files.images import is_image_word, is_mask_word
from recordsmith.sources.layouts import Confidence, LayoutCandidate, choose_candidate
from recordsmith.sources.pairs.mask_evidence import Content, FileLooks, joined, preset_of
from recordsmith.sources.pairs.masks import parse_colour_table
from recordsmith.sources.pairs.shared_names import (
    PLAIN,
    Affix,
    NamedFolder,
    Shared,
    is_usual,
    share_names,
    share_names_within,
)
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import is_like_split, split_lists

_MASK_WORDS_TEXT = (
    "mask masks label labels labeled labelled gt gts groundtruth truth seg segs segmentation "
    "segmentations segmentationclass segmentationclassaug annot annots annotation annotations "
    "target targets trimap trimaps manual manual1 semantic labelids labeltrainids gtfine "
    "gtcoarse parsing matte mattes silhouette"
)
_MASK_WORDS = frozenset(_MASK_WORDS_TEXT.split())
_OTHER_WORDS_TEXT = (
    "depth disparity instance instances instanceids instancetrainids segmentationobject "
    "object objects color colors colour colours colored coloured vis visual visualization "
    "overlay preview edge edges boundary boundaries normal normals flow thumb thumbs "
    "thumbnail thumbnails"
)
_OTHER_WORDS = frozenset(_OTHER_WORDS_TEXT.split())
_MOST_COMPARED = 24  # folders of which any two are compared
_MOST_SIBLINGS = 8
_MOST_WITHIN = 64  # folders whose names are compared with each other
_MOST_OPENED = 12  # pairs of folders whose files are opened
_OPENED = 3
_MOST_POSSIBLE = 2
_TABLE_WORDS = ("color", "colour", "class", "label", "palette", "map")


@dataclass(frozen=True)
class _Side:
    """The images or the masks of a candidate: a pattern of folders and of names."""

    folder: str
    affix: Affix

    @property
    def words(self) -> set[str]:
        """The words in the last folder and around the shared part of names."""
        last = self.folder.rpartition("/")[2] if self.folder != "." else ""
        texts = (last, self.affix.head, self.affix.tail)
        found: set[str] = set()
        for text in texts:
            parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)
            found.update(part.lower() for part in parts)
            found.update(word.lower() for word in re.findall(r"\w+", text.replace("_", " ")))
            for word in re.findall(r"[a-z]+", text.lower()):
                found.update(
                    word.removeprefix(split)
                    for split in ("train", "val", "test")
                    if word.startswith(split)
                )
        return found

    @property
    def is_mask(self) -> bool:
        return not self.words.isdisjoint(_MASK_WORDS)

    @property
    def is_surely_mask(self) -> bool:
        """Whether the folder is named like masks and nothing else."""
        last = self.folder.rpartition("/")[2].lower()
        return "mask" in last or is_mask_word(last)

    @property
    def is_image(self) -> bool:
        return any(map(is_image_word, self.words))

    @property
    def is_other(self) -> bool:
        return not self.words.isdisjoint(_OTHER_WORDS)


@dataclass
class _Candidate:
    """Two sides whose names fit; which of them has masks is still open.

    distance: how many folders of their paths differ.
    leaves: the folders with these files.
    left_files, right_files: the paths of some files, in the same order.
    """

    left: _Side
    right: _Side
    distance: int = 0
    weight: int = 0
    leaves: set[str] = field(default_factory=set)
    left_files: list[str] = field(default_factory=list)
    right_files: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Found:
    """Images and masks.

    is_sure: whether pixels or names show which are which.
    has_sizes: whether masks are as large as their images, as far as is known.
    """

    images: _Side
    masks: _Side
    content: Content = "unknown"
    is_sure: bool = True
    colours: frozenset[Colour] = frozenset()
    has_sizes: bool = True
    candidate: _Candidate | None = None

    @property
    def score(self) -> int:
        """How well the names fit, to choose between several folders with the same names."""
        return (
            2 * self.masks.is_mask
            - 2 * self.masks.is_other
            + self.images.is_image
            - self.images.is_other
            + (self.content == "numbers")
        )


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    """Yield how a folder can be read as images and masks."""
    leaves = [NamedFolder(folder) for folder in tree.folders.values() if folder.images]
    candidates = [*_twins(leaves), *_within(leaves)]
    candidates.sort(key=lambda each: -each.weight)
    looks = FileLooks(tree.root)
    found: list[_Found] = []
    for number, candidate in enumerate(candidates):
        is_named = candidate.left.is_mask != candidate.right.is_mask
        if number >= _MOST_OPENED and not is_named:
            continue
        found += _decide(candidate, looks)
    sure = _clearest([each for each in found if each.is_sure])
    if not sure:
        sure = _named_alone(tree)
    left = [each for each in found if not each.is_sure]
    for each in sure:
        yield _reading(tree, each, Confidence.ANNOTATED)
    for each in left[:_MOST_POSSIBLE]:
        yield _reading(tree, each, Confidence.POSSIBLE)


def find_pairs(tree: FileTree, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of the only way to read a folder as images and masks.

    Args:
        given: options that are chosen already.

    Raises:
        SourceError: there is none, or several; the message has what was found.
    """
    readings = list(find_candidates(tree))
    if not readings:
        raise _no_folders(tree)
    return choose_candidate(tree.root, readings, given).options


# -- which folders belong together -----------------------------------------------------------------


def _twins(leaves: list[NamedFolder]) -> list[_Candidate]:
    """Pairs of folders whose files have the same names."""
    grouped: dict[
        tuple[Any, ...], list[tuple[tuple[str, ...], NamedFolder, NamedFolder, Shared]]
    ] = {}
    for one, other in _neighbours(leaves):
        place = _place(one.path, other.path)
        if place is None:
            continue
        above, left, right = place
        for shared in share_names(one, other):
            rule = (
                (PLAIN, PLAIN)
                if is_usual(shared.left, shared.right) or is_usual(shared.right, shared.left)
                else (shared.left, shared.right)
            )
            key = (left, right, len(above), rule)
            grouped.setdefault(key, []).append((above, one, other, shared))
    found = []
    for (left, right, _, rule), members in grouped.items():
        head = _joint([above for above, *_ in members])
        left_side = _Side(_path(head, left), rule[0])
        right_side = _Side(_path(head, right), rule[1])
        candidate = _Candidate(left_side, right_side, len(left) + len(right))
        for _, one, other, shared in members:
            candidate.weight += len(shared.parts)
            candidate.leaves |= {one.path, other.path}
            _add_files(candidate, one, other, shared)
        found.append(candidate)
    return found


def _within(leaves: list[NamedFolder]) -> list[_Candidate]:
    """Folders in which files have the same names but for an ending."""
    grouped: dict[tuple[Affix, Affix], list[tuple[NamedFolder, Shared]]] = defaultdict(list)
    step = -(-len(leaves) // _MOST_WITHIN)
    for leaf in leaves[::step] if leaves else ():
        for shared in share_names_within(leaf):
            grouped[shared.left, shared.right].append((leaf, shared))
    found = []
    for (left, right), members in grouped.items():
        folders = [leaf.path.split("/") if leaf.path else [] for leaf, _ in members]
        top = _common_start(folders)
        folder = "/".join(top) or "."
        candidate = _Candidate(_Side(folder, left), _Side(folder, right))
        for leaf, shared in members:
            candidate.weight += len(shared.parts)
            candidate.leaves.add(leaf.path)
            _add_files(candidate, leaf, leaf, shared)
        found.append(candidate)
    return found


def _add_files(candidate: _Candidate, one: NamedFolder, other: NamedFolder, shared: Shared) -> None:
    if len(candidate.left_files) >= _OPENED:
        return
    step = max(1, len(shared.parts) // _OPENED)
    for part in shared.parts[::step][: _OPENED - len(candidate.left_files)]:
        candidate.left_files.append(_inside(one.path, one.names(shared.left)[part]))
        candidate.right_files.append(_inside(other.path, other.names(shared.right)[part]))


def _neighbours(leaves: list[NamedFolder]) -> Iterator[tuple[NamedFolder, NamedFolder]]:
    """Pairs of folders to compare: all of few; of many those that differ in one name."""
    if len(leaves) <= _MOST_COMPARED:
        yield from itertools.combinations(leaves, 2)
        return
    groups: dict[tuple[str, ...], list[NamedFolder]] = defaultdict(list)
    for leaf in leaves:
        parts = leaf.path.split("/")
        for at in range(min(len(parts), 16)):
            groups[(*parts[:at], "\0", *parts[at + 1 :])].append(leaf)
    by_path = {leaf.path: leaf for leaf in leaves}
    for group in groups.values():
        if len(group) <= _MOST_SIBLINGS:
            yield from itertools.combinations(group, 2)
    for leaf in leaves:
        above = by_path.get(leaf.path.rpartition("/")[0])
        if above is not None and above is not leaf and leaf.path:
            yield above, leaf


def _place(one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None:
    """What two paths have in common at the start, and the rest of each, without equal ends.

    A split in the names of both becomes `*`: `*` and `*_masks` of `train` and `train_masks`.
    """
    left, right = (path.split("/") if path else [] for path in (one, other))
    start = len(_common_start((left, right)))
    above, left, right = left[:start], left[start:], right[start:]
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    if len(left) > 2 or len(right) > 2:
        return None
    if left and right and is_split_name(left[0]) and is_split_name(right[0]):
        return None
    if len(left) == len(right) == 1:
        starred = _with_star(left[0], right[0])
        if starred is not None:
            return tuple(above), *starred
    return tuple(above), tuple(left), tuple(right)


def _common_start(paths: Iterable[list[str]]) -> list[str]:
    return [names[0] for names in itertools.takewhile(_are_equal, zip(*paths, strict=False))]


def _are_equal(names: tuple[str, ...]) -> bool:
    return len(set(names)) == 1


def _with_star(left: str, right: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """train, train_masks -> *, *_masks."""
    for end in range(min(len(left), len(right)), 2, -1):
        if left[:end].lower() == right[:end].lower() and is_split_name(left[:end]):
            rests = left[end:], right[end:]
            if left[:end] == right[:end] and all(map(_follows_split, rests)):
                return (f"*{rests[0]}",), (f"*{rests[1]}",)
        if left[-end:] == right[-end:] and is_split_name(left[-end:]):
            rests = left[:-end], right[:-end]
            if all(not rest or rest[-1] in "_-. " or left[-end].isupper() for rest in rests):
                return (f"{rests[0]}*",), (f"{rests[1]}*",)
    return None


def _follows_split(rest: str) -> bool:
    is_word = rest.lower() in _MASK_WORDS or is_image_word(rest)
    return not rest or rest[0] in "_-. " or rest[0].isupper() or is_word


def _joint(heads: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The folders above several pairs, with `*` where they differ or are splits."""
    found = []
    for at, names in enumerate(zip(*heads, strict=True)):
        is_last = at == len(heads[0]) - 1
        differ = len(set(names)) > 1 or (is_last and is_split_name(names[0]))
        found.append("*" if differ else names[0])
    return tuple(found)


def _path(head: Iterable[str], rest: Iterable[str]) -> str:
    return "/".join((*head, *rest)) or "."


def _inside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


# -- which of them are masks -----------------------------------------------------------------------


def _decide(candidate: _Candidate, looks: FileLooks) -> Iterator[_Found]:
    left = [looks.at(path) for path in candidate.left_files]
    right = [looks.at(path) for path in candidate.right_files]
    sizes = [
        one.size == other.size
        for one, other in zip(left, right, strict=True)
        if one.size and other.size
    ]
    forms = joined(left), joined(right)
    ways = (
        (candidate.left, candidate.right, forms, right),
        (candidate.right, candidate.left, forms[::-1], left),
    )
    fits = not sizes or any(sizes)
    found = []
    for images, masks, (of_images, of_masks), of_all in ways:
        colours = frozenset().union(*(look.colours for look in of_all))
        way = _Found(images, masks, of_masks, True, colours, fits, candidate)
        is_named = (masks.is_mask or masks.is_other) and not images.is_mask
        if of_masks == "photo" or of_images not in ("photo", "unknown"):
            is_shown = False  # masks may still be named
        else:
            is_shown = of_images == "photo" and of_masks != "unknown"
        if is_shown or (is_named and masks.is_mask):
            found.append(way)
    if len(found) == 1:
        yield found[0]
        return
    yield from found or [
        _Found(images, masks, forms[1], is_sure=False) for images, masks, forms, _ in ways
    ]


def _clearest(found: list[_Found]) -> list[_Found]:
    """Without those that share a folder with a pair that is nearer or whose names fit better."""

    def is_clearer(other: _Found, each: _Found) -> bool:
        assert each.candidate is not None
        assert other.candidate is not None
        nearer = other.candidate.distance < each.candidate.distance
        if nearer and not other.candidate.leaves.isdisjoint(each.candidate.leaves):
            return True
        shares = not {other.images, other.masks}.isdisjoint((each.images, each.masks))
        return shares and other.score > each.score

    return [each for each in found if not any(is_clearer(other, each) for other in found)]


def _named_alone(tree: FileTree) -> list[_Found]:
    """Folders named like those of images and masks, whose files have no names in common."""
    found = []
    for path, folder in tree.folders.items():
        below = [name for name in tree.inside(path) if tree.image_counts[_inside(path, name)]]
        sides = [_Side(_inside(path, name), PLAIN) for name in below]
        images = [side for side in sides if side.is_image and not side.is_mask]
        masks = [side for side in sides if side.is_mask and not side.is_image]
        if not images and len(masks) == 1 and folder.image_count:
            images = [_Side(path or ".", PLAIN)]
        if len(images) == len(masks) == 1:
            found.append(_Found(images[0], masks[0]))
    return found[:1] if len(found) == 1 else []


# -- readings --------------------------------------------------------------------------------------


def _reading(tree: FileTree, found: _Found, strength: Confidence) -> LayoutCandidate:
    images, masks = found.images, found.masks
    options: dict[str, Any] = {"images": images.folder, "masks": masks.folder}
    if images.folder == masks.folder or not is_usual(images.affix, masks.affix):
        if images.affix != PLAIN:
            options["image_names"] = images.affix.pattern
        options["mask_names"] = masks.affix.pattern
    what = _what(images, masks, options)
    problem = remedy = ""
    files: tuple[str, ...] = ()
    if found.content == "colours":
        colours = _colour_table(tree, found.colours)
        if colours is not None:
            options["colours"] = colours
            files = (colours,)
            what += {"grey": ", gray levels in RGB", "voc": ", in VOC's colours"}.get(
                colours, f", in the colours of {colours}"
            )
        else:
            problem = f"the masks in {masks.folder} have colours, not class numbers"
            shown = join_names(map(str, sorted(found.colours)))
            remedy = (
                f"Map each colour ({shown}) to its class number with {option('colours')}: a file "
                "with red, green, blue and name of each class on a line, or in Python a dict."
            )
    elif not found.has_sizes and not (images.is_image and masks.is_mask):
        problem = f"the files in {masks.folder} have other sizes than those in {images.folder}"
        remedy = (
            f"If they are classes, pass {option('format', 'folder')}. If they are masks, resize "
            "them with nearest-neighbour interpolation."
        )
    elif found.content == "photo" and not (images.is_image and masks.is_surely_mask):
        problem = f"the files in {masks.folder} look like photos, not like masks"
        remedy = (
            f"If they are masks, pass {option('images', images.folder)} and "
            f"{option('masks', masks.folder)}."
        )
    elif found.content == "lossy":
        problem = f"the masks in {masks.folder} are JPEGs, whose compression changes class numbers"
        remedy = "Export them as PNG from the annotation tool."
    options |= _lists(tree, images, masks)
    if "class_pattern" in options:
        what += ", classes from their names"
    needs = {"colours": ("colours",), "photo": ("masks", "format")}.get(found.content, ())
    return LayoutCandidate(
        "pairs",
        what,
        strength,
        options,
        "pairs",
        left_out=() if "class_pattern" in options else _names_of_groups(found),
        files=files,
        problem=problem,
        remedy=remedy,
        needs=needs,
    )


def _names_of_groups(found: _Found) -> tuple[str, ...]:
    """The folders above or below the images whose names may be those of classes, not of splits."""
    if found.candidate is None:
        return ()
    parts = found.images.folder.split("/") if found.images.folder != "." else []
    at = parts.index("*") if "*" in parts else len(parts)
    leaves = [leaf.split("/") for leaf in found.candidate.leaves if leaf]
    names = {leaf[at] for leaf in leaves if leaf[:at] == parts[:at] and len(leaf) > at}
    if len(names) < 2 or any(map(is_like_split, names)):
        return ()
    pattern = "^" + "[^/]+/" * at + "([^/]+)/"
    remedy = f"for classes: {option('class_pattern', pattern)}"
    return (f"the names of the folders {join_names(sorted(names))} ({remedy})",)


def _what(images: _Side, masks: _Side, options: Mapping[str, Any]) -> str:
    if images.folder == masks.folder:
        place = "one folder" if images.folder == "." else f"{images.folder}/"
        named = options.get("image_names", "the other files")
        return f"images ({named}) and masks ({options['mask_names']}) in {place}"
    of_images = "the folder itself" if images.folder == "." else f"{images.folder}/"
    named = f" ({options['mask_names']})" if "mask_names" in options else ""
    return f"images in {of_images}, masks in {masks.folder}/{named}"


def _colour_table(tree: FileTree, colours: frozenset[Colour]) -> str | None:
    """A file with all of these colours, or else a preset."""
    for path in itertools.islice(tree.files(".txt", ".csv", depth=1), 200):
        name = path.rpartition("/")[2].lower()
        if any(word in name for word in _TABLE_WORDS):
            table = parse_colour_table(tree.head(path).decode("utf-8-sig", "replace"))
            if len(table) > 1 and colours <= {colour for colour, _ in table}:
                return path
    return preset_of(colours)


def _lists(tree: FileTree, images: _Side, masks: _Side) -> dict[str, Any]:
    """The folder with lists of splits, and the pattern of classes if lists have their numbers."""
    if "*" in images.folder or images.folder == masks.folder:
        return {}
    leaf = tree.folders.get(images.folder)
    if leaf is None or not leaf.images:
        return {}
    known = {os.path.splitext(name)[0] for name in leaf.images}
    for folder in dict.fromkeys(side.folder.rpartition("/")[0] for side in (masks, images)):
        surveyed = tree.folders.get(folder)
        lists = split_lists(surveyed.names if surveyed else ())
        if not lists:
            continue
        heads = [
            tree.head(_inside(folder, name)).decode("utf-8", "replace") for name in lists.values()
        ]
        lines = [line.split() for head in heads for line in head.splitlines()[:200] if line.strip()]
        names = [os.path.splitext(line[0])[0] for line in lines]
        sampled = [name for name in names if sampling_key(name) < leaf.highest_key]
        if not sampled or sum(name in known for name in sampled) < 0.5 * len(sampled):
            continue
        options = {"split_lists": folder or "."}
        classes = {name.rpartition("_")[0] for name in names}
        has_numbers = all(len(line) > 1 and line[1].isdigit() for line in lines)
        if (
            has_numbers
            and len(classes) > 1
            and all(re.fullmatch(r".+_\d+", name) for name in names)
        ):
            options["class_pattern"] = r"([^/]+)_\d+\.\w+$"
        return options
    return {}


def _no_folders(tree: FileTree) -> SourceError:
    """The error for a folder without folders of images and masks."""
    root = tree.folders[""]
    entries = [*tree.tops, *root.names]
    found = f"found {join_names(entries)}" if entries else "the folder is empty"
    return SourceError(
        f"no masks to pack: {found}; expected two folders with the same file names, such as images "
        "and masks, or x_mask.png next to x.jpg",
        path=tree.root,
        remedy=f"Name the folders with {option('images')} and {option('masks')}, or list the pairs "
        f"with {option('pairs')}.",
    )
