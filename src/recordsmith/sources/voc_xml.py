"""One PASCAL VOC annotation file -> its picture's name and size, and its objects.

Parsed by expat; each object knows its line. A file that declares entities is refused
before any is expanded; other files are never asked for.
"""

from __future__ import annotations

import marshal
from typing import Any, NamedTuple, TypeAlias
from xml.parsers import expat

from recordsmith.errors import SourceError
from recordsmith.files import read_document
from recordsmith.sources.boxes import Corners, number

_Values: TypeAlias = dict[str, "_Values | str"]
"""Tag -> text, or what is in the first element of that name."""

_TRUE = frozenset(("1", "true", "yes"))


class VocObject(NamedTuple):
    """One object; `corners` is xmin, ymin, xmax, ymax, and None if it has no box."""

    line: int
    name: str
    corners: Corners | None
    difficult: int
    truncated: int
    view: str


class VocAnnotation(NamedTuple):
    """What is in one file; a size of 0 is one that it does not tell."""

    filename: str
    width: float
    height: float
    objects: tuple[VocObject, ...]


def keep(annotation: VocAnnotation) -> bytes:
    """An annotation in a tenth of the memory, for this process: there may be millions."""
    objects = tuple(map(tuple, annotation.objects))
    return marshal.dumps((annotation.filename, annotation.width, annotation.height, objects))


def kept(data: bytes) -> VocAnnotation:
    """What `keep` was given."""
    filename, width, height, objects = marshal.loads(data)  # noqa: S302 - made above
    return VocAnnotation(filename, width, height, tuple(map(VocObject._make, objects)))


def read_voc_xml(path: str, name: str) -> VocAnnotation | None:
    """Read one annotation file, called `name` in what is said of it.

    Returns:
        What it holds; None if it is XML of another kind.

    Raises:
        SourceError: it is no XML; says the line.
        FileAccessError: it cannot be read.
    """
    parsed = _parse(read_document(path), name)
    if parsed is None:
        return None
    values, objects = parsed
    size = values.get("size")
    width, height = (size.get("width"), size.get("height")) if isinstance(size, dict) else (0, 0)
    return VocAnnotation(
        _text(values.get("filename")),
        number(width or 0),
        number(height or 0),
        tuple(_object(line, item) for line, item in objects),
    )


def _object(line: int, values: _Values) -> VocObject:
    box = values.get("bndbox")
    corners = None
    if isinstance(box, dict):
        corners = (
            number(box.get("xmin")),
            number(box.get("ymin")),
            number(box.get("xmax")),
            number(box.get("ymax")),
        )
    return VocObject(
        line,
        _text(values.get("name")),
        corners,
        int(_text(values.get("difficult")).lower() in _TRUE),
        int(_text(values.get("truncated")).lower() in _TRUE),
        _text(values.get("pose")),
    )


def _text(value: _Values | str | None) -> str:
    return value if isinstance(value, str) else ""


def _parse(data: bytes, name: str) -> tuple[_Values, list[tuple[int, _Values]]] | None:
    """What is in `annotation`, and each of its objects with the line where it begins."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_elements: list[_Values] = [{}]
    objects: list[tuple[int, _Values]] = []
    text = ""

    def start(tag: str, _: Any) -> None:
        nonlocal text
        element: _Values = {}
        if tag == "object" and len(open_elements) == 2:
            objects.append((parser.CurrentLineNumber, element))
        open_elements.append(element)
        text = ""

    def end(tag: str) -> None:
        nonlocal text
        element = open_elements.pop()
        above = open_elements[-1]
        if tag not in above:  # of several the first counts
            above[tag] = element or text.strip()
        text = ""

    def characters(more: str) -> None:
        nonlocal text
        text += more

    def entity(*_: Any) -> None:
        raise SourceError(
            f"{name}, line {parser.CurrentLineNumber}: it declares entities, which annotations do "
            "not need and attacks do; remove its DOCTYPE"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SourceError(f"{name}, line {error.lineno}: it is no whole XML: {reason}") from None
    except SourceError:
        raise
    except (ValueError, LookupError) as error:  # an encoding that expat does not know
        raise SourceError(f"{name}: {error}; save it as UTF-8") from None
    if "annotation" not in open_elements[0]:
        return None
    root = open_elements[0]["annotation"]
    return (root if isinstance(root, dict) else {}), objects
