"""COCO: a folder with images and a JSON file with boxes for each split.

    <split>/<name>
    annotations/instances_<split>.json
    annotations/captions_<split>.json    captions of images, if any
    masks/<split>/<name>.png             class masks, if any

A box is x, y, width and height in pixels, as the shortest numbers that restore the same float32
when a reader computes x / width and (x + w) / width; so are keypoints, as many for each object as
its class has. Instance masks become run lengths. If the
first image of a split has an integer as its source id, the source ids are the ids of the images,
which must differ; otherwise, an id is 1 + the position. Annotations have the ids of their objects
if all of them differ, and categories those of the COCO files that were packed, with their
supercategories. What is not kept is reported. Annotations are written to a temporary file, which is
appended at the end, so memory holds one example, and the ids.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

import numpy as np

from recordsmith.dataset import Dataset, KeypointClass
from recordsmith.exporting.boxes import (
    BoxFolder,
    BoxSample,
    Object,
    is_same,
    pixel_extent,
    pixels,
    shortest_float,
)
from recordsmith.exporting.dataset_card import steps_of
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.images import ExportedImage
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import all_floats, all_ints, all_texts, first_text
from recordsmith.format.example.keys import (
    CAPTION,
    KEYPOINT,
    KEYPOINT_NUM,
    OBJECT_AREA,
    OBJECT_ATTRIBUTE,
    OBJECT_ID,
    OBJECT_IS_CROWD,
    OBJECT_MASK,
    SOURCE_ID,
)
from recordsmith.image import IMAGE_SUFFIXES, decode_mask
from recordsmith.support.errors import DataError, SourceError

_NO_ID = -1
_MAX_DIGITS = 10  # of a label
_IMAGE_SUFFIXES = tuple(IMAGE_SUFFIXES)
_INTEGER = re.compile("-?[0-9]{1,19}")


@dataclass
class _Document:
    """A JSON file of a split, and its annotations so far."""

    name: str
    file: BinaryIO
    annotations: IO[bytes]
    annotation_ids: array[int] = field(default_factory=lambda: array("q"))
    is_begun: bool = False

    def add(self, image: dict[str, Any], ids: Sequence[int], items: Sequence[Any]) -> None:
        """Add an image with its annotations."""
        comma = b"," if self.is_begun else b""
        self.file.write(comma + b"\n" + json.dumps(image, allow_nan=False).encode())
        self.is_begun = True
        for number, annotation in zip(ids, items, strict=True):
            document = {"image_id": image["id"], **annotation}
            self.annotations.write(json.dumps(document, allow_nan=False).encode() + b"\n")
            self.annotation_ids.append(number)


@dataclass
class _Split:
    """The files of a split by their tasks, instances and captions, and the ids of its images."""

    keeps_ids: bool
    ids: set[int] = field(default_factory=set)
    documents: dict[str, _Document] = field(default_factory=dict)


class CocoFiles(BoxFolder):
    also_kept = frozenset(
        (
            *(SOURCE_ID, OBJECT_IS_CROWD, OBJECT_AREA, OBJECT_MASK, OBJECT_ID, CAPTION),
            *(*KEYPOINT, KEYPOINT_NUM),
        )
    )

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        self._splits: dict[str, _Split] = {}
        self._categories = _packed_categories(dataset)
        self._points = dict(dataset.keypoint_classes)
        self._has_points = bool(self._points)
        out.reserve(("annotations", "masks"))

    def write(self, sample: BoxSample) -> None:
        example, split, image, mask, objects = sample
        out = self._out
        if not image.height:
            raise SourceError("the size of the image is unknown")
        tasks: dict[str, tuple[Sequence[int], list[dict[str, Any]]]] = {}
        if objects is not None or mask is not None or CAPTION not in example:
            annotations = self._annotations(example, image, objects or ())
            object_ids = all_ints(example, OBJECT_ID).tolist() or [_NO_ID] * len(annotations)
            if len(object_ids) != len(annotations):
                raise SourceError(
                    f"{OBJECT_ID} has {len(object_ids)} values for {len(annotations)} boxes"
                )
            tasks["instances"] = object_ids, annotations
        if CAPTION in example:
            captions = [{"caption": self._text(text)} for text in all_texts(example, CAPTION)]
            tasks["captions"] = [_NO_ID] * len(captions), captions
            self._is_empty = False
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
            part = self._splits[split] = _Split(keeps_ids)
            known_id = first_text(example, SOURCE_ID) or ""
            if known_id and not keeps_ids and not known_id.lower().endswith(_IMAGE_SUFFIXES):
                out.tally.problems.add(
                    f"the images of split {split!r} have new ids: {SOURCE_ID} {known_id!r:.60} is "
                    "not an integer"
                )
        document = {
            "id": image_id,
            "file_name": f"{name}{suffix}",
            "width": image.width,
            "height": image.height,
        }
        part.ids.add(image_id)
        for task, (ids, items) in tasks.items():
            if task not in part.documents:
                part.documents[task] = self._begin(f"annotations/{task}_{folder}.json")
            part.documents[task].add(document, ids, items)

    def finish(self) -> None:
        super().finish()
        categories = [
            {
                "id": self._category_id(label, name),
                "name": name,
                **self._supercategory(label, name),
                **self._skeleton(label),
            }
            for label, name in sorted(self._classes.names.items())
        ]
        if any(known.flip_pairs is not None for known in self._points.values()):
            self._out.tally.problems.add(
                "COCO has no flip pairs of keypoints, so they are left out"
            )
        first = 1
        documents = (item for split in self._splits.values() for item in split.documents.items())
        for task, part in documents:
            part.file.write(b'\n], "annotations": [')
            part.annotations.seek(0)
            ids: Sequence[int] = part.annotation_ids
            if min(ids, default=0) < 0 or len(set(ids)) < len(ids):
                ids = range(first, first + len(ids))
                if max(part.annotation_ids) >= 0:
                    self._out.tally.problems.add(
                        f"the annotations of {part.name} have new ids: {OBJECT_ID} is missing in "
                        "some records, or repeated"
                    )
            first += len(ids)
            for number, (annotation_id, line) in enumerate(zip(ids, part.annotations, strict=True)):
                comma = "," if number else ""
                part.file.write(f'{comma}\n{{"id": {annotation_id}, '.encode() + line[1:-1])
            if task == "instances":
                part.file.write(b'\n], "categories": ' + json.dumps(categories).encode() + b"}\n")
            else:
                part.file.write(b"\n]}\n")
            self._out.close(part.name)

    def _category_id(self, label: int, name: str) -> int:
        """The id that the category had in the COCO file that was packed, or the label."""
        category_id = self._categories.get((label, name), {}).get("id", label)
        return category_id if isinstance(category_id, int) else label

    def _supercategory(self, label: int, name: str) -> dict[str, str]:
        known = self._categories.get((label, name), {}).get("supercategory")
        return {"supercategory": known} if isinstance(known, str) else {}

    def _skeleton(self, label: int) -> dict[str, Any]:
        points = self._points.get(label)
        if points is None:
            return {}
        skeleton = [[first + 1, second + 1] for first, second in points.skeleton]
        return {"keypoints": points.names, "skeleton": skeleton}

    def _begin(self, name: str) -> _Document:
        file = self._out.open(name)
        file.write(b'{"images": [')
        return _Document(name, file, self._out.temporary_file())

    def _text(self, text: str) -> str:
        """A text as JSON can have it."""
        plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if plain != text:
            self._out.warn("bytes of a text that are not UTF-8 were replaced")
        return plain

    def _attributes(self, values: Mapping[str, Any], number: int) -> dict[str, Any]:
        """The attributes of an object, without empty texts."""
        found: dict[str, Any] = {}
        for key, of_objects in values.items():
            value = of_objects[number] if len(of_objects) else b""
            if isinstance(value, np.float32):
                value = shortest_float(value) if np.isfinite(value) else None
            elif isinstance(value, np.int64):
                value = int(value)
            else:
                value = self._text(value.decode("utf-8", "surrogateescape")) or None
            if value is not None:
                found[key.removeprefix(OBJECT_ATTRIBUTE)] = value
        return found

    def _annotations(
        self, example: Features, image: ExportedImage, objects: Sequence[Object]
    ) -> list[dict[str, Any]]:
        crowds, areas = all_ints(example, OBJECT_IS_CROWD), all_floats(example, OBJECT_AREA)
        masks: Any = example.get(OBJECT_MASK, [])
        attributes = {k: v for k, v in example.items() if k.startswith(OBJECT_ATTRIBUTE)}
        self.also_kept |= attributes.keys()
        listed = {OBJECT_IS_CROWD: crowds, OBJECT_AREA: areas, OBJECT_MASK: masks, **attributes}
        for key, values in listed.items():
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
                "category_id": self._category_id(box.label, box.name),
                "bbox": [x, y, width, height],
                "area": shortest_float(areas[number]) if len(areas) else width * height,
                "iscrowd": int(crowds[number]) if len(crowds) else 0,
            }
            if len(masks):
                document["segmentation"] = _run_lengths(masks[number], image)
            if known := self._attributes(attributes, number):
                document["attributes"] = known
            if box.points:
                document |= self._keypoints(box, image)
            annotations.append(document)
        return annotations

    def _keypoints(self, box: Object, image: ExportedImage) -> dict[str, Any]:
        """The keypoints in pixels, as many as its class has; of unknown ones, numbers are names."""
        if not self._has_points:
            self._points[box.label] = KeypointClass(tuple(map(str, range(len(box.points)))))
        count = len(self._points[box.label].names) if box.label in self._points else 0
        if len(box.points) < count or any(visible for *_, visible in box.points[count:]):
            raise SourceError(f"an object of class {box.name!r:.60} has other keypoints than that")
        numbers: list[float] = []
        for x, y, visible in box.points[:count]:
            numbers += (pixels(x, image.width), pixels(y, image.height), int(visible))
        labelled = sum(visible > 0 for visible in numbers[2::3])
        return {"keypoints": numbers, "num_keypoints": labelled} if count else {}


def _packed_categories(dataset: Dataset) -> dict[tuple[int, str], Mapping[str, Any]]:
    """What the manifest has on the categories of a packed COCO file, by label and name."""
    packed: dict[tuple[int, str], Mapping[str, Any]] = {}
    for step in steps_of(dataset):
        source = step.get("source")
        categories = source.get("categories") if isinstance(source, Mapping) else None
        for label, known in categories.items() if isinstance(categories, Mapping) else ():
            if isinstance(known, Mapping) and label.isdecimal() and len(label) < _MAX_DIGITS:
                packed[int(label), str(known.get("name"))] = known
    return packed


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
    text = first_text(example, SOURCE_ID) or ""
    number = int(text) if _INTEGER.fullmatch(text) else 2**63
    return number if -(2**63) <= number < 2**63 else None
