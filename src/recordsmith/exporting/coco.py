"""COCO: pictures in a folder for each split, boxes in one JSON file for each.

    <split>/<name>
    annotations/instances_<split>.json
    masks/<split>/<name>.png             masks of classes, where there are some

A box is x, y, width and height in pixels, in the shortest numbers that give the very same float32
when a reader computes x / width and (x + w) / width. Instance masks become run lengths. Images and
annotations go to files as they come and are joined at the end, so memory holds one example.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import CorruptDataError, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import OBJECT_AREA, OBJECT_IS_CROWD, OBJECT_MASK, SOURCE_ID
from recordsmith.exporting.numbers import is_same, pixel_extent, pixels, shortest_float
from recordsmith.exporting.objects import OBJECT_KEYS, Classes, has_objects, read_objects
from recordsmith.exporting.outbox import Outbox
from recordsmith.exporting.pictures import (
    MASK_KEYS,
    PICTURE_KEYS,
    Picture,
    read_mask,
    read_picture,
)
from recordsmith.exporting.values import floats_of, ints_of, text_of
from recordsmith.image import decode_mask

_KEPT = (
    PICTURE_KEYS | MASK_KEYS | OBJECT_KEYS | {SOURCE_ID, OBJECT_IS_CROWD, OBJECT_AREA, OBJECT_MASK}
)


@dataclass
class _Split:
    """The parts of one JSON file."""

    images: IO[bytes]
    annotations: IO[bytes]
    image_count: int = 0
    annotation_count: int = 0


class CocoFiles:
    """Writes pictures, and JSON files with their boxes."""

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        self._out = out
        self._classes = Classes.known(dataset.class_names)
        self._splits: dict[str, _Split] = {}
        self._ids: set[int] = set()
        self._next_id = 1
        self._annotation_count = 0
        out.reserve(("annotations", "masks"))

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        picture = read_picture(example, out.tell)
        if not picture.height:
            raise SourceError("nothing tells the size of its picture in pixels")
        mask = read_mask(example, picture, out.tell)
        annotations = self._annotations(example, picture)
        folder = out.split_name(split)
        name, suffix = out.write_picture(
            example, picture, folder, mask=mask, masks=f"masks/{folder}"
        )
        part = self._part(split)
        image_id = self._image_id(example)
        image = {
            "id": image_id,
            "file_name": f"{name}{suffix}",
            "width": picture.width,
            "height": picture.height,
        }
        _append(part.images, part.image_count, image)
        part.image_count += 1
        for annotation in annotations:
            self._annotation_count += 1
            document = {"id": self._annotation_count, "image_id": image_id, **annotation}
            _append(part.annotations, part.annotation_count, document)
            part.annotation_count += 1
        out.leave_out(example, _KEPT)

    def finish(self) -> None:
        categories = [
            {"id": label, "name": name} for label, name in sorted(self._classes.names.items())
        ]
        for split in self._out.splits:
            if split not in self._splits:
                continue
            part = self._splits[split]
            name = f"annotations/instances_{self._out.split_name(split)}.json"
            with self._out.opened(name) as file:
                file.write(b'{"images": [')
                _copy(part.images, file)
                file.write(b'\n], "annotations": [')
                _copy(part.annotations, file)
                file.write(b'\n], "categories": ')
                file.write(json.dumps(categories).encode() + b"}\n")

    def _part(self, split: str) -> _Split:
        if split not in self._splits:
            self._splits[split] = _Split(self._out.scratch(), self._out.scratch())
        return self._splits[split]

    def _image_id(self, example: Features) -> int:
        """The id that the record has, or the next that is free."""
        told = text_of(example, SOURCE_ID) or ""
        number = int(told) if told.isascii() and told.isdecimal() and len(told) < 19 else None
        if number is not None and number in self._ids:
            self._out.tell(f"the id {number} is taken by an earlier record")
            number = None
        if number is None:
            while self._next_id in self._ids:
                self._next_id += 1
            number = self._next_id
        self._ids.add(number)
        return number

    def _annotations(self, example: Features, picture: Picture) -> list[dict[str, Any]]:
        if not has_objects(example):
            return []
        objects = read_objects(example, self._classes, self._out.tell)
        crowds, areas = ints_of(example, OBJECT_IS_CROWD), floats_of(example, OBJECT_AREA)
        masks: Any = example.get(OBJECT_MASK, [])
        for key, values in ((OBJECT_IS_CROWD, crowds), (OBJECT_AREA, areas), (OBJECT_MASK, masks)):
            if len(values) not in (0, len(objects)):
                raise SourceError(f"it has {len(objects)} boxes, and {len(values)} of {key}")
        annotations: list[dict[str, Any]] = []
        for number, found in enumerate(objects):
            x, y = pixels(found.xmin, picture.width), pixels(found.ymin, picture.height)
            width = pixel_extent(x, found.xmax, picture.width)
            height = pixel_extent(y, found.ymax, picture.height)
            stop = ((x + width) / picture.width, (y + height) / picture.height)
            if not (is_same(stop[0], found.xmax) and is_same(stop[1], found.ymax)):
                self._out.tell(f"box {number}: no width and height give its very edges")
            document: dict[str, Any] = {
                "category_id": found.label,
                "bbox": [x, y, width, height],
                "area": shortest_float(areas[number]) if len(areas) else width * height,
                "iscrowd": int(crowds[number]) if len(crowds) else 0,
            }
            if len(masks):
                document["segmentation"] = _run_lengths(masks[number], picture)
            annotations.append(document)
        return annotations


def _run_lengths(data: bytes, picture: Picture) -> dict[str, Any]:
    """The mask in COCO's uncompressed run lengths: column by column, beginning with zeros."""
    try:
        mask = decode_mask(data) != 0
    except CorruptDataError as error:
        raise SourceError(f"an instance mask cannot be read: {error.detail}") from None
    if mask.shape != (picture.height, picture.width):
        raise SourceError(
            f"an instance mask has {mask.shape[1]} x {mask.shape[0]} pixels, its picture "
            f"{picture.width} x {picture.height}"
        )
    flat = mask.ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = np.concatenate(([0] if not flat[0] else [0, 0], changes, [len(flat)]))
    return {"size": [picture.height, picture.width], "counts": np.diff(bounds).tolist()}


def _append(file: IO[bytes], count: int, document: dict[str, Any]) -> None:
    comma = b"," if count else b""
    file.write(comma + b"\n" + json.dumps(document, allow_nan=False).encode())


def _copy(part: IO[bytes], file: IO[bytes]) -> None:
    part.seek(0)
    shutil.copyfileobj(part, file, 1 << 20)
    part.close()
