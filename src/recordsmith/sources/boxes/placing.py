"""Convert the boxes of one image to object detection features.

Boxes may be drawn on the stored image, on the upright image, or on a resized copy: the image size
in the annotation identifies this frame. Each box is checked; an invalid one is a problem, or is
fixed or dropped with a note if the caller chose that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from recordsmith.errors import OptionError, Problems, SourceError, option
from recordsmith.example import Kind
from recordsmith.example.keys import (
    HEIGHT,
    IMAGE,
    OBJECT_LABEL,
    OBJECT_TEXT,
    WIDTH,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
)
from recordsmith.image import (
    UPRIGHT,
    Box,
    exif_orientation,
    inverse_orientation,
    orient_box,
    swaps_sides,
)
from recordsmith.sources.boxes.annotation import AnnotatedObject, Corners
from recordsmith.sources.classes import Classes
from recordsmith.sources.flaws import Check, Flaw, FlawBox
from recordsmith.sources.problems import join_problems
from recordsmith.sources.source import Note

BoxPolicy = Literal["stop", "clip", "drop"]
"""What happens to an invalid box: its sample fails, it is fixed if possible, or it is dropped."""

BOX_KINDS: Mapping[str, Kind] = {
    YMIN: "float",
    XMIN: "float",
    YMAX: "float",
    XMAX: "float",
    OBJECT_LABEL: "int64",
    OBJECT_TEXT: "bytes",
}
_TOLERANCE = 1e-6  # relative to the size; covers rounding to six decimals
_SAME_SHAPE = 0.01  # how much the aspect ratio of a resized copy may differ
_SIDES = ("xmin", "ymin", "xmax", "ymax")

_CLIPPED = Flaw("boxes were clipped to their image", Check.BOX_OUTSIDE)
_REORDERED = Flaw("boxes had minimum and maximum swapped and were reordered", Check.BOX_INVERTED)
DROPPED = Flaw("objects were dropped because their box is invalid", Check.INVALID_BOX)
UNKNOWN_CLASSES_DROPPED = Flaw(
    "objects were dropped because their class is unknown", Check.UNKNOWN_CLASS
)
_ROTATED = Flaw(
    "images have an EXIF orientation; their boxes were rotated to the stored image",
    Check.EXIF_ORIENTATION,
)
_NOT_ROTATED = Flaw(
    "images have an EXIF orientation; their boxes were taken as drawn on the stored image",
    Check.EXIF_ORIENTATION,
)
_SCALED = Flaw("images were annotated in another size; their boxes were scaled", Check.IMAGE_SIZE)
_WRONG_SIZE = Flaw(
    "images have another size than their annotation; the annotated size was ignored",
    Check.IMAGE_SIZE,
)


class PlacedBox(NamedTuple):
    """An object with a valid box. `box` is relative to the stored image."""

    source: AnnotatedObject
    label: int
    box: Box


class Frame(NamedTuple):
    """The image that boxes were drawn on.

    width, height: in the units of the boxes.
    orientation: of the stored image, if the boxes were drawn on the upright image; else 1.
    is_relative: whether the units are the sides of the image.
    """

    width: float
    height: float
    orientation: int = UPRIGHT
    is_relative: bool = False


def check_policy(boxes: object) -> BoxPolicy:
    """Check the option `boxes` of the sources."""
    for policy in get_args(BoxPolicy):
        if boxes == policy:
            return policy  # type: ignore[no-any-return]
    raise OptionError(option="boxes", value=boxes, expected="'stop', 'clip' or 'drop'")


class BoxPlacer:
    """Checks and places the boxes of one image, and collects their problems.

    Call `make_frame` (or make a frame), `place`, `finish`.
    """

    def __init__(self, image: Mapping[str, Any], policy: BoxPolicy, note: Note) -> None:
        """`image`: features from `read_image`."""
        self._image = image
        self._policy = policy
        self.note = note
        self.problems = Problems()

    def make_frame(self, width: float, height: float, place: str) -> Frame:
        """The frame for the image size in an annotation; 0 if the annotation has no size."""
        size = (self._image[WIDTH], self._image[HEIGHT])
        orientation = exif_orientation(self._image[IMAGE])
        is_rotated = swaps_sides(orientation)
        if not (width > 0 and height > 0) or (width, height) == size:
            is_clear = is_rotated and width > 0 and width != height
            if orientation != UPRIGHT and not is_clear:
                self.note(_NOT_ROTATED, f"{place}: orientation {orientation}")
            return Frame(*size)
        if is_rotated and (height, width) == size:
            self.note(_ROTATED, f"{place}: orientation {orientation}")
            return Frame(width, height, orientation)
        sizes = f"annotated size {width:g}x{height:g}, image size {size[0]}x{size[1]}"
        fault = f"{place}: {sizes}"
        if self._policy == "stop":
            swapped = " (width and height are swapped)" if (height, width) == size else ""
            self.problems.add(Flaw(f"{sizes}{swapped}", Check.IMAGE_SIZE, place=place))
            return Frame(width, height)
        if _have_same_shape((width, height), size):
            self.note(_SCALED, fault)
            return Frame(width, height)
        if is_rotated and _have_same_shape((height, width), size):
            self.note(_SCALED, fault)
            self.note(_ROTATED, f"{place}: orientation {orientation}")
            return Frame(width, height, orientation)
        self.note(_WRONG_SIZE, fault)
        return Frame(*size)

    def relative_frame(self, place: str, *, is_upright: bool) -> Frame:
        """The frame of relative boxes, drawn on the upright or the stored image."""
        orientation = exif_orientation(self._image[IMAGE])
        if orientation == UPRIGHT:
            return Frame(1, 1, is_relative=True)
        self.note(_ROTATED if is_upright else _NOT_ROTATED, f"{place}: orientation {orientation}")
        return Frame(1, 1, orientation if is_upright else UPRIGHT, is_relative=True)

    def place(
        self, objects: Iterable[AnnotatedObject], frame: Frame, classes: Classes, file: str
    ) -> list[PlacedBox]:
        """The valid and fixed boxes; others are noted or become problems with their file."""
        placed = []
        for item in objects:
            label, name = None, item.name
            if item.fault:
                dropped = UNKNOWN_CLASSES_DROPPED if name is None else DROPPED
                self._reject(item.place_in(file), [Flaw(item.fault, dropped.check)], dropped)
                continue
            if not name or "\n" in name:
                fault = Flaw(f"invalid class name {name!r}", Check.UNKNOWN_CLASS)
                self._reject(f"{file}, {item.where}", [fault], UNKNOWN_CLASSES_DROPPED)
                continue
            label = classes.label_of(name)
            if label is None:
                unknown = Flaw(classes.unknown(name), Check.UNKNOWN_CLASS)
                shares = _shares(item.corners, frame)
                self._reject(item.place_in(file), [unknown], UNKNOWN_CLASSES_DROPPED, shares)
                if self._policy != "stop":
                    continue
            corners = _within(item.corners, frame)
            if corners is None:
                corners = self._fixed(item.corners, item.place_in(file), frame)
            box = None if corners is None else _shares(corners, frame)
            if label is not None and box is not None:
                if frame.orientation != UPRIGHT:
                    box = orient_box(box, inverse_orientation(frame.orientation))
                placed.append(PlacedBox(item, label, box))
        return placed

    def reject(self, place: str, fault: str, what: Flaw = DROPPED) -> None:
        """Add the problem of an unreadable object, or drop it with the note `what`."""
        self._reject(place, [Flaw(fault, what.check)], what)

    def finish(self, name: str) -> None:
        """Raise the collected problems of the sample; `name` is its file."""
        if not self.problems:
            return
        remedy = (
            f"Fix the annotations, or pass {option('boxes', 'clip')} to fix boxes where possible, "
            f"or {option('boxes', 'drop')} to drop such objects."
        )
        text = join_problems(self.problems)
        if self.problems.count == 1:
            raise SourceError(text, self.problems, remedy=remedy)
        raise SourceError(
            f"{self.problems.count:,} problems: {text}", self.problems, path=name, remedy=remedy
        )

    def _fixed(self, corners: Corners, place: str, frame: Frame) -> Corners | None:
        """An invalid box fixed, if the policy is to clip and that is possible."""
        faults = _faults(corners, frame)
        if self._policy == "clip" and all(map(math.isfinite, corners)):
            (left, right), (top, bottom) = sorted(corners[::2]), sorted(corners[1::2])
            ordered = (left, top, right, bottom)
            clipped = _clipped(ordered, frame)
            if clipped[0] < clipped[2] and clipped[1] < clipped[3]:
                where = f"{place}: {'; '.join(faults)}"
                if ordered != corners:
                    self.note(_REORDERED, where)
                if _within(ordered, frame) is None:
                    self.note(_CLIPPED, where)
                return clipped
        self._reject(place, faults, DROPPED, _shares(corners, frame))
        return None

    def _reject(
        self, place: str, faults: Sequence[Flaw], what: str, box: FlawBox | None = None
    ) -> None:
        if self._policy == "stop":
            self.problems.extend(fault.at(place, box) for fault in faults)
        else:
            self.note(what, f"{place}: {'; '.join(faults)}")


def box_features(placed: Sequence[PlacedBox]) -> dict[str, Any]:
    """The features of the boxes, one list per key."""
    return {
        YMIN: [item.box[0] for item in placed],
        XMIN: [item.box[1] for item in placed],
        YMAX: [item.box[2] for item in placed],
        XMAX: [item.box[3] for item in placed],
        OBJECT_LABEL: [item.label for item in placed],
        OBJECT_TEXT: [str(item.source.name).encode("utf-8", "surrogateescape") for item in placed],
    }


def _within(corners: Corners, frame: Frame) -> Corners | None:
    """The corners of a valid box, without what rounding left over the edge; else None."""
    xmin, ymin, xmax, ymax = corners
    spare_x, spare_y = frame.width * _TOLERANCE, frame.height * _TOLERANCE
    is_valid = (
        -spare_x <= xmin < xmax <= frame.width + spare_x
        and -spare_y <= ymin < ymax <= frame.height + spare_y
    )
    cut = _clipped(corners, frame) if is_valid else corners
    return cut if is_valid and cut[0] < cut[2] and cut[1] < cut[3] else None


def _clipped(corners: Corners, frame: Frame) -> Corners:
    xmin, ymin, xmax, ymax = corners
    return max(xmin, 0), max(ymin, 0), min(xmax, frame.width), min(ymax, frame.height)


def _shares(corners: Corners, frame: Frame) -> FlawBox | None:
    """ymin, xmin, ymax, xmax of a box, valid or not, as shares of the frame; None without a place.

    With the same division as TensorFlow's scripts.
    """
    if not all(map(math.isfinite, corners)):
        return None
    xmin, ymin, xmax, ymax = corners
    return ymin / frame.height, xmin / frame.width, ymax / frame.height, xmax / frame.width


def _faults(corners: Corners, frame: Frame) -> list[Flaw]:
    """The faults of a box, one clause each."""
    odd = [side for side, value in zip(_SIDES, corners, strict=True) if not math.isfinite(value)]
    if odd:
        return [Flaw(f"{', '.join(odd)}: not a number", Check.INVALID_BOX)]
    xmin, ymin, xmax, ymax = corners
    faults = []
    sides = (("x", xmin, xmax, frame.width, "width"), ("y", ymin, ymax, frame.height, "height"))
    for axis, low, high, size, side in sides:
        if low > high:
            text = f"{axis}min {low:g} is larger than {axis}max {high:g}"
            faults.append(Flaw(text, Check.BOX_INVERTED))
        elif low == high:
            text = f"the box is empty: {axis}min and {axis}max are {low:g}"
            faults.append(Flaw(text, Check.BOX_EMPTY))
        outside = [
            f"{axis}{which} {value:.10g}"
            for which, value in (("min", low), ("max", high))
            if not -size * _TOLERANCE <= value <= size * (1 + _TOLERANCE)
        ]
        if outside:
            text = f"{' and '.join(outside)} outside the image; expected 0 to its {side}, {size:g}"
            faults.append(Flaw(text, Check.BOX_OUTSIDE))
    return faults or [Flaw("the box is empty", Check.BOX_EMPTY)]


def _have_same_shape(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] * other[1] / (one[1] * other[0]) - 1) <= _SAME_SHAPE
