"""COCO: a folder with images and a JSON file with boxes for each split.

    <split>/<name>
    annotations/instances_<split>.json
    masks/<split>/<name>.png             class masks, if any

A box is x, y, width and height in pixels, as the shortest numbers that restore the same float32
when a reader computes x / width and (x + w) / width. Instance masks become run lengths. An integer
source id becomes the id of its image, unless an earlier image of the split has it; other images get
unused ids. Images and annotations are written to temporary files and joined at the end, so memory
holds one example.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import DataError, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import OBJECT_AREA, OBJECT_IS_CROWD, OBJECT_MASK, SOURCE_ID
from recordsmith.exporting.boxes import (
    BoxFolder,
    has_objects,
    is_same,
    pixel_extent,
    pixels,
    read_objects,
    shortest_float,
)
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.images import (
    ExportedImage,
    get_floats,
    get_ints,
    get_text,
)
from recordsmith.image import decode_mask

_INTEGER = re.compile("-?[0-9]{1,19}")
_NO_ID = b'{"id": null, '
_NO_IMAGE_ID = b', "image_id": null, '
_LONGEST_START = b'{"id": 9223372036854775807, "image_id": null, '


@dataclass
class _Split:
    """The parts of one JSON file."""

    images: IO[bytes]
    annotations: IO[bytes]
    ids: set[int] = field(default_factory=set)
    image_count: int = 0
    annotation_count: int = 0
    missing: array[int] = field(default_factory=lambda: array("q"))
    """The number of annotations of each image without an id; ids are assigned at the end."""


class CocoFiles(BoxFolder, format="coco"):
    """Writes images, and JSON files with their boxes."""

    also_kept = frozenset((SOURCE_ID, OBJECT_IS_CROWD, OBJECT_AREA, OBJECT_MASK))

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        self._splits: dict[str, _Split] = {}
        self._annotation_count = 0
        out.reserve(("annotations", "masks"))

    def write(
        self, example: Features, split: str, image: ExportedImage, mask: ExportedImage | None
    ) -> None:
        out = self._out
        if not image.height:
            raise SourceError("the size of the image is unknown")
        annotations = self._annotations(example, image)
        folder = out.split_name(split)
        name, suffix = out.write_image(example, image, folder, mask=mask, masks=f"masks/{folder}")
        part = self._part(split)
        image_id = self._image_id(example, part)
        if image_id is None:
            part.missing.append(len(annotations))
        document = {
            "id": image_id,
            "file_name": f"{name}{suffix}",
            "width": image.width,
            "height": image.height,
        }
        _append(part.images, part.image_count, document)
        part.image_count += 1
        for annotation in annotations:
            self._annotation_count += 1
            document = {"id": self._annotation_count, "image_id": image_id, **annotation}
            _append(part.annotations, part.annotation_count, document)
            part.annotation_count += 1

    def finish(self) -> None:
        super().finish()
        categories = [
            {"id": label, "name": name} for label, name in sorted(self._classes.names.items())
        ]
        taken = set[int]().union(*(part.ids for part in self._splits.values()))
        free = (number for number in itertools.count(1) if number not in taken)
        for split in self._out.splits:
            if split not in self._splits:
                continue
            part = self._splits[split]
            ids = list(itertools.islice(free, len(part.missing)))
            owners = (owner for owner, count in zip(ids, part.missing, strict=True)
                      for _ in range(count))  # fmt: skip
            name = f"annotations/instances_{self._out.split_name(split)}.json"
            with self._out.opened(name) as file:
                file.write(b'{"images": [')
                _copy(part.images, file, _NO_ID, iter(ids))
                file.write(b'\n], "annotations": [')
                _copy(part.annotations, file, _NO_IMAGE_ID, owners)
                file.write(b'\n], "categories": ')
                file.write(json.dumps(categories).encode() + b"}\n")

    def _part(self, split: str) -> _Split:
        if split not in self._splits:
            self._splits[split] = _Split(self._out.temporary_file(), self._out.temporary_file())
        return self._splits[split]

    def _image_id(self, example: Features, part: _Split) -> int | None:
        """The id of the record, if it is an integer that no earlier record uses."""
        text = get_text(example, SOURCE_ID) or ""
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not -(2**63) <= number < 2**63:
            return None
        if number in part.ids:
            self._out.warn(f"the id {number} is already used by an earlier record")
            return None
        part.ids.add(number)
        return number

    def _annotations(self, example: Features, image: ExportedImage) -> list[dict[str, Any]]:
        if not has_objects(example):
            return []
        objects = read_objects(example, self._classes, self._out.warn)
        crowds, areas = get_ints(example, OBJECT_IS_CROWD), get_floats(example, OBJECT_AREA)
        masks: Any = example.get(OBJECT_MASK, [])
        for key, values in ((OBJECT_IS_CROWD, crowds), (OBJECT_AREA, areas), (OBJECT_MASK, masks)):
            if len(values) not in (0, len(objects)):
                raise SourceError(f"{key} has {len(values)} values for {len(objects)} boxes")
        annotations: list[dict[str, Any]] = []
        for number, found in enumerate(objects):
            x, y = pixels(found.xmin, image.width), pixels(found.ymin, image.height)
            width = pixel_extent(x, found.xmax, image.width)
            height = pixel_extent(y, found.ymax, image.height)
            stop = ((x + width) / image.width, (y + height) / image.height)
            if not (is_same(stop[0], found.xmax) and is_same(stop[1], found.ymax)):
                self._out.warn(f"box {number}: its edges cannot be restored exactly")
            document: dict[str, Any] = {
                "category_id": found.label,
                "bbox": [x, y, width, height],
                "area": shortest_float(areas[number]) if len(areas) else width * height,
                "iscrowd": int(crowds[number]) if len(crowds) else 0,
            }
            if len(masks):
                document["segmentation"] = _run_lengths(masks[number], image)
            annotations.append(document)
        return annotations


def _run_lengths(data: bytes, image: ExportedImage) -> dict[str, Any]:
    """Encode a mask as COCO's uncompressed run lengths: by columns, starting with zeros."""
    try:
        mask = decode_mask(data) != 0
    except DataError as error:
        raise SourceError(f"an instance mask cannot be read: {error.detail}") from None
    if mask.shape != (image.height, image.width):
        raise SourceError(
            f"an instance mask has {mask.shape[1]} x {mask.shape[0]} pixels, but its image has "
            f"{image.width} x {image.height}"
        )
    flat = mask.ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = np.concatenate(([0] if not flat[0] else [0, 0], changes, [len(flat)]))
    return {"size": [image.height, image.width], "counts": np.diff(bounds).tolist()}


def _append(file: IO[bytes], count: int, document: dict[str, Any]) -> None:
    comma = b"," if count else b""
    file.write(comma + b"\n" + json.dumps(document, allow_nan=False).encode())


def _copy(part: IO[bytes], file: IO[bytes], gap: bytes, numbers: Iterator[int]) -> None:
    """Copy all lines, and insert the next number at each gap."""
    part.seek(0)
    for number in numbers:
        for line in part:
            if gap in line[: len(_LONGEST_START)]:
                file.write(line.replace(b"null", b"%d" % number, 1))
                break
            file.write(line)
    shutil.copyfileobj(part, file, 1 << 20)
    part.close()
