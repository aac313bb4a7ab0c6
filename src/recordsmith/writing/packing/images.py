"""Applies `ImageOptions` to the images of a sample, and updates its masks and boxes to match.

Works on the canonical keys (`image/encoded`, `image/segmentation/class/encoded`, …) before they
are renamed. Every change is noted. Progressive JPEGs and JPEGs with an EXIF orientation are noted
too, because they affect training.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from recordsmith.format.example import SequenceExample, decode_payload, keys
from recordsmith.format.example.feature_values import only_value, values_of
from recordsmith.image import (
    SIGNATURE,
    ImageOptions,
    check_chunks,
    find_format,
    read_jpeg_info,
    starts_like_image,
)
from recordsmith.sources import Note
from recordsmith.support.errors import DataError, SourceError, option

if TYPE_CHECKING:  # what changes images is imported on use
    from recordsmith.image import StoredImage, StoredMask

IMAGES = (keys.IMAGE, keys.MASK, keys.OBJECT_MASK)
"""The canonical keys of features that hold encoded images."""

IS_PROGRESSIVE = (
    "JPEGs are progressive, which takes two to three times as long to decode; "
    f"{option('baseline', True)} converts to baseline losslessly, which adds about 3 % to the size"
)
HAS_ORIENTATION = (
    "JPEGs have an EXIF orientation, which TensorFlow ignores when it decodes; "
    f"{option('orientation', 'apply')} rotates images, masks and boxes"
)
MASK_CHANGED = "masks were rotated or resized with their image"
MASK_RAW = "masks were decoded and stored as raw values"
BOXES_ROTATED = "images had their boxes rotated with them"
AREAS_SCALED = "images had the areas of their objects scaled with them"


def is_requested(change: str) -> bool:
    """Whether image options request a change; others may be unexpected."""
    from recordsmith.image import REQUESTED

    return change in REQUESTED | {MASK_CHANGED, MASK_RAW, BOXES_ROTATED, AREAS_SCALED}


def apply_image_options(
    features: Mapping[str, Any], options: ImageOptions, note: Note
) -> dict[str, Any]:
    """Apply image options to the image, masks and boxes of a sample.

    Args:
        features: from a source or from `decode_example`; not modified.
        note: called as `note(change, file_name)` for each change.

    Returns:
        New features: `image/encoded`, `image/format`, `image/height` and `image/width` of the
        stored image, for raw images also `image/depth` and `image/dtype`, and the updated masks,
        boxes and areas.
    """
    given = dict(features)
    if options.is_default:
        find_image_note(given, note)
        return given
    data = _only(given, keys.IMAGE, bytes)
    if data is None:
        return given
    where = _sample_name(given)
    stored = _store(data, given, options, where)
    for change in stored.changes:
        note(change, where)
    given[keys.IMAGE] = stored.data
    if _only(given, keys.FORMAT, (str, bytes)) not in (stored.format, stored.format.encode()):
        given[keys.FORMAT] = stored.format
    sizes = _only(given, keys.HEIGHT, int), _only(given, keys.WIDTH, int)
    given[keys.HEIGHT], given[keys.WIDTH] = stored.height, stored.width
    if stored.dtype is not None:
        given[keys.DEPTH], given[keys.DTYPE] = stored.depth, stored.dtype.encode()
    _move_masks(given, stored, note, where)
    _move_boxes(given, stored, note, where)
    _scale_areas(given, stored, sizes, note, where)
    if stored.data is data:
        find_image_note(given, note)
    return given


def check_png_chunks(features: Mapping[str, Any]) -> None:
    """Verify the chunk checksums of the PNGs of a sample."""
    for key in IMAGES:
        for data in values_of(features.get(key)):
            if isinstance(data, bytes) and data.startswith(SIGNATURE):
                try:
                    check_chunks(data)
                except DataError as error:
                    error.path, error.feature = _sample_name(features), key
                    raise


def check_images(payload: bytes, image_keys: Collection[str]) -> None:
    """Decode all images of a record completely, as `verify --deep` does.

    Args:
        image_keys: the features that hold images. Others are decoded if their first bytes are those
            of an image.
    """
    from recordsmith.checking import check_example_images

    message = decode_payload(payload)
    parts: list[Mapping[str, Any]]
    if isinstance(message, SequenceExample):
        steps = {key: list(chain(*values)) for key, values in message.feature_lists.items()}
        parts = [message.context, steps]
    else:
        parts = [message]
    for features in parts:
        own_keys = [
            key
            for key, values in features.items()
            if len(values) and (key in image_keys or _starts_like_image(values[0]))
        ]
        errors = check_example_images(features, own_keys)[1]
        if errors:
            errors[0].path = _sample_name(features)
            raise errors[0]


def _starts_like_image(value: object) -> bool:
    if not isinstance(value, bytes) or not starts_like_image(value):
        return False
    return find_format(value).name != "tiff"  # may hold measurements, which are not colours


def find_image_note(features: Mapping[str, Any], note: Note) -> None:
    """Note whether a JPEG is progressive or has an orientation. Reads only its header."""
    data = only_value(features, keys.IMAGE)
    if not isinstance(data, bytes):
        return
    is_progressive, orientation = read_jpeg_info(data)
    if is_progressive:
        note(IS_PROGRESSIVE, _sample_name(features))
    if orientation != 1:
        note(HAS_ORIENTATION, _sample_name(features))


def _store(data: bytes, given: Mapping[str, Any], options: ImageOptions, where: str) -> StoredImage:
    from recordsmith.image import store_image

    if _only(given, keys.FORMAT, (str, bytes)) in ("raw", b"raw"):
        raise SourceError(
            "the image is stored as raw pixels, which cannot be converted",
            sample=where,
            remedy="Pack it without image options.",
        )
    with _sample_errors(where):
        return store_image(data, options)


@contextmanager
def _sample_errors(where: str, key: str = keys.IMAGE, part: str = "") -> Iterator[None]:
    """Add the file name of the image, and the feature at fault, to errors in the block."""
    try:
        yield
    except DataError as error:
        error.path = error.path or where
        error.feature = error.feature or key
        if part:
            error.problem = f"{part}: {error.problem}"
        raise
    except SourceError as error:
        raise SourceError(
            f"{part}: {error.problem}" if part else error.problem,
            path=error.path,
            line=error.line,
            sample=error.sample or where,
            remedy=error.remedy,
        ) from None


def _move_masks(given: dict[str, Any], stored: StoredImage, note: Note, where: str) -> None:
    data = _only(given, keys.MASK, bytes)
    if data is not None:
        with _sample_errors(where, keys.MASK, "the mask"):
            mask = _store_mask(data, stored, raw=stored.format == "raw")
        if mask.is_changed:
            given[keys.MASK] = mask.data
            given[keys.MASK_FORMAT] = mask.format
            note(MASK_RAW if mask.format == "raw" else MASK_CHANGED, where)
        if mask.format == "raw":
            given[keys.MASK_DTYPE] = mask.dtype.encode()
    masks = []
    for number, one in enumerate(values_of(given.get(keys.OBJECT_MASK)), 1):
        with _sample_errors(where, keys.OBJECT_MASK, f"the mask of object {number}"):
            masks.append(_store_mask(one, stored))
    if any(mask.is_changed for mask in masks):
        given[keys.OBJECT_MASK] = [mask.data for mask in masks]
        note(MASK_CHANGED, where)


def _store_mask(data: bytes, stored: StoredImage, *, raw: bool = False) -> StoredMask:
    from recordsmith.image import store_mask

    return store_mask(
        data,
        height=stored.height,
        width=stored.width,
        orientation_applied=stored.orientation_applied,
        raw=raw,
    )


def _move_boxes(given: dict[str, Any], stored: StoredImage, note: Note, where: str) -> None:
    """Coordinates are fractions of the sides, so only rotation changes them."""
    orientation = stored.orientation_applied
    if orientation == 1:
        return
    from recordsmith.image import box_corners, orient_box, orient_corners, orient_points

    boxes = np.transpose(_columns(given, keys.BOX) or [[]] * 4)
    turned = [orient_box((a, b, c, d), orientation) for a, b, c, d in boxes.tolist()]
    if turned:
        given |= zip(keys.BOX, map(list, zip(*turned, strict=True)), strict=True)
        note(BOXES_ROTATED, where)
    if sides := _columns(given, keys.CORNER):
        known = np.reshape(sides, (2, -1, 4)).transpose(1, 2, 0)
        corners = orient_corners(known, orientation)
        if len(boxes) == len(corners):  # upright boxes begin at the top left again
            are_upright = (known == box_corners(boxes)).all(axis=(1, 2))
            corners[are_upright] = box_corners(np.array(turned))[are_upright]
        given |= zip(keys.CORNER, corners.reshape(-1, 2).T, strict=True)
    if sides := _columns(given, keys.KEYPOINT):
        points = orient_points(np.transpose(sides[:2]), orientation)
        points[np.equal(sides[2], 0)] = 0  # not labelled
        given |= zip(keys.KEYPOINT[:2], points.T, strict=True)


def _columns(given: Mapping[str, Any], of: Sequence[str]) -> list[list[float]]:
    """The values of features that are parallel; empty if one is missing or has no values."""
    columns = [[float(value) for value in values_of(given.get(key))] for key in of]
    return columns if all(columns) else []


def _scale_areas(
    given: dict[str, Any],
    stored: StoredImage,
    sizes: tuple[int | None, int | None],
    note: Note,
    where: str,
) -> None:
    """Areas are in pixels, so they change with the size of the image."""
    height, width = sizes
    areas = values_of(given.get(keys.OBJECT_AREA))
    if not len(areas) or not height or not width or height * width == stored.height * stored.width:
        return
    scale = stored.height * stored.width / (height * width)
    given[keys.OBJECT_AREA] = [float(area) * scale for area in areas]
    note(AREAS_SCALED, where)


def _only(features: Mapping[str, Any], key: str, kind: Any) -> Any:
    """The single value of a feature, as a scalar or in a list; None if it is missing."""
    value = features.get(key)
    if value is None or isinstance(value, kind):
        return value
    listed = values_of(value)
    if len(listed) > 1:
        raise SourceError(
            f"feature {key!r} has {len(listed)} values; image options need exactly one",
            sample=_sample_name(features),
        )
    if not len(listed):
        return None
    if kind is not int and not isinstance(listed[0], kind):
        raise SourceError(
            f"feature {key!r} must be bytes, got {listed[0]!r:.60}", sample=_sample_name(features)
        )
    return int(listed[0]) if kind is int else listed[0]


def _sample_name(features: Mapping[str, Any]) -> str:
    name = only_value(features, keys.FILENAME)
    return "an image without image/filename" if name is None else os.fsdecode(name)
