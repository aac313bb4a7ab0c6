"""Where images and their masks are: in two folders, or in one, whose files have the same names.

Names of files show which folders belong together, pixels show which of them has masks. The names of
folders are a hint where both look alike or cannot be read.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, takewhile
from typing import Any, NamedTuple

from recordsmith.dataset import is_split_name
from recordsmith.errors import SourceError, option
from recordsmith.image import Colour
from recordsmith.sources.files.file_tree import FileTree, sampling_key
from recordsmith.sources.files.images import is_image_word, is_mask_word
from recordsmith.sources.layouts import Confidence, LayoutCandidate, choose_candidate
from recordsmith.sources.pairs.mask_evidence import Content, MaskEvidence, joint_content, preset_of
from recordsmith.sources.pairs.masks import parse_colour_table
from recordsmith.sources.pairs.names import (
    PLAIN,
    NamedFolder,
    NamePattern,
    SharedNames,
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
_MAX_COMPARED = 24  # folders of which any two are compared
_MAX_SIBLINGS = 8
_MAX_WITHIN = 64  # folders whose names are compared with each other
_MAX_DEPTH = 16
_MAX_OPENED = 12  # pairs of folders whose files are opened
_OPENED_FILES = 3  # of each folder
_MAX_POSSIBLE = 2
_MAX_TABLES = 200
_TABLE_WORDS = ("color", "colour", "class", "label", "palette", "map")


@dataclass(frozen=True)
class _Side:
    """The images or the masks: a pattern of folders and of names."""

    folder: str
    names: NamePattern

    @property
    def words(self) -> set[str]:
        """The words in the last folder and around the shared part of names."""
        last = "" if self.folder == "." else self.folder.rpartition("/")[2]
        words: set[str] = set()
        for text in (last, self.names.head, self.names.tail):
            words.update(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text))
            words.update(re.findall(r"[^\W_]+", text))
        lower = {word.lower() for word in words}
        return lower | {re.sub("^(train|val|test)", "", word) for word in lower}

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
class _Match:
    """Two sides whose names fit; which of them has masks is still open.

    distance: how many folders of their paths differ.
    folders: those with these files.
    files: the paths of some files of each side, in the same order.
    """

    sides: tuple[_Side, _Side]
    distance: int = 0
    weight: int = 0
    folders: set[str] = field(default_factory=set)
    files: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))

    def add(self, left: NamedFolder, right: NamedFolder, shared: SharedNames) -> None:
        """Add the files of two folders."""
        self.weight += len(shared.parts)
        self.folders |= {left.path, right.path}
        step = max(1, len(shared.parts) // _OPENED_FILES)
        for part in shared.parts[::step][: max(0, _OPENED_FILES - len(self.files[0]))]:
            self.files[0].append(_inside(left.path, left.names(shared.left)[part]))
            self.files[1].append(_inside(right.path, right.names(shared.right)[part]))


@dataclass(frozen=True)
class _Pair:
    """Images and masks.

    is_sure: whether pixels or names show which are which.
    has_sizes: whether masks are as large as their images, as far as is known.
    """

    images: _Side
    masks: _Side
    match: _Match
    content: Content = "unknown"
    is_sure: bool = True
    colours: frozenset[Colour] = frozenset()
    has_sizes: bool = True

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
    folders = [NamedFolder(scan) for scan in tree.folders.values() if scan.images]
    matches = [*_matches_of_two(folders), *_matches_within(folders)]
    matches.sort(key=lambda match: -match.weight)
    evidence = MaskEvidence(tree.root)
    pairs: list[_Pair] = []
    for number, match in enumerate(matches):
        left, right = match.sides
        if number < _MAX_OPENED or left.is_mask != right.is_mask:
            pairs += _decide(match, evidence)
    for pair in _clearest([pair for pair in pairs if pair.is_sure]) or _named_alone(tree):
        yield _candidate(tree, pair, Confidence.ANNOTATED)
    for pair in [pair for pair in pairs if not pair.is_sure][:_MAX_POSSIBLE]:
        yield _candidate(tree, pair, Confidence.POSSIBLE)


def resolve_pairs(tree: FileTree, given: Mapping[str, Any]) -> LayoutCandidate:
    """The only way to read a folder as images and masks; `given` are options chosen already.

    An error if there is none, or several; its message has what was found.
    """
    candidates = list(find_candidates(tree))
    if candidates:
        return choose_candidate(tree.root, candidates, given)
    entries = [*tree.tops, *tree.folders[""].names]
    found = f"found {join_names(entries)}" if entries else "the folder is empty"
    raise SourceError(
        f"no masks to pack: {found}; expected two folders with the same file names, such as images "
        "and masks, or x_mask.png next to x.jpg",
        path=tree.root,
        remedy=f"Name the folders with {option('images')} and {option('masks')}, or list the pairs "
        f"with {option('pairs')}.",
    )


# -- which folders belong together -----------------------------------------------------------------


def _matches_of_two(folders: list[NamedFolder]) -> Iterator[_Match]:
    """Yield pairs of folders whose files have the same names."""
    members: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for left, right in _neighbours(folders):
        parts = _split_paths(left.path, right.path)
        if parts is None:
            continue
        above, left_rest, right_rest = parts
        for shared in share_names(left, right):
            patterns: tuple[NamePattern, NamePattern] = shared.left, shared.right
            if is_usual(shared.left, shared.right) or is_usual(shared.right, shared.left):
                patterns = PLAIN, PLAIN
            members[left_rest, right_rest, len(above), patterns].append(
                (above, left, right, shared)
            )
    for (left_rest, right_rest, _, patterns), group in members.items():
        head = _common_pattern([above for above, *_ in group])
        left_side = _Side("/".join((*head, *left_rest)) or ".", patterns[0])
        right_side = _Side("/".join((*head, *right_rest)) or ".", patterns[1])
        match = _Match((left_side, right_side), len(left_rest) + len(right_rest))
        for _, left, right, shared in group:
            match.add(left, right, shared)
        yield match


def _matches_within(folders: list[NamedFolder]) -> Iterator[_Match]:
    """Yield folders in which files have the same names but for an ending."""
    members: defaultdict[Any, list[tuple[NamedFolder, SharedNames]]] = defaultdict(list)
    for folder in folders[:: max(1, -(-len(folders) // _MAX_WITHIN))]:
        for shared in share_names_within(folder):
            members[shared.left, shared.right].append((folder, shared))
    for (left, right), group in members.items():
        top = "/".join(_common_start([_split(folder.path) for folder, _ in group])) or "."
        match = _Match((_Side(top, left), _Side(top, right)))
        for folder, shared in group:
            match.add(folder, folder, shared)
        yield match


def _neighbours(folders: list[NamedFolder]) -> Iterator[tuple[NamedFolder, NamedFolder]]:
    """Yield folders to compare: all of few; of many those that differ in one name."""
    if len(folders) <= _MAX_COMPARED:
        yield from combinations(folders, 2)
        return
    groups: defaultdict[tuple[str, ...], list[NamedFolder]] = defaultdict(list)
    for folder in folders:
        parts = folder.path.split("/")
        for place in range(min(len(parts), _MAX_DEPTH)):
            groups[(*parts[:place], "\0", *parts[place + 1 :])].append(folder)
    for group in groups.values():
        if len(group) <= _MAX_SIBLINGS:
            yield from combinations(group, 2)
    by_path = {folder.path: folder for folder in folders}
    for folder in folders:
        above = by_path.get(folder.path.rpartition("/")[0])
        if above is not None and folder.path:
            yield above, folder


def _split_paths(left: str, right: str) -> tuple[Sequence[str], Any, Any] | None:
    """What two paths have in common at the start, and the rest of each, without equal ends.

    A split in the names of both becomes `*`: `*` and `*_masks` of `train` and `train_masks`. None
    if the paths differ in too much.
    """
    paths = _split(left), _split(right)
    above = _common_start(paths)
    one, other = (path[len(above) :] for path in paths)
    while one and other and one[-1] == other[-1]:
        one.pop()
        other.pop()
    if len(one) > 2 or len(other) > 2:
        return None
    if one and other and is_split_name(one[0]) and is_split_name(other[0]):
        return None
    starred = _with_star(one[0], other[0]) if len(one) == len(other) == 1 else None
    return above, *(starred or (tuple(one), tuple(other)))


def _with_star(left: str, right: str) -> tuple[tuple[str], tuple[str]] | None:
    """train, train_masks -> *, *_masks."""
    for end in range(min(len(left), len(right)), 2, -1):
        if left[:end] == right[:end] and is_split_name(left[:end]):
            rests = left[end:], right[end:]
            if all(map(_follows_split, rests)):
                return (f"*{rests[0]}",), (f"*{rests[1]}",)
        if left[-end:] == right[-end:] and is_split_name(left[-end:]):
            rests = left[:-end], right[:-end]
            if all(not rest or rest[-1] in "_-. " or left[-end].isupper() for rest in rests):
                return (f"{rests[0]}*",), (f"{rests[1]}*",)
    return None


def _follows_split(rest: str) -> bool:
    is_word = rest.lower() in _MASK_WORDS or is_image_word(rest)
    return not rest or rest[0] in "_-. " or rest[0].isupper() or is_word


def _common_pattern(paths: Sequence[Sequence[str]]) -> list[str]:
    """A pattern of several paths of one length: `*` where they differ or end in a split."""
    pattern = ["*" if len(set(names)) > 1 else names[0] for names in zip(*paths, strict=True)]
    if pattern and is_split_name(pattern[-1]):
        pattern[-1] = "*"
    return pattern


def _common_start(paths: Iterable[Sequence[str]]) -> list[str]:
    columns = zip(*paths, strict=False)
    return [names[0] for names in takewhile(lambda names: len(set(names)) == 1, columns)]


def _split(path: str) -> list[str]:
    return path.split("/") if path else []


def _inside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


# -- which of them are masks -----------------------------------------------------------------------


def _decide(match: _Match, evidence: MaskEvidence) -> Iterator[_Pair]:
    """Yield the pair of a match if names or pixels decide which side has masks, else both ways."""
    files = tuple([evidence.of(path) for path in paths] for paths in match.files)
    sizes = [
        left.size == right.size
        for left, right in zip(*files, strict=True)
        if left.size and right.size
    ]
    contents = tuple(map(joint_content, files))
    pairs = []
    for images, masks in ((0, 1), (1, 0)):
        image_side, mask_side = match.sides[images], match.sides[masks]
        is_shown = contents[images] == "photo" and contents[masks] not in ("photo", "unknown")
        is_named = mask_side.is_mask and not image_side.is_mask
        colours = frozenset[Colour]().union(*(file.colours for file in files[masks]))
        fits = not sizes or any(sizes)
        content = contents[masks]
        is_sure = is_shown or is_named
        pairs.append(_Pair(image_side, mask_side, match, content, is_sure, colours, fits))
    sure = [pair for pair in pairs if pair.is_sure]
    yield from sure or [replace(pair, has_sizes=True) for pair in pairs]


def _clearest(pairs: list[_Pair]) -> list[_Pair]:
    """Without those that share a folder with a pair that is nearer or whose names fit better."""

    def is_clearer(other: _Pair, pair: _Pair) -> bool:
        is_nearer = other.match.distance < pair.match.distance
        if is_nearer and not other.match.folders.isdisjoint(pair.match.folders):
            return True
        shares = not {other.images, other.masks}.isdisjoint((pair.images, pair.masks))
        return shares and other.score > pair.score

    return [pair for pair in pairs if not any(is_clearer(other, pair) for other in pairs)]


def _named_alone(tree: FileTree) -> list[_Pair]:
    """Folders named like those of images and masks, whose files have no names in common."""
    pairs = []
    for path, folder in tree.folders.items():
        below = [_inside(path, name) for name in tree.inside(path)]
        sides = [_Side(inner, PLAIN) for inner in below if tree.image_counts[inner]]
        images = [side for side in sides if side.is_image and not side.is_mask]
        masks = [side for side in sides if side.is_mask and not side.is_image]
        if not images and len(masks) == 1 and folder.image_count:
            images = [_Side(path or ".", PLAIN)]
        if len(images) == len(masks) == 1:
            pairs.append(_Pair(images[0], masks[0], _Match((images[0], masks[0]))))
    return pairs if len(pairs) == 1 else []


# -- candidates ------------------------------------------------------------------------------------


def _candidate(tree: FileTree, pair: _Pair, confidence: Confidence) -> LayoutCandidate:
    images, masks = pair.images, pair.masks
    options: dict[str, Any] = {"images": images.folder, "masks": masks.folder}
    if images.folder == masks.folder or not is_usual(images.names, masks.names):
        if images.names != PLAIN:
            options["image_names"] = str(images.names)
        options["mask_names"] = str(masks.names)
    what = _describe(images, masks, options)
    problem = _problem(pair)
    files: tuple[str, ...] = ()
    if pair.content == "colours" and (colours := _colour_table(tree, pair.colours)) is not None:
        problem = _Problem()
        options["colours"] = colours
        files = (colours,)
        presets = {"grey": ", gray levels in RGB", "voc": ", in VOC's colours"}
        what += presets.get(colours, f", in the colours of {colours}")
    if (lists := _folder_of_lists(tree, images, masks)) is not None:
        options["split_lists"] = lists
    return LayoutCandidate(
        "pairs",
        what,
        confidence,
        options,
        noun="pairs",
        left_out=_names_of_groups(pair),
        files=files,
        problem=problem.text,
        remedy=problem.remedy,
        needs=problem.needs,
    )


class _Problem(NamedTuple):
    """Why masks cannot be packed as they are, what to do, and the options that solve it."""

    text: str = ""
    remedy: str = ""
    needs: tuple[str, ...] = ()


def _problem(pair: _Pair) -> _Problem:
    images, masks = pair.images, pair.masks
    if pair.content == "colours":
        shown = join_names(map(str, sorted(pair.colours)))
        return _Problem(
            f"the masks in {masks.folder} have colours, not class numbers",
            f"Map each colour ({shown}) to its class number with {option('colours')}: a file with "
            "red, green, blue and name of each class on a line, or in Python a dict.",
            ("colours",),
        )
    if not pair.has_sizes and not (images.is_image and masks.is_mask):
        return _Problem(
            f"the files in {masks.folder} have other sizes than those in {images.folder}",
            f"If they are classes, pass {option('format', 'folder')}. If they are masks, resize "
            "them with nearest-neighbour interpolation.",
        )
    if pair.content == "photo" and not (images.is_image and masks.is_surely_mask):
        return _Problem(
            f"the files in {masks.folder} look like photos, not like masks",
            f"If they are masks, pass {option('images', images.folder)} and "
            f"{option('masks', masks.folder)}.",
            ("masks", "format"),
        )
    if pair.content == "lossy":
        return _Problem(
            f"the masks in {masks.folder} are JPEGs, whose compression changes class numbers",
            "Export them as PNG from the annotation tool.",
        )
    return _Problem()


def _names_of_groups(pair: _Pair) -> tuple[str, ...]:
    """The folders above or below the images whose names may be those of classes, not of splits."""
    parts = pair.images.folder.split("/") if pair.images.folder != "." else []
    depth = parts.index("*") if "*" in parts else len(parts)
    paths = [_split(path) for path in pair.match.folders]
    names = {path[depth] for path in paths if path[:depth] == parts[:depth] and len(path) > depth}
    if len(names) < 2 or any(map(is_like_split, names)):
        return ()
    pattern = "^" + "[^/]+/" * depth + "([^/]+)/"
    remedy = f"for classes: {option('class_pattern', pattern)}"
    return (f"the names of the folders {join_names(sorted(names))} ({remedy})",)


def _describe(images: _Side, masks: _Side, options: Mapping[str, Any]) -> str:
    where = "the folder itself" if images.folder == "." else f"{images.folder}/"
    if images.folder == masks.folder:
        where = "one folder" if images.folder == "." else where
        names = options.get("image_names", "the other files")
        return f"images ({names}) and masks ({options['mask_names']}) in {where}"
    named = f" ({options['mask_names']})" if "mask_names" in options else ""
    return f"images in {where}, masks in {masks.folder}/{named}"


def _colour_table(tree: FileTree, colours: frozenset[Colour]) -> str | None:
    """A file with all of these colours, or else a preset."""
    for path in islice(tree.files(".txt", ".csv", depth=1), _MAX_TABLES):
        name = path.rpartition("/")[2].lower()
        if any(word in name for word in _TABLE_WORDS):
            table = parse_colour_table(tree.head(path).decode("utf-8-sig", "replace"))
            if len(table) > 1 and colours <= {colour for colour, _ in table}:
                return path
    return preset_of(colours)


def _folder_of_lists(tree: FileTree, images: _Side, masks: _Side) -> str | None:
    """The folder with lists of the images of each split, next to the images or the masks."""
    scan = tree.folders.get(images.folder)
    if images.folder == masks.folder or scan is None or not scan.images:
        return None
    known = {os.path.splitext(name)[0] for name in scan.images}
    for folder in dict.fromkeys(side.folder.rpartition("/")[0] for side in (masks, images)):
        above = tree.folders.get(folder)
        files = split_lists(above.names if above else ()).values()
        heads = [tree.head(_inside(folder, name)).decode("utf-8", "replace") for name in files]
        lines = [line.split() for head in heads for line in head.splitlines()[:200]]
        names = [os.path.splitext(line[0])[0] for line in lines if line]
        sampled = [name for name in names if sampling_key(name) < scan.highest_key]
        if sampled and sum(name in known for name in sampled) >= 0.5 * len(sampled):
            return folder or "."
    return None
