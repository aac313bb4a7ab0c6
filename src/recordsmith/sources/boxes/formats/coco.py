"""COCO: one JSON file per split with the boxes and segmentations of all images.

Category ids are kept as labels, with their gaps. Such files reach half a gigabyte, so the
entries of its lists stay bytes of the file until their image is made.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from recordsmith.dataset import LARGEST_LABEL, MAX_KEYPOINTS, KeypointClass
from recordsmith.format.example.keys import OBJECT_AREA, OBJECT_ID, OBJECT_IS_CROWD
from recordsmith.sources.boxes.annotation import (
    MAX_ENTRY_BYTES,
    MAX_OBJECTS,
    AnnotatedImage,
    AnnotatedObject,
    AnnotationFile,
    BoxFormat,
    Points,
    attributes_in,
    decode_json,
    encoding_error,
    is_class_name,
    is_utf8,
    json_text,
    object_of_points,
    rotated_object,
    to_float,
)
from recordsmith.sources.boxes.annotation_files import SharedAnnotationSource
from recordsmith.sources.classes import Classes, classes_by_label
from recordsmith.sources.files.file_index import FileIndex, no_files
from recordsmith.sources.flaws import Check, Flaw
from recordsmith.sources.problems import join_names, join_problems
from recordsmith.support.errors import SourceError, option
from recordsmith.support.problems import Problems
from recordsmith.support.words import count

_LIST = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_KEY = re.compile(
    rb'"(file_name|image_id|supercategory|category_id|segmentation|bbox|iscrowd)"\s*:'
)
_OF_ONE_IMAGE = re.compile(rb'"(image"\s*:\s*\{|predicted_iou")')  # of Segment Anything
_NESTED = re.compile(rb"\[\s*\[")
_HUGE = re.compile(rb"[eE]\+?\d{3}|\d{300}")  # a number that may exceed those of floats
_TASK = re.compile(r"(?:instances|person_keypoints)(?=[^/]*$)")
_MAX_ODD_CATEGORIES = 1000  # with ids that are not labels, which may be colliding keys
_LARGEST_AREA = float(np.finfo(np.float32).max)
_KINDS = {str: "text", float: "a fraction", bool: "a truth value", type(None): "missing"}
_NO_TABLE = "Write the rows of a table as JSON Lines: an object in each line."
_NOT_REQUESTED = "object masks are not requested"
_NO_ID = -1
_SPLIT_FILE = "_annotations.coco.json"


class _Document(msgspec.Struct):
    categories: list[msgspec.Raw] | None = None
    annotations: list[msgspec.Raw] | None = None
    images: list[msgspec.Raw] | None = None


_FIRST = 1000
"""So many annotations show which fields those of a file have."""

_OF_IMAGES = "id file_name width height license flickr_url coco_url date_captured"


class _Annotation(msgspec.Struct):
    id: Any = None
    image_id: Any = None
    category_id: Any = None
    bbox: Any = None
    area: Any = None
    iscrowd: Any = None
    caption: Any = None
    attributes: msgspec.Raw = msgspec.Raw()
    keypoints: msgspec.Raw = msgspec.Raw()  # raw values are not parsed
    segmentation: msgspec.Raw = msgspec.Raw()
    segments_info: msgspec.Raw = msgspec.Raw()


_FIELDS = {
    "annotations": {*_Annotation.__struct_fields__, "num_keypoints"},
    "images": {*_OF_IMAGES.split()},
}


def matches(head: bytes) -> bool:
    """Whether a file begins like COCO's: with one of its lists and its keys, or with two lists."""
    head = head.removeprefix(codecs.BOM_UTF8).lstrip()
    lists = {match[1] for match in _LIST.finditer(head)}
    is_known = len(lists) > 1 or (bool(lists) and _KEY.search(head) is not None)
    is_of_one = lists == {b"annotations"} and _OF_ONE_IMAGE.search(head) is not None
    is_other = is_of_one and b'"category_id"' not in head
    return head.startswith(b"{") and is_known and not is_other


def parse(file: AnnotationFile) -> Iterator[AnnotatedImage]:
    """Yield the images of a file, with their captions in other files."""
    captioned: dict[str, AnnotatedImage] = {}
    if (other := file.captions) is not None:
        captioned = {repr(image.id): image for image in _CocoFile(other).images()}
        file.problems.extend(other.problems)
        file.notices += other.notices
    for image in _CocoFile(file).images():
        found = captioned.pop(repr(image.id), image)
        if other is not None and found.file_name != image.file_name:
            both = f"{image.file_name!r:.60}, but {found.file_name!r:.60} in {other.name}"
            file.problems.add(f"{file.name}: {image.where} is {both}")
        yield image._replace(captions=found.captions)
    if other is not None and captioned:
        number = count(len(captioned), "image")
        file.notices.append(f"captions of {number} in {other.name} left out: not in {file.name}")


def _is_caption(item: _Annotation) -> bool:
    """Whether an annotation is a caption of its image, without a box."""
    return isinstance(item.caption, str) and item.bbox is None


def _decode(raw: msgspec.Raw) -> _Annotation:
    return msgspec.json.decode(raw, type=_Annotation)


def _object(item: _Annotation, file: AnnotationFile) -> AnnotatedObject:
    where = f"annotation {item.id}"
    category, box = item.category_id, item.bbox
    if type(category) is not int:
        kind = _KINDS.get(type(category), "a list or object")
        fault = f"category_id {category!r:.60} is {kind}; expected an integer"
        return AnnotatedObject(where, None, fault=fault)
    name = file.class_names.get(category)
    if name is None:
        return AnnotatedObject(where, None, fault=f"unknown category_id {category}")
    file.used_classes.add(category)
    keypoints = _flat(item.keypoints)
    points = _keypoints(keypoints, is_declared=name in file.keypoint_classes)
    if points is None:
        fault = f"invalid keypoints {bytes(item.keypoints)[:60]!r}; expected a list of numbers"
        return AnnotatedObject(where, name, fault=fault)
    of_points = None
    if box in (None, []) and points:
        values = [*map(to_float, msgspec.json.decode(keypoints))]
        around = object_of_points(where, name, values[: len(values) // 3 * 3])
        if around.fault:
            return around
        corners, of_points = around.corners, around.outline
    elif isinstance(box, list) and len(box) == 4:
        x, y, width, height = map(to_float, box)
        corners = (x, y, x + width, y + height)
    else:
        fault = f"invalid bbox {str(box)[:60]}; expected [x, y, width, height]"
        return AnnotatedObject(where, name, fault=fault)
    area = to_float(item.area)
    known_area = area if 0 <= area <= _LARGEST_AREA else None
    extra = (int(to_float(item.iscrowd) > 0), known_area, item.id if _is_id(item.id) else _NO_ID)
    attributes = _attributes(item.attributes)
    if isinstance(item.caption, str):
        attributes["caption"] = item.caption
    degrees = attributes.pop("rotation", 0)  # of CVAT, clockwise about the centre
    degrees = 0 if isinstance(degrees, str) else degrees % 360
    if degrees and bytes(item.segmentation).strip(b"[] \t\r\n") in (b"", b"null"):
        known = rotated_object(where, name, corners, degrees, extra)
        return known._replace(points=points, attributes=attributes)
    outline = bytes(item.segmentation).decode("utf-8", "replace") if file.with_outlines else None
    return AnnotatedObject(
        where, name, corners, outline or of_points, extra, points=points, attributes=attributes
    )


def _flat(raw: msgspec.Raw) -> msgspec.Raw:
    """The numbers of keypoints end to end, where each has a list of its three."""
    if not _NESTED.match(raw):
        return raw
    lists = _decoded(raw)
    if lists is None or not all(isinstance(values, list) and len(values) == 3 for values in lists):
        return raw
    return msgspec.Raw(msgspec.json.encode([value for values in lists for value in values]))


def _keypoints(raw: msgspec.Raw, *, is_declared: bool) -> Points | None:
    """x, y and visibility of each keypoint, end to end; None if it is not a list.

    What the category declares stays text until the image is read.
    """
    text = bytes(raw)
    if text in (b"", b"null", b"[]"):
        return ()
    if not text.startswith(b"[") or _NESTED.match(text):
        return None
    return raw if is_declared and not _HUGE.search(text) else _decoded(raw)


def _decoded(raw: msgspec.Raw) -> list[Any] | None:
    """A list; None if a number in it exceeds those of floats."""
    try:
        return msgspec.json.decode(raw, type=list)
    except msgspec.DecodeError:
        return None


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _attributes(raw: msgspec.Raw) -> dict[str, Any]:
    """The attributes of an object; empty for what is not an object of JSON."""
    if not memoryview(raw):
        return {}
    try:
        return attributes_in(msgspec.json.decode(raw))
    except (ValueError, RecursionError):  # attributes of another tool
        return {}


def _keypoint_class(category: Mapping[str, Any]) -> KeypointClass | None:
    """The keypoints of a category, and its skeleton, whose numbers start at 1; None without."""
    names, lines = category.get("keypoints"), category.get("skeleton")
    if not isinstance(names, list) or not 0 < len(names) <= MAX_KEYPOINTS:
        return None
    if not all(isinstance(name, str) and is_class_name(name) for name in names):
        return None
    lines = lines if isinstance(lines, list) else []
    skeleton = tuple((line[0] - 1, line[1] - 1) for line in lines if _is_line(line, len(names)))
    return KeypointClass(tuple(names), skeleton)


def _is_line(line: Any, count: int) -> bool:
    is_pair = isinstance(line, list) and len(line) == 2
    return is_pair and all(type(number) is int and 0 < number <= count for number in line)


class _CocoFile:
    """Finds the entries of one file, and what is wrong in its lists."""

    def __init__(self, file: AnnotationFile) -> None:
        self._file = file
        self._data = json_text(file.location.read(), file.name)
        self._counted = 0, 1  # a position in the file, and its line
        self._outlines = self._annotation_count = 0
        self._fields: dict[str, dict[str, Any]] = {"annotations": {}, "images": {}}
        self._has_ids = False
        # keyed by ids as text, because a file may contain integers that collide as dict keys
        self._annotations: dict[str, list[msgspec.Raw]] = {}
        self._images: dict[str, AnnotatedImage] = {}

    def images(self) -> Iterator[AnnotatedImage]:
        file, document = self._file, self._document()
        for value, start, _ in self._entries(document.categories, "categories", dict):
            self._add_category(value, start)
        for value, start, raw in self._entries(document.annotations, "annotations", _Annotation):
            self._add_annotation(value, start, raw)
        for value, start, _ in self._entries(document.images, "images", dict):
            self._add_image(value, start)
        if self._outlines and not file.with_outlines:
            annotations = count(self._outlines, "annotation")
            notice = f"segmentation of {annotations} in {file.name} left out: {_NOT_REQUESTED}"
            file.notices.append(notice)
        for of, names in self._fields.items():
            if left := [f"{name:.60}" for name in names if name not in _FIELDS[of]]:
                file.notices.append(f"fields of {of} in {file.name} left out: {join_names(left)}")
        file.has_objects = bool(document.categories or file.captions)
        if not self._has_ids:
            file.features = [key for key in file.features if key != OBJECT_ID]
        self._report_orphans()
        for key, image in self._images.items():
            items = [*map(_decode, self._annotations.pop(key, ())[: MAX_OBJECTS + 1])]
            captions = tuple(str(item.caption).strip() for item in items if _is_caption(item))
            objects = [_object(item, file) for item in items if not _is_caption(item)]
            yield image._replace(objects=objects, captions=captions)

    def _document(self) -> _Document:
        data, file = self._data, self._file
        remedy = _NO_TABLE if data[:64].lstrip()[:1] == b"[" else ""
        what = "a COCO annotation file"
        document: _Document = decode_json(data, file.name, _Document, what, remedy)
        if document.images is None:
            raise SourceError(
                "not a COCO annotation file: the list images is missing; expected the lists "
                "images, annotations and categories",
                path=file.name,
            )
        return document

    def _entries(
        self, entries: list[msgspec.Raw] | None, key: str, kind: Any
    ) -> Iterator[tuple[Any, int, msgspec.Raw]]:
        """Yield each entry of a list that is an object, with its start in the file."""
        data = self._data
        stop = max(0, data.find(f'"{key}"'.encode()))
        self._counted = 0, 1
        for entry in entries or ():
            raw = memoryview(entry)
            start = data.find(raw, stop)
            stop = start + len(raw)
            if len(raw) > MAX_ENTRY_BYTES:
                problem = f"an entry is longer than {MAX_ENTRY_BYTES:,} bytes"
                raise self._error(problem, start, "Remove it, or simplify its segmentation.")
            try:
                yield msgspec.json.decode(raw, type=kind), start, entry
            except (ValueError, RecursionError):
                if not is_utf8(raw):
                    raise encoding_error(self._file.name, line=self._line(start)) from None
                shown = bytes(raw[:60]).decode("utf-8", "replace")
                self._add_problem(start, f"invalid {key} {shown!r}; expected objects")

    def _add_annotation(self, item: _Annotation, start: int, raw: msgspec.Raw) -> None:
        self._has_ids |= _is_id(item.id)
        self._outlines += len(memoryview(item.segmentation)) > len("null")
        if memoryview(item.segments_info):
            raise self._error(
                "panoptic segments are not read; expected annotations with a category and a bbox",
                start,
                "Pack the file with the instances of these images.",
            )
        self._annotation_count += 1
        if self._annotation_count <= _FIRST:
            try:
                fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            except ValueError:  # in a name that the others do not ask for
                raise encoding_error(self._file.name, line=self._line(start)) from None
            self._fields["annotations"].update(fields)
        if isinstance(item.image_id, (int, str)):
            self._annotations.setdefault(repr(item.image_id), []).append(raw)
        else:
            annotation = f"annotation {str(item.id)[:60]}"
            self._add_problem(start, f"{annotation} has image_id {str(item.image_id)[:60]}")

    def _add_image(self, image: dict[str, Any], start: int) -> None:
        image_id, name = image.get("id"), image.get("file_name")
        shown = f"image {str(image_id)[:60]}"
        if not isinstance(image_id, (int, str)) or not isinstance(name, str):
            self._add_problem(start, f"{shown} has file_name {str(name)[:60]}")
            return
        self._fields["images"].update(image)
        size = to_float(image.get("width") or 0), to_float(image.get("height") or 0)
        listed = AnnotatedImage(f"image {image_id}", name, size, id=image_id)
        known = self._images.setdefault(repr(image_id), listed).file_name
        if known != name:
            self._add_problem(start, f"{shown} is both {known!r:.60} and {name!r:.60}")

    def _add_category(self, category: dict[str, Any], start: int) -> None:
        names, number, name = self._file.class_names, category.get("id"), category.get("name")
        if type(number) is not int or not isinstance(name, str) or not name or "\n" in name:
            self._add_problem(start, f"category {str(number)[:60]} has name {name!r:.60}")
        elif not 0 <= number <= LARGEST_LABEL and len(names) >= _MAX_ODD_CATEGORIES:
            self._add_problem(start, f"category {name!r:.60} has id {str(number)[:60]}")
        elif names.setdefault(number, name) != name:
            other = names[number]
            self._add_problem(start, f"category {number} is both {other!r} and {name!r}")
        if known := _keypoint_class(category):
            self._file.keypoint_classes.setdefault(str(name), known)
        above = category.get("supercategory")
        if isinstance(above, str) and above:
            self._file.supercategories.setdefault(number, above)

    def _report_orphans(self) -> None:
        """Report annotations whose image is not listed."""
        file = self._file
        unknown = [key for key in self._annotations if key not in self._images]
        if unknown and len(unknown) == len(self._annotations):
            file.problems.add(
                f"{file.name}: the image_id of every annotation is unknown; the first is "
                f"{unknown[0]:.60}"
            )
        orphans = [raw for key in unknown for raw in self._annotations.pop(key)]
        if orphans:
            number = count(len(orphans), "annotation")
            ids = join_names(str(_decode(raw).id) for raw in orphans)
            notice = f"{number} of unlisted images in {file.name} skipped: {ids}"
            check, files = Check.ANNOTATION_WITHOUT_IMAGE, [file.name]
            file.notices.append(Flaw(notice, check, files=files, item_count=len(orphans)))

    def _add_problem(self, start: int, what: str) -> None:
        self._file.problems.add(f"{self._file.name}, line {self._line(start)}: {what}")

    def _error(self, problem: str, position: int, remedy: str = "") -> SourceError:
        line = self._line(position)
        return SourceError(problem, path=self._file.name, line=line, remedy=remedy)

    def _line(self, position: int) -> int:
        seen, line = self._counted  # problems come in the order of the text
        line += self._data.count(b"\n", seen, position)
        self._counted = position, line
        return line


class Coco(
    SharedAnnotationSource,
    box_format=BoxFormat(
        "coco",
        ".json",
        matches,
        parse,
        what="images and annotations of {} (COCO)",
        file_what="a JSON file",
        file_suffixes=(".json",),
        owns_suffixes=True,
        expected="annotations/instances_<split>.json with one folder of images per split, "
        "<split>/_annotations.coco.json next to the images, or one .json file next to or above "
        "them",
        has_attributes=True,
        features={OBJECT_IS_CROWD: "int64", OBJECT_AREA: "float", OBJECT_ID: "int64"},
    ),
):
    """Images with boxes, and optionally masks, in COCO's JSON format.

    Each sample has the image and box features of `Voc`, with category ids as labels, and
    `image/object/is_crowd`, `image/object/area` (in pixels, from the file) and `image/object/id`
    (of the annotation; -1 without one). Each of `attributes` becomes
    `image/object/attribute/NAME`: numbers if all objects have one, otherwise texts. Captions become
    `image/caption`, also those of `captions_train.json` next to `instances_train.json`; images that
    have only captions have no boxes. If CVAT rotated any box
    (`attributes.rotation`), all have corners, as in `Dota`. The manifest keeps the supercategories,
    for exports.

    Example:
        rs.pack(rs.Coco("coco", object_masks="instance"), "packed")
    """

    @staticmethod
    def _chosen(paths: Sequence[str]) -> Sequence[str]:
        """Those of instances, if there are any: others are of captions, keypoints or stuff."""
        instances = [path for path in paths if "instances" in posixpath.basename(path)]
        others = [path for path in paths if "captions" not in posixpath.basename(path)]
        return instances or others or paths

    @staticmethod
    def _hints(paths: Sequence[str], chosen: Sequence[str]) -> Mapping[str, str]:
        for path in paths:
            if "keypoints" in posixpath.basename(path) and path not in chosen:
                return {"annotations": f"for keypoints, pass {option('annotations', path)}"}
        return {}

    @staticmethod
    def _captions(path: str) -> str:
        return _TASK.sub("captions", path)

    def _find(self, index: FileIndex) -> list[str]:
        documents = [path for path in index.paths if path.lower().endswith(".json")]
        for group in (
            [path for path in documents if posixpath.basename(path) == _SPLIT_FILE],
            [path for path in documents if posixpath.dirname(path).lower() == "annotations"],
            [path for path in documents if "/" not in path],
            documents,
        ):
            if known := [path for path in group if self._matches(index, path)]:
                return known
        raise no_files(index.root, self.box_format.expected, index)

    def _categories(
        self, files: Collection[AnnotationFile], classes: Classes
    ) -> Mapping[str, Mapping[str, Any]]:
        categories: dict[str, dict[str, Any]] = {}
        for file in files:
            for number, name in file.class_names.items():
                label = classes.label_of(name)
                known = categories.setdefault(str(label), {"name": name})
                if number != label and self._label_map is None:
                    known["id"] = number
                if number in file.supercategories:
                    known.setdefault("supercategory", file.supercategories[number])
        return {
            label: known
            for label, known in sorted(categories.items())
            if len(known) > 1 and label != "None"
        }

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], used: Collection[str]
    ) -> tuple[Classes, list[str]]:
        problems = Problems()
        names: dict[int, str] = {}
        conflicts = []
        for file in files:
            problems.extend(file.problems)
            for number, name in file.class_names.items():
                if names.setdefault(number, name) != name:
                    other = f"{names[number]!r} in another file"
                    conflicts.append(f"category {number} is {name!r} in {file.name} and {other}")
        if problems and (self._policy == "stop" or not used):
            way = f"pack the images without them with {option('format', 'files')}"
            if self._policy == "stop":
                way = f"pass {option('boxes', 'drop')} to drop them"
            raise SourceError(
                "the annotation files have invalid entries",
                problems,
                path=self.root,
                remedy=f"Fix them, or {way}.",
                lists_problems=True,
            )
        if conflicts and self._label_map is None:
            raise SourceError(
                f"the annotation files have different categories: {join_names(conflicts)}",
                conflicts,
                remedy=f"Fix them, or pass {option('label_map')} to use labels by name.",
            )
        notices = []
        if problems:
            invalid = count(problems.count, "invalid entry", "invalid entries")
            notices.append(f"{invalid} dropped: {join_problems(problems)}")
        if 0 in names and self._label_map is None and not self._class_from:
            if any(0 in file.used_classes for file in files):
                names = {number + 1: name for number, name in names.items()}
                notices.append(
                    "categories start at 0, the background: each label is its category id plus 1"
                )
            else:
                notices.append(f"1 category without objects dropped: 0, {names.pop(0)!r}")
        origin = f"the categories of {join_names(file.name for file in files)}"
        classes = classes_by_label(names, self._label_map, origin)
        classes.names()  # labels are checked before images are looked for
        return classes, notices
