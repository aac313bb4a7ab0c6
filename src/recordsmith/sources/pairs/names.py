"""Names of images and masks: patterns such as `*_mask`, and which files fit together.

By default a mask has the relative path of its image with another suffix (a/x.jpg and a/x.png),
optionally with a mask ending (a/x_mask.png). A name that fits several files is an error, never a
guess.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from recordsmith.errors import OptionError
from recordsmith.sources.files.file_tree import HIGHEST_KEY, FolderScan, sampling_key
from recordsmith.sources.files.images import has_image_name, without_suffix

_MASK_WORDS = ("mask", "masks", "seg", "segmentation", "label", "labels", "gt")
MASK_ENDINGS = tuple(f"{mark}{word}" for word in _MASK_WORDS for mark in "_-.")
"""What follows an image's name in the name of its mask, or of the folder of masks."""

_MAX_PATTERNS = 6
_MAX_WORDS = 3  # before or behind the shared part
_COMMON_SHARE = 0.2
_LEAST_SHARED = 0.5
_NAMES_COUNTED = 200
_SEPARATORS = "_-. "


class NamePattern(NamedTuple):
    """What the names of images or masks look like: `*` is what an image and its mask share.

    suffix: of images, if all have it; empty for any.
    """

    head: str = ""
    tail: str = ""
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.head}*{self.tail}{self.suffix}"

    def shared(self, path: str) -> str | None:
        """The part of a path that an image and its mask share; None if the name does not fit."""
        folder, slash, name = path.rpartition("/")
        stem, suffix = os.path.splitext(name) if has_image_name(name) else (name, "")
        if not (stem.startswith(self.head) and stem.endswith(self.tail)):
            return None
        core = stem[len(self.head) : len(stem) - len(self.tail)]
        return folder + slash + core if core and self.suffix in ("", suffix) else None


PLAIN = NamePattern()


def parse_pattern(text: str, option: str) -> NamePattern:
    """Parse the pattern of an option, which must have one `*`."""
    head, star, tail = text.partition("*")
    if not star or "*" in tail or "/" in text:
        raise OptionError(
            option=option, value=text, expected="a pattern of names with one *, such as *_mask"
        )
    suffix = os.path.splitext(text)[1] if has_image_name(text) else ""
    return NamePattern(head, tail.removesuffix(suffix), suffix)


def is_usual(images: NamePattern, masks: NamePattern) -> bool:
    """Whether masks are named as `NameRule` expects without patterns."""
    return images == PLAIN and (
        masks == PLAIN
        or (not masks.head and not masks.suffix and masks.tail.lower() in MASK_ENDINGS)
    )


# -- matching --------------------------------------------------------------------------------------


@dataclass
class Matches:
    """The result of matching names.

    pairs: image and mask.
    ambiguous: images and masks that share one name.
    lone_images, lone_masks: images without a mask, and masks without an image.
    other_images, other_masks: files in the folders of images and of masks with other names.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    ambiguous: list[tuple[list[str], list[str]]] = field(default_factory=list)
    lone_images: list[str] = field(default_factory=list)
    lone_masks: list[str] = field(default_factory=list)
    other_images: list[str] = field(default_factory=list)
    other_masks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class NameRule:
    """How images and masks are named; `masks` is None for names like those of images."""

    images: NamePattern = PLAIN
    masks: NamePattern | None = None

    def match(self, images: Iterable[str], masks: Iterable[str]) -> Matches:
        """Pair the images and masks of two folders, by paths relative to each."""
        matches = Matches()
        image_of: defaultdict[str, list[str]] = defaultdict(list)
        mask_of: defaultdict[str, list[str]] = defaultdict(list)
        with_ending: defaultdict[str, list[str]] = defaultdict(list)
        for image in images:
            part = self.images.shared(image)
            (matches.other_images if part is None else image_of[part]).append(image)
        for mask in masks:
            part = (self.masks or PLAIN).shared(mask)
            if part is None:
                matches.other_masks.append(mask)
            elif self.masks is not None or part in image_of:
                mask_of[part].append(mask)
            else:
                with_ending[_without_ending(part)].append(mask)
        for part, names in with_ending.items():
            if part in image_of and part not in mask_of:  # the same name counts more
                mask_of[part] = names
            else:
                matches.lone_masks += names
        for part, names in image_of.items():
            fitting = mask_of.pop(part, [])
            if len(names) == len(fitting) == 1:
                matches.pairs.append((names[0], fitting[0]))
            elif fitting:
                matches.ambiguous.append((names, fitting))
            else:
                matches.lone_images += names
        matches.lone_masks += (name for names in mask_of.values() for name in names)
        matches.lone_masks.sort()
        return matches

    def match_within(self, files: Iterable[str]) -> Matches:
        """Pair the images and masks of one folder: x.jpg with x_mask.png."""
        images: list[str] = []
        masks: list[str] = []
        for file in files:
            is_mask = (
                _without_ending(without_suffix(file))
                if self.masks is None
                else self.masks.shared(file)
            )
            (masks if is_mask else images).append(file)
        return self.match(images, masks)


def _without_ending(name: str) -> str:
    """x_mask -> x; empty for a name without a mask ending."""
    for ending in MASK_ENDINGS:
        if name.lower().endswith(ending) and len(os.path.basename(name)) > len(ending):
            return name[: -len(ending)]
    return ""


# -- patterns in the names of folders, which may be samples of them --------------------------------


class SharedNames(NamedTuple):
    """Patterns of two folders whose names share parts, and some of these parts."""

    left: NamePattern
    right: NamePattern
    parts: tuple[str, ...]


@dataclass
class NamedFolder:
    """A folder that contains images."""

    folder: FolderScan
    _names: dict[NamePattern, Mapping[str, str]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.folder.path

    def names(self, pattern: NamePattern) -> Mapping[str, str]:
        """The names that fit a pattern, by what they share with others."""
        if pattern not in self._names:
            images = self.folder.images
            shared = {part: name for name in images if (part := pattern.shared(name)) is not None}
            self._names[pattern] = shared
        return self._names[pattern]

    @cached_property
    def patterns(self) -> list[NamePattern]:
        """Those that many of the names have, the plain one first."""
        stems = [os.path.splitext(name)[0] for name in self.folder.images[:_NAMES_COUNTED]]
        tails = _common((tail for stem in stems for tail in _tails(stem)), len(stems))
        heads = _common((head for stem in stems for head in _heads(stem)), len(stems))
        patterns = [PLAIN, *(NamePattern(tail=tail) for tail in tails), *map(NamePattern, heads)]
        return patterns[:_MAX_PATTERNS]


def share_names(left: NamedFolder, right: NamedFolder) -> list[SharedNames]:
    """How the names of two folders fit: one way if they are alike, else one for each pattern."""
    alike = _shared(left, right, PLAIN, PLAIN)
    pairs = [(one, other) for one in left.patterns for other in right.patterns][1:]
    others = (_shared(left, right, *pair) for pair in ([] if alike else pairs))
    return [alike] if alike else [shared for shared in others if shared is not None]


def share_names_within(folder: NamedFolder) -> list[SharedNames]:
    """How names in one folder fit each other: `x.jpg` and `x_mask.png`, `x.jpg` and `x.png`."""
    suffixes = Counter(os.path.splitext(name)[1] for name in folder.folder.images)
    of_suffixes = [NamePattern(suffix=suffix) for suffix, _ in suffixes.most_common(3)]
    pairs = [*combinations(folder.patterns, 2), *combinations(of_suffixes, 2)]
    return [shared for pair in pairs if (shared := _shared(folder, folder, *pair)) is not None]


def _shared(
    left: NamedFolder, right: NamedFolder, left_pattern: NamePattern, right_pattern: NamePattern
) -> SharedNames | None:
    of_left, of_right = left.names(left_pattern), right.names(right_pattern)
    highest = min(left.folder.highest_key, right.folder.highest_key)
    if highest < HIGHEST_KEY:  # samples: compare what is in both if it is in both folders
        of_left = {part: name for part, name in of_left.items() if sampling_key(name) < highest}
        of_right = {part: name for part, name in of_right.items() if sampling_key(name) < highest}
    parts = of_left.keys() & of_right.keys()
    if not parts or len(parts) < _LEAST_SHARED * min(len(of_left), len(of_right)):
        return None
    return SharedNames(left_pattern, right_pattern, tuple(sorted(parts)))


def _common(texts: Iterable[str], name_count: int) -> list[str]:
    """The texts that many names have, the most common first; of equal ones the longest."""
    counts = Counter(texts)
    common = [text for text in counts if counts[text] >= max(1, _COMMON_SHARE * name_count)]
    common.sort(key=lambda text: (-counts[text], -len(text), text))
    chosen: list[str] = []
    for text in common:
        if not any(
            counts[text] == counts[known] and (known.endswith(text) or known.startswith(text))
            for known in chosen
        ):
            chosen.append(text)
    return chosen


def _tails(stem: str) -> Iterator[str]:
    """Words behind the rest of a name: `_gtFine_labelIds`, `_labelIds`."""
    letters = re.search(r"(?<=\d)[A-Za-z]{1,20}$", stem)
    if letters is not None:
        yield letters[0]
    end = len(stem)
    for _ in range(_MAX_WORDS):
        start = max(stem.rfind(mark, 0, end) for mark in _SEPARATORS)
        if start <= 0 or not stem[start + 1 : start + 2].isalpha():
            return
        yield stem[start:]
        end = start


def _heads(stem: str) -> Iterator[str]:
    """Words before the rest of a name: `mask_`."""
    letters = re.match(r"[A-Za-z]{1,20}(?=\d)", stem)
    if letters is not None:
        yield letters[0]
    start = 0
    for _ in range(_MAX_WORDS):
        ends = [end for mark in _SEPARATORS if (end := stem.find(mark, start + 1)) > 0]
        if not ends or not stem[start].isalpha() or min(ends) + 1 >= len(stem):
            return
        start = min(ends) + 1
        yield stem[:start]
