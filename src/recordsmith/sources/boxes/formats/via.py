"""VGG Image Annotator (VIA): JSON of projects or annotations, or CSV with a row for each region.

Which attribute of regions is their class shows only when all are known, so they are parsed twice.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from recordsmith.sources.boxes.annotation import (
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    attributes_in,
    checked_numbers,
    decode_json,
    ellipse,
    json_text,
    outlined,
    points_in,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.boxes.formats.csv_boxes import csv_rows, text_lines
from recordsmith.sources.boxes.known_formats import is_json_with
from recordsmith.sources.problems import join_names
from recordsmith.support.errors import SourceError, option

_WITHOUT_CLASS = "object"
_CLASS_NAMES = ("class", "label", "name", "type")
_PROJECT = "_via_img_metadata"
_EXPORT = re.compile(r"via_(region_data|export)[^/]*$")
_CELLS = ("filename", "file_attributes", "region_shape_attributes", "region_attributes")
_NUMBERS = {"rect": "x y width height", "circle": "cx cy r r", "ellipse": "cx cy rx ry theta"}
_WITHOUT_BOX = ("point", "polyline")
_OTHER_SHAPES = "shapes were left out, because points and lines have no box"
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


def matches(head: bytes) -> bool:
    line = head.partition(b"\n")[0]
    return _is_json(head) or all(cell.encode() in line for cell in _CELLS)


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    data = json_text(file.location.read(), file.name)
    images = _of_json if data.lstrip().startswith(b"{") else _of_rows
    names = {
        name: None
        for where, image in images(data, file.name)
        for _, _, attributes in _regions(image, where)
        for name, value in attributes.items()
        if value != ""
    }
    class_attribute = _find_class(file, [*names])
    for where, image in images(data, file.name):
        values = _values(image.file_attributes)
        captions = [str(caption)] if (caption := values.pop("caption", "")) != "" else ()
        others = join_names(name for name, value in values.items() if value != "")
        notes = [(_OF_IMAGES, f"{file.name}, {where}: {others}")] if others else []
        objects = []
        for place, shape, attributes in _regions(image, where):
            if shape.get("name") in _WITHOUT_BOX:
                notes.append((_OTHER_SHAPES, f"{file.name}, {place}: {shape['name']}"))
                continue
            default = _WITHOUT_CLASS if class_attribute is None else ""
            name = str(attributes.pop(class_attribute or "", default)).strip()
            item = _object(place, name, shape)._replace(attributes=attributes)
            fault = "" if name else f"the attribute {class_attribute!r} is empty"
            objects.append(item._replace(fault=fault or item.fault))
        yield AnnotatedImage(where, image.filename, objects=objects, notes=notes, captions=captions)


def _of_json(data: bytes, name: str) -> Iterator[tuple[str, _Image]]:
    """Yield where each image is, and what it has."""
    kind, what = dict[str, msgspec.Raw], "annotations of VGG Image Annotator"
    entries = decode_json(data, name, kind, what)
    if _PROJECT in entries:
        entries = decode_json(bytes(entries[_PROJECT]), name, kind, what)
    for number, entry in enumerate(entries.values(), 1):
        yield f"image {number}", decode_json(entry, name, _Image, f"image {number}")


def _of_rows(data: bytes, name: str) -> Iterator[tuple[str, _Image]]:
    """Yield the line of the first row of each image, and what all its rows have."""
    rows = csv_rows(text_lines(io.BytesIO(data), name), ",", name)
    header = [cell.strip().lstrip("#") for cell in next(rows, (0, []))[1]]
    if missing := [cell for cell in _CELLS if cell not in header]:
        raise SourceError(f"missing column {missing[0]}", path=name, line=1)
    columns = [header.index(cell) for cell in _CELLS]
    images: dict[str, tuple[str, dict[str, Any], list[Any]]] = {}
    for line, row in rows:
        if row and len(row) < len(header):
            problem = f"found {len(row)} columns; expected {len(header)}"
            raise SourceError(problem, path=name, line=line)
        image, *cells = (row[column] for column in columns) if row else ("",)
        values: dict[str, Any] = {"line": line}
        for key, cell in zip(_CELLS[1:], cells, strict=False):
            try:
                values[key] = msgspec.json.decode(cell.strip() or "{}", type=dict[str, Any])
            except (ValueError, RecursionError):
                problem = f"{key}: found {cell!r:.60}; expected an object of JSON"
                raise SourceError(problem, path=name, line=line) from None
        if cells:
            about, regions = images.setdefault(image, (f"line {line}", {}, []))[1:]
            about |= values.pop("file_attributes")
            if values["region_shape_attributes"]:
                regions.append(values)
    for image, (where, about, regions) in images.items():
        yield where, _Image(image, regions, about)


def _regions(
    image: _Image, where: str
) -> Iterator[tuple[str, Mapping[str, Any], dict[str, str | float]]]:
    """Yield where each region is, its shape and its attributes."""
    items = image.regions.values() if isinstance(image.regions, dict) else image.regions or ()
    for number, item in enumerate(islice(items, MAX_OBJECTS + 1), 1):
        region = item if isinstance(item, dict) else {}
        shape = region.get("shape_attributes", region.get("region_shape_attributes"))
        line = region.get("line")
        place = f"line {line}" if type(line) is int else f"{where}, region {number}"
        values = _values(region.get("region_attributes"))
        yield place, shape if isinstance(shape, dict) else {}, values


def _values(attributes: Any) -> dict[str, str | float]:
    """The attributes of a region or image; of checkboxes, the names of those that are set."""
    items = attributes.items() if isinstance(attributes, dict) else ()
    return attributes_in(
        {k: ", ".join(filter(v.get, v)) if isinstance(v, dict) else v for k, v in items}
    )


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


def _object(where: str, name: str, shape: Mapping[str, Any]) -> AnnotatedObject:
    kind, points = str(shape.get("name")), None
    if kind == "polygon":
        xs, ys = shape.get("all_points_x"), shape.get("all_points_y")
        if isinstance(xs, list) and isinstance(ys, list) and len(xs) == len(ys):
            points = points_in([*zip(xs, ys, strict=True)])
    elif kind in _NUMBERS:
        try:
            x, y, width, height, *theta = checked_numbers(
                {"theta": 0, **shape}, _NUMBERS[kind].split()
            )
        except ValueError as error:
            return AnnotatedObject(where, name, fault=f"invalid {kind}: {error}")
        if kind == "rect":
            return AnnotatedObject(where, name, (x, y, x + width, y + height), "box")
        points = ellipse(x, y, width, height, *theta)
    if not points:
        return AnnotatedObject(where, name, fault=f"invalid region {dict(shape)!r:.60}")
    return outlined(where, name, points)


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
