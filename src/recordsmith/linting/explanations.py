"""Explains each check of `lint` for people: its severity, what a finding means, what to do."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from recordsmith.errors import option
from recordsmith.sources.flaws import Check


class Severity(str, Enum):
    """How bad a finding is. Errors and warnings fail `recordsmith lint`, notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    def __str__(self) -> str:
        return self.value


ORDER = tuple(Severity)
"""Severities, worst first."""

_ERROR, _WARNING, _NOTE = Severity


class CheckExplanation(NamedTuple):
    """The usual severity of a check, what a finding means, and what to do about it."""

    severity: Severity
    meaning: str
    cure: str


_FETCH = "Fetch or export the image again, or remove it from the dataset."
_OPTION_BOXES = (
    f"{option('boxes', 'clip')} fixes such boxes where possible, {option('boxes', 'drop')} drops "
    "them."
)
_EXPORT_MASKS = "Export the masks as PNG with class numbers."
_SPLIT_AGAIN = "Keep such images in one split: remove one of them, or split again."

_EXPLANATIONS: dict[Check, CheckExplanation] = {
    Check.UNREADABLE_FILE: CheckExplanation(
        _ERROR,
        "A file cannot be read.",
        "Check that the file exists, its permissions and the disk.",
    ),
    Check.UNREADABLE_IMAGE: CheckExplanation(
        _ERROR, "A file is not an image, is truncated or cannot be decoded.", _FETCH
    ),
    Check.DAMAGED_IMAGE: CheckExplanation(
        _ERROR,
        "Decoders accept the image with a warning, but its pixels may be wrong after the damage.",
        _FETCH,
    ),
    Check.UNREADABLE_SAMPLE: CheckExplanation(
        _ERROR, "A sample cannot be packed as it is.", "Fix or remove it."
    ),
    Check.WRONG_EXTENSION: CheckExplanation(
        _WARNING,
        "The extension of a file is not that of its format. Programs that choose a decoder by the "
        "extension fail.",
        "Rename the file.",
    ),
    Check.IMAGE_SIZE: CheckExplanation(
        _ERROR,
        "The annotated size differs from the size of the image, so boxes are misplaced.",
        f"Annotate the image again, or fix the size in the annotation. {option('boxes', 'clip')} "
        "scales boxes if the aspect ratio is the same.",
    ),
    Check.CMYK: CheckExplanation(
        _WARNING,
        "The image has CMYK colours. Decoders convert them differently.",
        f"Convert it to RGB, or pack with {option('store', 'jpeg')}.",
    ),
    Check.HIGH_BIT_DEPTH: CheckExplanation(
        _WARNING,
        "The image has 16 bits per channel. Most readers drop the lower 8 bits.",
        "Scale the values to 8 bits, or read the dataset with 16 bits.",
    ),
    Check.ALPHA: CheckExplanation(
        _WARNING,
        "The image has transparent pixels. Readers drop the alpha channel, which shows the hidden "
        "colours of these pixels.",
        "Put the image on a background.",
    ),
    Check.ANIMATION: CheckExplanation(
        _NOTE, "Only the first frame of an animation is used.", "Store the frames as images."
    ),
    Check.EXIF_ORIENTATION: CheckExplanation(
        _WARNING,
        "The image has an EXIF orientation, which viewers apply and training does not. Boxes and "
        "masks fit only one of the two.",
        f"Preview such images, then pack with {option('orientation', 'apply')}, or rotate the "
        "pixels.",
    ),
    Check.BOX_OUTSIDE: CheckExplanation(
        _ERROR, "A box reaches beyond its image.", f"Fix the annotation. {_OPTION_BOXES}"
    ),
    Check.BOX_INVERTED: CheckExplanation(
        _ERROR,
        "The minimum of a box is larger than its maximum.",
        f"Fix the annotation. {_OPTION_BOXES}",
    ),
    Check.BOX_EMPTY: CheckExplanation(
        _ERROR, "A box has no width or height.", f"Fix the annotation. {_OPTION_BOXES}"
    ),
    Check.INVALID_BOX: CheckExplanation(
        _ERROR, "A box is missing or not numbers.", f"Fix the annotation. {_OPTION_BOXES}"
    ),
    Check.TINY_BOX: CheckExplanation(
        _WARNING,
        "A box is narrower or lower than 2 pixels: often a click by mistake.",
        "Preview the box; remove or redraw it.",
    ),
    Check.MASK_SIZE: CheckExplanation(
        _ERROR,
        "A mask has another size than its image.",
        "If they belong together, resize the mask with nearest-neighbour interpolation.",
    ),
    Check.MASK_FORMAT: CheckExplanation(
        _ERROR,
        "A mask does not store class numbers.",
        f"{_EXPORT_MASKS} For masks of colours, pass {option('colours')}.",
    ),
    Check.MASK_VALUES: CheckExplanation(
        _ERROR,
        "A mask has values that are not classes.",
        "Fix these pixels, add the class, or mark them with 255 to ignore them.",
    ),
    Check.UNKNOWN_CLASS: CheckExplanation(
        _ERROR,
        "An object has a class that the list of classes lacks.",
        "Fix the name, or add the class.",
    ),
    Check.SIMILAR_CLASS_NAMES: CheckExplanation(
        _WARNING,
        "Two classes have almost the same name: likely one class, written in two ways.",
        "Rename one of them.",
    ),
    Check.EMPTY_CLASS: CheckExplanation(
        _NOTE, "No image has the class.", "Remove it from the list, or add images."
    ),
    Check.RARE_CLASS: CheckExplanation(
        _NOTE,
        "A class has few images.",
        "Add images, merge it with another class, or sample it more often in training.",
    ),
    Check.MISSING_CLASS: CheckExplanation(
        _WARNING,
        "A split has no image of a class, so the class is not trained or not evaluated.",
        "Split again, with the same share of every class in each split.",
    ),
    Check.CLASS_IMBALANCE: CheckExplanation(
        _NOTE,
        "The largest class has many times the images of the smallest.",
        "Weight the loss, or mix the classes evenly in training.",
    ),
    Check.IDENTICAL_ACROSS_SPLITS: CheckExplanation(
        _ERROR,
        "The same image is in two splits: evaluation is optimistic (leakage).",
        _SPLIT_AGAIN,
    ),
    Check.SIMILAR_ACROSS_SPLITS: CheckExplanation(
        _ERROR,
        "Almost the same image is in two splits, such as a resized copy or the next frame of a "
        "video: evaluation is optimistic (leakage).",
        f"Preview the pairs. {_SPLIT_AGAIN}",
    ),
    Check.IDENTICAL_IMAGES: CheckExplanation(
        _WARNING,
        "The same image occurs more than once: duplicates are weighted twice in training, and "
        "random splits separate them.",
        "Remove the duplicates.",
    ),
    Check.SIMILAR_IMAGES: CheckExplanation(
        _WARNING,
        "Images are almost the same, such as resized copies or frames of a video: random splits "
        "separate them.",
        "Preview the pairs; remove one of them, or keep them in one split.",
    ),
    Check.ALIKE_IMAGES: CheckExplanation(
        _NOTE,
        "Different images of the source look so alike that copies cannot be told apart.",
        "Nothing. Identical images are always reported.",
    ),
    Check.CONFLICTING_LABELS: CheckExplanation(
        _ERROR,
        "Copies of an image have different classes or annotations: at least one is wrong.",
        "Remove the wrong one.",
    ),
    Check.IMAGE_WITHOUT_ANNOTATION: CheckExplanation(
        _WARNING,
        "Images have no annotation or mask.",
        "Add the annotations, or remove the images.",
    ),
    Check.ANNOTATION_WITHOUT_IMAGE: CheckExplanation(
        _ERROR,
        "An annotation or a mask has no image.",
        "Add the image, fix its name in the annotation, or remove the annotation.",
    ),
    Check.SKIPPED: CheckExplanation(
        _NOTE,
        "The source skips files or reads them in its own way.",
        "Nothing, if this is expected.",
    ),
    Check.CHANGED: CheckExplanation(
        _NOTE,
        "Samples are changed or completed when they are packed.",
        "Nothing, if this is expected.",
    ),
}


def explain_check(check: Check) -> CheckExplanation:
    """Return the severity of a check, what a finding means and what to do about it."""
    return _EXPLANATIONS[check]
