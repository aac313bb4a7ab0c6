"""CreateML: a JSON list of images, each with boxes about their centres in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    checked_numbers,
    decode_json,
    json_text,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.known_formats import is_json_with


class _Image(msgspec.Struct):
    """An entry, with the keys of Apple's two versions."""

    image: str = ""
    imagefilename: str = ""
    annotations: list[Any] | None = None
    annotation: list[Any] | None = None


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    data = json_text(file.location.read(), file.name)
    entries = decode_json(data, file.name, list[msgspec.Raw], "a list of images (CreateML)")
    for number, entry in enumerate(entries, 1):
        where = f"image {number}"
        image: _Image = decode_json(entry, file.name, _Image, where)
        items = islice(image.annotations or image.annotation or (), MAX_OBJECTS + 1)
        objects = [_object(f"{where}, annotation {n}", item) for n, item in enumerate(items, 1)]
        yield AnnotatedImage(where, image.image or image.imagefilename, objects=objects)


def _object(where: str, item: Any) -> AnnotatedObject:
    values = item if isinstance(item, Mapping) else {}
    box = values.get("coordinates")
    try:
        known = box if isinstance(box, Mapping) else {}
        x, y, width, height = checked_numbers(known, ("x", "y", "width", "height"))
    except ValueError as error:
        return AnnotatedObject(where, "", fault=f"coordinates: {error}")
    corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    label = values.get("label")
    return AnnotatedObject(where, label if isinstance(label, str) else "", corners)


class CreateML(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "createml",
        ".json",
        is_json_with(
            "[",
            "image annotations label coordinates width",
            "image annotation label coordinates width",
            "imagefilename annotation label coordinates width",
            "imagefilename annotations label coordinates width",
        ),
        parse,
        what="images and boxes of {} (CreateML)",
        file_what="a JSON file of CreateML",
        file_suffixes=(".json",),
        expected="a .json file of CreateML next to its images",
        has_outlines=False,
    ),
):
    """Images with boxes in Apple's CreateML JSON format, also one file for each split.

    Each sample has the image and box features of `Voc`. Coordinates are the centre and the size of
    a box in pixels.

    Example:
        rs.pack(rs.CreateML("animals"), "packed")
    """
