"""Draws small copies of the images of findings, for the page of `lint`."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from recordsmith.errors import DataError
from recordsmith.example.keys import MASK, OBJECT_TEXT
from recordsmith.image import Box, Pixels, decode_image, decode_mask
from recordsmith.image.drawing.overlay import blend_mask, draw_boxes, fit_to_tile
from recordsmith.linting import LintExample, LintReport
from recordsmith.linting.sample_images import boxes_of, first_of, image_in, values_of

_TILE = 200
_QUALITY = 80
_MOST_IMAGES = 400  # on the page: about 4 MB
_AT_FAULT = 10  # the colour of a box at fault: red
_OTHERS = 2  # of the other boxes: light blue


class Thumbnails:
    """Draws the images of examples, at most _MOST_IMAGES."""

    def __init__(self, report: LintReport) -> None:
        self._report = report
        self._left = _MOST_IMAGES

    def draw(self, example: LintExample) -> Sequence[bytes]:
        """Return the image of an example, and the other one of a pair, as JPEG files."""
        files = [file for file in (example.file, example.other) if file]
        if len(files) > self._left:
            return []
        images = [image for file in files if (image := self._image(file, example.box))]
        self._left -= len(images)
        return images

    def _image(self, file: str, box: Box | None) -> bytes:
        features = self._report.read_again(file)
        data = image_in(features)
        if data is None:
            return b""
        try:
            pixels = fit_to_tile(decode_image(data), _TILE)
        except DataError:
            return b""
        return _jpeg(_with_annotations(pixels, features, box))


def _with_annotations(pixels: Pixels, features: Mapping[str, Any], box: Box | None) -> Pixels:
    mask = first_of(features.get(MASK))
    if isinstance(mask, bytes):
        with suppress(DataError):
            pixels = blend_mask(pixels, decode_mask(mask))
    boxes = boxes_of(features)
    names = [_name(value) for value in values_of(features.get(OBJECT_TEXT))]
    texts = names if len(names) == len(boxes) else [""] * len(boxes)
    labels = [_OTHERS] * len(boxes)
    if box is not None and box in boxes:
        labels[boxes.index(box)] = _AT_FAULT
    elif box is not None:
        boxes, labels, texts = [*boxes, _ordered(box)], [*labels, _AT_FAULT], [*texts, ""]
    return draw_boxes(pixels, boxes, labels, texts) if boxes else pixels


def _name(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _ordered(box: Box) -> Box:
    """The box with minimum before maximum."""
    (top, bottom), (left, right) = sorted(box[::2]), sorted(box[1::2])
    return top, left, bottom, right


def _jpeg(pixels: Pixels) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=_QUALITY)
    return stream.getvalue()
