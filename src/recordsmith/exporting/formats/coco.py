"""COCO: a folder with images and a JSON file with boxes for each split.

    <split>/<name>
    annotations/instances_<split>.json
    masks/<split>/<name>.png             class masks, if any

A box is x, y, width and height in pixels, as the shortest numbers that restore the same float32
when a reader computes x / width and (x + w) / width. Instance masks become run lengths. If the
first image of a split has an integer as its source id, the source ids are the ids of the images,
which must differ; otherwise, an id is 1 + the position. Annotations are written to a temporary
file, which is appended at the end, so memory holds one example.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

import numpy as np

from recordsmith.dataset import Dataset
from recordsmith.errors import DataError, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import OBJECT_AREA, OBJECT_IS_CROWD, OBJECT_MASK, SOURCE_ID
from recordsmith.exporting.boxes import (
    BoxFolder,
    Object,
    is_same,
    pixel_extent,
    pixels,
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


@dataclass
class _Split:
    """The JSON file of a split, its annotations so far, and the ids of its images."""

    name: str
    file: BinaryIO
    annotations: IO[bytes]
    keeps_ids: bool
    ids: set[int] = field(default_factory=set)
    annotation_count: int = 0


class CocoFiles(BoxFolder, format="coco", what="images and JSON files with boxes"):
    """Writes images, and JSON files with their boxes."""

    also_kept = frozenset((SOURCE_ID, OBJECT_IS_CROWD, OBJECT_AREA, OBJECT_MASK))

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        self._splits: dict[str, _Split] = {}
        self._annotation_count = 0
        out.reserve(("annotations", "masks"))

    def write(
        self,
        example: Features,
        split: str,
        image: ExportedImage,
        mask: ExportedImage | None,
        objects: Sequence[Object] | None,
    ) -> None:
        out = self._out
        if not image.height:
            raise SourceError("the size of the image is unknown")
        annotations = self._annotations(example, image, objects or ())
        source_id = _source_id(example)
        part = self._splits.get(split)
        keeps_ids = source_id is not None if part is None else part.keeps_ids
        image_id = source_id if keeps_ids else 1 + out.position
        if image_id is None or (part is not None and image_id in part.ids):
            problem = "is not an integer" if image_id is None else "is that of an earlier image"
            raise SourceError(
                f"its {SOURCE_ID} {problem}, and the first image has an integer",
                remedy=f"Or number the images: drop {SOURCE_ID} with `recordsmith edit` first.",
            )
        folder = out.split_name(split)
        name, suffix = out.write_image(example, image, folder, mask=mask, masks=f"masks/{folder}")
        if part is None:
            part = self._splits[split] = self._begin_split(split, keeps_ids)
        document = {
            "id": image_id,
            "file_name": f"{name}{suffix}",
            "width": image.width,
            "height": image.height,
        }
        _append(part.file, bool(part.ids), document)
        part.ids.add(image_id)
        for annotation in annotations:
            self._annotation_count += 1
            document = {"id": self._annotation_count, "image_id": image_id, **annotation}
            _append(part.annotations, bool(part.annotation_count), document)
            part.annotation_count += 1

    def finish(self) -> None:
        super().finish()
        categories = [
            {"id": label, "name": name} for label, name in sorted(self._classes.names.items())
        ]
        for part in self._splits.values():
            part.file.write(b'\n], "annotations": [')
            part.annotations.seek(0)
            shutil.copyfileobj(part.annotations, part.file)
            part.file.write(b'\n], "categories": ' + json.dumps(categories).encode() + b"}\n")
            self._out.close(part.name)

    def _begin_split(self, split: str, keeps_ids: bool) -> _Split:
        name = f"annotations/instances_{self._out.split_name(split)}.json"
        file = self._out.open(name)
        file.write(b'{"images": [')
        return _Split(name, file, self._out.temporary_file(), keeps_ids)

    def _annotations(
        self, example: Features, image: ExportedImage, objects: Sequence[Object]
    ) -> list[dict[str, Any]]:
        crowds, areas = get_ints(example, OBJECT_IS_CROWD), get_floats(example, OBJECT_AREA)
        masks: Any = example.get(OBJECT_MASK, [])
        for key, values in ((OBJECT_IS_CROWD, crowds), (OBJECT_AREA, areas), (OBJECT_MASK, masks)):
            if len(values) not in (0, len(objects)):
                raise SourceError(f"{key} has {len(values)} values for {len(objects)} boxes")
        annotations: list[dict[str, Any]] = []
        for number, box in enumerate(objects):
            x, y = pixels(box.xmin, image.width), pixels(box.ymin, image.height)
            width = pixel_extent(x, box.xmax, image.width)
            height = pixel_extent(y, box.ymax, image.height)
            stop = ((x + width) / image.width, (y + height) / image.height)
            if not (is_same(stop[0], box.xmax) and is_same(stop[1], box.ymax)):
                self._out.warn(f"box {number}: its edges cannot be restored exactly")
            document: dict[str, Any] = {
                "category_id": box.label,
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


def _source_id(example: Features) -> int | None:
    """Return the source id of a record if it is an integer."""
    text = get_text(example, SOURCE_ID) or ""
    number = int(text) if _INTEGER.fullmatch(text) else 2**63
    return number if -(2**63) <= number < 2**63 else None


def _append(file: IO[bytes], has_earlier: bool, document: dict[str, Any]) -> None:
    comma = b"," if has_earlier else b""
    file.write(comma + b"\n" + json.dumps(document, allow_nan=False).encode())
