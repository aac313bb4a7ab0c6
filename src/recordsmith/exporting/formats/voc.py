"""PASCAL VOC: images, XML files with boxes, and lists of names for each split.

    JPEGImages/<name>              images, whatever their format
    Annotations/<name>.xml         boxes in pixels
    SegmentationClass/<name>.png   masks
    ImageSets/Main/<split>.txt, ImageSets/Segmentation/<split>.txt
    label_map.pbtxt                class numbers, which the XML files lack

Lists have the names that readers know: those of the splits validation and valid are named val.

Pixels are written as the shortest decimals that restore the same float32 when a reader divides them
by the size of the image.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import BinaryIO
from xml.etree import ElementTree as ET

from recordsmith.dataset import Dataset, standard_name
from recordsmith.exporting.boxes import BoxFolder, BoxSample, Object, decimal, pixels
from recordsmith.exporting.export_writer import ExportWriter
from recordsmith.exporting.images import ExportedImage
from recordsmith.format.example import Features
from recordsmith.format.example.feature_values import all_ints, all_texts, first_int
from recordsmith.format.example.keys import (
    DEPTH,
    OBJECT_DIFFICULT,
    OBJECT_TRUNCATED,
    OBJECT_VIEW,
    SOURCE_ID,
)
from recordsmith.image import read_image_header
from recordsmith.support.errors import DataError, SourceError

_IMAGES, _BOXES, _MASKS = "JPEGImages", "Annotations", "SegmentationClass"
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class VocFiles(BoxFolder):
    also_kept = frozenset((SOURCE_ID, OBJECT_DIFFICULT, OBJECT_TRUNCATED, OBJECT_VIEW))

    def begin(self, dataset: Dataset, out: ExportWriter) -> None:
        super().begin(dataset, out)
        self._has_boxes = False
        self._lists: dict[str, BinaryIO] = {}
        names: dict[str, str] = {}  # readers know train, val, trainval and test
        for split in out.splits:
            name = standard_name(split)
            is_free = name is not None and name not in (*out.splits, *names.values())
            names[split] = name if name is not None and is_free else split
        out.rename_split = names.__getitem__

    def write(self, sample: BoxSample) -> None:
        example, split, image, mask, objects = sample
        out = self._out
        self._has_boxes |= objects is not None
        if objects is None and mask is None:
            objects = []
        _check(objects or (), image)
        companions = [] if objects is None else [(_BOXES, ".xml")]
        name, suffix = out.write_image(
            example, image, _IMAGES, mask=mask, masks=_MASKS, flat=True, companions=companions
        )
        if objects is not None:
            document = _annotation(example, image, name + suffix, objects, mask is not None)
            out.write(f"{_BOXES}/{name}.xml", document)
            self._list("Main", split, name)
        if mask is not None:
            self._list("Segmentation", split, name)

    def finish(self) -> None:
        super().finish()
        for name in self._lists:
            self._out.close(name)
        if self._has_boxes:
            self.write_label_map(self._classes.names)

    def _list(self, kind: str, split: str, name: str) -> None:
        path = f"ImageSets/{kind}/{self._out.split_name(split)}.txt"
        if path not in self._lists:
            self._lists[path] = self._out.open(path)
        self._lists[path].write(f"{name}\n".encode())


def _check(objects: Sequence[Object], image: ExportedImage) -> None:
    """Raise SourceError for what an XML file cannot hold."""
    if objects and not image.height:
        raise SourceError("it has boxes, but the size of its image is unknown")
    for obj in objects:
        if _NO_XML.search(obj.name):
            raise SourceError(f"XML cannot hold the class name {obj.name!r}")


def _annotation(
    example: Features, image: ExportedImage, name: str, objects: Sequence[Object], has_mask: bool
) -> bytes:
    root = ET.Element("annotation")
    _put(root, "folder", _IMAGES)
    _put(root, "filename", name)
    size = ET.SubElement(root, "size")
    _put(size, "width", str(image.width))
    _put(size, "height", str(image.height))
    _put(size, "depth", str(_channel_count(example, image)))
    _put(root, "segmented", str(int(has_mask)))
    views = all_texts(example, OBJECT_VIEW)
    truncated, difficult = (all_ints(example, k) for k in (OBJECT_TRUNCATED, OBJECT_DIFFICULT))
    for number, obj in enumerate(objects):
        item = ET.SubElement(root, "object")
        _put(item, "name", obj.name)
        _put(item, "pose", views[number] if len(views) == len(objects) else "Unspecified")
        for key, values in (("truncated", truncated), ("difficult", difficult)):
            _put(item, key, str(values[number]) if len(values) == len(objects) else "0")
        box = ET.SubElement(item, "bndbox")
        for edge in ("xmin", "ymin", "xmax", "ymax"):
            size_of_axis = image.width if edge.startswith("x") else image.height
            _put(box, edge, decimal(pixels(getattr(obj, edge), size_of_axis)))
    ET.indent(root)
    return bytes(ET.tostring(root, "utf-8")) + b"\n"


def _put(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = _NO_XML.sub("_", text)


def _channel_count(example: Features, image: ExportedImage) -> int:
    for key in (DEPTH, "image/channels"):
        known = first_int(example, key)
        if known is not None:
            return known
    try:
        return read_image_header(image.data).channels
    except DataError:
        return 3  # as in VOC itself
