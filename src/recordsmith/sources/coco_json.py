"""One COCO JSON file: its categories, its pictures, and where the annotations of each are.

Such files reach half a gigabyte. So the text is walked element by element, and of each annotation
only its place in the text is kept; it is read again when its sample is. Memory stays near the size
of the text, and nothing is parsed into objects that are not looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from recordsmith.dataset.documents import json_fault
from recordsmith.errors import SourceError
from recordsmith.files import read_file, read_head
from recordsmith.sources.versions import size_and_time

_scan = json.JSONDecoder().raw_decode  # (text, at) -> (value, where it ends)
_space = re.compile(r"[ \t\n\r]*").match
_LISTS = frozenset(("categories", "images", "annotations"))
_HEAD_BYTES = 1 << 16


class CocoFile:
    """What listing keeps of one file.

    Attributes:
        name: what it is called in messages.
        categories: number -> name, as far as they are numbers and names.
        images: as the file has them, without what no sample needs.
        problems: what is wrong with categories and pictures.
        used: numbers of the categories that annotations have.
        strangers: annotations of pictures that are not listed: their ids.
        version: another number when the file was changed.
    """

    def __init__(self, path: str, name: str) -> None:
        """Read and walk the file.

        Raises:
            SourceError: it is no JSON, or no COCO JSON; says the line.
            FileAccessError: it cannot be read.
        """
        self.name = name
        self.categories: dict[int, str] = {}
        self.images: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.used: set[int] = set()
        self.strangers: list[Any] = []
        self._places: dict[Any, list[int]] = {}  # id of a picture -> where its annotations begin
        _, self.version = size_and_time(path)
        self._pictures: dict[Any, str] = {}  # id -> file name
        self._text = _decoded(path, name)
        self._counted = 0, 1  # a place in the text, and its line
        found = set()
        for key, value, at in _elements(self._text, name):
            found.add(key)
            if at is not None:
                self._take(key, value, at)
        if "images" not in found:
            raise SourceError(
                f"{name} is no COCO annotation file: expected the lists images, annotations and "
                f"categories, found {', '.join(sorted(found)) or 'nothing'}"
            )
        known = {image["id"] for image in self.images}
        if self._places and known.isdisjoint(self._places):
            self.problems.append(
                f"{name}: no annotation is of a picture that is listed; the first has the image_id "
                f"{next(iter(self._places))!r}"
            )
        self._pictures.clear()
        for image_id in [key for key in self._places if key not in known]:
            places = self._places.pop(image_id)
            self.strangers += [self._annotation(at).get("id", "?") for at in places]

    def annotations_of(self, image_id: Any) -> list[dict[str, Any]]:
        """All annotations of one picture, in the order of the file."""
        return [self._annotation(at) for at in self._places.get(image_id, ())]

    def _annotation(self, at: int) -> dict[str, Any]:
        value: dict[str, Any] = _scan(self._text, at)[0]
        return value

    def _take(self, key: str, value: Any, at: int) -> None:
        if not isinstance(value, dict):
            self._complain(at, f"in {key}: {str(value)[:60]!r}; expected an object in braces")
        elif key == "annotations":
            image_id = value.get("image_id")
            category = value.get("category_id")
            if not isinstance(image_id, (int, str)):
                annotation = f"the annotation {str(value.get('id'))[:60]}"
                self._complain(at, f"{annotation} has the image_id {str(image_id)[:60]}")
                return
            self._places.setdefault(image_id, []).append(at)
            if isinstance(category, int):
                self.used.add(category)
        elif key == "images":
            image_id, file_name = value.get("id"), value.get("file_name")
            if not isinstance(image_id, (int, str)) or not isinstance(file_name, str):
                picture = f"the picture {str(image_id)[:60]}"
                self._complain(at, f"{picture} has the file_name {str(file_name)[:60]}")
                return
            if self._pictures.setdefault(image_id, file_name) != file_name:
                both = f"{self._pictures[image_id]!r:.60} and {file_name!r:.60}"
                self._complain(at, f"the picture {str(image_id)[:60]} is both {both}")
                return
            wanted = ("id", "file_name", "width", "height")
            self.images.append({name: value.get(name) for name in wanted})
        else:
            number, name = value.get("id"), value.get("name")
            if type(number) is not int or not isinstance(name, str) or not name or "\n" in name:
                self._complain(at, f"the category {str(number)[:60]} has the name {name!r:.60}")
            elif self.categories.setdefault(number, name) != name:
                other = self.categories[number]
                self._complain(at, f"the category {number} is both {other!r} and {name!r}")

    def _complain(self, at: int, what: str) -> None:
        seen, line = self._counted  # complaints come in the order of the text
        line += self._text.count("\n", seen, at)
        self._counted = at, line
        self.problems.append(f"{self.name}, line {line}: {what}")


def looks_like_coco(path: str) -> bool:
    """Whether a JSON file begins like COCO's: an object, with one of its lists near the start.

    A file whose lists come late is asked for by name.
    """
    head = read_head(path, _HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    keys = (b'"images"', b'"annotations"', b'"categories"')
    return head.startswith(b"{") and any(key in head for key in keys)


def _decoded(path: str, name: str) -> str:
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{name} is not UTF-8 (byte {error.start:,}); save it as UTF-8") from None


def _elements(text: str, name: str) -> Iterator[tuple[str, Any, int | None]]:
    """(key, element, where it begins) of COCO's lists; (key, None, None) for all keys."""
    at = 0
    try:
        at = _expect(text, _skip(text, 0), "{")
        while text[at : at + 1] != "}":
            key, at = _scan(text, at)
            at = _skip(text, _expect(text, _skip(text, at), ":"))
            yield str(key), None, None
            if key in _LISTS and text[at : at + 1] == "[":
                at = _skip(text, at + 1)
                while text[at : at + 1] != "]":
                    value, end = _scan(text, at)
                    yield key, value, at
                    at = _next(text, end, "]")
                at += 1
            else:
                value, end = _scan(text, at)
                if key in _LISTS and value is not None:
                    raise SourceError(
                        f"{name}, line {_line(text, at)}: {key} is {str(value)[:60]!r}; expected "
                        "a list in brackets"
                    )
                at = end
            at = _next(text, at, "}")
        if _skip(text, at + 1) < len(text):
            raise json.JSONDecodeError("expected the end", text, _skip(text, at + 1))
    except json.JSONDecodeError as error:
        raise _no_json(text, error.pos, name) from None
    except SourceError:
        raise
    except (RecursionError, ValueError) as error:  # nested too deep, a number of too many digits
        raise SourceError(f"{name}, line {_line(text, at)}: {json_fault(error)}") from None


def _next(text: str, at: int, closing: str) -> int:
    """Behind the comma; or at the closing bracket."""
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


def _no_json(text: str, at: int, name: str) -> SourceError:
    found = repr(text[at : at + 30]) if at < len(text) else "its end: it was cut off"
    return SourceError(f"{name}, line {_line(text, at)}: it is no whole JSON, found {found}")


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
