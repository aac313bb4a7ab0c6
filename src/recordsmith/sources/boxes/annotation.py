"""What all formats of annotated images have in common: images, objects and files.

A format is one module in `formats`: a function `parse` that yields the images of an annotation
file, how such files begin, and the source that uses both.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias
from xml.parsers import expat

import msgspec
import numpy as np

from recordsmith.dataset import MAX_KEYPOINTS, KeypointClass, json_fault
from recordsmith.format.example import Kind, keys
from recordsmith.sources.boxes.known_formats import recognise_annotations
from recordsmith.sources.problems import Fault, join_names
from recordsmith.stores import Location
from recordsmith.support.errors import SourceError, option
from recordsmith.support.problems import Problems

Corners: TypeAlias = tuple[float, float, float, float]
"""xmin, ymin, xmax, ymax, in the units of a frame."""

Points: TypeAlias = Sequence[float] | Mapping[str, Sequence[float]] | msgspec.Raw

MAX_OBJECTS = 100_000
"""Of an image: each takes some hundred bytes until its record is written."""

MAX_ATTRIBUTES = 64
"""Different ones of all objects: each is a feature of every record."""

MAX_ENTRY_BYTES = 1 << 23
"""Of an image or annotation in JSON, such as one with its polygons."""

MAX_TOKEN_BYTES = 1 << 22
"""Of a tag or text in XML, such as a polygon of CVAT."""

_LARGEST_CORNER = 1e30  # far below the largest float32
_LINE_BREAKS = frozenset("\r\n")
_LARGEST_FLOAT = 3.4028234e38  # that a float feature holds
_ATTRIBUTE_KINDS: Mapping[type, Kind] = {int: "int64", float: "float", str: "bytes"}
_XML_STEP = 1 << 20
_OUTLINES = (
    f"outlines were packed with their box only; {option('object_masks', 'instance')} adds masks"
)
_NAMELESS = "attributes without a name were left out"
_PROLOG = re.compile(rb"(?:[^<]|<!--(?:[^-]|-(?!->))*+-->|<(?!!--)[?!][^>]*>)*+")
"""What may be before the first element of XML."""

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9._-]{1,40})")
_DECLARATION_BYTES = 300
_UTF16_STARTS = (
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_BYTE = re.compile(r" \(byte (\d+)\)")
_NOT_FINITE = re.compile(rb"(?<=[:\[,\s])-?(?:NaN|Infinity)(?=[,\]}\s])")
_ELLIPSE_POINTS = 64
_HALF = 0.5  # a pixel
_ENCODING = re.compile(r"ascii|iso8859|cp125|cp9|koi8|gb|big5|shift_jis|euc_")
"""How the names of codecs begin that extend ASCII without shift sequences."""


class AnnotatedObject(NamedTuple):
    """One object on an image.

    where: in its file: "line 17".
    name: its class; None if it is unknown, which `fault` explains.
    corners: xmin, ymin, xmax, ymax in the units of the annotation; NaN for an invalid number.
    outline: JSON of polygons, run lengths or a PNG, see `rasterize`; "box" if it is the box;
        "points" of an object of keypoints alone, whose mask is empty.
    extra: the values of `BoxFormat.features`.
    fault: why it cannot be read at all.
    points: its keypoints, in the units of the annotation: x, y and visibility end to end, in the
        order of its class, also as JSON; or these three by the name of the point, of those that
        it has.
    quad: x, y of the four corners of a rotated box, clockwise from the top left of the unturned
        box; empty for an upright one.
    attributes: texts or numbers by name; never changed.
    """

    where: str
    name: str | None
    corners: Corners = (0, 0, 0, 0)
    outline: str | None = None
    extra: Sequence[Any] = ()
    fault: str = ""
    points: Points = ()
    quad: Sequence[float] = ()
    attributes: Mapping[str, str | float] = {}

    def place_in(self, file: str) -> str:
        """Where it is, for messages: "a.xml, line 17 (cat)"."""
        name = f" ({self.name})" if self.name and not self.fault else ""
        return f"{file}, {self.where}{name}"


class AnnotatedImage(NamedTuple):
    """One image in an annotation file.

    where: in the file: "image 17"; empty in a file about one image.
    file_name: of the image, as the file has it.
    size: width and height of the image that the objects were drawn on, 0 if unknown; None for
        coordinates that are relative to its sides.
    id: of the image, for `image/source_id`.
    split: its split, if the file has splits.
    notes: (what, where) of what is left out.
    remedy: what to do if the image is not found.
    captions: texts about it.
    labels: the classes of the whole image, with 1, or 0 for those that it verifiably has not; {}
        if it has none of them, None if nothing is said.
    """

    where: str = ""
    file_name: str = ""
    size: tuple[float, float] | None = (0, 0)
    objects: Sequence[AnnotatedObject] = ()
    id: Any = None
    split: str = ""
    notes: Sequence[tuple[str, str]] = ()
    remedy: str = ""
    captions: Sequence[str] = ()
    labels: Mapping[str, float] | None = None


@dataclass(eq=False)
class AnnotationFile:
    """An annotation file for `parse`.

    name: its path relative to the root, for messages.
    with_outlines: whether outlines of objects are needed.
    class_names: by what stands for them in the file; `parse` adds those that the file declares.
    supercategories: of those classes that have one, by the same keys.
    used_classes: the keys of those that objects have; set by `parse` where names may repeat.
    keypoint_classes: by the name of the class; `parse` adds those that the file declares.
    keypoints: how many keypoints objects have, and how many values each, where only other files
        show it; None if these do not.
    captions: another file, with captions of the same images.
    class_from: the attribute that is the class of each object; empty for the class itself.
    has_class: how many objects have that attribute, and how many do not.
    has_corners: whether objects are rotated boxes, where only other files show it.
    columns: the caller's options for columns, of a file with columns.
    features: those of the format that the file has; set by `parse` where columns may be missing.
    has_objects: whether it is about objects; set by `parse`.
    unlisted: returns the annotation of an image that the file implies without a mention, by its
        path; set by `parse`.
    problems, notices: `parse` adds what is wrong outside of objects, and what is left out.
    """

    location: Location
    name: str
    version: int = 0
    with_outlines: bool = False
    class_names: dict[Any, str] = field(default_factory=dict)
    supercategories: dict[Any, str] = field(default_factory=dict)
    used_classes: set[Any] = field(default_factory=set)
    keypoint_classes: dict[str, KeypointClass] = field(default_factory=dict)
    keypoints: tuple[int, ...] | None = ()
    captions: AnnotationFile | None = None
    class_from: str = ""
    has_class: Counter[bool] = field(default_factory=Counter)
    has_corners: bool = False
    columns: Mapping[str, Any] = field(default_factory=dict)
    features: Collection[str] = ()
    has_objects: bool = True
    unlisted: Callable[[str], AnnotatedImage | None] | None = None
    problems: Problems = field(default_factory=Problems)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class BoxFormat:
    """A format of annotated images.

    suffix: of its annotation files, in lower case.
    matches: whether a file begins like one of this format.
    parse: yields the images of a file; raises SourceError with the line of what is invalid.
    what: how a folder in this format is described, with {} for the files.
    expected: the files of this format, for the error if there are none.
    file_what: how a single file is described, if it may be the source.
    file_suffixes: those of such files.
    owns_suffixes: whether every file with one of these suffixes is of this format.
    has_outlines: whether objects can have masks.
    has_attributes: whether objects can have attributes.
    has_lists: whether each image may have several classes, even if none has.
    features: the features that it adds to those of all boxes, and their kinds.
    """

    name: str
    suffix: str
    matches: Callable[[bytes], bool]
    parse: Callable[[AnnotationFile], Iterable[AnnotatedImage]]
    what: str
    expected: str
    file_what: str = ""
    file_suffixes: tuple[str, ...] = ()
    owns_suffixes: bool = False
    has_outlines: bool = True
    has_attributes: bool = False
    has_lists: bool = False
    features: Mapping[str, Kind] = field(default_factory=dict)

    def is_format_of(self, path: str, head: bytes) -> bool:
        """Whether a file begins like one of this format, and is not of one that is not read."""
        text = as_utf8(head, "replace") if self.suffix in (".xml", ".json") else head
        return self.matches(text) and recognise_annotations(path, text) is None

    def images(self, file: AnnotationFile) -> Iterator[AnnotatedImage]:
        """Yield the images of a file, without outlines where they are not needed."""
        for image in self.parse(file):
            if max(len(image.objects), len(image.notes)) > MAX_OBJECTS:
                raise SourceError(
                    f"{image.where or 'the image'} has more than {MAX_OBJECTS:,} objects",
                    path=file.name,
                    remedy="Cut the image into tiles.",
                )
            if unnamed := [item for item in image.objects if "" in item.attributes]:
                known = [
                    item._replace(attributes=_named(item.attributes)) for item in image.objects
                ]
                places = ((_NAMELESS, item.place_in(file.name)) for item in unnamed)
                image = image._replace(objects=known, notes=[*image.notes, *places])  # noqa: PLW2901
            if file.class_from:
                objects = [_with_class_from(item, file) for item in image.objects]
                image = image._replace(objects=objects)  # noqa: PLW2901
            if not file.with_outlines and any(item.outline for item in image.objects):
                of_points = {"points": "points"}
                plain = [
                    item._replace(outline=of_points.get(item.outline or ""))
                    for item in image.objects
                ]
                notes = [
                    (_OUTLINES, item.place_in(file.name))
                    for item in image.objects
                    if item.outline not in (None, "box", "points") and not item.quad
                ]
                image = image._replace(objects=plain, notes=[*image.notes, *notes])  # noqa: PLW2901
            yield image


@dataclass
class Contents:
    """What all annotations of a source have, so that all records have the same features.

    class_names, label_names: of objects, and of whole images, in the order of the annotations.
    has_objects: whether any image has objects.
    keypoint_classes: by the name of the class; without those whose files do not declare them.
    point_names: of those others: the names of their points, or numbers where points have none.
    attributes: by name, how many objects have a value of each kind; of `object_count` objects.
    has_points, has_corners: whether any object has keypoints, or is rotated.
    has_captions: whether any image has captions.
    """

    class_names: dict[str, None] = field(default_factory=dict)
    label_names: dict[str, None] = field(default_factory=dict)
    has_objects: bool = False
    keypoint_classes: dict[str, KeypointClass] = field(default_factory=dict)
    point_names: dict[str, dict[str, None]] = field(default_factory=dict)
    has_points: bool = False
    attributes: dict[str, Counter[Kind]] = field(default_factory=dict)
    object_count: int = 0
    has_corners: bool = False
    has_captions: bool = False

    def add(self, file: AnnotationFile, image: AnnotatedImage) -> None:
        for of, known in file.keypoint_classes.items():
            other = self.keypoint_classes.setdefault(of, known)
            if other is not known and other != known:
                raise SourceError(
                    f"the class {of!r:.60} has other keypoints than in another annotation file: "
                    f"{join_names(known.names)} instead of {join_names(other.names)}, or another "
                    "skeleton or other flip pairs",
                    path=file.name,
                    remedy="Make them equal in all files, or pack these one by one.",
                )
        self.has_captions |= bool(image.captions)
        self.has_objects |= bool(image.objects)
        self.label_names.update(dict.fromkeys(image.labels or ()))
        for item in image.objects:
            name = item.name
            self.object_count += not item.fault
            for key, value in item.attributes.items():
                counts = self.attributes.get(key)
                if counts is None:
                    self._check_attribute(key, item.place_in(file.name))
                    counts = self.attributes[key] = Counter()
                counts[_ATTRIBUTE_KINDS[type(value)]] += not item.fault
            if not name or not is_class_name(name):
                continue
            self.class_names[name] = None
            self.has_corners |= bool(item.quad)
            if item.points:
                self.has_points = True
                if name not in self.keypoint_classes and not isinstance(item.points, msgspec.Raw):
                    count = len(item.points) // 3
                    names = item.points if isinstance(item.points, Mapping) else _numbered(count)
                    self.point_names.setdefault(name, {}).update(dict.fromkeys(names))

    def _check_attribute(self, name: str, place: str) -> None:
        expected = ""
        if len(self.attributes) >= MAX_ATTRIBUTES:
            expected = f"at most {MAX_ATTRIBUTES} different ones"
        elif not is_class_name(name) or "/" in name:
            expected = "a name without / and line breaks"
        if expected:
            raise SourceError(
                f"{place}: attribute {name!r:.60}; expected {expected}",
                remedy="Rename or remove it in all annotations.",
            )

    def attribute_kinds(self) -> tuple[tuple[str, Kind], ...]:
        """The attributes by name: of numbers if every object has one, otherwise of texts."""

        def kind(counts: Counter[Kind]) -> Kind:
            if counts["int64"] + counts["float"] < self.object_count or counts["bytes"]:
                return "bytes"
            return "float" if counts["float"] else "int64"

        return tuple((name, kind(counts)) for name, counts in self.attributes.items())

    def all_names(self) -> dict[str, None]:
        """The names of the classes of objects, then of those that only images have."""
        return {**self.class_names, **dict.fromkeys(filter(is_class_name, self.label_names))}

    def known_keypoints(self) -> dict[str, KeypointClass]:
        """What the keypoints of classes are, by their names; empty if no object has any."""
        if not self.has_points:
            return {}
        named = {name: KeypointClass(tuple(names)) for name, names in self.point_names.items()}
        for name, of_class in (known := {**self.keypoint_classes, **named}).items():
            if len(of_class.names) > MAX_KEYPOINTS:
                raise SourceError(f"the class {name!r:.60} has more than {MAX_KEYPOINTS} keypoints")
        return known


def _numbered(count: int) -> list[str]:
    return [str(number) for number in range(min(count, MAX_KEYPOINTS))]


@dataclass(slots=True)
class Entry:
    """One sample: an image, and what a listing keeps of its annotation.

    image: its path, relative to the root; a name for the sample if the image is missing.
    annotation: the path of the annotation file, relative to the root; empty without one.
    annotated: without its objects.
    objects: as JSON; empty if they are read with the sample.
    notes: (what, where) for each note on its image to make when it is read.
    fault: why it cannot be read.
    split: empty without one.
    labels: those of the whole image, as in its reference.
    """

    image: str
    annotation: str = ""
    version: int = 0
    annotated: AnnotatedImage = AnnotatedImage()  # noqa: RUF009 - immutable
    objects: bytes = b""
    notes: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None
    split: str = ""
    labels: dict[str, Any] = field(default_factory=dict)

    def reference(self) -> dict[str, Any]:
        """What the reader needs besides the image, in JSON values."""
        if self.fault is not None:
            return {"fault": self.fault.to_json()}
        image = self.annotated
        reference: dict[str, Any] = {"notes": [*map(list, self.notes)]} if self.notes else {}
        if self.annotation:
            reference["annotation"] = self.annotation
        if image.id is not None:
            reference["id"] = image.id
        if self.objects:
            reference["objects"] = msgspec.json.decode(self.objects)
            reference["size"] = image.size and list(image.size)
        if image.captions:
            reference["captions"] = [*image.captions]
        if image.notes:
            reference["left_out"] = [*map(list, image.notes)]
        return reference | self.labels


def make_entry(file: AnnotationFile, image: AnnotatedImage, contents: Contents) -> Entry:
    """The entry of an image that is not found yet; adds its annotations to the contents."""
    try:
        objects = encode_objects(image.objects)
    except ValueError:
        raise encoding_error(file.name) from None
    contents.add(file, image)
    listed = image._replace(objects=(), notes=tuple(image.notes))
    return Entry(file.name, file.name, file.version, listed, objects)


def is_class_name(name: str) -> bool:
    """Whether a text can be a class in `labels.txt`."""
    return bool(name) and _LINE_BREAKS.isdisjoint(name)


def attributes_in(document: Any) -> dict[str, str | float]:
    """The attributes of an object of JSON: texts, numbers that a feature holds, others as JSON.

    Truth values become the texts true and false; missing ones are left out.
    """
    found: dict[str, str | float] = {}
    for name, value in document.items() if isinstance(document, dict) else ():
        is_number = type(value) in (int, float)
        limit = 2**63 - 1 if type(value) is int else _LARGEST_FLOAT
        if isinstance(value, str) or (is_number and abs(value) <= limit):
            found[name] = value
        elif value is not None:
            found[name] = json.dumps(value, ensure_ascii=False)
    return found


def _named(attributes: Mapping[str, str | float]) -> Mapping[str, str | float]:
    return {name: value for name, value in attributes.items() if name}


def attribute_features(
    objects: Iterable[AnnotatedObject], kinds: Iterable[tuple[str, Kind]]
) -> dict[str, Any]:
    """The attributes of objects; missing ones are empty texts."""
    return {
        keys.OBJECT_ATTRIBUTE + name: [
            str(item.attributes.get(name, "")).encode("utf-8", "surrogateescape")
            if kind == "bytes"
            else item.attributes[name]
            for item in objects
        ]
        for name, kind in kinds
    }


def _with_class_from(item: AnnotatedObject, file: AnnotationFile) -> AnnotatedObject:
    """The object with an attribute as its class, and the keypoints of its class before."""
    name = str(item.attributes.get(file.class_from, "")).strip()
    file.has_class[bool(name)] += 1
    if item.fault or not name:
        fault = item.fault or f"the attribute {file.class_from!r:.60} is missing"
        return item._replace(name=None, fault=fault)
    if (known := file.keypoint_classes.get(item.name or "")) is not None:
        file.keypoint_classes.setdefault(name, known)
    return item._replace(name=name)


encode_objects = msgspec.json.encode
"""Objects as JSON, in which NaN is null."""


def decode_objects(values: Iterable[Any]) -> list[AnnotatedObject]:
    objects = []
    for where, name, corners, *more in values:
        left, top, right, bottom = map(to_float, corners)
        objects.append(AnnotatedObject(where, name, (left, top, right, bottom), *more))
    return objects


def to_float(text: object) -> float:
    """A number from an annotation; NaN if it is invalid."""
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def checked_numbers(values: Mapping[str, Any], keys: Collection[str]) -> list[float]:
    """The finite numbers under some keys; ValueError names anything else."""
    numbers = [to_float(values.get(key)) for key in keys]
    for key, number in zip(keys, numbers, strict=True):
        if not math.isfinite(number):
            found = f": found {values[key]!r:.60}" if key in values else " is missing"
            raise ValueError(f"{key}{found}; expected a number")
    return numbers


def points_in(values: Any) -> list[tuple[float, float]] | None:
    """Pairs of finite numbers from JSON; None for anything else."""
    try:
        points = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    is_valid = points.ndim == 2 and points.shape[1] == 2 and np.isfinite(points).all()
    return [(x, y) for x, y in points.tolist()] if is_valid else None


def has_elements(head: bytes, outer: re.Pattern[bytes], inner: re.Pattern[bytes]) -> bool:
    """Whether the first element of XML is one, and another is after its start; in linear time."""
    prolog = _PROLOG.match(head)
    match = outer.match(head, prolog.end() if prolog else 0)
    return match is not None and inner.search(head, match.end()) is not None


def outlined(
    where: str, name: str, points: Sequence[tuple[float, float]], extra: Sequence[Any] = ()
) -> AnnotatedObject:
    """An object with a polygon as its outline, and the box around it."""
    xs, ys = zip(*points, strict=True)
    corners = (min(xs), min(ys), max(xs), max(ys))
    outline = json.dumps([[value for point in points for value in point]])
    return AnnotatedObject(where, name, corners, outline, extra)


def quad_object(
    where: str, name: str, points: Sequence[tuple[float, float]], extra: Sequence[Any] = ()
) -> AnnotatedObject:
    """An object with a rotated box, by its four corners; they become clockwise."""
    quad = [value for point in points for value in point]
    if not all(abs(value) < _LARGEST_CORNER for value in quad):
        return AnnotatedObject(where, name, fault="a corner is not a number, or too large")
    ax, ay, bx, by, cx, cy, dx, dy = quad
    if (cx - ax) * (dy - by) < (dx - bx) * (cy - ay):  # the area times 2 is negative
        quad = [ax, ay, dx, dy, cx, cy, bx, by]
    return outlined(where, name, [*zip(quad[::2], quad[1::2], strict=True)], extra)._replace(
        quad=quad
    )


def rotated_object(
    where: str, name: str, corners: Corners, degrees: float, extra: Sequence[Any] = ()
) -> AnnotatedObject:
    """An object with a box that is rotated clockwise about its centre."""
    xmin, ymin, xmax, ymax = corners
    x, y = (xmin + xmax) / 2, (ymin + ymax) / 2
    sides = ((xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax))
    offsets = ((side - x, end - y) for side, end in sides)
    return quad_object(where, name, turned(x, y, offsets, math.radians(degrees % 360)), extra)


def ellipse(
    x: float, y: float, radius_x: float, radius_y: float, radians: float = 0
) -> list[tuple[float, float]]:
    """Points of an ellipse that is rotated clockwise about its centre."""
    turns = (2 * math.pi * step / _ELLIPSE_POINTS for step in range(_ELLIPSE_POINTS))
    offsets = ((radius_x * math.cos(turn), radius_y * math.sin(turn)) for turn in turns)
    return turned(x, y, offsets, radians % (2 * math.pi))


def turned(
    x: float, y: float, offsets: Iterable[tuple[float, float]], angle: float
) -> list[tuple[float, float]]:
    """Points from their offsets to x and y, about which they are rotated clockwise."""
    cosine, sine = math.cos(angle), math.sin(angle)  # NaN, if it was infinite
    return [(x + dx * cosine - dy * sine, y + dx * sine + dy * cosine) for dx, dy in offsets]


def object_of_points(
    where: str,
    name: str,
    points: Points,
    extra: Sequence[Any] = (),
) -> AnnotatedObject:
    """An object with only keypoints; its box is around those that are labelled.

    It is a pixel wide around points in a line, and clipped to the image.
    """
    values = [*chain(*points.values())] if isinstance(points, Mapping) else points
    rows = zip(values[::3], values[1::3], values[2::3], strict=True)
    labelled = [(x, y) for x, y, visibility in rows if visibility and math.isfinite(x + y)]
    if not labelled:
        fault = "no keypoint is labelled, and there is no box"
        return AnnotatedObject(where, name, fault=fault)
    sides = [(min(values), max(values)) for values in zip(*labelled, strict=True)]
    sides = [(a, b) if a < b else (a - _HALF, b + _HALF) for a, b in sides]
    corners = (sides[0][0], sides[1][0], sides[0][1], sides[1][1])
    return AnnotatedObject(where, name, corners, "points", extra, points=points)


def json_text(data: bytes, name: str) -> bytes:
    """JSON as UTF-8, with NaN and infinite numbers of Python as texts of the same length."""
    data = text_as_utf8(data, name).removeprefix(codecs.BOM_UTF8)
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    return _NOT_FINITE.sub(lambda match: b'"%*s"' % (len(match[0]) - 2, b""), data)


def decode_json(
    data: bytes | msgspec.Raw,
    name: str,
    kind: Any,
    what: str,
    remedy: str = "",
    max_bytes: int = MAX_ENTRY_BYTES,
) -> Any:
    """Decode JSON in UTF-8, or one of its entries, called `name` in messages.

    what: the entry, or what the file is expected to be.
    remedy: for another structure.
    max_bytes: of an entry.
    """
    is_entry = isinstance(data, msgspec.Raw)
    if is_entry and len(memoryview(data)) > max_bytes:
        problem = f"{what} is longer than {max_bytes:,} bytes"
        raise SourceError(problem, path=name, remedy="Remove it, or simplify its segmentation.")
    try:
        return msgspec.json.decode(data, type=kind)
    except (UnicodeDecodeError, msgspec.DecodeError) as error:
        if not is_utf8(data):  # which msgspec reports in several ways
            raise encoding_error(name, f"{what}: not valid UTF-8") from None
        if not isinstance(error, msgspec.ValidationError):
            raise _json_error(bytes(data), name, error) from None
        what = what if is_entry else f"not {what}"
        raise SourceError(f"{what}: {error}", path=name, remedy=remedy) from None
    except RecursionError as error:
        raise SourceError(json_fault(error), path=name) from None


def _json_error(text: bytes, name: str, error: Exception) -> SourceError:
    match = _BYTE.search(str(error))
    stop = int(match[1]) if match else len(text)
    shown = text[stop : stop + 30].decode("utf-8", "replace")
    problem = f"invalid JSON at {shown!r}" if shown else "truncated JSON"
    return SourceError(problem, path=name, line=text.count(b"\n", 0, stop) + 1)


def is_utf8(data: bytes | memoryview | msgspec.Raw) -> bool:
    try:
        str(memoryview(data), "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def as_utf8(data: bytes, errors: str = "strict") -> bytes:
    """A text as UTF-8, also one in UTF-16: with a byte order mark, or XML."""
    encoding = next((name for start, name in _UTF16_STARTS if data.startswith(start)), "")
    return data.decode(encoding, errors).encode() if encoding else data


def text_as_utf8(data: bytes, name: str, *, is_xml: bool = False) -> bytes:
    """The content of a file as UTF-8; XML also from the encoding that it declares.

    Bytes that are not UTF-8 are left to the parser of the file, which knows their line.
    """
    encoding = "utf-16"
    try:
        text = as_utf8(data)
        declared = _DECLARED.match(data, 0, _DECLARATION_BYTES) if is_xml else None
        if text is not data or declared is None or data.isascii():
            return text
        encoding = declared[1].decode().lower()
        codec = codecs.lookup(encoding).name
        if codec.startswith("utf"):
            return data
        if _ENCODING.match(codec):
            codec = "gb18030" if codec in ("gb2312", "gbk") else codec
            return data.decode(codec).encode()
    except UnicodeDecodeError:
        raise encoding_error(name, f"not valid text in its encoding, {encoding}") from None
    except LookupError:
        pass
    raise encoding_error(name, f"it declares the unsupported encoding {encoding!r}")


def encoding_error(
    name: str, problem: str = "not valid UTF-8", line: int | None = None
) -> SourceError:
    remedy = (
        "Save such files as UTF-8, and name that encoding in XML; in a shell, iconv -f gb18030 "
        "-t utf-8 converts Chinese text, and iconv -f cp1252 -t utf-8 that of Western Europe."
    )
    return SourceError(problem, path=name, line=line, remedy=remedy)


def parse_xml(parser: expat.XMLParserType, data: bytes, name: str) -> Iterator[None]:
    """Parse XML in UTF-8, called `name` in messages, in steps.

    Nothing is expanded, and no other file is opened.
    """
    for start in range(0, len(data), MAX_TOKEN_BYTES):  # before the parser copies it
        stop = start + MAX_TOKEN_BYTES
        if stop < len(data) and data.find(b"<", start, stop) < 0:
            raise SourceError(
                f"a tag or text is longer than {MAX_TOKEN_BYTES:,} bytes",
                path=name,
                line=data.count(b"\n", 0, start) + 1,
                remedy="Remove it, or simplify its polygon.",
            )

    def entity(*_: object) -> None:
        raise SourceError(
            "the file declares XML entities, which are refused for security",
            path=name,
            line=parser.CurrentLineNumber,
            remedy="Remove its DOCTYPE.",
        )

    parser.EntityDeclHandler = entity
    try:
        for start in range(0, len(data) or 1, _XML_STEP):
            stop = start + _XML_STEP
            parser.Parse(data[start:stop], stop >= len(data))
            yield
    except expat.ExpatError as error:
        if data[parser.ErrorByteIndex : parser.ErrorByteIndex + 1] > b"\x7f":
            raise encoding_error(name, line=error.lineno) from None
        reason = expat.ErrorString(error.code)
        raise SourceError(f"not valid XML: {reason}", path=name, line=error.lineno) from None
