"""One PASCAL VOC annotation file -> its picture's name and size, and its objects.

Parsed by expat into a small tree that knows its lines. A file that declares entities is refused
before any is expanded; other files are never asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from recordsmith.errors import SourceError
from recordsmith.files import read_file
from recordsmith.sources.boxes import number

_TRUE = frozenset(("1", "true", "yes"))


class VocObject(NamedTuple):
    """One object; `corners` is xmin, ymin, xmax, ymax, and None if it has no box."""

    line: int
    name: str
    corners: tuple[float, float, float, float] | None
    difficult: int
    truncated: int
    view: str


class VocAnnotation(NamedTuple):
    """What is in one file; a size of 0 is one that it does not tell."""

    filename: str
    width: float
    height: float
    objects: tuple[VocObject, ...]


class _Element:
    __slots__ = ("children", "line", "tag", "text")

    def __init__(self, tag: str, line: int) -> None:
        self.tag = tag
        self.line = line
        self.text = ""
        self.children: list[_Element] = []

    def all(self, tag: str) -> Iterator[_Element]:
        return (child for child in self.children if child.tag == tag)

    def text_of(self, *tags: str) -> str:
        """The text below, by a path of tags; "" where it is not there."""
        element: _Element | None = self
        for tag in tags:
            element = next(element.all(tag), None) if element is not None else None
        return "" if element is None else element.text.strip()


def read_voc_xml(path: str, name: str) -> VocAnnotation | None:
    """Read one annotation file, called `name` in what is said of it.

    Returns:
        What it holds; None if it is XML of another kind.

    Raises:
        SourceError: it is no XML; says the line.
        FileAccessError: it cannot be read.
    """
    root = _parse(read_file(path), name)
    if root.tag != "annotation":
        return None
    return VocAnnotation(
        root.text_of("filename"),
        number(root.text_of("size", "width") or 0),
        number(root.text_of("size", "height") or 0),
        tuple(map(_object, root.all("object"))),
    )


def _object(element: _Element) -> VocObject:
    box = next(element.all("bndbox"), None)
    corners = None
    if box is not None:
        sides = {child.tag: number(child.text) for child in box.children}
        missing = float("nan")
        corners = (
            sides.get("xmin", missing),
            sides.get("ymin", missing),
            sides.get("xmax", missing),
            sides.get("ymax", missing),
        )
    return VocObject(
        element.line,
        element.text_of("name"),
        corners,
        int(element.text_of("difficult").lower() in _TRUE),
        int(element.text_of("truncated").lower() in _TRUE),
        element.text_of("pose"),
    )


def _parse(data: bytes, name: str) -> _Element:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = _Element("", 0)
    open_elements = [top]

    def start(tag: str, _: Any) -> None:
        element = _Element(tag, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def text(characters: str) -> None:
        open_elements[-1].text += characters

    def entity(*_: Any) -> None:
        raise SourceError(
            f"{name}, line {parser.CurrentLineNumber}: it declares entities, which annotations do "
            "not need and attacks do; remove its DOCTYPE"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SourceError(f"{name}, line {error.lineno}: it is no whole XML: {reason}") from None
    except (ValueError, LookupError) as error:  # an encoding that expat does not know
        raise SourceError(f"{name}: {error}; save it as UTF-8") from None
    return top.children[0]
