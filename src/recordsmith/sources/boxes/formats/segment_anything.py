"""Segment Anything: a JSON file for each image, with run lengths of masks that have no class."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from recordsmith.format.example.keys import OBJECT_AREA, OBJECT_ID
from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    attributes_in,
    decode_json,
    json_text,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.known_formats import is_json_with
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.stores import read_document

_CLASS = "object"
_LARGEST_AREA = 1e12  # pixels
_NO_ID = -1
_has_masks = is_json_with("[{", "segmentation predicted_iou stability_score")
_is_without_masks = is_json_with("{", "image annotations file_name")


class _Image(msgspec.Struct):
    file_name: str = ""
    width: float = 0
    height: float = 0
    image_id: int | str | None = None


class _Document(msgspec.Struct):
    image: _Image
    annotations: list[msgspec.Raw]


class _Mask(msgspec.Struct):
    bbox: Any = None
    area: Any = None
    id: Any = None
    predicted_iou: Any = None
    stability_score: Any = None
    segmentation: msgspec.Raw = msgspec.Raw()  # raw values are not parsed


def matches(head: bytes) -> bool:
    """Whether a file begins like one with masks: of SA-1B, or a list of the mask generator."""
    return _has_masks(head) and b'"category_id"' not in head  # of COCO with such scores


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for JSON of another type."""
    data = json_text(read_document(file.location), file.name)
    head = data[:HEAD_BYTES]
    if not matches(head) and not _is_without_masks(head):
        return
    kind = _Document | list[msgspec.Raw]
    document = decode_json(data, file.name, kind, "an image with masks (Segment Anything)")
    image, masks = _Image(), document
    if isinstance(document, _Document):
        image, masks = document.image, document.annotations
    objects = [
        _object(where, decode_json(mask, file.name, _Mask, where))
        for number, mask in enumerate(masks[: MAX_OBJECTS + 1], 1)
        if (where := f"annotation {number}")
    ]
    size = image.width, image.height
    yield AnnotatedImage("", image.file_name, size, objects, id=image.image_id)


def _object(where: str, item: _Mask) -> AnnotatedObject:
    box = [*map(to_float, item.bbox)] if isinstance(item.bbox, list) else []
    if len(box) != 4 or not all(map(math.isfinite, box)):
        fault = f"invalid bbox {item.bbox!r:.60}; expected [x, y, width, height]"
        return AnnotatedObject(where, _CLASS, fault=fault)
    x, y, width, height = box
    area = to_float(item.area)
    is_id = type(item.id) is int and 0 <= item.id < 1 << 63
    scores = {"predicted_iou": item.predicted_iou, "stability_score": item.stability_score}
    return AnnotatedObject(
        where,
        _CLASS,
        (x, y, x + width, y + height),
        bytes(item.segmentation).decode("utf-8", "replace") or None,
        (area if 0 <= area <= _LARGEST_AREA else None, item.id if is_id else _NO_ID),
        attributes=attributes_in(scores),
    )


class SegmentAnything(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "segment-anything",
        ".json",
        matches,
        parse,
        what="images and masks of JSON files such as {} (Segment Anything)",
        has_attributes=True,
        expected="JSON files of Segment Anything next to their images",
        features={OBJECT_AREA: "float", OBJECT_ID: "int64"},
    ),
):
    """Images with the boxes and masks of Segment Anything: SA-1B, or those of its mask generator.

    Each sample has the image and box features of `Voc`, `image/object/area` (in pixels, from the
    file) and `image/object/id` (-1 without one), masks as `Coco` has them, and the attributes
    `predicted_iou` and `stability_score`. Masks have no class: that of all objects is `object`. The
    generator writes run lengths with `output_mode="coco_rle"`.

    Example:
        rs.pack(rs.SegmentAnything("sa_000000", object_masks="instance"), "packed")
    """
