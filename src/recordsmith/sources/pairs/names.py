"""Names of images and masks: patterns such as `*_mask`, and which files fit together.

By default a mask has the relative path of its image with another suffix (a/x.jpg and a/x.png),
optionally with a mask ending (a/x_mask.png). A name that fits several files is an error, never a
guess.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from recordsmith.sources.files.images import has_image_name, without_suffix
from recordsmith.support.errors import OptionError

_ENDING_WORDS = ("mask", "masks", "seg", "segmentation", "label", "labels", "gt")
MASK_ENDINGS = tuple(f"{mark}{word}" for word in _ENDING_WORDS for mark in "_-.")
"""What follows an image's name in the name of its mask."""


class NamePattern(NamedTuple):
    """What the names of images or masks look like: `*` is what an image and its mask share."""

    head: str = ""
    tail: str = ""
    suffix: str = ""  # any

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
    has_ending = not masks.head and not masks.suffix and masks.tail.lower() in MASK_ENDINGS
    return images == PLAIN and (masks == PLAIN or has_ending)


@dataclass
class Matches:
    """The result of matching names; `other` files do not fit the patterns."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    ambiguous: list[tuple[list[str], list[str]]] = field(default_factory=list)
    lone_images: list[str] = field(default_factory=list)
    lone_masks: list[str] = field(default_factory=list)
    other_images: list[str] = field(default_factory=list)
    other_masks: list[str] = field(default_factory=list)


def match_names(
    images: Iterable[str],
    masks: Iterable[str],
    image_pattern: NamePattern = PLAIN,
    mask_pattern: NamePattern | None = None,
) -> Matches:
    """Pair images and masks by paths; without a pattern, masks have the usual names."""
    matches = Matches()
    image_of: defaultdict[str, list[str]] = defaultdict(list)
    mask_of: defaultdict[str, list[str]] = defaultdict(list)
    with_ending: defaultdict[str, list[str]] = defaultdict(list)
    for image in images:
        part = image_pattern.shared(image)
        (matches.other_images if part is None else image_of[part]).append(image)
    for mask in masks:
        part = (mask_pattern or PLAIN).shared(mask)
        if part is None:
            matches.other_masks.append(mask)
        elif mask_pattern is not None or part in image_of:
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


def is_mask_name(name: str, pattern: NamePattern | None) -> bool:
    """Whether a file in a folder of images and masks is a mask: x_mask.png next to x.jpg."""
    if pattern is not None:
        return pattern.shared(name) is not None
    return bool(_without_ending(without_suffix(name)))


def _without_ending(name: str) -> str:
    """x_mask -> x; empty for a name without a mask ending."""
    for ending in MASK_ENDINGS:
        if name.lower().endswith(ending) and len(os.path.basename(name)) > len(ending):
            return name[: -len(ending)]
    return ""
