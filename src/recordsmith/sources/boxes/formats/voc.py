"""PASCAL VOC: one XML file with boxes per image, in any of the common layouts.

Listing reads every XML file for the names of classes and images, and keeps the content, because
parsing it again would take longer than the rest of the sample.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, TypeAlias
from xml.parsers import expat

from recordsmith.format.example.keys import OBJECT_DIFFICULT, OBJECT_TRUNCATED, OBJECT_VIEW
from recordsmith.sources.boxes.annotation import (
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Corners,
    has_elements,
    parse_xml,
    rotated_object,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import PerImageAnnotationSource
from recordsmith.sources.boxes.known_formats import recognise_annotations
from recordsmith.sources.files.file_tree import HEAD_BYTES
from recordsmith.stores import read_document
from recordsmith.support.errors import SourceError

_Values: TypeAlias = dict[str, "_Values | str"]
"""Tag -> text, or the content of the first element with that tag."""

_ROOT = re.compile(rb"<annotation[\s>]")
_INNER = re.compile(rb"<(filename|folder|size|object)\b")
_MAX_ELEMENTS = 250_000  # of an image; each takes some hundred bytes
_PARTS = "parts of objects were left out"
_NAMED = "="  # before the name of an attribute: no tag begins like that
_TRUE = frozenset(("1", "true", "yes"))


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the image of a file; none for XML of another type."""
    data = text_as_utf8(read_document(file.location), file.name, is_xml=True)
    parsed = _elements(data, file.name)
    if parsed is None:
        return
    values, objects = parsed
    has_boxes = any("bndbox" in item or "robndbox" in item for _, item in objects)
    known = None if has_boxes else recognise_annotations(file.name, data[:HEAD_BYTES])
    if known is not None:
        raise SourceError(known.problem, path=file.name, remedy=known.advice)
    size = values.get("size")
    width, height = (size.get("width"), size.get("height")) if isinstance(size, dict) else (0, 0)
    yield AnnotatedImage(
        "",
        _text(values.get("filename")),
        (to_float(width or 0), to_float(height or 0)),
        [_object(line, item)._replace(attributes=_attributes(item)) for line, item in objects],
        notes=[(_PARTS, f"{file.name}, line {line}") for line, item in objects if "part" in item],
    )


def _attributes(values: _Values) -> dict[str, str]:
    """The attributes of an object, as CVAT writes them; `occluded` is only ever true."""
    found = values.get("attributes")
    known = (
        {name[1:]: _text(text) for name, text in found.items() if name[0] == _NAMED}
        if isinstance(found, dict)
        else {}
    )
    is_occluded = _text(values.get("occluded")).lower() in _TRUE
    return known | ({"occluded": "true"} if is_occluded else {})


def _object(line: int, values: _Values) -> AnnotatedObject:
    where, box, name = f"line {line}", values.get("bndbox"), _text(values.get("name"))
    extra = (
        int(_text(values.get("difficult")).lower() in _TRUE),
        int(_text(values.get("truncated")).lower() in _TRUE),
        _text(values.get("pose")),
    )
    if isinstance(box, dict):
        return AnnotatedObject(
            where, name, _numbers(box, "xmin", "ymin", "xmax", "ymax"), None, extra
        )
    if isinstance(oriented := values.get("robndbox"), dict):
        x, y, width, height = _numbers(oriented, "cx", "cy", "w", "h")
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        degrees = math.degrees(to_float(oriented.get("angle")))
        return rotated_object(where, name, corners, degrees, extra)
    return AnnotatedObject(where, name, fault=f"object {name!r} has no bndbox")


def _numbers(values: _Values, *names: str) -> Corners:
    first, second, third, fourth = (to_float(values.get(name)) for name in names)
    return first, second, third, fourth


def _text(value: _Values | str | None) -> str:
    return value if isinstance(value, str) else ""


def _elements(data: bytes, name: str) -> tuple[_Values, list[tuple[int, _Values]]] | None:
    """The values in `annotation`, and each object with its first line."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    open_elements: list[_Values] = [{}]
    objects: list[tuple[int, _Values]] = []
    count = 0
    pieces: list[str] = []  # of the text since the last tag

    def start(tag: str, _: Any) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            raise SourceError(
                f"more than {_MAX_ELEMENTS:,} elements",
                path=name,
                line=parser.CurrentLineNumber,
                remedy="Cut the image into tiles.",
            )
        element: _Values = {}
        if tag == "object" and len(open_elements) == 2:
            objects.append((parser.CurrentLineNumber, element))
        open_elements.append(element)
        pieces.clear()

    def end(tag: str) -> None:
        element = open_elements.pop()
        above = open_elements[-1]
        if tag == "attribute" and "value" in element:
            tag = _NAMED + _text(element.get("name"))
            above.setdefault(tag, element["value"])
        elif tag not in above:  # the first of several is used
            above[tag] = element or "".join(pieces).strip()
        pieces.clear()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    for _ in parse_xml(parser, data, name):
        pass
    if "annotation" not in open_elements[0]:
        return None
    root = open_elements[0]["annotation"]
    return (root if isinstance(root, dict) else {}), objects


class Voc(
    PerImageAnnotationSource,
    box_format=BoxFormat(
        "voc",
        ".xml",
        lambda head: has_elements(head, _ROOT, _INNER),
        parse,
        what="images and boxes of XML files such as {} (PASCAL VOC)",
        expected="Annotations/*.xml with JPEGImages/, annotations/*.xml with images/, or .xml "
        "files next to their images",
        has_outlines=False,
        has_attributes=True,
        features={OBJECT_DIFFICULT: "int64", OBJECT_TRUNCATED: "int64", OBJECT_VIEW: "bytes"},
    ),
):
    """Images with boxes in PASCAL VOC's XML format.

    Each sample has its unchanged image (`image/encoded`, `image/format`, `image/height`,
    `image/width`, `image/filename`, `image/source_id`) and for each object
    `image/object/bbox/ymin`, `xmin`, `ymax`, `xmax` (0 to 1, relative to the stored image),
    `image/object/class/label` (from 1), `image/object/class/text`, `image/object/difficult`,
    `image/object/truncated` and `image/object/view`. Rotated boxes (`robndbox` of roLabelImg)
    have corners, as in `Dota`. Attributes, as CVAT writes them, become
    `image/object/attribute/NAME`, with `occluded` as `true`; parts of objects are left out, with a
    note.

    Example:
        rs.pack(rs.Voc("VOCdevkit/VOC2012", boxes="clip"), "packed")
    """
