"""Where images and their masks are: in two folders, or in one, whose files have the same names.

Names of folders and files show which are masks; where they do not, a look at some pixels does.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, islice, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from recordsmith.dataset import is_split_name
from recordsmith.image import Colour, distinct_colours, read_by_pillow
from recordsmith.sources.files.account import are_few
from recordsmith.sources.files.file_tree import HIGHEST_KEY, FileTree, FolderScan, sampling_key
from recordsmith.sources.files.images import is_image_word, is_mask_word
from recordsmith.sources.files.paths import join_path
from recordsmith.sources.layouts import Confidence, LayoutCandidate, choose_strongest
from recordsmith.sources.pairs.masks import PRESETS, parse_colour_table
from recordsmith.sources.pairs.names import PLAIN, NamePattern, is_usual
from recordsmith.sources.problems import join_names
from recordsmith.sources.splits import folder_splits, is_like_split
from recordsmith.stores import Location
from recordsmith.support.errors import RecordsmithError, SourceError, option
from recordsmith.support.words import common_prefix

_MASK_WORDS_TEXT = (
    "mask masks label labels labeled labelled gt gts groundtruth truth seg segs segmentation "
    "segmentations segmentationclass segmentationclassaug annot annots annotation annotations "
    "target targets trimap trimaps manual manual1 semantic labelids labeltrainids gtfine "
    "gtcoarse parsing matte mattes silhouette l"
)
_MASK_WORDS = frozenset(_MASK_WORDS_TEXT.split())
_OTHER_WORDS_TEXT = (
    "depth disparity instance instances instanceids instancetrainids segmentationobject "
    "object objects color colors colour colours colored coloured vis visual visualization "
    "overlay preview edge edges boundary boundaries normal normals flow thumb thumbs "
    "thumbnail thumbnails"
)
_OTHER_WORDS = frozenset(_OTHER_WORDS_TEXT.split())
_IMAGE_WORDS_TEXT = "image img photo rgb input sat leftimg8bit training test"
_WORDS = "|".join(sorted(_MASK_WORDS | _OTHER_WORDS | {*_IMAGE_WORDS_TEXT.split()}, key=len)[::-1])
_AFFIXES = re.compile(
    rf"(?P<head>(?:(?:{_WORDS})(?:[_\-. ]|(?=\d)))*)(?P<core>.*?)"
    rf"(?P<tail>(?:(?:[_\-. ]|(?<=\d))(?:{_WORDS}))*)",
    re.IGNORECASE,
)
_MAX_COMPARED = 24  # folders of which any two are compared
_MAX_SIBLINGS = 8
_MAX_WITHIN = 64  # folders whose names are compared with each other
_MAX_DEPTH = 16
_MAX_MATCHES = 12  # pairs of folders of which files are opened
_MAX_OPENED = 48
_OPENED_FILES = 3  # of each folder
_MIN_SHARED = 0.5
_MAX_BYTES = 1 << 25
_MAX_PIXELS = 1 << 26
_PIXELS_COUNTED = 1 << 20
_FEW_PIXELS = 64
_FEW_VALUES = 64
_COMMON_VALUES, _COMMON_SHARE = 16, 0.9
_GRID = 8
_ALIKE = 0.7
_MAX_TABLES = 200
_TABLE_WORDS = ("color", "colour", "class", "label", "palette", "map")

_Names: TypeAlias = Mapping[str, str]
"""Names of files by the part that images and masks share."""


@dataclass(frozen=True)
class _Side:
    """The images or the masks: a pattern of folders and of names."""

    folder: str
    names: NamePattern

    @cached_property
    def words(self) -> set[str]:
        """The words in the last folder and around the shared part of names."""
        last = "" if self.folder == "." else self.folder.rpartition("/")[2]
        words: set[str] = set()
        for text in (last, self.names.head, self.names.tail):
            if text.isascii():
                words.update(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text))
            words.update(re.findall(r"[^\W_]+", text))
        lower = {word.lower() for word in words}
        return lower | {re.sub("^(train|val|test)", "", word) for word in lower}

    @property
    def is_mask(self) -> bool:
        return not self.words.isdisjoint(_MASK_WORDS)

    @property
    def is_image(self) -> bool:
        return any(map(is_image_word, self.words))

    @property
    def is_other(self) -> bool:
        return not self.words.isdisjoint(_OTHER_WORDS)


@dataclass
class _Pair:
    """Images and masks, or two sides of which it is open, with some files of each side."""

    images: _Side
    masks: _Side
    distance: int = 0  # how many folders of their paths differ
    weight: int = 0
    folders: set[str] = field(default_factory=set)
    files: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    content: str = "unknown"  # of the masks, see `_look`
    colours: frozenset[Colour] = frozenset()

    def add(self, left: _Folder, right: _Folder, names: tuple[_Names, _Names]) -> None:
        shared = sorted(names[0].keys() & names[1].keys())
        self.weight += len(shared)
        self.folders |= {left.path, right.path}
        step = max(1, len(shared) // _OPENED_FILES)
        for part in shared[::step][: max(0, _OPENED_FILES - len(self.files[0]))]:
            self.files[0].append(join_path(left.path, names[0][part]))
            self.files[1].append(join_path(right.path, names[1][part]))

    @property
    def score(self) -> int:
        """How well the names fit, to choose between several folders with the same names."""
        of_masks = 2 * self.masks.is_mask - 2 * self.masks.is_other
        of_images = self.images.is_image - self.images.is_other
        return of_masks + of_images + (self.content == "numbers")


class _Folder:
    """A folder with images: their names by the stem, and by what is left without known words."""

    def __init__(self, scan: FolderScan) -> None:
        self.path, self.highest_key = scan.path, scan.highest_key
        self.plain: dict[str, str] = {}
        self.by_pattern: defaultdict[NamePattern, dict[str, str]] = defaultdict(dict)
        parts = [os.path.splitext(name) for name in scan.images]
        is_doubled = 3 * len({stem for stem, _ in parts}) <= 2 * len(parts)  # x.png next to x.jpg
        for name, (stem, suffix) in zip(scan.images, parts, strict=True):
            self.plain[stem] = name
            match = _AFFIXES.fullmatch(stem)
            head, core, tail = match.group("head", "core", "tail") if match else ("", stem, "")
            pattern = NamePattern(head, tail) if core else PLAIN
            if is_doubled:
                pattern = pattern._replace(suffix=suffix)
            self.by_pattern[pattern][core or stem] = name


def find_candidates(tree: FileTree) -> Iterator[LayoutCandidate]:
    folders = [_Folder(scan) for scan in tree.folders.values() if scan.images]
    matches = sorted(_matches(folders), key=lambda match: -match.weight)
    looks: dict[str, _Look] = {}
    pairs = []
    others = []
    for number, match in enumerate(matches):
        sides = match.images, match.masks
        if number < _MAX_MATCHES or sides[0].is_mask != sides[1].is_mask:
            contents, colours = zip(
                *(_joint_look(tree.root, files, looks) for files in match.files), strict=True
            )
            is_flat = [content in ("numbers", "colours") for content in contents]
            for masks in (0, 1):
                is_named = sides[masks].is_mask and not sides[1 - masks].is_mask
                is_shown = is_flat[masks] and contents[1 - masks] == "photo"
                if is_named or is_shown:
                    match.images, match.masks = sides[1 - masks], sides[masks]
                    match.content, match.colours = contents[masks], colours[masks]
                    pairs.append(match)
                    break
            else:
                others.append(match)
    for pair in _clearest(pairs):
        yield _candidate(tree, pair)
    total = tree.image_counts[""]
    whole = [pair for pair in others if are_few(total - 2 * pair.weight, total)]
    whole = [pair for pair in whole if len({*_are_deep(pair, looks)}) > 1] or whole
    if not pairs and len(whole) == 1:
        yield from _versions(whole[0], looks)
        if whole[0].images.names.suffix:  # photos next to photos of the same names
            yield replace(_candidate(tree, whole[0]), confidence=Confidence.STRUCTURE)


def resolve_pairs(tree: FileTree, given: Mapping[str, Any]) -> LayoutCandidate:
    """The only way to read a folder as images and masks; `given` are options chosen already.

    An error if there is none, or several; its message has what was found.
    """
    if candidates := list(find_candidates(tree)):
        return choose_strongest(tree.root, candidates, given)
    entries = [*tree.inside(""), *tree.folders[""].names]
    text = f"found {join_names(entries)}" if entries else "the folder is empty"
    raise SourceError(
        f"no masks to pack: {text}; expected two folders with the same file names, such as images "
        "and masks, or x_mask.png next to x.jpg",
        path=tree.root,
        remedy=f"Name the folders with {option('images')} and {option('masks')}.",
    )


# -- which folders belong together -----------------------------------------------------------------


def _matches(folders: list[_Folder]) -> list[_Pair]:
    """Two sides whose files have the same names, in two folders or in one."""
    members: defaultdict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    within = folders[:: max(1, -(-len(folders) // _MAX_WITHIN))]
    for left, right in chain(_neighbours(folders), zip(within, within, strict=True)):
        paths = _split_paths(left.path, right.path)
        if paths is not None:
            above, *rests = paths
            depth = None if left is right else len(above)
            for patterns, names in _shared_names(left, right):
                members[tuple(rests), patterns, depth].append((above, left, right, names))
    matches = []
    for (rests, patterns, depth), group in members.items():
        aboves = [above for above, *_ in group]
        head = common_prefix(aboves) if depth is None else _common_pattern(aboves)
        left_side, right_side = (
            _Side("/".join((*head, *rest)) or ".", pattern)
            for rest, pattern in zip(rests, patterns, strict=True)
        )
        match = _Pair(left_side, right_side, sum(map(len, rests)))
        for _, left, right, names in sorted(group, key=_size, reverse=True):
            match.add(left, right, names)
        matches.append(match)
    return matches


def _size(member: tuple[Any, ...]) -> int:
    """How many files two folders have that may belong together."""
    return min(map(len, member[-1]))


def _shared_names(left: _Folder, right: _Folder) -> Iterator[tuple[Any, tuple[_Names, _Names]]]:
    """How the names of two folders fit: one way if they are alike, else one for each pattern."""
    if left is right:
        ways: Iterable[Any] = combinations(left.by_pattern.items(), 2)
    elif _share(left, right, left.plain, right.plain):
        yield (PLAIN, PLAIN), (left.plain, right.plain)
        return
    else:
        ways = product(left.by_pattern.items(), right.by_pattern.items())
    for (left_pattern, of_left), (right_pattern, of_right) in ways:
        if _share(left, right, of_left, of_right):
            patterns = _simplified(left_pattern, right_pattern)
            is_known = is_usual(*patterns) or is_usual(*patterns[::-1])
            is_plain = is_known and left is not right
            yield (PLAIN, PLAIN) if is_plain else patterns, (of_left, of_right)


def _simplified(left: NamePattern, right: NamePattern) -> tuple[NamePattern, NamePattern]:
    """Patterns without a start that both have, which is shared as well."""
    if left.head == right.head:
        return left._replace(head=""), right._replace(head="")
    return left, right


def _share(left: _Folder, right: _Folder, of_left: _Names, of_right: _Names) -> bool:
    """Whether half of the names of one folder, or of what is known of it, are in the other."""
    highest = min(left.highest_key, right.highest_key)
    if highest < HIGHEST_KEY:  # samples: compare what is in both if it is in both folders
        of_left, of_right = (
            {part: name for part, name in names.items() if sampling_key(name) < highest}
            for names in (of_left, of_right)
        )
    shared = len(of_left.keys() & of_right.keys())
    return shared > 0 and shared >= _MIN_SHARED * min(len(of_left), len(of_right))


def _neighbours(folders: list[_Folder]) -> Iterator[tuple[_Folder, _Folder]]:
    """Yield folders to compare: all of few; of many those that differ in one name."""
    if len(folders) <= _MAX_COMPARED:
        yield from combinations(folders, 2)
        return
    groups: defaultdict[tuple[str, ...], list[_Folder]] = defaultdict(list)
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
    above = common_prefix(paths)
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


def _split(path: str) -> list[str]:
    return path.split("/") if path else []


# -- which of them are masks -----------------------------------------------------------------------


class _Look(NamedTuple):
    """What a file looks like.

    content: a photo, numbers (few values in one channel), or few exact colours; "unknown" if it
        cannot be read, is too small or too large, or has a single colour.
    size: width and height in pixels.
    tones: float32, (8, 8): brightness, without its mean; all 0 if unknown.
    is_deep: whether it has one channel of 16 bits.
    """

    content: str = "unknown"
    colours: frozenset[Colour] = frozenset()
    size: tuple[int, int] = (0, 0)
    tones: Any = None
    is_deep: bool = False


def _joint_look(
    root: Location, paths: Sequence[str], known: dict[str, _Look]
) -> tuple[str, frozenset[Colour]]:
    """What the files of one side look like: photos if one of them is."""
    for path in paths:
        if path not in known:
            known[path] = _look(root / path) if len(known) < _MAX_OPENED else _Look()
    contents = {known[path].content for path in paths}
    content = next((c for c in ("photo", "colours", "numbers") if c in contents), "unknown")
    return content, frozenset[Colour]().union(*(known[path].colours for path in paths))


def _look(location: Location) -> _Look:
    try:
        if location.info().size_bytes > _MAX_BYTES:
            return _Look()
        with read_by_pillow(location.read(), "image") as image:
            if image.width * image.height > _MAX_PIXELS:
                return _Look()
            size, is_deep = image.size, image.mode in ("I", "I;16", "I;16B")
            if image.format == "JPEG":
                image.draft("RGB", (1024, 1024))
            has_numbers = image.mode in ("1", "L", "P", "I", "I;16", "I;16B", "F")
            pixels = np.array(image if has_numbers else image.convert("RGB"))
    except RecordsmithError:
        return _Look()
    step = max(1, int((pixels.shape[0] * pixels.shape[1] / _PIXELS_COUNTED) ** 0.5))
    pixels = pixels[::step, ::step]
    return _Look(*_content(pixels), size, _tones(pixels), is_deep)


def _content(pixels: Any) -> tuple[str, frozenset[Colour]]:
    pixel_count = pixels.shape[0] * pixels.shape[1]
    few = min(_FEW_VALUES, max(2, pixel_count // 8))
    many = "photo" if pixel_count >= _FEW_PIXELS else "unknown"
    if pixels.ndim == 2:
        counts = np.sort(np.unique(pixels, return_counts=True)[1])
        is_smoothed = counts[-_COMMON_VALUES:].sum() >= _COMMON_SHARE * pixel_count
        is_flat = pixels.dtype.kind != "f" and (len(counts) <= few or is_smoothed)
        return "numbers" if is_flat else many, frozenset()
    colours = frozenset(distinct_colours(pixels))
    if 1 < len(colours) <= few:
        return "colours", colours
    return many if len(colours) > 1 else "unknown", frozenset()


def _tones(pixels: Any) -> Any:
    """The mean brightness in a grid of 8 by 8, without that of the image."""
    grey = pixels.astype(np.float32)
    grey = grey.mean(axis=2) if grey.ndim == 3 else grey
    if min(grey.shape) < _GRID:
        return np.zeros((_GRID, _GRID), np.float32)
    starts = [np.arange(_GRID) * side // _GRID for side in grey.shape]
    sums = np.add.reduceat(np.add.reduceat(grey, starts[0], axis=0), starts[1], axis=1)
    lengths = [np.diff([*start, side]) for start, side in zip(starts, grey.shape, strict=True)]
    tones = sums / np.outer(*lengths)
    return tones - tones.mean()


# -- two versions of the same images ---------------------------------------------------------------


def _are_versions(pair: _Pair, looks: Mapping[str, _Look]) -> bool:
    """Whether two folders have versions of the same images: HR/ and LR/, input/ and output/.

    Their sizes are in one ratio for each name; if they are equal, they differ between names, or
    the brightness of what they show is alike.
    """
    both = [(looks[a], looks[b]) for a, b in zip(*pair.files, strict=True)]
    if len(both) < 2 or any(0 in look.size for looks_of in both for look in looks_of):
        return False
    ratios = [(b.size[0] / a.size[0], b.size[1] / a.size[1]) for a, b in both]
    sides = [ratio for ratios_of in ratios for ratio in ratios_of]
    if max(sides) > 1.01 * min(sides):
        return False
    has_sizes = len({one.size for one, _ in both}) == len(both)
    is_scaled = not 0.99 < sides[0] < 1.01
    return is_scaled or has_sizes or all(_correlation(a.tones, b.tones) >= _ALIKE for a, b in both)


def _are_deep(pair: _Pair, looks: Mapping[str, _Look]) -> list[bool]:
    """Whether the files of each side have one channel of 16 bits."""
    return [all(looks[path].is_deep for path in paths if path in looks) for paths in pair.files]


def _correlation(one: Any, other: Any) -> float:
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float((one * other).sum()) / scale if scale else 0.0


def _versions(pair: _Pair, looks: Mapping[str, _Look]) -> Iterator[LayoutCandidate]:
    """Yield how two folders with equal names of files can be read that are not masks."""
    folders = [side.folder for side in (pair.images, pair.masks)]
    differing = zip(*(folder.split("/") for folder in folders), strict=False)
    if any(len(folder_splits(names)) > 1 for names in differing):
        return  # the same names in other splits
    is_plain = pair.images.names == pair.masks.names == PLAIN and "." not in folders
    if not is_plain:
        return
    deep = _are_deep(pair, looks)
    if deep[0] != deep[1]:
        images, masks = folders if deep[1] else folders[::-1]
        what = f"images in {images}/, values of 16 bits in {masks}/ as masks"
        options = {"images": images, "masks": masks}
        yield LayoutCandidate("pairs", what, Confidence.STRUCTURE, options, noun="pairs")
    elif not _are_versions(pair, looks):
        return
    if any("*" in folder for folder in folders):
        yield LayoutCandidate("files", "all images, without classes", Confidence.STRUCTURE)
        return
    for folder in folders:
        what = f"images in {folder}/ alone"
        yield LayoutCandidate("files", what, Confidence.STRUCTURE, {"images": folder})


def _clearest(pairs: list[_Pair]) -> list[_Pair]:
    """Without those that share a folder with a pair that is nearer or whose names fit better."""

    def is_clearer(other: _Pair, pair: _Pair) -> bool:
        if other.distance < pair.distance and not other.folders.isdisjoint(pair.folders):
            return True
        shares = not {other.images, other.masks}.isdisjoint((pair.images, pair.masks))
        return shares and other.score > pair.score

    return [pair for pair in pairs if not any(is_clearer(other, pair) for other in pairs)]


def _candidate(tree: FileTree, pair: _Pair) -> LayoutCandidate:
    images, masks = pair.images, pair.masks
    options: dict[str, Any] = {"images": images.folder, "masks": masks.folder}
    if images.folder == masks.folder or not is_usual(images.names, masks.names):
        if images.names != PLAIN:
            options["image_names"] = str(images.names)
        options["mask_names"] = str(masks.names)
    what = _describe(images, masks, options)
    files: tuple[str, ...] = ()
    problem = remedy = ""
    needs: tuple[str, ...] = ()
    confidence = Confidence.ANNOTATED
    is_sure = images.is_image and (is_mask_word(masks.folder.rpartition("/")[2]))
    if pair.content == "colours" and (colours := _colour_table(tree, pair.colours)) is not None:
        options["colours"], files = colours, (colours,)
        presets = {"grey": ", gray levels in RGB", "voc": ", in VOC's colours"}
        what += presets.get(colours, f", in the colours of {colours}")
    elif pair.content == "colours":
        shown = join_names(map(str, sorted(pair.colours)))
        problem = f"the masks in {masks.folder} have colours, not class numbers"
        remedy = (
            f"Map each colour ({shown}) to its class number with {option('colours')}: a file with "
            "red, green, blue and name of each class on a line, or in Python a dict."
        )
        needs = ("colours",)
    elif pair.content == "photo" and not is_sure:
        if not images.is_image:  # class folders may have such names
            confidence = Confidence.STRUCTURE
        problem = f"the files in {masks.folder} look like photos, not like masks"
        remedy = (
            f"If they are masks, pass {option('images', images.folder)} and "
            f"{option('masks', masks.folder)}."
        )
        needs = ("masks", "format")
    return LayoutCandidate(
        "pairs",
        what,
        confidence,
        options,
        noun="pairs",
        hints=_names_of_groups(pair),
        files=files,
        problem=problem,
        remedy=remedy,
        needs=needs,
    )


def _names_of_groups(pair: _Pair) -> dict[str, str]:
    """A hint on folders above or below the images whose names may be those of classes."""
    parts = pair.images.folder.split("/") if pair.images.folder != "." else []
    depth = parts.index("*") if "*" in parts else len(parts)
    paths = [_split(path) for path in pair.folders]
    names = {path[depth] for path in paths if path[:depth] == parts[:depth] and len(path) > depth}
    if pair.images.folder == pair.masks.folder and len(folder_splits(names)) == len(names) > 0:
        depth += 1  # train/cat/x.jpg, train/cat/x.png
        names = {path[depth] for path in paths if len(path) > depth}
    if len(names) < 2 or any(map(is_like_split, names)):
        return {}
    pattern = "^" + "[^/]+/" * depth + "([^/]+)/"
    remedy = f"for classes: {option('class_pattern', pattern)}"
    folders = join_names(sorted(names))
    return {"class_pattern": f"the names of the folders {folders} are not read ({remedy})"}


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
    return next((name for name, table in PRESETS.items() if colours <= table().keys()), None)
