"""PASCAL VOC: a picture, an XML file with its boxes, lists of names for each split.

    JPEGImages/<name>              pictures, whatever their format
    Annotations/<name>.xml         boxes in pixels
    SegmentationClass/<name>.png   masks
    ImageSets/Main/<split>.txt, ImageSets/Segmentation/<split>.txt
    label_map.pbtxt                numbers of classes, which the XML files do not hold

A pixel is written as the shortest decimal that gives the very same float32 when a reader divides
it by the size of the picture.
"""

from __future__ import annotations

import re
from typing import BinaryIO
from xml.etree import ElementTree as ET

from recordsmith.dataset import LABEL_MAP_NAME, Dataset, class_names_of, label_map_to_bytes
from recordsmith.errors import CorruptDataError, OptionError, SourceError
from recordsmith.example import Features
from recordsmith.example.keys import (
    DEPTH,
    OBJECT_DIFFICULT,
    OBJECT_TRUNCATED,
    OBJECT_VIEW,
    SOURCE_ID,
)
from recordsmith.exporting.numbers import decimal, pixels
from recordsmith.exporting.objects import OBJECT_KEYS, Classes, Object, has_objects, read_objects
from recordsmith.exporting.outbox import Outbox
from recordsmith.exporting.pictures import (
    MASK_KEYS,
    PICTURE_KEYS,
    Picture,
    read_mask,
    read_picture,
)
from recordsmith.exporting.values import int_of, ints_of, texts_of
from recordsmith.image import channel_count

_PICTURES, _BOXES, _MASKS = "JPEGImages", "Annotations", "SegmentationClass"
_KEPT = (
    PICTURE_KEYS
    | MASK_KEYS
    | OBJECT_KEYS
    | {
        SOURCE_ID,
        OBJECT_DIFFICULT,
        OBJECT_TRUNCATED,
        OBJECT_VIEW,
    }
)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class VocFiles:
    """Writes pictures, XML files with their boxes, and masks."""

    def begin(self, dataset: Dataset, out: Outbox) -> None:
        self._out = out
        self._classes = Classes.known(dataset.class_names)
        self._has_boxes = False
        self._lists: dict[str, BinaryIO] = {}

    def add(self, example: Features, split: str, position: int) -> None:
        out = self._out
        picture = read_picture(example, out.tell)
        mask = read_mask(example, picture, out.tell)
        beside = []
        objects = None
        if has_objects(example) or mask is None:
            objects = self._objects(example, picture)
            beside.append((_BOXES, ".xml"))
        name, suffix = out.write_picture(
            example, picture, _PICTURES, mask=mask, masks=_MASKS, flat=True, beside=beside
        )
        if objects is not None:
            document = _annotation(example, picture, name + suffix, objects, mask is not None)
            out.write(f"{_BOXES}/{name}.xml", document)
            self._list("Main", split, name)
        if mask is not None:
            self._list("Segmentation", split, name)
        out.leave_out(example, _KEPT)

    def finish(self) -> None:
        for name in self._lists:
            self._out.close(name)
        if self._has_boxes and self._classes.names:
            try:
                names = class_names_of(self._classes.names)
            except OptionError as error:
                self._out.problems.append(f"no {LABEL_MAP_NAME} was written: {error}")
            else:
                self._out.write(LABEL_MAP_NAME, label_map_to_bytes(names))

    def _objects(self, example: Features, picture: Picture) -> list[Object]:
        if not has_objects(example):
            return []
        self._has_boxes = True
        objects = read_objects(example, self._classes, self._out.tell)
        if objects and not picture.height:
            raise SourceError("it has boxes, and nothing tells the size of its picture in pixels")
        for found in objects:
            if _NO_XML.search(found.name):
                raise SourceError(f"XML cannot hold the name of its class, {found.name!r}")
        return objects

    def _list(self, kind: str, split: str, name: str) -> None:
        path = f"ImageSets/{kind}/{self._out.split_name(split)}.txt"
        if path not in self._lists:
            self._lists[path] = self._out.open(path)
        self._lists[path].write(f"{name}\n".encode())


def _annotation(
    example: Features, picture: Picture, name: str, objects: list[Object], has_mask: bool
) -> bytes:
    root = ET.Element("annotation")
    _put(root, "folder", _PICTURES)
    _put(root, "filename", name)
    size = ET.SubElement(root, "size")
    _put(size, "width", str(picture.width))
    _put(size, "height", str(picture.height))
    _put(size, "depth", str(_channel_count(example, picture)))
    _put(root, "segmented", str(int(has_mask)))
    views = texts_of(example, OBJECT_VIEW)
    truncated, difficult = (ints_of(example, k) for k in (OBJECT_TRUNCATED, OBJECT_DIFFICULT))
    for number, found in enumerate(objects):
        item = ET.SubElement(root, "object")
        _put(item, "name", found.name)
        _put(item, "pose", views[number] if len(views) == len(objects) else "Unspecified")
        for key, values in (("truncated", truncated), ("difficult", difficult)):
            _put(item, key, str(values[number]) if len(values) == len(objects) else "0")
        box = ET.SubElement(item, "bndbox")
        _put(box, "xmin", decimal(pixels(found.xmin, picture.width)))
        _put(box, "ymin", decimal(pixels(found.ymin, picture.height)))
        _put(box, "xmax", decimal(pixels(found.xmax, picture.width)))
        _put(box, "ymax", decimal(pixels(found.ymax, picture.height)))
    ET.indent(root)
    return bytes(ET.tostring(root, "utf-8")) + b"\n"


def _put(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = _NO_XML.sub("_", text)


def _channel_count(example: Features, picture: Picture) -> int:
    for key in (DEPTH, "image/channels"):
        known = int_of(example, key)
        if known is not None:
            return known
    try:
        return channel_count(picture.data)
    except CorruptDataError:
        return 3  # as VOC's own have
