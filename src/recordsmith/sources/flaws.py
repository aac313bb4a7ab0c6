"""What can be wrong with a source: checks of `lint`, and text that belongs to one of them.

Sources raise and note text for people. Where `lint` should know what a text is about, it is a
`Flaw`: a string for everyone else.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self, TypeAlias

from recordsmith.support.errors import option

_KEPT_FILES = 100

FlawBox: TypeAlias = tuple[float, float, float, float]
"""ymin, xmin, ymax, xmax as shares of the image; may be outside of it."""


class Severity(StrEnum):
    """How bad a finding is. Errors and warnings fail `recordsmith lint`, notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value


class LintCheck(StrEnum):
    """One thing that `lint` checks. The names are stable: programs may compare them.

    Subclasses have the checks next to the code that makes them: name, usual severity, what a
    finding means, what to do about it.
    """

    severity: Severity
    meaning: str
    cure: str

    def __new__(cls, name: str, severity: str, meaning: str, cure: str) -> Self:
        check = str.__new__(cls, name)
        check._value_ = name
        check.severity, check.meaning, check.cure = Severity(severity), meaning, cure
        return check

    def __str__(self) -> str:
        return str(self.value)


_FIX_BOX = (
    f"Fix the annotation. {option('boxes', 'clip')} fixes such boxes where possible, "
    f"{option('boxes', 'drop')} drops them."
)
_DROP_BOX = f"Fix the annotation. {option('boxes', 'drop')} drops such objects."
_FIX_SIZE = (
    f"Fix the size in the annotation. {option('boxes', 'clip')} scales boxes of the same shape."
)
_APPLY_ORIENTATION = (
    f"Preview such images, then pack with {option('orientation', 'apply')}, or rotate the pixels."
)
_EXPORT_MASKS = "Export the masks as PNG with class numbers."


class Check(LintCheck):
    """What sources find when they list and read samples."""

    UNREADABLE_SAMPLE = (
        "unreadable-sample",
        "error",
        "A sample cannot be packed as it is.",
        "Fix or remove it.",
    )
    IMAGE_SIZE = (
        "image-size",
        "error",
        "The annotated size differs from the size of the image, so boxes are misplaced.",
        _FIX_SIZE,
    )
    EXIF_ORIENTATION = (
        "exif-orientation",
        "warning",
        "Viewers apply the EXIF orientation, training does not: boxes and masks fit only one.",
        _APPLY_ORIENTATION,
    )
    BOX_OUTSIDE = ("box-outside", "error", "A box reaches beyond its image.", _FIX_BOX)
    BOX_INVERTED = (
        "box-inverted",
        "error",
        "The minimum of a box is larger than its maximum.",
        _FIX_BOX,
    )
    BOX_EMPTY = ("box-empty", "error", "A box has no width or height.", _DROP_BOX)
    KEYPOINT_OUTSIDE = (
        "keypoint-outside",
        "error",
        "A labelled keypoint is outside its image.",
        _FIX_BOX,
    )
    KEYPOINT_COUNT = (
        "keypoint-count",
        "error",
        "An object has another number of keypoints than its class.",
        _DROP_BOX,
    )
    INVALID_KEYPOINT = (
        "invalid-keypoint",
        "error",
        "A keypoint is not numbers, or its visibility is not 0, 1 or 2.",
        _FIX_BOX,
    )
    INVALID_BOX = ("invalid-box", "error", "A box is missing or not numbers.", _DROP_BOX)
    MASK_SIZE = (
        "mask-size",
        "error",
        "A mask has another size than its image.",
        "If they belong together, resize the mask with nearest-neighbour interpolation.",
    )
    MASK_FORMAT = (
        "mask-format",
        "error",
        "A mask does not store class numbers.",
        f"{_EXPORT_MASKS} For masks of colours, pass {option('colours')}.",
    )
    MASK_VALUES = (
        "mask-values",
        "error",
        "A mask has values that are not classes.",
        "Fix these pixels, add the class, or mark them with 255 to ignore them.",
    )
    UNKNOWN_CLASS = (
        "unknown-class",
        "error",
        "An object has a class that the list of classes lacks.",
        "Fix the name, or add the class.",
    )
    SIMILAR_CLASS_NAMES = (
        "similar-class-names",
        "warning",
        "Two classes have almost the same name: likely one class, written in two ways.",
        "Rename one of them.",
    )
    IMAGE_WITHOUT_ANNOTATION = (
        "image-without-annotation",
        "warning",
        "Images have no annotation or mask.",
        "Add the annotations, or remove the images.",
    )
    ANNOTATION_WITHOUT_IMAGE = (
        "annotation-without-image",
        "error",
        "An annotation or a mask has no image.",
        "Add the image, fix its name in the annotation, or remove the annotation.",
    )
    SKIPPED = (
        "skipped",
        "note",
        "The source skips files or reads them in its own way.",
        "Nothing, if this is expected.",
    )
    CHANGED = (
        "changed",
        "note",
        "Samples are changed or completed when they are packed.",
        "Nothing, if this is expected.",
    )


class Flaw(str):
    """A problem, note or notice, and the check that it belongs to.

    check: what it is about.
    found: the text without the place; of a notice, what it says about each file.
    place: where: file and line or number; empty if the text says it.
    box: the box at fault, if there is one.
    files: the first files of a notice about several.
    item_count: how many files or objects it is about.
    left_out: the class of the object that is left out, empty if it is unknown; None if none is.
    """

    __slots__ = ("box", "check", "files", "found", "item_count", "left_out", "place")

    check: Check
    found: str
    place: str
    box: FlawBox | None
    files: tuple[str, ...]
    item_count: int
    left_out: str | None

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
        self.left_out = None
        return self

    def at(self, place: str, box: FlawBox | None = None) -> Flaw:
        return Flaw(self.found, self.check, place=place, box=box)

    def leaving_out(self, class_name: str) -> Flaw:
        """The same flaw as the note about an object of this class that is left out."""
        flaw = Flaw(self.found, self.check)
        flaw.left_out = class_name
        return flaw
