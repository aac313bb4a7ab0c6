"""Index one COCO JSON file: its categories, its images, and the positions of annotations.

Such files reach half a gigabyte, so the text is scanned element by element, and annotations are
parsed again when their sample is read. Memory stays close to the size of the text.
"""

from __future__ import annotations

import codecs
import itertools
import json
import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from recordsmith.dataset.documents import json_fault
from recordsmith.dataset.labels import LARGEST_LABEL
from recordsmith.errors import Problems, SourceError
from recordsmith.sources.boxes.annotated import VALUE_BYTES, changed_error
from recordsmith.sources.boxes.annotation_files import DescribedImage
from recordsmith.sources.files.versions import size_and_version
from recordsmith.stores import Location

_scan = json.JSONDecoder().raw_decode  # (text, at) -> (value, its end)
_space = re.compile(r"[ \t\n\r]*").match
_LISTS = frozenset(("categories", "images", "annotations"))
_HEAD_BYTES = 1 << 16
_BLOCK = 1 << 20  # characters
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
        keypoints_count: annotations with keypoints.
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
        # keyed by ids as text, because a file may contain integers that collide as dict keys
        self._places: dict[str, array[int]] = {}  # start and end of an image's annotations
        _, self.version = size_and_version(location)
        self._images: dict[str, str] = {}  # the file name of an image
        data = location.read()
        self._text = _decoded(data, name)
        self._mark_bytes = len(_BYTE_ORDER_MARK) * data.startswith(_BYTE_ORDER_MARK)
        del data
        self._offsets: array[int] | None = None  # in bytes, of each block of the text
        self._counted = 0, 1  # a position in the text, and its line
        found = set()
        for key, value, at, end in _elements(self._text, name):
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
            places = self._places.pop(image_id)[::2]
            self.orphans += [_scan(self._text, at)[0].get("id", "?") for at in places]

    def described(self) -> Iterator[DescribedImage[Described]]:
        """Yield the images in the order of the file."""
        for image in self.images:
            where = f"image {image['id']}"
            yield DescribedImage(where, image["file_name"], Described(self, image))

    def reference_of(self, image_id: Any, most_bytes: int = VALUE_BYTES) -> dict[str, Any]:
        """The annotations of an image in file order, or their ranges of bytes if they are large."""
        places = self._places.get(repr(image_id), array("q"))
        if sum(places[1::2]) - sum(places[::2]) <= most_bytes:
            return {"annotations": [_scan(self._text, at)[0] for at in places[::2]]}
        offsets = map(self._offset, places)
        return {"ranges": [list(pair) for pair in zip(offsets, offsets, strict=True)]}

    def _offset(self, at: int) -> int:
        """The offset in the file of a position in the text."""
        if self._text.isascii():
            return self._mark_bytes + at
        if self._offsets is None:
            blocks = range(0, len(self._text), _BLOCK)
            sizes = (len(self._text[start : start + _BLOCK].encode()) for start in blocks)
            self._offsets = array("q", itertools.accumulate(sizes, initial=self._mark_bytes))
        block = at // _BLOCK
        return self._offsets[block] + len(self._text[block * _BLOCK : at].encode())

    def _take(self, key: str, value: Any, at: int, end: int) -> None:
        if not isinstance(value, dict):
            self._add_problem(at, f"invalid {key} {str(value)[:60]!r}; expected objects")
        elif key == "annotations":
            if "bbox" not in value and "segments_info" in value:
                raise SourceError(
                    "the annotations are of panoptic segmentation, which has no boxes",
                    path=self.name,
                    remedy="Make a file of instances with panopticapi's "
                    "panoptic2detection_coco_format, or pack the PNG files as pairs.",
                )
            image_id = value.get("image_id")
            category = value.get("category_id")
            self.keypoints_count += "keypoints" in value
            if not isinstance(image_id, (int, str)):
                annotation = f"annotation {str(value.get('id'))[:60]}"
                self._add_problem(at, f"{annotation} has image_id {str(image_id)[:60]}")
                return
            places = self._places.get(repr(image_id))
            if places is None:
                places = self._places[repr(image_id)] = array("q")
            places.append(at)
            places.append(end)
            if isinstance(category, int) and 0 <= category <= LARGEST_LABEL:
                self.used.add(category)
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

    def _add_problem(self, at: int, what: str) -> None:
        seen, line = self._counted  # problems come in the order of the text
        line += self._text.count("\n", seen, at)
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


def read_annotations(location: Location, reference: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The annotations that a reference contains, or that it has the ranges of.

    Raises:
        SourceError: the file has changed.
        FileAccessError: the file cannot be read.
    """
    if "annotations" in reference:
        found: list[dict[str, Any]] = reference["annotations"]
        return found
    try:
        return [json.loads(location.read(start, stop)) for start, stop in reference["ranges"]]
    except ValueError:
        raise changed_error(str(location)) from None


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(
            f"not UTF-8 at byte {error.start:,}", path=name, remedy="Save the file as UTF-8."
        ) from None


def _elements(text: str, name: str) -> Iterator[tuple[str, Any, int, int]]:
    """Yield (key, None, 0, 0) for each key, and (key, element, start, end) in COCO's lists."""
    at = 0
    try:
        at = _expect(text, _skip(text, 0), "{")
        while text[at : at + 1] != "}":
            key, at = _scan(text, at)
            at = _skip(text, _expect(text, _skip(text, at), ":"))
            yield str(key), None, 0, 0
            if key in _LISTS and text[at : at + 1] == "[":
                at = _skip(text, at + 1)
                while text[at : at + 1] != "]":
                    value, end = _scan(text, at)
                    yield key, value, at, end
                    at = _next(text, end, "]")
                at += 1
            else:
                value, end = _scan(text, at)
                if key in _LISTS and value is not None:
                    raise SourceError(
                        f"{key} is {str(value)[:60]!r}; expected a list",
                        path=name,
                        line=_line(text, at),
                    )
                at = end
            at = _next(text, at, "}")
        if _skip(text, at + 1) < len(text):
            raise json.JSONDecodeError("expected end of file", text, _skip(text, at + 1))
    except json.JSONDecodeError as error:
        raise _invalid_json(text, error.pos, name) from None
    except SourceError:
        raise
    except (RecursionError, ValueError) as error:  # nested too deep, a number of too many digits
        raise SourceError(json_fault(error), path=name, line=_line(text, at)) from None


def _next(text: str, at: int, closing: str) -> int:
    """The position after the comma, or at the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    return _skip(text, _expect(text, at, ","))


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise json.JSONDecodeError(f"expected {mark}", text, at)
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _space(text, at)
    return at if match is None else match.end()


def _invalid_json(text: str, at: int, name: str) -> SourceError:
    line = _line(text, at)
    if at >= len(text):
        return SourceError("truncated JSON", path=name, line=line)
    return SourceError(f"invalid JSON at {text[at : at + 30]!r}", path=name, line=line)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
