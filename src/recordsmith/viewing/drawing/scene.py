"""Read the image, masks, boxes, class and name of an example, and draw them.

The keys are chosen once per dataset from the schema: first those of TensorFlow's tools, then those
of tutorials, then any bytes with images. Raw pixels need features for height and width.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.dataset import KeypointClass
from recordsmith.format.example import Features, FeatureSchema, keys
from recordsmith.format.example.class_lists import positive_values
from recordsmith.format.example.feature_values import first_bytes, object_values, only_value
from recordsmith.format.example.usual_names import USUAL_NAMES, find_images
from recordsmith.image import (
    Box,
    Pixels,
    blend_mask,
    class_numbers,
    decode_image,
    decode_mask,
    draw_boxes,
    fit_to_tile,
    is_image,
    probe_image,
    reserve_for_decoding,
)
from recordsmith.support.errors import CorruptDataError, DataError, Defect

_MASKS = USUAL_NAMES[keys.MASK]
_HEIGHTS, _WIDTHS, _DEPTHS = (USUAL_NAMES[key] for key in (keys.HEIGHT, keys.WIDTH, keys.DEPTH))
_DTYPES, _LABELS = USUAL_NAMES[keys.DTYPE], USUAL_NAMES[keys.CLASS_LABEL]
_TEXTS = (*USUAL_NAMES[keys.CLASS_TEXT], "text")
_NAMES = (*USUAL_NAMES[keys.FILENAME], keys.SOURCE_ID, "name")
_RAW_DTYPES = {1: "uint8", 2: "uint16", 4: "float32"}  # by bytes per value
_MAX_BOXES = 5000  # of an image; more hide it
_MAX_POINTS = 300_000  # numbers of the keypoints or corners of an image
_FAR = 4.0  # sides of an image
_STRIP_ROWS = 64  # of a mask in colours, at once
_DEEP = 1 << 12  # values that use the whole range of 16 bits reach further
_EMPTY_BYTES = 2  # of an empty string in a record
_IN_PIXELS = 2.0  # boxes with larger edges are in pixels


@dataclass
class Scene:
    """The visible content of an example.

    pixels: uint8, (height, width, 3), RGB; perhaps smaller than the image.
    mask: class numbers, (height, width), or None.
    mask_problem: why the mask of the example is not in `mask`; empty without such a problem.
    boxes: (ymin, xmin, ymax, xmax) of each box, from 0 to 1.
    box_labels, box_texts: the class of each box.
    corners: (n, 4, 2), x and y of the corners of the boxes, from 0 to 1; None for upright boxes.
    points: (n, k, 3), x, y and visibility of the keypoints of the boxes; None without any.
    skeletons: the pairs of points that are joined, by label.
    label, text: the class of the whole image.
    height, width: of the image as stored.
    """

    pixels: Pixels
    mask: npt.NDArray[Any] | None = None
    boxes: list[Box] = field(default_factory=list)
    box_labels: list[int] = field(default_factory=list)
    box_texts: list[str] = field(default_factory=list)
    label: int | None = None
    text: str = ""
    height: int = 0
    width: int = 0
    mask_problem: str = ""
    corners: npt.NDArray[np.float64] | None = None
    points: npt.NDArray[np.float64] | None = None
    skeletons: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.height:
            self.height, self.width = self.pixels.shape[:2]


def draw_scene(scene: Scene, side: int) -> Pixels:
    """Draw a scene into a square tile, at its final size, so that lines stay sharp."""
    pixels = fit_to_tile(scene.pixels, side)
    if scene.mask is not None:
        pixels = blend_mask(pixels, scene.mask)
    if scene.boxes:
        more = scene.corners, scene.points, scene.skeletons
        pixels = draw_boxes(pixels, scene.boxes, scene.box_labels, scene.box_texts, *more)
    return pixels


class SceneReader:
    """Reads scenes from the examples of a dataset."""

    def __init__(
        self,
        features: Mapping[str, FeatureSchema],
        class_names: tuple[str | None, ...] | None = None,
        keypoint_classes: Mapping[int, KeypointClass] | None = None,
    ) -> None:
        """`features` is the schema of the examples."""
        self._features = features
        self._class_names = class_names or ()
        known = (keypoint_classes or {}).items()
        self._skeletons = {label: points.skeleton for label, points in known}
        self.image_key = next(iter(find_images(features)), None)
        self.mask_key = self._find_mask()
        self.mask_problem = "" if self.mask_key else self._describe_unusable_mask()
        self.label_key = self._first(_LABELS, ())
        self.text_key = self._first(_TEXTS, ("text",))
        self._name_key = self._first(_NAMES, ("text",))

    def read(self, example: Features, side: int | None = None) -> Scene:
        """Decode the scene of an example; large images become `side` pixels on the longer side."""
        scene = self._image(example, side)
        self._add_boxes(scene, example)
        try:
            mask = self._mask(example)
            scene.mask = self._instances(example, scene) if mask is None else class_numbers(mask)
        except DataError as error:
            scene.mask_problem = f"{error.feature or self.mask_key!r}: {error.detail}"
        scene.label, scene.text = self.read_class(example)
        return scene

    def is_drawable(self, example: Features) -> bool:
        """Whether an example has the image, or a mask if the dataset has no images."""
        return (self.mask_key if self.image_key is None else self.image_key) in example

    def read_class(self, example: Features) -> tuple[int | None, str]:
        """Return the class of an example and its name; of several, only their names."""
        texts = positive_values(example, keys.CLASS_TEXT)
        if len(texts) > 1 or keys.CLASS_CONFIDENCE in example:
            return None, ", ".join(map(_printable, texts))
        label = _number(example, (self.label_key,))
        text = _text(example, self.text_key) or ("" if label is None else self.class_name(label))
        return label, text

    def name(self, example: Features) -> str:
        """The name of the example, such as its file name."""
        return _text(example, self._name_key)

    def _find_mask(self) -> str | None:
        """The key of masks: a usual one, or else one whose name and values are those of a mask."""
        others = [
            key for key in self._features if keys.may_be_mask(key) and key != keys.OBJECT_MASK
        ]
        named = filter(keys.is_mask_key, others)
        return (
            self._first(_MASKS, ("image",), but=self.image_key)
            or self._first(others, ("image",), but=self.image_key)
            or self._first((*_MASKS, *named), ("raw",), but=self.image_key)
        )

    def _describe_unusable_mask(self) -> str:
        """Why the first feature with the name of a mask is not drawn; empty without one."""
        for key, feature in self._features.items():
            if keys.is_mask_key(key) and key not in (keys.OBJECT_MASK, self.image_key):
                if feature.value_bytes <= _EMPTY_BYTES * feature.present:
                    return f"{key!r} is empty"
                return f"{key!r} has {feature.content or feature.kind} values, not images"
        return ""

    def _first(
        self, names: Iterable[str], contents: tuple[str, ...], but: str | None = None
    ) -> str | None:
        """The first existing key with these contents, or with int64 values if none are given."""
        for key in names:
            known = self._features.get(key)
            if known is None or key == but:
                continue
            if known.content in contents or (not contents and known.kind == "int64"):
                return key
        return None

    def _image(self, example: Features, side: int | None) -> Scene:
        data = first_bytes(example, self.image_key)
        if self.image_key is None and (mask := self._mask(example)) is not None:
            return Scene(np.zeros((*mask.shape, 3), np.uint8))
        if data is None:
            raise _unreadable(f"the example has no {self.image_key}", feature=self.image_key)
        if not _is_raw(data, example, keys.FORMAT):
            return _decoded(data, side)
        return Scene(_as_rgb(_raw_array(data, example, depth=_number(example, _DEPTHS))))

    def _mask(self, example: Features) -> npt.NDArray[Any] | None:
        data = first_bytes(example, self.mask_key)
        if data is None:
            return None
        if not data:
            raise _unreadable("the mask is empty")
        is_file = _text(example, keys.MASK_FORMAT) or is_image(io.BytesIO(data))
        if _is_raw(data, example, keys.MASK_FORMAT) or not is_file:
            dtype = _text(example, keys.MASK_DTYPE)
            return _raw_array(data, example, dtype=dtype)[:, :, 0]
        try:
            return decode_mask(data, max_pixels=None)
        except DataError:  # a mask in colours: number them
            return _number_colours(_decoded(data).pixels)

    def _instances(self, example: Features, scene: Scene) -> npt.NDArray[Any] | None:
        """Merge the masks of all objects into one mask of class numbers."""
        masks = example.get(keys.OBJECT_MASK)
        if not isinstance(masks, list) or not masks or len(masks) != len(scene.boxes):
            return None
        labels = scene.box_labels
        dtype = np.int64 if min(labels) < 0 else np.min_scalar_type(max(1, *labels))
        together = np.zeros((scene.height, scene.width), dtype)
        for data, label in zip(masks, labels, strict=True):
            if not data:  # an object without a mask
                continue
            try:
                instance = decode_mask(data, max_pixels=None)
            except DataError as error:
                error.feature = keys.OBJECT_MASK
                raise
            if instance.shape == together.shape:
                together[instance > 0] = label or 1
        return together

    def _add_boxes(self, scene: Scene, example: Features) -> None:
        sides = [_numbers(example, key) for key in keys.BOX]
        count = min(*map(len, sides), _MAX_BOXES)
        if not count:
            return
        height, width = scene.height, scene.width
        in_pixels = max(side.max() for side in sides) > _IN_PIXELS
        scale = (height, width, height, width) if in_pixels else (1, 1, 1, 1)
        columns = [side[:count] / by for side, by in zip(sides, scale, strict=True)]
        labels = _numbers(example, keys.OBJECT_LABEL).astype(np.int64)
        texts = example.get(keys.OBJECT_TEXT, ())
        shown = np.flatnonzero(np.isfinite(columns).all(0))

        def read_points(names: Sequence[str]) -> npt.NDArray[np.float64] | None:
            points = object_values(example, names, len(sides[0]))
            if points is None or not 0 < points.size <= _MAX_POINTS:
                return None
            points = points[shown]
            points[:, :, :2] /= (width, height) if in_pixels else 1
            points[~np.isfinite(points).all(-1)] = 0
            return points.clip(-_FAR, _FAR)

        corners = read_points(keys.CORNER)
        scene.corners = corners if corners is not None and corners.shape[1] == 4 else None
        scene.points, scene.skeletons = read_points(keys.KEYPOINT), self._skeletons
        for number in shown.tolist():
            ymin, xmin, ymax, xmax = (float(column[number]) for column in columns)
            label = int(labels[number]) if number < len(labels) else 0
            text = _printable(texts[number]) if number < len(texts) else ""
            scene.boxes.append((ymin, xmin, ymax, xmax))
            scene.box_labels.append(label)
            scene.box_texts.append(text or (self.class_name(label) if len(labels) else ""))

    def class_name(self, label: int) -> str:
        """The name of a class, or its number."""
        names = self._class_names
        known = names[label] if 0 <= label < len(names) else None
        return str(label) if known is None else known


def _number_colours(pixels: Pixels) -> npt.NDArray[Any]:
    """Number the colours of a mask, (height, width, 3), by their values; few bytes at a time."""

    def codes(rows: Pixels) -> Any:
        return rows.astype(np.int64) @ np.array((1 << 16, 1 << 8, 1))

    strips = [slice(top, top + _STRIP_ROWS) for top in range(0, len(pixels), _STRIP_ROWS)]
    known = np.zeros(0, np.int64)
    for strip in strips:
        known = np.union1d(known, codes(pixels[strip]))
    areas = np.empty(pixels.shape[:2], np.min_scalar_type(len(known)))
    for strip in strips:
        areas[strip] = np.searchsorted(known, codes(pixels[strip]))
    return areas


def _is_raw(data: bytes, example: Features, format_key: str) -> bool:
    """Whether these are raw pixels, by the declared format or else by the first bytes."""
    stated = _text(example, format_key)
    if stated:
        return stated == "raw"
    has_size = None not in (_number(example, _HEIGHTS), _number(example, _WIDTHS))
    return has_size and not is_image(io.BytesIO(data))


def _text(example: Features, key: str | None) -> str:
    value = first_bytes(example, key)
    return "" if value is None else _printable(value)


def text_of(value: Any) -> str:
    """A value as text, such as the name of a class."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _printable(value: Any) -> str:
    return "".join(char if char.isprintable() else "·" for char in text_of(value))


def _number(example: Features, names: Iterable[str | None]) -> int | None:
    """The value of the first of these features with exactly one integer."""
    for key in names:
        value = only_value(example, key)
        if isinstance(value, np.int64):
            return int(value)
    return None


def _numbers(example: Features, key: str) -> npt.NDArray[Any]:
    """The values of a numeric feature; empty if it is missing or has bytes."""
    value = example.get(key)
    return value.astype(np.float64) if isinstance(value, np.ndarray) else np.zeros(0)


def _raw_array(
    data: bytes, example: Features, *, depth: int | None = 1, dtype: str = ""
) -> npt.NDArray[Any]:
    """Raw pixels as (height, width, depth)."""
    if not data:
        raise _unreadable("the image is empty")
    height, width = _number(example, _HEIGHTS), _number(example, _WIDTHS)
    if not height or not width or height < 0 or width < 0:
        raise _unreadable("raw pixels need a valid height and width")
    dtype = dtype or next((text for key in _DTYPES if (text := _text(example, key))), "")
    area = height * width
    if depth is None:
        depth = max(1, len(data) // area)  # for uint8: 1, 3 or 4
    if dtype not in _RAW_DTYPES.values():
        dtype = _RAW_DTYPES.get(len(data) // max(1, area * depth), "uint8")
    if depth < 1 or len(data) != area * depth * np.dtype(dtype).itemsize:
        raise _unreadable(
            f"raw pixels do not match their size of {width} x {height} x {depth} {dtype}",
            found=f"{len(data):,} bytes",
            expected=f"{area * depth * np.dtype(dtype).itemsize:,}",
        )
    return np.frombuffer(data, dtype).reshape(height, width, depth)


def _as_rgb(array: npt.NDArray[Any]) -> Pixels:
    """Convert raw pixels of any depth and dtype to RGB, 0-255."""
    if array.shape[2] not in (1, 3, 4):
        array = array[:, :, :1]
    if array.dtype == np.uint16:
        most = int(array.max(initial=0))  # depths and 12-bit images would be black
        array = array >> 8 if most >= _DEEP else array * (255 / max(1, most))
    elif array.dtype == np.float32:
        array = np.nan_to_num(array, posinf=0, neginf=0)
        low, high = float(array.min(initial=0)), float(array.max(initial=0))
        if low < 0 or high > 255:  # normalised, or other quantities
            array = (array.astype(np.float64) - low) * (255 / (high - low))
        elif high <= 1:
            array = array * 255
    colours = array[:, :, :3].astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(colours, (*colours.shape[:2], 3)))


def _decoded(data: bytes, side: int | None = None) -> Scene:
    info = probe_image(data)  # its errors describe the damage best
    divisor = 1
    if side is not None and info.format == "jpeg":
        longest = max(info.height, info.width)
        divisor = next((by for by in (8, 4, 2) if longest >= by * side), 1)
    with reserve_for_decoding(data, info, max_pixels=None, divisor=divisor):
        pixels = decode_image(data, divisor, max_pixels=None)
        if side is not None and max(pixels.shape[:2]) > side:  # large ones only one at a time
            pixels = fit_to_tile(pixels, side)
    return Scene(pixels, height=info.height, width=info.width)


def _unreadable(
    problem: str, *, found: str = "", expected: str = "", feature: str | None = None
) -> DataError:
    return CorruptDataError(
        Defect.UNREADABLE_IMAGE, problem, found=found, expected=expected, feature=feature
    )
