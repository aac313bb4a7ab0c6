"""Rows of YOLO's label files: a class number with a box, a polygon, or a box and keypoints.

Polygons and keypoints look alike. `kpt_shape` says what rows have; without it, rows that may have
keypoints are refused, because their first numbers would be read as a point of a polygon.
"""

from __future__ import annotations

import codecs
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from recordsmith.dataset import is_label
from recordsmith.sources.boxes.annotation import to_float
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.support.errors import OptionError, SourceError, option

Keypoints: TypeAlias = tuple[int, ...]
"""How many keypoints objects have, and how many values each; empty for objects without any."""

_MOST_KEYPOINTS = 1000
_SLACK = 0.01  # how far boxes reach beyond the image, and keypoints beyond their box
_LEAST_SPREAD = 0.25  # of keypoints, as a share of a side of their box
_ROUNDING = 2e-3  # of corners
_MAX_ROWS = 100  # of each file of a sample
_MAX_SHARE = 2  # larger coordinates are in pixels; keypoints have a visibility of at most 2


def numbers_in(text: str) -> list[float]:
    """The numbers of a row, the class first; NaN for what is not a number."""
    return [to_float(word) for word in text.split()]


def is_class_number(number: float) -> bool:
    return number >= 0 and number.is_integer()


def is_row(numbers: Sequence[float]) -> bool:
    """Whether numbers are a class and at least a box."""
    return len(numbers) > 4 and is_class_number(numbers[0]) and all(map(math.isfinite, numbers))


def rows_in(head: bytes) -> Iterator[tuple[int, list[float]]]:
    """Yield line and numbers of the whole rows in the beginning of a label file."""
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    for line, text in enumerate(lines if len(head) < HEAD_BYTES else lines[:-1], 1):
        if text.strip():
            yield line, numbers_in(text.decode("utf-8", "replace"))


def parse_kpt_shape(text: object) -> Keypoints:
    """The keypoints of `17,3`, or none for `none`."""
    if text == "none":
        return ()
    if isinstance(text, str):
        parts = [part.strip() for part in text.strip("[] ").split(",")]
        if len(parts) == 2 and all(map(is_label, parts)):
            count, size = map(int, parts)
            if 0 < count <= _MOST_KEYPOINTS and size in (2, 3):
                return count, size
    raise OptionError(
        option="kpt_shape",
        value=text,
        expected="the number of keypoints and of their values (2 or 3), such as '17,3', or 'none'",
    )


def keypoints_of(values: Sequence[float]) -> Keypoints:
    """The keypoints that the values of a row can have after a box; empty if they have none.

    Four corners of a parallelogram are an oriented box.
    """
    if not 4 < len(values) <= 4 + 3 * _MOST_KEYPOINTS:
        return ()
    x, y, half_width, half_height = values[0], values[1], values[2] / 2, values[3] / 2
    sides = (x - half_width, y - half_height, 1 - x - half_width, 1 - y - half_height)
    if half_width <= 0 or half_height <= 0 or min(sides) < -_SLACK:
        return ()
    axes = values[::2], values[1::2]
    if len(values) == 8 and all(abs(a - b + c - d) < _ROUNDING for a, b, c, d in axes):
        return ()
    rest = values[4:]
    if len(rest) % 3 == 0 and all(value in (0, 1, 2) for value in rest[2::3]):
        return len(rest) // 3, 3
    points = [(px, py) for px, py in zip(rest[::2], rest[1::2], strict=False) if px or py]
    xs, ys = [px - x for px, _ in points], [py - y for _, py in points]
    scaled = ((xs, half_width), (ys, half_height))
    are_inside = all(abs(value) <= half + _SLACK for values, half in scaled for value in values)
    if len(rest) % 2 or not are_inside:
        return ()
    spreads = [(max(values) - min(values)) / (2 * half) for values, half in scaled if points]
    if len(points) > 1 and max(spreads) < _LEAST_SPREAD:
        return ()  # a small polygon, the second corner of which is no size
    return len(rest) // 2, 2


def find_keypoints(heads: Mapping[str, bytes], given: Keypoints | None) -> Keypoints | None:
    """The keypoints of rows, from the first rows of label files; None if these do not show it.

    Args:
        given: the keypoints according to the user or `data.yaml`.

    Raises:
        SourceError: most rows are in pixels, or have keypoints.
    """
    rows = [
        (path, line, numbers[1:])
        for path, head in heads.items()
        for line, numbers in islice(rows_in(head), _MAX_ROWS)
        if is_row(numbers)
    ]
    in_pixels = [row for row in rows if max(row[2]) > _MAX_SHARE]
    if 2 * len(in_pixels) > len(rows):
        path, line, values = in_pixels[0]
        if len(values) > 4 and max(values[:4]) <= 1 + _SLACK:  # of weight and height, for example
            raise SourceError(
                f"{len(values)} numbers after the class, of which those after the box are not "
                "shares of the image's sides",
                path=path,
                line=line,
                remedy="Remove the columns after the box: class, x, y, width and height stay.",
            )
        raise SourceError(
            "coordinates are in pixels; expected shares of the image's sides, 0 to 1",
            path=path,
            line=line,
            remedy="Divide x and width by the width of the image, y and height by its height.",
        )
    long = [row for row in rows if len(row[2]) > 4]
    if given is not None or not long:
        return given
    shape, count = Counter(keypoints_of(values) for _, _, values in long).most_common(1)[0]
    if not shape or 4 * count < 3 * len(long):
        return ()
    path, line, values = long[0]
    raise SourceError(
        f"{len(values)} numbers after the class look like a box and keypoints (YOLO-pose), but "
        "kpt_shape is unknown",
        path=path,
        line=line,
        remedy=f"Add kpt_shape to data.yaml, or {advice(shape)}.",
    )


def are_oriented(heads: Mapping[str, bytes]) -> bool:
    """Whether all rows have four points, as those of oriented boxes (YOLO-OBB)."""
    rows = (row for head in heads.values() for _, row in islice(rows_in(head), _MAX_ROWS))
    return {len(row) for row in rows if is_row(row)} == {9}


def advice(shape: Keypoints) -> str:
    """What to do about rows that may have keypoints."""
    return (
        f"pass {option('kpt_shape', ','.join(map(str, shape)))} for keypoints, or "
        f"{option('kpt_shape', 'none')} for polygons"
    )
