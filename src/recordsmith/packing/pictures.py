"""Pictures in a sample's features, stored as `PictureOptions` say; masks and boxes follow them.

Works on the canonical keys (`image/encoded`, `image/segmentation/class/encoded`, …) before they
are renamed. Features without a picture pass as they are. Whatever is changed is noted, and so is
what should be known of a picture that is left as it is: that it is progressive, or to be turned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example.keys import (
    BOX,
    DEPTH,
    DTYPE,
    FILENAME,
    FORMAT,
    HEIGHT,
    MASK,
    MASK_DTYPE,
    MASK_FORMAT,
    OBJECT_AREA,
    OBJECT_MASK,
    PICTURE,
    WIDTH,
)
from recordsmith.image import (
    PictureOptions,
    StoredMask,
    StoredPicture,
    look_at_jpeg,
    store_mask,
    store_picture,
    turn_box,
)
from recordsmith.sources import Note

IS_PROGRESSIVE = (
    "a JPEG is progressive: it takes two to three times as long to decode; baseline=True "
    "turns it without touching a pixel, for about 3 % more bytes"
)
HAS_ORIENTATION = (
    "a picture is stored as its camera held it, and says by EXIF how to turn it, which TensorFlow "
    "does not heed; orientation='apply' turns it, its mask and its boxes"
)
MASK_FOLLOWED = "a mask was turned or resized with its picture"
MASK_RAW = "a mask was decoded and stored as raw numbers"
BOXES_TURNED = "the boxes of a picture were turned with it"
AREAS_SCALED = "the areas of objects, in pixels, were scaled with their picture"


def apply_picture_options(
    features: Mapping[str, Any], options: PictureOptions, note: Note
) -> dict[str, Any]:
    """The features of a sample with its picture, masks and boxes as they are to be stored.

    Args:
        features: as a source gives them or as `decode_example` does: not changed.
        note: told each change, and where: the picture's file name.

    Returns:
        New features: `image/encoded`, `image/format`, `image/height`, `image/width` of the stored
        picture, for raw also `image/depth` and `image/dtype`; masks, boxes and areas with it.

    Raises:
        CorruptDataError: the picture or a mask cannot be decoded, or is too large for that.
        SourceError: it cannot be stored so without losing what was not said to be lost.
        MissingExtraError: a package that shrinks or turns to baseline is not installed.
    """
    given = dict(features)
    if options.is_default:
        note_of_picture(given, note)
        return given
    data = _only(given, PICTURE, bytes)
    if data is None:
        return given
    where = _name_of(given)
    stored = _store(data, given, options, where)
    for change in stored.changes:
        note(change, where)
    given[PICTURE] = stored.data
    if _only(given, FORMAT, (str, bytes)) not in (stored.format, stored.format.encode()):
        given[FORMAT] = stored.format
    sizes = _only(given, HEIGHT, int), _only(given, WIDTH, int)
    given[HEIGHT], given[WIDTH] = stored.height, stored.width
    if stored.dtype is not None:
        given[DEPTH], given[DTYPE] = stored.depth, stored.dtype.encode()
    _move_masks(given, stored, note, where)
    _move_boxes(given, stored, note, where)
    _scale_areas(given, stored, sizes, note, where)
    if stored.data is data:
        note_of_picture(given, note)
    return given


def note_of_picture(features: Mapping[str, Any], note: Note) -> None:
    """Say what should be known of a JPEG that keeps its bytes. Reads no more than its header."""
    data = features.get(PICTURE)
    if type(data) is list and len(data) == 1:
        data = data[0]
    if type(data) is not bytes:
        return
    is_progressive, orientation = look_at_jpeg(data)
    if is_progressive:
        note(IS_PROGRESSIVE, _name_of(features))
    if orientation != 1:
        note(HAS_ORIENTATION, _name_of(features))


def _store(
    data: bytes, given: Mapping[str, Any], options: PictureOptions, where: str
) -> StoredPicture:
    if _only(given, FORMAT, (str, bytes)) in ("raw", b"raw"):
        raise SourceError(
            f"{where}: the picture is stored as raw pixels already, which are packed as they are "
            "only; leave the picture options out",
        )
    with _placed(where):
        return store_picture(data, options)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Errors say which picture it is."""
    try:
        yield
    except CorruptDataError as error:
        if error.path is None:
            error.path = where
        raise
    except SourceError as error:
        raise SourceError(f"{where}: {error}") from None


def _move_masks(given: dict[str, Any], stored: StoredPicture, note: Note, where: str) -> None:
    data = _only(given, MASK, bytes)
    if data is not None:
        with _placed(f"{where}, its mask"):
            mask = _follow(data, stored, raw=stored.format == "raw")
        if mask.is_changed:
            given[MASK] = mask.data
            given[MASK_FORMAT] = mask.format
            note(MASK_RAW if mask.format == "raw" else MASK_FOLLOWED, where)
        if mask.format == "raw":
            given[MASK_DTYPE] = mask.dtype.encode()
    masks = []
    for number, one in enumerate(_listed(given.get(OBJECT_MASK)), 1):
        with _placed(f"{where}, the mask of object {number}"):
            masks.append(_follow(one, stored))
    if any(mask.is_changed for mask in masks):
        given[OBJECT_MASK] = [mask.data for mask in masks]
        note(MASK_FOLLOWED, where)


def _follow(data: bytes, stored: StoredPicture, *, raw: bool = False) -> StoredMask:
    return store_mask(
        data,
        height=stored.height,
        width=stored.width,
        orientation_applied=stored.orientation_applied,
        raw=raw,
    )


def _move_boxes(given: dict[str, Any], stored: StoredPicture, note: Note, where: str) -> None:
    """Places are parts of the sides: only turning moves them."""
    if stored.orientation_applied == 1 or not all(key in given for key in BOX):
        return
    sides = [[float(place) for place in _listed(given[key])] for key in BOX]
    if not sides[0]:
        return
    boxes = [turn_box(box, stored.orientation_applied) for box in zip(*sides, strict=True)]
    for key, places in zip(BOX, zip(*boxes, strict=True), strict=True):
        given[key] = list(places)
    note(BOXES_TURNED, where)


def _scale_areas(
    given: dict[str, Any],
    stored: StoredPicture,
    sizes: tuple[int | None, int | None],
    note: Note,
    where: str,
) -> None:
    """Areas count pixels, of which a smaller picture has fewer."""
    height, width = sizes
    areas = _listed(given.get(OBJECT_AREA))
    if not areas or not height or not width or height * width == stored.height * stored.width:
        return
    scale = stored.height * stored.width / (height * width)
    given[OBJECT_AREA] = [float(area) * scale for area in areas]
    note(AREAS_SCALED, where)


def _only(features: Mapping[str, Any], key: str, kind: Any) -> Any:
    """The value of a feature that has one, also if it comes as a list of it; None if there is none.

    Raises:
        SourceError: it has several.
    """
    value = features.get(key)
    if value is None or isinstance(value, kind):
        return value
    listed = _listed(value)
    if len(listed) > 1:
        raise SourceError(
            f"{_name_of(features)}: feature {key!r} has {len(listed)} values; expected one, as a "
            "sample has one picture where picture options are used"
        )
    if not listed:
        return None
    if kind is not int and not isinstance(listed[0], kind):
        raise SourceError(
            f"{_name_of(features)}: feature {key!r} has the value {listed[0]!r:.60}; expected bytes"
        )
    return int(listed[0]) if kind is int else listed[0]


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, (bytes, str, int, float)) else list(value)


def _name_of(features: Mapping[str, Any]) -> str:
    listed = _listed(features.get(FILENAME))
    if len(listed) != 1:
        return "a picture without image/filename"
    return os.fsdecode(listed[0])
