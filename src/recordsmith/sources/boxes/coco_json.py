"""Index one COCO JSON file: its categories, its images, and the positions of annotations.

Such files reach half a gigabyte, so the text is scanned element by element, and annotations are
parsed again when their sample is read. Memory stays close to the size of the file.
"""

from __future__ import annotations

import codecs
import json
import re
from array import array
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from recordsmith.dataset.documents import json_fault
from recordsmith.dataset.labels import LARGEST_LABEL
from recordsmith.errors import Problems, SourceError
from recordsmith.sources.boxes.annotated import VALUE_BYTES, changed_error
from recordsmith.sources.boxes.annotation_files import DescribedImage
from recordsmith.sources.files.paths import size_and_version
from recordsmith.stores import Location

MAX_ELEMENT_BYTES = 1 << 23
"""The longest element of a list in the file, such as an annotation with its polygons."""

_scan = json.JSONDecoder().raw_decode  # (text, at) -> (value, its end)
_space = re.compile(r"[ \t\n\r]*").match
_WINDOW_BYTES = 1 << 18
_LISTS = frozenset(("categories", "images", "annotations"))
_HEAD_BYTES = 1 << 16
_BYTE_ORDER_MARK = codecs.BOM_UTF8
_MOST_ODD_CATEGORIES = 1000  # with ids that are not labels, which may be colliding keys


class CocoFile:
    """What a listing keeps of one file.

    Attributes:
        name: its name in messages.
        categories: id -> name, without invalid ones.
        images: the entries in the file, reduced to the needed keys.
        problems: the problems of categories and images.
        used: category ids of annotations that can be labels.
        orphans: ids of annotations whose image is not listed.
        keypoints_count, outline_count: annotations with keypoints, with a segmentation.
        is_panoptic: whether annotations have segments in PNG files.
        version: changes when the file changes.
    """

    def __init__(self, location: Location, name: str) -> None:
        """Read and scan the file.

        Raises:
            SourceError: the file is not valid COCO JSON; `line` is where.
            FileAccessError: the file cannot be read.
        """
        self.name = name
        self.categories: dict[int, str] = {}
        self.images: list[dict[str, Any]] = []
        self.problems = Problems()
        self.used: set[int] = set()
        self.orphans: list[Any] = []
        self.keypoints_count = 0
        self.outline_count = 0
        self.is_panoptic = False
        # keyed by ids as text, because a file may contain integers that collide as dict keys
        self._places: dict[str, array[int]] = {}  # start and end of an image's annotations
        _, self.version = size_and_version(location)
        self._images: dict[str, str] = {}  # the file name of an image
        self._data = location.read()
        self._counted = 0, 1  # a position in the file, and its line
        found = set()
        for key, value, at, end in _Scanner(self._data, name).elements():
            found.add(key)
            if end:
                self._take(key, value, at, end)
        if "images" not in found:
            raise SourceError(
                f"not a COCO annotation file: found the keys {', '.join(sorted(found)) or 'none'}; "
                "expected the lists images, annotations and categories",
                path=name,
            )
        known = {repr(image["id"]) for image in self.images}
        if self._places and known.isdisjoint(self._places):
            self.problems.add(
                f"{name}: the image_id of every annotation is unknown; the first is "
                f"{next(iter(self._places)):.60}"
            )
        self._images.clear()
        for image_id in [key for key in self._places if key not in known]:
            places = self._places.pop(image_id)
            self.orphans += [self._parse(*pair).get("id", "?") for pair in _pairs(places)]

    def described(self) -> Iterator[DescribedImage[Described]]:
        """Yield the images in the order of the file."""
        for image in self.images:
            where = f"image {image['id']}"
            yield DescribedImage(where, image["file_name"], Described(self, image))

    def reference_of(self, image_id: Any, most_bytes: int = VALUE_BYTES) -> dict[str, Any]:
        """The annotations of an image in file order, or their ranges of bytes if they are large."""
        places = self._places.get(repr(image_id), array("q"))
        if sum(places[1::2]) - sum(places[::2]) <= most_bytes:
            return {"annotations": [self._parse(*pair) for pair in _pairs(places)]}
        return {"ranges": list(map(list, _pairs(places)))}

    def _parse(self, start: int, stop: int) -> Any:
        return json.loads(self._data[start:stop])

    def _take(self, key: str, value: Any, at: int, end: int) -> None:
        if not isinstance(value, dict):
            self._add_problem(at, f"invalid {key} {str(value)[:60]!r}; expected objects")
        elif key == "annotations":
            image_id = value.get("image_id")
            category = value.get("category_id")
            self.keypoints_count += "keypoints" in value
            self.outline_count += bool(value.get("segmentation"))
            if "segments_info" in value:
                self.is_panoptic = True
                for each in segments_of(value):
                    self._use(each.get("category_id"))
            if not isinstance(image_id, (int, str)):
                annotation = f"annotation {str(value.get('id'))[:60]}"
                self._add_problem(at, f"{annotation} has image_id {str(image_id)[:60]}")
                return
            places = self._places.get(repr(image_id))
            if places is None:
                places = self._places[repr(image_id)] = array("q")
            places.append(at)
            places.append(end)
            self._use(category)
        elif key == "images":
            image_id, file_name = value.get("id"), value.get("file_name")
            if not isinstance(image_id, (int, str)) or not isinstance(file_name, str):
                image = f"image {str(image_id)[:60]}"
                self._add_problem(at, f"{image} has file_name {str(file_name)[:60]}")
                return
            known = self._images.setdefault(repr(image_id), file_name)
            if known != file_name:
                both = f"{known!r:.60} and {file_name!r:.60}"
                self._add_problem(at, f"image {str(image_id)[:60]} is both {both}")
                return
            wanted = ("id", "file_name", "width", "height")
            self.images.append({name: value.get(name) for name in wanted})
        else:
            number, name = value.get("id"), value.get("name")
            if type(number) is not int or not isinstance(name, str) or not name or "\n" in name:
                self._add_problem(at, f"category {str(number)[:60]} has name {name!r:.60}")
            elif not 0 <= number <= LARGEST_LABEL and len(self.categories) >= _MOST_ODD_CATEGORIES:
                self._add_problem(at, f"category {name!r:.60} has id {str(number)[:60]}")
            elif self.categories.setdefault(number, name) != name:
                other = self.categories[number]
                self._add_problem(at, f"category {number} is both {other!r} and {name!r}")

    def _use(self, category: Any) -> None:
        if isinstance(category, int) and 0 <= category <= LARGEST_LABEL:
            self.used.add(category)

    def _add_problem(self, at: int, what: str) -> None:
        seen, line = self._counted  # problems come in the order of the text
        line += self._data.count(b"\n", seen, at)
        self._counted = at, line
        self.problems.add(f"{self.name}, line {line}: {what}")


def looks_like_coco(location: Location) -> bool:
    """Whether a JSON file starts like COCO's: an object with one of its lists near the start."""
    head = location.read(0, _HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    keys = (b'"images"', b'"annotations"', b'"categories"')
    return head.startswith(b"{") and any(key in head for key in keys)


class Described(NamedTuple):
    """One image in a JSON file: the file, and the entry in it."""

    file: CocoFile
    image: Mapping[str, Any]


def segments_of(annotation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The segments of a panoptic annotation, each like an annotation of one object."""
    found = annotation.get("segments_info")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def read_annotations(location: Location, reference: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the annotations that a reference contains, or that it has the ranges of.

    Those of ranges have their segmentation as a function, because an image can have many.

    Raises:
        SourceError: the file has changed.
        FileAccessError: the file cannot be read.
    """
    if "annotations" in reference:
        yield from reference["annotations"]
        return
    for start, stop in reference["ranges"]:
        data = location.read(start, stop)
        try:
            annotation = json.loads(data)
        except ValueError:
            raise changed_error(str(location)) from None
        if "segmentation" in annotation:
            annotation["segmentation"] = partial(_segmentation, data)
        yield annotation


def _segmentation(annotation: bytes) -> Any:
    return json.loads(annotation)["segmentation"]


def _pairs(places: array[int]) -> Iterator[tuple[int, int]]:
    return zip(places[::2], places[1::2], strict=True)


class _Scanner:
    """Parses a file value by value, through a window that is decoded."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._text = ""  # the window
        self._at = 0  # in the window
        self._stop = len(_BYTE_ORDER_MARK) * data.startswith(_BYTE_ORDER_MARK)  # of the window
        self._known = 0, 0  # a position in the window, and the same in the file

    def elements(self) -> Iterator[tuple[str, Any, int, int]]:
        """Yield (key, None, 0, 0) for each key, and (key, element, start, end) in COCO's lists.

        `start` and `end` are positions in the file.
        """
        self._expect("{")
        while self._next() != "}":
            key = str(self._value()[0])
            self._expect(":")
            yield key, None, 0, 0
            if self._next() == "[":
                self._at += 1
                while self._next() != "]":
                    found = self._value()
                    if key in _LISTS:
                        yield key, *found
                    self._next_item("]")
                self._at += 1
            else:
                value, start, _ = self._value()
                if key in _LISTS and value is not None:
                    problem = f"{key} is {str(value)[:60]!r}; expected a list"
                    raise SourceError(problem, path=self._name, line=self._line(start))
            self._next_item("}")
        self._at += 1
        if self._next():
            raise self._invalid()

    def _next(self) -> str:
        """Skip spaces; return the next character, empty at the end of the file."""
        while True:
            match = _space(self._text, self._at)
            self._at = self._at if match is None else match.end()
            if self._at < len(self._text) or self._stop == len(self._data):
                return self._text[self._at : self._at + 1]
            self._move(self._stop, _WINDOW_BYTES)

    def _move(self, start: int, size_bytes: int) -> None:
        """Move the window, and the position to its start."""
        stop = start + size_bytes
        try:
            self._text, size = codecs.utf_8_decode(
                self._data[start:stop], "strict", stop >= len(self._data)
            )
        except UnicodeDecodeError as error:
            raise SourceError(
                f"not UTF-8 at byte {start + error.start:,}",
                path=self._name,
                remedy="Save the file as UTF-8.",
            ) from None
        self._at, self._stop, self._known = 0, start + size, (0, start)

    def _value(self) -> tuple[Any, int, int]:
        """Parse the next value; return it with its start and end in the file."""
        self._next()
        start = self._offset(self._at)
        for size_bytes in (0, _WINDOW_BYTES, MAX_ELEMENT_BYTES):
            if size_bytes:  # the value is cut by the end of the window
                self._move(start, size_bytes)
            try:
                value, end = _scan(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - 16 or error.msg.startswith("Unterminated")
                if not is_cut or self._stop == len(self._data):
                    self._at = error.pos
                    raise self._invalid() from None
            except (RecursionError, ValueError) as error:  # nested too deep, too many digits
                line = self._line(start)
                raise SourceError(json_fault(error), path=self._name, line=line) from None
            else:
                if end < len(self._text) or self._stop == len(self._data):
                    self._at = end
                    return value, start, self._offset(end)
        raise SourceError(
            f"an entry is longer than {MAX_ELEMENT_BYTES:,} bytes",
            path=self._name,
            line=self._line(start),
            remedy="Remove it, or simplify its segmentation.",
        )

    def _next_item(self, closing: str) -> None:
        """Skip the comma to the next item, or stay at the closing bracket."""
        if self._next() != closing:
            self._expect(",")

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise self._invalid()
        self._at += 1

    def _offset(self, at: int) -> int:
        """The position in the file of one in the window, which must not go back."""
        known, offset = self._known
        is_short = self._text.isascii()
        offset += at - known if is_short else len(self._text[known:at].encode())
        self._known = at, offset
        return offset

    def _invalid(self) -> SourceError:
        line = self._line(self._offset(self._at))
        shown = self._text[self._at : self._at + 30]
        problem = f"invalid JSON at {shown!r}" if shown else "truncated JSON"
        return SourceError(problem, path=self._name, line=line)

    def _line(self, at: int) -> int:
        return self._data.count(b"\n", 0, at) + 1
