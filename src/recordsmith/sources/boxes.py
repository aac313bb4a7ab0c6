"""Boxes of one picture, in whatever frame they were drawn -> the features of object detection.

Annotations are drawn on what a tool showed: the stored picture, the picture turned upright, or a
copy in another size. The header of the picture is the truth; what an annotation says of its size
tells the frame. Every box is then looked at, and what is wrong with it becomes a problem with its
place, or is mended or left out where the caller asked for that, and noted. Nothing is read here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.example.keys import (
    HEIGHT,
    OBJECT_LABEL,
    OBJECT_TEXT,
    PICTURE,
    WIDTH,
    XMAX,
    XMIN,
    YMAX,
    YMIN,
)
from recordsmith.image import UPRIGHT, Box, exif_orientation, swaps_sides, turn_box, undone_by
from recordsmith.sources.classes import Classes
from recordsmith.sources.contract import Note
from recordsmith.sources.wording import in_full

Corners: TypeAlias = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax, in the units of a frame."""

BoxPolicy = Literal["stop", "clip", "drop"]
"""What a wrong box does: stop its sample, be mended where that is possible, or be left out."""

BOX_KINDS: Mapping[str, Kind] = {
    YMIN: "float",
    XMIN: "float",
    YMAX: "float",
    XMAX: "float",
    OBJECT_LABEL: "int64",
    OBJECT_TEXT: "bytes",
}
_TOLERANCE = 1e-6  # of the size: what rounding to six decimals leaves
_SAME_SHAPE = 0.01  # how much aspect ratios may differ where a copy of the picture was drawn on
_SIDES = ("xmin", "ymin", "xmax", "ymax")

_CUT = "a box that reaches outside of its picture was cut off at the edge"
_ORDERED = "a box with minimum and maximum swapped was put in order"
_LEFT_OUT = "an object with a wrong box was left out"
_UNKNOWN_LEFT_OUT = "an object of an unknown class was left out"
_TURNED = "boxes drawn on the upright picture were turned into the stored one (EXIF orientation)"
_NOT_TURNED = (
    "a picture has an EXIF orientation, and nothing says if its boxes were drawn before or after "
    "turning it; they were taken as drawn on the stored picture"
)
_SCALED = "boxes drawn on a copy of another size were scaled to the picture"
_WRONG_SIZE = "an annotation has a wrong size of its picture, whose own size was used"


class AnnotatedBox(NamedTuple):
    """One object, as its annotation has it.

    place: file and line or number: "a.xml, line 17".
    name: its class.
    corners: xmin, ymin, xmax, ymax in the units of the frame; NaN for what is no number.
    extra: whatever else its source knows of it.
    """

    place: str
    name: str
    corners: Corners
    extra: Any = None


class PlacedBox(NamedTuple):
    """An object whose box is good. `box` is relative to the stored picture."""

    source: AnnotatedBox
    label: int
    box: Box


class Frame(NamedTuple):
    """What boxes were drawn on.

    width, height: in the boxes' own units.
    orientation: that of the stored picture, if the boxes were drawn on the upright one; else 1.
    """

    width: float
    height: float
    orientation: int = UPRIGHT


def check_policy(boxes: object) -> BoxPolicy:
    """The option `boxes` of the sources.

    Raises:
        OptionError: it is another word.
    """
    for policy in get_args(BoxPolicy):
        if boxes == policy:
            return policy  # type: ignore[no-any-return]
    raise OptionError(f"boxes is {boxes!r}; expected 'stop', 'clip' or 'drop'")


class BoxReader:
    """Places the boxes of one picture, and gathers what is wrong with them.

    Use: `frame_of` or a frame of one's own, `place`, `finish`.
    """

    def __init__(self, picture: Mapping[str, Any], policy: BoxPolicy, note: Note) -> None:
        """`picture`: features as `read_picture` has them."""
        self._picture = picture
        self._policy = policy
        self._note = note
        self.problems: list[str] = []

    def frame_of(self, width: float, height: float, place: str) -> Frame:
        """The frame, from the size that an annotation says its picture has; 0: it does not say."""
        size = (self._picture[WIDTH], self._picture[HEIGHT])
        orientation = exif_orientation(self._picture[PICTURE])
        turned = swaps_sides(orientation)
        if not (width > 0 and height > 0) or (width, height) == size:
            is_told = turned and width > 0 and width != height
            if orientation != UPRIGHT and not is_told:
                self._note(_NOT_TURNED, f"{place}: orientation {orientation}")
            return Frame(*size)
        if turned and (height, width) == size:
            self._note(_TURNED, f"{place}: orientation {orientation}")
            return Frame(width, height, orientation)
        fault = (
            f"{place}: the picture is said to be {width:g} wide and {height:g} high, and is "
            f"{size[0]} by {size[1]}"
        )
        if self._policy == "stop":
            swapped = ", which is that swapped" if (height, width) == size else ""
            self.problems.append(f"{fault}{swapped}")
            return Frame(width, height)
        if _have_same_shape((width, height), size):
            self._note(_SCALED, fault)
            return Frame(width, height)
        if turned and _have_same_shape((height, width), size):
            self._note(_SCALED, fault)
            self._note(_TURNED, f"{place}: orientation {orientation}")
            return Frame(width, height, orientation)
        self._note(_WRONG_SIZE, fault)
        return Frame(*size)

    def relative_frame(self, place: str, *, is_upright: bool) -> Frame:
        """The frame of boxes that are relative already, drawn on the upright or stored picture."""
        orientation = exif_orientation(self._picture[PICTURE])
        if orientation == UPRIGHT:
            return Frame(1, 1)
        self._note(_TURNED if is_upright else _NOT_TURNED, f"{place}: orientation {orientation}")
        return Frame(1, 1, orientation if is_upright else UPRIGHT)

    def place(
        self, boxes: Iterable[AnnotatedBox], frame: Frame, classes: Classes
    ) -> list[PlacedBox]:
        """The good boxes, the mended ones among them; others are noted or become problems."""
        placed = []
        for box in boxes:
            label = classes.label_of(box.name)
            if label is None:
                self._reject(box, [classes.unknown(box.name)], _UNKNOWN_LEFT_OUT)
                if self._policy != "stop":
                    continue
            corners = _within(box.corners, frame)
            if corners is None:
                corners = self._mended(box, frame)
            if label is not None and corners is not None:
                placed.append(PlacedBox(box, label, _stored(corners, frame)))
        return placed

    def reject(self, place: str, fault: str) -> None:
        """An object that cannot even be read: a problem, or left out and noted."""
        self._reject(AnnotatedBox(place, "", (0, 0, 0, 0)), [fault], _LEFT_OUT)

    def finish(self, name: str) -> None:
        """Nothing more comes of the sample called `name`.

        Raises:
            SourceError: something is wrong; `problems` has it all.
        """
        if not self.problems:
            return
        advice = (
            "mend them, or say boxes='clip' to cut off and put in order what can "
            "be, or boxes='drop' to leave out such objects"
        )
        if len(self.problems) == 1:
            raise SourceError(f"{self.problems[0]}; {advice}", self.problems)
        raise SourceError(
            f"{name} has {len(self.problems):,} problems: {in_full(self.problems)}; {advice}",
            self.problems,
        )

    def _mended(self, box: AnnotatedBox, frame: Frame) -> Corners | None:
        """A wrong box made right, if that is asked for and possible."""
        faults = _faults(box.corners, frame)
        if self._policy != "clip" or not all(map(math.isfinite, box.corners)):
            self._reject(box, faults, _LEFT_OUT)
            return None
        xs, ys = sorted(box.corners[::2]), sorted(box.corners[1::2])
        ordered = (xs[0], ys[0], xs[1], ys[1])
        cut = _cut(ordered, frame)
        if cut[0] >= cut[2] or cut[1] >= cut[3]:
            self._reject(box, faults, _LEFT_OUT)
            return None
        where = f"{box.place}: {'; '.join(faults)}"
        if ordered != box.corners:
            self._note(_ORDERED, where)
        if _within(ordered, frame) is None:
            self._note(_CUT, where)
        return cut

    def _reject(self, box: AnnotatedBox, faults: Sequence[str], what: str) -> None:
        if self._policy == "stop":
            self.problems += [f"{box.place}: {fault}" for fault in faults]
        else:
            self._note(what, f"{box.place}: {'; '.join(faults)}")


def box_features(placed: Sequence[PlacedBox]) -> dict[str, Any]:
    """The features of the boxes, a list each."""
    return {
        YMIN: [item.box[0] for item in placed],
        XMIN: [item.box[1] for item in placed],
        YMAX: [item.box[2] for item in placed],
        XMAX: [item.box[3] for item in placed],
        OBJECT_LABEL: [item.label for item in placed],
        OBJECT_TEXT: [item.source.name.encode("utf-8", "surrogateescape") for item in placed],
    }


def number(text: object) -> float:
    """A number of an annotation; NaN if it is none."""
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _within(corners: Corners, frame: Frame) -> Corners | None:
    """The corners, if the box is a good one; what rounding left over the edge is taken away."""
    xmin, ymin, xmax, ymax = corners
    spare_x, spare_y = frame.width * _TOLERANCE, frame.height * _TOLERANCE
    is_good = (
        -spare_x <= xmin < xmax <= frame.width + spare_x
        and -spare_y <= ymin < ymax <= frame.height + spare_y
    )
    cut = _cut(corners, frame) if is_good else corners
    return cut if is_good and cut[0] < cut[2] and cut[1] < cut[3] else None


def _cut(corners: Corners, frame: Frame) -> Corners:
    xmin, ymin, xmax, ymax = corners
    return (
        max(xmin, 0),
        max(ymin, 0),
        min(xmax, frame.width),
        min(ymax, frame.height),
    )


def _stored(corners: Corners, frame: Frame) -> Box:
    """Relative to the stored picture; divided as TensorFlow's scripts do it."""
    xmin, ymin, xmax, ymax = corners
    box = (ymin / frame.height, xmin / frame.width, ymax / frame.height, xmax / frame.width)
    return box if frame.orientation == UPRIGHT else turn_box(box, undone_by(frame.orientation))


def _faults(corners: Corners, frame: Frame) -> list[str]:
    """What is wrong with a box, a sentence for each fault."""
    odd = [side for side, value in zip(_SIDES, corners, strict=True) if not math.isfinite(value)]
    if odd:
        return [f"{', '.join(odd)}: no number; expected numbers"]
    xmin, ymin, xmax, ymax = corners
    faults = []
    sides = (("x", xmin, xmax, frame.width, "width"), ("y", ymin, ymax, frame.height, "height"))
    for axis, low, high, size, side in sides:
        if low > high:
            faults.append(f"{axis}min {low:g} is larger than {axis}max {high:g}")
        elif low == high:
            faults.append(f"{axis}min and {axis}max are both {low:g}: the box is empty")
        outside = [
            f"{axis}{which} {value:.10g}"
            for which, value in (("min", low), ("max", high))
            if not -size * _TOLERANCE <= value <= size * (1 + _TOLERANCE)
        ]
        if outside:
            faults.append(
                f"{' and '.join(outside)} outside of the picture; expected 0 to its {side}, "
                f"{size:g}"
            )
    return faults or ["the box is empty"]


def _have_same_shape(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] * other[1] / (one[1] * other[0]) - 1) <= _SAME_SHAPE
