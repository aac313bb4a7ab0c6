"""CVAT's own XML ("CVAT for images 1.1"): one file with the boxes and polygons of all images."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotated import (
    VALUE_BYTES,
    AnnotatedReader,
    Annotation,
    changed_error,
    check_object_count,
    make_listing,
)
from recordsmith.sources.boxes.annotation_files import (
    DescribedImage,
    FileAnnotatedImages,
    find_by_content,
)
from recordsmith.sources.boxes.boxes import AnnotatedBox, number
from recordsmith.sources.boxes.detection import is_cvat
from recordsmith.sources.boxes.voc_xml import parse_xml
from recordsmith.sources.classes import classes_by_label
from recordsmith.sources.files.file_index import FileIndex
from recordsmith.sources.files.paths import referenced, size_and_version
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import Location

_EXPECTED = "annotations.xml of CVAT's export 'CVAT for images 1.1', next to or above its images"
_OTHER_SHAPES = "shapes and tags were left out that are neither boxes nor polygons"
_ATTRIBUTES = "attributes of objects were left out"
_SHAPES = ("box", "polygon", "polyline", "points", "ellipse", "cuboid", "skeleton", "mask")
_PARTS = frozenset((*_SHAPES, "tag", "attribute"))


class Cvat(FileAnnotatedImages):
    """Images with boxes and polygons in CVAT's XML format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons
    become the boxes around them. Subsets become splits. Labels have the order of the file, from 1.

    Example:
        >>> rs.pack(rs.Cvat("export"), "packed")  # doctest: +SKIP
    """

    def list_samples(self) -> Listing:
        """Read the XML files and find their images, sorted by image path.

        Raises:
            SourceError: there are no CVAT files, or one is invalid.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self._take_tree(self.root))
        paths = self._files(index, _find_files)
        files = {split: CvatFile(path, name) for split, (path, name) in paths.items()}
        names = dict.fromkeys(name for file in files.values() for name in file.class_names)
        classes = classes_by_label(dict(enumerate(names, 1)), self._label_map, "the data")
        if len(files) == 1:
            files = next(iter(files.values())).by_subset() or files
        entries, splits, notices = self._entries(index, files)
        places = self._places(paths)

        return make_listing(
            entries,
            splits,
            index,
            CvatReader(**self._reader_options(classes)),
            classes,
            notices,
            lambda image: image.file.version,
            lambda image: {**places[image.file.name], "id": image.number, **image.reference()},
        )


@dataclass(frozen=True)
class CvatReader(AnnotatedReader):
    """Reads an image, and its element from the reference or from a range of the XML file."""

    def _annotation(self, reference: Mapping[str, Any], note: Note) -> Annotation:
        name, line = reference["place"], reference["line"]
        if "text" in reference:
            data = reference["text"].encode()
        else:
            data = referenced(self.root, reference.get("file", name)).read(*reference["range"])
        objects: list[AnnotatedBox] = []
        image = f"{name}, image {reference['id']}"

        def add(shape: str, at: int, values: dict[str, str]) -> None:
            place = f"{name}, line {at}"
            if shape == "attribute":
                note(_ATTRIBUTES, place)
            elif shape in ("box", "polygon"):
                check_object_count(len(objects), image)
                objects.append(_box(place, shape, values))
            else:
                note(_OTHER_SHAPES, f"{place}: {shape}")

        images = _images(data, name, add, line - 1)
        if len(images) != 1:
            raise changed_error(name)
        values = images[0].values
        size = number(values.get("width") or 0), number(values.get("height") or 0)
        return Annotation(image, objects, size)


class CvatImage(NamedTuple):
    """Where the element of an image is: its first line and its bytes."""

    file: CvatFile
    number: str
    name: str
    subset: str
    line: int
    start: int
    stop: int

    def reference(self) -> dict[str, Any]:
        """The element as text, or its range of bytes if it is long."""
        if self.stop - self.start > VALUE_BYTES:
            return {"line": self.line, "range": [self.start, self.stop]}
        text = self.file.location.read(self.start, self.stop).decode("utf-8", "replace")
        return {"line": self.line, "text": text}


class CvatFile:
    """What a listing keeps of one file: its images, and the names of its classes in order."""

    def __init__(self, location: Location, name: str) -> None:
        """Read the file once.

        Raises:
            SourceError: the file is not valid XML; `line` is where.
            FileAccessError: the file cannot be read.
        """
        self.location = location
        self.name = name
        _, self.version = size_and_version(location)
        data = location.read()
        self.class_names = dict.fromkeys(_declared_labels(data, name))
        self.images: list[CvatImage] = []

        def add(shape: str, _: int, values: dict[str, str]) -> None:
            label = values.get("label")
            if label and "\n" not in label and shape in ("box", "polygon"):
                self.class_names[label] = None

        for found in _images(data, name, add):
            values = found.values
            file_name, subset = values.get("name", ""), values.get("subset", "")
            place = (found.line, found.start, found.stop)
            self.images.append(CvatImage(self, values.get("id", "?"), file_name, subset, *place))

    def by_subset(self) -> dict[str, CvatFile]:
        """The images of each subset; empty if some are in none."""
        subsets = sorted({image.subset for image in self.images})
        if "" in subsets:
            return {}
        parts = {}
        for subset in subsets:
            part = object.__new__(CvatFile)
            part.__dict__.update(self.__dict__)
            part.images = [image for image in self.images if image.subset == subset]
            parts[subset.lower()] = part
        return parts

    def described(self) -> Iterator[DescribedImage[CvatImage]]:
        """Yield the images in the order of the file."""
        for image in self.images:
            yield DescribedImage(f"image {image.number}", image.name, image)


class _Image(NamedTuple):
    """An element with its attributes."""

    line: int
    start: int
    stop: int
    values: dict[str, str]


def _images(
    data: bytes,
    name: str,
    add: Callable[[str, int, dict[str, str]], None],
    lines_before: int = 0,
) -> list[_Image]:
    """The images in a file, or in a part of it that begins after some lines.

    Args:
        add: called with the tag, line and attributes of each shape of an image.
    """
    parser = expat.ParserCreate()
    images: list[_Image] = []

    def start(tag: str, values: dict[str, str]) -> None:
        line = parser.CurrentLineNumber + lines_before
        if tag == "image":
            images.append(_Image(line, parser.CurrentByteIndex, 0, values))
        elif tag in _PARTS and images and not images[-1].stop:
            add(tag, line, values)

    def end(tag: str) -> None:
        if tag == "image":
            at = parser.CurrentByteIndex
            is_tag = data.startswith(b"</image", at)  # otherwise after <image …/>
            images[-1] = images[-1]._replace(stop=data.index(b">", at) + 1 if is_tag else at)

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "utf8", "ascii"):
            raise SourceError(f"the encoding {encoding}", path=name, remedy="Save it as UTF-8.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.XmlDeclHandler = declaration
    parse_xml(parser, data, name)
    return images


def _declared_labels(data: bytes, name: str) -> list[str]:
    """The labels of the task or project, in order, without parts of skeletons."""
    start, end = data.find(b"<labels>"), data.find(b"</labels>")
    if not 0 <= start < end:
        return []
    parser = expat.ParserCreate()
    labels: list[dict[str, str]] = []
    tags: list[str] = []

    def begin(tag: str, _: dict[str, str]) -> None:
        tags.append(tag)
        if tags == ["labels", "label"]:
            labels.append({})

    def text(part: str) -> None:
        if len(tags) == 3 and labels:
            labels[-1][tags[2]] = labels[-1].get(tags[2], "") + part

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: tags.pop()
    parser.CharacterDataHandler = text
    with suppress(SourceError):  # the file is valid, so this is a part of something else
        parse_xml(parser, data[start : end + len(b"</labels>")], name)
    found = (each.get("name", "") for each in labels if not each.get("parent", "").strip())
    return [label for label in found if label and "\n" not in label]


def _box(place: str, shape: str, values: Mapping[str, str]) -> AnnotatedBox:
    name = values.get("label", "")
    if shape == "box":
        xmin, ymin, xmax, ymax = (number(values.get(side)) for side in ("xtl", "ytl", "xbr", "ybr"))
        if number(values.get("rotation") or 0):
            fault = "the box is rotated; expected an upright one"
            return AnnotatedBox(place, name, fault=fault)
        return AnnotatedBox(f"{place} ({name})", name, (xmin, ymin, xmax, ymax), "box")
    points = values.get("points", "")
    outline = _outline(points)
    if outline is None:
        return AnnotatedBox(place, name, fault="invalid points; expected x,y;x,y")
    xs, ys = outline[::2], outline[1::2]
    corners = (min(xs), min(ys), max(xs), max(ys))
    # parsed again for a mask: the numbers take more memory than the text
    return AnnotatedBox(f"{place} ({name})", name, corners, lambda: [_outline(points)])


def _outline(points: str) -> array[float] | None:
    """The coordinates of a polygon; None if it is invalid."""
    outline = array("d")
    start = 0
    while start <= len(points):
        stop = points.find(";", start)
        stop = len(points) if stop < 0 else stop
        pair = points[start:stop].split(",", 2)
        if len(pair) != 2:
            return None
        outline.extend(map(number, pair))
        start = stop + 1
    return outline if len(outline) >= 4 and np.isfinite(outline).all() else None


def _find_files(index: FileIndex) -> dict[str, str]:
    return find_by_content(index, ".xml", is_cvat, _EXPECTED)
