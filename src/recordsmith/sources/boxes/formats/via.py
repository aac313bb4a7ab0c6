"""VGG Image Annotator (VIA): JSON of projects or annotations, or CSV with a row for each region.

Which attribute of regions is their class shows only when all are known, so they are parsed twice.
"""

from __future__ import annotations

import codecs
import io
import json
import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    decode_json,
    ellipse,
    encoding_error,
    json_text,
    outlined,
    text_as_utf8,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.formats.csv_boxes import csv_rows
from recordsmith.sources.boxes.known_formats import is_json_with
from recordsmith.sources.problems import join_names
from recordsmith.support.errors import SourceError, option

_WITHOUT_CLASS = "object"
_CLASS_NAMES = ("class", "label", "name", "type")
_PROJECT = "_via_img_metadata"
_EXPORT = re.compile(r"via_(region_data|export)[^/]*$")
_CELLS = ("filename", "file_attributes", "region_shape_attributes", "region_attributes")
_NUMBERS = {"rect": "x y width height", "circle": "cx cy r r", "ellipse": "cx cy rx ry"}
_WITHOUT_BOX = ("point", "polyline")
_OTHER_SHAPES = "points and lines were left out, because they have no box"
_OF_IMAGES = "attributes of images were left out"
_is_json = is_json_with(
    "{",
    f"_via_settings {_PROJECT}",
    "filename regions file_attributes",
    "filename regions shape_attributes",
)


class _Image(msgspec.Struct):
    filename: str
    regions: list[Any] | dict[str, Any] | None = None
    file_attributes: dict[str, Any] | None = None


class _Region(NamedTuple):
    where: str
    shape: Mapping[str, Any]
    attributes: Mapping[str, str | float]


def matches(head: bytes) -> bool:
    line = head.partition(b"\n")[0]
    return _is_json(head) or all(cell.encode() in line for cell in _CELLS)


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    data = text_as_utf8(file.location.read(), file.name).removeprefix(codecs.BOM_UTF8)
    entries = (_of_json if data.lstrip().startswith(b"{") else _of_rows)(data, file.name)
    names = {
        name: None
        for where, entry in entries.items()
        for region in _regions(decode_json(entry, file.name, _Image, where), where)
        for name, value in region.attributes.items()
        if value != ""
    }
    class_attribute = _find_class(file, [*names])
    for where, entry in entries.items():
        image: _Image = decode_json(entry, file.name, _Image, where)
        values = _values(image.file_attributes)
        captions = [str(caption)] if (caption := values.pop("caption", "")) != "" else ()
        others = join_names(name for name, value in values.items() if value != "")
        notes = [(_OF_IMAGES, f"{file.name}, {where}: {others}")] if others else []
        objects = []
        for region in _regions(image, where):
            if region.shape.get("name") in _WITHOUT_BOX:
                place = f"{file.name}, {region.where}: {region.shape['name']}"
                notes.append((_OTHER_SHAPES, place))
            else:
                objects.append(_object(region, class_attribute))
        yield AnnotatedImage(where, image.filename, objects=objects, notes=notes, captions=captions)


def _of_json(data: bytes, name: str) -> dict[str, msgspec.Raw]:
    """The entries of images, by where they are."""
    kind, what = dict[str, msgspec.Raw], "annotations of VGG Image Annotator"
    entries = decode_json(json_text(data, name), name, kind, what)
    if _PROJECT in entries:
        entries = decode_json(bytes(entries[_PROJECT]), name, kind, what)
    return {f"image {number}": entry for number, entry in enumerate(entries.values(), 1)}


def _of_rows(data: bytes, name: str) -> dict[str, msgspec.Raw]:
    """The rows of each image as an entry of JSON, by the first line."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise encoding_error(name, line=data.count(b"\n", 0, error.start) + 1) from None
    rows = csv_rows(io.StringIO(text, newline=""), ",", name)
    header = [cell.strip().lstrip("#") for cell in next(rows, (0, []))[1]]
    if missing := [cell for cell in _CELLS if cell not in header]:
        raise SourceError(f"missing column {missing[0]}", path=name, line=1)
    columns = [header.index(cell) for cell in _CELLS]
    images: dict[str, tuple[str, bytearray]] = {}
    for line, row in rows:
        if not row:
            continue
        if len(row) < len(header):
            problem = f"found {len(row)} columns; expected {len(header)}"
            raise SourceError(problem, path=name, line=line)
        image, *texts = (row[column] for column in columns)
        for key, cell in zip(_CELLS[1:], texts, strict=True):
            try:
                msgspec.json.decode(cell or "{}", type=dict[str, Any])
            except (ValueError, RecursionError):
                problem = f"{key}: found {cell!r:.60}; expected an object of JSON"
                raise SourceError(problem, path=name, line=line) from None
        of_image, shape, attributes = (cell.strip() or "{}" for cell in texts)
        start = f'{{"filename":{json.dumps(image)},"file_attributes":{of_image},"regions":['
        _, regions = images.setdefault(image, (f"line {line}", bytearray(start.encode())))
        if shape != "{}":
            comma = "," * (not regions.endswith(b"["))
            region = f'"shape_attributes":{shape},"region_attributes":{attributes}'
            regions += f'{comma}{{"line":{line},{region}}}'.encode()
    return {where: msgspec.Raw(bytes(entry + b"]}")) for where, entry in images.values()}


def _regions(image: _Image, where: str) -> Iterator[_Region]:
    items = image.regions.values() if isinstance(image.regions, dict) else image.regions or ()
    for number, item in enumerate(islice(items, MAX_OBJECTS + 1), 1):
        region = item if isinstance(item, dict) else {}
        shape, line = region.get("shape_attributes"), region.get("line")
        place = f"line {line}" if type(line) is int else f"{where}, region {number}"
        values = _values(region.get("region_attributes"))
        yield _Region(place, shape if isinstance(shape, dict) else {}, values)


def _values(attributes: Any) -> dict[str, str | float]:
    """The attributes of a region or image; of checkboxes, the names of those that are set."""
    values: dict[str, str | float] = {}
    for name, value in attributes.items() if isinstance(attributes, dict) else ():
        if isinstance(value, dict):
            values[name] = ", ".join(key for key, is_set in value.items() if is_set)
        else:
            is_number = type(value) in (int, float)
            values[name] = value if is_number else str("" if value is None else value).strip()
    return values


def _find_class(file: AnnotationFile, names: list[str]) -> str | None:
    """The attribute that is the class of regions; None if they have no attributes."""
    if file.class_from:  # replaces the class of all
        return None
    if not names:
        file.notices.append(
            f"the regions in {file.name} have no attributes: the class of all is {_WITHOUT_CLASS}"
        )
        return None
    likely = [name for name in names if name.lower() in _CLASS_NAMES]
    if len(names) == 1 or len(likely) == 1:
        return (likely or names)[0]
    raise SourceError(
        f"the class of regions may be any of their attributes {join_names(likely or names)}",
        path=file.name,
        remedy=f"Choose it with {option('class_from', (likely or names)[0])}.",
    )


def _object(region: _Region, class_attribute: str | None) -> AnnotatedObject:
    where, shape, attributes = region.where, region.shape, {**region.attributes}
    name, kind = _WITHOUT_CLASS, shape.get("name")
    if class_attribute is not None:
        name = str(attributes.pop(class_attribute, ""))
    values = [to_float(shape.get(key)) for key in _NUMBERS.get(str(kind), "").split()]
    points: list[tuple[float, float]] = []
    if kind == "polygon":
        xs, ys = shape.get("all_points_x"), shape.get("all_points_y")
        if isinstance(xs, list) and isinstance(ys, list) and len(xs) == len(ys):
            points = [*zip(map(to_float, xs), map(to_float, ys), strict=True)]
    elif kind == "rect":
        x, y, width, height = values
        item = AnnotatedObject(where, name, (x, y, x + width, y + height), "box")
        return item._replace(attributes=attributes)
    elif kind in _NUMBERS:
        x, y, radius_x, radius_y = values
        points = ellipse(x, y, radius_x, radius_y, to_float(shape.get("theta") or 0))
    if not name:
        return AnnotatedObject(where, "", fault=f"the attribute {class_attribute!r} is empty")
    if not points or not all(math.isfinite(value) for point in points for value in point):
        return AnnotatedObject(where, name, fault=f"invalid region {dict(shape)!r:.60}")
    return outlined(where, name, points)._replace(attributes=attributes)


class Via(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "via",
        ".json",
        matches,
        parse,
        what="images and regions of {} (VGG Image Annotator)",
        file_what="a file of VGG Image Annotator",
        file_suffixes=(".json", ".csv"),
        has_attributes=True,
        expected="a .json or .csv file of VGG Image Annotator (VIA 1 or 2) next to its images",
    ),
):
    """Images with the regions of VGG Image Annotator: JSON of a project or annotations, or CSV.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons,
    circles and ellipses become the boxes around them; points and lines are left out. The class of a
    region is its only attribute, or the one called `class`, `label`, `name` or `type`. Its other
    attributes are those of the object; of images, only the `caption` is read.

    Example:
        rs.pack(rs.Via("balloon", object_masks="instance"), "packed")
    """

    @staticmethod
    def _chosen(paths: Sequence[str]) -> Sequence[str]:
        """What VIA exported, not the project next to it; JSON rather than CSV."""
        exports = {posixpath.dirname(path): path for path in sorted(paths) if _EXPORT.search(path)}
        return [path for path in paths if exports.get(posixpath.dirname(path), path) == path]
