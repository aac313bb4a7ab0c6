"""Match masks to images by name.

A mask has the relative path of its image with another suffix (a/x.jpg and a/x.png), optionally with
a mask ending (a/x_mask.png). A name that fits several files is an error, never a guess.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recordsmith.errors import option
from recordsmith.sources.files.images import without_suffix
from recordsmith.sources.files.paths import common_version, size_and_version
from recordsmith.sources.flaws import Check
from recordsmith.sources.pairs.name_patterns import NamePattern
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.stores import Location

_MASK_WORDS = ("mask", "masks", "seg", "segmentation", "label", "labels", "gt")
MASK_ENDINGS = tuple(f"{mark}{word}" for word in _MASK_WORDS for mark in "_-.")
"""What follows an image's name in the name of its mask, or of the folder of masks."""


class PairFile(NamedTuple):
    """An image or a mask: where it is, its size in bytes, and its version number."""

    location: Location
    size_bytes: int
    version: int

    @classmethod
    def at(cls, location: Location) -> PairFile:
        """The file at a location; a missing file fails when it is read."""
        return cls(location, *size_and_version(location))


@dataclass(frozen=True, slots=True)
class Pair:
    """One sample: its image and mask, or why they cannot be read.

    name: the image's path relative to the root, with `/`.
    files: the image and the mask; None with a fault.
    fault: why it cannot be read.
    label: the number of its class, if images have classes.
    """

    name: str
    files: tuple[Location, Location] | None = None
    size_bytes: int = 0
    version: int | None = None
    split: str | None = None
    fault: Fault | None = None
    label: int | None = None


@dataclass
class Pairing:
    """The pairs that were found, and notices on what was skipped."""

    pairs: list[Pair] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def add(self, name: str, image: PairFile, mask: PairFile, split: str | None = None) -> None:
        """Add a pair of files."""
        size_bytes = image.size_bytes + mask.size_bytes
        version = common_version((image.version, mask.version))
        files = image.location, mask.location
        self.pairs.append(Pair(name, files, size_bytes, version, split))

    def add_fault(self, name: str, fault: Fault, split: str | None = None) -> None:
        """Add a sample that cannot be read."""
        self.pairs.append(Pair(name, split=split, fault=fault))

    def add_notice(
        self,
        names: Sequence[str],
        noun: str,
        what: str,
        plural: str | None = None,
        check: Check = Check.SKIPPED,
    ) -> None:
        """Add a notice on some names, if there are any; see `count_notice`."""
        self.notices += count_notice(names, noun, what, plural, check)


@dataclass
class Matches:
    """The result of matching names.

    pairs: image and mask.
    unmatched_images, unmatched_masks: images without a mask, and masks without an image.
    other_images, other_masks: files in the folders of images and of masks with other names.
    ambiguous: images and masks that share one name.
    """

    pairs: list[tuple[str, str]] = field(default_factory=list)
    unmatched_images: list[str] = field(default_factory=list)
    unmatched_masks: list[str] = field(default_factory=list)
    other_images: list[str] = field(default_factory=list)
    other_masks: list[str] = field(default_factory=list)
    ambiguous: list[tuple[list[str], list[str]]] = field(default_factory=list)


@dataclass(frozen=True)
class NameRule:
    """How a mask is named, if not like its image: both have a part in common."""

    images: NamePattern
    masks: NamePattern

    def match(self, images: Iterable[str], masks: Iterable[str]) -> Matches:
        """Pair the images and masks of two folders, by paths relative to each."""
        found = Matches()
        image_of = _by_shared_part(self.images, images, found.other_images)
        mask_of = _by_shared_part(self.masks, masks, found.other_masks)
        for part, names in image_of.items():
            fitting = mask_of.pop(part, [])
            if len(names) == len(fitting) == 1:
                found.pairs.append((names[0], fitting[0]))
            elif fitting:
                found.ambiguous.append((names, fitting))
            else:
                found.unmatched_images += names
        found.unmatched_masks = sorted(name for names in mask_of.values() for name in names)
        return found

    def match_within(self, files: Iterable[str]) -> Matches:
        """Pair the images and masks of one folder."""
        images: list[str] = []
        masks: list[str] = []
        for file in files:
            (images if self.masks.shared(file) is None else masks).append(file)
        return self.match(images, masks)


def _by_shared_part(
    pattern: NamePattern, paths: Iterable[str], others: list[str]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        part = pattern.shared(path)
        if part is None:
            others.append(path)
        else:
            found[part].append(path)
    return found


def match_names(images: Iterable[str], masks: Iterable[str]) -> Matches:
    """Pair the images and masks of two folders, by paths relative to each."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for image in images:
        by_name[without_suffix(image)].append(image)
    same: dict[str, list[str]] = defaultdict(list)
    marked: dict[str, list[str]] = defaultdict(list)
    found = Matches()
    for mask in masks:
        name = without_suffix(mask)
        unmarked = without_ending(name)
        if name in by_name:
            same[name].append(mask)
        elif unmarked in by_name:
            marked[unmarked].append(mask)
        else:
            found.unmatched_masks.append(mask)
    for name, names in by_name.items():
        fitting = same.get(name)
        if fitting:
            found.unmatched_masks += marked.get(name, ())
        else:
            fitting = marked.get(name)
        if not fitting:
            found.unmatched_images += names
        elif len(names) == len(fitting) == 1:
            found.pairs.append((names[0], fitting[0]))
        else:
            found.ambiguous.append((names, fitting))
    found.unmatched_masks.sort()
    return found


def match_within(files: Iterable[str]) -> Matches:
    """Pair the images and masks of one folder: x.jpg with x_mask.png."""
    images: list[str] = []
    masks: list[str] = []
    for file in files:
        (masks if without_ending(without_suffix(file)) else images).append(file)
    return match_names(images, masks)


def ambiguity(images: Sequence[str], masks: Sequence[str], path: str) -> Fault:
    """The fault of files that share one name; `path` is their folder."""
    have = "have" if len(images) > 1 else "has"
    return Fault(
        f"{join_names(images)} {have} the same name as {join_names(masks)}",
        path,
        remedy=f"Rename or remove some of them, or list the pairs with {option('pairs')}.",
    )


def without_ending(name: str) -> str | None:
    """x_mask -> x; None for a name without a mask ending."""
    for ending in MASK_ENDINGS:
        if name.lower().endswith(ending) and len(os.path.basename(name)) > len(ending):
            return name[: -len(ending)]
    return None
