"""Reads and writes class names: `labels.txt`, and TensorFlow's object detection label maps.

`labels.txt` has a line `id:name` for each class. A label map is protobuf in its text form, as in
object_detection/protos/string_int_label_map.proto: `item { id: 1 name: 'raccoon' }`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from recordsmith.dataset.documents import line_in_json, other_than_text
from recordsmith.stores import Location, PlaceLike, as_folder, read_document, read_existing
from recordsmith.support.errors import OptionError

LABELS_NAME = "labels.txt"
LABEL_MAP_NAME = "label_map.pbtxt"
LARGEST_LABEL = 1_000_000
ClassNames: TypeAlias = tuple[str | None, ...]
"""Index = label; None where a label has no name."""

# each token starts with its own characters, so the time is linear for any file
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
        | (?P<word>[A-Za-z_][\w.]*)
        | (?P<number>-?\d+(?:\.\d+)?)
        | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
        | (?P<mark>[{}:;,<>\[\]])
    """,
    re.VERBOSE,
)
_MAX_DIGITS = 20  # of a label, leading zeros too; Python refuses numbers of thousands of digits


def class_names_of(names: Mapping[int, str]) -> ClassNames:
    """Convert names by label to a tuple indexed by label."""
    for label in names:
        if not 0 <= label <= LARGEST_LABEL:
            raise OptionError(
                f"class {names[label]!r} has the label {label}",
                value=label,
                expected=f"0 to {LARGEST_LABEL:,}",
            )
    return tuple(names.get(label) for label in range(max(names, default=-1) + 1))


def class_names_in_json(names: Any) -> ClassNames | None:
    """Validate that a value of JSON is null or a list of class names, with null for no name."""
    if names is None:
        return None
    return tuple(None if name is None else line_in_json(name) for name in names)


def labels_to_bytes(class_names: Sequence[str | None]) -> bytes:
    """The content of `labels.txt`: a line `id:name` for each class with a name."""
    lines = "".join(
        f"{label}:{name}\n" for label, name in enumerate(class_names) if name is not None
    )
    return lines.encode("utf-8", "surrogateescape")


def read_labels(folder: Location) -> ClassNames | None:
    """Read `labels.txt`; None if it is missing or its labels are not ascending."""
    data = read_existing(folder / LABELS_NAME)
    if data is None:
        return None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    names: list[str | None] = []
    for line in (line.removesuffix("\r") for line in lines if line.strip()):
        label, colon, name = line.partition(":")
        label = label.strip()
        if not colon or not is_label(label) or int(label) < len(names):
            return None
        names += [None] * (int(label) - len(names)) + [name]
    return tuple(names)


def is_label_map_name(name: str) -> bool:
    """Whether a file is named like a label map, such as `Objects_label_map.pbtxt`."""
    return name.lower().endswith((LABEL_MAP_NAME, "labelmap.pbtxt"))


def background_notices(class_names: Sequence[str | None] | None) -> list[str]:
    """A notice about a class of a label map with the number of the background."""
    if not class_names or class_names[0] is None:
        return []
    reserved = "which the Object Detection API keeps for the background"
    return [f"class {class_names[0]} has id 0 in the label map, {reserved}"]


def carried_class_names(
    folder: PlaceLike, known: ClassNames | None
) -> tuple[ClassNames | None, bool]:
    """The class names to copy with records of a folder, and whether they are from a label map."""
    location = as_folder(folder) / LABEL_MAP_NAME
    if not location.exists():
        return known, False
    return read_label_map(location), True


def label_map_to_bytes(class_names: Sequence[str | None]) -> bytes:
    """The content of `label_map.pbtxt`: an item with id and name for each named class."""
    items = [
        f"item {{\n  id: {label}\n  name: '{_escaped(name)}'\n}}\n"
        for label, name in enumerate(class_names)
        if name is not None
    ]
    return "".join(items).encode("utf-8", "surrogateescape")


def read_label_map(path: PlaceLike) -> ClassNames:
    """Read a label map, with the `name` of each item, or `display_name` without a name.

    An empty file is that of a dataset without objects.
    """
    data = read_document(path)
    names: dict[int, str] = {}
    taken: set[str] = set()
    for line, item in _items(data, path):
        label, name = item.get("id"), item.get("name", item.get("display_name"))
        if label is None or name is None or not _is_number(label):
            raise OptionError(
                f"{path}, line {line}: expected an item with id and name, got {item!s:.200}"
            )
        if int(label) in names or name in taken:
            raise OptionError(f"{path}, line {line}: duplicate id {label} or name {name!r}")
        names[int(label)] = name
        taken.add(name)
    if not names and data.strip():
        raise OptionError(
            f"{path} has no items", expected="items like item { id: 1 name: 'raccoon' }"
        )
    return class_names_of(names)


def _items(data: bytes, path: PlaceLike) -> list[tuple[int, dict[str, str]]]:
    """Each item with its line; nested messages (keypoints) are ignored."""
    text = data.decode("utf-8-sig", "surrogateescape")
    items: list[tuple[int, dict[str, str]]] = []
    depth, key, place, line = 0, "", 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            other = other_than_text(data)
            if other is not None:
                raise OptionError(f"{path} is {other}", expected="a label map")
            shown = text[place : place + 60].splitlines()[0]
            raise OptionError(f"{path}, line {line}: expected a label map, got {shown!r}")
        place = match.end()
        if match["space"]:
            line += match["space"].count("\n")
        elif match["mark"] in ("{", "<"):
            depth += 1
            if depth == 1:
                if key != "item":
                    raise OptionError(f"{path}, line {line}: expected item, got {key!r}")
                items.append((line, {}))
        elif match["mark"] in ("}", ">"):
            depth -= 1
        elif match["word"] and depth <= 1:
            key = match["word"]
        elif depth == 1 and (match["number"] or match["text"]):
            value = match["number"] or _unescaped(match["text"][1:-1])
            items[-1][1].setdefault(key, value)
    if depth:
        raise OptionError(f"{path} is truncated: it ends inside an item")
    return items


def is_label(text: str) -> bool:
    """Whether a text is a decimal integer from 0 to LARGEST_LABEL."""
    return _is_number(text) and int(text) <= LARGEST_LABEL


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MAX_DIGITS


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")


def _unescaped(text: str) -> str:
    """Replace the escapes of protobuf's text format; octal and hex escapes are UTF-8 bytes."""
    plain = {"n": "\n", "t": "\t", "r": "\r"}
    pieces = re.split(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", text)
    data = bytearray()
    for number, piece in enumerate(pieces):
        if number % 2 == 0:
            data += piece.encode("utf-8", "surrogateescape")
        elif piece[0] in "01234567":
            data.append(int(piece, 8) & 0xFF)
        elif piece[0] == "x" and len(piece) > 1:
            data.append(int(piece[1:], 16))
        else:
            data += plain.get(piece, piece).encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "surrogateescape")
