"""Reads the attributes of objects in CVAT's XML, which are elements in those of the shapes."""

from __future__ import annotations

import html
import re
from contextlib import suppress
from xml.parsers import expat

from recordsmith.sources.boxes.annotation import attributes_in

_NAME = re.compile(rb"<name>([^<]*)</name>")
_NUMBER = re.compile(rb"<input_type>\s*number\s*<")


class Attributes:
    """Collects the attributes of the open shape."""

    def __init__(self, parser: expat.XMLParserType, data: bytes) -> None:
        """`data`: the file, which declares which attributes are numbers."""
        self._parser, self._name = parser, ""
        self._pieces: list[str] = []
        self._values: dict[str, str | float] = {}
        start, end = data.find(b"<labels>"), data.find(b"</labels>")
        declared = data[start:end].split(b"<attribute>")[1:] if 0 <= start < end else []
        names = (_NAME.search(text) for text in declared if _NUMBER.search(text))
        self._numbers = {
            html.unescape(name[1].decode("utf-8", "replace")) for name in names if name
        }

    def begin(self, name: str) -> None:
        self._name, self._pieces = name, []
        self._parser.CharacterDataHandler = self._pieces.append

    def end(self) -> None:
        if self._parser.CharacterDataHandler is None:  # of an image that is refused
            return
        self._parser.CharacterDataHandler = None
        value: str | float = "".join(self._pieces)
        if self._name in self._numbers:
            with suppress(ValueError):
                value = float(value)
                value = int("".join(self._pieces))
        self._values |= attributes_in({self._name: value})

    def take(self) -> dict[str, str | float]:
        """The attributes of the shape that ends."""
        values, self._values = self._values, {}
        return values
