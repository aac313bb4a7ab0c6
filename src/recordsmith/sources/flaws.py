"""What can be wrong with a source: the closed set of checks, and text that belongs to one of them.

Sources raise and note text for people. Where `lint` should know what a text is about, it is a
`Flaw`: a string for everyone else.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Self, TypeAlias

_KEPT_FILES = 100

FlawBox: TypeAlias = tuple[float, float, float, float]
"""ymin, xmin, ymax, xmax as shares of the image; may be outside of it."""


class Check(str, Enum):
    """One thing that `lint` checks. The names are stable: programs may compare them."""

    # files and images
    UNREADABLE_FILE = "unreadable-file"
    UNREADABLE_IMAGE = "unreadable-image"
    DAMAGED_IMAGE = "damaged-image"
    UNREADABLE_SAMPLE = "unreadable-sample"
    WRONG_EXTENSION = "wrong-extension"
    IMAGE_SIZE = "image-size"
    CMYK = "cmyk"
    HIGH_BIT_DEPTH = "high-bit-depth"
    ALPHA = "alpha"
    ANIMATION = "animation"
    EXIF_ORIENTATION = "exif-orientation"
    # boxes and masks
    BOX_OUTSIDE = "box-outside"
    BOX_INVERTED = "box-inverted"
    BOX_EMPTY = "box-empty"
    INVALID_BOX = "invalid-box"
    TINY_BOX = "tiny-box"
    MASK_SIZE = "mask-size"
    MASK_FORMAT = "mask-format"
    MASK_VALUES = "mask-values"
    # classes
    UNKNOWN_CLASS = "unknown-class"
    SIMILAR_CLASS_NAMES = "similar-class-names"
    EMPTY_CLASS = "empty-class"
    RARE_CLASS = "rare-class"
    MISSING_CLASS = "missing-class"
    CLASS_IMBALANCE = "class-imbalance"
    # duplicates
    IDENTICAL_ACROSS_SPLITS = "identical-across-splits"
    SIMILAR_ACROSS_SPLITS = "similar-across-splits"
    IDENTICAL_IMAGES = "identical-images"
    SIMILAR_IMAGES = "similar-images"
    ALIKE_IMAGES = "alike-images"
    CONFLICTING_LABELS = "conflicting-labels"
    # what belongs to nothing
    IMAGE_WITHOUT_ANNOTATION = "image-without-annotation"
    ANNOTATION_WITHOUT_IMAGE = "annotation-without-image"
    SKIPPED = "skipped"
    CHANGED = "changed"

    def __str__(self) -> str:
        return self.value


class Flaw(str):
    """A problem, note or notice, and the check that it belongs to.

    check: what it is about.
    found: the text without the place; of a notice, what it says about each file.
    place: where: file and line or number; empty if the text says it.
    box: the box at fault, if there is one.
    files: the first files of a notice about several.
    item_count: how many files or objects it is about.
    """

    __slots__ = ("box", "check", "files", "found", "item_count", "place")

    check: Check
    found: str
    place: str
    box: FlawBox | None
    files: tuple[str, ...]
    item_count: int

    def __new__(
        cls,
        found: str,
        check: Check = Check.UNREADABLE_SAMPLE,
        *,
        place: str = "",
        box: FlawBox | None = None,
        files: Iterable[str] = (),
        item_count: int = 1,
    ) -> Self:
        self = super().__new__(cls, f"{place}: {found}" if place else found)
        self.found, self.check, self.place, self.box = str(found), check, place, box
        self.files = tuple(files)[:_KEPT_FILES]
        self.item_count = item_count
        return self

    def at(self, place: str, box: FlawBox | None = None) -> Flaw:
        """The same flaw at a place."""
        return Flaw(self.found, self.check, place=place, box=box)
