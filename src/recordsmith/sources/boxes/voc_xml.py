"""Parse one PASCAL VOC annotation file: its image's name and size, and its objects with lines.

A file that declares entities is refused before any is expanded; no other file is ever opened.
"""

from __future__ import annotations

from typing import Any, TypeAlias
from xml.parsers import expat

from recordsmith.errors import SourceError
from recordsmith.sources.boxes.boxes import number
from recordsmith.sources.boxes.image_annotations import ImageAnnotation, ObjectRow
from recordsmith.stores import Location, read_document

_Values: TypeAlias = dict[str, "_Values | str"]
"""Tag -> text, or the content of the first element with that tag."""

MAX_TOKEN_BYTES = 1 << 22
"""The longest tag or text of a file, such as a polygon of CVAT."""
_MAX_ELEMENTS = 250_000  # of an image; each takes some hundred bytes

_TRUE = frozenset(("1", "true", "yes"))


def read_voc_xml(location: Location, name: str) -> ImageAnnotation | None:
    """Read one annotation file, called `name` in messages.

    Returns:
        The annotation; None if the file is XML of another type.

    Raises:
        SourceError: the file is not valid XML; `line` is where.
        FileAccessError: the file cannot be read.
    """
    parsed = _parse(read_document(location), name)
    if parsed is None:
        return None
    values, objects = parsed
    size = values.get("size")
    width, height = (size.get("width"), size.get("height")) if isinstance(size, dict) else (0, 0)
    return ImageAnnotation(
        _text(values.get("filename")),
        number(width or 0),
        number(height or 0),
        tuple(_object(line, item) for line, item in objects),
    )


def _object(line: int, values: _Values) -> ObjectRow:
    box, name = values.get("bndbox"), _text(values.get("name"))
    corners = None
    if isinstance(box, dict):
        corners = (
            number(box.get("xmin")),
            number(box.get("ymin")),
            number(box.get("xmax")),
            number(box.get("ymax")),
        )
    extra = (
        int(_text(values.get("difficult")).lower() in _TRUE),
        int(_text(values.get("truncated")).lower() in _TRUE),
        _text(values.get("pose")),
    )
    fault = "" if corners else f"object {name!r} has no bndbox"
    return ObjectRow(f"line {line}", name, corners, fault, None, extra)


def _text(value: _Values | str | None) -> str:
    return value if isinstance(value, str) else ""


def _parse(data: bytes, name: str) -> tuple[_Values, list[tuple[int, _Values]]] | None:
    """The values in `annotation`, and each object with its first line."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    open_elements: list[_Values] = [{}]
    objects: list[tuple[int, _Values]] = []
    count = 0
    pieces: list[str] = []  # of the text since the last tag

    def start(tag: str, _: Any) -> None:
        nonlocal count
        count += 1
        if count > _MAX_ELEMENTS:
            raise SourceError(
                f"more than {_MAX_ELEMENTS:,} elements",
                path=name,
                line=parser.CurrentLineNumber,
                remedy="Cut the image into tiles.",
            )
        element: _Values = {}
        if tag == "object" and len(open_elements) == 2:
            objects.append((parser.CurrentLineNumber, element))
        open_elements.append(element)
        pieces.clear()

    def end(tag: str) -> None:
        element = open_elements.pop()
        above = open_elements[-1]
        if tag not in above:  # the first of several is used
            above[tag] = element or "".join(pieces).strip()
        pieces.clear()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    parse_xml(parser, data, name)
    if "annotation" not in open_elements[0]:
        return None
    root = open_elements[0]["annotation"]
    return (root if isinstance(root, dict) else {}), objects


def parse_xml(parser: expat.XMLParserType, data: bytes, name: str) -> None:
    """Parse a file, called `name` in messages, with the handlers of a parser.

    Raises:
        SourceError: it is not valid XML, declares entities, or has a very long tag or text; `line`
            is where.
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

    def entity(*_: Any) -> None:
        raise SourceError(
            "the file declares XML entities, which are refused for security",
            path=name,
            line=parser.CurrentLineNumber,
            remedy="Remove its DOCTYPE.",
        )

    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SourceError(f"not valid XML: {reason}", path=name, line=error.lineno) from None
    except SourceError:
        raise
    except (ValueError, LookupError) as error:  # an encoding that expat does not know
        raise SourceError(str(error), path=name, remedy="Save the file as UTF-8.") from None
