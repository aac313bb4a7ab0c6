"""CVAT's own XML ("CVAT for images 1.1"): one file with the boxes and polygons of all images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.parsers import expat

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.annotated import (
    VALUE_BYTES,
    AnnotatedReader,
    Annotation,
    Masks,
    changed_error,
    make_listing,
)
from recordsmith.sources.boxes.annotation_files import (
    DescribedImage,
    FileAnnotatedImages,
    group_by_split,
    path_inside,
)
from recordsmith.sources.boxes.boxes import AnnotatedBox, BoxPolicy, number
from recordsmith.sources.boxes.detection import is_cvat
from recordsmith.sources.boxes.voc_xml import parse_xml
from recordsmith.sources.classes import make_classes
from recordsmith.sources.files.file_index import FileIndex, no_files
from recordsmith.sources.files.folders import referenced
from recordsmith.sources.files.versions import size_and_version
from recordsmith.sources.source import Listing, Note
from recordsmith.stores import Location, PlaceLike

_EXPECTED = "annotations.xml of CVAT's export 'CVAT for images 1.1', next to or above its images"
_HEAD_BYTES = 1 << 16
_OTHER_SHAPES = "shapes were left out that are neither boxes nor polygons"
_SHAPES = frozenset(
    ("box", "polygon", "polyline", "points", "ellipse", "cuboid", "skeleton", "mask")
)


class Cvat(FileAnnotatedImages):
    """Images with boxes and polygons in CVAT's XML format.

    Each sample has the image and box features of `Voc`, and masks as `Coco` has them. Polygons
    become the boxes around them. Subsets become splits.

    Example:
        >>> rs.pack(rs.Cvat("export"), "packed")  # doctest: +SKIP
    """

    def __init__(
        self,
        root: PlaceLike,
        *,
        annotations: PlaceLike | Mapping[str, PlaceLike] | None = None,
        images: PlaceLike | None = None,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        object_masks: Masks | None = None,
    ) -> None:
        """
        Args:
            root: the folder of images and annotations; or the XML file.
            annotations: the XML file, or a mapping from split to XML file; None to find them.
            images: the folder of the images, inside the root; None to find it.
            label_map: path of a `label_map.pbtxt`; without one, classes are sorted by name.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).
            object_masks: `instance` or `class` adds masks, as in `Coco`.

        Raises:
            OptionError: `boxes` or `object_masks` is invalid, or `images` is not a folder inside
                the root.
        """
        super().__init__(
            root,
            annotations=annotations,
            images=images,
            label_map=label_map,
            boxes=boxes,
            object_masks=object_masks,
        )

    def list_samples(self) -> Listing:
        """Read the XML files and find their images, sorted by image path.

        Raises:
            SourceError: there are no CVAT files, or one is invalid.
            OptionError: the label map is invalid, or the root is a file.
            FileAccessError: a folder or file cannot be read.
        """
        index = FileIndex(self.root)
        paths = self._files(index, _find_files)
        files = {split: CvatFile(path, name) for split, (path, name) in paths.items()}
        classes = make_classes(
            {name for file in files.values() for name in file.class_names}, self._label_map
        )
        if len(files) == 1:
            files = next(iter(files.values())).by_subset()
        entries, splits, notices = self._entries(index, files)
        outside = {
            name: str(place.absolute())
            for place, name in paths.values()
            if path_inside(self.root, place) is None
        }

        def reference(image: CvatImage) -> dict[str, Any]:
            name = image.file.name
            found = {"place": name, "id": image.number, **image.reference()}
            return {**found, "file": outside[name]} if name in outside else found

        return make_listing(
            entries,
            splits,
            index,
            CvatReader(**self._reader_options(classes)),
            classes,
            notices,
            lambda image: image.file.version,
            reference,
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
        images = list(_images(data, name, line - 1))
        if len(images) != 1:
            raise changed_error(name)
        found, objects = images[0], []
        for shape, at, values in found.shapes:
            place = f"{name}, line {at}"
            if shape in ("box", "polygon"):
                objects.append(_box(place, shape, values))
            else:
                note(_OTHER_SHAPES, f"{place}: {shape}")
        size = number(found.values.get("width") or 0), number(found.values.get("height") or 0)
        return Annotation(f"{name}, image {reference['id']}", objects, size)


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
    """What a listing keeps of one file: its images, and the names of its classes."""

    def __init__(self, location: Location, name: str) -> None:
        """Read the file once.

        Raises:
            SourceError: the file is not valid XML; `line` is where.
            FileAccessError: the file cannot be read.
        """
        self.location = location
        self.name = name
        _, self.version = size_and_version(location)
        self.class_names: set[str] = set()
        self.images: list[CvatImage] = []
        for found in _images(location.read(), name):
            values = found.values
            file_name, subset = values.get("name", ""), values.get("subset", "")
            place = (found.line, found.start, found.stop)
            self.images.append(CvatImage(self, values.get("id", "?"), file_name, subset, *place))
            labels = (shape.get("label", "") for _, _, shape in found.shapes)
            self.class_names.update(label for label in labels if label and "\n" not in label)

    def by_subset(self) -> dict[str, CvatFile]:
        """The images of each subset, if there are several."""
        subsets = sorted({image.subset for image in self.images})
        if len(subsets) < 2 or "" in subsets:
            return {"": self}
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
    """An element with its attributes, and (tag, line, attributes) of each shape."""

    line: int
    start: int
    stop: int
    values: dict[str, str]
    shapes: list[tuple[str, int, dict[str, str]]]


def _images(data: bytes, name: str, lines_before: int = 0) -> list[_Image]:
    """The images in a file, or in a part of it that begins after some lines."""
    parser = expat.ParserCreate()
    images: list[_Image] = []

    def start(tag: str, values: dict[str, str]) -> None:
        line = parser.CurrentLineNumber + lines_before
        if tag == "image":
            images.append(_Image(line, parser.CurrentByteIndex, 0, values, []))
        elif tag in _SHAPES and images and not images[-1].stop:
            images[-1].shapes.append((tag, line, values))

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


def _box(place: str, shape: str, values: Mapping[str, str]) -> AnnotatedBox:
    name = values.get("label", "")
    if shape == "box":
        xmin, ymin, xmax, ymax = (number(values.get(side)) for side in ("xtl", "ytl", "xbr", "ybr"))
        outline = [xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]
        if number(values.get("rotation") or 0):
            fault = "the box is rotated; expected an upright one"
            return AnnotatedBox(place, name, fault=fault)
    else:
        pairs = [pair.split(",") for pair in values.get("points", "").split(";")]
        outline = [number(value) for pair in pairs for value in pair]
        if len(pairs) < 3 or any(len(pair) != 2 for pair in pairs):
            return AnnotatedBox(place, name, fault="invalid points; expected x,y;x,y;x,y")
        xmin, ymin, xmax, ymax = (
            *(min(outline[0::2]), min(outline[1::2])),
            *(max(outline[0::2]), max(outline[1::2])),
        )
    return AnnotatedBox(f"{place} ({name})", name, (xmin, ymin, xmax, ymax), [outline])


def _find_files(index: FileIndex) -> dict[str, str]:
    paths = [
        path
        for path in index.paths
        if path.lower().endswith(".xml") and is_cvat((index.root / path).read(0, _HEAD_BYTES))
    ]
    if not paths:
        raise no_files(index.root, _EXPECTED, index)
    return group_by_split(paths)
