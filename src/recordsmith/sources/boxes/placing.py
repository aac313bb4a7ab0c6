"""Converts the boxes of one image to object detection features.

Boxes may be drawn on the stored image, on the upright image, or on a resized copy: the image size
in the annotation identifies this frame. An invalid box is a problem, or is fixed or dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.format.example import Kind, keys
from recordsmith.image import (
    UPRIGHT,
    Box,
    box_corners,
    exif_orientation,
    inverse_orientation,
    orient_box,
    orient_corners,
    orient_points,
    swaps_sides,
)
from recordsmith.sources.boxes.annotation import (
    AnnotatedObject,
    Corners,
    Points,
    is_class_name,
    to_float,
)
from recordsmith.sources.classes import Classes
from recordsmith.sources.flaws import Check, Flaw, FlawBox
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.sources.samples import Note
from recordsmith.support.errors import SourceError, option
from recordsmith.support.problems import Problems
from recordsmith.support.words import count

BoxPolicy = Literal["stop", "clip", "drop"]
"""What happens to an invalid box: its sample fails, it is fixed if possible, or it is dropped."""

Drawn = Literal["upright", "stored"]
"""The image that boxes were drawn on, where their annotation does not show it."""

BOX_KINDS: Mapping[str, Kind] = {
    keys.YMIN: "float",
    keys.XMIN: "float",
    keys.YMAX: "float",
    keys.XMAX: "float",
    keys.OBJECT_LABEL: "int64",
    keys.OBJECT_TEXT: "bytes",
}
KEYPOINT_KINDS: Mapping[str, Kind] = {
    keys.KEYPOINT_X: "float",
    keys.KEYPOINT_Y: "float",
    keys.KEYPOINT_VISIBILITY: "int64",
    keys.KEYPOINT_NUM: "int64",
}
CORNER_KINDS: Mapping[str, Kind] = {keys.CORNER_X: "float", keys.CORNER_Y: "float"}

Numbers: TypeAlias = npt.NDArray[np.float64]

PlacedPoints: TypeAlias = Sequence[Any]
"""x and y, relative to the stored image, and visibility of keypoints, end to end; 0 of those that
are not labelled."""

MAX_POINTS = 1 << 22  # of an image: all its objects have as many as the class with the most
_TOLERANCE = 1e-6  # relative to the size; covers rounding to six decimals
_SAME_SHAPE = 0.01  # how much the aspect ratio of a resized copy may differ
_UNKNOWN = "unknown classes"
_CLIP = f"{option('boxes', 'clip')} to fix boxes where possible"
_DROP = f"{option('boxes', 'drop')} to drop such objects"
_IGNORE_SIZE = f"{option('boxes', 'drop')} to ignore such sizes"
_SIDES = ("xmin", "ymin", "xmax", "ymax")

_CLIPPED = Flaw("boxes were clipped to their image", Check.BOX_OUTSIDE)
_REORDERED = Flaw("boxes had minimum and maximum swapped and were reordered", Check.BOX_INVERTED)
_DROPPED = Flaw("objects were dropped because their box is invalid", Check.INVALID_BOX)
_UNLABELLED = Flaw("invalid keypoints were packed as not labelled", Check.INVALID_KEYPOINT)
_POINTS_DROPPED = Flaw("objects were dropped because of their keypoints", Check.INVALID_KEYPOINT)
_UNKNOWN_DROPPED = Flaw("objects were dropped because their class is unknown", Check.UNKNOWN_CLASS)
_ROTATED = Flaw(
    "images have an EXIF orientation; their boxes were rotated to the stored image",
    Check.EXIF_ORIENTATION,
)
_TAKEN_AS_UPRIGHT = Flaw(
    "images have an EXIF orientation; their boxes were taken as drawn on the upright image (pass "
    f"{option('drawn', 'stored')} if they were not) and rotated to the stored image",
    Check.EXIF_ORIENTATION,
)
_TAKEN_AS_STORED = Flaw(
    "images have an EXIF orientation; their boxes were taken as drawn on the stored image (pass "
    f"{option('drawn', 'upright')} if they were not)",
    Check.EXIF_ORIENTATION,
)
_SCALED = Flaw("images were annotated in another size; their boxes were scaled", Check.IMAGE_SIZE)
_WRONG_SIZE = Flaw(
    "images have another size than their annotation; the annotated size was ignored",
    Check.IMAGE_SIZE,
)


class LabelledBox(NamedTuple):
    """An object with a valid box.

    box: relative to the stored image, as the others.
    corners: of a rotated box, (4, 2): x and y; None for an upright one.
    points: its keypoints; empty without any.
    """

    source: AnnotatedObject
    label: int
    box: Box
    corners: Numbers | None = None
    points: PlacedPoints = ()


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


class BoxPlacer:
    """Checks and places the boxes of one image, and collects their problems.

    Call `make_frame`, `place`, `finish`.
    """

    def __init__(
        self,
        image: Mapping[str, Any],
        policy: BoxPolicy,
        note: Note,
        drawn: Drawn | None = None,
        point_names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """
        Args:
            image: features from `read_image`.
            drawn: None for the usual image of the format.
            point_names: of the keypoints of each class that has some.
        """
        self._point_names = point_names or {}
        self._image = image
        self._drawn = drawn
        self._policy = policy
        self.note = note
        self.problems = Problems()
        self._actions: set[str] = set()  # that pack the sample in spite of its problems

    def make_frame(
        self, annotated: tuple[float, float] | None, place: str, *, is_upright: bool = False
    ) -> Frame:
        """The frame for the image size in an annotation; 0 if the annotation has no size.

        None for relative boxes.

        Args:
            is_upright: whether boxes are usually drawn on the upright image, where the size does
                not show it.
        """
        size = (self._image[keys.WIDTH], self._image[keys.HEIGHT])
        orientation = exif_orientation(self._image[keys.IMAGE])
        if annotated is None:
            drawn_on = self._unclear(orientation, place, is_upright=is_upright)
            return Frame(1, 1, drawn_on, is_relative=True)
        width, height = annotated
        is_rotated = swaps_sides(orientation)
        if not (width > 0 and height > 0) or (width, height) == size:
            if is_rotated and width > 0 and width != height:
                return Frame(*size)
            drawn_on = self._unclear(orientation, place, is_upright=is_upright)
            return Frame(*(size[::-1] if swaps_sides(drawn_on) else size), drawn_on)
        is_swapped = (height, width) == size
        sizes = f"annotated size {width:g}x{height:g}, image size {size[0]}x{size[1]}"
        if is_rotated and is_swapped:
            frame = Frame(width, height, orientation)
        elif self._policy == "stop":
            swapped = " (width and height are swapped)" if is_swapped else ""
            self.problems.add(Flaw(f"{sizes}{swapped}", Check.IMAGE_SIZE, place=place))
            shape = size[::-1] if is_rotated and not _have_same_shape(annotated, size) else size
            self._actions.add(_CLIP if _have_same_shape(annotated, shape) else _IGNORE_SIZE)
            return Frame(width, height)
        elif _have_same_shape((width, height), size):
            self.note(_SCALED, f"{place}: {sizes}")
            if is_rotated and width != height:
                return Frame(width, height)
            return Frame(width, height, self._unclear(orientation, place, is_upright=is_upright))
        elif is_rotated and _have_same_shape((height, width), size):
            self.note(_SCALED, f"{place}: {sizes}")
            frame = Frame(width, height, orientation)
        else:
            self.note(_WRONG_SIZE, f"{place}: {sizes}")
            return Frame(*size)
        if frame.orientation != UPRIGHT:
            self.note(_ROTATED, f"{place}: orientation {orientation}")
        return frame

    def _unclear(self, orientation: int, place: str, *, is_upright: bool) -> int:
        """The orientation of the frame, where the size does not show what was drawn on."""
        if orientation == UPRIGHT:
            return UPRIGHT
        drawn = self._drawn or ("upright" if is_upright else "stored")
        where = f"{place}: orientation {orientation}"
        if self._drawn is None:
            self.note(_TAKEN_AS_UPRIGHT if is_upright else _TAKEN_AS_STORED, where)
        elif drawn == "upright":
            self.note(_ROTATED, where)
        return orientation if drawn == "upright" else UPRIGHT

    def place(
        self, objects: Iterable[AnnotatedObject], frame: Frame, classes: Classes, file: str
    ) -> list[LabelledBox]:
        """The valid and fixed boxes; others are noted or become problems with their file."""
        boxes = []
        for item in objects:
            name = item.name if item.name and is_class_name(item.name) else None
            if item.fault or name is None:
                invalid = (
                    f"invalid class name {item.name!r:.60}" if item.name else "it has no class"
                )
                fault = item.fault or invalid
                dropped = _UNKNOWN_DROPPED if item.name is None or not item.fault else _DROPPED
                place = f"{file}, {item.where}"
                self.reject(place, fault, dropped.leaving_out(name or _UNKNOWN))
                continue
            label = classes.label_of(name)
            if label is None:
                place, shares = item.place_in(file), _shares(item.corners, frame)
                dropped = _UNKNOWN_DROPPED.leaving_out(name)
                self.reject(place, classes.unknown(name), dropped, shares)
                if self._policy != "stop":
                    continue
            is_around = item.quad or item.outline == "points"
            whole = _clipped(item.corners, frame) if is_around else item.corners
            corners = _within(whole, frame)
            if corners is None:
                corners = self._fixed(item, file, frame)
                if corners is None and self._policy != "stop":
                    continue
            points = self._place_points(item, file, frame) if item.points else ()
            box = None if corners is None else _shares(corners, frame)
            if label is not None and box is not None and points is not None:
                quad = _placed_quad(item.quad, frame) if item.quad else None
                if frame.orientation != UPRIGHT:
                    box = orient_box(box, inverse_orientation(frame.orientation))
                boxes.append(LabelledBox(item, label, box, quad, points))
        count = max(map(len, self._point_names.values()), default=0)
        if len(boxes) * count > MAX_POINTS:
            raise SourceError(
                f"{file}: {len(boxes):,} objects of {count} keypoints each; expected at most "
                f"{MAX_POINTS:,} keypoints in an image",
                remedy="Cut the image into tiles.",
            )
        return boxes

    def _place_points(self, item: AnnotatedObject, file: str, frame: Frame) -> PlacedPoints | None:
        """The keypoints of an object, checked; None if they make it invalid."""
        names = self._point_names.get(str(item.name), ())
        values, place = _in_order(item.points, names), item.place_in(file)
        dropped = _POINTS_DROPPED.leaving_out(item.name or _UNKNOWN)
        unknown = sorted(item.points.keys() - {*names}) if isinstance(item.points, Mapping) else ()
        if unknown or len(values) not in (0, 3 * len(names)):
            fault = f"{count(len(values), 'number')} of keypoints; expected 3 for each of them"
            if len(values) % 3 == 0:
                fault = f"{count(len(values) // 3, 'keypoint')}; expected {len(names)}"
            if unknown:
                fault = f"unknown keypoints {join_names(unknown)}; expected {join_names(names)}"
            self.reject(place, [Flaw(fault, Check.KEYPOINT_COUNT)], dropped)
            return None
        try:
            points, wrong = _shares_of_points(values, frame)
        except TypeError:
            points, wrong = _shares_of_points([*map(to_float, values)], frame)
        if wrong:
            faults = [_point_fault(names[number], point, frame) for number, point in wrong.items()]
            if self._policy != "clip":
                self._actions.add(_CLIP)
                self.reject(place, faults, dropped)
                return None
            self.note(_UNLABELLED, f"{place}: {'; '.join(faults)}")
        if frame.orientation != UPRIGHT:
            placed = np.array(points).reshape(-1, 3)
            placed[:, :2] = orient_points(placed[:, :2], inverse_orientation(frame.orientation))
            placed *= placed[:, 2:] > 0
            flat = placed.ravel().tolist()
            flat[2::3] = points[2::3]  # as integers
            return flat
        return points

    def reject(
        self,
        place: str,
        faults: str | Sequence[Flaw],
        dropped: Flaw = _DROPPED,
        box: FlawBox | None = None,
    ) -> None:
        """Add the problems of an invalid object, or drop it with the note `dropped`."""
        listed = [Flaw(faults, dropped.check)] if isinstance(faults, str) else faults
        if self._policy == "stop":
            self.problems.extend(fault.at(place, box) for fault in listed)
            self._actions.add(_DROP)
        else:
            self.note(dropped, f"{place}: {'; '.join(listed)}")

    def finish(self, file: str, image: str | None = None) -> None:
        """Raise the collected problems of a sample; `image` is for files about several images."""
        if not self.problems:
            return
        text, count = join_problems(self.problems), self.problems.count
        raise SourceError(
            text if count == 1 else f"{count:,} problems: {text}",
            self.problems,
            path=None if count == 1 else file,
            sample=image,
            remedy=f"Fix the annotations, or pass {', or '.join(sorted(self._actions))}.",
        )

    def _fixed(self, item: AnnotatedObject, file: str, frame: Frame) -> Corners | None:
        """An invalid box fixed, if the policy is to clip and that is possible."""
        corners, place = item.corners, item.place_in(file)
        faults = _faults(corners, frame)
        (left, right), (top, bottom) = sorted(corners[::2]), sorted(corners[1::2])
        ordered = (left, top, right, bottom)
        clipped = _clipped(ordered, frame)
        can_clip = clipped[0] < clipped[2] and clipped[1] < clipped[3]
        if can_clip and all(map(math.isfinite, corners)):
            if self._policy == "clip":
                where = f"{place}: {'; '.join(faults)}"
                if ordered != corners:
                    self.note(_REORDERED, where)
                if _within(ordered, frame) is None:
                    self.note(_CLIPPED, where)
                return clipped
            self._actions.add(_CLIP)
        dropped = _DROPPED.leaving_out(item.name or _UNKNOWN)
        self.reject(place, faults, dropped, _shares(corners, frame))
        return None


def box_features(boxes: Sequence[LabelledBox]) -> dict[str, Any]:
    sides = (keys.YMIN, keys.XMIN, keys.YMAX, keys.XMAX)
    return {
        **{key: [item.box[side] for item in boxes] for side, key in enumerate(sides)},
        keys.OBJECT_LABEL: [item.label for item in boxes],
        keys.OBJECT_TEXT: [
            str(item.source.name).encode("utf-8", "surrogateescape") for item in boxes
        ],
    }


def keypoint_features(boxes: Sequence[LabelledBox], count: int) -> dict[str, Any]:
    """The keypoints of objects, `count` of each; missing ones are 0, 0, 0."""
    flat: list[Any] = []
    for item in boxes:
        flat += item.points
        flat += [0] * (3 * count - len(item.points))
    return {
        **dict(zip(keys.KEYPOINT, (flat[::3], flat[1::3], flat[2::3]), strict=True)),
        keys.KEYPOINT_NUM: [sum(map(bool, item.points[2::3])) for item in boxes],
    }


def _in_order(points: Points, names: Sequence[str]) -> Sequence[Any]:
    """x, y and visibility of all points of a class, end to end."""
    if not isinstance(points, Mapping):
        return points
    return [value for name in names for value in points.get(name, (0, 0, 0))]


def _shares_of_points(
    values: Sequence[Any], frame: Frame
) -> tuple[PlacedPoints, dict[int, Sequence[Any]]]:
    """Keypoints as shares of the frame, and the invalid ones by number, which are not labelled.

    A loop, because arrays of some dozen points take longer.
    """
    width, height, *_ = frame
    points: list[Any] = []
    wrong: dict[int, Sequence[Any]] = {}
    each = iter(values)
    for number, (x, y, visibility) in enumerate(zip(each, each, each, strict=True)):
        is_labelled = visibility in (1, 2)
        if visibility != 0 and not (is_labelled and 0 <= x <= width and 0 <= y <= height):
            cut = _clipped_point(x, y, frame) if is_labelled else None
            if cut is None:
                wrong[number] = x, y, visibility
                is_labelled = False
            else:
                x, y = cut  # noqa: PLW2901
        points += (x / width, y / height, 2 if visibility == 2 else 1) if is_labelled else (0, 0, 0)
    return points, wrong


def _clipped_point(x: float, y: float, frame: Frame) -> tuple[float, float] | None:
    """A point, moved inside if rounding put it outside; None if it is outside or not finite."""
    sides = ((x, frame.width), (y, frame.height))
    if all(-_TOLERANCE * size <= value <= (1 + _TOLERANCE) * size for value, size in sides):
        return min(max(x, 0), frame.width), min(max(y, 0), frame.height)
    return None


def corner_features(boxes: Sequence[LabelledBox]) -> dict[str, Any]:
    """The four corners of each box, rotated or not."""
    corners = box_corners(np.reshape([item.box for item in boxes], (-1, 4)))
    for row, item in enumerate(boxes):
        if item.corners is not None:
            corners[row] = item.corners
    return {keys.CORNER_X: corners[:, :, 0].ravel(), keys.CORNER_Y: corners[:, :, 1].ravel()}


def _placed_quad(quad: Sequence[float], frame: Frame) -> Numbers:
    corners = np.array(quad, np.float64).reshape(4, 2) / (frame.width, frame.height)
    return orient_corners(corners, inverse_orientation(frame.orientation))


def _point_fault(name: str, point: Sequence[float], frame: Frame) -> Flaw:
    x, y, visibility = map(to_float, point)
    where = f"keypoint {name!r:.60}"
    if visibility not in (1, 2):
        text = f"{where} has visibility {visibility:g}; expected 0, 1 or 2"
        return Flaw(text, Check.INVALID_KEYPOINT)
    size = f"{frame.width:g}, {frame.height:g}"
    text = f"{where} at {x:.10g}, {y:.10g} is outside the image; expected 0, 0 to {size}"
    return Flaw(text, Check.KEYPOINT_OUTSIDE)


def _within(corners: Corners, frame: Frame) -> Corners | None:
    """The corners of a valid box, without what rounding left over the edge; else None."""
    xmin, ymin, xmax, ymax = corners
    spare_x, spare_y = frame.width * _TOLERANCE, frame.height * _TOLERANCE
    is_inside_x = -spare_x <= xmin < xmax <= frame.width + spare_x
    if not is_inside_x or not -spare_y <= ymin < ymax <= frame.height + spare_y:
        return None
    cut = _clipped(corners, frame)
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


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
