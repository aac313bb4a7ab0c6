"""Which mask belongs to which picture? By their names.

A mask has the name of its picture without the suffix, at the same place below its own folder:
a/x.jpg and a/x.png; or that name and a word behind it, such as a/x_mask.png. A name that fits more
than one file is a doubt, never a guess.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recordsmith.sources.pictures import has_picture_name
from recordsmith.sources.versions import size_and_time, version_of_times
from recordsmith.sources.wording import some

_MASK_WORDS = ("mask", "masks", "seg", "segmentation", "label", "labels", "gt")
MASK_ENDINGS = tuple(f"{mark}{word}" for word in _MASK_WORDS for mark in "_-.")
"""What stands behind the name of a picture in the name of its mask, or of its folder."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sample of pairs: where its files are, or why it has none.

    name: of the sample: the picture's path from the root, with `/`.
    problem: what is wrong with it, in words, with file and line; then it cannot be read.
    """

    name: str
    picture: str = ""
    mask: str = ""
    size_bytes: int = 0
    version: int | None = None
    split: str | None = None
    problem: str | None = None


@dataclass
class Pairing:
    """The pairs that were found, and what was passed over."""

    pairs: list[Pair] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, name: str, picture: str, mask: str, split: str | None = None) -> None:
        """A pair of files; that they are there is seen when they are read."""
        sizes, times = zip(size_and_time(picture), size_and_time(mask), strict=True)
        self.pairs.append(Pair(name, picture, mask, sum(sizes), version_of_times(times), split))

    def add_problem(self, name: str, problem: str, split: str | None = None) -> None:
        """A sample that should be there."""
        self.pairs.append(Pair(name, split=split, problem=problem))

    def notice(self, what: str, names: Sequence[str]) -> None:
        """Say what was passed over, if anything was."""
        if names:
            self.notices.append(f"{what}: {some(names)}")


@dataclass
class Matches:
    """What names say.

    pairs: picture and mask.
    lone_pictures, lone_masks: those without the other.
    doubts: pictures and masks of one name, where it does not say which belongs to which.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    lone_pictures: list[str] = field(default_factory=list)
    lone_masks: list[str] = field(default_factory=list)
    doubts: list[tuple[list[str], list[str]]] = field(default_factory=list)


def match_names(pictures: Iterable[str], masks: Iterable[str]) -> Matches:
    """Pair the pictures and masks of two folders, by paths relative to these."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for picture in pictures:
        by_name[without_suffix(picture)].append(picture)
    same: dict[str, list[str]] = defaultdict(list)
    marked: dict[str, list[str]] = defaultdict(list)
    found = Matches()
    for mask in masks:
        name = without_suffix(mask)
        unmarked = _without_ending(name)
        if name in by_name:
            same[name].append(mask)
        elif unmarked in by_name:
            marked[unmarked].append(mask)
        else:
            found.lone_masks.append(mask)
    for name, names in by_name.items():
        fitting = same.get(name)
        if fitting:
            found.lone_masks += marked.get(name, ())
        else:
            fitting = marked.get(name)
        if not fitting:
            found.lone_pictures += names
        elif len(names) == len(fitting) == 1:
            found.pairs.append((names[0], fitting[0]))
        else:
            found.doubts.append((names, fitting))
    found.lone_masks.sort()
    return found


def match_within(files: Iterable[str]) -> Matches:
    """Pair the pictures of one folder with the masks beside them: x.jpg with x_mask.png."""
    pictures: list[str] = []
    masks: list[str] = []
    for file in files:
        (masks if _without_ending(without_suffix(file)) else pictures).append(file)
    return match_names(pictures, masks)


def has_masks_beside(files: Iterable[str]) -> bool:
    """Whether among the names of one folder there is a picture with its mask."""
    names = {without_suffix(file) for file in files if has_picture_name(file)}
    return any(_without_ending(name) in names for name in names)


def doubt(pictures: Sequence[str], masks: Sequence[str]) -> str:
    """Why files of one name make no pair."""
    have = "have" if len(pictures) > 1 else "has"
    return (
        f"{some(pictures)} {have} the same name as {some(masks)}, so it does not say which belong "
        "together; rename or remove what is too much, or give a list of pairs"
    )


def without_suffix(path: str) -> str:
    """A path without the suffix of a picture."""
    return os.path.splitext(path)[0] if has_picture_name(path) else path


def _without_ending(name: str) -> str | None:
    """x_mask -> x; None if no such word stands behind it."""
    for ending in MASK_ENDINGS:
        if name.lower().endswith(ending) and len(os.path.basename(name)) > len(ending):
            return name[: -len(ending)]
    return None
